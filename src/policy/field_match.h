/* field_match.h: what a test of a table matcher looks at, and whether that passes. */
#ifndef MULL__FIELD_MATCH_H
#define MULL__FIELD_MATCH_H

#include <string.h>

#include "base/struct_compat.h"
#include "model.h"

/* mull__attribute is what a subject and a name mean together. */
typedef enum mull__attribute {
    MULL__NO_ATTRIBUTE, /* always absent: `cause`, or a name that the subject doesn't have */
    MULL__ERROR_FIELD,  /* by its name */
    MULL__ERROR_TYPE_NAME,
    MULL__ERROR_MESSAGE,
    MULL__ERROR_STACK,
    MULL__ATTEMPT,
    MULL__REDELIVERIES,
    MULL__DELIVERIES,
    MULL__CALLS,
    MULL__AGE,
    MULL__CONSUMER_NAME,
    MULL__TRANSPORT_NAME,
    MULL__MESSAGE_ID,
    MULL__MESSAGE_TYPE,
    MULL__MESSAGE_KEY,
    MULL__MESSAGE_SIZE,
    MULL__HEADER /* by its name */
} mull__attribute;

mull__attribute mull__attribute_named(mull__subject subject, const char *name);

/* mull__field_in is the first field of a name, from `field` to before `end`, whatever its kind.
 * NULL: there is none. A field without a name is none. */
static inline const mull_field *mull__field_in(const mull_field *field, const mull_field *end,
                                               const char *name)
{
    for (; field < end; field++)
        if (field->name && field->name[0] == name[0] && strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

/* mull__fields_end is the end of an error's fields, of which there may be none, nowhere. */
static inline const mull_field *mull__fields_end(const mull_error *error)
{
    return error->fields ? error->fields + error->field_count : NULL;
}

/* mull__field_of is the value of an error's field. NULL: there is none, or it is a list, a map or
 * null. */
static inline const mull_value *mull__field_of(const mull_error *error, const char *name)
{
    const mull_field *field = mull__field_in(error->fields, mull__fields_end(error), name);
    mull_kind kind = field ? mull__kind(&field->value) : MULL_NIL;
    return kind != MULL_NIL && kind < MULL_LIST ? &field->value : NULL;
}

/* mull__attribute_of gives the value of what a test looks at in a failure and one of its errors:
 * its own memory, or `room`. NULL: it is absent, as lists and maps are too. */
const mull_value *mull__attribute_of(const mull__field_test *test, const mull_failure *failure,
                                     const mull_error *error, mull_value *room);

/* ---- Whether it passes ------------------------------------------------------------------------
 */

/* mull__condition_passes is 1 or 0, or negative where a pattern could not be tried to its end:
 * MULL__PATTERN_OUT_OF_STEPS (`steps` counts down) or MULL__PATTERN_COMPLEX. `given` is NULL where
 * the field is absent; it is never a list or a map. */
int mull__condition_passes(const mull__condition *wanted, const mull_value *given, int64_t *steps);

/* mull__numbers_equal is false where one isn't a number. */
int mull__numbers_equal(const mull_value *a, const mull_value *b);

/* mull__values_equal compares two strings, numbers or booleans, type included; the second may be
 * whatever an embedder gave. */
static inline int mull__values_equal(const mull_value *a, const mull_value *b)
{
    if (a->kind == b->kind) {
        if (a->kind == MULL_INTEGER)
            return a->as.integer == b->as.integer;
        if (a->kind == MULL_BOOLEAN)
            return a->as.boolean == b->as.boolean || !a->as.boolean == !b->as.boolean;
        if (a->kind == MULL_STRING)
            return b->as.string && strcmp(a->as.string, b->as.string) == 0;
    }
    return mull__numbers_equal(a, b);
}

#endif
