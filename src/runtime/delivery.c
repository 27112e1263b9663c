/* delivery.c: a message's life, to be read from top to bottom.
 *
 *   arrive ── admission ── turn ── call ── ended ──┬── well: settle(ACK)
 *     │                      │      │             └── badly ┐
 *     │                      │      └── timeout: detached ──┤
 *     └── died too often     └─ put off, or its calls are   v
 *              └─────────────── used up: ended unasked   judge ──┬── RETRY: journal, pause,
 * admission ├── a limit keeps it: goes back └── settle ── settled ── release
 *
 * A detached call keeps its slot and its message until its handler ends it: only then may a retry
 * run, only then is the delivery released. */
#include "delivery.h"

#include "admission.h"
#include "base/hash.h"
#include "base/struct_compat.h"
#include "calls.h"
#include "copy.h"
#include "counting.h"
#include "events.h"
#include "limiting.h"
#include "policy/resolve.h"
#include "readers.h"
#include "settlement.h"
#include "timers.h"
#include "transitions.h"

#define DELIVERIES_MAX INT64_C(1000000000000000)

enum { NO_ROOM_MS = 1000 }; /* so long a message waits whose consumer has no room */

/* ---- It arrives ------------------------------------------------------------------------------ */

/* hide_record gives a returned dead letter's headers without the record of its failure. */
static int hide_record(mull__delivery *d)
{
    const mull_message *from = d->handed->message;
    d->visible = mull__zalloc(&d->engine->allocator, from->header_count + 1, sizeof *d->visible);
    if (!d->visible)
        return MULL_ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < from->header_count; i++)
        if (!mull__is_own(from->headers[i].name))
            d->visible[count++] = from->headers[i];
    d->message.headers = d->visible;
    d->message.header_count = count;
    return 0;
}

static int read_record(mull__delivery *d)
{
    const mull_message *from = d->handed->message;
    /* Of what is new no clock is looked at. */
    int is_new = from->header_count == 0 && d->message.deliveries <= 1;
    int64_t now_ms = is_new ? 0 : mull__engine_wall(d->engine);
    mull__header_record *record = &d->record;
    if (from->header_count > 0)
        mull__record_read(record, from->headers, from->header_count, d->consumer->queue, now_ms);
    if (record->returned && hide_record(d) != 0)
        return MULL_ENOMEM;
    if (!from->id && record->given_id) {
        d->message.id = record->given_id;
    } else if (!from->id) {
        mull__engine_id(d->engine, d->given_id);
        d->message.id = d->given_id;
    }
    d->chance = mull__hash_text(d->message.id);
    int deaths = d->consumer->can.deliveries == MULL_COUNTS_DEATHS && d->message.deliveries > 1;
    d->crashes = deaths ? d->message.deliveries - 1 : 0;
    d->delay_hop = record->due_ms > now_ms;
    d->first_is_safe = record->first_failure_ms != 0;
    if (d->crashes > 0 && record->first_failure_ms == 0)
        record->first_failure_ms = now_ms;
    for (size_t i = 0; i < sizeof record->ignored / sizeof *record->ignored && record->ignored[i];
         i++)
        mull__event_header_ignored(d, record->ignored[i]);
    return 0;
}

/* deliveries_of: 1 where nothing is counted, whatever `counted` is; else what failures are judged
 * by, and no sum with it overflows. */
static int64_t deliveries_of(const mull__consumer *consumer, int64_t counted)
{
    if (consumer->can.deliveries == MULL_COUNTS_NOTHING)
        return 1;
    return counted < 0 ? 0 : counted > DELIVERIES_MAX ? DELIVERIES_MAX : counted;
}

static mull__delivery *delivery_new(mull__consumer *consumer, mull_delivery *handed)
{
    mull_engine *engine = consumer->engine;
    mull__delivery *d = mull__alloc(&engine->allocator, sizeof *d);
    if (!d)
        return NULL;
    *d = (mull__delivery){.engine = engine, .consumer = consumer, .handed = handed};
    mull__struct_copy_in(&d->message, sizeof d->message, MULL__MESSAGE_LEAST, handed->message);
    d->message.queue = consumer->queue;
    if (d->message.body_size == MULL_BODY_MISSING)
        d->message.body_size = 0;
    d->message.deliveries = deliveries_of(consumer, d->message.deliveries);
    mull__list_init(&d->pending);
    if (read_record(d) != 0) {
        mull__free(&engine->allocator, d);
        return NULL;
    }
    handed->runtime = d;
    handed->ticket = mull__ticket_give(consumer->port, &d->ticket, MULL__TICKET_DELIVERY);
    mull__list_push(&engine->deliveries, &d->engine_link);
    consumer->deliveries++;
    if (consumer->reader)
        consumer->reader->deliveries++;
    consumer->tally.taken++;
    engine->arrivals++;
    mull__engine_mark_posted(engine);
    return d;
}

