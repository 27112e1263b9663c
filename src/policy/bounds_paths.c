/* bounds_paths.c: see bounds_paths.h. */
#include "bounds_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { WAITS = 64 }; /* spans of the waits after one attempt, at most */

/* ---- Courses --------------------------------------------------------------------------------- */

static int same_tier(const mull__plain_tier *a, const mull__plain_tier *b)
{
    if (a->attempts == 0 && b->attempts == 0)
        return 1;
    if (a->attempts != b->attempts || a->max_delay_ms != b->max_delay_ms || !a->hint != !b->hint ||
        a->jitter_kind != b->jitter_kind || a->jitter != b->jitter || !a->delays != !b->delays)
        return 0; /* which field is the hint makes no difference */
    if (a->delays && (a->delay_count != b->delay_count ||
                      memcmp(a->delays, b->delays, a->delay_count * sizeof *a->delays) != 0))
        return 0;
    return a->base_ms == b->base_ms && a->backoff == b->backoff && a->factor == b->factor;
}

static int by_retries(const void *a, const void *b)
{
    int64_t m = ((const mull__course *)a)->retry->attempts;
    int64_t n = ((const mull__course *)b)->retry->attempts;
    return (m > n) - (m < n);
}

/* keep_distinct copies the courses, by their retries, those that are alike once. */
static size_t keep_distinct(mull__course *kept, const mull__walks *walks)
{
    size_t count = 0, of_this_many = 0; /* from where on they have as many retries */
    memcpy(kept, walks->courses, walks->count * sizeof *kept);
    qsort(kept, walks->count, sizeof *kept, by_retries);
    for (size_t i = 0; i < walks->count; i++) {
        if (count > 0 && by_retries(&kept[count - 1], &kept[i]) != 0)
            of_this_many = count;
        size_t at = of_this_many;
        while (at < count && !(same_tier(kept[at].retry, kept[i].retry) &&
                               same_tier(kept[at].redeliver, kept[i].redeliver)))
            at++;
        if (at == count)
            kept[count++] = kept[i];
    }
    return count;
}

/* ---- Attempts -------------------------------------------------------------------------------- */

static mull__span with_call(mull__span wait, const mull__walks *walks)
{
    return mull__span_sum(wait, (mull__span){0, walks->handler_ms});
}

static void note_wait(mull__paths *p, mull__span span)
{
    if (span.high_ms > p->longest_wait_ms)
        p->longest_wait_ms = span.high_ms;
}

/* look_at_attempt says what may follow a failure at this attempt, in any round. */
static void look_at_attempt(mull__paths *p, int64_t attempt)
{
    size_t level = 0;
    p->end_round[attempt] = MULL__FOREVER;
    for (; level < p->count && p->courses[level].retry->attempts < attempt; level++) {
        int64_t allowed = p->courses[level].redeliver->attempts;
        if (allowed != MULL_UNLIMITED && allowed < p->end_round[attempt])
            p->end_round[attempt] = allowed;
    }
    p->level[attempt] = level;
    for (size_t i = level; i < p->count; i++) {
        mull__span span = with_call(mull__tier_span(p->courses[i].retry, attempt), p->walks);
        mull__ages_add(&p->retry[attempt], span);
        note_wait(p, span);
    }
}

static void look_at_redeliveries(mull__paths *p)
{
    for (size_t i = 0; i < p->count; i++) {
        int64_t allowed = p->courses[i].redeliver->attempts;
        p->unlimited |= allowed == MULL_UNLIMITED;
        if (allowed > p->rounds)
            p->rounds = allowed;
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* share gives `ages` its part of `spans`. */
static mull__span *share(mull__ages *ages, mull__span *spans, size_t room)
{
    *ages = (mull__ages){.at = spans, .room = room};
    return spans + room;
}

static int take_memory(mull__paths *p, size_t room)
{
    const mull_allocator *a = p->allocator;
    size_t attempts = (size_t)p->calls + 1, levels = p->count + 1;
    p->retry = mull__zalloc(a, attempts, sizeof *p->retry);
    p->end_round = mull__zalloc(a, attempts, sizeof *p->end_round);
    p->level = mull__zalloc(a, attempts, sizeof *p->level);
    p->redeliver = mull__zalloc(a, levels, sizeof *p->redeliver);
    p->spans = mull__zalloc(a, attempts + levels, room * sizeof *p->spans);
    if (!p->retry || !p->end_round || !p->level || !p->redeliver || !p->spans)
        return MULL_ENOMEM;
    mull__span *spans = p->spans;
    for (size_t i = 0; i < attempts; i++)
        spans = share(&p->retry[i], spans, room);
    for (size_t i = 0; i < levels; i++)
        spans = share(&p->redeliver[i], spans, room);
    return MULL_OK;
}

int mull__paths_init(mull__paths *p, const mull__walks *walks, const mull_allocator *allocator)
{
    *p = (mull__paths){.walks = walks, .allocator = allocator, .round = -1};
    mull__course *kept = mull__zalloc(allocator, walks->count, sizeof *kept);
    p->courses = kept;
    if (!kept)
        return MULL_ENOMEM;
    int has_age = walks->max_age_ms != MULL__OFF;
    p->max_age_ms = has_age ? walks->max_age_ms : MULL__FOREVER;
    p->count = keep_distinct(kept, walks);
    p->calls = kept[p->count - 1].retry->attempts + 1;
    p->exit = kept[0].retry->attempts + 1;
    look_at_redeliveries(p);
    p->capped = walks->max_attempts != MULL__OFF &&
                (p->unlimited || walks->max_attempts < p->calls * (p->rounds + 1));
    /* Without max_age the ends of what may be are enough. */
    if (take_memory(p, !has_age ? 1 : p->count < WAITS ? p->count : WAITS))
        return MULL_ENOMEM;
    for (int64_t attempt = 1; attempt <= p->calls; attempt++)
        look_at_attempt(p, attempt);
    return MULL_OK;
}

void mull__paths_free(mull__paths *p)
{
    const mull_allocator *a = p->allocator;
    union {
        const mull__course *kept;
        void *memory;
    } courses = {p->courses};
    mull__free(a, courses.memory);
    mull__free(a, p->retry);
    mull__free(a, p->end_round);
    mull__free(a, p->level);
    mull__free(a, p->redeliver);
    mull__free(a, p->spans);
}

static int redelivers(const mull__course *course, int64_t round)
{
    int64_t allowed = course->redeliver->attempts;
    return allowed == MULL_UNLIMITED || round < allowed;
}

/* fill_level adds to what courses with fewer retries allow what the next one does. */
static void fill_level(mull__paths *p, size_t level, int64_t round)
{
    const mull__ages *fewer = &p->redeliver[level];
    mull__ages *ages = &p->redeliver[level + 1];
    memcpy(ages->at, fewer->at, fewer->count * sizeof *ages->at);
    ages->count = fewer->count;
    ages->rough = fewer->rough;
    if (!redelivers(&p->courses[level], round))
        return;
    const mull__plain_tier *tier = p->courses[level].redeliver;
    mull__span wait = mull__tier_span(tier, round + 1);
    mull__span span = with_call(wait, p->walks);
    mull__ages_add(ages, span);
    note_wait(p, span);
    if (p->settled) {
        mull__span last = mull__tier_span(tier, MULL__FOREVER);
        p->settled = wait.low_ms == last.low_ms && wait.high_ms == last.high_ms;
    }
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
