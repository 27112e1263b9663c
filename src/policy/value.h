/* value.h: whether a value is what a test wants. */
#ifndef MULL__VALUE_H
#define MULL__VALUE_H

#include <string.h>

#include "plain.h"

/* mull__value_passes is 1 or 0, or negative where a pattern could not be tried to its end:
 * MULL__PATTERN_SPENT (`steps` counts down) or MULL__PATTERN_COMPLEX. `given` is NULL where the
 * field is absent; it is never a list or a map. */
int mull__value_passes(const mull__plain_value *wanted, const mull_value *given, int64_t *steps);

/* mull__number_equals is false where one isn't a number. */
int mull__number_equals(const mull_value *a, const mull_value *b);

/* mull__value_equals compares two strings, numbers or booleans, type included; the second may be
 * whatever an embedder gave. */
static inline int mull__value_equals(const mull_value *a, const mull_value *b)
{
    if (a->kind == b->kind) {
        if (a->kind == MULL_INTEGER)
            return a->as.integer == b->as.integer;
        if (a->kind == MULL_BOOLEAN)
            return a->as.boolean == b->as.boolean || !a->as.boolean == !b->as.boolean;
        if (a->kind == MULL_STRING)
            return b->as.string && strcmp(a->as.string, b->as.string) == 0;
    }
    return mull__number_equals(a, b);
}

#endif
