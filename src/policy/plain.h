/* plain.h: a policy as plain data, before it is compiled: what lua/mulligan/policy.lua found in a
 * policy's files, checked there, read out by src/lua/compile.c. Everything here is borrowed by
 * mull__table_new, which copies what it keeps.
 *
 *   mull__plain ── parents   DeadlockError = "DatabaseError"
 *              └── scopes ── rules, in the order in which they are tried within a type
 *                        └── settings
 */
#ifndef MULL__PLAIN_H
#define MULL__PLAIN_H

#include "mulligan.h"

typedef struct mull__plain_parent {
    const char *child, *parent;
} mull__plain_parent;

typedef enum mull__matcher_kind {
    MULL__MATCH_ALWAYS,  /* no matcher */
    MULL__MATCH_FIELDS,  /* every field equals its literal */
    MULL__MATCH_FUNCTION /* function number `function` of the policy */
} mull__matcher_kind;

typedef struct mull__plain_matcher {
    mull__matcher_kind kind;
    const mull_field *fields; /* literals: strings, numbers, booleans */
    size_t field_count;
    uint32_t function; /* from 0, in the order in which the statements ran */
} mull__plain_matcher;

typedef enum mull__backoff { MULL__CONSTANT, MULL__LINEAR, MULL__EXPONENTIAL } mull__backoff;

enum { MULL__NO_CAP = -1, MULL__ATTEMPTS_MAX = 1000 };

/* mull__plain_tier is `retry` or `redeliver` with its arguments, defaults filled in. */
typedef struct mull__plain_tier {
    int on;                /* 0: the chain has no such step, and the rest is not looked at */
    int64_t attempts;      /* 0 ... MULL__ATTEMPTS_MAX, or MULL_UNLIMITED (not with `delays`) */
    const int64_t *delays; /* exactly these, `delay_count`; NULL: computed from the next three */
    size_t delay_count;
    int64_t base_ms;
    mull__backoff backoff;
    double factor;        /* from 1; for MULL__EXPONENTIAL */
    int64_t max_delay_ms; /* MULL__NO_CAP: none */
    double jitter;        /* 0 ... 1 */
} mull__plain_tier;

typedef struct mull__plain_rule {
    const char *type; /* "Error" for default() */
    const char *file;
    int line;
    mull__plain_matcher matcher;
    mull__plain_tier retry, redeliver;
    mull_action end;   /* MULL_DEAD_LETTER or MULL_DISCARD */
    const char *queue; /* of the end; NULL: the scope's dead_letter_queue */
    const char *note;  /* of a discard; NULL: none */
} mull__plain_rule;

typedef enum mull__scope_kind {
    MULL__CONSUMER, /* the nearest first */
    MULL__TRANSPORT,
    MULL__BUS,
    MULL__HOST,
    MULL__SCOPE_KINDS
} mull__scope_kind;

enum { MULL__UNSET = 0, MULL__OFF = -1 };

/* mull__plain_settings: MULL__UNSET where the scope doesn't set it, MULL__OFF where it says false,
 * except max_age, of which 0 is a value. */
typedef struct mull__plain_settings {
    const char *dead_letter_queue; /* NULL: not set; "": set to false, so the default */
    int has_max_age;               /* 0: max_age_ms isn't set */
    int64_t max_age_ms;            /* MULL__OFF, or from 0 */
    int64_t max_attempts;
    int64_t max_deliveries;
} mull__plain_settings;

typedef struct mull__plain_scope {
    mull__scope_kind kind;
    const char *name; /* of a consumer or transport; NULL for bus and host */
    const mull__plain_rule *rules;
    size_t rule_count;
    mull__plain_settings settings;
} mull__plain_scope;

typedef struct mull__plain {
    const mull__plain_parent *parents; /* no cycle, no second parent, none for "Error" */
    size_t parent_count;
    const mull__plain_scope *scopes; /* each (kind, name) once */
    size_t scope_count;
    uint32_t function_count;
} mull__plain;

#endif
