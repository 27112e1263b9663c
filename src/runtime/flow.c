/* flow.c: a message's life, to be read from top to bottom.
 *
 *   arrive ── gate ── call ── ended ──┬── well: settle(ACK)
 *     │                 │             └── badly ┐
 *     │                 └── timeout: cut ───────┤
 *     └── died with its owner too often ──────── judge ──┬── RETRY: pause, then the gate again
 *                                                        └── settle ── settled ── release
 *
 * A call that was cut keeps its slot and its message until its handler ends it: only then may a
 * retry run, only then is the delivery released. */
#include "engine.h"

#include "base/hash.h"

#include <string.h>

static const mull_error timed_out = {.size = sizeof timed_out,
                                     .type = "HandlerTimeoutError",
                                     .message = "the handler ran longer than its timeout"};
static const mull_error crashed = {.size = sizeof crashed,
                                   .type = "HandlerCrashError",
                                   .message = "the process that handled it died"};
static const mull_error no_memory = {
    .size = sizeof no_memory, .type = "Error", .message = "not enough memory"};
static const mull_error too_big = {.size = sizeof too_big,
                                   .type = "MessageDeserializationError",
                                   .message = "the body is larger than the consumer's max_body"};

enum { AGAIN_MS = 100 }; /* after memory ran out */

static mull_engine *engine_of(const mull__flow *flow)
{
    return flow->consumer->engine;
}

/* ---- It arrives ------------------------------------------------------------------------------ */

/* hide_record gives a returned dead letter's headers without the record of its failure. */
static int hide_record(mull__flow *flow)
{
    const mull_message *from = &flow->delivery->message;
    flow->visible =
        mull__zalloc(&engine_of(flow)->allocator, from->header_count + 1, sizeof *flow->visible);
    if (!flow->visible)
        return MULL_ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < from->header_count; i++)
        if (!mull__is_own(from->headers[i].name))
            flow->visible[count++] = from->headers[i];
    flow->message.headers = flow->visible;
    flow->message.header_count = count;
    return 0;
}

static void tell_ignored(mull__flow *flow, const char *header);

static int read_record(mull__flow *flow)
{
    mull_engine *engine = engine_of(flow);
    const mull_message *from = &flow->delivery->message;
    int64_t now_ms = mull__engine_wall(engine);
    mull__record record;
    mull__record_read(&record, from->headers, from->header_count, flow->consumer->queue, now_ms);
    if (record.returned && hide_record(flow) != 0)
        return MULL_ENOMEM;
    if (!from->id && record.given_id) {
        flow->message.id = record.given_id;
    } else if (!from->id) {
        mull__engine_id(engine, flow->given_id);
        flow->message.id = flow->given_id;
    }
    flow->chance = mull__hash_text(flow->message.id);
    flow->aside = record.aside;
    flow->redeliveries = record.redeliveries;
    flow->calls_before = record.calls;
    int counted = flow->consumer->port->abilities.counts_deliveries && from->deliveries > 1;
    flow->crashes = counted ? from->deliveries - 1 : 0;
    flow->first_failure_ms = record.first_failure_ms;
    flow->due_ms = record.due_ms;
    flow->onward = record.due_ms > now_ms;
    if (flow->crashes > 0 && flow->first_failure_ms == 0)
        flow->first_failure_ms = now_ms;
    for (size_t i = 0; i < 3 && record.ignored[i]; i++)
        tell_ignored(flow, record.ignored[i]);
    return 0;
}

static mull__flow *flow_new(mull_port *port, mull_delivery *delivery)
{
    mull_engine *engine = port->engine;
    mull__flow *flow = mull__zalloc(&engine->allocator, 1, sizeof *flow);
    if (!flow || mull__timer_reserve(engine) != 0) {
        mull__free(&engine->allocator, flow);
        return NULL;
    }
    flow->consumer = delivery->subscription;
    flow->delivery = delivery;
    flow->message = delivery->message;
    flow->message.size = sizeof flow->message;
    flow->message.queue = flow->consumer->queue;
    mull__list_init(&flow->met);
    if (read_record(flow) != 0) {
        mull__timer_unreserve(engine);
        mull__free(&engine->allocator, flow);
        return NULL;
    }
    delivery->runtime = flow;
    mull__list_push(&port->flows, &flow->port_link);
    return flow;
}

