/* brief.h: the short way of a decision. Most are another call of the handler by the first rule for
 * the error's own type: this looks at no more than they need. What it decides,
 * mull__decide_at_length decides the same, and what it isn't sure of, it leaves to that. */
#ifndef MULL__BRIEF_H
#define MULL__BRIEF_H

#include <stddef.h>
#include <string.h>

#include "delay.h"
#include "types.h"
#include "value.h"

/* mull__is_within: from 1 to `most`, in one comparison. */
static MULL__IN_PLACE int mull__is_within(int64_t number, int64_t most)
{
    return (uint64_t)number - 1 < (uint64_t)most;
}

/* mull__draw_ahead is how long a step waits that is worked out ahead, as most are, for a failure
 * that has no flag with a say in it. */
static MULL__IN_PLACE int64_t mull__draw_ahead(const mull__lot *lot, mull_tier due,
                                               const mull_failure *failure, uint64_t chance,
                                               uint64_t consumer_hash)
{
    const mull__facts facts = {
        .chance = chance,
        .consumer_hash = consumer_hash,
        .seed = failure->seed,
        .tier = due,
    };
    uint64_t hash = mull__chance_of(&facts, failure->redeliveries, lot->nth.step);
    return mull__draw(lot->low_ms, lot->choices, hash);
}

/* mull__go_on: another call of the handler, at a step of this tier. It writes all of a verdict but
 * who decided. */
static MULL__IN_PLACE void mull__go_on(mull_verdict *verdict, mull_tier due, int64_t delay_ms,
                                       const mull__nth *nth)
{
    verdict->action = due == MULL_TIER_RETRY ? MULL_RETRY : MULL_REDELIVER;
    verdict->reason = MULL_REASON_NONE;
    verdict->tier = due;
    verdict->fallback = MULL_FALLBACK_NONE;
    verdict->delay_ms = delay_ms;
    /* As one: compilers would rather put the first together with the delay. */
    _Static_assert(offsetof(mull_verdict, of) == offsetof(mull_verdict, step) + sizeof(int64_t),
                   "they are side by side");
    memcpy((char *)verdict + offsetof(mull_verdict, step), nth, sizeof *nth);
    verdict->queue = verdict->note = NULL;
}

/* mull__chance is a failure's, given or not. It is asked for last, where a delay is drawn from it.
 */
static MULL__IN_PLACE uint64_t mull__chance(const mull_failure *failure)
{
    return MULL__MOSTLY(failure->flags & MULL_HAS_CHANCE) ? failure->chance
                                                          : mull__chance_by_id(failure->message);
}

/* mull__go_on_by is all of it: a rule decides to a step that is worked out ahead. */
static MULL__IN_PLACE void mull__go_on_by(const mull__rule *rule, const mull__lot *lot,
                                          mull_tier due, uint64_t consumer_hash,
                                          const mull_failure *failure, mull_verdict *verdict)
{
    int64_t delay_ms = mull__draw_ahead(lot, due, failure, mull__chance(failure), consumer_hash);
    mull__go_on(verdict, due, delay_ms, &lot->nth);
    verdict->rule = rule->source;
}

/* mull__is_within_limits: all numbers of a failure but `attempt` are as they mostly are. */
static MULL__IN_PLACE int mull__is_within_limits(const mull_failure *failure, int64_t deliveries,
                                                 int64_t calls)
{
    return mull__is_within(failure->deliveries, deliveries) &&
           mull__is_within(failure->calls, calls) && (failure->redeliveries | failure->age_ms) >= 0;
}

/* mull__redeliver_briefly is mull__follow_briefly for a failure of which that many attempts aren't
 * worked out ahead as retries. */
int mull__redeliver_briefly(const mull__rule *rule, mull__site site, const mull_failure *failure,
                            mull_verdict *verdict);

/* mull__follow_briefly gives the verdict by the first rule in force for the error's own type, if it
 * passes, to a failure within limits. There may be no error, for one that has nothing but its type;
 * it has no lineage. 0: the verdict isn't given, and nothing was written. */
