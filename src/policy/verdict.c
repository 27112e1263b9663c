/* verdict.c: the decision, from top to bottom in the order of the language:
 *
 *   max_deliveries -> unrecoverable -> the rules -> max_attempts, max_age
 *                  -> override -> max_attempts, max_age once more -> the fallback
 *
 * Pure: facts in, verdict out. What it gives lives in the table; an override's words in its state.
 */
#include "base/rare.h"
#include "brief.h"
#include "delay.h"
#include "fact.h"
#include "match.h"
#include "value.h"

#include <stdio.h>
#include <string.h>

/* ---- Ends ------------------------------------------------------------------------------------ */

/* These write all of a verdict but who decided. */

static void end_with(mull_verdict *verdict, mull_action action, mull_reason reason)
{
    verdict->action = action;
    verdict->reason = reason;
    verdict->tier = MULL_TIER_NONE;
    verdict->fallback = MULL_FALLBACK_NONE;
    verdict->delay_ms = verdict->step = verdict->of = 0;
    verdict->queue = verdict->note = NULL;
}

static void dead_letter(mull_verdict *verdict, mull_reason reason, const char *queue)
{
    end_with(verdict, MULL_DEAD_LETTER, reason);
    verdict->queue = queue;
}

static void discard(mull_verdict *verdict, mull_reason reason, const char *note)
{
    end_with(verdict, MULL_DISCARD, reason);
    verdict->note = note;
}

/* end_by_default is a dead letter of which no chain has a say. */
static void end_by_default(mull_verdict *verdict, mull_reason reason, const mull__layer *layer)
{
    dead_letter(verdict, reason, layer->bounds.dead_letter_queue);
}