static void fail(mull__flow *flow, const mull_error *error, mull_error *memory);
static void judge(mull__flow *flow, const mull_error *error, mull_error *memory);
static void refuse_body(mull__flow *flow);
static int died_too_often(mull__flow *flow);

/* mull__flow_arrive takes a delivery in. MULL_ENOMEM: it doesn't know of it. */
int mull__flow_arrive(mull_port *port, mull_delivery *delivery)
{
    mull__flow *flow = flow_new(port, delivery);
    if (!flow)
        return MULL_ENOMEM;
    struct mull_subscription *consumer = flow->consumer;
    port->engine->arrivals++;
    mull__engine_touch(port->engine);
    if (port->engine->state != MULL__RUNNING) {
        mull__settle(flow, MULL_SETTLE_GIVE_BACK);
    } else if (flow->onward) {
        mull__settle(flow, MULL_SETTLE_REDELIVER);
    } else if (flow->message.body_size > consumer->options.max_body) {
        refuse_body(flow);
    } else if (died_too_often(flow)) {
        judge(flow, &crashed, NULL);
    } else {
        flow->alone = flow->crashes > 0;
        mull__list_push(flow->alone ? &consumer->suspects : &consumer->waiting, &flow->link);
    }
    return 0;
}

/* in_force gives the settings for a flow's consumer, of the generation that is in force. The
 * decider is at it then, so that a verdict which follows at once comes from the same one. */
static void in_force(const mull__flow *flow, mull__in_force *settings)
{
    mull__generation *generation = mull__decider_latest(engine_of(flow)->decider);
    mull__table_in_force(mull__generation_table(generation), flow->consumer->name,
                         flow->consumer->port->name, settings);
}

/* died_too_often says whether its next call is one too many: the broker handed it out more often
 * than max_deliveries, or the calls that died with their owners used up max_attempts. */
static int died_too_often(mull__flow *flow)
{
    if (flow->crashes == 0)
        return 0;
    mull__in_force settings;
    in_force(flow, &settings);
    int64_t limit = settings.max_deliveries;
    return (limit != MULL__OFF && flow->message.deliveries > limit) ||
           (settings.max_attempts != MULL__OFF &&
            flow->calls_before + flow->crashes >= settings.max_attempts);
}

/* ---- Its handler works ----------------------------------------------------------------------- */

static void on_timeout(void *data);
static void call_again(void *data);

void mull__flow_call(mull__flow *flow)
{
    mull_engine *engine = engine_of(flow);
    struct mull_subscription *consumer = flow->consumer;
    flow->call = mull__call_new(engine, flow);
    if (flow->call == 0) {
        mull__timer_set(engine, &flow->timer, AGAIN_MS, call_again, flow);
        return;
    }
    if (!flow->slot) {
        flow->slot = 1;
        consumer->slots++;
    }
    flow->stage = MULL__WORKING;
    engine->open_calls++;
    engine->alone = flow->alone;
    flow->message.attempt = flow->attempt + 1;
    flow->message.redeliveries = flow->redeliveries;
    flow->message.calls = flow->calls_before + flow->crashes + flow->attempt;
    if (consumer->options.timeout_ms != MULL_NEVER)
        mull__timer_set(engine, &flow->timer, consumer->options.timeout_ms, on_timeout, flow);
    consumer->options.handler(engine, flow->call, &flow->message, consumer->options.data);
}

/* call_again puts a flow for which no call could be made back to where the gate finds it. */
static void call_again(void *data)
{
    mull__flow *flow = data;
    struct mull_subscription *consumer = flow->consumer;
    mull__list *list = flow->slot    ? &consumer->retries
                       : flow->alone ? &consumer->suspects
                                     : &consumer->waiting;
    mull__list_push_front(list, &flow->link);
    mull__engine_touch(engine_of(flow));
}