/* died_too_often says whether its next call is one too many: the broker handed it out more often
 * than max_deliveries, or the calls that died with their owners used up max_attempts. */
static int died_too_often(mull__delivery *d)
{
    if (d->message.deliveries <= 1)
        return 0;
    mull__decider_refresh(d->engine->decider); /* the verdict comes from the same one */
    mull__settings settings = mull__delivery_settings(d);
    int64_t limit = settings.max_deliveries;
    return (limit != MULL__OFF && d->message.deliveries > limit) ||
           (d->crashes > 0 && settings.max_attempts != MULL__OFF &&
            d->record.calls + d->crashes >= settings.max_attempts);
}

static void judge(mull__delivery *d, const mull_error *error);
static void fail(mull__delivery *d, const mull_error *error);

/* unreadable says why no handler can have a message; NULL: one can. */
static const char *unreadable(const mull_delivery *handed)
{
    return handed->size >= MULL__SIZE_TO(mull_delivery, unreadable) ? handed->unreadable : NULL;
}

static const mull_error *unreadable_error(mull__delivery *d)
{
    mull_error error = mull__engine_errors[MULL__UNREADABLE];
    error.message = unreadable(d->handed);
    const mull_error *copy = mull__error_copy(&d->engine->allocator, &error);
    return copy ? copy : &mull__engine_errors[MULL__UNREADABLE];
}

int mull__delivery_arrive(mull__consumer *consumer, mull_delivery *handed)
{
    int waits = 0;
    if (consumer->is_reader)
        consumer = mull__reader_goes_to(consumer, handed->message->type, &waits);
    mull__delivery *d = delivery_new(consumer, handed);
    if (!d)
        return MULL_ENOMEM;
    if (waits || !mull__consumer_accepts(consumer)) {
        d->back_ms = mull__consumer_accepts(consumer) ? NO_ROOM_MS : 0;
        mull__settle(d, MULL_SETTLE_GIVE_BACK);
    } else if (handed->message->body_size == MULL_BODY_MISSING) {
        fail(d, &mull__engine_errors[MULL__BODILESS]);
    } else if (unreadable(handed)) {
        fail(d, unreadable_error(d));
    } else if (d->delay_hop) {
        mull__settle(d, MULL_SETTLE_REDELIVER);
    } else if (d->message.body_size > d->consumer->options.max_body) {
        fail(d, &mull__engine_errors[MULL__TOO_BIG]);
    } else if (consumer->is_reader) {
        fail(d, &mull__engine_errors[MULL__NO_CONSUMER]);
    } else if (died_too_often(d)) {
        d->alone = 1; /* if it is called once more */
        judge(d, &mull__engine_errors[MULL__CRASHED]);
    } else {
        d->alone = d->crashes > 0;
        if (d->alone)
            mull__admission_made_room(consumer);
        mull__admission_put(d, 0);
    }
    return 0;
}

/* ---- Its handler works ----------------------------------------------------------------------- */

static void on_timeout(void *data);
static void begin_pause(mull__delivery *d);
static int journals(const mull__delivery *d);

static void call_again(void *data)
{
    mull__admission_put(data, 1);
}

static void resume(mull__delivery *d);

void mull__delivery_journal(mull__delivery *d)
{
    d->noted = resume;
    mull__settle(d, MULL_SETTLE_NOTE);
}

/* end_held: its age stood still since a failure that a limit kept. */
static void end_held(mull__delivery *d)
{
    mull__header_record *record = &d->record;
    if (record->held_since_ms == 0)
        return;
    int64_t held_ms = mull__engine_wall(d->engine) - record->held_since_ms;
    record->held_ms += held_ms > 0 ? held_ms : 0;
    record->held_since_ms = 0;
}

