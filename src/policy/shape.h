/* shape.h: what a decision table looks like inside. Nothing in it changes once it is built.
 *
 *   table ── types    name, parent; found by name; 0 is Error
 *        ├── scopes   consumers and transports found by name
 *        │     ├── rules, cause_rules, unrecoverable
 *        │     │         each: type -> its first rule -> the next rule of that type -> ...
 *        │     ├── places, includes, replaced: for those who look at a policy
 *        │     └── layer    what this scope puts over the farther ones: rules, bounds
 *        ├── layers   what holds for a consumer on a transport, worked out ahead
 *        └── things, text: one block of memory each, of which all the others hold slices
 */
#ifndef MULL__SHAPE_H
#define MULL__SHAPE_H

#include "names.h"
#include "table.h"

/* Types with a number of their own; others follow. */
enum { MULL__ERROR_TYPE = 0, MULL__UNREADABLE_TYPE = 1 };

/* mull__mark: a type is MULL__UNRECOVERABLE where it, or what it descends from, is declared so in
 * some scope or built in: for all others no declaration has to be looked at. */
typedef enum mull__mark { MULL__UNMARKED, MULL__RECOVERABLE, MULL__UNRECOVERABLE } mull__mark;

/* mull__lineage is an error's effective lineage, nearest first, without Error, which always comes
 * last, and without types that the table doesn't know, for which it has no rules. */
typedef struct mull__lineage {
    const uint64_t *types;
    size_t count;
    mull__mark mark; /* MULL__UNRECOVERABLE where one of them has it, or Error */
} mull__lineage;

typedef struct mull__type {
    const char *name;
    mull__lineage lineage; /* of an error of this type; not there where it climbs */
    int climbs;            /* it has parents but Error */
    uint64_t number;       /* its place among the types */
    uint32_t parent;       /* MULL__ERROR_TYPE where none was declared */
    mull__mark mark;       /* MULL__UNMARKED only while the table is built */
} mull__type;

/* mull__rule is a rule, a cause rule, or an unrecoverable declaration, which has no chain. */
typedef struct mull__rule {
    mull_rule source;
    uint32_t type;
    uint32_t next; /* of the same type in the same rules, as an index; MULL__NONE */
    mull__plain_matcher matcher;
    mull__plain_tier retry, redeliver; /* all zero where the chain has no such step */
    /* How many steps of each the short way may take, see brief.h: 0 where the matcher is too much
     * for it, or something comes before the rules for the type. */
    int64_t brief_retries, brief_redeliveries;
    mull_action end;
    const char *queue, *note;
} mull__rule;

typedef struct mull__group {
    uint32_t type; /* MULL__NONE: a free slot */
    const mull__rule *first;
} mull__group;

/* mull__rules is a list of rules in the order written, found by type. */
typedef struct mull__rules {
    mull__rule *items;
    size_t count;
    const mull__group *groups, *last_group;
    uint32_t group_mask;
} mull__rules;

/* MULL__INHERITED: a setting that a scope doesn't set. */
#define MULL__INHERITED INT64_MIN

/* mull__bounds are the settings that verdicts need. */
typedef struct mull__bounds {
    const char *dead_letter_queue; /* NULL: inherited */
    int64_t max_age_ms;            /* each: MULL__INHERITED, MULL__OFF, or its value */
    int64_t max_attempts;
    int64_t max_deliveries;
    int64_t override; /* the number of a function, and 1 */
} mull__bounds;

struct mull__scope;

/* mull__brief is what the short way of a decision looks at, which is for failures up to so many
 * deliveries and calls; none where no rules hold, or an override does. */
typedef struct mull__brief {
    mull__rules rules;
    int64_t deliveries, calls;
} mull__brief;

typedef struct mull__layer {
    const struct mull__scope *rules;                /* whose rules hold; NULL: nobody's so far */
    const struct mull__scope *consumer, *transport; /* NULL: there is none */
    mull__bounds bounds;
    mull__brief brief; /* of what is in force somewhere; not of a scope's own */
} mull__layer;

typedef struct mull__scope {
    mull__scope_kind kind;
    const char *name;  /* NULL for bus and host */
    const char *label; /* as mull_rule.scope */
    mull__rules rules, cause_rules, unrecoverable;
    mull__layer layer; /* its own; a transport's lies over bus and host already */
    unsigned sets;     /* bit MULL__DEAD_LETTER_QUEUE, ...: what it sets itself, to false too */
    /* The settings that no verdict needs, as in mull__bounds. */
    int64_t rate_after, rate_wait_ms, notify;
    mull__plain_place places[MULL__SETTINGS];
    const mull__plain_include *includes;
    size_t include_count;
    const mull__plain_replaced *replaced; /* their scopes are there */
    size_t replaced_count;
} mull__scope;

