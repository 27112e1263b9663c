/* rule_match.c: see rule_match.h. */
#include "rule_match.h"

#include <stdio.h>

#include "base/pattern.h"
#include "base/struct_compat.h"
#include "field_match.h"
#include "resolve.h"

enum {
    CAUSES = 16,
    FAILED_STEPS =
        MULL__CALL_STEPS / 10 /* for telling of a matcher that raised, which takes time */
};

/* match_run is a matcher being tried on one error: the failure's own, or one of its causes, in
 * which case `failure` is a copy that carries the cause as its error. */
typedef struct match_run {
    mull__evaluation *evaluation;
    const mull_failure *failure;
    mull__attempt_kind kind;
    unsigned depth;
    int64_t steps, most;          /* for all its patterns: left, and at first; 0: none is tried */
    int is_skipped;               /* it isn't tried to its end */
    const mull__field_test *lost; /* the test at which what was tried last lost; NULL */
    char why[512];                /* it raised */
} match_run;

/* begin is for all matchers that are tried on one error. */
static void begin(match_run *run, mull__evaluation *evaluation, const mull_failure *failure,
                  mull__attempt_kind kind, unsigned depth)
{
    run->evaluation = evaluation;
    run->failure = failure;
    run->kind = kind;
    run->depth = depth;
}

/* ---- One matcher ----------------------------------------------------------------------------- */

static int skipped(match_run *run)
{
    run->is_skipped = 1;
    snprintf(run->why, sizeof run->why, "skipped: " MULL__BUDGET_EXCEEDED);
    return MULL_EPOLICY;
}

static int function_passes(match_run *run, uint32_t function)
{
    const mull__runner *runner = run->evaluation->context->runner;
    int64_t *steps = &run->evaluation->steps;
    run->lost = NULL;
    if (*steps <= 0)
        return skipped(run);
    return runner->match(runner->state, function, run->failure, steps, run->why, sizeof run->why);
}

static int raised(match_run *run, const mull__field_test *test, int code)
{
    if (run->most == 0)
        return skipped(run);
    if (code == MULL__PATTERN_OUT_OF_STEPS)
        snprintf(run->why, sizeof run->why, "more than %d steps in the pattern for %s",
                 MULL__CALL_STEPS, test->name);
    else
        snprintf(run->why, sizeof run->why, "the pattern for %s is too complex", test->name);
    return MULL_EPOLICY;
}

static int tests_pass(match_run *run, const mull__matcher *matcher)
{
    const mull__field_test *test = matcher->tests, *end = test + matcher->test_count;
    for (; test < end; test++) {
        mull_value room;
        const mull_value *given =
            mull__attribute_of(test, run->failure, run->failure->error, &room);
        int answer = mull__condition_passes(&test->value, given, &run->steps);
        if (answer > 0)
            continue;
        run->lost = test;
        return answer == 0 ? 0 : raised(run, test, answer);
    }
    return 1;
}

static int matcher_passes(match_run *run, const mull__matcher *matcher);

/* parts_pass looks no further than it must: `all` to the first that loses, the other two to the
 * first that passes, each of them to the first that raises. */
static int parts_pass(match_run *run, const mull__matcher *matcher)
{
    int all = matcher->kind == MULL__MATCH_ALL, to_the_end = 1;
    for (size_t i = 0; i < matcher->part_count && to_the_end; i++) {
        int answer = matcher_passes(run, &matcher->parts[i]);
        if (answer < 0)
            return answer;
        to_the_end = all == (answer != 0);
    }
    if (!all)
        run->lost = NULL;
    return matcher->kind == MULL__MATCH_ANY ? !to_the_end : to_the_end;
}

