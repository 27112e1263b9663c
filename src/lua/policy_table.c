/* policy_table.c: policy:table, the decision table as it is in force somewhere; docs/table.md. */
#include "base/alloc.h"
#include "decide/decide.h"
#include "fields.h"
#include "json_encode.h"
#include "plain_push.h"
#include "policy_look.h"
#include "policy_module.h"
#include "scoped.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* ---- Scopes ---------------------------------------------------------------------------------- */

static const char *const kinds[] = {"consumer", "transport", "bus", "host"};

/* push_label pushes what a scope is called, whether there is one or not. */
static void push_label(lua_State *L, mull__scope_kind kind, const char *name)
{
    if (name)
        lua_pushfstring(L, "%s:%s", kinds[kind], name);
    else
        lua_pushstring(L, kinds[kind]);
}

static void set_includes(lua_State *L, const mull__scope *scope)
{
    mull__push_list(L);
    for (size_t i = 0; i < scope->include_count; i++) {
        const mull__plain_include *include = &scope->includes[i];
        lua_newtable(L);
        mull__set_text(L, "scope", include->scope);
        mull__set_text(L, "file", include->file);
        mull__set_integer(L, "line", include->line);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "includes");
}

static void add_scope(lua_State *L, mull__scope_kind kind, const char *name,
                      const mull__scope *scope, const mull__layer *layer)
{
    lua_newtable(L);
    push_label(L, kind, name);
    lua_setfield(L, -2, "scope");
    mull__set_flag(L, "exists", scope != NULL);
    mull__set_flag(L, "in_force", scope && scope == layer->rules);
    mull__set_integer(L, "rules", scope ? (int64_t)mull__scope_rules(scope) : 0);
    if (scope)
        set_includes(L, scope);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

void mull__set_scopes(lua_State *L, const mull__table *table, const char *consumer,
                      const char *transport)
{
    mull__layer room;
    const mull__layer *layer = mull__layer_named(table, consumer, transport, &room);
    const char *const names[MULL__SCOPE_KINDS] = {consumer, transport, NULL, NULL};
    mull__push_list(L);
    for (int i = 0; i < MULL__SCOPE_KINDS; i++) {
        mull__scope_kind kind = (mull__scope_kind)i;
        if (kind == MULL__BUS || kind == MULL__HOST || names[kind])
            add_scope(L, kind, names[kind], mull__scope_of(table, layer, kind), layer);
    }
    lua_setfield(L, -2, "scopes");
}

/* set_others: the scopes of consumers and transports that this isn't the table of. */
static void set_others(lua_State *L, const mull__table *table, const mull__layer *layer)
{
    mull__push_list(L);
    for (size_t i = 0; i < table->scope_count; i++) {
        const mull__scope *scope = &table->scopes[i];
        if (!scope->name || scope == layer->consumer || scope == layer->transport)
            continue;
        lua_newtable(L);
        mull__set_text(L, "scope", scope->label);
        mull__set_integer(L, "rules", (int64_t)mull__scope_rules(scope));
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
    lua_setfield(L, -2, "others");
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void set_rules(lua_State *L, const char *field, const mull__rules *rules, const char *queue,
                      const mull__mixes *mixes)
{
    mull__push_list(L);
    for (size_t i = 0; rules && i < rules->count; i++) {
        const mull__extent extent = mull__extent_of_rule(&rules->items[i], mixes);
        mull__push_rule(L, &rules->items[i], queue);
        lua_createtable(L, 0, 4);
        mull__set_extent(L, &extent);
        lua_setfield(L, -2, "bounds");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, field);
}

/* set_bounds: of whatever happens by the rules in force. */
static void set_bounds(lua_State *L, const mull__table *table, const mull__scope *scope,
                       const mull__mixes *mixes)
{
    mull__extent extent = {.calls = 1}; /* no rule: the first failure ends it */
    if (scope && mull__extent_of_scope(&extent, table, scope, mixes) != MULL_OK)
        luaL_error(L, "not enough memory");
    lua_createtable(L, 0, 4);
    mull__set_extent(L, &extent);
    lua_setfield(L, -2, "bounds");
}

/* set_unrecoverable: those of every scope hold, and the built-in one. */
static void set_unrecoverable(lua_State *L, const mull__table *table, const mull__layer *layer)
{
    const mull__rule built_in = {.source.type = table->types[MULL__UNREADABLE_TYPE].name};
    lua_Integer count = 0;
    mull__push_list(L);
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, layer, (mull__scope_kind)kind);
        for (size_t i = 0; scope && i < scope->unrecoverable.count; i++) {
            mull__push_declaration(L, &scope->unrecoverable.items[i]);
            lua_rawseti(L, -2, ++count);
        }
    }
    if (mull__built_in_holds(layer)) {
        mull__push_declaration(L, &built_in);
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "unrecoverable");
}

static void set_replaced(lua_State *L, const mull__scope *scope)
{
    mull__push_list(L);
    for (size_t i = 0; scope && i < scope->replaced_count; i++) {
        const mull__plain_replaced *replaced = &scope->replaced[i];
        lua_newtable(L);
        mull__set_text(L, "word", replaced->by_cause ? "on_cause" : "on");
        mull__set_text(L, "type", replaced->type);
        mull__set_text(L, "scope", replaced->scope);
        mull__set_text(L, "file", replaced->file);
        mull__set_integer(L, "line", replaced->line);
        mull__set_text(L, "by_file", replaced->by_file);
        mull__set_integer(L, "by_line", replaced->by_line);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "replaced");
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

static void set_number(lua_State *L, int64_t value)
{
    if (value == MULL__OFF)
        lua_pushboolean(L, 0);
    else
        lua_pushinteger(L, value);
    lua_setfield(L, -2, "value");
}

static void set_limit(lua_State *L, const mull__in_force *in_force)
{
    if (in_force->rate_after == MULL__OFF) {
        set_number(L, MULL__OFF);
        return;
    }
    lua_newtable(L);
    mull__set_integer(L, "after", in_force->rate_after);
    mull__set_integer(L, "wait_ms", in_force->rate_wait_ms);
    lua_setfield(L, -2, "value");
}

/* set_value sets what is in force, false where that is off. */
static void set_value(lua_State *L, mull__setting setting, const mull__in_force *in_force)
{
    switch (setting) {
    case MULL__DEAD_LETTER_QUEUE:
        mull__set_text(L, "value", in_force->dead_letter_queue);
        break;
    case MULL__MAX_AGE:
        set_number(L, in_force->max_age_ms);
        break;
    case MULL__MAX_ATTEMPTS:
        set_number(L, in_force->max_attempts);
        break;
    case MULL__MAX_DELIVERIES:
        set_number(L, in_force->max_deliveries);
        break;
    case MULL__RATE_LIMIT:
        set_limit(L, in_force);
        break;
    case MULL__OVERRIDE:
        mull__set_flag(L, "value", in_force->override != MULL__OFF);
        break;
    case MULL__NOTIFY:
        mull__set_flag(L, "value", in_force->notify != MULL__OFF);
        break;
    case MULL__SETTINGS:
        break;
    }
}

/* set_settings: each with where it was set; without a scope, the default holds. */
static void set_settings(lua_State *L, const mull__table *table, const mull__layer *layer,
                         const mull__in_force *in_force)
{
    static const char *const names[] = {
        "dead_letter_queue", "max_age_ms", "max_attempts", "max_deliveries",
        "rate_limit",        "override",   "notify"};
    lua_newtable(L);
    for (int i = 0; i < MULL__SETTINGS; i++) {
        const mull__scope *scope = mull__setting_scope(table, layer, (mull__setting)i);
        lua_newtable(L);
        set_value(L, (mull__setting)i, in_force);
        if (scope) {
            mull__set_text(L, "scope", scope->label);
            mull__set_text(L, "file", scope->places[i].file);
            mull__set_integer(L, "line", scope->places[i].line);
        }
        lua_setfield(L, -2, names[i]);
    }
    lua_setfield(L, -2, "settings");
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* mix_of gives the settings that the rules are in force with. */
static mull__mix mix_of(const mull__table *table, const mull__layer *layer,
                        const mull__in_force *in_force)
{
    mull__mix mix = {.max_age_ms = in_force->max_age_ms,
                     .max_attempts = in_force->max_attempts,
                     .handler_ms = MULL__HANDLER_MS,
                     .overridden = in_force->override != MULL__OFF};
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, layer, (mull__scope_kind)kind);
        mix.unrecoverable |= scope && scope->unrecoverable.count > 0;
    }
    return mix;
}

static void push_table(lua_State *L, const mull__generation *generation, const char *consumer,
                       const char *transport)
{
    const mull__table *table = mull__generation_table(generation);
    mull__layer room;
    const mull__layer *layer = mull__layer_named(table, consumer, transport, &room);
    mull__in_force in_force;
    mull__table_in_force(table, consumer, transport, &in_force);
    lua_newtable(L);
    mull__set_text(L, "generation", mull__generation_name(generation));
    mull__set_text(L, "consumer", consumer);
    mull__set_text(L, "transport", transport);
    mull__set_scopes(L, table, consumer, transport);
    set_others(L, table, layer);
    const mull__scope *scope = layer->rules;
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){.resize = NULL});
    mull__mix mix = mix_of(table, layer, &in_force);
    const mull__mixes mixes = {.items = &mix, .count = 1, .allocator = &allocator};
    const char *queue = in_force.dead_letter_queue;
    set_rules(L, "rules", scope ? &scope->rules : NULL, queue, &mixes);
    set_rules(L, "cause_rules", scope ? &scope->cause_rules : NULL, queue, &mixes);
    set_bounds(L, table, scope, &mixes);
    set_unrecoverable(L, table, layer);
    set_replaced(L, scope);
    set_parents(L, table);
    set_settings(L, table, layer, &in_force);
}

static int drop(lua_State *L)
{
    mull__generation **kept = lua_touserdata(L, 1);
    if (*kept)
        mull__generation_drop(*kept);
    *kept = NULL;
    return 0;
}

int mull__policy_table(lua_State *L)
{
    static const char type_name[] = "mulligan.policy.table";
    mull__lua_policy *policy = mull__policy_at(L, 1);
    const char *consumer = luaL_optstring(L, 2, NULL), *transport = luaL_optstring(L, 3, NULL);
    lua_settop(L, 3);
    mull__generation **kept = mull__scoped_new(L, sizeof(mull__generation *), type_name, drop);
    *kept = mull__policy_current(policy->policy);
    push_table(L, *kept, consumer, transport);
    return 1;
}
