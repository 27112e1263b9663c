/* scope_usage.c: see scope_usage.h. */
#include "scope_usage.h"

#include <string.h>

#include "base/alloc.h"
#include "policy/resolve.h"

/* ---- Places ---------------------------------------------------------------------------------- */

enum { LOOK_NS = 1, LAYER_NS = 100 };

/* is_passed_over: a nearer scope with rules of its own keeps away those of the scope in question.
 */
static int is_passed_over(const mull__layer_visitor *v, const mull__scope *other)
{
    return v->by_rules && other->kind < v->scope->kind && mull__scope_rules(other) > 0;
}

/* visit_kind tries, for one kind of names, the scope's own; or none, and then each that has a
 * scope. */
static int visit_kind(const mull__layer_visitor *v, mull__scope_kind kind, const char *names[2])
{
    const mull__table *table = v->table;
    int is_own = v->scope->kind == kind, ends = 0;
    size_t count =
        is_own || (kind == MULL__TRANSPORT && !table->transport_count) ? 0 : table->scope_count;
    names[kind] = is_own ? v->scope->name : NULL;
    for (size_t i = 0;; i++) {
        if (kind == MULL__CONSUMER) {
            ends = visit_kind(v, MULL__TRANSPORT, names);
        } else {
            const mull__effective_settings effective =
                mull__effective_settings_of(table, names[0], names[1]);
            *v->effort -= LAYER_NS;
            ends = v->look(v->data, &effective);
        }
        for (; i < count && (table->scopes[i].kind != kind || is_passed_over(v, &table->scopes[i]));
             i++)
            *v->effort -= LOOK_NS;
        if (ends || i >= count || *v->effort <= 0)
            return ends;
        names[kind] = table->scopes[i].name;
    }
}

int mull__each_layer(const mull__layer_visitor *visit)
{
    const char *names[2];
    return visit_kind(visit, MULL__CONSUMER, names);
}

/* ---- Settings -------------------------------------------------------------------------------- */

/* More settings than so many aren't told apart. */
enum { MOST_MIXES = 100 };

static int64_t looser(int64_t a, int64_t b)
{
    return a == MULL__OFF || b == MULL__OFF ? MULL__OFF : mull__greater(a, b);
}

/* take_in lets `all` let through whatever another one does. */
static void take_in(mull__effective_limits *all, const mull__effective_limits *by)
{
    all->max_age_ms = looser(all->max_age_ms, by->max_age_ms);
    all->max_attempts = looser(all->max_attempts, by->max_attempts);
    all->deadline_ms = looser(all->deadline_ms, by->deadline_ms);
    all->handler_ms = mull__greater(all->handler_ms, by->handler_ms);
    all->overridden |= by->overridden;
    all->unrecoverable |= by->unrecoverable;
}

mull__effective_limits mull__effective_limits_all(const mull__effective_limit_list *mixes)
{
    mull__effective_limits all = mixes->items[0];
    for (size_t i = 1; i < mixes->count; i++)
        take_in(&all, &mixes->items[i]);
    return all;
}

static int add_mix(mull__effective_limit_list *mixes, mull__effective_limits mix)
{
    mull__effective_limits *items = mixes->items;
    for (size_t i = 0; i < mixes->count; i++)
        if (memcmp(&items[i], &mix, sizeof mix) == 0) /* there is no padding */
            return MULL_OK;
    if (!items)
        items = mixes->items = mull__zalloc(mixes->allocator, MOST_MIXES, sizeof *items);
    if (!items)
        return MULL_ENOMEM;
    if (!mixes->rough && mixes->count < MOST_MIXES) {
        items[mixes->count++] = mix;
        return MULL_OK;
    }
    items[0] = mull__effective_limits_all(mixes);
    take_in(&items[0], &mix);
    items[1] = (mull__effective_limits){.max_attempts = 1,
                                        .unrecoverable = 1}; /* the least that any lets through */
    mixes->count = 2;
    mixes->rough = 1;
    return MULL_OK;
}

static int declares(const mull__table *table, const mull__effective_settings *effective)
{
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, effective, (mull__scope_kind)kind);
        if (scope && scope->unrecoverable.count > 0)
            return 1;
    }
    return 0;
}

