/* shape.h: what a decision table looks like inside. Nothing in it changes once it is built.
 *
 *   table ── types    name, parent; found by name; 0 is Error
 *        ├── scopes   consumers and transports found by name
 *        │     ├── groups   type -> its first rule -> the next rule of that type -> ...
 *        │     └── layer    what this scope puts over the farther ones: rules, bounds
 *        ├── base     the layer of bus over host over the defaults
 *        └── rules, groups, literals, delays, text: one array each, of which scopes hold slices
 */
#ifndef MULL__SHAPE_H
#define MULL__SHAPE_H

#include "names.h"
#include "table.h"

/* Types with a number of their own; others follow. */
enum { MULL__ERROR_TYPE = 0, MULL__UNREADABLE_TYPE = 1 };

typedef struct mull__type {
    const char *name;
    uint32_t parent; /* MULL__ERROR_TYPE where none was declared */
} mull__type;

typedef struct mull__rule {
    mull_rule source;
    uint32_t type;
    uint32_t next; /* of the same type in the same scope, as an index into its rules; MULL__NONE */
    mull__plain_matcher matcher;       /* its fields are the table's literals */
    mull__plain_tier retry, redeliver; /* all zero where the chain has no such step */
    mull_action end;
    const char *queue, *note;
} mull__rule;

typedef struct mull__group {
    uint32_t type; /* MULL__NONE: a free slot */
    uint32_t first;
} mull__group;

/* MULL__INHERITED: a bound that a scope doesn't set. */
#define MULL__INHERITED INT64_MIN

typedef struct mull__bounds {
    const char *dead_letter_queue; /* NULL: inherited */
    int64_t max_age_ms;            /* each: MULL__INHERITED, MULL__OFF, or its value */
    int64_t max_attempts;
    int64_t max_deliveries;
} mull__bounds;

struct mull__scope;

typedef struct mull__layer {
    const struct mull__scope *rules; /* whose rules hold; NULL: nobody's so far */
    mull__bounds bounds;
} mull__layer;

typedef struct mull__scope {
    mull__scope_kind kind;
    const char *name;  /* NULL for bus and host */
    const char *label; /* as mull_rule.scope */
    const mull__rule *rules;
    size_t rule_count;
    const mull__group *groups;
    uint32_t group_mask;
    mull__layer layer; /* its own; a transport's lies over the base already */
} mull__scope;

struct mull__table {
    mull_allocator allocator;
    mull__names type_names, consumers, transports;
    mull__type *types;
    size_t type_count;
    mull__scope *scopes;
    size_t scope_count;
    mull__rule *rules;
    size_t rule_count;
    mull__group *groups;
    mull_field *literals;
    int64_t *delays;
    char *text; /* every string */
    uint32_t function_count;
    mull__layer base;
};

/* mull__first_rule is a scope's first rule for a type, NULL where it has none. */
static inline const mull__rule *mull__first_rule(const mull__scope *scope, uint32_t type)
{
    for (uint32_t at = type & scope->group_mask;; at = (at + 1) & scope->group_mask) {
        if (scope->groups[at].type == type)
            return &scope->rules[scope->groups[at].first];
        if (scope->groups[at].type == MULL__NONE)
            return NULL;
    }
}

static inline const mull__rule *mull__next_rule(const mull__scope *scope, const mull__rule *rule)
{
    return rule->next == MULL__NONE ? NULL : &scope->rules[rule->next];
}

/* mull__over is the layer `near` on top of `far`: rules as a whole, bounds one by one. */
mull__layer mull__over(const mull__layer *near, const mull__layer *far);

/* mull__layer_for is what holds for a consumer (with its name's hash) on a transport; each name
 * may be NULL. It is the table's, or put together in `room`. */
const mull__layer *mull__layer_for(const mull__table *table, const char *consumer,
                                   uint64_t consumer_hash, const char *transport,
                                   mull__layer *room);

#endif
