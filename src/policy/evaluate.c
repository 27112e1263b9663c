/* evaluate.c: the decision, from top to bottom in the order of the language:
 *
 *   max_deliveries -> unrecoverable -> the rules -> max_attempts, max_age, deadline
 *                  -> override -> these three once more -> the fallback
 *
 * Pure: inputs in, verdict out. What it gives lives in the table; an override's words in its state.
 */
#include "evaluate.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "delay.h"
#include "field_match.h"

/* ---- Ends ------------------------------------------------------------------------------------ */

static void end(mull_verdict *verdict, mull_action action, mull_reason reason, const char *queue,
                const char *note)
{
    mull__verdict_set(verdict, action, reason, MULL_TIER_NONE, 0, 0, 0);
    verdict->queue = queue;
    verdict->note = note;
}

/* end_chain is what the rule's chain ends in; NULL: no chain has a say, a dead letter by default.
 */
static void end_chain(mull_verdict *verdict, mull_reason reason, const mull__rule *rule,
                      const mull__effective_settings *effective)
{
    if (rule && rule->end == MULL_DISCARD)
        end(verdict, MULL_DISCARD, reason, NULL, rule->note);
    else
        end(verdict, MULL_DEAD_LETTER, reason,
            rule && rule->queue ? rule->queue : effective->settings.dead_letter_queue, NULL);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static int over(int64_t value, int64_t bound)
{
    return bound != MULL__OFF && value > bound;
}

/* limit_on is MULL_REASON_NONE where no limit ends a message that another call is due for, but for
 * the deadline, which needs its delay. */
static mull_reason limit_on(mull_tier due, const mull_failure *failure,
                            const mull__settings *settings)
{
    if (settings->max_attempts != MULL__OFF && failure->calls >= settings->max_attempts)
        return MULL_REASON_MAX_ATTEMPTS;
    if (due == MULL_TIER_REDELIVER && over(failure->age_ms, settings->max_age_ms))
        return MULL_REASON_MAX_AGE;
    return MULL_REASON_NONE;
}

static int64_t sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* is_late: a call that is due after a delay would begin behind the deadline. */
static int is_late(int64_t delay_ms, const mull_failure *failure, const mull__settings *settings)
{
    if (MULL__LIKELY(settings->deadline_ms == MULL__OFF))
        return 0;
    int64_t held_ms = failure->held_ms > 0 ? failure->held_ms : 0;
    return sum(sum(failure->age_ms, held_ms), delay_ms) > settings->deadline_ms;
}

/* limit_on_call is the same with the deadline, once the delay is there. */
static mull_reason limit_on_call(mull_tier due, int64_t delay_ms, const mull_failure *failure,
                                 const mull__settings *settings)
{
    mull_reason limit = limit_on(due, failure, settings);
    if (limit == MULL_REASON_NONE && is_late(delay_ms, failure, settings))
        return MULL_REASON_DEADLINE;
    return limit;
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
                               const mull__settings *settings)
{
    if (due != MULL_TIER_NONE)
        return limit_on(due, failure, settings);
    return rule->retry.on || rule->redeliver.on ? MULL_REASON_EXHAUSTED : MULL_REASON_RULE;
}

/* step_due is the how-manyth of its tier the next call is. */
static int64_t step_due(mull_tier due, const mull_failure *failure)
{
    if (due == MULL_TIER_RETRY)
        return failure->attempt;
    return failure->redeliveries + (failure->redeliveries < INT64_MAX);
}

/* HEEDED are the flags that say otherwise of a delay than what is worked out ahead. */
#define HEEDED ((uint32_t)(MULL_NO_JITTER | MULL__JITTER_LOW | MULL__JITTER_HIGH))

/* call_again is the next step of a tier that is due. */
static void call_again(mull_verdict *verdict, mull_tier due, const mull__rule *rule,
                       const mull_failure *failure, const mull__site *site)
{
    const mull__tier_config *tier = due == MULL_TIER_RETRY ? &rule->retry : &rule->redeliver;
    int64_t step = step_due(due, failure);
    if (step <= tier->precomputed_count && !(failure->flags & HEEDED)) {
        mull__fast_step(&rule->source, tier->precomputed_steps, due, step, site, failure, verdict);
        return;
    }
    const mull__jitter_inputs inputs =
        mull__jitter_inputs_of(failure, due, step, site->consumer_hash);
    mull__verdict_another_call(verdict, due, mull__tier_delay(tier, &inputs, failure->error), step,
                               tier->attempts);
}

/* follow the chain of the rule that decided. */
static void follow(mull_verdict *verdict, const mull__rule *rule, const mull_failure *failure,
                   const mull__site *site)
{
    const mull__settings *settings = &site->effective.settings;
    mull_tier due = tier_due(rule, failure);
    mull_reason reason = why_it_ends(due, rule, failure, settings);
    verdict->rule = rule->source;
    if (reason == MULL_REASON_NONE) {
        call_again(verdict, due, rule, failure, site);
        if (is_late(verdict->delay_ms, failure, settings))
            reason = MULL_REASON_DEADLINE;
    }
    if (reason != MULL_REASON_NONE)
        end_chain(verdict, reason, rule, &site->effective);
}

/* ---- All rules ------------------------------------------------------------------------------- */

/* decide_by_rules is the verdict before anybody may override it. */
static void decide_by_rules(mull_verdict *verdict, mull__evaluation *e,
                            const mull__lineage *lineage, const mull__site *site)
{
    mull_reason reason = MULL_REASON_NO_RULE;
    const mull_rule *declared = NULL;
    if (over(e->failure->deliveries, e->effective->settings.max_deliveries))
        reason = MULL_REASON_MAX_DELIVERIES;
    else if ((declared = mull__unrecoverable(e, lineage)) != NULL)
        reason = MULL_REASON_UNRECOVERABLE;
    else
        e->rule = mull__match(e, lineage);
    if (e->rule) {
        follow(verdict, e->rule, e->failure, site);
    } else {
        verdict->rule = declared && declared->file ? *declared : (mull_rule){0};
        end_chain(verdict, reason, NULL, e->effective);
    }
}

/* tell_skipped tells of all matchers that were skipped at once, at the first one's rule. */
static void tell_skipped(const mull__evaluation *e)
{
    const mull__runner *runner = e->context->runner;
    char why[256], others[64] = "";
    if (e->skipped == 0 || !runner->failed)
        return;
    if (e->skipped > 1)
        snprintf(others, sizeof others, ", as were %u more", e->skipped - 1);
    snprintf(why, sizeof why, "skipped%s: " MULL__BUDGET_EXCEEDED, others);
    runner->failed(runner->data, e->failure, e->first_skipped, why);
}

/* ---- Override -------------------------------------------------------------------------------- */

static mull__config_tier config_tier(const mull__tier_config *tier, int possible)
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

/* default_rule is the rule for Error in force that always passes; one without tiers where there is
 * none. */
static const mull__rule *default_rule(const mull__effective_settings *effective)
{
    static const mull__rule none;
    const mull__rules *rules = effective->rules ? &effective->rules->rules : NULL;
    const mull__rule *rule = rules ? mull__first_rule(rules, MULL__ERROR_TYPE) : NULL;
    while (rule && rule->matcher.kind != MULL__MATCH_ALWAYS)
        rule = mull__next_rule(rules, rule);
    return rule ? rule : &none;
}

/* config_for gives what an override may look at; by now nobody needs the scratch. */
static mull__config config_for(const mull__evaluation *e)
{
    const mull__settings *settings = &e->effective->settings;
    const mull__rule *by_default = default_rule(e->effective);
    const mull__rule *rule = e->rule ? e->rule : by_default;
    int can_retry = !(e->failure->flags & MULL_CANNOT_RETRY);
    int can_delay = !(e->failure->flags & MULL_CANNOT_DELAY);
    uint64_t *names = e->context->seen;
    return (mull__config){
        .dead_letter_queue = settings->dead_letter_queue,
        .max_age_ms = settings->max_age_ms,
        .max_attempts = settings->max_attempts,
        .unrecoverable = (const char *const *)(void *)names,
        .unrecoverable_count = mull__unrecoverable_names(e->context->table, e->effective, names),
        .retry = config_tier(&by_default->retry, can_retry),
        .redeliver = config_tier(&by_default->redeliver, can_delay),
        .has_rule = e->rule != NULL,
        .rule_retry = config_tier(&rule->retry, can_retry),
        .rule_redeliver = config_tier(&rule->redeliver, can_delay),
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
static int ask(mull__answer *answer, const mull_verdict *verdict, const mull__evaluation *e,
               char *why, size_t why_size)
{
    const mull__runner *runner = e->context->runner;
    if (e->steps <= 0) {
        snprintf(why, why_size, "not called: " MULL__BUDGET_EXCEEDED);
        return -1;
    }
    const mull__config config = config_for(e);
    int status = runner->override(runner->state, (uint32_t)(e->effective->settings.override - 1),
                                  e->failure, verdict, &config, answer, why, why_size);
    const char *wrong =
        status == 0 && answer->given ? what_is_wrong(answer, verdict, e->failure) : NULL;
    if (wrong) {
        const mull__source_pos *place =
            &mull__scope_that_sets(e->context->table, e->effective, MULL__OVERRIDE)
                 ->places[MULL__OVERRIDE];
        snprintf(why, why_size, "%s:%d: %s", place->file ? place->file : "override", place->line,
                 wrong);
        return -1;
    }
    return status;
}

/* take_answer puts an answer in the verdict's place; no answer passes a limit. */
static void take_answer(mull_verdict *verdict, const mull__answer *answer,
                        const mull__evaluation *e)
{
    const mull_failure *failure = e->failure;
    const mull__effective_settings *effective = e->effective;
    mull_tier due = tier_of(answer->action);
    int64_t ms = answer->delay_ms < MULL__DELAY_MAX_MS ? answer->delay_ms : MULL__DELAY_MAX_MS;
    mull_reason limit = MULL_REASON_NONE;
    if (due != MULL_TIER_NONE)
        limit = limit_on_call(due, ms, failure, &effective->settings);
    if (limit != MULL_REASON_NONE) {
        end_chain(verdict, limit, e->rule, effective);
    } else if (answer->action == MULL_DEAD_LETTER) {
        end(verdict, MULL_DEAD_LETTER, MULL_REASON_OVERRIDE,
            answer->queue ? answer->queue : effective->settings.dead_letter_queue, NULL);
    } else if (answer->action == MULL_DISCARD) {
        end(verdict, MULL_DISCARD, MULL_REASON_OVERRIDE, NULL, answer->note);
    } else {
        mull__verdict_another_call(verdict, due, ms, step_due(due, failure), 0);
        verdict->reason = MULL_REASON_OVERRIDE;
    }
}

static void override(mull_verdict *verdict, const mull__evaluation *e)
{
    char why[512] = "";
    mull__answer answer = {0};
    if (ask(&answer, verdict, e, why, sizeof why) == 0) {
        if (answer.given)
            take_answer(verdict, &answer, e);
    } else if (e->context->runner->override_failed) {
        e->context->runner->override_failed(e->context->runner->data, e->failure, verdict, why);
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
static void fall_back(mull_verdict *verdict, const mull__evaluation *e)
{
    mull_fallback fallback = not_possible(verdict->tier, e->failure->flags);
    if (fallback == MULL_FALLBACK_NONE)
        return;
    end_chain(verdict, MULL_REASON_FALLBACK, NULL, e->effective);
    verdict->fallback = fallback;
}

/* ---- The slow path --------------------------------------------------------------------------- */

void mull__slow_path(const mull__eval_context *context, mull__target target,
                     const mull_failure *failure, mull_verdict *verdict)
{
    mull__evaluation e = {.context = context,
                          .effective = &target.site->effective,
                          .failure = failure,
                          .steps = MULL__DECISION_STEPS};
    const mull__lineage lineage =
        failure->error->lineage_count > 0
            ? mull__lineage_sent(context->table, failure->error, context->seen)
            : mull__lineage_of_type(context->table, target.type, context->seen);
    decide_by_rules(verdict, &e, &lineage, target.site);
    tell_skipped(&e);
    if (e.effective->settings.override != MULL__OFF && context->runner->override)
        override(verdict, &e);
    fall_back(verdict, &e);
}

/* ---- The fast path --------------------------------------------------------------------------- */

int mull__equalities_hold(const mull__matcher *matcher, const mull_error *error)
{
    if (!error || !error->fields)
        return 0;
    const mull__field_test *test = matcher->tests;
    const mull_field *end = error->fields + error->field_count;
    for (size_t left = matcher->test_count; left > 0; left--, test++) {
        const mull_field *field = mull__field_in(error->fields, end, test->name);
        if (!field || !mull__values_equal(test->value.literals, &field->value))
            return 0;
    }
    return 1;
}

int mull__fast_redelivery(const mull__rule *rule, const mull__site *site,
                          const mull_failure *failure, mull_verdict *verdict)
{
    if (failure->attempt < 1 || failure->attempt <= rule->retry.attempts ||
        failure->redeliveries >= rule->redeliver.precomputed_count ||
        over(failure->age_ms, site->effective.settings.max_age_ms))
        return 0;
    mull__fast_step(&rule->source, rule->redeliver.precomputed_steps, MULL_TIER_REDELIVER,
                    failure->redeliveries + 1, site, failure, verdict);
    return 1;
}

/* ---- By names -------------------------------------------------------------------------------- */

void mull__evaluate(const mull__table *table, const mull_failure *failure,
                    const mull__runner *runner, uint64_t *seen, mull_verdict *verdict)
{
    const mull__eval_context context = {table, runner, seen};
    mull__site site;
    mull__site_find(&site, table, failure->consumer, failure->transport);
    const mull__target target = {mull__type_number(table, failure->error->type), &site};
    if (runner->tried || !mull__fast_path(table, target, failure, verdict))
        mull__slow_path(&context, target, failure, verdict);
}