/* no_longer_works undoes what mull__flow_call did to the engine. */
static void no_longer_works(mull__flow *flow)
{
    mull_engine *engine = engine_of(flow);
    engine->open_calls--;
    if (flow->outlasts)
        engine->outlasting--;
    flow->outlasts = 0;
    if (flow->alone)
        engine->alone = 0;
    flow->alone = 0;
    mull__timer_cancel(engine, &flow->timer);
}

static void pause_for_retry(mull__flow *flow);
static void release_if_through(mull__flow *flow);

void mull__flow_ended(mull__flow *flow)
{
    mull_error *error = flow->ended;
    int ended_short = flow->ended_short;
    flow->ended = NULL;
    flow->ended_short = 0;
    flow->call = 0;
    if (flow->cut) {
        flow->cut = 0;
        if (flow->stage == MULL__PAUSING)
            pause_for_retry(flow);
        else
            mull__slot_free(flow);
        release_if_through(flow);
        return;
    }
    no_longer_works(flow);
    if (flow->lost) {
        mull__free(&engine_of(flow)->allocator, error);
        flow->stage = MULL__SETTLED;
        release_if_through(flow);
    } else if (error || ended_short) {
        mull__sends_drop(flow);
        fail(flow, error ? error : &no_memory, error);
    } else {
        flow->decided = 0;
        mull__settle(flow, MULL_SETTLE_ACK);
    }
}

/* cut_off ends a call whose handler goes on: what it sends and says no longer counts. 0: it was
 * ended already, and the inbox has its end. */
static int cut_off(mull__flow *flow)
{
    if (!mull__call_cut(engine_of(flow), flow->call))
        return 0;
    flow->cut = 1;
    no_longer_works(flow);
    mull__sends_drop(flow);
    return 1;
}

/* tell_handler comes last of what a cut does: the handler may end its call at once. */
static void tell_handler(const mull__flow *flow)
{
    const mull_consumer_options *options = &flow->consumer->options;
    if (options->cancel)
        options->cancel(engine_of(flow), flow->call, options->data);
}

static void on_timeout(void *data)
{
    mull__flow *flow = data;
    mull__engine_touch(engine_of(flow));
    if (!cut_off(flow))
        return;
    fail(flow, &timed_out, NULL);
    tell_handler(flow);
}

/* ---- It failed: judge ------------------------------------------------------------------------ */

static void failure_of(const mull__flow *flow, mull_failure *failure)
{
    const mull_port *port = flow->consumer->port;
    *failure = (mull_failure){.size = sizeof *failure,
                              .error = flow->error,
                              .message = &flow->message,
                              .consumer = flow->consumer->name,
                              .transport = port->name,
                              .attempt = flow->attempt,
                              .redeliveries = flow->redeliveries,
                              .calls = flow->calls_before + flow->crashes + flow->attempt,
                              .deliveries = flow->message.deliveries,
                              .age_ms = flow->age_ms,
                              .chance = flow->chance,
                              .flags = MULL_HAS_CHANCE};
    if (!port->abilities.can_retry)
        failure->flags |= MULL_CANNOT_RETRY;
    if (!port->abilities.can_delay)
        failure->flags |= MULL_CANNOT_DELAY;
}

/* tell_with tells what has become of a flow, by one of tell.c's functions. */
static void tell_with(mull__flow *flow, void (*to)(mull__flow *flow, const mull_event *event))
{
    mull_failure failure;
    failure_of(flow, &failure);
    to(flow, &(mull_event){.kind = MULL_EVENT_DECIDED,
                           .failure = &failure,
                           .verdict = &flow->verdict,
                           .rule = flow->verdict.rule.file ? &flow->verdict.rule : NULL,
                           .generation = flow->verdict.generation});
}

