/* bounds.c: the range of a single chain, which is a straight line: each round is all its retries
 * and one redelivery. Rounds that take equally long are gone through at once. */
#include "bounds.h"

enum { RUN_NS = 150, STEP_NS = 30 };

/* line is where a message is: at the first failure of a round. */
typedef struct line {
    const mull__chain_set *chain_set;
    const mull__chain *chain;
    int64_t max_age_ms;     /* MULL__FOREVER: none */
    mull__ms_range retries; /* all of a round together, with their calls */
    int64_t redeliveries;
    mull__ms_range age;
    mull__range range; /* of the ends so far */
} line;

/* A line has most calls where it ends last, so that each end takes the place of those before. */
static void end_at(line *l, int64_t calls, int64_t low_ms, int64_t high_ms)
{
    l->range.calls = calls;
    l->range.shortest_ms = mull__smaller(l->range.shortest_ms, low_ms);
    l->range.longest_ms = mull__greater(l->range.longest_ms, high_ms);
}

static mull__ms_range retries(const line *l, int64_t count)
{
    mull__ms_range sum = {0, 0};
    for (int64_t step = 1; step <= count; step++)
        sum = mull__span_sum(
            sum, mull__with_call(l->chain_set, mull__tier_ms_range(l->chain->retry, step)));
    return sum;
}

/* equal_steps is how many steps from `step` on have its span; MULL__FOREVER: all that come, which
 * only those of an unlimited tier are asked for. */
static int64_t equal_steps(const mull__tier_config *tier, int64_t step)
{
    int is_last =
        tier->attempts == MULL_UNLIMITED &&
        mull__span_same(mull__tier_ms_range(tier, step), mull__tier_ms_range(tier, MULL__FOREVER));
    return is_last ? MULL__FOREVER : 1;
}

/* fits is how many of the ages `ms`, `ms + step_ms`, ... are no more than a limit. */
static int64_t fits(int64_t ms, int64_t step_ms, int64_t limit_ms)
{
    if (ms > limit_ms)
        return 0;
    int no_end = step_ms == 0 || limit_ms == MULL__FOREVER;
    return no_end ? MULL__FOREVER : (limit_ms - ms) / step_ms + 1;
}

/* run goes through `count` rounds, each with the same wait for its redelivery. The line ends in one
 * that it can only come out of too old, and may end in each that it may: there the older part of
 * the span ends, and the younger one goes on. 0: it ended, or never does. */
static int run(line *l, mull__ms_range wait, int64_t count)
{
    int64_t max_ms = l->max_age_ms, calls = l->chain->retry->attempts + 1;
    mull__ms_range out = mull__span_sum(l->age, l->retries);
    mull__ms_range round = mull__span_sum(l->retries, wait);
    int64_t done = mull__smaller(count, fits(out.low_ms, round.low_ms, max_ms));
    int64_t young = fits(out.high_ms, round.high_ms, max_ms);
    if (young < done)
        end_at(l, 0, max_ms + 1, mull__later(out.high_ms, mull__longer(round.high_ms, young)));
    if (young < done - 1 && round.high_ms > 0)
        end_at(l, 0, max_ms + 1, mull__later(max_ms, round.high_ms));
    if (done == MULL__FOREVER) {
        end_at(l, MULL__FOREVER, MULL__FOREVER, young < done ? 0 : MULL__FOREVER);
        return 0;
    }
    l->age.low_ms = mull__later(l->age.low_ms, mull__longer(round.low_ms, done));
    l->age.high_ms = young < done ? mull__later(max_ms, wait.high_ms)
                                  : mull__later(l->age.high_ms, mull__longer(round.high_ms, done));
    l->redeliveries += done;
    if (done == count)
        return 1;
    out = mull__span_sum(l->age, l->retries);
    end_at(l, mull__longer(calls, l->redeliveries + 1), out.low_ms, out.high_ms);
    return 0;
}

/* give_up is for delays that grow so slowly that going through them would take too long: what holds
 * of all that may come. */
static void give_up(line *l)
{
    int64_t shortest_ms = mull__smaller(l->range.shortest_ms, l->age.low_ms);
    l->range = mull__range_estimate(l->chain_set);
    l->range.shortest_ms = shortest_ms;
}

static void follow(line *l)
{
    const mull__tier_config *tier = l->chain->redeliver;
    int64_t calls = l->chain->retry->attempts + 1, last_calls = calls;
    int64_t most = l->chain_set->max_attempts;
    int64_t rounds = tier->attempts == MULL_UNLIMITED ? MULL__FOREVER : tier->attempts;
    if (most != MULL__OFF && (most - 1) / calls <= rounds) {
        rounds = (most - 1) / calls;
        last_calls = most - rounds * calls;
    }
    while (l->redeliveries < rounds) {
        int64_t step = l->redeliveries + 1, equal = equal_steps(tier, step);
        if (rounds != MULL__FOREVER)
            equal = mull__smaller(equal, rounds - l->redeliveries);
        if (!run(l, mull__with_call(l->chain_set, mull__tier_ms_range(tier, step)), equal))
            return;
        if (!mull__budget_take(l->chain_set->effort, RUN_NS)) {
            give_up(l);
            return;
        }
    }
    mull__ms_range age = mull__span_sum(l->age, retries(l, last_calls - 1));
    end_at(l, rounds * calls + last_calls, age.low_ms, age.high_ms);
}

