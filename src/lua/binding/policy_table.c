/* policy_table.c: policy:table, the decision table as it is in force somewhere; docs/table.md. */
#include "base/alloc.h"
#include "decide/decide.h"
#include "lua/values/scoped_memory.h"
#include "lua/values/values.h"
#include "policy/resolve.h"
#include "policy_module.h"
#include "policy_views.h"

#include <lauxlib.h>
#include <stdlib.h>

/* What may be spent on bounds, in nanoseconds, roughly. */
enum { EFFORT = 300000000 };

/* ---- Scopes ---------------------------------------------------------------------------------- */

/* add_item adds what is on top to the list below it. */
static void add_item(lua_State *L)
{
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

static void push_include(lua_State *L, const void *item)
{
    mull__push_source(L, item);
}

static void add_scope(lua_State *L, mull__scope_kind kind, const char *name,
                      const mull__scope *scope, const mull__effective_settings *effective)
{
    lua_newtable(L);
    lua_pushfstring(L, name ? "%s:%s" : "%s", mull__scope_words[kind], name);
    lua_setfield(L, -2, "scope");
    mull__set_flag(L, "exists", scope != NULL);
    mull__set_flag(L, "in_force", scope && scope == effective->rules);
    mull__set_integer(L, "rules", scope ? (int64_t)mull__scope_rules(scope) : 0);
    if (scope)
        mull__set_list(L, "includes", scope->includes, scope->include_count,
                       sizeof *scope->includes, push_include);
    add_item(L);
}

void mull__set_scopes(lua_State *L, const mull__table *table, const char *consumer,
                      const char *transport)
{
    const mull__effective_settings effective =
        mull__effective_settings_of(table, consumer, transport);
    const char *const names[MULL__SCOPE_KINDS] = {consumer, transport, NULL, NULL};
    mull__push_list(L);
    for (int i = 0; i < MULL__SCOPE_KINDS; i++) {
        mull__scope_kind kind = (mull__scope_kind)i;
        if (kind == MULL__BUS || kind == MULL__HOST || names[kind])
            add_scope(L, kind, names[kind], mull__scope_of(table, &effective, kind), &effective);
    }
    lua_setfield(L, -2, "scopes");
}

/* set_others: the scopes of consumers and transports that this isn't the table of. */
static void set_others(lua_State *L, const mull__table *table,
                       const mull__effective_settings *effective)
{
    mull__push_list(L);
    for (size_t i = 0; i < table->scope_count; i++) {
        const mull__scope *scope = &table->scopes[i];
        if (!scope->name || scope == effective->consumer || scope == effective->transport)
            continue;
        lua_newtable(L);
        mull__set_text(L, "scope", scope->label);
        mull__set_integer(L, "rules", (int64_t)mull__scope_rules(scope));
        add_item(L);
    }
    lua_setfield(L, -2, "others");
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* view is what is looked at. */
typedef struct view {
    mull__generation *generation;
    const mull__scope *scope; /* whose rules are in force; NULL */
    const char *queue;        /* where dead letters go of which the rule says nothing */
    mull__range bounds;       /* of whatever happens by these rules */
    mull__range *ranges;      /* of each alone, as by mull__rule_at; from malloc */
} view;

static int drop(lua_State *L)
{
    view *v = lua_touserdata(L, 1);
    if (v->generation)
        mull__generation_unref(v->generation);
    free(v->ranges);
    *v = (view){0};
    return 0;
}

static void push_rule(lua_State *L, const view *v, size_t index)
{
    /* So many steps of a tier are shown; those beyond are like the last, or can be told from it. */
    enum { STEPS = 32, FEW_STEPS = 6, MANY_RULES = 1000 };
    int64_t steps = mull__scope_rules(v->scope) > MANY_RULES ? FEW_STEPS : STEPS;
    mull__push_rule(L, mull__rule_at(v->scope, index), v->queue, steps);
    lua_createtable(L, 0, 4);
    mull__set_range(L, &v->ranges[index]);
    lua_setfield(L, -2, "bounds");
}

/* rule_at is rule_at(n), a rule of a list or nil, and rule_at(), how many it has: lists of many
 * rules are never there as a whole. */
static int rule_at(lua_State *L)
{
    const view *v = lua_touserdata(L, lua_upvalueindex(1));
    lua_Integer first = lua_tointeger(L, lua_upvalueindex(2));
    lua_Integer count = lua_tointeger(L, lua_upvalueindex(3)), n = luaL_optinteger(L, 1, 0);
    if (lua_isnone(L, 1))
        lua_pushinteger(L, count);
    else if (n >= 1 && n <= count)
        push_rule(L, v, (size_t)(first + n - 1));
    else
        lua_pushnil(L);
    return 1;
}

/* set_rules sets rule_at for `count` rules from the `first` on, of the view at `index`. */
static void set_rules(lua_State *L, const char *field, size_t first, size_t count, int index)
{
    lua_pushvalue(L, index);
    lua_pushinteger(L, (lua_Integer)first);
    lua_pushinteger(L, (lua_Integer)count);
    lua_pushcclosure(L, rule_at, 3);
    lua_setfield(L, -2, field);
}

/* measure finds all bounds. Without a rule the first failure ends it, but for an override. */
static void measure(lua_State *L, view *v, const mull__effective_limits *mix)
{
    const mull__table *table = mull__generation_table(v->generation);
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){.resize = NULL});
    mull__effective_limits only = *mix;
    const mull__effective_limit_list mixes = {.items = &only, .count = 1, .allocator = &allocator};
    int64_t effort = EFFORT;
    mull__fates fates;
    v->bounds = (mull__range){.calls = 1};
    if (!v->scope && mix->overridden)
        mull__range_without_rules(&v->bounds, &only);
    if (!v->scope)
        return;
    int status = mull__fates_of(&fates, table, v->scope, &allocator);
    if (status == MULL_OK)
        status = mull__range_of_scope(&v->bounds, &fates, v->scope, &mixes, &effort);
    mull__fates_free(&fates);
    effort = EFFORT;
    if (status == MULL_OK)
        v->ranges = mull__ranges_of_rules(v->scope, &mixes, &effort);
    if (status != MULL_OK || !v->ranges)
        luaL_error(L, "not enough memory");
}