/* tell_ignored tells of a header; before the first failure there is no error to show. */
static void tell_ignored(mull__flow *flow, const char *header)
{
    mull_failure failure;
    failure_of(flow, &failure);
    mull__decider_latest(engine_of(flow)->decider);
    mull__tell_begin(flow);
    mull__tell(flow, &(mull_event){
                         .kind = MULL_EVENT_HEADER_IGNORED, .failure = &failure, .text = header});
}

static void keep_error(mull__flow *flow, const mull_error *error, mull_error *memory)
{
    mull__free(&engine_of(flow)->allocator, flow->error_memory);
    flow->error = error;
    flow->error_memory = memory;
}

/* keep_generation: the verdict's strings live in it, and the decider will move on. */
static void keep_generation(mull__flow *flow)
{
    mull__generation *now = mull__decider_generation(engine_of(flow)->decider);
    mull__generation *before = flow->generation;
    flow->generation = mull__generation_keep(now);
    if (before)
        mull__generation_drop(before);
}

/* keep_words copies what an override answered, which the state's next call takes away. Where there
 * is no memory for a queue's name, its message isn't lost: a person finds it in the default one. */
static void keep_words(mull__flow *flow)
{
    mull_verdict *verdict = &flow->verdict;
    const char **word = verdict->queue ? &verdict->queue : &verdict->note;
    mull_engine *engine = engine_of(flow);
    mull__free(&engine->allocator, flow->words);
    flow->words = NULL;
    if (verdict->reason != MULL_REASON_OVERRIDE || !*word)
        return;
    flow->words = mull__strdup(&engine->allocator, *word);
    if (!flow->words) {
        mull__engine_log(engine, MULL_ERROR_LEVEL,
                         "%s: message %s: not enough memory for what override answered: %s",
                         flow->consumer->name, flow->message.id, *word);
        mull__in_force settings;
        mull__table_in_force(mull__generation_table(flow->generation), flow->consumer->name,
                             flow->consumer->port->name, &settings);
        *word = verdict->queue ? settings.dead_letter_queue : NULL;
        return;
    }
    *word = flow->words;
}

static void date(mull__flow *flow)
{
    int64_t now_ms = mull__engine_wall(engine_of(flow));
    flow->failed_at_ms = now_ms;
    if (flow->first_failure_ms == 0)
        flow->first_failure_ms = now_ms;
    flow->age_ms = now_ms > flow->first_failure_ms ? now_ms - flow->first_failure_ms : 0;
}

static void carry_out(mull__flow *flow);

/* fail judges a failure by the generation that is in force. */
static void fail(mull__flow *flow, const mull_error *error, mull_error *memory)
{
    mull__decider_latest(engine_of(flow)->decider);
    judge(flow, error, memory);
}

/* judge judges a failure by the generation that the decider is at. `memory` is the error's block,
 * which the flow takes; NULL: it is static. A hand-out that died with its owner is in `crashes`
 * already: attempt is 1 all the same, as every failure's is, so the facts count one call too few
 * for it. */
static void judge(mull__flow *flow, const mull_error *error, mull_error *memory)
{
    keep_error(flow, error, memory);
    if (error == &crashed)
        flow->crashes--;
    flow->attempt++;
    date(flow);
    mull_failure failure;
    failure_of(flow, &failure);
    flow->verdict = (mull_verdict){.size = sizeof flow->verdict};
    mull__tell_begin(flow);
    engine_of(flow)->judged = flow;
    int status = mull__decide_on(engine_of(flow)->decider, &failure, &flow->verdict);
    engine_of(flow)->judged = NULL;
    if (status != 0) {
        /* Not to be reached: all facts were checked. Should it be, a person decides. */
        mull__engine_log(engine_of(flow), MULL_ERROR_LEVEL, "%s: message %s can't be judged: %s",
                         flow->consumer->name, flow->message.id, mull_strerror(status));
        flow->verdict.action = MULL_DEAD_LETTER;
        flow->verdict.reason = MULL_REASON_NO_RULE;
        flow->verdict.queue = "error";
    }
    keep_generation(flow);
    keep_words(flow);
    flow->decided = 1;
    carry_out(flow);
}

