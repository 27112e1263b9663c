/* settlement.c: how a delivery ends at the broker: its settlement is written once, and handed to
 * the transport until that takes it. */
#include "settlement.h"

#include "admission.h"
#include "calls.h"
#include "events.h"
#include "timers.h"
#include "transitions.h"

#include <string.h>

enum { AGAIN_FIRST_MS = 100, MAX_DOUBLED = 7, AGAIN_MAX_MS = 10000, TRIES_WHEN_STOPPING = 3 };

static const char *header(const mull__delivery *d, const char *name)
{
    for (size_t i = 0; i < d->settlement.header_count; i++)
        if (strcmp(d->settlement.headers[i].name, name) == 0)
            return d->settlement.headers[i].value;
    return NULL;
}

/* stamp_for: a redelivery or a dead letter is a new copy, so hand-outs that died with their owner
 * go into its calls. One that is given back keeps the broker's count of them. */
static mull__header_values stamp_for(const mull__delivery *d)
{
    mull_settle_kind kind = d->settlement.kind;
    int64_t crashes = kind == MULL_SETTLE_GIVE_BACK ? 0 : d->crashes;
    mull__header_values stamp = {
        .redeliveries = d->record.redeliveries + (kind == MULL_SETTLE_REDELIVER),
        .calls = d->record.calls + d->attempt + crashes,
        .first_failure_ms = d->record.first_failure_ms,
        .last_failure_ms = d->failed_at_ms,
        .given_id = d->handed->message.id ? NULL : d->message.id,
        .due_ms = kind == MULL_SETTLE_REDELIVER ? d->record.due_ms : 0,
        .keep_aside = d->record.aside,
        .queue = d->consumer->queue,
    };
    if (kind == MULL_SETTLE_DEAD_LETTER) {
        stamp.error = d->error;
        stamp.consumer = d->consumer->name;
        stamp.verdict = &d->verdict;
    }
    return stamp;
}

/* write_headers finishes the headers. Those of a message that is given back without a failed call
 * stay as they came, a returned dead letter's record too. */
static int write_headers(mull__delivery *d)
{
    mull_settlement *settlement = &d->settlement;
    const mull_message *from = &d->handed->message;
    settlement->headers = from->headers;
    settlement->header_count = from->header_count;
    if (settlement->kind == MULL_SETTLE_ACK || settlement->kind == MULL_SETTLE_DISCARD ||
        (settlement->kind == MULL_SETTLE_GIVE_BACK && d->attempt == 0) || d->delay_hop)
        return 0;
    mull__header_values stamp = stamp_for(d);
    mull__free(&d->engine->allocator, d->headers);
    d->headers = NULL;
    int status = mull__headers_write(&d->headers, &settlement->header_count, &d->engine->allocator,
                                     from->headers, from->header_count, &stamp);
    settlement->headers = d->headers;
    return status;
}

/* plan_due sets when a redelivery is due. What is longer than the transport's longest delay is made
 * of several: the end goes into a header, and the message comes by on its way there. */
static void plan_due(mull__delivery *d)
{
    int64_t now_ms = mull__engine_wall(d->engine);
    int64_t longest_ms = d->consumer->port->abilities.longest_delay_ms;
    int64_t end_ms = d->delay_hop ? d->record.due_ms : now_ms + d->verdict.delay_ms;
    int in_parts = longest_ms > 0 && end_ms - now_ms > longest_ms;
    d->record.due_ms = in_parts || d->delay_hop ? end_ms : 0;
    d->settlement.due_ms = in_parts ? now_ms + longest_ms : end_ms > now_ms ? end_ms : 0;
}

/* ---- Handing it over, and the answer --------------------------------------------------------- */

static void hand_over(void *data);

/* end_settling: from now on nothing is asked of the transport. */
static void end_settling(mull__delivery *d, mull__message_state end)
{
    d->consumer->settling--;
    d->consumer->failing -= d->tries > 0;
    mull__engine_cancel(d->engine, &d->timer);
    mull__message_becomes(d, end);
    mull__engine_mark_posted(d->engine);
}

/* backoff_ms is how long the next try waits. */
static int64_t backoff_ms(const mull__delivery *d)
{
    uint32_t doubled = d->tries <= MAX_DOUBLED ? d->tries - 1 : MAX_DOUBLED;
    int64_t delay_ms = (int64_t)AGAIN_FIRST_MS << doubled;
    return d->engine->closing ? 0 : delay_ms < AGAIN_MAX_MS ? delay_ms : AGAIN_MAX_MS;
}

/* failed tries again later, or leaves the message claimed: when its owner is gone, the broker hands
 * it out again. */