void mull__delivery_age(mull__delivery *d, int64_t now_ms)
{
    const mull__header_record *record = &d->record;
    end_held(d);
    int64_t age_ms = record->first_failure_ms ? now_ms - record->first_failure_ms : 0;
    d->age_ms = age_ms > record->held_ms ? age_ms - record->held_ms : 0;
}

void mull__delivery_call(mull__delivery *d)
{
    mull_engine *engine = d->engine;
    const mull_consumer_options *options = &d->consumer->options;
    d->call = mull__call_new(engine, d);
    if (d->call == 0) { /* out of memory */
        mull__timer_set(engine, &d->timer, MULL__AGAIN_MS, call_again, d);
        return;
    }
    if (!d->slot) {
        mull__slot_free(d);
        d->consumer->slots++;
        d->slot = 1;
    }
    end_held(d);
    mull__message_becomes(d, MULL__WORKING);
    d->consumer->calls++;
    engine->active_calls++;
    engine->alone = d->alone;
    d->message.attempt = d->attempt + 1;
    d->message.redeliveries = d->record.redeliveries;
    d->message.calls = d->record.calls + d->crashes + d->attempt;
    d->called_ms = options->timeout_ms == MULL_NEVER
                       ? mull__engine_now(engine)
                       : mull__timer_set(engine, &d->timer, options->timeout_ms, on_timeout, d);
    if (d->consumer->limits)
        mull__limits_began(d);
    options->handler(engine, d->call, &d->message, options->data);
}

/* end_handler_work undoes what mull__delivery_call did to the engine. */
static void end_handler_work(mull__delivery *d)
{
    d->engine->active_calls--;
    d->engine->overdue -= (uint32_t)d->overdue;
    d->engine->alone &= !d->alone;
    d->overdue = d->alone = 0;
    mull__engine_cancel(d->engine, &d->timer);
}

/* wait_isolated makes a message without a slot a poison candidate. */
static void wait_isolated(mull__delivery *d)
{
    mull__message_becomes(d, MULL__WAITING);
    d->alone = 1;
    mull__admission_put(d, 0);
}

/* retry_isolated: its call failed for want of memory, and for none of its own doing. */
static void retry_isolated(mull__delivery *d)
{
    int stops = !mull__consumer_accepts(d->consumer) || mull__engine_stop_asked(d->engine);
    mull__engine_log(d->engine, MULL_WARNING,
                     "%s: message %s failed for want of memory; it %s, uncounted",
                     d->consumer->label, d->message.id,
                     stops ? "goes back" : "is called again once nothing else is at work");
    mull__slot_free(d);
    if (stops)
        mull__settle(d, MULL_SETTLE_GIVE_BACK);
    else
        wait_isolated(d);
}

/* detached_ended: the end of a detached call no longer matters, but a retry has waited for it. One
 * that is being journalled goes on when that is safe. */
static void detached_ended(mull__delivery *d, const mull_error *error)
{
    mull__error_free(d->engine, error);
    int journalling = d->state == MULL__SETTLING && d->settlement.kind == MULL_SETTLE_NOTE;
    if (d->state == MULL__PAUSING)
        begin_pause(d);
    else if (journalling)
        d->retry_ms = mull__later(mull__engine_now(d->engine), d->verdict.delay_ms);
    else
        mull__slot_free(d);
    mull__delivery_release(d);
}

/* hear_limits has the limits count a call's end, and say whether they keep its failure. */
static void hear_limits(mull__delivery *d, const mull_error *error)
{
    int64_t until_ms = 0; /* which may have passed by now */
    d->kept = mull__limits_ended(d, error, &until_ms);
    int64_t wait_ms = d->kept ? until_ms - mull__engine_now(d->engine) : 0;
    d->back_ms = wait_ms > 0 ? wait_ms : 0;
}

void mull__delivery_ended(mull__delivery *d)
{
    const mull_error *error = d->ended;
    int uncounted = d->uncounted, crashed = d->crashed;
    d->ended = NULL;
    d->uncounted = d->crashed = 0;
    d->consumer->calls--;
    mull__count_call(d);
    if (mull__limits_count(d->consumer, error)) {
        if (d->state == MULL__WORKING && !uncounted)
            hear_limits(d, error);
        mull__limits_left(d);
    }
    if (d->state != MULL__WORKING) {
        detached_ended(d, error);
        return;
    }
    end_handler_work(d);
    if (error)
        mull__sends_drop(d);
    if (!error) {
        mull__settle(d, MULL_SETTLE_ACK);
    } else if (uncounted) {
        mull__error_free(d->engine, error);
        retry_isolated(d);
    } else if (crashed && d->engine->state != MULL__RUNNING) {
        mull__error_free(d->engine, error);
        mull__slot_free(d);
        mull__settle(d, MULL_SETTLE_GIVE_BACK);
    } else {
        d->suspect = crashed;
        fail(d, error);
    }
}

