/* match.c: see match.h. */
#include "match.h"

#include <stdio.h>

#include "base/given.h"
#include "base/pattern.h"
#include "fact.h"
#include "value.h"

/* The budget of a matcher's call in pattern steps, for all tests of one matcher together. */
enum { PATTERN_STEPS = 100000, CAUSES = 16 };

/* glance is a look at one error: the failure's own, or one of its causes, in which case `failure`
 * is a copy that carries the cause as its error. */
typedef struct glance {
    const mull__inquiry *inquiry;
    const mull_failure *failure;
    mull__trial_kind kind;
    unsigned depth;
} glance;

/* ---- One matcher ----------------------------------------------------------------------------- */

/* ordeal is one matcher being tried. */
typedef struct ordeal {
    const glance *glance;
    int64_t steps;                /* left */
    const mull__plain_test *lost; /* the test at which what was tried last lost; NULL */
    char why[512];                /* it raised */
} ordeal;

static int function_passes(ordeal *o, uint32_t function)
{
    const mull__runner *runner = o->glance->inquiry->desk->runner;
    o->lost = NULL;
    return runner->match(runner->state, function, o->glance->failure, o->why, sizeof o->why);
}

static int raised(ordeal *o, const mull__plain_test *test, int code)
{
    if (code == MULL__PATTERN_SPENT)
        snprintf(o->why, sizeof o->why, "more than %d steps in the pattern for %s", PATTERN_STEPS,
                 test->name);
    else
        snprintf(o->why, sizeof o->why, "the pattern for %s is too complex", test->name);
    return MULL_EPOLICY;
}

/* test_passes: most tests are for an error's field to equal one literal. */
static inline int test_passes(ordeal *o, const mull__plain_test *test)
{
    const mull_failure *failure = o->glance->failure;
    mull_value room;
    const mull_value *given = test->fact == MULL__ERROR_FIELD
                                  ? mull__field_of(failure->error, test->name)
                                  : mull__fact_of(test, failure, failure->error, &room);
    if (test->value.kind == MULL__ONE_OF && test->value.literal_count == 1)
        return given && mull__value_equals(test->value.literals, given);
    return mull__value_passes(&test->value, given, &o->steps);
}

static int tests_pass(ordeal *o, const mull__plain_matcher *matcher)
{
    const mull__plain_test *test = matcher->tests, *end = test + matcher->test_count;
    for (; test < end; test++) {
        int answer = test_passes(o, test);
        if (answer > 0)
            continue;
        o->lost = test;
        return answer == 0 ? 0 : raised(o, test, answer);
    }
    return 1;
}

static int matcher_passes(ordeal *o, const mull__plain_matcher *matcher);

/* parts_pass looks no further than it must: `all` to the first that loses, the other two to the
 * first that passes, each of them to the first that raises. */
static int parts_pass(ordeal *o, const mull__plain_matcher *matcher)
{
    int all = matcher->kind == MULL__MATCH_ALL, to_the_end = 1;
    for (size_t i = 0; i < matcher->part_count && to_the_end; i++) {
        int answer = matcher_passes(o, &matcher->parts[i]);
        if (answer < 0)
            return answer;
        to_the_end = all == (answer != 0);
    }
    if (!all)
        o->lost = NULL;
    return matcher->kind == MULL__MATCH_ANY ? !to_the_end : to_the_end;
}