/* set_unrecoverable: those of every scope hold, and the built-in one. */
static void set_unrecoverable(lua_State *L, const mull__table *table,
                              const mull__effective_settings *effective)
{
    const mull__rule built_in = {.source.type = table->types[MULL__UNREADABLE_TYPE].name};
    mull__push_list(L);
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, effective, (mull__scope_kind)kind);
        for (size_t i = 0; scope && i < scope->unrecoverable.count; i++) {
            mull__push_declaration(L, &scope->unrecoverable.items[i]);
            add_item(L);
        }
    }
    if (mull__builtin_unrecoverable_applies(effective)) {
        mull__push_declaration(L, &built_in);
        add_item(L);
    }
    lua_setfield(L, -2, "unrecoverable");
}

static void push_replaced(lua_State *L, const void *item)
{
    const mull__replaced_rule *replaced = item;
    const mull_rule place = {replaced->file, replaced->line, replaced->scope, replaced->type};
    mull__push_source(L, &place);
    mull__set_text(L, "word", replaced->by_cause ? "on_cause" : "on");
    mull__set_text(L, "by_file", replaced->by_file);
    mull__set_integer(L, "by_line", replaced->by_line);
}

/* set_parents: what the declared types descend from. */
static void set_parents(lua_State *L, const mull__table *table)
{
    lua_newtable(L);
    for (size_t i = 0; i < table->type_count; i++) {
        const mull__type *type = &table->types[i];
        if (type->parent != MULL__ERROR_TYPE)
            mull__set_text(L, type->name, table->types[type->parent].name);
    }
    lua_setfield(L, -2, "parents");
}

/* ---- Settings -------------------------------------------------------------------------------- */

/* push_KIND pushes the value of a setting of that kind, `false` where it is off. */
static void push_queue(lua_State *L, const char *value)
{
    lua_pushstring(L, value);
}

