/* bounds.c: the extent of a single course, which is a straight line: each round is all its retries
 * and one redelivery. Rounds that take equally long are leapt over. */
#include "bounds.h"

enum { MAX_TURNS = 1000000 };

/* line is where the message is: at the first failure of a round. */
typedef struct line {
    const mull__walks *walks;
    mull__course course;
    mull__span all_retries; /* what they take together, calls included */
    int64_t redeliveries, calls;
    mull__span age;
    mull__extent extent; /* of the ends so far */
} line;

/* ---- Ends ------------------------------------------------------------------------------------ */

static void widen(mull__extent *extent, int64_t calls, mull__span age)
{
    if (calls > extent->calls)
        extent->calls = calls;
    if (age.low_ms < extent->shortest_ms)
        extent->shortest_ms = age.low_ms;
    if (age.high_ms > extent->longest_ms)
        extent->longest_ms = age.high_ms;
}

/* never_ends is what holds where a walk can go on for ever: as many calls as there is time. */
static void never_ends(line *l)
{
    l->extent.calls = MULL__FOREVER;
    if (l->extent.shortest_ms == MULL__FOREVER)
        l->extent.longest_ms = MULL__FOREVER;
}

/* ---- One round ------------------------------------------------------------------------------- */

static mull__span with_call(mull__span wait, int64_t handler_ms)
{
    return mull__span_sum(wait, (mull__span){0, handler_ms});
}

static mull__span retries(const line *l, int64_t count)
{
    mull__span sum = {0, 0};
    for (int64_t step = 1; step <= count; step++)
        sum = mull__span_sum(
            sum, with_call(mull__tier_span(l->course.retry, step), l->walks->handler_ms));
    return sum;
}

static int reaches_max_attempts(const line *l)
{
    int64_t most = l->walks->max_attempts;
    return most != MULL__OFF && most - l->calls <= l->course.retry->attempts;
}

static int may_redeliver(const line *l)
{
    int64_t allowed = l->course.redeliver->attempts;
    return allowed == MULL_UNLIMITED || l->redeliveries < allowed;
}

/* redelivered goes over to the next round, `span` later than the failure at `age`. */
static void redelivered(line *l, mull__span age, mull__span span)
{
    l->age = mull__span_sum(age, with_call(span, l->walks->handler_ms));
    l->calls += l->course.retry->attempts + 1;
    l->redeliveries++;
}

/* turn walks one round; 0: that was the last. */
static int turn(line *l, mull__span span)
{
    int64_t max_age_ms = l->walks->max_age_ms;
    if (reaches_max_attempts(l)) {
        mull__span cut = retries(l, l->walks->max_attempts - l->calls);
        widen(&l->extent, l->walks->max_attempts, mull__span_sum(l->age, cut));
        return 0;
    }
    mull__span age = mull__span_sum(l->age, l->all_retries);
    int64_t calls = l->calls + l->course.retry->attempts;
    if (!may_redeliver(l)) {
        widen(&l->extent, calls, age);
        return 0;
    }
    if (max_age_ms != MULL__OFF && age.high_ms > max_age_ms) {
        int64_t soonest_ms = age.low_ms > max_age_ms ? age.low_ms : max_age_ms + 1;
        widen(&l->extent, calls, (mull__span){soonest_ms, age.high_ms});
        if (age.low_ms > max_age_ms)
            return 0;
        age.high_ms = max_age_ms;
    }
    redelivered(l, age, span);
    return 1;
}

/* ---- Many rounds ----------------------------------------------------------------------------- */

static int same(mull__span a, mull__span b)
{
    return a.low_ms == b.low_ms && a.high_ms == b.high_ms;
}

/* equal_steps is how many steps from `step` on have its span; MULL__FOREVER: all that come. Only an
 * unlimited tier has so many that it is worth a look; its delays never become less. */
