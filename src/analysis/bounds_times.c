/* bounds_times.c: how soon and how late walks end.
 *
 * Where a message can be is followed round by round. At the first failure of a round all that
 * matters is how many calls there were (only where max_attempts may cut in) and the age; so there
 * is a place for each number of calls, which holds the ages. From there a walk goes through the
 * attempts of the round, and leaves it at any of them for a place of the next.
 *
 *   round r:     place(calls) --retry--> attempt 2 --retry--> attempt 3 ...
 *                     \                      \                    \
 *   round r+1:   place(calls+1)         place(calls+2)       place(calls+3) */
#include "bounds_paths.h"

#include <string.h>

#include "base/alloc.h"

/* ---- Sets of ages ---------------------------------------------------------------------------- */

/* touches: nothing lies between the end of one and the beginning of the other. */
static int touches(int64_t high_ms, int64_t low_ms)
{
    return high_ms >= low_ms || high_ms + 1 == low_ms;
}

static void remove_at(mull__interval_set *ages, size_t index, size_t count)
{
    ages->count -= count;
    memmove(&ages->at[index], &ages->at[index + count], (ages->count - index) * sizeof *ages->at);
}

/* first_reaching is the index of the first span that ends at `low_ms` or after, or just before. */
static size_t first_reaching(const mull__interval_set *ages, int64_t low_ms)
{
    size_t from = 0, to = ages->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (touches(ages->at[middle].high_ms, low_ms))
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

/* close_least_gap makes room for one more. */
static void close_least_gap(mull__interval_set *ages)
{
    size_t least = 1;
    for (size_t i = 2; i < ages->count; i++)
        if (ages->at[i].low_ms - ages->at[i - 1].high_ms <
            ages->at[least].low_ms - ages->at[least - 1].high_ms)
            least = i;
    ages->at[least - 1].high_ms = ages->at[least].high_ms;
    remove_at(ages, least, 1);
    ages->rough = 1;
}

void mull__interval_set_copy(mull__interval_set *to, const mull__interval_set *from)
{
    memcpy(to->at, from->at, from->count * sizeof *to->at);
    to->count = from->count;
    to->rough = from->rough;
}

void mull__interval_set_add(mull__interval_set *ages, mull__ms_range span)
{
    if (ages->room == 1 && ages->count == 1) {
        mull__ms_range_include(&ages->at[0], span);
        return;
    }
    size_t first = first_reaching(ages, span.low_ms), end = first;
    while (end < ages->count && touches(span.high_ms, ages->at[end].low_ms))
        mull__ms_range_include(&span, ages->at[end++]);
    if (end > first) {
        ages->at[first] = span;
        remove_at(ages, first + 1, end - first - 1);
        return;
    }
    if (ages->count == ages->room) {
        close_least_gap(ages);
        mull__interval_set_add(ages, span);
        return;
    }
    memmove(&ages->at[first + 1], &ages->at[first], (ages->count - first) * sizeof *ages->at);
    ages->at[first] = span;
    ages->count++;
}

int mull__interval_set_contains(const mull__interval_set *outer, const mull__interval_set *inner)
{
    for (size_t i = 0; i < inner->count; i++) {
        size_t at = first_reaching(outer, inner->at[i].low_ms);
        if (at == outer->count || outer->at[at].low_ms > inner->at[i].low_ms ||
            outer->at[at].high_ms < inner->at[i].high_ms)
            return 0;
    }
    return 1;
}

/* ---- Places ---------------------------------------------------------------------------------- */

enum {
    MOST_SPANS = 256,    /* of ages, where there is one place a round */
    FEW_SPANS = 32,      /* where there are many */
    MOST_PLACES = 20000, /* beyond it bounds are rough */
};

typedef struct walker {
    mull__paths *paths;
    mull__range *range;             /* of the ends so far */
    size_t place_count;             /* in a round; place 0 is that of one call */
    mull__interval_set *now, *next; /* the places of this round and of the next */
    mull__interval_set here, then;  /* on the way through the attempts of a round */
    mull__interval_set *places;     /* all of these */
    mull__ms_range *spans;          /* and all of theirs */
} walker;

static void end_at(walker *w, mull__ms_range span)
{
    w->range->shortest_ms = mull__smaller(w->range->shortest_ms, span.low_ms);
    w->range->longest_ms = mull__greater(w->range->longest_ms, span.high_ms);
}

/* ---- From place to place --------------------------------------------------------------------- */

/* call is after a wait: it takes its time, and doesn't begin later than the deadline, at which a
 * walk may end instead. 0: there is none. */
static int call(walker *w, mull__ms_range *span, mull__ms_range from, mull__ms_range wait)
{
    int64_t deadline_ms = w->paths->deadline_ms;
    *span = mull__span_sum(from, wait);
    if (deadline_ms == MULL__FOREVER)
        return 1; /* its time is in the wait */
    if (span->high_ms > deadline_ms) {
        from.low_ms = mull__greater(from.low_ms, deadline_ms - wait.high_ms + 1);
        end_at(w, from);
        span->high_ms = deadline_ms;
    }
    int begins = span->low_ms <= deadline_ms;
    *span = mull__with_call(w->paths->chain_set, *span);
    return begins;
}

/* go adds to a place the ages that those in a span come to after some waits. Beyond the horizon
 * only the ends of what may be are kept. */
static void go(walker *w, mull__interval_set *to, mull__ms_range from,
               const mull__interval_set *waits)
{
    int64_t horizon_ms = w->paths->horizon_ms;
    for (size_t i = 0; i < waits->count; i++) {
        mull__ms_range span, hull = mull__interval_set_hull(to);
        if (!call(w, &span, from, waits->at[i]))
            continue;
        if (span.high_ms > horizon_ms && hull.high_ms > horizon_ms)
            mull__ms_range_include(&span, to->at[to->count - 1]);
        mull__interval_set_add(to, span);
    }
    w->paths->work += (to->room > 1 ? 15 : 2) * (int64_t)waits->count;
    w->range->rough |= waits->rough | to->rough;
}

static void retry(walker *w, const mull__interval_set *waits)
{
    w->then.count = 0;
    for (size_t i = 0; i < w->here.count; i++)
        go(w, &w->then, w->here.at[i], waits);
    mull__interval_set was = w->here;
    w->here = w->then;
    w->then = was;
}

/* redeliver: what is older than max_age ends instead. */
static void redeliver(walker *w, mull__interval_set *to, const mull__interval_set *waits)
{
    int64_t max_age_ms = w->paths->max_age_ms;
    for (size_t i = 0; i < w->here.count; i++) {
        mull__ms_range span = w->here.at[i], old = span;
        if (span.high_ms > max_age_ms) {
            old.low_ms = mull__greater(old.low_ms, max_age_ms + 1);
            end_at(w, old);
            span.high_ms = max_age_ms;
        }
        if (span.low_ms <= max_age_ms)
            go(w, to, span, waits);
    }
}

/* through goes through the attempts of a round, from a place on; `calls` is how many there were
 * with the first failure of the round. */
static void through(walker *w, const mull__interval_set *from, int64_t calls, int64_t round)
{
    const mull__paths *p = w->paths;
    mull__interval_set_copy(&w->here, from);
    for (int64_t attempt = 1;; attempt++, calls++) {
        const mull__interval_set *waits = mull__redelivery(p, attempt);
        int is_last = p->capped && calls == p->chain_set->max_attempts;
        if (is_last || p->chain_set->may_end_at_once || round >= p->attempts[attempt].end_round)
            end_at(w, mull__interval_set_hull(&w->here));
        if (is_last)
            return;
        if (waits)
            redeliver(w, &w->next[p->capped ? calls : 0], waits);
        if (attempt == p->calls)
            return;
        retry(w, &p->attempts[attempt].retry);
        if (w->here.count == 0)
            return; /* the deadline is over */
    }
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* give_up ends walks that would take too long to follow, those of this round from a place on, by
 * what holds of them wherever they go. */
static void give_up(walker *w, size_t first)
{
    for (size_t i = 0; i < w->place_count; i++) {
        if (i >= first && w->now[i].count > 0)
            end_at(w, w->now[i].at[0]);
        if (w->next[i].count > 0)
            end_at(w, w->next[i].at[0]);
    }
    w->range->longest_ms = mull__range_estimate(w->paths->chain_set).longest_ms;
    w->range->rough = 1;
}

/* walk_round gives 0 where no walk goes on from it. */
static int walk_round(walker *w, int64_t round)
{
    int goes_on = 0;
    mull__paths_round(w->paths, round);
    w->paths->work += 10 * (int64_t)w->place_count;
    for (size_t i = 0; i < w->place_count; i++)
        w->next[i].count = 0;
    for (size_t i = 0; i < w->place_count; i++) {
        if (w->now[i].count == 0)
            continue;
        if (w->paths->work > w->paths->most_work) {
            give_up(w, i);
            return 0;
        }
        through(w, &w->now[i], (int64_t)i + 1, round);
    }
    for (size_t i = 0; i < w->place_count; i++)
        goes_on |= w->next[i].count > 0;
    return goes_on;
}

/* nothing_new: from here on every round begins with what the one before it began with, or less,
 * and goes on like it. */
static int nothing_new(const walker *w)
{
    return !w->paths->capped && w->paths->settled &&
           mull__interval_set_contains(&w->now[0], &w->next[0]);
}

/* walk goes on up to the round `last`. */
static void walk(walker *w, int64_t last)
{
    mull__interval_set_add(&w->now[0], (mull__ms_range){0, 0});
    for (int64_t round = 0; walk_round(w, round) && !nothing_new(w) && round < last; round++) {
        mull__interval_set *was = w->now;
        w->now = w->next;
        w->next = was;
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int take_memory(walker *w)
{
    const mull_allocator *a = w->paths->allocator;
    size_t count = 2 * w->place_count, room = w->place_count > 1 ? FEW_SPANS : MOST_SPANS;
    if (w->paths->horizon_ms == MULL__FOREVER)
        room = 0; /* the ends of what may be are enough */
    room++;       /* for what is beyond it */
    w->spans = mull__zalloc(a, count + 2, room * sizeof *w->spans);
    w->places = mull__zalloc(a, count + 2, sizeof *w->places);
    if (!w->spans || !w->places)
        return MULL_ENOMEM;
    for (size_t i = 0; i < count + 2; i++)
        w->places[i] = (mull__interval_set){.at = w->spans + i * room, .room = room};
    w->now = w->places;
    w->next = w->places + w->place_count;
    w->here = w->places[count];
    w->then = w->places[count + 1];
    return MULL_OK;
}

int mull__times_of_paths(mull__range *range, mull__paths *paths)
{
    int never_ends = paths->unlimited && !paths->capped && paths->horizon_ms == MULL__FOREVER;
    int64_t places = paths->capped ? paths->chain_set->max_attempts : 1;
    walker w = {.paths = paths, .range = range, .place_count = (size_t)places};
    if (places > MOST_PLACES) {
        w.place_count = 0;
        give_up(&w, 0);
        return MULL_OK;
    }
    range->shortest_ms = MULL__FOREVER;
    int status = take_memory(&w);
    if (status == MULL_OK)
        walk(&w, never_ends ? paths->rounds : MULL__FOREVER);
    mull__free(paths->allocator, w.spans);
    mull__free(paths->allocator, w.places);
    if (range->shortest_ms == MULL__FOREVER || never_ends)
        range->longest_ms = MULL__FOREVER;
    return status;
}