mull__effective_limits mull__effective_limits_here(const mull__table *table,
                                                   const mull__effective_settings *effective,
                                                   int64_t handler_ms)
{
    const mull__settings *settings = &effective->settings;
    return (mull__effective_limits){
        .max_age_ms = settings->max_age_ms,
        .max_attempts = settings->max_attempts,
        .deadline_ms = settings->deadline_ms,
        .handler_ms = handler_ms,
        .overridden = settings->override != MULL__OFF,
        .unrecoverable = declares(table, effective),
    };
}

typedef struct search {
    mull__effective_limit_list *mixes;
    const mull__table *table;
    const mull__scope *scope;
    int64_t handler_ms;
} search;

/* add_layer adds what holds in a effective settings, if the scope's rules do. */
static int add_layer(void *data, const mull__effective_settings *effective)
{
    const search *s = data;
    if (effective->rules != s->scope)
        return MULL_OK;
    return add_mix(s->mixes, mull__effective_limits_here(s->table, effective, s->handler_ms));
}

/* may_use: a known consumer may have a scope's rules in force, by its names. */
static int may_use(const mull__scope_user *user, const mull__scope *scope)
{
    if (scope->kind == MULL__CONSUMER)
        return strcmp(user->consumer, scope->name) == 0;
    return scope->kind != MULL__TRANSPORT || strcmp(user->transport, scope->name) == 0;
}

int mull__effective_limits_of(mull__effective_limit_list *mixes, const mull__table *table,
                              const mull__scope *scope, const mull__scope_users *users,
                              int64_t *effort, const mull_allocator *allocator)
{
    search s = {mixes, table, scope, users->handler_ms};
    const mull__layer_visitor any = {.table = table,
                                     .scope = scope,
                                     .by_rules = 1,
                                     .effort = effort,
                                     .look = add_layer,
                                     .data = &s};
    *mixes = (mull__effective_limit_list){.allocator = allocator};
    for (size_t i = 0; i < users->count; i++) {
        const mull__scope_user *user = &users->items[i];
        if (!may_use(user, scope))
            continue;
        const mull__effective_settings effective =
            mull__effective_settings_of(table, user->consumer, user->transport);
        s.handler_ms = user->handler_ms;
        if (add_layer(&s, &effective))
            return MULL_ENOMEM;
    }
    if (mixes->count > 0)
        return MULL_OK;
    s.handler_ms = users->handler_ms;
    int status = mull__each_layer(&any);
    if (status == MULL_OK && *effort <= 0) { /* whatever there may be */
        status = add_mix(mixes, (mull__effective_limits){.max_age_ms = MULL__OFF,
                                                         .max_attempts = MULL__OFF,
                                                         .deadline_ms = MULL__OFF,
                                                         .handler_ms = users->handler_ms,
                                                         .overridden = 1,
                                                         .unrecoverable = 1});
        mixes->rough = 1;
    }
    return status;
}

