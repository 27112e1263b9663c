/* bounds_paths.c: the range of walks of which any of several chains may decide each failure; and
 * what these chains allow together, see bounds_paths.h. */
#include "bounds_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { WAITS = 64 }; /* spans of the waits after one attempt, at most */

/* ---- Courses --------------------------------------------------------------------------------- */

/* order is of numbers that are whole up to 2^53. */
static int order(double a, double b)
{
    return (a > b) - (a < b);
}

/* order_of_tiers is 0 where they are alike: which field the hint is makes no difference. */
static int order_of_tiers(const mull__tier_config *a, const mull__tier_config *b)
{
    int by = order((double)a->attempts, (double)b->attempts);
    if (by || a->attempts == 0)
        return by;
    const int orders[] = {
        order((double)a->base_ms, (double)b->base_ms),
        order((double)a->max_delay_ms, (double)b->max_delay_ms),
        order(a->backoff, b->backoff),
        order(a->factor, b->factor),
        order(a->jitter_kind, b->jitter_kind),
        order(a->jitter, b->jitter),
        order(a->hint != NULL, b->hint != NULL),
        order((double)a->delay_count, (double)b->delay_count),
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (orders[i])
            return orders[i];
    return a->delays ? memcmp(a->delays, b->delays, a->delay_count * sizeof *a->delays) : 0;
}

/* by_retries orders by their number first. */
static int by_retries(const void *a, const void *b)
{
    const mull__chain *one = a, *other = b;
    int by = order_of_tiers(one->retry, other->retry);
    return by ? by : order_of_tiers(one->redeliver, other->redeliver);
}

int mull__same_chain(const mull__chain *a, const mull__chain *b)
{
    return by_retries(a, b) == 0;
}

/* keep_distinct copies the chains, by their retries, those that are alike once. */
static void keep_distinct(mull__paths *p)
{
    size_t count = p->chain_set->count;
    memcpy(p->chains, p->chain_set->chains, count * sizeof *p->chains);
    qsort(p->chains, count, sizeof *p->chains, by_retries);
    for (size_t i = 0; i < count; i++) {
        int64_t allowed = p->chains[i].redeliver->attempts;
        if (p->count > 0 && mull__same_chain(&p->chains[p->count - 1], &p->chains[i]))
            continue;
        p->unlimited |= allowed == MULL_UNLIMITED;
        p->rounds = mull__greater(p->rounds, allowed);
        p->chains[p->count++] = p->chains[i];
    }
}

/* ---- Attempts -------------------------------------------------------------------------------- */

/* wait_of gives a step's wait, with the call behind it where there is no deadline. */
static mull__ms_range wait_of(const mull__paths *p, const mull__tier_config *tier, int64_t step)
{
    mull__ms_range wait = mull__tier_ms_range(tier, step);
    return p->deadline_ms == MULL__FOREVER ? mull__with_call(p->chain_set, wait) : wait;
}

/* look_at_attempt says what may follow a failure at this attempt. */
static void look_at_attempt(mull__paths *p, int64_t number)
{
    mull__attempt *attempt = &p->attempts[number];
    attempt->end_round = MULL__FOREVER;
    for (size_t i = 0; i < p->count; i++) {
        const mull__chain *chain = &p->chains[i];
        int64_t allowed = chain->redeliver->attempts;
        if (number <= chain->retry->attempts) {
            mull__interval_set_add(&attempt->retry, wait_of(p, chain->retry, number));
            continue;
        }
        attempt->level++;
        if (allowed != MULL_UNLIMITED && allowed < attempt->end_round)
            attempt->end_round = allowed;
    }
    if (number < p->calls)
        attempt[1].since_ms = mull__later(attempt->since_ms, attempt->retry.at[0].low_ms);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int take_memory(mull__paths *p, size_t room)
{
    const mull_allocator *a = p->allocator;
    size_t attempts = (size_t)p->calls + 1, levels = p->count + 1;
    p->attempts = mull__zalloc(a, attempts, sizeof *p->attempts);
    p->redeliver = mull__zalloc(a, levels, sizeof *p->redeliver);
    p->spans = mull__zalloc(a, attempts + levels, room * sizeof *p->spans);
    if (!p->attempts || !p->redeliver || !p->spans)
        return MULL_ENOMEM;
    mull__ms_range *spans = p->spans;
    for (size_t i = 0; i < attempts; i++, spans += room)
        p->attempts[i].retry = (mull__interval_set){.at = spans, .room = room};
    for (size_t i = 0; i < levels; i++, spans += room)
        p->redeliver[i] = (mull__interval_set){.at = spans, .room = room};
    return MULL_OK;
}

/* cost_of_all is what is done for each attempt and each round of each chain, in any case. */
static int64_t cost_of_all(const mull__paths *p, int has_age)
{
    enum { SORT_NS = 300, STEP_NS = 40, AGE_STEP_NS = 150 };
    int64_t step_ns = has_age ? AGE_STEP_NS : STEP_NS,
            cost = (int64_t)p->chain_set->count * SORT_NS;
    for (size_t i = 0; i < p->count; i++)
        cost += step_ns * (p->chains[i].retry->attempts + 2 * p->rounds);
    return cost;
}

static int64_t bound_of(int64_t setting)
{
    return setting == MULL__OFF ? MULL__FOREVER : setting;
}

int mull__paths_init(mull__paths *p, const mull__chain_set *chain_set,
                     const mull_allocator *allocator)
{
    *p = (mull__paths){.chain_set = chain_set, .allocator = allocator, .round = -1};
    p->chains = mull__zalloc(allocator, chain_set->count, sizeof *p->chains);
    if (!p->chains)
        return MULL_ENOMEM;
    p->max_age_ms = bound_of(chain_set->max_age_ms);
    p->deadline_ms = bound_of(chain_set->deadline_ms);
    p->horizon_ms = p->deadline_ms == MULL__FOREVER ? p->max_age_ms : p->deadline_ms;
    int has_age = p->horizon_ms != MULL__FOREVER;
    keep_distinct(p);
    p->calls = p->chains[p->count - 1].retry->attempts + 1;
    p->exit = p->chains[0].retry->attempts + 1;
    if (!mull__budget_take(chain_set->effort, cost_of_all(p, has_age)))
        return MULL_OK;
    p->capped = chain_set->max_attempts != MULL__OFF &&
                (p->unlimited || chain_set->max_attempts < p->calls * (p->rounds + 1));
    /* Where age makes no difference the ends of what may be are enough. */
    if (take_memory(p, !has_age ? 1 : p->count < WAITS ? p->count : WAITS))
        return MULL_ENOMEM;
    for (int64_t attempt = 1; attempt <= p->calls; attempt++)
        look_at_attempt(p, attempt);
    return MULL_OK;
}

void mull__paths_free(mull__paths *p)
{
    mull__free(p->allocator, p->chains);
    mull__free(p->allocator, p->attempts);
    mull__free(p->allocator, p->redeliver);
    mull__free(p->allocator, p->spans);
}

/* fill_level adds to what chains with fewer retries allow what the next one does. */
static void fill_level(mull__paths *p, size_t level, int64_t round)
{
    const mull__tier_config *tier = p->chains[level].redeliver;
    mull__interval_set *ages = &p->redeliver[level + 1];
    mull__interval_set_copy(ages, &p->redeliver[level]);
    if (tier->attempts != MULL_UNLIMITED && round >= tier->attempts)
        return;
    mull__ms_range wait = wait_of(p, tier, round + 1);
    mull__interval_set_add(ages, wait);
    if (p->settled)
        p->settled = mull__span_same(wait, wait_of(p, tier, MULL__FOREVER));
    p->work += 80;
}

void mull__paths_round(mull__paths *p, int64_t round)
{
    p->work += 20;
    if (p->settled && p->round >= 0 && round >= p->round)
        return;
    p->round = round;
    p->settled = round >= p->rounds;
    p->redeliver[0].count = 0;
    for (size_t i = 0; i < p->count; i++)
        fill_level(p, i, round);
    p->work += 20 * (int64_t)p->count;
}

/* ---- How soon there can be so many redeliveries ---------------------------------------------- */

static int fill_in(mull__earliest_times *s, mull__paths *p)
{
    size_t rounds = (size_t)p->rounds + 2, attempts = (size_t)p->calls + 1;
    s->round_ms = mull__zalloc(p->allocator, rounds + attempts, sizeof *s->round_ms);
    if (!s->round_ms)
        return MULL_ENOMEM;
    s->attempt_ms = s->round_ms + rounds;
    for (size_t i = 1; i < attempts; i++)
        s->attempt_ms[i] = p->attempts[i].since_ms;
    for (int64_t round = 0; round < p->rounds; round++) {
        int64_t least_ms = MULL__FOREVER;
        mull__paths_round(p, round);
        for (int64_t attempt = p->exit; attempt <= p->calls; attempt++)
            least_ms = mull__smaller(least_ms, mull__round_ms(p, attempt));
        s->round_ms[round + 1] = mull__later(s->round_ms[round], least_ms);
    }
    return MULL_OK;
}

int mull__earliest_times_of(mull__earliest_times *s, const mull__chain_set *chain_set,
                            const mull_allocator *allocator)
{
    *s = (mull__earliest_times){0};
    mull__paths paths;
    int status = mull__paths_init(&paths, chain_set, allocator);
    if (status == MULL_OK && paths.attempts)
        status = fill_in(s, &paths);
    mull__paths_free(&paths);
    return status;
}

/* ---- Extents ----------------------------------------------------------------------------- */

/* spend follows walks with as much work as there is effort for, which it takes. */
static int spend(mull__range *range, mull__paths *p, int (*follow)(mull__range *, mull__paths *))
{
    enum { MOST = 100000000 };
    p->work = 0;
    p->most_work = mull__smaller(*p->chain_set->effort, MOST);
    int status = follow(range, p);
    mull__budget_take(p->chain_set->effort, p->work);
    return status;
}

/* most_calls: as many retries as there can be in each round give the most calls, and only time can
 * speak against them. */
static int most_calls(mull__range *range, mull__paths *p)
{
    const mull__chain_set *w = p->chain_set;
    int status = MULL_OK;
    if (p->horizon_ms != MULL__FOREVER)
        status = spend(range, p, mull__calls_of_paths);
    else
        range->calls = p->unlimited ? MULL__FOREVER : p->calls * (p->rounds + 1);
    if (w->max_attempts != MULL__OFF && range->calls > w->max_attempts)
        range->calls = w->max_attempts; /* that many, since any walk may be cut short */
    return status;
}

static int of_several(mull__range *range, mull__paths *p)
{
    for (size_t i = 0; i < p->count; i++)
        range->rough |= mull__delays_are_correlated(&p->chains[i], p->chain_set);
    int status = most_calls(range, p);
    return status == MULL_OK ? spend(range, p, mull__times_of_paths) : status;
}

int mull__range_of_paths(mull__range *range, const mull__chain_set *chain_set,
                         const mull_allocator *allocator)
{
    *range = (mull__range){.calls = 1}; /* the first failure ends it */
    if (chain_set->count == 0)
        return MULL_OK;
    mull__paths paths;
    int status = mull__paths_init(&paths, chain_set, allocator);
    if (status == MULL_OK && !paths.attempts)
        *range = mull__range_estimate(chain_set);
    else if (status == MULL_OK && paths.count == 1 && paths.deadline_ms == MULL__FOREVER)
        *range = mull__range_of_chain(chain_set);
    else if (status == MULL_OK)
        status = of_several(range, &paths);
    if (chain_set->may_end_at_once)
        range->shortest_ms = 0;
    mull__paths_free(&paths);
    return status;
}
