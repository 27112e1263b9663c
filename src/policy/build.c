/* build.c: finishing a decision table, once its scopes and rules are there; and its end. */
#include "table.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "field_match.h"
#include "resolve.h"

int mull__table_begin(mull__table **out, const mull_allocator *allocator)
{
    mull__table *table = *out = mull__zalloc(allocator, 1, sizeof *table);
    if (!table)
        return MULL_ENOMEM;
    table->arena.allocator = *allocator;
    return MULL_OK;
}

void mull__table_free(mull__table *table)
{
    if (!table)
        return;
    const mull_allocator a = table->arena.allocator;
    mull__arena_free(&table->arena);
    mull__free(&a, table);
}

/* ---- Types ----------------------------------------------------------------------------------- */

enum { UNKNOWN = -1 }; /* until mark_types */

/* add_type gives the number of a type, which it takes in where it is new. */
static uint32_t add_type(mull__table *table, const char *name)
{
    uint32_t number = mull__type_find(table, name);
    if (number == MULL__NONE) {
        number = (uint32_t)table->type_count++;
        table->types[number] =
            (mull__type){.name = name, .parent = MULL__ERROR_TYPE, .unrecoverable = UNKNOWN};
        mull__name_index_add(&table->type_names, name, number);
    }
    return number;
}

/* limited_types is how many types the rate limits of a scope name. */
static size_t limited_types(const mull__scope *scope)
{
    const mull__setting_rate_limits *limits = &scope->settings.rate_limit;
    size_t count = 0;
    for (size_t i = 0; i < limits->count; i++)
        count += limits->items[i].only.count + limits->items[i].except.count;
    return count;
}

/* declare_types makes room for all types, and takes in those that the policy declares. */
static int declare_types(mull__table *table, const mull__type_parent *parents, size_t count)
{
    size_t most = 2 + 2 * count;
    for (size_t i = 0; i < table->scope_count; i++)
        most += mull__scope_rules(&table->scopes[i]) + table->scopes[i].unrecoverable.count +
                limited_types(&table->scopes[i]);
    table->types = mull__arena_zalloc(&table->arena, most, sizeof *table->types);
    if (!table->types || mull__name_index_init(&table->type_names, &table->arena, most))
        return MULL_ENOMEM;
    add_type(table, "Error"); /* in the order of their numbers */
    add_type(table, "MessageDeserializationError");
    for (size_t i = 0; i < count; i++) {
        uint32_t child = add_type(table, parents[i].child);
        table->types[child].parent = add_type(table, parents[i].parent);
    }
    table->declared_types = table->type_count;
    return MULL_OK;
}

/* mark_types marks the types that some scope declares unrecoverable, the built-in one, and all that
 * descend from them. Each type is passed twice at most: a chain of parents may be long. */
static void mark_types(mull__table *table)
{
    mull__type *types = table->types;
    types[MULL__ERROR_TYPE].unrecoverable = 0;
    types[MULL__UNREADABLE_TYPE].unrecoverable = 1;
    for (size_t i = 0; i < table->scope_count; i++) {
        const mull__rules *declared = &table->scopes[i].unrecoverable;
        for (size_t j = 0; j < declared->count; j++)
            types[declared->items[j].type].unrecoverable = 1;
    }
    for (uint32_t i = 0; i < table->type_count; i++) {
        uint32_t known = i;
        while (types[known].unrecoverable == UNKNOWN)
            known = types[known].parent;
        for (uint32_t up = i; up != known; up = types[up].parent)
            types[up].unrecoverable = types[known].unrecoverable;
    }
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

static mull__type_bucket *group_of(mull__type_bucket *groups, uint32_t mask, uint32_t type)
{
    uint32_t at = type & mask;
    while (groups[at].type != type && groups[at].type != MULL__NONE)
        at = (at + 1) & mask;
    return &groups[at];
}

/* group links the rules of each type, from the last to the first. There are at least twice as many
 * groups as types, a power of two. */
static int group(mull__arena *arena, mull__rules *rules)
{
    size_t size = 2;
    while (size / 2 < rules->count)
        size *= 2;
    uint32_t mask = rules->bucket_mask = (uint32_t)size - 1;
    mull__type_bucket *groups = mull__arena_zalloc(arena, size, sizeof *groups);
    if (!groups)
        return MULL_ENOMEM;
    for (size_t i = 0; i < size; i++)
        groups[i].type = MULL__NONE;
    for (size_t i = rules->count; i-- > 0;) {
        mull__rule *rule = &rules->items[i];
        mull__type_bucket *of = group_of(groups, mask, rule->type);
        of->type = rule->type;
        rule->next = of->first ? (uint32_t)(of->first - rules->items) : MULL__NONE;
        of->first = rule;
    }
    rules->groups = groups;
    return MULL_OK;
}

/* label makes a scope's label: "bus", or "consumer:NAME". */
static int label(mull__arena *arena, mull__scope *scope)
{
    const char *kind = mull__scope_words[scope->kind], *name = scope->name ? scope->name : "";
    size_t bytes = strlen(kind) + 1 + strlen(name) + 1;
    char *text = mull__arena_zalloc(arena, bytes, 1);
    if (!text)
        return MULL_ENOMEM;
    snprintf(text, bytes, "%s%s%s", kind, scope->name ? ":" : "", name);
    scope->label = text;
    return MULL_OK;
}

/* finish_rules gives each rule its type's number and that type's name, and its scope's label. */
static int finish_rules(mull__table *table, const mull__scope *scope, mull__rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        mull__rule *rule = &rules->items[i];
        rule->type = add_type(table, rule->source.type);
        rule->source.type = table->types[rule->type].name;
        if (!rule->source.scope)
            rule->source.scope = scope->label;
    }
    return group(&table->arena, rules);
}

