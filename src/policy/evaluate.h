/* evaluate.h: the second stage of a decision: the number of a type, a site, counters and an error
 * become a verdict. Two paths, which agree: what the fast one decides, the slow one decides the
 * same. */
#ifndef MULL__EVALUATE_H
#define MULL__EVALUATE_H

#include "base/compiler.h"
#include "delay.h"
#include "field_match.h"
#include "resolve.h"
#include "rule_match.h"

/* ---- What a verdict says --------------------------------------------------------------------- */

/* mull__verdict_set writes all of a verdict but who decided; mull__verdict_another_call for another
 * call of the handler, at a step of this tier. */
static MULL__ALWAYS_INLINE void mull__verdict_set(mull_verdict *verdict, mull_action action,
                                                  mull_reason reason, mull_tier tier,
                                                  int64_t delay_ms, int64_t step, int64_t of)
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

static MULL__ALWAYS_INLINE void mull__verdict_another_call(mull_verdict *verdict, mull_tier due,
                                                           int64_t delay_ms, int64_t step,
                                                           int64_t of)
{
    mull_action action = due == MULL_TIER_RETRY ? MULL_RETRY : MULL_REDELIVER;
    mull__verdict_set(verdict, action, MULL_REASON_NONE, due, delay_ms, step, of);
}

/* mull__jitter_inputs_of are exactly those that the language names, so that the same failure always
 * gets the same delay. */
static MULL__ALWAYS_INLINE mull__jitter_inputs mull__jitter_inputs_of(const mull_failure *failure,
                                                                      mull_tier due, int64_t step,
                                                                      uint64_t consumer_hash)
{
    return (mull__jitter_inputs){
        .chance = failure->flags & MULL_HAS_CHANCE ? failure->chance
                                                   : mull__chance_from_id(failure->message),
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

/* mull__is_1_to: from 1 to `most`. */
static MULL__ALWAYS_INLINE int mull__is_1_to(int64_t number, int64_t most)
{
    return (uint64_t)number - 1 < (uint64_t)most;
}

/* mull__fast_path_applies: nothing but the first rule and its chain has a say in the verdict, as
 * far as the flags don't say otherwise, which is its caller's to see. */
static MULL__ALWAYS_INLINE int mull__fast_path_applies(const mull_failure *failure,
                                                       const mull__site *site)
{
    return !(failure->error && failure->error->lineage_count) &&
           mull__is_1_to(failure->deliveries, site->deliveries) &&
           mull__is_1_to(failure->calls, site->calls) &&
           (failure->redeliveries | failure->age_ms) >= 0;
}

/* mull__fast_step is the verdict by a rule, of whose tier the step is worked out ahead. */
static MULL__ALWAYS_INLINE void mull__fast_step(const mull_rule *source,
                                                const mull__precomputed_step *precomputed_steps,
                                                mull_tier due, int64_t step, const mull__site *site,
                                                const mull_failure *failure, mull_verdict *verdict)
{
    const mull__precomputed_step *precomputed = &precomputed_steps[step - 1];
    const mull__jitter_inputs inputs =
        mull__jitter_inputs_of(failure, due, step, site->consumer_hash);
    uint64_t hash = mull__jitter_hash(&inputs, failure->redeliveries, step);
    mull__verdict_another_call(verdict, due,
                               mull__draw_jitter(precomputed->low_ms, precomputed->choices, hash),
                               step, precomputed->of);
    verdict->rule = *source;
}

/* These are for mull__fast_path: the tests of a matcher of equalities pass; a redelivery. */
int mull__equalities_hold(const mull__matcher *matcher, const mull_error *error);
int mull__fast_redelivery(const mull__rule *rule, const mull__site *site,
                          const mull_failure *failure, mull_verdict *verdict);

/* mull__fast_path: the first rule for the error's type says retry or redeliver. Returns 0 to fall
 * back to the slow path, and then has written nothing; both must agree. */
static MULL__ALWAYS_INLINE int mull__fast_path(const mull__table *table, mull__target target,
                                               const mull_failure *failure, mull_verdict *verdict)
{
    const mull__site *site = target.site;
    const mull__rule *rule;
    if ((failure->flags & ~(uint32_t)MULL_HAS_CHANCE) || !mull__fast_path_applies(failure, site))
        return 0;
    for (uint32_t type = target.type; !(rule = mull__first_rule(site->rules, type));
         type = table->types[type].parent)
        if (type == MULL__ERROR_TYPE || table->types[type].unrecoverable)
            return 0;
    if (rule->fast == MULL__NOT_FAST || (rule->fast == MULL__FAST_IF_EQUAL &&
                                         !mull__equalities_hold(&rule->matcher, failure->error)))
        return 0;
    if (!MULL__LIKELY(mull__is_1_to(failure->attempt, rule->retry.precomputed_count)))
        return mull__fast_redelivery(rule, site, failure, verdict);
    mull__fast_step(&rule->source, rule->retry.precomputed_steps, MULL_TIER_RETRY, failure->attempt,
                    site, failure, verdict);
    return 1;
}

/* mull__fast_retry is what mull__fast_path mostly comes to. It calls no function, which is a tenth
 * of a decision by ids. 0: mull__fast_path is to be asked. */
static MULL__ALWAYS_INLINE int mull__fast_retry(mull__target target, const mull_failure *failure,
                                                mull_verdict *verdict)
{
    const mull__rules *rules = target.site->rules;
    if (failure->flags != MULL_HAS_CHANCE || !mull__fast_path_applies(failure, target.site))
        return 0;
    const mull__type_bucket *group = &rules->groups[target.type & rules->bucket_mask];
    if (group->type != target.type || !mull__is_1_to(failure->attempt, group->fast_retries))
        return 0;
    mull__fast_step(&group->source, group->precomputed_steps, MULL_TIER_RETRY, failure->attempt,
                    target.site, failure, verdict);
    return 1;
}

/* ---- The slow path --------------------------------------------------------------------------- */

/* mull__slow_path is for all failures, complete as for mull__evaluate. */
void mull__slow_path(const mull__eval_context *context, mull__target target,
                     const mull_failure *failure, mull_verdict *verdict);

#endif