static void push_count(lua_State *L, int64_t value)
{
    if (value == MULL__OFF)
        lua_pushboolean(L, 0);
    else
        lua_pushinteger(L, value);
}

static void push_span(lua_State *L, int64_t value)
{
    push_count(L, value);
}

static void push_function(lua_State *L, int64_t value)
{
    lua_pushboolean(L, value != MULL__OFF);
}

static void push_rate_limits(lua_State *L, mull__setting_rate_limits value)
{
    if (value.count == 0)
        lua_pushboolean(L, 0);
    else
        mull__push_items(L, value.items, value.count, sizeof *value.items, mull__push_rate_limit);
}

static void push_call_limits(lua_State *L, mull__setting_call_limits value)
{
    if (value.count == 0)
        lua_pushboolean(L, 0);
    else
        mull__push_items(L, value.items, value.count, sizeof *value.items, mull__push_call_limit);
}

/* set_setting sets the value on top, with where it was set; without a scope, the default holds. */
static void set_setting(lua_State *L, const char *name, const mull__scope *scope,
                        mull__setting setting)
{
    lua_newtable(L);
    lua_insert(L, -2);
    lua_setfield(L, -2, "value");
    if (scope) {
        mull__set_text(L, "scope", scope->label);
        mull__set_text(L, "file", scope->places[setting].file);
        mull__set_integer(L, "line", scope->places[setting].line);
    }
    lua_setfield(L, -2, name);
}

void mull__set_settings(lua_State *L, const mull__table *table,
                        const mull__effective_settings *effective)
{
    lua_newtable(L);
#define SET(NUMBER, field, kind, ...)                                                              \
    push_##kind(L, effective->settings.field);                                                     \
    set_setting(L, #field, mull__scope_that_sets(table, effective, MULL__##NUMBER), MULL__##NUMBER);
    MULL__EACH_SETTING(SET)
#undef SET
    lua_setfield(L, -2, "settings");
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* push_table pushes all of it; the view is at `index`. */
static void push_table(lua_State *L, view *v, const char *consumer, const char *transport,
                       int index)
{
    const mull__table *table = mull__generation_table(v->generation);
    const mull__effective_settings effective =
        mull__effective_settings_of(table, consumer, transport);
    mull__effective_limits mix = mull__effective_limits_here(table, &effective, MULL__HANDLER_MS);
    v->scope = effective.rules;
    v->queue = effective.settings.dead_letter_queue;
    measure(L, v, &mix);
    lua_newtable(L);
    mull__set_text(L, "generation", mull__generation_name(v->generation));
    mull__set_text(L, "consumer", consumer);
    mull__set_text(L, "transport", transport);
    mull__set_scopes(L, table, consumer, transport);
    set_others(L, table, &effective);
    size_t rules = v->scope ? v->scope->rules.count : 0;
    size_t causes = v->scope ? v->scope->cause_rules.count : 0;
    set_rules(L, "rules", 0, rules, index);
    set_rules(L, "cause_rules", rules, causes, index);
    lua_createtable(L, 0, 4);
    mull__set_range(L, &v->bounds);
    lua_setfield(L, -2, "bounds");
    set_unrecoverable(L, table, &effective);
    mull__set_list(L, "replaced", v->scope ? v->scope->replaced : NULL,
                   v->scope ? v->scope->replaced_count : 0, sizeof *v->scope->replaced,
                   push_replaced);
    set_parents(L, table);
    mull__set_settings(L, table, &effective);
}

int mull__policy_table(lua_State *L)
{
    static const char type_name[] = "mulligan.policy.table";
    const char *consumer = luaL_optstring(L, 2, NULL), *transport = luaL_optstring(L, 3, NULL);
    lua_settop(L, 3);
    view *v = mull__collected_userdata(L, sizeof *v, type_name, drop);
    v->generation = mull__policy_current(mull__policy_at(L, 1)->policy);
    push_table(L, v, consumer, transport, 4);
    lua_pushvalue(L, 4);
    return 2;
}
