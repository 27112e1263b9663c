/* bounds_calls.c: the most calls that fit in before max_age.
 *
 * Calls cost time, and only walks that are young enough are redelivered; so it may pay to leave
 * retries out for the sake of one more redelivery. Round by round, the least age is kept for each
 * number of calls. Of these go the ones that could not come to more than is known to be possible,
 * even if all that comes cost as little for each call as the best of rounds. */
#include "base/alloc.h"
#include "bounds_paths.h"

#include <string.h>

/* front is, for `least` calls and each number after it, the least age in which a message can have
 * failed so often, the last time at the first attempt of a round; MULL__FOREVER: it can't. */
typedef struct front {
    int64_t *age_ms;
    int64_t least;
    size_t count, room;
} front;

typedef struct chooser {
    mull__paths *paths;
    int64_t *retries_ms; /* [attempt]: how long it takes to get there from the first one */
    double *rate;        /* [round]: the most calls for a millisecond, in this round or any later */
    int64_t most;        /* calls that are known to be possible */
    int64_t beyond;      /* or would be, if walks that weren't followed went as well as can be */
} chooser;

/* ---- What a round can give ------------------------------------------------------------------- */

static void add_retries(chooser *c)
{
    for (int64_t attempt = 1; attempt < c->paths->calls; attempt++)
        c->retries_ms[attempt + 1] =
            mull__later(c->retries_ms[attempt], mull__retry_low_ms(c->paths, attempt));
}

/* round_ms is how long it takes from the first failure of a round to that of the next, by way of a
 * redelivery after `attempt`; MULL__FOREVER: none is possible there. */
static int64_t round_ms(const chooser *c, int64_t attempt)
{
    const mull__ages *waits = mull__redelivery(c->paths, attempt);
    return waits ? mull__later(c->retries_ms[attempt], waits->at[0].low_ms) : MULL__FOREVER;
}

/* FREE is a rate: calls that take no time. */
#define FREE 1e300

/* rate_now is the most calls for a millisecond in the round that the paths are at, and the attempt
 * that has it; 0: no redelivery is possible. */
static double rate_now(const chooser *c, int64_t *attempt_of)
{
    double best = 0;
    c->paths->work += 3 * (c->paths->calls - c->paths->exit + 1);
    for (int64_t attempt = c->paths->exit; attempt <= c->paths->calls; attempt++) {
        int64_t ms = round_ms(c, attempt);
        double rate = ms == MULL__FOREVER ? 0 : ms == 0 ? FREE : (double)attempt / (double)ms;
        if (rate >= best && rate > 0) {
            best = rate;
            *attempt_of = attempt;
        }
    }
    return best;
}

/* find_rates goes backwards, since delays may become less from one round to the next as long as
 * they come from lists. Those of unlimited tiers never do. */
static void find_rates(chooser *c)
{
    int64_t attempt = 0;
    double best = 0;
    for (int64_t round = c->paths->rounds; round >= 0; round--) {
        mull__paths_round(c->paths, round);
        double now = rate_now(c, &attempt);
        best = now > best ? now : best;
        c->rate[round] = best;
    }
}

/* at_most is how many calls a message can come to that has failed `calls` times when it is `age_ms`
 * old, at the first attempt of a round: every round but the last that ends in a redelivery takes
 * its time before max_age. */
static int64_t at_most(const chooser *c, int64_t calls, int64_t age_ms, int64_t round)
{
    const mull__paths *p = c->paths;
    int64_t last = calls + p->calls - 1;
    int64_t rounds = p->rounds - round;
    double rate = c->rate[rounds > 0 ? round : p->rounds];
    double more = rate * (double)(p->max_age_ms - age_ms) * (1 + 1e-9) + (double)p->calls + 1;
    int64_t bound = rate < FREE && more < 0x1p60 ? last + (int64_t)more : MULL__FOREVER;
    if (!p->unlimited && last + rounds * p->calls < bound)
        bound = last + rounds * p->calls;
    return bound;
}

/* ---- What is possible in any case ------------------------------------------------------------ */

static void found(chooser *c, int64_t calls)
{
    if (calls > c->most)
        c->most = calls;
}

/* try_plainly walks by a simple rule: always as many retries as there can be, or always what gives
 * the most calls for the time. */
static void try_plainly(chooser *c, int by_rate)
{
    mull__paths *p = c->paths;
    int64_t calls = 1, age_ms = 0, enough = p->work + MULL__MOST_WORK / 4;
    for (int64_t round = 0; p->work < enough; round++) {
        int64_t attempt = p->calls;
        mull__paths_round(p, round);
        if (by_rate)
            rate_now(c, &attempt);
        int64_t ms = round_ms(c, attempt);
        found(c, calls + p->calls - 1);
        if (ms == MULL__FOREVER || mull__later(age_ms, c->retries_ms[attempt]) > p->max_age_ms)
            return;
        calls += attempt;
        age_ms = mull__later(age_ms, ms);
    }
}

/* takes_no_time: from some round on, rounds without end take no time at all. */
static int takes_no_time(chooser *c)
{
    mull__paths_round(c->paths, MULL__FOREVER - 1);
    for (int64_t attempt = c->paths->exit; attempt <= c->paths->calls; attempt++)
        if (round_ms(c, attempt) == 0)
            return 1;
    return 0;
}

/* ---- Round by round -------------------------------------------------------------------------- */

