/* brief.h: the short way of a decision. Most are another call of the handler by the first rule for
 * the error's own type: this looks at no more than they need. What it decides,
 * mull__decide_at_length decides the same, and what it isn't sure of, it leaves to that. */
#ifndef MULL__BRIEF_H
#define MULL__BRIEF_H

#include "delay.h"
#include "types.h"
#include "value.h"

/* mull__is_within: from 1 to `most`, in one comparison. */
static MULL__IN_PLACE int mull__is_within(int64_t number, int64_t most)
{
    return (uint64_t)number - 1 < (uint64_t)most;
}

/* mull__draw_ahead is how long a tier waits where its lots are worked out ahead, as they mostly
 * are, for a failure that has no flag with a say in it. */
static MULL__IN_PLACE int64_t mull__draw_ahead(const mull__plain_tier *tier,
                                               const mull_failure *failure, mull_tier due,
                                               int64_t step, uint64_t consumer_hash)
{
    const mull__facts facts = {
        .chance = failure->chance,
        .consumer_hash = consumer_hash,
        .seed = failure->seed,
        .tier = due,
    };
    return mull__draw(tier->lots[step - 1], mull__chance_of(&facts, failure->redeliveries, step));
}

/* mull__go_on: another call of the handler, in `of` at most of this tier. It writes all of a
 * verdict but who decided. */
static MULL__IN_PLACE void mull__go_on(mull_verdict *verdict, mull_tier due, int64_t delay_ms,
                                       int64_t step, int64_t of)
{
    verdict->action = due == MULL_TIER_RETRY ? MULL_RETRY : MULL_REDELIVER;
    verdict->reason = MULL_REASON_NONE;
    verdict->tier = due;
    verdict->fallback = MULL_FALLBACK_NONE;
    verdict->delay_ms = delay_ms;
    verdict->step = step;
    verdict->of = of;
    verdict->queue = verdict->note = NULL;
}

int mull__redeliver_briefly(const mull__rule *rule, const mull_failure *failure,
                            mull_verdict *verdict, mull__site site);

/* mull__decide_at is mull__decide_briefly where the number of the failure's type is known, and what
 * is in force. */
static MULL__IN_PLACE int mull__decide_at(uint32_t type, mull__site site,
                                          const mull_failure *failure, mull_verdict *verdict)
{
    const mull__brief *brief = &site.layer->brief;
    if (!mull__is_within(failure->deliveries, brief->deliveries) ||
        !mull__is_within(failure->calls, brief->calls) ||
        (failure->redeliveries | failure->age_ms) < 0)
        return 0;
    const mull__rule *rule = mull__first_rule(&brief->rules, type);
    if (!rule || (rule->matcher.equals && !mull__equals_all(&rule->matcher, failure->error)))
        return 0;
    if (!MULL__MOSTLY(mull__is_within(failure->attempt, rule->brief_retries)))
        return mull__redeliver_briefly(rule, failure, verdict, site);
    int64_t delay_ms = mull__draw_ahead(&rule->retry, failure, MULL_TIER_RETRY, failure->attempt,
                                        site.consumer_hash);
    mull__go_on(verdict, MULL_TIER_RETRY, delay_ms, failure->attempt, rule->retry.attempts);
    verdict->rule = rule->source;
    return 1;
}

/* mull__decide_there is mull__decide_at for a failure of some consumer or transport. */
int mull__decide_there(const mull__table *table, uint32_t type, const mull_failure *failure,
                       mull_verdict *verdict);

/* mull__decide_briefly gives the verdict on a failure that has an error with a type, but of which
 * numbers may be wrong or missing. 0: it doesn't, and nothing was written. */
static MULL__IN_PLACE int mull__decide_briefly(const mull__table *table,
                                               const mull_failure *failure, mull_verdict *verdict)
{
    if (failure->error->lineage_count | (failure->flags ^ MULL_HAS_CHANCE))
        return 0;
    const mull__name name = mull__name_of(failure->error->type);
    uint32_t type = mull__names_find(&table->type_names, &name);
    if (type == MULL__NONE)
        return 0;
    /* Both at once: one test in place of two. */
    if ((uintptr_t)failure->consumer | (uintptr_t)failure->transport)
        return mull__decide_there(table, type, failure, verdict);
    return mull__decide_at(type, (mull__site){&table->layers[0], 0}, failure, verdict);
}

#endif