/* refuse_body puts a message aside that is too large for its consumer, before any rule. */
static void refuse_body(mull__flow *flow)
{
    flow->error = &too_big;
    flow->attempt = 1; /* it counts as a call, as any failure does */
    date(flow);
    mull__in_force settings;
    in_force(flow, &settings);
    keep_generation(flow);
    mull__tell_begin(flow);
    flow->verdict = (mull_verdict){.size = sizeof flow->verdict,
                                   .action = MULL_DEAD_LETTER,
                                   .reason = MULL_REASON_UNRECOVERABLE,
                                   .queue = settings.dead_letter_queue,
                                   .generation = mull__generation_name(flow->generation)};
    flow->decided = 1;
    carry_out(flow);
}

/* ---- The verdict is carried out -------------------------------------------------------------- */

static void retry(mull__flow *flow);

static void carry_out(mull__flow *flow)
{
    static const mull_settle_kind kinds[] = {[MULL_REDELIVER] = MULL_SETTLE_REDELIVER,
                                             [MULL_DEAD_LETTER] = MULL_SETTLE_DEAD_LETTER,
                                             [MULL_DISCARD] = MULL_SETTLE_DISCARD};
    if (flow->verdict.action == MULL_RETRY)
        retry(flow);
    else
        mull__settle(flow, kinds[flow->verdict.action]);
}

static void retry(mull__flow *flow)
{
    mull_engine *engine = engine_of(flow);
    if (engine->state != MULL__RUNNING) {
        mull__engine_log(
            engine, MULL_INFO,
            "%s: message %s failed while stopping (%s); it goes back, its calls counted",
            flow->consumer->name, flow->message.id, flow->error->type);
        mull__settle(flow, MULL_SETTLE_GIVE_BACK);
        return;
    }
    engine->counts.retried++;
    tell_with(flow, mull__tell);
    flow->stage = MULL__PAUSING;
    if (!flow->cut)
        pause_for_retry(flow);
}

/* on_retry: one that was judged before any call, for what its dead owners did, has no slot yet. */
static void on_retry(void *data)
{
    mull__flow *flow = data;
    struct mull_subscription *consumer = flow->consumer;
    if (!flow->slot) {
        flow->stage = MULL__WAITING;
        flow->alone = 1;
    }
    mull__list_push(flow->slot ? &consumer->retries : &consumer->suspects, &flow->link);
    mull__engine_touch(engine_of(flow));
}

static void pause_for_retry(mull__flow *flow)
{
    mull__timer_set(engine_of(flow), &flow->timer, flow->verdict.delay_ms, on_retry, flow);
}

/* count_end counts how a message ended, once that is safe. */
static void count_end(mull__flow *flow)
{
    mull_counts *counts = &engine_of(flow)->counts;
    uint64_t *count[] = {[MULL_SETTLE_ACK] = &counts->done,
                         [MULL_SETTLE_REDELIVER] = &counts->redelivered,
                         [MULL_SETTLE_DEAD_LETTER] = &counts->dead_lettered,
                         [MULL_SETTLE_DISCARD] = &counts->discarded,
                         [MULL_SETTLE_GIVE_BACK] = NULL};
    if (count[flow->settlement.kind] && !flow->onward)
        (*count[flow->settlement.kind])++;
}

void mull__flow_settled(mull__flow *flow, int status)
{
    struct mull_subscription *consumer = flow->consumer;
    mull__engine_touch(engine_of(flow));
    if (status != 0 && status != MULL_ELOST) {
        mull__settle_again(flow, status);
        return;
    }
    consumer->settling--;
    if (flow->tries > 0)
        consumer->failing--;
    flow->stage = MULL__SETTLED;
    if (status == MULL_ELOST) {
        mull__engine_log(engine_of(flow), MULL_WARNING,
                         "%s: the claim on message %s is gone; it will be handed out again",
                         consumer->name, flow->message.id);
    } else {
        count_end(flow);
        if (flow->decided && flow->settlement.kind != MULL_SETTLE_GIVE_BACK)
            tell_with(flow, mull__tell);
    }
    tell_with(flow, mull__tell_end);
    release_if_through(flow);
}

