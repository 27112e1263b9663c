/* table_internal.h: what a decision table looks like inside. src/lua/language/compile.c fills in
 * scopes and rules, mull__table_finish works out the rest; nothing in it changes after that.
 *
 *   table ── types    name, parent; found by name; 0 is Error
 *        ├── scopes   consumers and transports found by name
 *        │     ├── rules, cause_rules, unrecoverable
 *        │     │         each: type -> its first rule -> the next rule of that type -> ...
 *        │     ├── places, includes, replaced: for those who look at a policy
 *        │     └── effective   what this scope puts over the farther ones: rules, settings
 *        ├── nowhere  what holds without a consumer and a transport
 *        └── arena    the memory of all of these
 */
#ifndef MULL__TABLE_INTERNAL_H
#define MULL__TABLE_INTERNAL_H

#include "base/arena.h"
#include "name_index.h"
#include "table.h"

/* Types with a number of their own; others follow. */
enum { MULL__ERROR_TYPE = 0, MULL__UNREADABLE_TYPE = 1 };

/* mull__lineage is an error's effective lineage, nearest first, without Error, which always comes
 * last, and without types that the table doesn't know, for which it has no rules. */
typedef struct mull__lineage {
    const uint64_t *types;
    size_t count;
    int unrecoverable; /* one of them is, or Error */
} mull__lineage;

typedef struct mull__type {
    const char *name;
    uint32_t parent;   /* MULL__ERROR_TYPE where none was declared */
    int unrecoverable; /* it, or what it descends from, is declared so in some scope or built in:
                          for all others no declaration has to be looked at */
} mull__type;

/* mull__fast: the fast path may follow a rule: nothing comes before the rules for its type, and it
 * has no matcher, or one whose tests are for fields of the error to equal one literal each. */
typedef enum mull__fast { MULL__NOT_FAST, MULL__FAST, MULL__FAST_IF_EQUAL } mull__fast;

/* mull__rule is a rule, a cause rule, or an unrecoverable declaration, which has no chain. What
 * `type` and `next` are for is mull__table_finish's. */
typedef struct mull__rule {
    mull_rule source;
    uint32_t type; /* this and `next`: mull__table_finish */
    uint32_t next; /* of the same type in the same rules, as an index; MULL__NONE */
    mull__matcher matcher;
    mull__tier_config retry, redeliver; /* all zero where the chain has no such step */
    mull__fast fast;
    mull_action end;
    const char *queue; /* of the end; NULL: the scope's dead_letter_queue */
    const char *note;  /* of a discard; NULL: none */
} mull__rule;

/* mull__type_bucket has, besides the first rule for a type, what a decision mostly reads of it: in
 * one place, since reading memory is what takes time where there are many types. */
typedef struct mull__type_bucket {
    uint32_t type; /* MULL__NONE: a free slot */
    const mull__rule *first;
    int64_t fast_retries; /* of the first rule, where it is MULL__FAST, as are these; else 0 */
    const struct mull__precomputed_step *precomputed_steps;
    mull_rule source;
} mull__type_bucket;

/* mull__rules is a list of rules in the order written, found by type. */
typedef struct mull__rules {
    mull__rule *items;
    size_t count;
    mull__type_bucket *groups;
    uint32_t bucket_mask;
} mull__rules;

struct mull__scope;

typedef struct mull__effective_settings {
    const struct mull__scope *rules;                /* whose rules hold; NULL: nobody's so far */
    const struct mull__scope *consumer, *transport; /* NULL: there is none */
    mull__settings settings;
} mull__effective_settings;

/* mull__site is where a message failed: the settings in force there. */
typedef struct mull__site {
    mull__effective_settings effective;
    uint64_t consumer_hash; /* of its name; 0 where there is none */
    /* What the fast path looks at: failures up to so many deliveries and calls; 0 where no rules
     * hold, or an override or a deadline does. */
    const mull__rules *rules;
    int64_t deliveries, calls;
} mull__site;

typedef struct mull__scope {
    mull__scope_kind kind;
    const char *name;  /* NULL for bus and host */
    const char *label; /* as mull_rule.scope */
    mull__rules rules, cause_rules, unrecoverable;
    mull__settings settings; /* its own */
    mull__source_pos places[MULL__SETTINGS];
    mull__effective_settings effective; /* its own; a transport's lies over bus and host already */
    mull_rule *includes; /* where each was written; `scope` is the label of what it includes */
    size_t include_count;
    mull__replaced_rule *replaced; /* their scopes are there once the table is finished */
    size_t replaced_count;
} mull__scope;

struct mull__table {
    mull__arena arena;
    mull__name_index type_names, consumers, transports; /* the last two: to scopes */
    mull__type *types;
    size_t type_count;
    size_t declared_types; /* the first so many are those that policy.errors names, and two that
                              are built in */
    mull__scope *scopes;
    size_t scope_count, transport_count; /* scopes, and those of them that are of transports */
    const mull__scope *bus, *host;       /* NULL: the policy says nothing to it */
    int has_host_policy; /* the host's scope stands in a file of its own, so nobody can include it
                          */
    size_t rule_count;   /* rules and cause rules, over all scopes */
    uint32_t function_count;
    mull__site nowhere; /* bus over host over the defaults */
};

/* mull__scope_rules is how many rules a scope has, its own and included, cause rules too. */
static inline size_t mull__scope_rules(const mull__scope *scope)
{
    return scope->rules.count + scope->cause_rules.count;
}

/* mull__table_decides: it has a rule or an override; else every failure is a dead letter. */
static inline int mull__table_decides(const mull__table *table)
{
    size_t found = table->rule_count;
    for (size_t i = 0; i < table->scope_count && !found; i++)
        found = mull__is_set(&table->scopes[i].settings, MULL__OVERRIDE) &&
                table->scopes[i].settings.override != MULL__OFF;
    return found > 0;
}

/* mull__rule_at is a rule of a scope by its index; cause rules come behind the others. */
static inline const mull__rule *mull__rule_at(const mull__scope *scope, size_t index)
{
    const mull__rules *rules = &scope->rules;
    return index < rules->count ? &rules->items[index]
                                : &scope->cause_rules.items[index - rules->count];
}

/* mull__first_rule is the first rule for a type, NULL where there is none. */
static inline const mull__rule *mull__first_rule(const mull__rules *rules, uint32_t type)
{
    const mull__type_bucket *group = &rules->groups[type & rules->bucket_mask];
    while (!MULL__LIKELY(group->type == type) && group->type != MULL__NONE)
        group = &rules->groups[(size_t)(group + 1 - rules->groups) & rules->bucket_mask];
    return group->first;
}

static inline const mull__rule *mull__next_rule(const mull__rules *rules, const mull__rule *rule)
{
    return rule->next == MULL__NONE ? NULL : &rules->items[rule->next];
}

#endif