struct mull__table {
    mull_allocator allocator;
    mull__names type_names, consumers, transports;
    mull__type *types;
    size_t type_count;
    size_t declared_types; /* the first so many are those that policy.errors names, and two that
                              are built in */
    mull__scope *scopes;
    size_t scope_count;
    const mull__scope *bus, *host; /* NULL: the policy says nothing to it */
    size_t rule_count;             /* rules and cause rules, over all scopes */
    size_t unrecoverable_count;    /* declarations over all scopes, and the built-in one */
    uint32_t function_count;
    /* Rows of layers: one for no consumer, one for each. Its columns: for no transport, which is
     * bus over host over the defaults, and for each. Where that would be too many, there is the
     * first row, and behind it the consumers' own layers. */
    const mull__layer *layers;
    size_t columns;
    int crowded;
    char *things, *text;
};

/* mull__scope_rules is how many rules a scope has, its own and included, cause rules too. */
static inline size_t mull__scope_rules(const mull__scope *scope)
{
    return scope->rules.count + scope->cause_rules.count;
}

/* mull__group_of is where the rules for a type begin; NULL: there are none. */
static inline const mull__group *mull__group_of(const mull__rules *rules, uint32_t type)
{
    const mull__group *group = &rules->groups[type & rules->group_mask];
    while (!MULL__MOSTLY(group->type == type)) {
        if (group->type == MULL__NONE)
            return NULL;
        group = group < rules->last_group ? group + 1 : rules->groups;
    }
    return group;
}

/* mull__first_rule is the first rule for a type, NULL where there is none, as for MULL__NONE. */
static inline const mull__rule *mull__first_rule(const mull__rules *rules, uint32_t type)
{
    const mull__group *group = mull__group_of(rules, type);
    return group ? group->first : NULL;
}

static inline const mull__rule *mull__next_rule(const mull__rules *rules, const mull__rule *rule)
{
    return rule->next == MULL__NONE ? NULL : &rules->items[rule->next];
}

/* ---- What is in force: in_force.c ------------------------------------------------------------ */

/* mull__over is the layer `near` on top of `far`: rules as a whole, bounds one by one. */
mull__layer mull__over(const mull__layer *near, const mull__layer *far);

/* mull__layers is how many layers a table of so many consumers and transports has. */
size_t mull__layers(size_t consumers, size_t transports);

/* mull__lay fills a table's `layers`, which have room, from its scopes, and names them. */
void mull__lay(mull__table *table, mull__layer *layers, const mull__layer *defaults);

/* mull__site is where a message failed: what holds there, and the hash of the consumer's name, 0
 * where there is none. */
typedef struct mull__site {
    const mull__layer *layer;
    uint64_t consumer_hash;
} mull__site;

/* mull__site_of is for a consumer on a transport; each may be NULL. The layer is the table's, or
 * put together in `room`. */
mull__site mull__site_of(const mull__table *table, const char *consumer, const char *transport,
                         mull__layer *room);

/* mull__layer_named is its layer. */
const mull__layer *mull__layer_named(const mull__table *table, const char *consumer,
                                     const char *transport, mull__layer *room);

/* mull__scope_of is the scope of a kind that a layer is made of, NULL where there is none. */
const mull__scope *mull__scope_of(const mull__table *table, const mull__layer *layer,
                                  mull__scope_kind kind);

/* mull__setting_scope is the nearest scope that sets a setting; NULL: none, so that its default
 * holds. Its place in that scope says where. */
const mull__scope *mull__setting_scope(const mull__table *table, const mull__layer *layer,
                                       mull__setting setting);

/* mull__built_in_holds: a message that couldn't be read is unrecoverable, because no rule in force
 * is written for MessageDeserializationError. */
int mull__built_in_holds(const mull__layer *layer);

/* mull__unrecoverable_names writes the names of the types that are declared unrecoverable for a
 * layer, each once, and says how many they are: at most the table's unrecoverable_count. */
size_t mull__unrecoverable_names(const mull__table *table, const mull__layer *layer,
                                 const char **names);

#endif
