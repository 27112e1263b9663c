/* plain.h: a policy as plain data, before it is compiled: what lua/mulligan/policy.lua found in a
 * policy's files, checked there, read out by src/lua/compile.c. Everything here is borrowed by
 * mull__table_new, which copies what it keeps.
 *
 *   mull__plain ── parents   DeadlockError = "DatabaseError"
 *              └── scopes ── rules, cause_rules   in the order in which they are tried within a
 * type ├── unrecoverable ├── settings             and the place of each └── includes, replaced
 * where rules came from, and which are gone
 */
#ifndef MULL__PLAIN_H
#define MULL__PLAIN_H

#include "mulligan.h"

typedef struct mull__plain_parent {
    const char *child, *parent;
} mull__plain_parent;

/* ---- Matchers -------------------------------------------------------------------------------- */

typedef enum mull__value_kind {
    MULL__ONE_OF,   /* equal to one of the literals */
    MULL__BETWEEN,  /* a number; both ends belong to it */
    MULL__CONTAINS, /* a string in which the text stands */
    MULL__MATCHES,  /* a string in which the pattern finds something */
    MULL__PRESENT,
    MULL__ABSENT,
    MULL__NOT /* what `inner` doesn't match, a missing field too */
} mull__value_kind;

typedef struct mull__plain_value {
    mull__value_kind kind;
    const mull_value *literals; /* MULL__ONE_OF: strings, numbers, booleans */
    size_t literal_count;
    mull_value low, high; /* MULL__BETWEEN: numbers; MULL_NIL: open on that side */
    const char *text;     /* MULL__CONTAINS, MULL__MATCHES: a pattern that was checked */
    const struct mull__plain_value *inner; /* MULL__NOT */
} mull__plain_value;

typedef enum mull__subject {
    MULL__OF_ERROR,   /* a field; also type, message, stack */
    MULL__OF_CTX,     /* attempt redeliveries deliveries calls age_ms consumer transport */
    MULL__OF_MESSAGE, /* id type key size */
    MULL__OF_HEADER
} mull__subject;

typedef struct mull__plain_test {
    mull__subject subject;
    const char *name;
    mull__plain_value value;
    unsigned
        fact; /* the table's own: which one subject and name mean, so that no name is compared */
} mull__plain_test;

typedef enum mull__matcher_kind {
    MULL__MATCH_ALWAYS,   /* no matcher */
    MULL__MATCH_TESTS,    /* every test passes */
    MULL__MATCH_FUNCTION, /* function number `function` of the policy */
    MULL__MATCH_ALL,      /* of the parts, looked at in the order written, no further than needed */
    MULL__MATCH_ANY,
    MULL__MATCH_NONE
} mull__matcher_kind;

typedef struct mull__plain_matcher {
    mull__matcher_kind kind;
    const mull__plain_test *tests;
    size_t test_count;
    const struct mull__equality *equals; /* the table's own: the tests again, where each is for a
                                            field of the error to equal one literal; NULL */
    uint32_t function;                   /* from 0, in the order in which the statements ran */
    const struct mull__plain_matcher *parts;
    size_t part_count;
} mull__plain_matcher;

/* How deep a matcher, or an is_not, may be nested: for who walks one by calling itself. */
enum { MULL__NESTING_MAX = 100 };

/* ---- Rules ----------------------------------------------------------------------------------- */

typedef enum mull__backoff { MULL__CONSTANT, MULL__LINEAR, MULL__EXPONENTIAL } mull__backoff;

typedef enum mull__jitter_kind {
    MULL__JITTER_FRACTION, /* `jitter`, of the delay */
    MULL__JITTER_FULL,
    MULL__JITTER_DECORRELATED
} mull__jitter_kind;

enum { MULL__NO_CAP = -1, MULL__ATTEMPTS_MAX = 1000 };

/* mull__span: whole milliseconds, both ends belong to it. */
typedef struct mull__span {
    int64_t low_ms, high_ms;
} mull__span;

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
    double jitter;        /* 0 ... 1; for MULL__JITTER_FRACTION */
    mull__jitter_kind jitter_kind;
    const char *hint;             /* a field of the error, in seconds; NULL: none */
    const struct mull__lot *lots; /* the table's own: its first steps, worked out ahead */
    int64_t lot_count;            /* 0 where they depend on more than their lots and chance */
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
    const char *scope; /* label of where it was written; NULL: in the scope that has it */
} mull__plain_rule;

/* mull__plain_unrecoverable: a type that is dead-lettered before any rule. */
typedef struct mull__plain_unrecoverable {
    const char *type, *file;
    int line;
    mull__plain_matcher matcher;
} mull__plain_unrecoverable;

/* ---- Scopes ---------------------------------------------------------------------------------- */

typedef enum mull__scope_kind {
    MULL__CONSUMER, /* the nearest first */
    MULL__TRANSPORT,
    MULL__BUS,
    MULL__HOST,
    MULL__SCOPE_KINDS
} mull__scope_kind;

/* mull__setting: what a scope can set, each resolved by itself. */
typedef enum mull__setting {
    MULL__DEAD_LETTER_QUEUE,
    MULL__MAX_AGE,
    MULL__MAX_ATTEMPTS,
    MULL__MAX_DELIVERIES,
    MULL__RATE_LIMIT,
    MULL__OVERRIDE,
    MULL__NOTIFY,
    MULL__SETTINGS
} mull__setting;

typedef struct mull__plain_place {
    const char *file; /* NULL: nowhere */
    int line;
} mull__plain_place;

enum { MULL__UNSET = 0, MULL__OFF = -1 };

/* mull__plain_settings: MULL__UNSET where the scope doesn't set it, MULL__OFF where it says false,
 * except max_age, of which 0 is a value. */
typedef struct mull__plain_settings {
    const char *dead_letter_queue; /* NULL: not set; "": set to false, so the default */
    int has_max_age;               /* 0: max_age_ms isn't set */
    int64_t max_age_ms;            /* MULL__OFF, or from 0 */
    int64_t max_attempts;
    int64_t max_deliveries;
    int64_t rate_after;       /* failures in a row, from 1 */
    int64_t rate_wait_ms;     /* where rate_after is from 1 */
    int64_t override, notify; /* the number of a function, and 1 */
    mull__plain_place places[MULL__SETTINGS];
} mull__plain_settings;

typedef struct mull__plain_include {
    const char *scope; /* its label */
    const char *file;
    int line;
} mull__plain_include;

/* mull__plain_replaced is a rule without a matcher that isn't among the rules, and the one that
 * stands for it. */
typedef struct mull__plain_replaced {
    const char *type;
    const char *scope; /* label of where it was written; NULL: in the scope itself */
    const char *file;
    int line;
    const char *by_file;
    int by_line;
    int by_cause; /* both are on_cause rules */
} mull__plain_replaced;

typedef struct mull__plain_scope {
    mull__scope_kind kind;
    const char *name; /* of a consumer or transport; NULL for bus and host */
    const mull__plain_rule *rules;
    size_t rule_count;
    mull__plain_settings settings;
    const mull__plain_rule *cause_rules;
    size_t cause_rule_count;
    const mull__plain_unrecoverable *unrecoverable;
    size_t unrecoverable_count;
    const mull__plain_include *includes;
    size_t include_count;
    const mull__plain_replaced *replaced;
    size_t replaced_count;
} mull__plain_scope;

typedef struct mull__plain {
    const mull__plain_parent *parents; /* no cycle, no second parent, none for "Error" */
    size_t parent_count;
    const mull__plain_scope *scopes; /* each (kind, name) once */
    size_t scope_count;
    uint32_t function_count;
} mull__plain;

#endif
