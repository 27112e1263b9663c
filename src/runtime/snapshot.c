/* snapshot.c: mull_engine_snapshot: an engine at one moment, in one block.
 *
 *   block ── header, snapshot ── structs ── lists of pointers to them ── reasons ── texts
 * (base/block.h) */
#include "admission.h"
#include "base/block.h"
#include "engine_state.h"
#include "limit_events.h"
#include "limiting.h"
#include "timers.h"

#include <stdlib.h>
#include <string.h>

typedef struct header {
    mull_allocator allocator; /* outlives the engine */
    mull_snapshot snapshot;
} header;

typedef struct block {
    mull__block block;
    mull_engine *engine;
    int64_t wall_ms, now_ms;
} block;

static void *take(block *b, size_t bytes)
{
    return mull__block_take(&b->block, bytes);
}

/* take_text copies a text; NULL and "" become NULL. */
static const char *take_text(block *b, const char *text)
{
    return mull__block_text(&b->block, text && text[0] ? text : NULL);
}

/* wall_of gives a moment of the monotonic clock on the wall's. */
static int64_t wall_of(const block *b, int64_t then_ms)
{
    return b->wall_ms - (b->now_ms - then_ms);
}

/* ---- What is here ---------------------------------------------------------------------------- */

static void count_here(mull_engine *engine)
{
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        memset(c->here, 0, sizeof c->here);
    for (mull__delivery *d = NULL; (d = mull__next_delivery(engine, d));)
        d->consumer->here[d->state]++;
}

/* claimed_of counts what a transport handed out and will settle, deferred deliveries too. */
static uint64_t claimed_of(const mull_port *port)
{
    uint64_t count = 0;
    for (const mull_delivery *d = port->deferred; d; d = d->runtime)
        count++;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(port->engine, c));)
        for (int state = 0; c->port == port && state < MULL__SETTLED; state++)
            count += c->here[state];
    return count;
}

/* ---- Its parts ------------------------------------------------------------------------------- */

static const mull_transport_snapshot *take_transport(block *b, const mull_port *port)
{
    mull_transport_snapshot *made = take(b, sizeof *made);
    const mull_transport_snapshot of = {.size = sizeof of,
                                        .name = take_text(b, port->name),
                                        .health = port->health,
                                        .why = take_text(b, port->why),
                                        .since_ms = wall_of(b, port->since_ms),
                                        .claimed = claimed_of(port),
                                        .parked = port->parked,
                                        .abandoned = port->abandoned};
    if (made)
        *made = of;
    return made;
}

/* text_of gives what a transport said of why a consumer isn't called. */
static const char *text_of(const mull__consumer *c, mull_why_not why)
{
    return why == MULL_WHY_TRANSPORT_DOWN                                   ? c->port->why
           : why == MULL_WHY_QUEUE_REFUSED || why == MULL_WHY_QUEUE_WAITING ? c->why
           : why == MULL_WHY_SETTLING_FAILS                                 ? c->tally.settling_why
                                                                            : NULL;
}

