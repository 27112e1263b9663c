/* struct_compat.h: what an embedder gave, read with care: structs of another release's size, lists
 * that are NULL, kinds that nobody knows, causes that are no errors.
 *
 * docs/decisions/0013-structs-that-grow.md says how a field is added to one of the structs. */
#ifndef MULL__STRUCT_COMPAT_H
#define MULL__STRUCT_COMPAT_H

#include <string.h>

#include "mulligan.h"

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* MULL__SIZE_TO is the size of a struct that ends in a field, on any machine. */
#define MULL__SIZE_TO(type, field)                                                                 \
    ((offsetof(type, field) + sizeof(((type *)0)->field) + _Alignof(type) - 1) / _Alignof(type) *  \
     _Alignof(type))

/* The least size of each struct that begins with one: what it was in 0.1.0, up to the field that
 * was its last. */
enum {
    MULL__MESSAGE_LEAST = MULL__SIZE_TO(mull_message, deliveries),
    MULL__ERROR_LEAST = MULL__SIZE_TO(mull_error, cause),
    MULL__FAILURE_LEAST = MULL__SIZE_TO(mull_failure, held_ms),
    MULL__VERDICT_LEAST = MULL__SIZE_TO(mull_verdict, generation),
    MULL__POLICY_OPTIONS_LEAST = MULL__SIZE_TO(mull_policy_options, host_text_size),
    MULL__ENGINE_OPTIONS_LEAST = MULL__SIZE_TO(mull_engine_options, quiet_ms),
    MULL__CONSUMER_OPTIONS_LEAST = MULL__SIZE_TO(mull_consumer_options, type_count),
    MULL__COUNTS_LEAST = MULL__SIZE_TO(mull_counts, notify_failed)
};

/* mull__struct_copy_in copies a struct that was given, of any release from 0.1.0 on, to `own`,
 * which is of this one's `size`: what is missing is 0, what is beyond is left. 0: none was given,
 * or less than `least`. */
static inline int mull__struct_copy_in(void *own, size_t size, size_t least, const void *given)
{
    size_t has = given ? *(const size_t *)given : 0;
    if (has < least)
        return 0;
    size_t taken = has < size ? has : size;
    memcpy(own, given, taken);
    memset((char *)own + taken, 0, size - taken);
    *(size_t *)own = size;
    return 1;
}

/* mull__struct_copy_out is the same the other way: what the struct that was given has no room for
 * is left out, and what it has beyond stays as it is. */
static inline int mull__struct_copy_out(void *given, size_t least, const void *own, size_t size)
{
    size_t has = given ? *(const size_t *)given : 0;
    if (has < least)
        return 0;
    memcpy((char *)given + sizeof has, (const char *)own + sizeof has,
           (has < size ? has : size) - sizeof has);
    return 1;
}

/* ---- Lists and kinds ------------------------------------------------------------------------- */

static inline size_t mull__field_count(const mull_error *error)
{
    return error->fields ? error->field_count : 0;
}

static inline size_t mull__lineage_count(const mull_error *error)
{
    return error->lineage ? error->lineage_count : 0;
}

static inline size_t mull__header_count(const mull_message *message)
{
    return message->headers ? message->header_count : 0;
}

/* mull__cause is an error's cause. NULL: there is none, or what is there is no error of ours. */
static inline const mull_error *mull__cause(const mull_error *error)
{
    const mull_error *cause = error->cause;
    return cause && cause->size >= MULL__ERROR_LEAST ? cause : NULL;
}

/* mull__kind is a value's kind; MULL_NIL where it isn't what it says: a string, a list or a map
 * that is NULL, or of a kind that isn't known. */
static inline mull_kind mull__kind(const mull_value *value)
{
    switch (value->kind) {
    case MULL_NIL:
    case MULL_BOOLEAN:
    case MULL_INTEGER:
    case MULL_NUMBER:
        return value->kind;
    case MULL_STRING:
        return value->as.string ? MULL_STRING : MULL_NIL;
    case MULL_LIST:
        return value->as.items || value->count == 0 ? MULL_LIST : MULL_NIL;
    case MULL_MAP:
        return value->as.fields || value->count == 0 ? MULL_MAP : MULL_NIL;
    }
    return MULL_NIL;
}

#endif