/* detach lets go of a call whose handler goes on. 0: it ended, and the inbox has its end. */
static int detach(mull__delivery *d)
{
    if (!mull__call_detach(d->engine, d->call))
        return 0;
    end_handler_work(d);
    mull__sends_drop(d);
    return 1;
}

/* cancel_handler comes last of a detachment: the handler may end its call at once. */
static void cancel_handler(const mull__delivery *d)
{
    const mull_consumer_options *options = &d->consumer->options;
    if (options->cancel)
        options->cancel(d->engine, d->call, options->data);
}

static void on_timeout(void *data)
{
    mull__delivery *d = data;
    mull__engine_mark_posted(d->engine);
    if (!detach(d))
        return;
    if (d->consumer->limits)
        hear_limits(d, &mull__engine_errors[MULL__TIMED_OUT]);
    fail(d, &mull__engine_errors[MULL__TIMED_OUT]);
    cancel_handler(d);
}

/* ---- It failed: judge ------------------------------------------------------------------------ */

/* copy_override_text copies what an override answered, which the state's next call takes away.
 * Where there is no memory for a queue's name, its message isn't lost: a person finds it in the
 * default one. */
static void copy_override_text(mull__delivery *d)
{
    mull_verdict *verdict = &d->verdict;
    const char **word = verdict->queue ? &verdict->queue : &verdict->note;
    mull__free(&d->engine->allocator, d->words);
    d->words = NULL;
    if (verdict->reason != MULL_REASON_OVERRIDE || !*word)
        return;
    d->words = mull__strdup(&d->engine->allocator, *word);
    if (!d->words)
        mull__engine_log(d->engine, MULL_ERROR_LEVEL,
                         "%s: message %s: not enough memory for what override answered: %s",
                         d->consumer->label, d->message.id, *word);
    *word = d->words || !verdict->queue ? d->words : mull__delivery_settings(d).dead_letter_queue;
}

static void carry_out(mull__delivery *d);

static void yield_retries(mull__consumer *c);

/* fail judges a failure by the generation that is in force. */
static void fail(mull__delivery *d, const mull_error *error)
{
    mull__consumer *c = d->consumer;
    mull__decider_refresh(d->engine->decider);
    judge(d, error);
    if (c->limits && c->limits->starts)
        yield_retries(c);
}

static void decide(mull__delivery *d, const mull_failure *failure)
{
    d->engine->judged = d;
    int status = mull__decide_current(d->engine->decider, failure, &d->verdict);
    d->engine->judged = NULL;
    MULL__ASSERT(status == 0); /* all that is judged was checked */
    if (status != 0)           /* never `retry`, which zero means */
        mull__decide_dead_letter(d, MULL_REASON_NO_RULE);
    copy_override_text(d);
}

/* refuse_body dead-letters a message whose body no handler can have, before any rule. */
static void refuse_body(mull__delivery *d)
{
    d->delay_hop = 0;
    mull__decide_dead_letter(d, MULL_REASON_UNRECOVERABLE);
}

/* may_be_kept: what a rule, a declaration or an override ends at once is ended. */
static int may_be_kept(const mull_verdict *verdict)
{
    switch (verdict->reason) {
    case MULL_REASON_NONE:
    case MULL_REASON_EXHAUSTED:
    case MULL_REASON_MAX_ATTEMPTS:
    case MULL_REASON_MAX_AGE:
    case MULL_REASON_DEADLINE:
        return 1;
    case MULL_REASON_OVERRIDE:
        return verdict->action == MULL_RETRY || verdict->action == MULL_REDELIVER;
    default:
        return 0;
    }
}

