/* settle.c: how a delivery ends at the broker: the settlement is written once, and handed over
 * until the transport takes it. */
#include "engine.h"

#include <string.h>

enum { AGAIN_FIRST_MS = 100, AGAIN_MAX_MS = 10000, TRIES_WHEN_STOPPING = 3 };

static const char *header(const mull__flow *flow, const char *name)
{
    for (size_t i = 0; i < flow->settlement.header_count; i++)
        if (strcmp(flow->settlement.headers[i].name, name) == 0)
            return flow->settlement.headers[i].value;
    return NULL;
}

/* changed says whether a message that is given back has anything to remember of this hand-out. */
static int changed(const mull__flow *flow)
{
    return flow->attempt > 0;
}

/* stamp_for: a redelivery or a dead letter is a new copy, so hand-outs that died with their owner
 * go into its calls; one that is given back keeps the broker's count of them. */
static mull__stamp stamp_for(const mull__flow *flow)
{
    mull_settle_kind kind = flow->settlement.kind;
    int given_back = kind == MULL_SETTLE_GIVE_BACK;
    mull__stamp stamp = {
        .redeliveries = flow->redeliveries + (kind == MULL_SETTLE_REDELIVER),
        .calls = flow->calls_before + flow->attempt + (given_back ? 0 : flow->crashes),
        .first_failure_ms = flow->first_failure_ms,
        .last_failure_ms = flow->failed_at_ms,
        .given_id = flow->delivery->message.id ? NULL : flow->message.id,
        .due_ms = kind == MULL_SETTLE_REDELIVER ? flow->due_ms : 0,
        .keep_aside = flow->aside,
        .queue = flow->consumer->queue,
    };
    if (kind == MULL_SETTLE_DEAD_LETTER) {
        stamp.error = flow->error;
        stamp.consumer = flow->consumer->name;
        stamp.verdict = &flow->verdict;
    }
    return stamp;
}

/* write_headers finishes the headers. Those of a message that goes are not looked at, those of one
 * that is given back untouched stay as they came, a returned dead letter's record too. */
static int write_headers(mull__flow *flow)
{
    mull_settlement *settlement = &flow->settlement;
    const mull_message *from = &flow->delivery->message;
    settlement->headers = from->headers;
    settlement->header_count = from->header_count;
    if (settlement->kind == MULL_SETTLE_ACK || settlement->kind == MULL_SETTLE_DISCARD ||
        (settlement->kind == MULL_SETTLE_GIVE_BACK && !changed(flow)) || flow->onward)
        return 0;
    mull__stamp stamp = stamp_for(flow);
    const mull_allocator *allocator = &flow->consumer->engine->allocator;
    mull__free(allocator, flow->headers);
    flow->headers = NULL;
    int status = mull__headers_write(&flow->headers, &settlement->header_count, allocator,
                                     from->headers, from->header_count, &stamp);
    settlement->headers = flow->headers;
    return status;
}

/* plan_due sets when a redelivery is due. What is longer than the transport's longest delay is made
 * of several: the end goes into a header, and the message comes by on its way there. */
static void plan_due(mull__flow *flow)
{
    const struct mull_subscription *consumer = flow->consumer;
    if (flow->settlement.kind != MULL_SETTLE_REDELIVER)
        return;
    int64_t now_ms = mull__engine_wall(consumer->engine);
    int64_t longest_ms = consumer->port->abilities.longest_delay_ms;
    int64_t end_ms = flow->onward ? flow->due_ms : now_ms + flow->verdict.delay_ms;
    int in_parts = longest_ms > 0 && end_ms - now_ms > longest_ms;
    flow->due_ms = in_parts || flow->onward ? end_ms : 0;
    flow->settlement.due_ms = in_parts ? now_ms + longest_ms : end_ms > now_ms ? end_ms : 0;
}

static void hand_over(mull__flow *flow);

static void on_again(void *data)
{
    hand_over(data);
}