static int64_t equal_steps(const mull__plain_tier *tier, int64_t step)
{
    if (tier->attempts != MULL_UNLIMITED)
        return 1;
    mull__span span = mull__tier_span(tier, step);
    if (same(span, mull__tier_span(tier, MULL__FOREVER)))
        return MULL__FOREVER;
    int64_t least = 1, beyond = 2;
    while (same(span, mull__tier_span(tier, step + beyond - 1))) {
        least = beyond;
        beyond *= 2;
    }
    while (beyond - least > 1) {
        int64_t middle = least + (beyond - least) / 2;
        if (same(span, mull__tier_span(tier, step + middle - 1)))
            least = middle;
        else
            beyond = middle;
    }
    return least;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* fits is how many times `step_ms` may be added to `ms`, so that it was at most `limit_ms` each
 * time before. */
static int64_t fits(int64_t ms, int64_t step_ms, int64_t limit_ms)
{
    if (ms > limit_ms)
        return 0;
    return step_ms == 0 ? MULL__FOREVER : (limit_ms - ms) / step_ms + 1;
}

/* quiet_turns is how many of the next `equal` rounds differ from the last in nothing but when they
 * are: none reaches a limit that the last didn't. `before` is the latest age that the last began
 * at. */
static int64_t quiet_turns(const line *l, mull__span span, int64_t equal, int64_t before)
{
    int64_t max_age_ms = l->walks->max_age_ms, max_attempts = l->walks->max_attempts;
    mull__span round = mull__span_sum(l->all_retries, with_call(span, l->walks->handler_ms));
    int64_t turns = equal;
    if (max_attempts != MULL__OFF) {
        int64_t spare = max_attempts - 1 - l->course.retry->attempts - l->calls;
        turns = smaller(turns, spare < 0 ? 0 : spare / (l->course.retry->attempts + 1));
    }
    if (max_age_ms == MULL__OFF)
        return turns;
    mull__span age = mull__span_sum(l->age, l->all_retries);
    turns = smaller(turns, fits(age.low_ms, round.low_ms, max_age_ms));
    if (l->age.high_ms != before)
        turns = smaller(turns, fits(age.high_ms, round.high_ms, max_age_ms));
    return turns;
}

static void leap(line *l, mull__span span, int64_t turns, int64_t before)
{
    mull__span round = mull__span_sum(l->all_retries, with_call(span, l->walks->handler_ms));
    l->age.low_ms = mull__later(l->age.low_ms, mull__longer(round.low_ms, turns));
    if (l->age.high_ms != before)
        l->age.high_ms = mull__later(l->age.high_ms, mull__longer(round.high_ms, turns));
    l->calls += turns * (l->course.retry->attempts + 1);
    l->redeliveries += turns;
}

/* give_up is for delays that grow so slowly that walking them would take too long: what holds of
 * all that may come. */
static void give_up(line *l)
{
    const mull__walks *w = l->walks;
    int64_t wait_ms = mull__later(mull__longest_wait_ms(&l->course), w->handler_ms);
    l->extent.rough = 1;
    l->extent.calls = MULL__FOREVER;
    if (l->age.low_ms < l->extent.shortest_ms)
        l->extent.shortest_ms = l->age.low_ms;
    l->extent.longest_ms = MULL__FOREVER;
    if (w->max_attempts != MULL__OFF) {
        l->extent.calls = w->max_attempts;
        l->extent.longest_ms =
            mull__later(l->age.high_ms, mull__longer(wait_ms, w->max_attempts - l->calls));
    }
    if (w->max_age_ms != MULL__OFF)
        l->extent.longest_ms =
            smaller(l->extent.longest_ms,
                    mull__later(mull__later(w->max_age_ms, wait_ms), l->all_retries.high_ms));
}

static void walk(line *l)
{
    for (int turns = 0; turns < MAX_TURNS; turns++) {
        int64_t equal = 1, before = l->age.high_ms;
        mull__span span = {0, 0};
        if (may_redeliver(l)) {
            span = mull__tier_span(l->course.redeliver, l->redeliveries + 1);
            equal = equal_steps(l->course.redeliver, l->redeliveries + 1);
        }
        if (!turn(l, span))
            return;
        if (equal == 1)
            continue;
        int64_t quiet = quiet_turns(l, span, equal == MULL__FOREVER ? equal : equal - 1, before);
        if (quiet == MULL__FOREVER) {
            never_ends(l);
            return;
        }
        leap(l, span, quiet, before);
    }
    give_up(l);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int64_t longest_step_ms(const mull__plain_tier *tier)
{
    if (tier->attempts == MULL_UNLIMITED)
        return mull__tier_span(tier, MULL__FOREVER).high_ms;
    int64_t longest_ms = 0;
    for (int64_t step = 1; step <= tier->attempts; step++) {
        int64_t ms = mull__tier_span(tier, step).high_ms;
        longest_ms = ms > longest_ms ? ms : longest_ms;
    }
    return longest_ms;
}

int64_t mull__longest_wait_ms(const mull__course *course)
{
    int64_t retry_ms = longest_step_ms(course->retry);
    int64_t redeliver_ms = longest_step_ms(course->redeliver);
    return retry_ms > redeliver_ms ? retry_ms : redeliver_ms;
}

int mull__drifts(const mull__course *course, const mull__walks *walks)
{
    return walks->max_age_ms != MULL__OFF &&
           ((course->retry->attempts && course->retry->jitter_kind == MULL__JITTER_DECORRELATED) ||
            (course->redeliver->attempts &&
             course->redeliver->jitter_kind == MULL__JITTER_DECORRELATED));
}

mull__extent mull__extent_overridden(const mull__walks *walks)
{
    if (walks->max_attempts == MULL__OFF)
        return (mull__extent){MULL__FOREVER, 0, MULL__FOREVER, 0};
    int64_t wait_ms = MULL__DELAY_MAX_MS;
    for (size_t i = 0; i < walks->count; i++) {
        int64_t ms = mull__longest_wait_ms(&walks->courses[i]);
        wait_ms = ms > wait_ms ? ms : wait_ms;
    }
    int64_t longest_ms =
        mull__longer(mull__later(wait_ms, walks->handler_ms), walks->max_attempts - 1);
    return (mull__extent){walks->max_attempts, 0, longest_ms, 0};
}

mull__extent mull__extent_of_course(const mull__course *course, const mull__walks *walks)
{
    line l = {
        .walks = walks,
        .course = *course,
        .calls = 1,
        .extent = {0, MULL__FOREVER, 0, mull__drifts(course, walks)},
    };
    l.all_retries = retries(&l, course->retry->attempts);
    walk(&l);
    return l.extent;
}
