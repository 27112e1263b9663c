/* settlement.c: how a delivery ends at the broker. See settlement.h. */
#include "settlement.h"

#include "admission.h"
#include "calls.h"
#include "events.h"
#include "timers.h"
#include "wire/headers.h"

#include <string.h>

enum { AGAIN_FIRST_MS = 100, AGAIN_MAX_MS = 10000, TRIES_WHEN_STOPPING = 3 };

static const char *header(const mull__delivery *d, const char *name)
{
    for (size_t i = 0; i < d->settlement.header_count; i++)
        if (strcmp(d->settlement.headers[i].name, name) == 0)
            return d->settlement.headers[i].value;
    return NULL;
}

/* stamp_for: a redelivery or a dead letter is a new copy, so hand-outs that died with their owner
 * go into its calls; one that is given back keeps the broker's count of them. */
static mull__stamp stamp_for(const mull__delivery *d)
{
    mull_settle_kind kind = d->settlement.kind;
    int given_back = kind == MULL_SETTLE_GIVE_BACK;
    mull__stamp stamp = {
        .redeliveries = d->redeliveries + (kind == MULL_SETTLE_REDELIVER),
        .calls = d->calls_before + d->attempt + (given_back ? 0 : d->crashes),
        .first_failure_ms = d->first_failure_ms,
        .last_failure_ms = d->failed_at_ms,
        .given_id = d->handed->message.id ? NULL : d->message.id,
        .due_ms = kind == MULL_SETTLE_REDELIVER ? d->due_ms : 0,
        .keep_aside = d->parked,
        .queue = d->consumer->queue,
    };
    if (kind == MULL_SETTLE_DEAD_LETTER) {
        stamp.error = d->error;
        stamp.consumer = d->consumer->name;
        stamp.verdict = &d->verdict;
    }
    return stamp;
}

/* write_headers finishes the headers. Those of a message that goes are not looked at, those of one
 * that is given back without a failed call stay as they came, a returned dead letter's record too.
 */
static int write_headers(mull__delivery *d)
{
    mull_settlement *settlement = &d->settlement;
    const mull_message *from = &d->handed->message;
    settlement->headers = from->headers;
    settlement->header_count = from->header_count;
    if (settlement->kind == MULL_SETTLE_ACK || settlement->kind == MULL_SETTLE_DISCARD ||
        (settlement->kind == MULL_SETTLE_GIVE_BACK && d->attempt == 0) || d->delay_hop)
        return 0;
    mull__stamp stamp = stamp_for(d);
    const mull_allocator *allocator = &d->consumer->engine->allocator;
    mull__free(allocator, d->headers);
    d->headers = NULL;
    int status = mull__headers_write(&d->headers, &settlement->header_count, allocator,
                                     from->headers, from->header_count, &stamp);
    settlement->headers = d->headers;
    return status;
}

/* plan_due sets when a redelivery is due. What is longer than the transport's longest delay is made
 * of several: the end goes into a header, and the message comes by on its way there. */
static void plan_due(mull__delivery *d)
{
    const struct mull_subscription *consumer = d->consumer;
    if (d->settlement.kind != MULL_SETTLE_REDELIVER)
        return;
    int64_t now_ms = mull__engine_wall(consumer->engine);
    int64_t longest_ms = consumer->port->abilities.longest_delay_ms;
    int64_t end_ms = d->delay_hop ? d->due_ms : now_ms + d->verdict.delay_ms;
    int in_parts = longest_ms > 0 && end_ms - now_ms > longest_ms;
    d->due_ms = in_parts || d->delay_hop ? end_ms : 0;
    d->settlement.due_ms = in_parts ? now_ms + longest_ms : end_ms > now_ms ? end_ms : 0;
}

/* ---- Handing it over, and the answer --------------------------------------------------------- */

static void hand_over(void *data);

/* end_settling: from now on nothing is asked of the transport. */
static void end_settling(mull__delivery *d, mull__message_state end)
{
    mull_engine *engine = d->consumer->engine;
    d->consumer->settling--;
    if (d->tries > 0)
        d->consumer->failing--;
    mull__engine_cancel(engine, &d->timer);
    mull__message_becomes(d, end);
    mull__engine_touch(engine);
}

