/* questions.c: see questions.h. All wait equally long, so that the oldest is the first to be
 * overdue, and one timer is enough. A question that is answered within its slot isn't waited for:
 * it goes to the list of those that were answered, which the next turn takes, since the engine is
 * in the midst of its work while it calls a slot. */
#include "questions.h"

#include "timers.h"

static mull__question *oldest(mull_engine *engine)
{
    mull__link *link = mull__list_first(&engine->questions);
    return link ? MULL__ENTRY(link, mull__question, link) : NULL;
}

static void on_overdue(void *data);

/* watch waits for the oldest to be overdue. A timer that is set is for one that is older still. */
static void watch(mull_engine *engine, int64_t now_ms)
{
    const mull__question *question = oldest(engine);
    if (question && !engine->question_timer.set)
        mull__timer_set(engine, &engine->question_timer,
                        mull__later(question->asked_ms, MULL__ANSWER_MS) - now_ms, on_overdue,
                        engine);
}

static void on_overdue(void *data)
{
    mull_engine *engine = data;
    int64_t now_ms = mull__engine_now(engine);
    mull__question *question;
    while ((question = oldest(engine)) && now_ms - question->asked_ms >= MULL__ANSWER_MS) {
        mull__list_remove(&engine->questions, &question->link);
        question->asker->unanswered(question);
    }
    watch(engine, now_ms);
    mull__engine_mark_posted(engine);
}

mull_ticket mull__question_ask(mull_port *port, mull__question *question, mull__ticket_kind kind,
                               const mull__asker *asker)
{
    question->asker = asker;
    question->in_slot = 1;
    mull__port_asked(port);
    return mull__ticket_give(port, &question->ticket, kind);
}

void mull__question_asked(mull__question *question)
{
    mull_engine *engine = question->ticket.port->engine;
    question->in_slot = 0;
    if (question->kept)
        return;
    question->asked_ms = mull__turn_ms(engine);
    mull__list_push(&engine->questions, &question->link);
    watch(engine, question->asked_ms);
}

void mull__question_drop(mull_engine *engine, mull__question *question)
{
    mull__list_remove(question->kept ? &engine->answers : &engine->questions, &question->link);
    if (engine->questions.count == 0)
        mull__engine_cancel(engine, &engine->question_timer);
    mull__free(&engine->allocator, question->why);
    question->why = NULL;
    question->kept = 0;
}

static void keep(mull_engine *engine, mull__question *question, int status, const char *why)
{
    question->kept = 1;
    question->status = status;
    question->why = why ? mull__strdup(&engine->allocator, why) : NULL;
    mull__list_push(&engine->answers, &question->link);
    mull__engine_mark_posted(engine);
}

void mull__question_answered(mull__question *question, int status, const char *why)
{
    if (question->in_slot)
        keep(question->ticket.port->engine, question, status, why);
    else
        question->asker->answered(question, status, why);
}

void mull__answers_take(mull_engine *engine)
{
    for (size_t left = engine->answers.count; left > 0 && engine->answers.count > 0; left--) {
        mull__question *question =
            MULL__ENTRY(mull__list_pop(&engine->answers), mull__question, link);
        char *why = question->why;
        question->why = NULL;
        question->kept = 0;
        question->asker->answered(question, question->status, why);
        mull__free(&engine->allocator, why);
    }
}

void mull__question_end(mull_engine *engine, mull__question *question)
{
    mull__question_drop(engine, question);
    mull__ticket_take(engine, &question->ticket);
}