static void failed(mull__delivery *d, int status)
{
    mull_engine *engine = d->engine;
    mull_port *port = d->consumer->port;
    int broken = port->health == MULL_BROKEN;
    /* One line for all that fail meanwhile: the first says that it begins. */
    if (!broken && d->tries++ == 0 && d->consumer->failing++ == 0)
        mull__engine_log(engine, MULL_WARNING,
                         "%s: message %s isn't settled (%s); trying again, taking nothing new",
                         d->consumer->name, d->message.id, mull_strerror(status));
    int hopeless = d->tries > TRIES_WHEN_STOPPING || port->health == MULL_DOWN;
    if (!broken && (!engine->grace_over || !hopeless)) {
        mull__timer_set(engine, &d->timer, backoff_ms(d), hand_over, d);
        return;
    }
    port->abandoned += (uint32_t)broken;
    if (!broken)
        mull__engine_log(engine, MULL_ERROR_LEVEL,
                         "%s: message %s could not be settled before the end; it will be handed "
                         "out again",
                         d->consumer->name, d->message.id);
    end_settling(d, MULL__ABANDONED);
    mull__events_end(d);
}

static void answer_fault(void *data)
{
    mull__delivery *d = data;
    mull__settlement_answered(d, d->fault_code);
}

static void hand_over(void *data)
{
    mull__delivery *d = data;
    mull_port *port = d->consumer->port;
    if (write_headers(d) != 0) {
        failed(d, MULL_ENOMEM);
        return;
    }
    d->asked = 1;
    d->fault_code = mull__fault_hit(port, MULL__SETTLE);
    if (d->fault_code) {
        mull__timer_set(port->engine, &d->timer, 0, answer_fault, d);
        return;
    }
    mull_settlement *settlement = &d->settlement;
    int dead = settlement->kind == MULL_SETTLE_DEAD_LETTER;
    settlement->error_type = dead ? header(d, "mulligan-error-type") : NULL;
    settlement->reason = dead ? mull_reason_name(d->verdict.reason) : NULL;
    settlement->rule = dead ? header(d, "mulligan-rule") : NULL;
    port->ops->settle(port->self, d->handed, settlement);
}

void mull__settle(mull__delivery *d, mull_settle_kind kind)
{
    if (d->call == 0)
        mull__slot_free(d);
    mull__message_becomes(d, MULL__SETTLING);
    d->consumer->settling++;
    d->settlement = (mull_settlement){.kind = kind,
                                      .queue = kind == MULL_SETTLE_DEAD_LETTER ? d->verdict.queue
                                                                               : d->consumer->queue,
                                      .id = d->message.id,
                                      .sends = kind == MULL_SETTLE_ACK ? d->sends : NULL,
                                      .send_count = kind == MULL_SETTLE_ACK ? d->send_count : 0};
    if (kind == MULL_SETTLE_REDELIVER)
        plan_due(d);
    hand_over(d);
}

void mull__settlement_retry_now(mull__delivery *d)
{
    if (d->state == MULL__SETTLING && d->timer.set)
        mull__timer_set(d->engine, &d->timer, 0, d->timer.fire, d);
}

/* count_end counts how a message ended, and tells of the verdict that is carried out. */
static void count_end(mull__delivery *d)
{
    mull_counts *counts = &d->engine->counts;
    uint64_t *count[] = {[MULL_SETTLE_ACK] = &counts->done,
                         [MULL_SETTLE_REDELIVER] = &counts->redelivered,
                         [MULL_SETTLE_DEAD_LETTER] = &counts->dead_lettered,
                         [MULL_SETTLE_DISCARD] = &counts->discarded};
    mull_settle_kind kind = d->settlement.kind;
    if (kind == MULL_SETTLE_GIVE_BACK || d->delay_hop)
        return;
    (*count[kind])++;
    if (kind != MULL_SETTLE_ACK)
        mull__event_decided(d);
}

void mull__log_lost(const mull__delivery *d)
{
    mull__engine_log(d->engine, MULL_WARNING,
                     "%s: the claim on message %s is gone; it will be handed out again",
                     d->consumer->name, d->message.id);
}

void mull__settlement_answered(mull__delivery *d, int status)
{
    d->asked = 0;
    if (status != 0 && status != MULL_ELOST && !d->claim_lost) {
        mull__engine_mark_posted(d->engine);
        failed(d, status);
        return;
    }
    end_settling(d, status == 0 ? MULL__SETTLED : MULL__LOST);
    if (status == 0)
        count_end(d);
    else
        mull__log_lost(d);
    mull__events_end(d);
    mull__delivery_release(d);
}

int mull__all_settled(mull_engine *engine)
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (port->deferred && !engine->grace_over)
            return 0;
    for (mull__delivery *d = NULL; (d = mull__next_delivery(engine, d));)
        if (d->state < MULL__SETTLED)
            return 0;
    return 1;
}

void mull__delivery_release(mull__delivery *d)
{
    if (d->state < MULL__SETTLED || d->state == MULL__ABANDONED || d->call != 0)
        return;
    const mull_allocator *allocator = &d->engine->allocator;
    mull_port *port = d->consumer->port;
    mull__slot_free(d);
    mull__engine_cancel(d->engine, &d->timer);
    mull__list_remove(&d->engine->deliveries, &d->engine_link);
    d->handed->runtime = NULL; /* a transport that speaks of it once more is found out */
    port->ops->release(port->self, d->handed);
    mull__sends_drop(d);
    if (d->generation)
        mull__generation_unref(d->generation);
    mull__error_free(d->engine, d->error);
    mull__free(allocator, d->words);
    mull__free(allocator, d->headers);
    mull__free(allocator, d->visible);
    mull__free(allocator, d);
}