static void reach(front *next, int64_t calls, int64_t age_ms)
{
    int64_t *least = &next->age_ms[calls - next->least];
    if (age_ms < *least)
        *least = age_ms;
}

/* follow goes through the attempts of a round. */
static void follow(chooser *c, front *next, int64_t calls, int64_t age_ms)
{
    const mull__paths *p = c->paths;
    for (int64_t attempt = p->exit; attempt <= p->calls; attempt++) {
        if (mull__later(age_ms, c->retries_ms[attempt]) > p->max_age_ms)
            break;
        int64_t ms = round_ms(c, attempt);
        if (ms != MULL__FOREVER)
            reach(next, calls + attempt, mull__later(age_ms, ms));
    }
    c->paths->work += 2 * (p->calls - p->exit + 1);
}

/* drop leaves out what can't come to more than is known, and what comes later with fewer calls. */
static void drop(chooser *c, front *f, int64_t round)
{
    int64_t earliest_ms = MULL__FOREVER;
    size_t first = f->count, end = 0;
    for (size_t i = f->count; i-- > 0;) {
        int64_t age_ms = f->age_ms[i], calls = f->least + (int64_t)i;
        if (age_ms != MULL__FOREVER)
            found(c, calls + c->paths->calls - 1);
        if (age_ms >= earliest_ms || age_ms > c->paths->max_age_ms ||
            at_most(c, calls, age_ms, round) <= c->most) {
            f->age_ms[i] = MULL__FOREVER;
            continue;
        }
        earliest_ms = age_ms;
        first = i;
        end = end ? end : i + 1;
    }
    f->count = end > first ? end - first : 0;
    memmove(f->age_ms, f->age_ms + first, f->count * sizeof *f->age_ms);
    f->least += (int64_t)first;
}

/* make_room is for `count` numbers of calls, from `least` on, none of which is reached so far. */
static int make_room(front *f, int64_t least, size_t count, const mull__paths *p)
{
    f->least = least;
    f->count = count;
    if (count > f->room) {
        int64_t *grown = mull__grow(p->allocator, f->age_ms, 2 * count, sizeof *grown);
        if (!grown)
            return MULL_ENOMEM;
        f->age_ms = grown;
        f->room = 2 * count;
    }
    for (size_t i = 0; i < count; i++)
        f->age_ms[i] = MULL__FOREVER;
    return MULL_OK;
}

/* give_up takes what walks that are left could come to at best. */
static void give_up(chooser *c, const front *f, int64_t round)
{
    for (size_t i = 0; i < f->count; i++) {
        if (f->age_ms[i] == MULL__FOREVER)
            continue;
        int64_t bound = at_most(c, f->least + (int64_t)i, f->age_ms[i], round);
        if (bound > c->beyond)
            c->beyond = bound;
    }
}

static int walk(chooser *c, front *now, front *next)
{
    mull__paths *p = c->paths;
    now->age_ms[0] = 0;
    for (int64_t round = 0;; round++) {
        drop(c, now, round);
        if (now->count == 0)
            break;
        if (p->work > MULL__MOST_WORK) {
            give_up(c, now, round);
            return MULL_OK;
        }
        mull__paths_round(p, round);
        if (make_room(next, now->least + p->exit, now->count + (size_t)(p->calls - p->exit), p))
            return MULL_ENOMEM;
        for (size_t i = 0; i < now->count; i++)
            if (now->age_ms[i] != MULL__FOREVER)
                follow(c, next, now->least + (int64_t)i, now->age_ms[i]);
        p->work += 5 * (int64_t)next->count + 50;
        front was = *now;
        *now = *next;
        *next = was;
    }
    return MULL_OK;
}

static int choose(chooser *c)
{
    front now = {0}, next = {0};
    int status = make_room(&now, 1, 1, c->paths);
    if (status == MULL_OK)
        status = walk(c, &now, &next);
    mull__free(c->paths->allocator, now.age_ms);
    mull__free(c->paths->allocator, next.age_ms);
    return status;
}

/* limit is where walks are cut short, so that more needn't be looked for. */
static int64_t limit(const chooser *c)
{
    int64_t most = c->paths->walks->max_attempts;
    return most == MULL__OFF ? MULL__FOREVER : most;
}

static int find_most(chooser *c)
{
    add_retries(c);
    if (c->paths->unlimited && takes_no_time(c)) {
        c->most = MULL__FOREVER;
        return MULL_OK;
    }
    find_rates(c);
    try_plainly(c, 0);
    if (c->most < limit(c))
        try_plainly(c, 1);
    return c->most < limit(c) ? choose(c) : MULL_OK;
}

int mull__calls_of_walks(mull__extent *extent, mull__paths *p)
{
    chooser c = {.paths = p};
    c.retries_ms = mull__zalloc(p->allocator, (size_t)p->calls + 1, sizeof *c.retries_ms);
    c.rate = mull__zalloc(p->allocator, (size_t)p->rounds + 1, sizeof *c.rate);
    int status = c.retries_ms && c.rate ? MULL_OK : MULL_ENOMEM;
    p->work = 0;
    if (status == MULL_OK)
        status = find_most(&c);
    mull__free(p->allocator, c.rate);
    mull__free(p->allocator, c.retries_ms);
    extent->calls = c.most;
    if (c.most < c.beyond && c.most < limit(&c)) {
        extent->calls = c.beyond;
        extent->rough = 1;
    }
    return status;
}
