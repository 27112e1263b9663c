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

/* mull__short_text is a text at the end of its room, its NUL last. */
enum { MULL__SHORT = 16 };
typedef struct mull__short_text {
    char bytes[MULL__SHORT];
    size_t size; /* with the NUL; 0: it is too long to be here */
    char first;
} mull__short_text;

/* mull__equality is a field of an error and the literal that it is to equal. */
typedef struct mull__equality {
    char is_last; /* of its matcher's */
    mull__short_text name;
    mull__short_text text; /* of a string */
    const char *whole_name;
    mull_value value;
} mull__equality;

/* mull__equality_of is the only and so the last one of its matcher; it borrows name and value. */
mull__equality mull__equality_of(const char *name, const mull_value *value);

/* mull__equals_all: each field that is wanted is there, and its first equals its literal. */
int mull__equals_all(const mull__equality *wanted, const mull_error *error);

#endif
