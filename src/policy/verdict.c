/* verdict.c: the decision, from top to bottom in the order of the language:
 *
 *   max_deliveries -> unrecoverable -> the rules -> max_attempts, max_age -> the fallback
 *
 * Pure: facts in, verdict out. Everything that it gives lives in the table. */
#include "base/hash.h"
#include "delay.h"
#include "match.h"

/* case_at_hand is what the steps of one decision share. */
typedef struct case_at_hand {
    const mull_failure *failure;
    uint64_t consumer_hash; /* 0 where the failure names none */
    const mull__layer *layer;
    const mull__rule *rule; /* that decided; NULL so far */
} case_at_hand;

/* ---- Ends ------------------------------------------------------------------------------------ */

static void dead_letter(mull_verdict *verdict, mull_reason reason, const char *queue)
{
    verdict->action = MULL_DEAD_LETTER;
    verdict->reason = reason;
    verdict->queue = queue;
}

/* end_by_default is a dead letter of which no chain has a say. */
static void end_by_default(mull_verdict *verdict, mull_reason reason, const case_at_hand *c)
{
    dead_letter(verdict, reason, c->layer->bounds.dead_letter_queue);
}

/* end_chain is what the rule's chain ends in. */
static void end_chain(mull_verdict *verdict, mull_reason reason, const case_at_hand *c)
{
    if (c->rule->end == MULL_DISCARD) {
        verdict->action = MULL_DISCARD;
        verdict->reason = reason;
        verdict->note = c->rule->note;
    } else if (c->rule->queue) {
        dead_letter(verdict, reason, c->rule->queue);
    } else {
        end_by_default(verdict, reason, c);
    }
}

/* ---- Before the rules ------------------------------------------------------------------------ */

static int over(int64_t value, int64_t bound)
{
    return bound != MULL__OFF && value > bound;
}

/* ---- The chain ------------------------------------------------------------------------------- */

static mull_tier tier_due(const mull__rule *rule, const mull_failure *failure)
{
    if (failure->attempt <= rule->retry.attempts)
        return MULL_TIER_RETRY;
    int64_t allowed = rule->redeliver.attempts;
    if (allowed == MULL_UNLIMITED || failure->redeliveries < allowed)
        return MULL_TIER_REDELIVER;
    return MULL_TIER_NONE;
}

/* why_it_ends is MULL_REASON_NONE where the tier that is due may go ahead. */
static mull_reason why_it_ends(mull_tier due, const case_at_hand *c)
{
    const mull__bounds *bounds = &c->layer->bounds;
    if (due == MULL_TIER_NONE)
        return c->rule->retry.on || c->rule->redeliver.on ? MULL_REASON_EXHAUSTED
                                                          : MULL_REASON_RULE;
    if (bounds->max_attempts != MULL__OFF && c->failure->calls >= bounds->max_attempts)
        return MULL_REASON_MAX_ATTEMPTS;
    if (due == MULL_TIER_REDELIVER && over(c->failure->age_ms, bounds->max_age_ms))
        return MULL_REASON_MAX_AGE;
    return MULL_REASON_NONE;
}

static mull_fallback not_possible(mull_tier due, uint32_t flags)
{
    if (due == MULL_TIER_RETRY && (flags & MULL_CANNOT_RETRY))
        return MULL_NO_RETRY;
    if (due == MULL_TIER_REDELIVER && (flags & MULL_CANNOT_DELAY))
        return MULL_NO_DELAY;
    return MULL_FALLBACK_NONE;
}

/* jittered draws from exactly the facts that the language names, so that the same failure always
 * gets the same delay. */
static int64_t jittered(const mull__plain_tier *tier, int64_t delay_ms, mull_tier due, int64_t step,
                        const case_at_hand *c)
{
    const mull_failure *failure = c->failure;
    mull__span span = mull__delay_span(tier, delay_ms);
    if (span.low_ms == span.high_ms || (failure->flags & MULL_NO_JITTER))
        return delay_ms;
    const uint64_t facts[] = {
        failure->chance, c->consumer_hash, (uint64_t)due, (uint64_t)failure->redeliveries,
        (uint64_t)step,  failure->seed,
    };
    return mull__draw(span, mull__hash_words(facts, sizeof facts / sizeof *facts));
}

static void go_on(mull_verdict *verdict, mull_tier due, const case_at_hand *c)
{
    int retry = due == MULL_TIER_RETRY;
    const mull__plain_tier *tier = retry ? &c->rule->retry : &c->rule->redeliver;
    int64_t step = c->failure->attempt;
    if (!retry)
        step = c->failure->redeliveries + (c->failure->redeliveries < INT64_MAX);
    verdict->action = retry ? MULL_RETRY : MULL_REDELIVER;
    verdict->tier = due;
    verdict->step = step;
    verdict->of = tier->attempts;
    verdict->delay_ms = jittered(tier, mull__delay(tier, step), due, step, c);
}

static void follow(mull_verdict *verdict, const case_at_hand *c)
{
    verdict->rule = c->rule->source;
    mull_tier due = tier_due(c->rule, c->failure);
    mull_reason reason = why_it_ends(due, c);
    if (reason != MULL_REASON_NONE) {
        end_chain(verdict, reason, c);
        return;
    }
    verdict->fallback = not_possible(due, c->failure->flags);
    if (verdict->fallback != MULL_FALLBACK_NONE)
        end_by_default(verdict, MULL_REASON_FALLBACK, c);
    else
        go_on(verdict, due, c);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void judge(const mull__table *table, case_at_hand *c, const mull__runner *runner,
                  uint64_t *seen, mull_verdict *verdict)
{
    if (over(c->failure->deliveries, c->layer->bounds.max_deliveries)) {
        end_by_default(verdict, MULL_REASON_MAX_DELIVERIES, c);
        return;
    }
    mull__lineage lineage = mull__lineage_of(table, c->failure->error, seen);
    const mull__inquiry inquiry = {table, c->layer, c->failure, runner, seen};
    if (mull__unrecoverable(&inquiry, &lineage)) {
        end_by_default(verdict, MULL_REASON_UNRECOVERABLE, c);
        return;
    }
    c->rule = mull__match(&inquiry, &lineage);
    if (c->rule)
        follow(verdict, c);
    else
        end_by_default(verdict, MULL_REASON_NO_RULE, c);
}

void mull__judge(const mull__table *table, const mull_failure *failure, const mull__runner *runner,
                 uint64_t *seen, mull_verdict *verdict)
{
    case_at_hand c = {.failure = failure};
    if (failure->consumer)
        c.consumer_hash = mull__hash_text(failure->consumer);
    mull__layer room;
    c.layer = mull__layer_for(table, failure->consumer, c.consumer_hash, failure->transport, &room);
    *verdict = (mull_verdict){.size = verdict->size, .generation = verdict->generation};
    judge(table, &c, runner, seen, verdict);
}

size_t mull__table_seen(const mull__table *table)
{
    return mull__lineage_words(table);
}