static void finish_types(mull__table *table, const mull__type_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        list->types[i] = add_type(table, list->names[i]);
}

static void finish_rate_limits(mull__table *table, const mull__scope *scope)
{
    const mull__setting_rate_limits *limits = &scope->settings.rate_limit;
    for (size_t i = 0; i < limits->count; i++) {
        finish_types(table, &limits->items[i].only);
        finish_types(table, &limits->items[i].except);
    }
}

static int finish_scope(mull__table *table, mull__scope *scope)
{
    if (label(&table->arena, scope) || finish_rules(table, scope, &scope->rules) ||
        finish_rules(table, scope, &scope->cause_rules) ||
        finish_rules(table, scope, &scope->unrecoverable))
        return MULL_ENOMEM;
    finish_rate_limits(table, scope);
    for (size_t i = 0; i < scope->replaced_count; i++)
        if (!scope->replaced[i].scope)
            scope->replaced[i].scope = scope->label;
    table->rule_count += mull__scope_rules(scope);
    scope->effective.settings = scope->settings;
    if (mull__scope_rules(scope) > 0)
        scope->effective.rules = scope;
    if (scope->kind == MULL__BUS)
        table->bus = scope;
    else if (scope->kind == MULL__HOST)
        table->host = scope;
    return MULL_OK;
}

/* ---- The fast path --------------------------------------------------------------------------- */

/* is_first: an error that comes to the rules for a type, up its lineage, has met nothing else. */
static int is_first(const mull__table *table, const mull__scope *scope, uint32_t type)
{
    return !table->types[type].unrecoverable &&
           (type != MULL__ERROR_TYPE || scope->cause_rules.count == 0);
}

static int is_equality(const mull__field_test *test)
{
    return test->attribute == MULL__ERROR_FIELD && test->value.kind == MULL__ONE_OF &&
           test->value.literal_count == 1;
}

/* fast_by says how the fast path may follow a rule with a matcher. */
static mull__fast fast_by(const mull__matcher *matcher)
{
    if (matcher->kind == MULL__MATCH_ALWAYS)
        return MULL__FAST;
    if (matcher->kind != MULL__MATCH_TESTS)
        return MULL__NOT_FAST;
    for (size_t i = 0; i < matcher->test_count; i++)
        if (!is_equality(&matcher->tests[i]))
            return MULL__NOT_FAST;
    return MULL__FAST_IF_EQUAL;
}

/* groups_ready copies what the fast path reads of the first rules. */
static void groups_ready(const mull__rules *rules)
{
    for (uint32_t i = 0; i <= rules->bucket_mask; i++) {
        mull__type_bucket *group = &rules->groups[i];
        if (!group->first || group->first->fast != MULL__FAST)
            continue;
        group->fast_retries = group->first->retry.precomputed_count;
        group->precomputed_steps = group->first->retry.precomputed_steps;
        group->source = group->first->source;
    }
}

/* open_fast_path lets it follow the rules that nothing comes before: neither an unrecoverable
 * declaration, for the type or an ancestor of it, nor, for those for Error, a cause rule. */
static void open_fast_path(const mull__table *table, const mull__scope *scope)
{
    for (size_t i = 0; i < scope->rules.count; i++) {
        mull__rule *rule = &scope->rules.items[i];
        rule->fast = is_first(table, scope, rule->type) ? fast_by(&rule->matcher) : MULL__NOT_FAST;
    }
    groups_ready(&scope->rules);
}

/* ---- All of it ------------------------------------------------------------------------------- */

int mull__table_finish(mull__table *table, const mull__type_parent *parents, size_t count)
{
    if (declare_types(table, parents, count))
        return MULL_ENOMEM;
    for (size_t i = 0; i < table->scope_count; i++)
        if (finish_scope(table, &table->scopes[i]))
            return MULL_ENOMEM;
    mark_types(table);
    for (size_t i = 0; i < table->scope_count; i++)
        open_fast_path(table, &table->scopes[i]);
    return mull__effective_settings_ready(table);
}