static void later(mull__flow *flow)
{
    int64_t delay_ms = flow->consumer->engine->closing ? 0 : AGAIN_FIRST_MS;
    for (uint32_t i = 1; i < flow->tries && delay_ms < AGAIN_MAX_MS; i++)
        delay_ms *= 2;
    if (delay_ms > AGAIN_MAX_MS)
        delay_ms = AGAIN_MAX_MS;
    mull__timer_set(flow->consumer->engine, &flow->timer, delay_ms, on_again, flow);
}

static void answer_fault(void *data)
{
    mull__flow *flow = data;
    mull__flow_settled(flow, flow->lost ? MULL_ELOST : flow->fault_code);
}

/* hand_over gives the settlement to the transport. A claim that is lost is settled no more. */
static void hand_over(mull__flow *flow)
{
    mull_port *port = flow->consumer->port;
    if (flow->lost) {
        mull__flow_settled(flow, MULL_ELOST);
    } else if (write_headers(flow) != 0) {
        mull__settle_again(flow, MULL_ENOMEM);
    } else if (mull__fault_hit(port, MULL__SETTLE, &flow->fault_code)) {
        mull__timer_set(port->engine, &flow->timer, 0, answer_fault, flow);
    } else {
        mull_settlement *settlement = &flow->settlement;
        int dead = settlement->kind == MULL_SETTLE_DEAD_LETTER;
        settlement->error_type = dead ? header(flow, "mulligan-error-type") : NULL;
        settlement->reason = dead ? mull_reason_name(flow->verdict.reason) : NULL;
        settlement->rule = dead ? header(flow, "mulligan-rule") : NULL;
        port->ops->settle(port->self, flow->delivery, settlement);
    }
}

void mull__settle(mull__flow *flow, mull_settle_kind kind)
{
    if (!flow->cut)
        mull__slot_free(flow);
    flow->stage = MULL__SETTLING;
    flow->consumer->settling++;
    flow->settlement = (mull_settlement){
        .kind = kind,
        .queue = kind == MULL_SETTLE_DEAD_LETTER ? flow->verdict.queue : flow->consumer->queue,
        .id = flow->message.id,
        .sends = kind == MULL_SETTLE_ACK ? flow->sends : NULL,
        .send_count = kind == MULL_SETTLE_ACK ? flow->send_count : 0};
    plan_due(flow);
    hand_over(flow);
}

/* give_up leaves a message claimed that can't be settled while the engine stops: when its owner is
 * gone, the broker hands it out again. */
static void give_up(mull__flow *flow)
{
    mull__engine_log(flow->consumer->engine, MULL_ERROR_LEVEL,
                     "%s: message %s could not be settled before the end; it will be handed out "
                     "again",
                     flow->consumer->name, flow->message.id);
    mull__flow_abandon(flow);
}

void mull__settle_again(mull__flow *flow, int status)
{
    mull_engine *engine = flow->consumer->engine;
    mull_port *port = flow->consumer->port;
    if (port->health == MULL_BROKEN) {
        port->abandoned++;
        mull__flow_abandon(flow);
        return;
    }
    /* One line for all that fail meanwhile: the first says that it begins. */
    if (flow->tries++ == 0 && flow->consumer->failing++ == 0)
        mull__engine_log(engine, MULL_WARNING,
                         "%s: message %s isn't settled (%s); trying again, taking nothing new",
                         flow->consumer->name, flow->message.id, mull_strerror(status));
    int hopeless = flow->tries > TRIES_WHEN_STOPPING || port->health == MULL_DOWN;
    if (engine->grace_over && hopeless)
        give_up(flow);
    else
        later(flow);
}

void mull__settle_hurry(mull__flow *flow)
{
    if (flow->stage == MULL__SETTLING && flow->timer.set)
        mull__timer_set(flow->consumer->engine, &flow->timer, 0, flow->timer.fire, flow);
}
