/* limits.h: what rate_limit and limit say of a consumer's calls. docs/policy.md tells the meaning.
 */
#ifndef MULL__LIMITS_H
#define MULL__LIMITS_H

#include "model.h"

/* The value of what is switched off, or not said. */
enum { MULL__OFF = -1 };

/* mull__per says what a statement counts for: each value has a count and a limit of its own. */
typedef enum mull__per_kind {
    MULL__PER_CONSUMER, /* nothing was said: the consumer as a whole */
    MULL__PER_KEY,
    MULL__PER_TYPE,
    MULL__PER_HEADER
} mull__per_kind;

/* What a policy and docs/plain-rules.md call each kind, by its number; NULL behind the last one. */
extern const char *const mull__per_words[];

typedef struct mull__per {
    mull__per_kind kind;
    const char *header; /* of MULL__PER_HEADER; else NULL */
} mull__per;

/* mull__type_list names error types; mull__table_finish fills in their numbers. */
typedef struct mull__type_list {
    const char **names;
    uint32_t *types; /* room for as many */
    size_t count;
} mull__type_list;

/* mull__rate_limit is one rate_limit statement, defaults filled in. */
typedef struct mull__rate_limit {
    mull__per per;
    mull__source_pos place;
    int64_t after;                /* failures in a row; MULL__OFF: it goes by `ratio` */
    double ratio;                 /* 0 ... 1; 0: it goes by `after` */
    int64_t window_ms, least;     /* of `ratio`; else 0 */
    int64_t messages;             /* so many different ones must be among the failures */
    int64_t within_ms;            /* of `after`; MULL__OFF */
    mull__type_list only, except; /* `count` 0: not said */
    int64_t wait_ms, max_wait_ms;
    const char *hint; /* a field of the error, in seconds; NULL: none */
    int64_t successes;
    int keep;
    int64_t ramp_ms; /* 0: none */
} mull__rate_limit;

/* mull__call_limit is one limit statement: `count` calls in `unit_ms`. */
typedef struct mull__call_limit {
    mull__per per;
    mull__source_pos place;
    int64_t count, unit_ms, burst;
} mull__call_limit;

#endif
