/* bounds_ages.c: how soon and how late walks end that max_age or max_attempts may cut short.
 *
 * Where a message can be is followed round by round. At the first failure of a round all that
 * matters is how many calls there were (only where max_attempts may cut in) and the age; so there
 * is a place for each number of calls, which holds the ages. From there a walk goes through the
 * attempts of the round, and leaves it at any of them for a place of the next.
 *
 *   round r:    place(calls) --retry--> attempt 2 --retry--> attempt 3 ...
 *                     \                     \                    \
 *   round r+1:    place(calls+1)       place(calls+2)       place(calls+3) */
#include "base/alloc.h"
#include "bounds_paths.h"

#include <string.h>

enum {
    MOST_SPANS = 256,    /* of ages, where there is one place a round */
    FEW_SPANS = 32,      /* where there are many */
    MOST_PLACES = 20000, /* beyond it bounds are rough */
};

/* ---- Places ---------------------------------------------------------------------------------- */

/* place is the ages that a message may have somewhere. Beyond max_age nothing depends on the age
 * any more, so that only the ends of what may be are kept. */
typedef struct place {
    mull__ages young;
    mull__span old; /* where `has_old` */
    int has_old;
} place;

static void clear(place *p)
{
    p->young.count = 0;
    p->has_old = 0;
}

static int is_empty(const place *p)
{
    return p->young.count == 0 && !p->has_old;
}

static void add_old(place *p, mull__span span)
{
    if (p->has_old && p->old.low_ms < span.low_ms)
        span.low_ms = p->old.low_ms;
    if (p->has_old && p->old.high_ms > span.high_ms)
        span.high_ms = p->old.high_ms;
    p->old = span;
    p->has_old = 1;
}

static void add(place *p, mull__span span, int64_t max_age_ms)
{
    if (span.high_ms > max_age_ms) {
        int64_t low_ms = span.low_ms > max_age_ms ? span.low_ms : max_age_ms + 1;
        add_old(p, (mull__span){low_ms, span.high_ms});
        span.high_ms = max_age_ms;
    }
    if (span.low_ms <= max_age_ms)
        mull__ages_add(&p->young, span);
}

static void copy(place *to, const place *from)
{
    memcpy(to->young.at, from->young.at, from->young.count * sizeof *to->young.at);
    to->young.count = from->young.count;
    to->young.rough |= from->young.rough;
    to->old = from->old;
    to->has_old = from->has_old;
}

/* holds: what is in `inner` is in `outer`. */
static int holds(const place *outer, const place *inner)
{
    if (inner->has_old && (!outer->has_old || inner->old.low_ms < outer->old.low_ms ||
                           inner->old.high_ms > outer->old.high_ms))
        return 0;
    return mull__ages_hold(&outer->young, &inner->young);
}

static int64_t least(const place *p)
{
    return p->young.count > 0 ? p->young.at[0].low_ms : p->old.low_ms;
}

static int64_t greatest(const place *p)
{
    return p->has_old ? p->old.high_ms : p->young.at[p->young.count - 1].high_ms;
}

/* ---- The walker ------------------------------------------------------------------------------ */

typedef struct walker {
    mull__paths *paths;
    int64_t max_age_ms;
    size_t place_count;              /* in a round; place 0 is that of one call */
    place *now, *next;               /* of this round and of the next */
    place here, then;                /* on the way through the attempts of a round */
    mull__span *spans;               /* of all places */
    int64_t shortest_ms, longest_ms; /* of the ends so far */
    int rough, gave_up;
} walker;

static int take_memory(walker *w)
{
    const mull_allocator *a = w->paths->allocator;
    size_t room = w->place_count > 1 ? FEW_SPANS : MOST_SPANS;
    if (w->max_age_ms == MULL__FOREVER)
        room = 1; /* the ends of what may be are enough */
    size_t count = 2 * w->place_count + 2;
    w->spans = mull__zalloc(a, count, room * sizeof *w->spans);
    w->now = mull__zalloc(a, 2 * w->place_count, sizeof *w->now);
    if (!w->spans || !w->now)
        return MULL_ENOMEM;
    w->next = w->now + w->place_count;
    mull__span *spans = w->spans;
    for (size_t i = 0; i < 2 * w->place_count; i++, spans += room)
        w->now[i].young = (mull__ages){.at = spans, .room = room};
    w->here.young = (mull__ages){.at = spans, .room = room};
    w->then.young = (mull__ages){.at = spans + room, .room = room};
    return MULL_OK;
}

static void end_at(walker *w, mull__span span)
{
    if (span.low_ms < w->shortest_ms)
        w->shortest_ms = span.low_ms;
    if (span.high_ms > w->longest_ms)
        w->longest_ms = span.high_ms;
}

static void end_here(walker *w)
{
    end_at(w, (mull__span){least(&w->here), greatest(&w->here)});
}

/* go adds to a place what is young here, after each of some waits. */
static void go(walker *w, place *to, const mull__ages *waits)
{
    const mull__ages *young = &w->here.young;
    for (size_t i = 0; i < young->count; i++)
        for (size_t j = 0; j < waits->count; j++)
            add(to, mull__span_sum(young->at[i], waits->at[j]), w->max_age_ms);
    w->paths->work += 15 * (int64_t)(young->count * waits->count) + 15;
    w->rough |= waits->rough | to->young.rough;
}