/* ---- It ends otherwise ----------------------------------------------------------------------- */

/* unlist takes a flow that waits, for the gate or a timer, out of where it waits. */
static void unlist(mull__flow *flow)
{
    struct mull_subscription *consumer = flow->consumer;
    if (mull__listed(&flow->link)) {
        mull__list *list = flow->stage == MULL__PAUSING ? &consumer->retries
                           : flow->alone                ? &consumer->suspects
                                                        : &consumer->waiting;
        mull__list_remove(list, &flow->link);
    }
    mull__timer_cancel(engine_of(flow), &flow->timer);
}

/* mull__flow_lost: the broker took the message back. Its handler, if it works, is cut off. */
void mull__flow_lost(mull__flow *flow)
{
    mull__engine_touch(engine_of(flow));
    flow->lost = 1;
    mull__settle_hurry(flow); /* its consumer takes nothing new while a next try is waited for */
    if (flow->stage == MULL__SETTLING || flow->stage == MULL__SETTLED)
        return; /* settle answers MULL_ELOST, or did */
    mull__engine_log(engine_of(flow), MULL_WARNING,
                     "%s: the claim on message %s is gone; it will be handed out again",
                     flow->consumer->name, flow->message.id);
    int works = flow->stage == MULL__WORKING;
    if (works && !cut_off(flow))
        return; /* it just ended, and the inbox has its end */
    unlist(flow);
    flow->stage = MULL__SETTLED;
    if (!flow->cut)
        mull__slot_free(flow);
    else if (works)
        tell_handler(flow);
    release_if_through(flow);
}

/* mull__flow_abandon: its settle failed again and again while the engine stops, or its transport is
 * broken. It stays claimed, so that the broker hands it out again when we are gone, and isn't
 * released before that. */
void mull__flow_abandon(mull__flow *flow)
{
    flow->consumer->settling--;
    if (flow->tries > 0)
        flow->consumer->failing--;
    flow->abandoned = 1;
    flow->stage = MULL__SETTLED;
    tell_with(flow, mull__tell_end);
    mull__engine_touch(engine_of(flow));
}

void mull__flow_release_abandoned(mull__flow *flow)
{
    flow->abandoned = 0;
    release_if_through(flow);
}

/* mull__flow_give_back: the engine stops, and this one's handler isn't at work. */
void mull__flow_give_back(mull__flow *flow)
{
    if (flow->stage != MULL__WAITING && flow->stage != MULL__PAUSING)
        return;
    unlist(flow);
    mull__settle(flow, MULL_SETTLE_GIVE_BACK);
}

/* mull__flow_cut: the grace is over. A handler that ends because we stop has not failed. */
void mull__flow_cut(mull__flow *flow)
{
    if (flow->stage != MULL__WORKING || !cut_off(flow))
        return;
    mull__settle(flow, MULL_SETTLE_GIVE_BACK);
    tell_handler(flow);
}

/* release_if_through frees a flow once broker and handler are both through with it. */
static void release_if_through(mull__flow *flow)
{
    if (flow->stage != MULL__SETTLED || flow->call != 0 || flow->abandoned)
        return;
    mull_engine *engine = engine_of(flow);
    const mull_allocator *allocator = &engine->allocator;
    mull_port *port = flow->consumer->port;
    mull__slot_free(flow);
    mull__timer_cancel(engine, &flow->timer);
    mull__timer_unreserve(engine);
    mull__list_remove(&port->flows, &flow->port_link);
    flow->delivery->runtime = NULL; /* a transport that speaks of it once more is found out */
    port->ops->release(port->self, flow->delivery);
    mull__sends_drop(flow);
    if (flow->generation)
        mull__generation_drop(flow->generation);
    mull__free(allocator, flow->words);
    mull__free(allocator, flow->error_memory);
    mull__free(allocator, flow->headers);
    mull__free(allocator, flow->visible);
    mull__free(allocator, flow);
}
