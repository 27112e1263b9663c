/* evaluate.h: the second stage of a decision: the number of a type, a site, counters and an error
 * become a verdict. Two paths, which agree: what the fast one decides, the slow one decides the
 * same. */
#ifndef MULL__EVALUATE_H
#define MULL__EVALUATE_H

#include "base/compiler.h"
#include "condition.h"
#include "delay.h"
#include "match.h"
#include "resolve.h"

/* ---- What a verdict says --------------------------------------------------------------------- */

/* mull__set writes all of a verdict but who decided; mull__go_on for another call of the handler,
 * at a step of this tier. */
static MULL__IN_PLACE void mull__set(mull_verdict *verdict, mull_action action, mull_reason reason,
                                     mull_tier tier, int64_t delay_ms, int64_t step, int64_t of)
{
    verdict->action = action;
    verdict->reason = reason;
    verdict->tier = tier;
    verdict->fallback = MULL_FALLBACK_NONE;
    verdict->delay_ms = delay_ms;
    verdict->step = step;
    verdict->of = of;
    verdict->queue = verdict->note = NULL;
}

static MULL__IN_PLACE void mull__go_on(mull_verdict *verdict, mull_tier due, int64_t delay_ms,
                                       int64_t step, int64_t of)
{
    mull_action action = due == MULL_TIER_RETRY ? MULL_RETRY : MULL_REDELIVER;
    mull__set(verdict, action, MULL_REASON_NONE, due, delay_ms, step, of);
}

/* mull__facts_of are exactly those that the language names, so that the same failure always gets
 * the same delay. */
static MULL__IN_PLACE mull__facts mull__facts_of(const mull_failure *failure, mull_tier due,
                                                 int64_t step, uint64_t consumer_hash)
{
    return (mull__facts){
        .chance = failure->flags & MULL_HAS_CHANCE ? failure->chance
                                                   : mull__chance_by_id(failure->message),
        .consumer_hash = consumer_hash,
        .seed = failure->seed,
        .flags = failure->flags,
        .tier = due,
        .redeliveries = failure->redeliveries,
        .step = step,
    };
}

/* ---- The fast path ---------------------------------------------------------------------------
 *
 * It takes failures that aren't complete, or without an error, for one that has only its type. */

/* mull__is_within: from 1 to `most`. */
static MULL__IN_PLACE int mull__is_within(int64_t number, int64_t most)
{
    return (uint64_t)number - 1 < (uint64_t)most;
}

/* mull__is_plain: nothing but the first rule and its chain has a say in the verdict. */
static MULL__IN_PLACE int mull__is_plain(const mull_failure *failure, const mull__site *site)
{
    return !(failure->flags & ~(uint32_t)MULL_HAS_CHANCE) &&
           !(failure->error && failure->error->lineage_count) &&
           mull__is_within(failure->deliveries, site->deliveries) &&
           mull__is_within(failure->calls, site->calls) &&
           (failure->redeliveries | failure->age_ms) >= 0;
}

/* mull__fast_step is the verdict by a rule, of whose tier the step is worked out ahead. */
static MULL__IN_PLACE void mull__fast_step(const mull_rule *source, const mull__lot *lots,
                                           mull_tier due, int64_t step, const mull__site *site,
                                           const mull_failure *failure, mull_verdict *verdict)
{
    const mull__lot *lot = &lots[step - 1];
    const mull__facts facts = mull__facts_of(failure, due, step, site->consumer_hash);
    uint64_t hash = mull__chance_of(&facts, failure->redeliveries, step);
    mull__go_on(verdict, due, mull__draw(lot->low_ms, lot->choices, hash), step, lot->of);
    verdict->rule = *source;
}

/* These are for mull__fast_path: the tests of a matcher of equalities pass; a redelivery. */
int mull__are_equal(const mull__plain_matcher *matcher, const mull_error *error);
int mull__fast_redelivery(const mull__rule *rule, const mull__site *site,
                          const mull_failure *failure, mull_verdict *verdict);

/* mull__fast_path: the first rule for the error's type says retry or redeliver. Returns 0 to fall
 * back to the slow path, and then has written nothing; both must agree. */
static MULL__IN_PLACE int mull__fast_path(const mull__table *table, mull__target target,
                                          const mull_failure *failure, mull_verdict *verdict)
{
    const mull__site *site = target.site;
    const mull__rule *rule;
    if (!mull__is_plain(failure, site))
        return 0;
    for (uint32_t type = target.type; !(rule = mull__first_rule(site->rules, type));
         type = table->types[type].parent)
        if (type == MULL__ERROR_TYPE || table->types[type].unrecoverable)
            return 0;
    if (rule->fast == MULL__NOT_FAST ||
        (rule->fast == MULL__FAST_IF_EQUAL && !mull__are_equal(&rule->matcher, failure->error)))
        return 0;
    if (!MULL__MOSTLY(mull__is_within(failure->attempt, rule->retry.lot_count)))
        return mull__fast_redelivery(rule, site, failure, verdict);
    mull__fast_step(&rule->source, rule->retry.lots, MULL_TIER_RETRY, failure->attempt, site,
                    failure, verdict);
    return 1;
}

/* mull__fast_retry is what mull__fast_path mostly comes to. It calls no function, which is a tenth
 * of a decision by ids. 0: mull__fast_path is to be asked. */
static MULL__IN_PLACE int mull__fast_retry(mull__target target, const mull_failure *failure,
                                           mull_verdict *verdict)
{
    const mull__rules *rules = target.site->rules;
    if (!mull__is_plain(failure, target.site) || !failure->flags)
        return 0;
    const mull__group *group = &rules->groups[target.type & rules->group_mask];
    if (group->type != target.type || !mull__is_within(failure->attempt, group->fast_retries))
        return 0;
    mull__fast_step(&group->source, group->lots, MULL_TIER_RETRY, failure->attempt, target.site,
                    failure, verdict);
    return 1;
}

/* ---- The slow path --------------------------------------------------------------------------- */

/* mull__slow_path is for all failures, complete as for mull__judge. */
void mull__slow_path(const mull__eval_context *context, mull__target target,
                     const mull_failure *failure, mull_verdict *verdict);

#endif