/* matcher_passes is 1, 0, or negative where it raised, with the reason in the run. */
static int matcher_passes(match_run *run, const mull__matcher *matcher)
{
    switch (matcher->kind) {
    case MULL__MATCH_TESTS:
        return tests_pass(run, matcher);
    case MULL__MATCH_FUNCTION:
        return function_passes(run, matcher->function);
    case MULL__MATCH_ALL:
    case MULL__MATCH_ANY:
    case MULL__MATCH_NONE:
        return parts_pass(run, matcher);
    case MULL__MATCH_ALWAYS:
        break;
    }
    return 1;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void tell(const match_run *run, const mull_rule *source, const mull__matcher *matcher,
                 int answer)
{
    mull__evaluation *evaluation = run->evaluation;
    const mull__runner *runner = evaluation->context->runner;
    if (run->is_skipped && evaluation->skipped++ == 0)
        evaluation->first_skipped = source;
    if (answer < 0 && !run->is_skipped && runner->failed)
        runner->failed(runner->data, evaluation->failure, source, run->why);
    if (!runner->tried)
        return;
    const mull__match_attempt trial = {
        .kind = run->kind,
        .end = answer > 0   ? MULL__ATTEMPT_PASSED
               : answer < 0 ? MULL__ATTEMPT_RAISED
                            : MULL__ATTEMPT_FAILED,
        .source = source,
        .matcher = matcher,
        .test = answer == 0 ? run->lost : NULL,
        .depth = run->depth,
        .steps = run->most - run->steps,
        .why = answer < 0 ? run->why : NULL,
    };
    runner->tried(runner->data, &trial);
}

/* passes: a matcher that raises doesn't, as a whole. */
static int passes(match_run *run, const mull_rule *source, const mull__matcher *matcher)
{
    int64_t *left = &run->evaluation->steps;
    run->steps = run->most = *left > 0 ? MULL__CALL_STEPS : 0;
    run->is_skipped = 0;
    run->lost = NULL;
    run->why[0] = '\0';
    int answer = matcher_passes(run, matcher);
    *left -= run->most - run->steps + (answer < 0 ? FAILED_STEPS : 0);
    if (answer < 0 || run->evaluation->context->runner->tried)
        tell(run, source, matcher, answer);
    return answer > 0;
}

static const mull__rule *pass_for_type(match_run *run, const mull__rules *rules, uint32_t type)
{
    const mull__rule *rule = mull__first_rule(rules, type);
    while (rule && !passes(run, &rule->source, &rule->matcher))
        rule = mull__next_rule(rules, rule);
    return rule;
}

/* pass_for_lineage leaves Error out. */
static const mull__rule *pass_for_lineage(match_run *run, const mull__rules *rules,
                                          const mull__lineage *lineage)
{
    for (size_t i = 0; i < lineage->count; i++) {
        const mull__rule *rule = pass_for_type(run, rules, (uint32_t)lineage->types[i]);
        if (rule)
            return rule;
    }
    return NULL;
}

/* ---- Causes ---------------------------------------------------------------------------------- */

/* repeats: the `depth`-th cause was looked at before, or is the error itself: a circle. */
static int repeats(const mull_error *error, const mull_error *cause, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++, error = error->cause)
        if (error == cause)
            return 1;
    return 0;
}

/* pass_for_cause looks at one cause as at an error: its own lineage, Error last. */
static const mull__rule *pass_for_cause(mull__evaluation *evaluation, const mull_error *cause,
                                        unsigned depth)
{
    mull_failure failure = *evaluation->failure;
    failure.error = cause;
    match_run run;
    begin(&run, evaluation, &failure, MULL__TRIED_CAUSE_RULE, depth);
    const mull__rules *rules = &evaluation->effective->rules->cause_rules;
    const mull__lineage lineage =
        mull__lineage_sent(evaluation->context->table, cause, evaluation->context->seen);
    const mull__rule *rule = pass_for_lineage(&run, rules, &lineage);
    return rule ? rule : pass_for_type(&run, rules, MULL__ERROR_TYPE);
}

static const mull__rule *pass_for_causes(mull__evaluation *evaluation)
{
    const mull_error *error = evaluation->failure->error, *cause = mull__cause(error);
    const mull__rule *rule = NULL;
    for (unsigned depth = 1; !rule && depth <= CAUSES && cause && !repeats(error, cause, depth);
         depth++, cause = mull__cause(cause))
        rule = pass_for_cause(evaluation, cause, depth);
    return rule;
}

/* ---- All of it ------------------------------------------------------------------------------- */

const mull__rule *mull__match(mull__evaluation *evaluation, const mull__lineage *lineage)
{
    const mull__scope *scope = evaluation->effective->rules;
    if (!scope)
        return NULL;
    match_run run;
    begin(&run, evaluation, evaluation->failure, MULL__TRIED_RULE, 0);
    const mull__rule *rule = pass_for_lineage(&run, &scope->rules, lineage);
    if (!rule && scope->cause_rules.count > 0)
        rule = pass_for_causes(evaluation);
    return rule ? rule : pass_for_type(&run, &scope->rules, MULL__ERROR_TYPE);
}

static int has_type(const mull__lineage *lineage, uint32_t type)
{
    for (size_t i = 0; i < lineage->count; i++)
        if (lineage->types[i] == type)
            return 1;
    return 0;
}

const mull_rule *mull__unrecoverable(mull__evaluation *evaluation, const mull__lineage *lineage)
{
    if (!lineage->unrecoverable)
        return NULL; /* no declaration of any scope is for a type of the lineage */
    static const mull__matcher always = {.kind = MULL__MATCH_ALWAYS};
    static const mull_rule built_in = {.type = "MessageDeserializationError"};
    match_run run;
    begin(&run, evaluation, evaluation->failure, MULL__TRIED_UNRECOVERABLE, 0);
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(evaluation->context->table, evaluation->effective,
                                                  (mull__scope_kind)kind);
        const mull__rule *rule =
            scope ? pass_for_lineage(&run, &scope->unrecoverable, lineage) : NULL;
        if (scope && !rule)
            rule = pass_for_type(&run, &scope->unrecoverable, MULL__ERROR_TYPE);
        if (rule)
            return &rule->source;
    }
    int holds = has_type(lineage, MULL__UNREADABLE_TYPE) &&
                mull__builtin_unrecoverable_applies(evaluation->effective) &&
                passes(&run, &built_in, &always);
    return holds ? &built_in : NULL;
}