/* matcher_passes is 1, 0, or negative where it raised, with the reason in the ordeal. */
static int matcher_passes(ordeal *o, const mull__plain_matcher *matcher)
{
    switch (matcher->kind) {
    case MULL__MATCH_TESTS:
        return tests_pass(o, matcher);
    case MULL__MATCH_FUNCTION:
        return function_passes(o, matcher->function);
    case MULL__MATCH_ALL:
    case MULL__MATCH_ANY:
    case MULL__MATCH_NONE:
        return parts_pass(o, matcher);
    case MULL__MATCH_ALWAYS:
        break;
    }
    return 1;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void tell(const ordeal *o, const mull_rule *source, const mull__plain_matcher *matcher,
                 int answer)
{
    const mull__runner *runner = o->glance->inquiry->desk->runner;
    if (answer < 0 && runner->failed)
        runner->failed(runner->data, o->glance->inquiry->failure, source, o->why);
    if (!runner->tried)
        return;
    mull__trial trial = {
        .kind = o->glance->kind,
        .end = answer > 0   ? MULL__TRIAL_PASSED
               : answer < 0 ? MULL__TRIAL_RAISED
                            : MULL__TRIAL_LOST,
        .source = source,
        .matcher = matcher,
        .test = answer == 0 ? o->lost : NULL,
        .depth = o->glance->depth,
        .why = answer < 0 ? o->why : NULL,
    };
    runner->tried(runner->data, &trial);
}

/* is_passed: a matcher that raises isn't, as a whole. */
static int is_passed(const glance *g, const mull_rule *source, const mull__plain_matcher *matcher)
{
    ordeal o;
    o.glance = g;
    o.steps = PATTERN_STEPS;
    o.lost = NULL;
    o.why[0] = '\0';
    int answer =
        matcher->kind == MULL__MATCH_TESTS ? tests_pass(&o, matcher) : matcher_passes(&o, matcher);
    if (answer < 0 || g->inquiry->desk->runner->tried)
        tell(&o, source, matcher, answer);
    return answer > 0;
}

/* passes: a rule without a matcher does always. */
static inline int passes(const glance *g, const mull_rule *source,
                         const mull__plain_matcher *matcher)
{
    return (matcher->kind == MULL__MATCH_ALWAYS && !g->inquiry->desk->runner->tried) ||
           is_passed(g, source, matcher);
}

static const mull__rule *pass_for_type(const glance *g, const mull__rules *rules, uint32_t type)
{
    const mull__rule *rule = mull__first_rule(rules, type);
    while (rule && !passes(g, &rule->source, &rule->matcher))
        rule = mull__next_rule(rules, rule);
    return rule;
}

/* pass_for_lineage leaves Error out. */
static const mull__rule *pass_for_lineage(const glance *g, const mull__rules *rules,
                                          const mull__lineage *lineage)
{
    for (size_t i = 0; i < lineage->count; i++) {
        const mull__rule *rule = pass_for_type(g, rules, (uint32_t)lineage->types[i]);
        if (rule)
            return rule;
    }
    return NULL;
}

/* ---- Causes ---------------------------------------------------------------------------------- */

/* repeats: the `depth`-th cause was looked at before, or is the error itself: a circle. */
static int repeats(const mull__inquiry *inquiry, const mull_error *cause, unsigned depth)
{
    const mull_error *error = inquiry->failure->error;
    for (unsigned i = 0; i < depth; i++, error = error->cause)
        if (error == cause)
            return 1;
    return 0;
}

/* pass_for_cause looks at one cause as at an error: its own lineage, Error last. */
static const mull__rule *pass_for_cause(const mull__inquiry *inquiry, const mull_error *cause,
                                        unsigned depth)
{
    mull_failure failure = *inquiry->failure;
    failure.error = cause;
    const glance g = {inquiry, &failure, MULL__TRIED_CAUSE_RULE, depth};
    const mull__rules *rules = &inquiry->layer->rules->cause_rules;
    const mull__desk *desk = inquiry->desk;
    mull__lineage room;
    const mull__lineage *lineage = cause->type
                                       ? mull__lineage_of(desk->table, cause, desk->seen, &room)
                                       : mull__lineage_sent(desk->table, cause, desk->seen, &room);
    const mull__rule *rule = pass_for_lineage(&g, rules, lineage);
    return rule ? rule : pass_for_type(&g, rules, MULL__ERROR_TYPE);
}

static const mull__rule *pass_for_causes(const mull__inquiry *inquiry)
{
    const mull_error *cause = mull__cause(inquiry->failure->error);
    for (unsigned depth = 1; depth <= CAUSES && cause; depth++, cause = mull__cause(cause)) {
        if (repeats(inquiry, cause, depth))
            break;
        const mull__rule *rule = pass_for_cause(inquiry, cause, depth);
        if (rule)
            return rule;
    }
    return NULL;
}

/* ---- All of it ------------------------------------------------------------------------------- */

const mull__rule *mull__match(const mull__inquiry *inquiry, const mull__lineage *lineage)
{
    const mull__scope *scope = inquiry->layer->rules;
    if (!scope)
        return NULL;
    const glance g = {inquiry, inquiry->failure, MULL__TRIED_RULE, 0};
    const mull__rule *rule = pass_for_lineage(&g, &scope->rules, lineage);
    if (!rule && scope->cause_rules.count > 0)
        rule = pass_for_causes(inquiry);
    return rule ? rule : pass_for_type(&g, &scope->rules, MULL__ERROR_TYPE);
}

static int has_type(const mull__lineage *lineage, uint32_t type)
{
    for (size_t i = 0; i < lineage->count; i++)
        if (lineage->types[i] == type)
            return 1;
    return 0;
}

static int declared(const glance *g, const mull__rules *rules, const mull__lineage *lineage)
{
    return pass_for_lineage(g, rules, lineage) || pass_for_type(g, rules, MULL__ERROR_TYPE);
}

int mull__unrecoverable(const mull__inquiry *inquiry, const mull__lineage *lineage)
{
    if (lineage->mark != MULL__UNRECOVERABLE)
        return 0; /* no declaration of any scope is for a type of the lineage */
    static const mull__plain_matcher always = {.kind = MULL__MATCH_ALWAYS};
    static const mull_rule built_in = {.type = "MessageDeserializationError"};
    const glance g = {inquiry, inquiry->failure, MULL__TRIED_UNRECOVERABLE, 0};
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope =
            mull__scope_of(inquiry->desk->table, inquiry->layer, (mull__scope_kind)kind);
        if (scope && declared(&g, &scope->unrecoverable, lineage))
            return 1;
    }
    return has_type(lineage, MULL__UNREADABLE_TYPE) && mull__built_in_holds(inquiry->layer) &&
           passes(&g, &built_in, &always);
}
