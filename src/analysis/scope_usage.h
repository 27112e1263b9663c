/* scope_usage.h: with which settings a scope's rules are in force. */
#ifndef MULL__SCOPE_USAGE_H
#define MULL__SCOPE_USAGE_H

#include "bounds.h"
#include "reachability.h"

/* mull__scope_user is a consumer as a service.lua has it. */
typedef struct mull__scope_user {
    const char *consumer, *transport, *queue;
    int64_t handler_ms;       /* MULL__FOREVER: no timeout */
    int64_t longest_delay_ms; /* of the transport; 0: any */
} mull__scope_user;

/* mull__scope_users are all of them; a `count` of 0: they aren't known, so that consumers of any
 * name may be on any transport. */
typedef struct mull__scope_users {
    const mull__scope_user *items;
    size_t count;
    int64_t handler_ms;            /* where they aren't known */
    const char *const *transports; /* names, those that nobody uses too */
    size_t transport_count;
} mull__scope_users;

/* mull__layer_visitor is a look at what is in force in all places where a scope may be: for its own
 * consumer, or any with a scope and any without; and on its own transport, or any. */
typedef struct mull__layer_visitor {
    const mull__table *table;
    const mull__scope *scope;
    int by_rules;    /* places where its rules can't be in force may be left out */
    int64_t *effort; /* as of mull__chain_set: it ends where there is none */
    int (*look)(void *data, const mull__effective_settings *effective); /* not 0: it ends */
    void *data;
} mull__layer_visitor;

/* mull__each_layer gives what the last look gave. */
int mull__each_layer(const mull__layer_visitor *visit);

/* mull__effective_limits is settings in force together, all from one effective settings. */
typedef struct mull__effective_limits {
    int64_t max_age_ms, max_attempts, deadline_ms; /* MULL__OFF: none */
    int64_t handler_ms;
    int overridden, unrecoverable; /* some type is, besides the built-in one */
} mull__effective_limits;

typedef struct mull__effective_limit_list {
    mull__effective_limits *items; /* each once */
    size_t count;
    const mull_allocator *allocator;
    int rough; /* they are too many: some stand for all, of the most and the least that any lets
                  through */
} mull__effective_limit_list;

/* mull__effective_limits_here gives those of one place, of which its rules aren't a part. */
mull__effective_limits mull__effective_limits_here(const mull__table *table,
                                                   const mull__effective_settings *effective,
                                                   int64_t handler_ms);

/* mull__effective_limits_all gives one that lets through whatever any of them does. */
mull__effective_limits mull__effective_limits_all(const mull__effective_limit_list *mixes);

/* mull__effective_limits_of finds those with which a scope's rules are in force; none: they never
 * are. Where no known consumer uses the scope, all that may. `effort` is as of mull__chain_set.
 * MULL_ENOMEM. */
int mull__effective_limits_of(mull__effective_limit_list *mixes, const mull__table *table,
                              const mull__scope *scope, const mull__scope_users *users,
                              int64_t *effort, const mull_allocator *allocator);
void mull__effective_limits_free(mull__effective_limit_list *mixes);

/* mull__written_in: a rule was written in the scope that has it. */
int mull__written_in(const mull__scope *scope, const mull__rule *rule);

int mull__is_cause_rule(const mull__scope *scope, const mull__rule *rule);

/* mull__has_default: some rule for Error has no matcher. */
int mull__has_default(const mull__scope *scope);

/* mull__chains_of are those of the rules that may decide, with room for each rule; how many. */
size_t mull__chains_of(mull__chain *chains, const mull__fates *fates, const mull__scope *scope);

/* mull__chain_set_of are the walks in a scope with some settings. */
mull__chain_set mull__chain_set_of(const mull__scope *scope, const mull__effective_limits *mix,
                                   const mull__chain *chains, size_t count, int64_t *effort);

/* mull__range_of_scope is of all walks with any of the settings. MULL_ENOMEM. */
int mull__range_of_scope(mull__range *range, const mull__fates *fates, const mull__scope *scope,
                         const mull__effective_limit_list *mixes, int64_t *effort);

/* mull__range_without_rules is of those that an override makes where no rules are in force. */
void mull__range_without_rules(mull__range *range, const mull__effective_limits *mix);

/* mull__range_of_rule is of those on which one rule decides every failure. `before` is the rule
 * whose range is there already, with the same settings: chains that are alike are measured once.
 * NULL: none is. MULL_ENOMEM. */
int mull__range_of_rule(mull__range *range, const mull__rule *rule, const mull__rule *before,
                        const mull__effective_limit_list *mixes, int64_t *effort);

#endif