/* set_counts sets what a consumer has counted, all but texts. */
static void set_counts(mull_consumer_snapshot *of, const mull__consumer *c)
{
    const mull__tally *tally = &c->tally;
    of->in_flight = c->calls;
    of->waiting = c->here[MULL__WAITING];
    of->retrying = c->here[MULL__PAUSING];
    of->settling = c->here[MULL__SETTLING];
    of->taken = tally->taken;
    of->done = tally->done;
    of->retried = tally->verdicts[MULL_RETRY];
    of->redelivered = tally->verdicts[MULL_REDELIVER];
    of->dead_lettered = tally->verdicts[MULL_DEAD_LETTER];
    of->discarded = tally->verdicts[MULL_DISCARD];
    of->error_ms = tally->error_ms;
    memcpy(of->times, tally->times, sizeof of->times);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

enum { LIMITS_MAX = 100 };

static const mull_limit_status *take_limit(block *b, const mull__consumer *c,
                                           const mull__rate_limit *limit,
                                           const mull__limit_state *state)
{
    char per[MULL__PER_SIZE];
    mull_limit_status *made = take(b, sizeof *made);
    mull_limit_status of = mull__limit_status_of(c, limit, state, per);
    of.per = take_text(b, of.per);
    of.value = mull__block_text(&b->block, of.value);
    of.file = take_text(b, of.file);
    of.error_type = take_text(b, of.error_type);
    if (made)
        *made = of;
    return made;
}

/* take_limits_of writes those of one statement behind the `count` that are there. */
static size_t take_limits_of(block *b, const mull_limit_status **list, size_t count,
                             const mull__consumer *c, const mull__limit *limit)
{
    if (limit->whole && limit->whole->rate.limited && count < LIMITS_MAX) {
        const mull_limit_status *of = take_limit(b, c, limit->rate, limit->whole);
        if (list)
            list[count] = of;
        count++;
    }
    mull__list *values = (mull__list *)(uintptr_t)&limit->values.limited;
    for (mull__link *link = mull__list_first(values); link && count < LIMITS_MAX;
         link = mull__list_after(values, link), count++) {
        const mull_limit_status *of =
            take_limit(b, c, limit->rate, MULL__ENTRY(link, mull__limit_state, link));
        if (list)
            list[count] = of;
    }
    return count;
}

static void take_limits(block *b, mull_consumer_snapshot *into, const mull__consumer *c)
{
    uint64_t values = 0;
    size_t count = 0, most = 0;
    for (size_t i = 0; c->limits && i < c->limits->count; i++) {
        const mull__limit *limit = c->limits->items[i];
        values += limit->values.limited.count;
        most += limit->values.limited.count + (limit->whole && limit->whole->rate.limited);
    }
    most = most < LIMITS_MAX ? most : LIMITS_MAX;
    const mull_limit_status **list = take(b, most * sizeof *list);
    for (size_t i = 0; c->limits && i < c->limits->count; i++)
        count = take_limits_of(b, list, count, c, c->limits->items[i]);
    into->limits = list;
    into->limit_count = count;
    into->limited_values = values;
}

static const mull_consumer_snapshot *take_consumer(block *b, const mull__consumer *c)
{
    const mull__tally *tally = &c->tally;
    mull_why_not why = mull__why_not(c);
    int64_t since_ms = why == tally->why ? tally->why_since_ms : b->now_ms;
    mull_consumer_snapshot *made = take(b, sizeof *made);
    uint64_t *reasons = take(b, sizeof tally->reasons);
    mull_consumer_snapshot of = {
        .size = sizeof of,
        .name = take_text(b, c->name),
        .transport = take_text(b, c->port->name),
        .queue = take_text(b, c->queue),
        .concurrency = c->options.concurrency,
        .paused = c->paused != 0,
        .why_not = why,
        .why_not_text = take_text(b, text_of(c, why)),
        .why_not_since_ms = wall_of(b, since_ms),
        .reasons = reasons,
        .reason_count = MULL_REASON_LAST,
        .error_type = take_text(b, tally->error_type),
        .error_text = tally->error_ms ? take_text(b, tally->error_text) : NULL,
    };
    set_counts(&of, c);
    take_limits(b, &of, c);
    if (made) {
        *made = of;
        memcpy(reasons, tally->reasons, sizeof tally->reasons);
    }
    return made;
}

static const mull_rule_snapshot *take_rule(block *b, const mull__rule_tally *tally)
{
    mull_rule_snapshot *made = take(b, sizeof *made);
    const mull_rule_snapshot of = {.size = sizeof of,
                                   .file = take_text(b, tally->file),
                                   .line = tally->line,
                                   .retried = tally->verdicts[MULL_RETRY],
                                   .redelivered = tally->verdicts[MULL_REDELIVER],
                                   .dead_lettered = tally->verdicts[MULL_DEAD_LETTER],
                                   .discarded = tally->verdicts[MULL_DISCARD]};
    if (made)
        *made = of;
    return made;
}

/* ---- Its lists ------------------------------------------------------------------------------- */

static void take_transports(block *b, mull_snapshot *into)
{
    const mull_transport_snapshot **list = take(b, b->engine->ports.count * sizeof *list);
    size_t count = 0;
    for (mull_port *port = NULL; (port = mull__next_port(b->engine, port)); count++) {
        const mull_transport_snapshot *of = take_transport(b, port);
        if (list)
            list[count] = of;
    }
    into->transports = list;
    into->transport_count = count;
}

static void take_consumers(block *b, mull_snapshot *into)
{
    const mull_consumer_snapshot **list = take(b, b->engine->consumers.count * sizeof *list);
    size_t count = 0;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(b->engine, c));) {
        if (c->is_reader)
            continue;
        const mull_consumer_snapshot *of = take_consumer(b, c);
        if (list)
            list[count] = of;
        count++;
    }
    into->consumers = list;
    into->consumer_count = count;
}

static int compare_rules(const void *a, const void *b)
{
    const mull_rule_snapshot *one = *(const mull_rule_snapshot *const *)a;
    const mull_rule_snapshot *other = *(const mull_rule_snapshot *const *)b;
    int files = strcmp(one->file, other->file);
    return files ? files : (one->line > other->line) - (one->line < other->line);
}

static void take_rules(block *b, mull_snapshot *into)
{
    mull__rule_tallies *rules = &b->engine->rules;
    const mull_rule_snapshot **list = take(b, rules->count * sizeof *list);
    size_t count = 0;
    for (size_t i = 0; i < sizeof rules->buckets / sizeof *rules->buckets; i++)
        for (const mull__rule_tally *tally = rules->buckets[i]; tally; tally = tally->next) {
            const mull_rule_snapshot *of = take_rule(b, tally);
            if (list)
                list[count] = of;
            count++;
        }
    if (list)
        qsort(list, count, sizeof *list, compare_rules);
    into->rules = list;
    into->rule_count = count;
}

static mull_snapshot *take_all(block *b)
{
    header *made = take(b, sizeof *made);
    header head = {.allocator = b->engine->allocator,
                   .snapshot = {.size = sizeof head.snapshot, .time_ms = b->wall_ms}};
    mull_policy_generation(b->engine->options.policy, head.snapshot.generation);
    take_transports(b, &head.snapshot);
    take_consumers(b, &head.snapshot);
    take_rules(b, &head.snapshot);
    if (!made)
        return NULL;
    *made = head;
    return &made->snapshot;
}

int mull_engine_snapshot(mull_engine *engine, mull_snapshot **snapshot)
{
    if (!snapshot)
        return MULL_EINVAL;
    *snapshot = NULL;
    if (!engine)
        return MULL_EINVAL;
    const block empty = {
        .engine = engine, .wall_ms = mull__engine_wall(engine), .now_ms = mull__engine_now(engine)};
    block b = empty;
    count_here(engine);
    take_all(&b);
    size_t bytes = b.block.used;
    b = empty;
    b.block.memory = mull__alloc(&engine->allocator, bytes);
    if (!b.block.memory)
        return MULL_ENOMEM;
    *snapshot = take_all(&b);
    MULL__ASSERT(b.block.used == bytes);
    return 0;
}

void mull_snapshot_free(mull_snapshot *snapshot)
{
    if (!snapshot)
        return;
    header *made = MULL__ENTRY(snapshot, header, snapshot);
    mull_allocator allocator = made->allocator;
    mull__free(&allocator, made);
}
