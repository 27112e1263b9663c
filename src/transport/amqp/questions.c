/* questions.c: what is asked of the broker, one question after the other, so that an error, which
 * closes the channel, is known to be the answer to the one that was asked. See state.h. */
#include "base/alloc.h"
#include "state.h"

#include <string.h>

/* ask_next asks, unless an answer is due. */
static void ask_next(mull__amqp *t)
{
    while (t->asks_open && !t->is_asking) {
        mull__link *first = t->asked ? NULL : mull__list_pop(&t->questions);
        if (first)
            t->asked = MULL__ENTRY(first, mull__amqp_question, link);
        if (!t->asked)
            return;
        t->is_asking = 1;
        if (t->asked->ask(t, t->asked) != 0) {
            t->asked = NULL;
            t->is_asking = 0;
        }
    }
}

void mull__amqp_ask(mull__amqp *t, mull__amqp_question *question)
{
    mull__list_push(&t->questions, &question->link);
    ask_next(t);
}

void mull__amqp_unask(mull__amqp *t, mull__amqp_question *question)
{
    mull__list_remove(&t->questions, &question->link);
    if (t->asked == question)
        t->asked = NULL;
}

/* answer gives the reply to the question that was asked, if it wasn't taken back. */
static void answer(mull__amqp *t, const mull__amqp_reply *reply)
{
    if (t->asked && t->asked->answered(t, t->asked, reply) != 0)
        t->asked = NULL;
    t->is_asking = 0;
}

void mull__amqp_asks_open(mull__amqp *t)
{
    t->asks_open = 1;
    ask_next(t);
}

void mull__amqp_asks_method(mull__amqp *t, amqp_method_number_t id, const void *decoded)
{
    mull__amqp_reply reply = {.method = id, .decoded = decoded};
    char text[256];
    if (id == AMQP_CHANNEL_CLOSE_METHOD) {
        const amqp_channel_close_t *close = decoded;
        mull__amqp_quote(text, sizeof text, close->reply_text);
        reply.code = close->reply_code;
        reply.text = text;
        t->asks_open = 0;
        mull__amqp_channel_open(&t->session, MULL__AMQP_ASKS);
    }
    if (t->is_asking)
        answer(t, &reply);
    ask_next(t);
}

void mull__amqp_asks_lost(mull__amqp *t)
{
    const mull__amqp_reply reply = {.code = -1, .text = t->down};
    t->asks_open = 0;
    do {
        mull__link *first = t->asked ? NULL : mull__list_pop(&t->questions);
        if (first)
            t->asked = MULL__ENTRY(first, mull__amqp_question, link);
        answer(t, &reply);
        t->asked = NULL;
    } while (t->questions.count > 0);
}

/* ---- Depths ---------------------------------------------------------------------------------- */

typedef struct depth_question {
    mull__amqp_question question;
    mull_ticket ticket;
    char queue[];
} depth_question;

/* A passive declaration counts what is ready. */
static int depth_send(mull__amqp *t, mull__amqp_question *question)
{
    depth_question *depth = MULL__ENTRY(question, depth_question, question);
    amqp_queue_declare_t declare = {.queue = mull__amqp_text(depth->queue), .passive = 1};
    mull_ticket ticket = depth->ticket;
    if (mull__amqp_send(&t->session, MULL__AMQP_ASKS, AMQP_QUEUE_DECLARE_METHOD, &declare) == 0)
        return 0;
    mull__free(&t->allocator, depth);
    mull_port_depth(t->port, ticket, MULL_EREFUSED, NULL, "a queue's name has 255 bytes at most");
    return 1;
}

static int depth_answered(mull__amqp *t, mull__amqp_question *question,
                          const mull__amqp_reply *reply)
{
    depth_question *asked = MULL__ENTRY(question, depth_question, question);
    const amqp_queue_declare_ok_t *ok = reply->decoded;
    mull_ticket ticket = asked->ticket;
    mull_depth depth = {
        .ready = 0, .delayed = MULL_UNKNOWN, .claimed = MULL_UNKNOWN, .next_due_ms = INT64_MAX};
    if (reply->code == 0 && reply->method == AMQP_QUEUE_DECLARE_OK_METHOD)
        depth.ready = ok->message_count;
    mull__free(&t->allocator, asked);
    if (reply->code == 0 || reply->code == AMQP_NOT_FOUND)
        mull_port_depth(t->port, ticket, 0, &depth, NULL);
    else
        mull_port_depth(t->port, ticket, reply->code < 0 ? MULL_EDOWN : MULL_EIO, NULL,
                        reply->text);
    return 1;
}

int mull__amqp_depth_ask(mull__amqp *t, const char *queue, mull_ticket ticket)
{
    size_t length = strlen(queue) + 1;
    depth_question *depth = mull__zalloc(&t->allocator, 1, sizeof *depth + length);
    if (!depth)
        return MULL_ENOMEM;
    depth->question.ask = depth_send;
    depth->question.answered = depth_answered;
    depth->ticket = ticket;
    memcpy(depth->queue, queue, length);
    mull__amqp_ask(t, &depth->question);
    return 0;
}
