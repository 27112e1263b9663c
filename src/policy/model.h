/* model.h: what rules say: matchers, tiers, and where things were written. docs/plain-rules.md has
 * the same as lua/mulligan/policy.lua gives it; src/lua/language/compile.c reads it, straight into
 * the table's memory. */
#ifndef MULL__MODEL_H
#define MULL__MODEL_H

#include "mulligan.h"

typedef struct mull__type_parent {
    const char *child, *parent;
} mull__type_parent;

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

typedef struct mull__condition {
    mull__value_kind kind;
    const mull_value *literals; /* MULL__ONE_OF: strings, numbers, booleans */
    size_t literal_count;
    mull_value low, high; /* MULL__BETWEEN: numbers; MULL_NIL: open on that side */
    const char *text;     /* MULL__CONTAINS, MULL__MATCHES: a pattern that was checked */
    const struct mull__condition *inner; /* MULL__NOT */
} mull__condition;

typedef enum mull__subject {
    MULL__OF_ERROR,   /* a field; also type, message, stack */
    MULL__OF_CTX,     /* attempt redeliveries deliveries calls age_ms consumer transport */
    MULL__OF_MESSAGE, /* id type key size */
    MULL__OF_HEADER
} mull__subject;

typedef struct mull__field_test {
    mull__subject subject;
    const char *name;
    mull__condition value;
    unsigned attribute; /* which mull__attribute the subject and the name mean */
} mull__field_test;

typedef enum mull__matcher_kind {
    MULL__MATCH_ALWAYS,   /* no matcher */
    MULL__MATCH_TESTS,    /* every test passes */
    MULL__MATCH_FUNCTION, /* function number `function` of the policy */
    MULL__MATCH_ALL,      /* of the parts, looked at in the order written, no further than needed */
    MULL__MATCH_ANY,
    MULL__MATCH_NONE
} mull__matcher_kind;

typedef struct mull__matcher {
    mull__matcher_kind kind;
    const mull__field_test *tests;
    size_t test_count;
    uint32_t function; /* from 0, in the order in which the statements ran */
    const struct mull__matcher *parts;
    size_t part_count;
} mull__matcher;

/* How deep a matcher, or an is_not, may be nested: for who walks one by calling itself. */
enum { MULL__NESTING_MAX = 100 };

/* What docs/plain-rules.md calls each kind, by its number; NULL behind the last one. */
extern const char *const mull__value_words[],
    *const mull__subject_words[], *const mull__matcher_words[], *const mull__backoff_words[],
                                                                    *const mull__scope_words[];

/* ---- Rules ----------------------------------------------------------------------------------- */

typedef enum mull__backoff { MULL__CONSTANT, MULL__LINEAR, MULL__EXPONENTIAL } mull__backoff;

typedef enum mull__jitter_kind {
    MULL__JITTER_FRACTION, /* `jitter`, of the delay */
    MULL__JITTER_FULL,
    MULL__JITTER_DECORRELATED
} mull__jitter_kind;

enum { MULL__NO_CAP = -1, MULL__ATTEMPTS_MAX = 1000 };

/* mull__ms_range: whole milliseconds, both ends belong to it. */
typedef struct mull__ms_range {
    int64_t low_ms, high_ms;
} mull__ms_range;

/* mull__tier_config is `retry` or `redeliver` with its arguments, defaults filled in. */
typedef struct mull__tier_config {
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
    const char *hint; /* a field of the error, in seconds; NULL: none */
    const struct mull__precomputed_step
        *precomputed_steps; /* its first steps, worked out ahead: mull__tier_precompute */
    int64_t
        precomputed_count; /* 0 where they depend on more than their precomputed steps and chance */
} mull__tier_config;

/* ---- Scopes ---------------------------------------------------------------------------------- */

typedef enum mull__scope_kind {
    MULL__CONSUMER, /* the nearest first */
    MULL__TRANSPORT,
    MULL__BUS,
    MULL__HOST,
    MULL__SCOPE_KINDS
} mull__scope_kind;

typedef struct mull__source_pos {
    const char *file; /* NULL: nowhere */
    int line;
} mull__source_pos;

/* mull__replaced_rule is a rule without a matcher that isn't among the rules, and the one that
 * stands for it. */
typedef struct mull__replaced_rule {
    const char *type;
    const char *scope; /* label of where it was written; NULL: in the scope itself */
    const char *file;
    int line;
    const char *by_file;
    int by_line;
    int by_cause; /* both are on_cause rules */
} mull__replaced_rule;

#endif