/* keep puts a message back until the wait's end, as if its call hadn't been. */
static void keep(mull__delivery *d)
{
    const char *words = d->error->message ? d->error->message : "";
    mull__engine_log(d->engine, MULL_INFO,
                     "kept: message %s, consumer %s: %.200s%s%.500s; a rate limit is in force, so "
                     "it comes back in %lld ms, uncounted",
                     d->message.id, d->consumer->name, d->error->type, *words ? ": " : "", words,
                     (long long)d->back_ms);
    d->attempt--;
    d->record.held_since_ms = d->failed_at_ms;
    mull__settle(d, MULL_SETTLE_GIVE_BACK);
}

/* judge judges a failure by the generation that the decider is at. The delivery owns the error from
 * now on. A crash is in `crashes` already: it is taken out, so that `attempt` counts it once. Where
 * the transport counts hand-outs it isn't, and one that came too often counts as no call. */
static void judge(mull__delivery *d, const mull_error *error)
{
    mull__error_free(d->engine, d->error);
    d->error = error;
    if (error == &mull__engine_errors[MULL__CRASHED])
        d->crashes--;
    d->attempt++;
    d->failed_at_ms = mull__engine_wall(d->engine);
    if (d->record.first_failure_ms == 0)
        d->record.first_failure_ms = d->failed_at_ms;
    mull__count_failure(d);
    mull__delivery_age(d, d->failed_at_ms);
    mull_failure failure = mull__failure_of(d);
    d->verdict = (mull_verdict){.size = sizeof d->verdict};
    mull__events_begin(d);
    mull__keep_generation(d);
    if (error == &mull__engine_errors[MULL__TOO_BIG] ||
        error == &mull__engine_errors[MULL__BODILESS] || unreadable(d->handed))
        refuse_body(d);
    else
        decide(d, &failure);
    if (d->kept && may_be_kept(&d->verdict))
        keep(d);
    else
        carry_out(d);
}

/* ---- The verdict is carried out -------------------------------------------------------------- */

static void carry_out(mull__delivery *d)
{
    d->kept = 0;
    d->back_ms = 0;
    static const mull_settle_kind kinds[] = {[MULL_REDELIVER] = MULL_SETTLE_REDELIVER,
                                             [MULL_DEAD_LETTER] = MULL_SETTLE_DEAD_LETTER,
                                             [MULL_DISCARD] = MULL_SETTLE_DISCARD};
    if (d->verdict.action != MULL_RETRY) {
        mull__settle(d, kinds[d->verdict.action]);
    } else if (!mull__consumer_accepts(d->consumer)) {
        mull__engine_log(d->engine, MULL_INFO,
                         "%s: message %s failed while %s (%s); it goes back, its calls counted",
                         d->consumer->label, d->message.id,
                         d->engine->state == MULL__RUNNING ? "its consumer takes none" : "stopping",
                         d->error->type);
        mull__settle(d, MULL_SETTLE_GIVE_BACK);
    } else {
        mull__count_verdict(d);
        mull__event_decided(d);
        mull__message_becomes(d, MULL__PAUSING);
        if (!mull__consumer_accepts(d->consumer)) /* who heard of the verdict paused it */
            mull__delivery_give_back(d);
        else if (d->call == 0 || journals(d))
            begin_pause(d);
    }
}

/* look_for_consumer: a retry of what no consumer takes. One that came meanwhile finds it in its
 * queue. */
static void look_for_consumer(mull__delivery *d)
{
    mull__message_becomes(d, MULL__WAITING);
    if (mull__taker_of(d->consumer, d->message.type))
        mull__settle(d, MULL_SETTLE_GIVE_BACK);
    else
        fail(d, &mull__engine_errors[MULL__NO_CONSUMER]);
}

/* on_retry: one that was judged before any call, for what its dead owners did, has no slot yet. One
 * whose handler died gives its slot up, to be called alone. */
static void on_retry(void *data)
{
    mull__delivery *d = data;
    if (d->suspect)
        mull__slot_free(d);
    d->alone |= d->suspect;
    d->suspect = 0;
    if (d->consumer->is_reader)
        look_for_consumer(d);
    else if (d->alone)
        wait_isolated(d);
    else
        mull__admission_put(d, 0);
}

/* journals: the policy in force bounds calls or their time, which must hold whatever is killed. */
static int journals(const mull__delivery *d)
{
    const mull__consumer *c = d->consumer;
    return c->can.can_note &&
           (c->max_attempts != MULL__OFF || (c->deadline_ms != MULL__OFF && !d->first_is_safe));
}