mull__range mull__range_of_chain(const mull__chain_set *chain_set)
{
    const mull__chain *chain = chain_set->chains;
    line l = {
        .chain_set = chain_set,
        .chain = chain,
        .max_age_ms = chain_set->max_age_ms == MULL__OFF ? MULL__FOREVER : chain_set->max_age_ms,
        .range = {0, MULL__FOREVER, 0, mull__delays_are_correlated(chain, chain_set), 0},
    };
    if (mull__budget_take(chain_set->effort, STEP_NS * chain->retry->attempts)) {
        l.retries = retries(&l, chain->retry->attempts);
        follow(&l);
    } else {
        give_up(&l);
    }
    return l.range;
}

/* ---- Of any chains -------------------------------------------------------------------------- */

/* Delays that are computed never become less. */
int64_t mull__longest_step_ms(const mull__tier_config *tier)
{
    int64_t longest_ms = 0;
    if (tier->attempts == MULL_UNLIMITED)
        return mull__tier_ms_range(tier, MULL__FOREVER).high_ms;
    for (int64_t step = tier->delays ? 1 : tier->attempts; step && step <= tier->attempts; step++)
        longest_ms = mull__greater(longest_ms, mull__tier_ms_range(tier, step).high_ms);
    return longest_ms;
}

static int is_decorrelated(const mull__tier_config *tier)
{
    return tier->attempts && tier->jitter_kind == MULL__JITTER_DECORRELATED;
}

int mull__delays_are_correlated(const mull__chain *chain, const mull__chain_set *chain_set)
{
    return (chain_set->max_age_ms != MULL__OFF || chain_set->deadline_ms != MULL__OFF) &&
           (is_decorrelated(chain->retry) || is_decorrelated(chain->redeliver));
}

/* outermost is the most of anything that any of the chains has. */
typedef struct outermost {
    int64_t retries, redeliveries, wait_ms; /* redeliveries: MULL__FOREVER where unlimited */
} outermost;

static outermost outermost_of(const mull__chain_set *chain_set)
{
    outermost most = {0};
    for (size_t i = 0; i < chain_set->count; i++) {
        const mull__chain *chain = &chain_set->chains[i];
        int is_unlimited = chain->redeliver->attempts == MULL_UNLIMITED;
        most.retries = mull__greater(most.retries, chain->retry->attempts);
        most.redeliveries = mull__greater(
            most.redeliveries, is_unlimited ? MULL__FOREVER : chain->redeliver->attempts);
        most.wait_ms = mull__greater(most.wait_ms, mull__longest_step_ms(chain->retry));
        most.wait_ms = mull__greater(most.wait_ms, mull__longest_step_ms(chain->redeliver));
    }
    return most;
}

/* latest_end is that of a call that begins at the deadline; MULL__FOREVER: there is none. */
static int64_t latest_end(const mull__chain_set *chain_set)
{
    return chain_set->deadline_ms == MULL__OFF
               ? MULL__FOREVER
               : mull__later(chain_set->deadline_ms, chain_set->handler_ms);
}

int64_t mull__last_call_ms(const mull__chain_set *chain_set, const mull__range *range)
{
    int64_t deadline_ms = chain_set->deadline_ms;
    if (range->longest_ms != MULL__FOREVER)
        return mull__greater(0, range->longest_ms - chain_set->handler_ms);
    return deadline_ms == MULL__OFF ? MULL__FOREVER : deadline_ms;
}

mull__range mull__range_overridden(const mull__chain_set *chain_set)
{
    mull__range range = {.calls = MULL__FOREVER, .longest_ms = latest_end(chain_set)};
    if (chain_set->max_attempts == MULL__OFF)
        return range;
    int64_t wait_ms = mull__greater(MULL__DELAY_MAX_MS, outermost_of(chain_set).wait_ms);
    int64_t longest_ms =
        mull__longer(mull__later(wait_ms, chain_set->handler_ms), chain_set->max_attempts - 1);
    range.calls = chain_set->max_attempts;
    range.longest_ms = mull__smaller(range.longest_ms, longest_ms);
    return range;
}

/* After max_age the message may have one more redelivery under way, and a round's retries. */
mull__range mull__range_estimate(const mull__chain_set *chain_set)
{
    outermost most = outermost_of(chain_set);
    int64_t wait_ms = mull__later(most.wait_ms, chain_set->handler_ms);
    int64_t rounds = mull__later(most.redeliveries, 1);
    mull__range range = {.calls = mull__longer(rounds, most.retries + 1), .rough = 1};
    if (chain_set->max_attempts != MULL__OFF)
        range.calls = mull__smaller(range.calls, chain_set->max_attempts);
    range.longest_ms = latest_end(chain_set);
    if (range.calls != MULL__FOREVER)
        range.longest_ms = mull__smaller(range.longest_ms, mull__longer(wait_ms, range.calls - 1));
    if (chain_set->max_age_ms != MULL__OFF)
        range.longest_ms =
            mull__smaller(range.longest_ms, mull__later(chain_set->max_age_ms,
                                                        mull__longer(wait_ms, most.retries + 1)));
    return range;
}