static MULL__IN_PLACE int mull__follow_briefly(const mull__rule *rule, mull__site site,
                                               const mull_failure *failure, mull_verdict *verdict)
{
    if (rule->matcher.equals &&
        (!failure->error || !mull__equals_all(rule->matcher.equals, failure->error)))
        return 0;
    if (!MULL__MOSTLY(mull__is_within(failure->attempt, rule->brief_retries)))
        return mull__redeliver_briefly(rule, site, failure, verdict);
    mull__go_on_by(rule, &rule->retry.lots[failure->attempt - 1], MULL_TIER_RETRY,
                   site.consumer_hash, failure, verdict);
    return 1;
}

/* mull__decide_at is all of it: for a type of that number, not MULL__NONE, at that site. */
static MULL__IN_PLACE int mull__decide_at(uint32_t type, mull__site site,
                                          const mull_failure *failure, mull_verdict *verdict)
{
    const mull__brief *brief = &site.layer->brief;
    if (!mull__is_within_limits(failure, brief->deliveries, brief->calls))
        return 0;
    const mull__group *group = mull__group_of(&brief->rules, type);
    return group && mull__follow_briefly(group->first, site, failure, verdict);
}

/* mull__decide_further is the long way where the short one hasn't come through, for a complete
 * failure without a lineage, whose type has that number. */
int mull__decide_further(const mull__desk *desk, uint32_t type, mull__site site,
                         const mull_failure *failure, mull_verdict *verdict);

/* mull__is_flagged: by more than that its chance is given, which the short way doesn't look at. */
static MULL__IN_PLACE uint32_t mull__is_flagged(const mull_failure *failure)
{
    return failure->flags & ~(uint32_t)MULL_HAS_CHANCE;
}

/* mull__type_briefly finds the type of a failure that has an error by its name. NULL: there is more
 * to it. */
static MULL__IN_PLACE const mull__name_slot *mull__type_briefly(const mull__desk *desk,
                                                                const mull_failure *failure)
{
    if (failure->error->lineage_count | mull__is_flagged(failure))
        return NULL;
    const mull__name name = mull__name_of(failure->error->type);
    return mull__names_slot(&desk->table->type_names, &name);
}

/* mull__row is what the short way goes by for one type at one site, both known by their ids: its
 * rule is the first that such an error meets on its way up to Error. */
typedef struct mull__row {
    uint64_t key; /* see mull__row_key; 0: of nothing yet */
    const mull__rule *rule;
    mull__site site;
    int64_t deliveries, calls,
        retries; /* up to which nothing is asked: no matcher, no chain's end */
    const mull__lot *lots;
} mull__row;

/* mull__row_key is both ids in one word, which is how they lie in a failure. */
static MULL__IN_PLACE uint64_t mull__row_key(const mull_failure *failure)
{
    return (uint64_t)failure->site << 32 | failure->type;
}

/* mull__row_fill is for a type of that number, MULL__NONE too. 0, and the row is left as it was: no
 * rule is for the type, its ancestors and Error, or one of them may be declared unrecoverable. */
int mull__row_fill(mull__row *row, uint64_t key, const mull__table *table, uint32_t type,
                   mull__site site);

/* mull__decide_by_row gives the verdict on a failure of these ids, which has no lineage and no flag
 * but that of its chance. 0: there is more to it, and nothing was written. */
static MULL__IN_PLACE int mull__decide_by_row(const mull__row *row, const mull_failure *failure,
                                              mull_verdict *verdict)
{
    if (!mull__is_within_limits(failure, row->deliveries, row->calls) ||
        !mull__is_within(failure->attempt, row->retries))
        return 0;
    mull__go_on_by(row->rule, &row->lots[failure->attempt - 1], MULL_TIER_RETRY,
                   row->site.consumer_hash, failure, verdict);
    return 1;
}

#endif