void mull__delivery_go_back(mull__delivery *d, int64_t until_ms)
{
    int64_t delay_ms = until_ms - mull__engine_now(d->engine);
    d->back_ms = delay_ms > 0 ? delay_ms : 0;
    mull__admission_made_room(d->consumer);
    mull__settle(d, MULL_SETTLE_GIVE_BACK);
}

/* gives_way: a limit that holds a retry up takes its slot. 1: others are held here, and it went
 * back. */
static int gives_way(mull__delivery *d)
{
    int64_t until_ms;
    mull__gate hold = d->slot ? mull__limits_hold(d) : MULL__GATE_OPEN;
    if (hold == MULL__GATE_WAIT)
        mull__slot_yield(d);
    if (hold != MULL__GATE_BACK)
        return 0;
    mull__limits_gate(d, &until_ms);
    mull__admission_remove(d);
    mull__delivery_go_back(d, until_ms > d->retry_ms ? until_ms : d->retry_ms);
    return 1;
}

/* yield_retries: a limit that begins takes the slots of the retries that it holds up. */
static void yield_retries(mull__consumer *c)
{
    c->limits->starts = 0;
    mull__delivery *d = mull__next_delivery(c->engine, NULL);
    while (d) {
        mull__delivery *next = mull__next_delivery(c->engine, d);
        if (d->consumer == c && d->state == MULL__PAUSING && d->call == 0)
            gives_way(d);
        d = next;
    }
}

static void wait_for_retry(mull__delivery *d)
{
    int64_t delay_ms = d->retry_ms - mull__engine_now(d->engine);
    if (!gives_way(d))
        mull__timer_set(d->engine, &d->timer, delay_ms, on_retry, d);
}

/* resume: what must be safe before its retry is safe. A handler that was cut off is waited for. */
static void resume(mull__delivery *d)
{
    d->safe_attempt = d->attempt;
    if (!mull__consumer_accepts(d->consumer))
        mull__delivery_give_back(d);
    else if (d->call == 0)
        wait_for_retry(d);
}

/* begin_pause begins when the handler has ended; that it failed is journalled before. */
static void begin_pause(mull__delivery *d)
{
    d->retry_ms = mull__later(mull__engine_now(d->engine), d->verdict.delay_ms);
    if (journals(d) && d->safe_attempt != d->attempt)
        mull__delivery_journal(d);
    else
        wait_for_retry(d);
}

/* ---- It ends otherwise ----------------------------------------------------------------------- */

/* mull__delivery_lost: where its handler works, its call is detached. */
void mull__delivery_lost(mull__delivery *d, const char *why)
{
    mull__engine_mark_posted(d->engine);
    if (d->state == MULL__SETTLING) {
        d->claim_lost = 1;
        if (d->question.ticket.number == 0) /* it waits for its next try, taking nothing new */
            mull__settlement_answered(d, MULL_ELOST, why);
        return;
    }
    if (d->state == MULL__ABANDONED) {
        if (d->unanswered) /* its settlement is the transport's to read until it has closed */
            return;
        d->consumer->port->parked -= (uint32_t)d->parked;
        d->consumer->parked -= (uint32_t)d->parked;
        d->parked = 0;
        mull__message_becomes(d, MULL__LOST);
        mull__delivery_release(d);
        return;
    }
    if (d->state > MULL__SETTLING)
        return;
    mull__log_lost(d, why);
    int works = d->state == MULL__WORKING, detached = works && detach(d);
    if (works && !detached)
        end_handler_work(d); /* it just ended, and the inbox has its end */
    mull__admission_remove(d);
    mull__message_becomes(d, MULL__LOST);
    if (detached)
        cancel_handler(d);
    mull__delivery_release(d);
}

void mull__delivery_give_back(mull__delivery *d)
{
    if (d->state != MULL__WAITING && d->state != MULL__PAUSING)
        return;
    mull__admission_remove(d);
    mull__settle(d, MULL_SETTLE_GIVE_BACK);
}

/* mull__delivery_detach: a handler that ends because we stop has not failed. */
void mull__delivery_detach(mull__delivery *d)
{
    if (d->state != MULL__WORKING || !detach(d))
        return;
    mull__settle(d, MULL_SETTLE_GIVE_BACK);
    cancel_handler(d);
}
