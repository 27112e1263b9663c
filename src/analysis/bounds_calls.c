/* bounds_calls.c: the most calls that fit in before max_age and deadline.
 *
 * Calls cost time, and only walks that are young enough go on; so it may pay to leave
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
    size_t count;
} front;

typedef struct chooser {
    mull__paths *paths;
    int64_t late_ms; /* nothing that is older is redelivered */
    double *rate;    /* [round]: the most calls for a millisecond, in this round or any later */
    int64_t most;    /* calls that are known to be possible */
    int64_t beyond;  /* or would be, if walks that weren't followed went as well as can be */
} chooser;

/* ---- What a round can give ------------------------------------------------------------------- */

/* FREE is a rate: calls that take no time. */
#define FREE 1e300

/* rate_now is the most calls for a millisecond in the round that the paths are at, and the attempt
 * that has it; 0: no redelivery is possible. */
static double rate_now(mull__paths *p, int64_t *attempt_of)
{
    double best = 0;
    p->work += 3 * (p->calls - p->exit + 1);
    for (int64_t attempt = p->exit; attempt <= p->calls; attempt++) {
        int64_t ms = mull__round_ms(p, attempt);
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
    int64_t attempt;
    double best = 0;
    for (int64_t round = c->paths->rounds; round >= 0; round--) {
        mull__paths_round(c->paths, round);
        double now = rate_now(c->paths, &attempt);
        best = now > best ? now : best;
        c->rate[round] = best;
    }
}

/* at_most is how many calls a message can come to that has failed `calls` times when it is `age_ms`
 * old, at the first attempt of a round: every round but the last that ends in a redelivery takes
 * its time before it is late. */
static int64_t at_most(const chooser *c, int64_t calls, int64_t age_ms, int64_t round)
{
    const mull__paths *p = c->paths;
    int64_t last = calls + p->calls - 1;
    int64_t rounds = p->rounds - round;
    double rate = c->rate[rounds > 0 ? round : p->rounds];
    double more = rate * (double)(c->late_ms - age_ms) * (1 + 1e-9) + (double)p->calls + 1;
    int64_t bound = rate < FREE && more < 0x1p60 ? last + (int64_t)more : MULL__FOREVER;
    if (!p->unlimited && last + rounds * p->calls < bound)
        bound = last + rounds * p->calls;
    return bound;
}

/* is_late: at this attempt of a round that begins at an age nothing is redelivered any more. */
static int is_late(const chooser *c, int64_t attempt, int64_t age_ms)
{
    return mull__later(age_ms, c->paths->attempts[attempt].since_ms) > c->late_ms;
}

/* calls_with is how many calls there are with all retries of a round that begins at an age, after
 * so many with its first: up to the last one that begins no later than the deadline. */
static int64_t calls_with(const mull__paths *p, int64_t calls, int64_t age_ms)
{
    int64_t from = 1, to = p->calls;
    while (from < to) {
        int64_t middle = from + (to - from + 1) / 2;
        if (mull__later(age_ms, p->attempts[middle].since_ms) <= p->deadline_ms)
            from = middle;
        else
            to = middle - 1;
    }
    return calls + from - 1;
}

/* ---- What is possible in any case ------------------------------------------------------------ */

/* try_plainly walks by a simple rule: always as many retries as there can be, or always what gives
 * the most calls for the time. */
static void try_plainly(chooser *c, int by_rate)
{
    mull__paths *p = c->paths;
    int64_t calls = 1, age_ms = 0, enough = p->work + p->most_work / 4;
    for (int64_t round = 0; p->work < enough; round++) {
        int64_t attempt = p->calls;
        mull__paths_round(p, round);
        if (by_rate)
            rate_now(p, &attempt);
        int64_t ms = mull__round_ms(p, attempt);
        c->most = mull__greater(c->most, calls_with(p, calls, age_ms));
        if (ms == MULL__FOREVER || is_late(c, attempt, age_ms))
            return;
        calls += attempt;
        age_ms = mull__later(age_ms, ms);
        if (age_ms > p->deadline_ms)
            return;
    }
}

/* takes_no_time: from some round on, rounds without end take no time at all. */
static int takes_no_time(mull__paths *p)
{
    int64_t attempt;
    mull__paths_round(p, MULL__FOREVER - 1);
    return p->unlimited && rate_now(p, &attempt) >= FREE;
}

/* ---- Round by round -------------------------------------------------------------------------- */

/* follow goes through the attempts of a round. */
static void follow(const chooser *c, front *next, int64_t calls, int64_t age_ms)
{
    mull__paths *p = c->paths;
    for (int64_t attempt = p->exit; attempt <= p->calls; attempt++) {
        if (is_late(c, attempt, age_ms))
            break;
        int64_t *least = &next->age_ms[calls + attempt - next->least];
        int64_t then_ms = mull__later(age_ms, mull__round_ms(p, attempt));
        if (then_ms <= p->deadline_ms)
            *least = mull__smaller(*least, then_ms);
    }
    p->work += 2 * (p->calls - p->exit + 1);
}

/* drop leaves out what can't come to more than is known, and what comes later with fewer calls. */
static void drop(chooser *c, front *f, int64_t round)
{
    int64_t earliest_ms = MULL__FOREVER;
    size_t first = f->count, end = 0;
    for (size_t i = f->count; i-- > 0;) {
        int64_t age_ms = f->age_ms[i], calls = f->least + (int64_t)i;
        if (age_ms != MULL__FOREVER)
            c->most = mull__greater(c->most, calls_with(c->paths, calls, age_ms));
        if (age_ms >= earliest_ms || age_ms > c->late_ms ||
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
    int64_t *grown = mull__grow(p->allocator, f->age_ms, count, sizeof *grown);
    if (!grown)
        return MULL_ENOMEM;
    *f = (front){grown, least, count};
    for (size_t i = 0; i < count; i++)
        grown[i] = MULL__FOREVER;
    return MULL_OK;
}

/* walk gives up where it takes too long, and takes what walks that are left could come to at best.
 */
static int walk(chooser *c, front *now, front *next)
{
    mull__paths *p = c->paths;
    if (make_room(now, 1, 1, p))
        return MULL_ENOMEM;
    now->age_ms[0] = 0;
    for (int64_t round = 0;; round++) {
        drop(c, now, round);
        int gives_up = p->work > p->most_work;
        mull__paths_round(p, round);
        if (!gives_up && now->count > 0 &&
            make_room(next, now->least + p->exit, now->count + (size_t)(p->calls - p->exit), p))
            return MULL_ENOMEM;
        for (size_t i = 0; i < now->count; i++) {
            int64_t age_ms = now->age_ms[i], calls = now->least + (int64_t)i;
            if (age_ms != MULL__FOREVER && gives_up)
                c->beyond = mull__greater(c->beyond, at_most(c, calls, age_ms, round));
            else if (age_ms != MULL__FOREVER)
                follow(c, next, calls, age_ms);
        }
        if (gives_up || now->count == 0)
            return MULL_OK;
        p->work += 5 * (int64_t)next->count + 50;
        front was = *now;
        *now = *next;
        *next = was;
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

int mull__calls_of_paths(mull__range *range, mull__paths *p)
{
    int64_t cut = p->chain_set->max_attempts, enough = cut == MULL__OFF ? MULL__FOREVER : cut;
    range->calls = MULL__FOREVER;
    if (takes_no_time(p))
        return MULL_OK;
    chooser c = {.paths = p, .late_ms = mull__smaller(p->max_age_ms, p->deadline_ms)};
    front now = {0}, next = {0};
    int status = MULL_OK;
    c.rate = mull__zalloc(p->allocator, (size_t)p->rounds + 1, sizeof *c.rate);
    if (!c.rate)
        return MULL_ENOMEM;
    find_rates(&c);
    try_plainly(&c, 0);
    if (c.most < enough)
        try_plainly(&c, 1);
    if (c.most < enough) /* else no more needs to be looked for */
        status = walk(&c, &now, &next);
    mull__free(p->allocator, now.age_ms);
    mull__free(p->allocator, next.age_ms);
    mull__free(p->allocator, c.rate);
    range->rough |= c.most < c.beyond && c.most < enough;
    range->calls = c.most < enough ? mull__greater(c.most, c.beyond) : c.most;
    return status;
}