void mull__effective_limits_free(mull__effective_limit_list *mixes)
{
    mull__free(mixes->allocator, mixes->items);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

int mull__written_in(const mull__scope *scope, const mull__rule *rule)
{
    return scope->label == rule->source.scope || strcmp(scope->label, rule->source.scope) == 0;
}

int mull__is_cause_rule(const mull__scope *scope, const mull__rule *rule)
{
    const mull__rules *causes = &scope->cause_rules;
    return causes->count && rule >= causes->items && rule < causes->items + causes->count;
}

int mull__has_default(const mull__scope *scope)
{
    const mull__rule *rule = mull__first_rule(&scope->rules, MULL__ERROR_TYPE);
    while (rule && rule->matcher.kind != MULL__MATCH_ALWAYS)
        rule = mull__next_rule(&scope->rules, rule);
    return rule != NULL;
}

/* ---- Extents --------------------------------------------------------------------------------- */

size_t mull__chains_of(mull__chain *chains, const mull__fates *fates, const mull__scope *scope)
{
    const mull__fate *fate = mull__fates_in(fates, scope);
    size_t count = 0;
    for (size_t i = 0; i < mull__scope_rules(scope); i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if (fate[i].may_decide)
            chains[count++] = (mull__chain){&rule->retry, &rule->redeliver};
    }
    return count;
}

mull__chain_set mull__chain_set_of(const mull__scope *scope, const mull__effective_limits *mix,
                                   const mull__chain *chains, size_t count, int64_t *effort)
{
    int unreadable = !mull__first_rule(&scope->rules, MULL__UNREADABLE_TYPE);
    return (mull__chain_set){
        .chains = chains,
        .count = count,
        .may_end_at_once = unreadable || mix->unrecoverable || !mull__has_default(scope),
        .max_attempts = mix->max_attempts,
        .max_age_ms = mix->max_age_ms,
        .deadline_ms = mix->deadline_ms,
        .handler_ms = mix->handler_ms,
        .effort = effort,
    };
}

/* take_range adds the walks of a chain set to all others. MULL_ENOMEM. */
static int take_range(mull__range *all, const mull__chain_set *chain_set, int overridden,
                      const mull_allocator *allocator)
{
    mull__range one;
    int status = MULL_OK;
    int is_line =
        chain_set->count == 1 && !chain_set->may_end_at_once && chain_set->deadline_ms == MULL__OFF;
    if (overridden)
        one = mull__range_overridden(chain_set);
    else if (is_line)
        one = mull__range_of_chain(chain_set);
    else
        status = mull__range_of_paths(&one, chain_set, allocator);
    if (status != MULL_OK)
        return status;
    all->calls = mull__greater(all->calls, one.calls);
    all->shortest_ms = mull__smaller(all->shortest_ms, one.shortest_ms);
    all->longest_ms = mull__greater(all->longest_ms, one.longest_ms);
    all->rough |= one.rough;
    all->last_call_ms = mull__greater(all->last_call_ms, mull__last_call_ms(chain_set, &one));
    return MULL_OK;
}

int mull__range_of_scope(mull__range *range, const mull__fates *fates, const mull__scope *scope,
                         const mull__effective_limit_list *mixes, int64_t *effort)
{
    *range = (mull__range){.shortest_ms = MULL__FOREVER, .rough = mixes->rough || fates->stopped};
    mull__chain *chains = mull__zalloc(mixes->allocator, mull__scope_rules(scope), sizeof *chains);
    if (!chains)
        return MULL_ENOMEM;
    size_t count = mull__chains_of(chains, fates, scope);
    int status = MULL_OK;
    for (size_t i = 0; i < mixes->count && status == MULL_OK; i++) {
        mull__chain_set chain_set =
            mull__chain_set_of(scope, &mixes->items[i], chains, count, effort);
        status = take_range(range, &chain_set, mixes->items[i].overridden, mixes->allocator);
    }
    mull__free(mixes->allocator, chains);
    return status;
}

void mull__range_without_rules(mull__range *range, const mull__effective_limits *mix)
{
    const mull__chain_set chain_set = {.max_attempts = mix->max_attempts,
                                       .max_age_ms = mix->max_age_ms,
                                       .deadline_ms = mix->deadline_ms,
                                       .handler_ms = mix->handler_ms};
    *range = mull__range_overridden(&chain_set);
    range->last_call_ms = mull__last_call_ms(&chain_set, range);
}

int mull__range_of_rule(mull__range *range, const mull__rule *rule, const mull__rule *before,
                        const mull__effective_limit_list *mixes, int64_t *effort)
{
    const mull__chain chain = {&rule->retry, &rule->redeliver};
    if (before && mull__same_chain(&chain, &(mull__chain){&before->retry, &before->redeliver}))
        return MULL_OK;
    *range = (mull__range){.shortest_ms = MULL__FOREVER, .rough = mixes->rough};
    int status = MULL_OK;
    for (size_t i = 0; i < mixes->count && status == MULL_OK; i++) {
        const mull__effective_limits *mix = &mixes->items[i];
        mull__chain_set chain_set = {.chains = &chain,
                                     .count = 1,
                                     .max_attempts = mix->max_attempts,
                                     .max_age_ms = mix->max_age_ms,
                                     .deadline_ms = mix->deadline_ms,
                                     .handler_ms = mix->handler_ms,
                                     .effort = effort};
        status = take_range(range, &chain_set, mix->overridden, mixes->allocator);
    }
    return status;
}
