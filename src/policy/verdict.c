/* verdict.c: the decision, from top to bottom in the order of the language:
 *
 *   max_deliveries -> unrecoverable -> the rules -> max_attempts, max_age
 *                  -> override -> max_attempts, max_age once more -> the fallback
 *
 * Pure: facts in, verdict out. What it gives lives in the table; an override's words in its state.
 */
#include "base/rare.h"
#include "delay.h"
#include "match.h"

#include <stdio.h>
#include <string.h>

/* case_at_hand is what the steps of one decision share. */
typedef struct case_at_hand {
    mull__inquiry inquiry;
    uint64_t consumer_hash; /* 0 where the failure names none */
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
    dead_letter(verdict, reason, c->inquiry.layer->bounds.dead_letter_queue);
}

/* end_chain is what the rule's chain ends in; where no rule decided, there is none. */
static void end_chain(mull_verdict *verdict, mull_reason reason, const case_at_hand *c)
{
    if (c->rule && c->rule->end == MULL_DISCARD) {
        verdict->action = MULL_DISCARD;
        verdict->reason = reason;
        verdict->note = c->rule->note;
    } else if (c->rule && c->rule->queue) {
        dead_letter(verdict, reason, c->rule->queue);
    } else {
        end_by_default(verdict, reason, c);
    }
}