static void retry(walker *w, int64_t attempt)
{
    const mull__ages *waits = &w->paths->retry[attempt];
    clear(&w->then);
    go(w, &w->then, waits);
    if (w->here.has_old) {
        mull__span hull = {waits->at[0].low_ms, waits->at[waits->count - 1].high_ms};
        add_old(&w->then, mull__span_sum(w->here.old, hull));
    }
    place was = w->here;
    w->here = w->then;
    w->then = was;
}

/* through goes through the attempts of a round, from a place on; `calls` is how many there were
 * with the first failure of the round. */
static void through(walker *w, const place *from, int64_t calls, int64_t round)
{
    const mull__paths *p = w->paths;
    copy(&w->here, from);
    for (int64_t attempt = 1;; attempt++, calls++) {
        if (p->capped && calls == p->walks->max_attempts) {
            end_here(w);
            return;
        }
        if (p->walks->may_end_at_once || round >= p->end_round[attempt])
            end_here(w);
        const mull__ages *waits = mull__redelivery(p, attempt);
        if (waits && w->here.has_old)
            end_at(w, w->here.old);
        if (waits)
            go(w, &w->next[p->capped ? calls : 0], waits);
        if (attempt == p->calls)
            return;
        retry(w, attempt);
    }
}

/* ---- Too much -------------------------------------------------------------------------------- */

/* later_ms is the latest that a message in a place may end, as far as is seen without walking. */
static int64_t later_ms(const walker *w, const place *p, int64_t calls)
{
    const mull__paths *paths = w->paths;
    int64_t wait_ms = paths->longest_wait_ms, latest_ms = MULL__FOREVER;
    if (paths->capped)
        latest_ms =
            mull__later(greatest(p), mull__longer(wait_ms, paths->walks->max_attempts - calls));
    if (w->max_age_ms != MULL__FOREVER) {
        int64_t begun_ms = mull__later(w->max_age_ms, wait_ms);
        if (greatest(p) > begun_ms)
            begun_ms = greatest(p);
        int64_t ended_ms = mull__later(begun_ms, mull__longer(wait_ms, paths->calls - 1));
        latest_ms = ended_ms < latest_ms ? ended_ms : latest_ms;
    }
    return latest_ms;
}

static void end_whenever(walker *w, const place *p, int64_t calls)
{
    if (!is_empty(p))
        end_at(w, (mull__span){least(p), later_ms(w, p, calls)});
}

/* give_up ends walks that would take too long to follow, by what holds of them wherever they go. */
static void give_up(walker *w, size_t first)
{
    mull__paths *p = w->paths;
    for (int64_t round = 0; round < p->rounds; round++)
        mull__paths_round(p, round); /* for the longest wait */
    mull__paths_round(p, MULL__FOREVER - 1);
    for (size_t i = 0; i < w->place_count; i++) {
        if (i >= first)
            end_whenever(w, &w->now[i], (int64_t)i + 1);
        end_whenever(w, &w->next[i], (int64_t)i + 1);
    }
    w->gave_up = 1;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* walk_round gives 0 where no walk goes on from it. */
static int walk_round(walker *w, int64_t round)
{
    mull__paths_round(w->paths, round);
    w->paths->work += 10 * (int64_t)w->place_count;
    for (size_t i = 0; i < w->place_count; i++)
        clear(&w->next[i]);
    for (size_t i = 0; i < w->place_count; i++) {
        if (is_empty(&w->now[i]))
            continue;
        if (w->paths->work > MULL__MOST_WORK) {
            give_up(w, i);
            return 0;
        }
        through(w, &w->now[i], (int64_t)i + 1, round);
    }
    for (size_t i = 0; i < w->place_count; i++)
        if (!is_empty(&w->next[i]))
            return 1;
    return 0;
}

/* nothing_new: from here on every round begins with what the one before it began with, or less,
 * and goes on like it. */
static int nothing_new(const walker *w)
{
    return !w->paths->capped && w->paths->settled && holds(&w->now[0], &w->next[0]);
}

static void walk(walker *w)
{
    add(&w->now[0], (mull__span){0, 0}, w->max_age_ms);
    for (int64_t round = 0; walk_round(w, round); round++) {
        if (nothing_new(w))
            return;
        place *was = w->now;
        w->now = w->next;
        w->next = was;
    }
}

int mull__ages_of_walks(mull__extent *extent, mull__paths *paths)
{
    walker w = {.paths = paths, .max_age_ms = paths->max_age_ms, .shortest_ms = MULL__FOREVER};
    int64_t places = paths->capped ? paths->walks->max_attempts : 1;
    int too_many = places > MOST_PLACES;
    w.place_count = too_many ? 1 : (size_t)places;
    int status = take_memory(&w);
    paths->work = 0;
    place *memory = w.now;
    if (status == MULL_OK && too_many) {
        add(&w.now[0], (mull__span){0, 0}, w.max_age_ms);
        give_up(&w, 0);
    } else if (status == MULL_OK) {
        walk(&w);
    }
    mull__free(paths->allocator, w.spans);
    mull__free(paths->allocator, memory);
    extent->shortest_ms = w.shortest_ms;
    extent->longest_ms = w.shortest_ms == MULL__FOREVER ? MULL__FOREVER : w.longest_ms;
    extent->rough |= w.gave_up || (w.rough && w.max_age_ms != MULL__FOREVER);
    return status;
}
