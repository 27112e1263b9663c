/* bounds_walks.c: the extent of walks of which any of several courses may decide each failure. */
#include "base/alloc.h"
#include "bounds_paths.h"

/* ---- How soon -------------------------------------------------------------------------------- */

static int64_t soonest_round_ms(const mull__soonest *s, const mull__paths *p)
{
    int64_t least_ms = MULL__FOREVER;
    for (int64_t attempt = p->exit; attempt <= p->calls; attempt++) {
        const mull__ages *waits = mull__redelivery(p, attempt);
        int64_t ms = waits ? mull__later(s->attempt_ms[attempt], waits->at[0].low_ms) : least_ms;
        least_ms = ms < least_ms ? ms : least_ms;
    }
    return least_ms;
}

static void find_soonest(mull__soonest *s, mull__paths *p)
{
    for (int64_t attempt = 1; attempt < p->calls; attempt++)
        s->attempt_ms[attempt + 1] =
            mull__later(s->attempt_ms[attempt], mull__retry_low_ms(p, attempt));
    for (int64_t round = 0; round < p->rounds; round++) {
        mull__paths_round(p, round);
        s->round_ms[round + 1] = mull__later(s->round_ms[round], soonest_round_ms(s, p));
    }
}

static int soonest_on(mull__soonest *s, mull__paths *p)
{
    s->round_ms = mull__zalloc(p->allocator, (size_t)p->rounds + 2, sizeof *s->round_ms);
    s->attempt_ms = mull__zalloc(p->allocator, (size_t)p->calls + 2, sizeof *s->attempt_ms);
    if (!s->round_ms || !s->attempt_ms)
        return MULL_ENOMEM;
    find_soonest(s, p);
    return MULL_OK;
}

int mull__soonest_of(mull__soonest *s, const mull__walks *walks, const mull_allocator *allocator)
{
    *s = (mull__soonest){0};
    mull__paths paths;
    int status = mull__paths_init(&paths, walks, allocator);
    if (status == MULL_OK)
        status = soonest_on(s, &paths);
    mull__paths_free(&paths);
    return status;
}

void mull__soonest_free(mull__soonest *s, const mull_allocator *allocator)
{
    mull__free(allocator, s->round_ms);
    mull__free(allocator, s->attempt_ms);
}

/* ---- Calls, and a single course -------------------------------------------------------------- */

static int of_one_course(mull__extent *extent, const mull__paths *p)
{
    *extent = mull__extent_of_course(p->courses, p->walks);
    if (p->walks->may_end_at_once)
        extent->shortest_ms = 0;
    return MULL_OK;
}

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

/* ---- Walks that nothing cuts short ----------------------------------------------------------- */

static int64_t longest_of(const mull__ages *waits)
{
    return waits->count ? waits->at[waits->count - 1].high_ms : 0;
}

/* latest_ms: every round has all its retries, each of them the longest of any course, and so has
 * every redelivery. */
static int64_t latest_ms(mull__paths *p)
{
    int64_t round_ms = 0, sum_ms = 0;
    for (int64_t attempt = 1; attempt < p->calls; attempt++)
        round_ms = mull__later(round_ms, longest_of(&p->retry[attempt]));
    for (int64_t round = 0; round < p->rounds; round++) {
        mull__paths_round(p, round);
        sum_ms = mull__later(sum_ms, longest_of(&p->redeliver[p->level[p->calls]]));
    }
    return mull__later(sum_ms, mull__longer(round_ms, p->rounds + 1));
}

/* earliest_ms: some course has neither retries nor redeliveries left. */
static int64_t earliest_ms(const mull__soonest *soonest, const mull__paths *p)
{
    int64_t earliest = p->walks->may_end_at_once ? 0 : MULL__FOREVER;
    for (size_t i = 0; i < p->count; i++) {
        int64_t redeliveries = p->courses[i].redeliver->attempts;
        if (redeliveries == MULL_UNLIMITED)
            continue;
        int64_t ms = mull__later(soonest->round_ms[redeliveries],
                                 soonest->attempt_ms[p->courses[i].retry->attempts + 1]);
        earliest = ms < earliest ? ms : earliest;
    }
    return earliest;
}

static int of_uncut(mull__extent *extent, mull__paths *p)
{
    mull__soonest soonest;
    int status = soonest_on(&soonest, p);
    if (status == MULL_OK) {
        extent->shortest_ms = earliest_ms(&soonest, p);
        extent->longest_ms = p->unlimited ? MULL__FOREVER : latest_ms(p);
    }
    mull__soonest_free(&soonest, p->allocator);
    return status;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static int of_several(mull__extent *extent, mull__paths *p)
{
    for (size_t i = 0; i < p->count; i++)
        extent->rough |= mull__drifts(&p->courses[i], p->walks);
    int status = most_calls(extent, p);
    if (status != MULL_OK)
        return status;
    if (!p->capped && p->walks->max_age_ms == MULL__OFF)
        return of_uncut(extent, p);
    return mull__ages_of_walks(extent, p);
}

int mull__extent_of_walks(mull__extent *extent, const mull__walks *walks,
                          const mull_allocator *allocator)
{
    *extent = (mull__extent){1, 0, 0, 0}; /* the first failure ends it */
    if (walks->count == 0)
        return MULL_OK;
    mull__paths paths;
    int status = mull__paths_init(&paths, walks, allocator);
    if (status == MULL_OK)
        status = paths.count == 1 ? of_one_course(extent, &paths) : of_several(extent, &paths);
    mull__paths_free(&paths);
    return status;
}
