/* verdicts.h: all that a verdict says, to be compared and kept. */
#ifndef SPEC_VERDICTS_H
#define SPEC_VERDICTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mulligan.h"

/* All that a verdict says: its numbers, its texts. */
#define VERDICT_NUMBERS(X)                                                                         \
    X(action) X(reason) X(tier) X(fallback) X(delay_ms) X(step) X(of) X(rule.line)
#define VERDICT_TEXTS(X)          X(queue) X(note) X(rule.file) X(rule.scope) X(rule.type) X(generation)
#define VERDICT_FIELD_NAME(field) #field,

static const char *const verdict_field_names[] = {VERDICT_NUMBERS(VERDICT_FIELD_NAME)
                                                      VERDICT_TEXTS(VERDICT_FIELD_NAME)};

enum { VERDICT_FIELDS = sizeof verdict_field_names / sizeof *verdict_field_names, KEPT_TEXT = 64 };

static inline int same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* differences has a bit for each field in which two verdicts differ, in the order of their names.
 */
static inline unsigned differences(const mull_verdict *a, const mull_verdict *b)
{
    unsigned found = 0, bit = 1;
#define VERDICT_NUMBER_DIFFERS(field) found |= a->field != b->field ? bit : 0, bit <<= 1;
#define VERDICT_TEXT_DIFFERS(field)   found |= same(a->field, b->field) ? 0 : bit, bit <<= 1;
    VERDICT_NUMBERS(VERDICT_NUMBER_DIFFERS)
    VERDICT_TEXTS(VERDICT_TEXT_DIFFERS)
    return found;
}

/* assert_same names the first field in which two verdicts differ. */
static inline void assert_same(const mull_verdict *a, const mull_verdict *b)
{
    unsigned found = differences(a, b);
    for (size_t i = 0; i < VERDICT_FIELDS; i++)
        if (found >> i & 1)
            fail_msg("the verdicts differ in %s", verdict_field_names[i]);
}

/* kept is a verdict that outlives its decider: its texts are its own, and short. */
typedef struct kept {
    mull_verdict verdict;
    char texts[VERDICT_FIELDS][KEPT_TEXT];
} kept;

static inline const char *keep_text(char to[KEPT_TEXT], const char *text)
{
    if (!text)
        return NULL;
    assert_in_range(snprintf(to, KEPT_TEXT, "%s", text), 0, KEPT_TEXT - 1);
    return to;
}

static inline void keep(kept *k, const mull_verdict *verdict)
{
    size_t next = 0;
    k->verdict = *verdict;
#define VERDICT_KEEP(field) k->verdict.field = keep_text(k->texts[next++], verdict->field);
    VERDICT_TEXTS(VERDICT_KEEP)
}

#endif