/* abandon leaves a message claimed that can't be settled: when its owner is gone, the broker hands
 * it out again. */
static void abandon(mull__delivery *d)
{
    end_settling(d, MULL__ABANDONED);
    mull__events_end(d);
}

static void try_later(mull__delivery *d)
{
    int64_t delay_ms = d->consumer->engine->closing ? 0 : AGAIN_FIRST_MS;
    for (uint32_t i = 1; i < d->tries && delay_ms < AGAIN_MAX_MS; i++)
        delay_ms *= 2;
    if (delay_ms > AGAIN_MAX_MS)
        delay_ms = AGAIN_MAX_MS;
    mull__timer_set(d->consumer->engine, &d->timer, delay_ms, hand_over, d);
}

static void failed(mull__delivery *d, int status)
{
    mull_engine *engine = d->consumer->engine;
    mull_port *port = d->consumer->port;
    if (port->health == MULL_BROKEN) {
        port->abandoned++;
        abandon(d);
        return;
    }
    /* One line for all that fail meanwhile: the first says that it begins. */
    if (d->tries++ == 0 && d->consumer->failing++ == 0)
        mull__engine_log(engine, MULL_WARNING,
                         "%s: message %s isn't settled (%s); trying again, taking nothing new",
                         d->consumer->name, d->message.id, mull_strerror(status));
    int hopeless = d->tries > TRIES_WHEN_STOPPING || port->health == MULL_DOWN;
    if (!engine->grace_over || !hopeless) {
        try_later(d);
        return;
    }
    mull__engine_log(engine, MULL_ERROR_LEVEL,
                     "%s: message %s could not be settled before the end; it will be handed out "
                     "again",
                     d->consumer->name, d->message.id);
    abandon(d);
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
    if (mull__fault_hit(port, MULL__SETTLE, &d->fault_code)) {
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
    plan_due(d);
    hand_over(d);
}

void mull__settlement_hurry(mull__delivery *d)
{
    if (d->state == MULL__SETTLING && d->timer.set)
        mull__timer_set(d->consumer->engine, &d->timer, 0, d->timer.fire, d);
}

/* count_end counts how a message ended, and tells of the verdict that is carried out. */
static void count_end(mull__delivery *d)
{
    mull_counts *counts = &d->consumer->engine->counts;
    uint64_t *count[] = {[MULL_SETTLE_ACK] = &counts->done,
                         [MULL_SETTLE_REDELIVER] = &counts->redelivered,
                         [MULL_SETTLE_DEAD_LETTER] = &counts->dead_lettered,
                         [MULL_SETTLE_DISCARD] = &counts->discarded,
                         [MULL_SETTLE_GIVE_BACK] = NULL};
    if (!count[d->settlement.kind] || d->delay_hop)
        return;
    (*count[d->settlement.kind])++;
    if (d->settlement.kind != MULL_SETTLE_ACK)
        mull__event_decided(d);
}

void mull__log_lost(const mull__delivery *d)
{
    mull__engine_log(d->consumer->engine, MULL_WARNING,
                     "%s: the claim on message %s is gone; it will be handed out again",
                     d->consumer->name, d->message.id);
}

void mull__settlement_answered(mull__delivery *d, int status)
{
    d->asked = 0;
    if (status != 0 && status != MULL_ELOST && !d->claim_gone) {
        mull__engine_touch(d->consumer->engine);
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

/* ---- In memory ------------------------------------------------------------------------------- */

void mull__delivery_release(mull__delivery *d)
{
    if (d->state < MULL__SETTLED || d->state == MULL__ABANDONED || d->call != 0)
        return;
    mull_engine *engine = d->consumer->engine;
    const mull_allocator *allocator = &engine->allocator;
    mull_port *port = d->consumer->port;
    mull__slot_free(d);
    mull__engine_cancel(engine, &d->timer);
    mull__list_remove(&engine->deliveries, &d->engine_link);
    d->handed->runtime = NULL; /* a transport that speaks of it once more is found out */
    port->ops->release(port->self, d->handed);
    mull__sends_drop(d);
    if (d->generation)
        mull__generation_drop(d->generation);
    mull__error_free(engine, d->error);
    mull__free(allocator, d->words);
    mull__free(allocator, d->headers);
    mull__free(allocator, d->visible);
    mull__free(allocator, d);
}
