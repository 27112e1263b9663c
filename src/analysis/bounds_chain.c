/* bounds_chain.c: the extent of walks of which any of several courses may decide each failure. */
#include "base/alloc.h"
#include "bounds_paths.h"

/* soonest_round_ms is the least from the first failure of the round that the paths are at to that
 * of the next. */
static int64_t soonest_round_ms(const mull__paths *p)
{
    int64_t least_ms = MULL__FOREVER;
    for (int64_t attempt = p->exit; attempt <= p->calls; attempt++)
        least_ms = mull__smaller(least_ms, mull__round_ms(p, attempt));
    return least_ms;
}

/* ---- How soon there can be so many redeliveries ---------------------------------------------- */

static int fill_in(mull__soonest *s, mull__paths *p)
{
    size_t rounds = (size_t)p->rounds + 2, attempts = (size_t)p->calls + 1;
    s->round_ms = mull__zalloc(p->allocator, rounds + attempts, sizeof *s->round_ms);
    if (!s->round_ms)
        return MULL_ENOMEM;
    s->attempt_ms = s->round_ms + rounds;
    for (size_t i = 1; i < attempts; i++)
        s->attempt_ms[i] = p->attempts[i].since.low_ms;
    for (int64_t round = 0; round < p->rounds; round++) {
        mull__paths_round(p, round);
        s->round_ms[round + 1] = mull__later(s->round_ms[round], soonest_round_ms(p));
    }
    return MULL_OK;
}

int mull__soonest_of(mull__soonest *s, const mull__walks *walks, const mull_allocator *allocator)
{
    *s = (mull__soonest){0};
    mull__paths paths;
    int status = mull__paths_init(&paths, walks, allocator);
    if (status == MULL_OK && !paths.too_much)
        status = fill_in(s, &paths);
    mull__paths_free(&paths);
    return status;
}

void mull__soonest_free(mull__soonest *s, const mull_allocator *allocator)
{
    mull__free(allocator, s->round_ms);
}

/* ---- Walks that nothing cuts short ----------------------------------------------------------- */

/* soonest_end_ms is the least from the first failure of a round to an end in it. */
static int64_t soonest_end_ms(const mull__paths *p, int64_t round)
{
    int64_t attempt = p->exit;
    while (attempt < p->calls && p->attempts[attempt].end_round > round)
        attempt++;
    const mull__attempt *at = &p->attempts[attempt];
    return at->end_round > round ? MULL__FOREVER : at->since.low_ms;
}

/* of_uncut: the latest walk has all its retries in every round, each of them the longest of any
 * course, and so has every redelivery. */
static void of_uncut(mull__extent *extent, mull__paths *p)
{
    mull__span age = {0, 0}; /* at the first failure of a round */
    extent->shortest_ms = MULL__FOREVER;
    for (int64_t round = 0; round <= p->rounds; round++) {
        int64_t end_ms = mull__later(age.low_ms, soonest_end_ms(p, round));
        extent->shortest_ms = mull__smaller(extent->shortest_ms, end_ms);
        extent->longest_ms = mull__later(age.high_ms, p->attempts[p->calls].since.high_ms);
        mull__paths_round(p, round);
        mull__span waits = mull__ages_hull(&p->redeliver[p->count]);
        age.low_ms = mull__later(age.low_ms, soonest_round_ms(p));
        age.high_ms = mull__later(extent->longest_ms, waits.high_ms);
    }
    if (p->unlimited)
        extent->longest_ms = MULL__FOREVER;
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* most_calls: as many retries as there can be in each round give the most calls, and only time can
 * speak against them. */
static int most_calls(mull__extent *extent, mull__paths *p)
{
    const mull__walks *w = p->walks;
    int status = MULL_OK;
    if (w->max_age_ms != MULL__OFF)
        status = mull__calls_of_walks(extent, p);
    else
        extent->calls = p->unlimited ? MULL__FOREVER : p->calls * (p->rounds + 1);
    if (w->max_attempts != MULL__OFF && extent->calls > w->max_attempts)
        extent->calls = w->max_attempts; /* that many, since any walk may be cut short */
    return status;
}

static int of_several(mull__extent *extent, mull__paths *p)
{
    for (size_t i = 0; i < p->count; i++)
        extent->rough |= mull__drifts(&p->courses[i], p->walks);
    int status = most_calls(extent, p);
    if (status == MULL_OK && (p->capped || p->walks->max_age_ms != MULL__OFF))
        return mull__ages_of_walks(extent, p);
    if (status == MULL_OK)
        of_uncut(extent, p);
    return status;
}

int mull__extent_of_walks(mull__extent *extent, const mull__walks *walks,
                          const mull_allocator *allocator)
{
    *extent = (mull__extent){1, 0, 0, 0}; /* the first failure ends it */
    if (walks->count == 0)
        return MULL_OK;
    mull__paths paths;
    int status = mull__paths_init(&paths, walks, allocator);
    if (status == MULL_OK && paths.too_much)
        *extent = mull__extent_at_a_glance(walks);
    else if (status == MULL_OK && paths.count == 1)
        *extent = mull__extent_of_course(paths.courses, walks);
    else if (status == MULL_OK)
        status = of_several(extent, &paths);
    if (walks->may_end_at_once)
        extent->shortest_ms = 0;
    mull__paths_free(&paths);
    return status;
}