/* begin_anew leaves of a verdict only who decided. */
static void begin_anew(mull_verdict *verdict)
{
    verdict->action = MULL_RETRY;
    verdict->reason = MULL_REASON_NONE;
    verdict->tier = MULL_TIER_NONE;
    verdict->fallback = MULL_FALLBACK_NONE;
    verdict->delay_ms = verdict->step = verdict->of = 0;
    verdict->queue = verdict->note = NULL;
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static int over(int64_t value, int64_t bound)
{
    return bound != MULL__OFF && value > bound;
}

/* limit_on is MULL_REASON_NONE where no limit ends a message that another call is due for. */
static mull_reason limit_on(mull_tier due, const case_at_hand *c)
{
    const mull__bounds *bounds = &c->inquiry.layer->bounds;
    if (bounds->max_attempts != MULL__OFF && c->inquiry.failure->calls >= bounds->max_attempts)
        return MULL_REASON_MAX_ATTEMPTS;
    if (due == MULL_TIER_REDELIVER && over(c->inquiry.failure->age_ms, bounds->max_age_ms))
        return MULL_REASON_MAX_AGE;
    return MULL_REASON_NONE;
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

static mull_reason why_it_ends(mull_tier due, const case_at_hand *c)
{
    if (due != MULL_TIER_NONE)
        return limit_on(due, c);
    return c->rule->retry.on || c->rule->redeliver.on ? MULL_REASON_EXHAUSTED : MULL_REASON_RULE;
}

/* go_on: another call of the handler, in `of` at most of this tier. */
static void go_on(mull_verdict *verdict, mull_tier due, int64_t of, const mull_failure *failure)
{
    verdict->action = due == MULL_TIER_RETRY ? MULL_RETRY : MULL_REDELIVER;
    verdict->tier = due;
    verdict->of = of;
    verdict->step = failure->attempt;
    if (due == MULL_TIER_REDELIVER)
        verdict->step = failure->redeliveries + (failure->redeliveries < INT64_MAX);
}

/* wait_in draws from exactly the facts that the language names, so that the same failure always
 * gets the same delay. */
MULL__RARE static int64_t wait_in(const mull__plain_tier *tier, const mull_verdict *verdict,
                                  case_at_hand c)
{
    const mull_failure *failure = c.inquiry.failure;
    const mull__facts facts = {
        .chance = failure->chance,
        .consumer_hash = c.consumer_hash,
        .seed = failure->seed,
        .flags = failure->flags,
        .tier = verdict->tier,
        .redeliveries = failure->redeliveries,
        .step = verdict->step,
    };
    return mull__wait(tier, &facts, failure->error);
}

/* wait_ahead is the same where the tier's spans are worked out ahead, as they mostly are. */
static inline int64_t wait_ahead(const mull__plain_tier *tier, const mull_verdict *verdict,
                                 const case_at_hand *c)
{
    const mull_failure *failure = c->inquiry.failure;
    if (verdict->step > tier->span_count ||
        (failure->flags & (MULL_NO_JITTER | MULL__JITTER_LOW | MULL__JITTER_HIGH)))
        return wait_in(tier, verdict, *c);
    const mull__facts facts = {
        .chance = failure->chance,
        .consumer_hash = c->consumer_hash,
        .seed = failure->seed,
        .tier = verdict->tier,
    };
    return mull__draw(tier->spans[verdict->step - 1],
                      mull__chance_of(&facts, failure->redeliveries, verdict->step));
}

static void follow(mull_verdict *verdict, const case_at_hand *c)
{
    mull_tier due = tier_due(c->rule, c->inquiry.failure);
    mull_reason reason = why_it_ends(due, c);
    if (reason != MULL_REASON_NONE) {
        end_chain(verdict, reason, c);
        return;
    }
    const mull__plain_tier *tier = due == MULL_TIER_RETRY ? &c->rule->retry : &c->rule->redeliver;
    go_on(verdict, due, tier->attempts, c->inquiry.failure);
    verdict->delay_ms = wait_ahead(tier, verdict, c);
}

/* decide_by_rules is the verdict before anybody may override it. */
static inline void decide_by_rules(mull_verdict *verdict, case_at_hand *c,
                                   const mull__lineage *lineage)
{
    static const mull_rule nobodys;
    mull_reason reason = MULL_REASON_NO_RULE;
    if (over(c->inquiry.failure->deliveries, c->inquiry.layer->bounds.max_deliveries))
        reason = MULL_REASON_MAX_DELIVERIES;
    else if (mull__unrecoverable(&c->inquiry, lineage))
        reason = MULL_REASON_UNRECOVERABLE;
    else
        c->rule = mull__match(&c->inquiry, lineage);
    if (c->rule) {
        verdict->rule = c->rule->source;
        follow(verdict, c);
    } else {
        verdict->rule = nobodys;
        end_by_default(verdict, reason, c);
    }
}

/* ---- Override -------------------------------------------------------------------------------- */

static mull__config_tier config_tier(const mull__plain_tier *tier, int possible)
{
    if (!possible || tier->attempts == 0)
        return (mull__config_tier){0};
    return (mull__config_tier){
        .attempts = tier->attempts,
        .delay_ms = mull__delay(tier, 1),
        .max_delay_ms = tier->max_delay_ms,
        .backoff = tier->backoff,
        .has_list = tier->delays != NULL,
    };
}

/* config_for gives what an override may look at; by now nobody needs the scratch. */
static mull__config config_for(const case_at_hand *c)
{
    static const mull__rule none;
    const mull__bounds *bounds = &c->inquiry.layer->bounds;
    const mull__rule *rule = c->rule ? c->rule : &none;
    const char **names = (const char **)(void *)c->inquiry.desk->seen;
    return (mull__config){
        .dead_letter_queue = bounds->dead_letter_queue,
        .max_age_ms = bounds->max_age_ms,
        .max_attempts = bounds->max_attempts,
        .unrecoverable = names,
        .unrecoverable_count =
            mull__unrecoverable_names(c->inquiry.desk->table, c->inquiry.layer, names),
        .retry = config_tier(&rule->retry, !(c->inquiry.failure->flags & MULL_CANNOT_RETRY)),
        .redeliver =
            config_tier(&rule->redeliver, !(c->inquiry.failure->flags & MULL_CANNOT_DELAY)),
    };
}

static mull_tier tier_of(mull_action action)
{
    return action == MULL_RETRY       ? MULL_TIER_RETRY
           : action == MULL_REDELIVER ? MULL_TIER_REDELIVER
                                      : MULL_TIER_NONE;
}

/* what_is_wrong says why an answer can't be carried out; NULL: it can. */
static const char *what_is_wrong(const mull__answer *answer, const mull_verdict *verdict,
                                 const mull_failure *failure)
{
    if (verdict->reason == MULL_REASON_MAX_DELIVERIES && tier_of(answer->action) != MULL_TIER_NONE)
        return "a message that was handed out too often (max_deliveries) can only become a dead "
               "letter or be discarded";
    if (answer->delay_ms < 0)
        return "a delay is never below 0";
    const char *queue = answer->action == MULL_DEAD_LETTER ? answer->queue : NULL;
    if (queue && !*queue)
        return "a queue has a name";
    if (queue && failure->message && failure->message->queue &&
        strcmp(queue, failure->message->queue) == 0)
        return "a dead letter can't go to the queue that its message came from, where it would "
               "come round for ever";
    return NULL;
}

/* ask calls the override. 0: `answer` is one that can be carried out, or none was given. */
static int ask(mull__answer *answer, const mull_verdict *verdict, const case_at_hand *c, char *why,
               size_t why_size)
{
    const mull__runner *runner = c->inquiry.desk->runner;
    if (!runner->override) {
        snprintf(why, why_size, "there is nobody who could call an override function");
        return -1;
    }
    const mull__config config = config_for(c);
    int status = runner->override(runner->state, (uint32_t)(c->inquiry.layer->bounds.override - 1),
                                  c->inquiry.failure, verdict, &config, answer, why, why_size);
    const char *wrong =
        status == 0 && answer->given ? what_is_wrong(answer, verdict, c->inquiry.failure) : NULL;
    if (wrong) {
        const mull__plain_place *place =
            &mull__setting_scope(c->inquiry.desk->table, c->inquiry.layer, MULL__OVERRIDE)
                 ->places[MULL__OVERRIDE];
        snprintf(why, why_size, "%s:%d: %s", place->file ? place->file : "override", place->line,
                 wrong);
        return -1;
    }
    return status;
}

/* take_answer puts an answer in the verdict's place; no answer passes a limit. */
static void take_answer(mull_verdict *verdict, const mull__answer *answer, const case_at_hand *c)
{
    mull_tier due = tier_of(answer->action);
    mull_reason limit = due == MULL_TIER_NONE ? MULL_REASON_NONE : limit_on(due, c);
    begin_anew(verdict);
    if (limit != MULL_REASON_NONE) {
        end_chain(verdict, limit, c);
        return;
    }
    verdict->reason = MULL_REASON_OVERRIDE;
    if (answer->action == MULL_DEAD_LETTER) {
        const char *queue =
            answer->queue ? answer->queue : c->inquiry.layer->bounds.dead_letter_queue;
        dead_letter(verdict, MULL_REASON_OVERRIDE, queue);
    } else if (answer->action == MULL_DISCARD) {
        verdict->action = MULL_DISCARD;
        verdict->note = answer->note;
    } else {
        go_on(verdict, due, 0, c->inquiry.failure);
        int64_t ms = answer->delay_ms;
        verdict->delay_ms = ms < MULL__DELAY_MAX_MS ? ms : MULL__DELAY_MAX_MS;
    }
}

static void override(mull_verdict *verdict, const case_at_hand *c)
{
    char why[512] = "";
    mull__answer answer = {0};
    if (ask(&answer, verdict, c, why, sizeof why) == 0) {
        if (answer.given)
            take_answer(verdict, &answer, c);
    } else if (c->inquiry.desk->runner->override_failed) {
        c->inquiry.desk->runner->override_failed(c->inquiry.desk->runner->data, c->inquiry.failure,
                                                 verdict, why);
    }
}

/* ---- The fallback ---------------------------------------------------------------------------- */

static mull_fallback not_possible(mull_tier due, uint32_t flags)
{
    if (due == MULL_TIER_RETRY && (flags & MULL_CANNOT_RETRY))
        return MULL_NO_RETRY;
    if (due == MULL_TIER_REDELIVER && (flags & MULL_CANNOT_DELAY))
        return MULL_NO_DELAY;
    return MULL_FALLBACK_NONE;
}

/* fall_back: what the transport can't fulfil becomes a dead letter. */
static void fall_back(mull_verdict *verdict, const case_at_hand *c)
{
    mull_fallback fallback = not_possible(verdict->tier, c->inquiry.failure->flags);
    if (fallback == MULL_FALLBACK_NONE)
        return;
    begin_anew(verdict);
    verdict->fallback = fallback;
    end_by_default(verdict, MULL_REASON_FALLBACK, c);
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* override_or_fall_back is what few verdicts need. */
MULL__RARE static void override_or_fall_back(mull_verdict *verdict, case_at_hand c)
{
    if (c.inquiry.layer->bounds.override != MULL__OFF)
        override(verdict, &c);
    fall_back(verdict, &c);
}

int mull__decide(const mull__desk *desk, const mull_failure *failure, mull_verdict *verdict)
{
    mull__layer room;
    mull__lineage lineage_room;
    const mull__lineage *lineage =
        mull__lineage_of(desk->table, failure->error, desk->seen, &lineage_room);
    mull__site site = {&desk->table->layers[0], 0};
    if (failure->consumer || failure->transport)
        site = mull__site_of(desk->table, failure->consumer, failure->transport, &room);
    case_at_hand c = {{desk, site.layer, failure}, site.consumer_hash, NULL};
    begin_anew(verdict);
    decide_by_rules(verdict, &c, lineage);
    if (site.layer->bounds.override != MULL__OFF ||
        (failure->flags & (MULL_CANNOT_RETRY | MULL_CANNOT_DELAY)))
        override_or_fall_back(verdict, c);
    return MULL_OK;
}

void mull__judge(const mull__table *table, const mull_failure *failure, const mull__runner *runner,
                 uint64_t *seen, mull_verdict *verdict)
{
    mull__decide(&(mull__desk){table, runner, seen}, failure, verdict);
}

size_t mull__table_seen(const mull__table *table)
{
    size_t words = mull__lineage_words(table), names = table->unrecoverable_count;
    return words > names ? words : names;
}
