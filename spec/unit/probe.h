/* probe.h: a runner for tests of matching: its functions are numbers with a fixed answer, and it
 * writes down, in one line of text, what was looked at and what came of it:
 *
 *   u  an unrecoverable declaration        =  passed
 *   r  a rule                              -  lost; behind it the test at which
 *   1  a rule for the cause, 2, ...        !  raised, and why
 *   f  a function was called: its number, and the type of the error it was given
 *   x  a matcher was told as failed
 *
 * "r3- r4-status f2:Timeout x5 r5!boom r6=": the rules of lines 3 and 4 lost, ... */
#ifndef SPEC_PROBE_H
#define SPEC_PROBE_H

#include <stdio.h>

#include "fixtures.h"

/* ---- Short ways to write values and matchers down -------------------------------------------- */

#define INTEGER(x)                                                                                 \
    {                                                                                              \
        .kind = MULL_INTEGER, .as.integer = (x)                                                    \
    }
#define NUMBER(x)                                                                                  \
    {                                                                                              \
        .kind = MULL_NUMBER, .as.number = (x)                                                      \
    }
#define STRING(x)                                                                                  \
    {                                                                                              \
        .kind = MULL_STRING, .as.string = (x)                                                      \
    }
#define BOOLEAN(x)                                                                                 \
    {                                                                                              \
        .kind = MULL_BOOLEAN, .as.boolean = (x)                                                    \
    }
#define NOTHING                                                                                    \
    {                                                                                              \
        .kind = MULL_NIL                                                                           \
    }

#define FUNCTION(n)                                                                                \
    {                                                                                              \
        MULL__MATCH_FUNCTION, .function = (n)                                                      \
    }

/* ---- The runner ------------------------------------------------------------------------------ */

enum { FUNCTION_NO, FUNCTION_YES, FUNCTION_RAISES, FUNCTIONS };

typedef struct probe {
    char said[8192];
    size_t length;
    const mull_failure *asked; /* by the caller */
    int trials;                /* they are written down too */
} probe;

static inline void probe_say(probe *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (p->length > 0)
        p->length += (size_t)snprintf(p->said + p->length, sizeof p->said - p->length, " ");
    p->length +=
        (size_t)vsnprintf(p->said + p->length, sizeof p->said - p->length, format, arguments);
    va_end(arguments);
    assert_true(p->length < sizeof p->said);
}

static inline int probe_match(void *state, uint32_t function, const mull_failure *failure,
                              int64_t *steps, char *why, size_t why_size)
{
    probe *p = state;
    (void)steps;
    probe_say(p, "f%u:%s", function, failure->error->type);
    assert_ptr_equal(failure->message, p->asked->message);
    assert_ptr_equal(failure->consumer, p->asked->consumer);
    assert_int_equal(failure->attempt, p->asked->attempt);
    if (function < FUNCTION_RAISES)
        return function == FUNCTION_YES;
    snprintf(why, why_size, "boom");
    return MULL_EPOLICY;
}

static inline void probe_failed(void *data, const mull_failure *failure, const mull_rule *rule,
                                const char *why)
{
    probe *p = data;
    assert_ptr_equal(failure->error, p->asked->error); /* the original, whatever was looked at */
    assert_true(why[0] != '\0');
    probe_say(p, "x%d", rule->line);
}

static inline void probe_tried(void *data, const mull__match_attempt *trial)
{
    probe *p = data;
    char who[12] = "u";
    if (trial->kind == MULL__TRIED_RULE)
        strcpy(who, "r");
    if (trial->kind == MULL__TRIED_CAUSE_RULE)
        snprintf(who, sizeof who, "%u", trial->depth);
    else
        assert_int_equal(trial->depth, 0);
    assert_non_null(trial->matcher);
    switch (trial->end) {
    case MULL__ATTEMPT_PASSED:
        probe_say(p, "%s%d=", who, trial->source->line);
        break;
    case MULL__ATTEMPT_FAILED:
        probe_say(p, "%s%d-%s", who, trial->source->line, trial->test ? trial->test->name : "");
        break;
    case MULL__ATTEMPT_RAISED:
        probe_say(p, "%s%d!%s", who, trial->source->line, trial->why);
        break;
    }
    assert_true((trial->why != NULL) == (trial->end == MULL__ATTEMPT_RAISED));
}

/* probe_judge decides, and leaves in `said` how it came to that. */
static inline mull_verdict probe_judge(probe *p, const mull__table *table,
                                       const mull_failure *failure)
{
    const mull__runner runner = {
        .match = probe_match,
        .state = p,
        .failed = probe_failed,
        .data = p,
        .tried = p->trials ? probe_tried : NULL,
    };
    uint64_t *seen = malloc(mull__table_scratch_words(table) * sizeof *seen + 1);
    mull_verdict verdict = MULL_INIT(mull_verdict);
    p->asked = failure;
    p->length = 0;
    p->said[0] = '\0';
    mull__evaluate(table, failure, &runner, seen, &verdict);
    free(seen);
    return verdict;
}

/* probe_bus is all of it for a single scope of a policy: the bus. */
static inline mull_verdict probe_bus(probe *p, const mull__plain_scope *bus,
                                     const mull_failure *failure)
{
    mull__table *table = new_table(&(mull__plain){NULL, 0, bus, 1, FUNCTIONS});
    mull_verdict verdict = probe_judge(p, table, failure);
    mull__table_free(table);
    return verdict;
}

/* probe_passes: a rule with this matcher, in line 7, decides. */
static inline int probe_passes(probe *p, const mull__matcher *matcher, const mull_failure *failure)
{
    mull__plain_rule rule = DEAD_LETTER_RULE("Error", 7);
    rule.matcher = *matcher;
    const mull__plain_scope bus = {.kind = MULL__BUS, .rules = &rule, .rule_count = 1};
    return probe_bus(p, &bus, failure).rule.line == 7;
}

#endif