/* end_chain is what the rule's chain ends in; where no rule decided (NULL), there is none. */
static void end_chain(mull_verdict *verdict, mull_reason reason, const mull__rule *rule,
                      const mull__layer *layer)
{
    if (rule && rule->end == MULL_DISCARD)
        discard(verdict, reason, rule->note);
    else if (rule && rule->queue)
        dead_letter(verdict, reason, rule->queue);
    else
        end_by_default(verdict, reason, layer);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static int over(int64_t value, int64_t bound)
{
    return bound != MULL__OFF && value > bound;
}

/* limit_on is MULL_REASON_NONE where no limit ends a message that another call is due for. */
static mull_reason limit_on(mull_tier due, const mull_failure *failure, const mull__bounds *bounds)
{
    if (bounds->max_attempts != MULL__OFF && failure->calls >= bounds->max_attempts)
        return MULL_REASON_MAX_ATTEMPTS;
    if (due == MULL_TIER_REDELIVER && over(failure->age_ms, bounds->max_age_ms))
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

static mull_reason why_it_ends(mull_tier due, const mull__rule *rule, const mull_failure *failure,
                               const mull__bounds *bounds)
{
    if (due != MULL_TIER_NONE)
        return limit_on(due, failure, bounds);
    return rule->retry.on || rule->redeliver.on ? MULL_REASON_EXHAUSTED : MULL_REASON_RULE;
}

/* step_due is the how-manyth of its tier the next call is. */
static int64_t step_due(mull_tier due, const mull_failure *failure)
{
    if (due == MULL_TIER_RETRY)
        return failure->attempt;
    return failure->redeliveries + (failure->redeliveries < INT64_MAX);
}

/* wait_for draws from exactly the facts that the language names, so that the same failure always
 * gets the same delay. */
static int64_t wait_for(const mull__plain_tier *tier, const mull_failure *failure, mull_tier due,
                        int64_t step, uint64_t consumer_hash)
{
    const uint32_t heeded = MULL_NO_JITTER | MULL__JITTER_LOW | MULL__JITTER_HIGH;
    if (step <= tier->lot_count && !(failure->flags & heeded))
        return mull__draw_ahead(&tier->lots[step - 1], due, failure, failure->chance,
                                consumer_hash);
    const mull__facts facts = {
        .chance = failure->chance,
        .consumer_hash = consumer_hash,
        .seed = failure->seed,
        .flags = failure->flags,
        .tier = due,
        .redeliveries = failure->redeliveries,
        .step = step,
    };
    return mull__wait(tier, &facts, failure->error);
}

/* follow the chain of the rule that decided. */
static void follow(mull_verdict *verdict, const mull__rule *rule, const mull_failure *failure,
                   mull__site site)
{
    mull_tier due = tier_due(rule, failure);
    mull_reason reason = why_it_ends(due, rule, failure, &site.layer->bounds);
    verdict->rule = rule->source;
    if (reason != MULL_REASON_NONE) {
        end_chain(verdict, reason, rule, site.layer);
        return;
    }
    const mull__plain_tier *tier = due == MULL_TIER_RETRY ? &rule->retry : &rule->redeliver;
    int64_t step = step_due(due, failure);
    int64_t delay_ms = wait_for(tier, failure, due, step, site.consumer_hash);
    mull__go_on(verdict, due, delay_ms, &(mull__nth){step, tier->attempts});
}

/* ---- All rules ------------------------------------------------------------------------------- */

/* case_at_hand is what the steps of a decision at length share. */
typedef struct case_at_hand {
    mull__inquiry inquiry;
    const mull__rule *rule; /* that decided; NULL so far */
} case_at_hand;

/* decide_by_rules is the verdict before anybody may override it. */
static void decide_by_rules(mull_verdict *verdict, case_at_hand *c, const mull__lineage *lineage,
                            mull__site site)
{
    mull_reason reason = MULL_REASON_NO_RULE;
    if (over(c->inquiry.failure->deliveries, site.layer->bounds.max_deliveries))
        reason = MULL_REASON_MAX_DELIVERIES;
    else if (mull__unrecoverable(&c->inquiry, lineage))
        reason = MULL_REASON_UNRECOVERABLE;
    else
        c->rule = mull__match(&c->inquiry, lineage);
    if (c->rule) {
        follow(verdict, c->rule, c->inquiry.failure, site);
    } else {
        verdict->rule = (mull_rule){0};
        end_by_default(verdict, reason, site.layer);
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
    const mull_failure *failure = c->inquiry.failure;
    const mull__layer *layer = c->inquiry.layer;
    mull_tier due = tier_of(answer->action);
    mull_reason limit =
        due == MULL_TIER_NONE ? MULL_REASON_NONE : limit_on(due, failure, &layer->bounds);
    if (limit != MULL_REASON_NONE) {
        end_chain(verdict, limit, c->rule, layer);
    } else if (answer->action == MULL_DEAD_LETTER) {
        dead_letter(verdict, MULL_REASON_OVERRIDE,
                    answer->queue ? answer->queue : layer->bounds.dead_letter_queue);
    } else if (answer->action == MULL_DISCARD) {
        discard(verdict, MULL_REASON_OVERRIDE, answer->note);
    } else {
        int64_t ms = answer->delay_ms < MULL__DELAY_MAX_MS ? answer->delay_ms : MULL__DELAY_MAX_MS;
        mull__go_on(verdict, due, ms, &(mull__nth){step_due(due, failure), 0});
        verdict->reason = MULL_REASON_OVERRIDE;
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
    end_by_default(verdict, MULL_REASON_FALLBACK, c->inquiry.layer);
    verdict->fallback = fallback;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int decide_by(const mull__desk *desk, const mull__lineage *lineage, mull__site site,
                     const mull_failure *failure, mull_verdict *verdict)
{
    case_at_hand c = {{desk, site.layer, failure}, NULL};
    decide_by_rules(verdict, &c, lineage, site);
    if (site.layer->bounds.override != MULL__OFF)
        override(verdict, &c);
    fall_back(verdict, &c);
    return MULL_OK;
}

int mull__decide_at_length(const mull__desk *desk, const mull_failure *failure,
                           mull_verdict *verdict)
{
    mull__layer layer;
    mull__lineage room;
    mull__site site = mull__site_of(desk->table, failure->consumer, failure->transport, &layer);
    return decide_by(desk, mull__lineage_of(desk->table, failure->error, desk->seen, &room), site,
                     failure, verdict);
}

int mull__decide_further(const mull__desk *desk, uint32_t type, mull__site site,
                         const mull_failure *failure, mull_verdict *verdict)
{
    mull__lineage room;
    return decide_by(desk, mull__lineage_by_number(desk->table, type, desk->seen, &room), site,
                     failure, verdict);
}

/* ---- The short way --------------------------------------------------------------------------- */

int mull__redeliver_briefly(const mull__rule *rule, mull__site site, const mull_failure *failure,
                            mull_verdict *verdict)
{
    if (failure->attempt < 1 || failure->attempt <= rule->retry.attempts ||
        failure->redeliveries >= rule->brief_redeliveries ||
        over(failure->age_ms, site.layer->bounds.max_age_ms))
        return 0;
    mull__go_on_by(rule, &rule->redeliver.lots[failure->redeliveries], MULL_TIER_REDELIVER,
                   site.consumer_hash, failure, verdict);
    return 1;
}

/* nearest_rule is the first that an error of a type, which comes without a lineage, is tried by. */
static const mull__rule *nearest_rule(const mull__table *table, uint32_t type,
                                      const mull__rules *rules)
{
    if (type == MULL__NONE)
        type = MULL__ERROR_TYPE;
    if (rules->count == 0 || table->types[type].mark == MULL__UNRECOVERABLE)
        return NULL;
    const mull__rule *rule;
    while (!(rule = mull__first_rule(rules, type)) && type != MULL__ERROR_TYPE)
        type = table->types[type].parent;
    return rule;
}

int mull__row_fill(mull__row *row, uint64_t key, const mull__table *table, uint32_t type,
                   mull__site site)
{
    const mull__brief *brief = &site.layer->brief;
    const mull__rule *rule = nearest_rule(table, type, &brief->rules);
    if (!rule)
        return 0;
    *row = (mull__row){
        .key = key,
        .rule = rule,
        .site = site,
        .deliveries = brief->deliveries,
        .calls = brief->calls,
        .retries = rule->matcher.equals ? 0 : rule->brief_retries,
        .lots = rule->retry.lots,
    };
    return 1;
}

int mull__decide(const mull__desk *desk, const mull_failure *failure, mull_verdict *verdict)
{
    const mull__name_slot *type = mull__type_briefly(desk, failure);
    if (type) {
        mull__layer room;
        mull__site site = mull__site_of(desk->table, failure->consumer, failure->transport, &room);
        return mull__decide_at(type->number, site, failure, verdict)
                   ? MULL_OK
                   : mull__decide_further(desk, type->number, site, failure, verdict);
    }
    return mull__decide_at_length(desk, failure, verdict);
}

void mull__judge(const mull__table *table, const mull_failure *failure, const mull__runner *runner,
                 uint64_t *seen, mull_verdict *verdict)
{
    const mull__desk desk = {table, runner, seen};
    if (runner->tried)
        mull__decide_at_length(&desk, failure, verdict);
    else
        mull__decide(&desk, failure, verdict);
}

size_t mull__table_seen(const mull__table *table)
{
    size_t words = mull__lineage_words(table), names = table->unrecoverable_count;
    return words > names ? words : names;
}
