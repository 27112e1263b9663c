/* to_lua.c: into Lua; see values.h. A verdict has the keys of `mulligan decide`, and what is null
 * there is nil here. */
#include "values.h"

#include "base/struct_compat.h"

#include <lauxlib.h>
#include <string.h>

/* Causes and values below these are cut off: nobody looks at them, and a cycle ends here. */
enum { CAUSES = 16, LEVELS = 16 };

/* ---- Errors ---------------------------------------------------------------------------------- */

static void push_value(lua_State *L, const mull_value *value, int level);

static void push_list(lua_State *L, const mull_value *list, int level)
{
    lua_createtable(L, (int)list->count, 0);
    for (size_t i = 0; i < list->count; i++) {
        push_value(L, &list->as.items[i], level);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* set_fields: the first field of a name counts. */
static void set_fields(lua_State *L, const mull_field *fields, size_t count, int level)
{
    for (size_t i = count; i-- > 0;) {
        if (!fields[i].name)
            continue;
        push_value(L, &fields[i].value, level);
        lua_setfield(L, -2, fields[i].name);
    }
}

static void push_value(lua_State *L, const mull_value *value, int level)
{
    mull_kind kind = mull__kind(value);
    luaL_checkstack(L, 4, NULL);
    if (kind == MULL_BOOLEAN) {
        lua_pushboolean(L, value->as.boolean);
    } else if (kind == MULL_INTEGER) {
        lua_pushinteger(L, value->as.integer);
    } else if (kind == MULL_NUMBER) {
        lua_pushnumber(L, value->as.number);
    } else if (kind == MULL_STRING) {
        lua_pushstring(L, value->as.string);
    } else if (kind == MULL_LIST && level < LEVELS) {
        push_list(L, value, level + 1);
    } else if (kind == MULL_MAP && level < LEVELS) {
        lua_createtable(L, 0, (int)value->count);
        set_fields(L, value->as.fields, value->count, level + 1);
    } else {
        lua_pushnil(L);
    }
}

void mull__push_value(lua_State *L, const mull_value *value)
{
    push_value(L, value, 0);
}

static void push_error(lua_State *L, const mull_error *error, int depth)
{
    luaL_checkstack(L, 6, NULL);
    lua_newtable(L);
    set_fields(L, error->fields, mull__field_count(error), 0);
    mull__set_text(L, "type", error->type);
    mull__set_text(L, "message", error->message ? error->message : "");
    mull__set_text(L, "stack", error->stack ? error->stack : "");
    if (error->lineage_count > 0) {
        lua_newtable(L);
        for (size_t i = 0; i < error->lineage_count; i++) {
            lua_pushstring(L, error->lineage[i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_setfield(L, -2, "lineage");
    }
    if (error->cause && depth < CAUSES) {
        push_error(L, error->cause, depth + 1);
        lua_setfield(L, -2, "cause");
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* set_headers: the first header of a name counts, one without a value too. */
static void set_headers(lua_State *L, const mull_message *message)
{
    size_t count = mull__header_count(message);
    lua_createtable(L, 0, (int)count);
    for (size_t i = count; i-- > 0;) {
        if (!message->headers[i].name)
            continue;
        lua_pushstring(L, message->headers[i].value);
        lua_setfield(L, -2, message->headers[i].name);
    }
    lua_setfield(L, -2, "headers");
}

#define SET(kind, field, least) mull__set_##kind(L, #field, of->field);

void mull__push_message(lua_State *L, const mull_message *of)
{
    lua_createtable(L, 0, 10);
    MULL__MESSAGE_FIELDS(SET)
    mull__set_text(L, "queue", of->queue);
    lua_pushlstring(L, of->body ? of->body : "", of->body_size);
    lua_setfield(L, -2, "body");
    set_headers(L, of);
    mull__set_integer(L, "attempt", of->attempt);
    mull__set_integer(L, "redeliveries", of->redeliveries);
    mull__set_integer(L, "calls", of->calls);
    mull__set_integer(L, "deliveries", of->deliveries);
}

void mull__set_failure_counters(lua_State *L, const mull_failure *of)
{
    MULL__FAILURE_FIELDS(SET)
}

void mull__push_facts(lua_State *L, const mull_message *of)
{
    lua_createtable(L, 0, 5);
    MULL__MESSAGE_FIELDS(SET)
    mull__set_integer(L, "size", (int64_t)of->body_size);
    set_headers(L, of);
}

void mull__push_failure(lua_State *L, const mull_failure *failure)
{
    luaL_checkstack(L, 6, NULL);
    lua_createtable(L, 0, 9);
    if (failure->error) {
        push_error(L, failure->error, 0);
        lua_setfield(L, -2, "error");
    }
    mull__set_failure_counters(L, failure);
    if (failure->message)
        mull__push_facts(L, failure->message);
    else
        lua_newtable(L);
    lua_setfield(L, -2, "message");
}

/* ---- Verdicts, events ------------------------------------------------------------------------ */

void mull__push_source(lua_State *L, const mull_rule *rule)
{
    lua_createtable(L, 0, 5);
    mull__set_text(L, "file", rule->file);
    if (rule->file)
        mull__set_integer(L, "line", rule->line);
    mull__set_text(L, "scope", rule->scope);
    mull__set_text(L, "type", rule->type);
}

void mull__set_rule(lua_State *L, const mull_rule *rule)
{
    if (!rule || !rule->file)
        return;
    mull__push_source(L, rule);
    lua_setfield(L, -2, "rule");
}

void mull__push_verdict(lua_State *L, const mull_verdict *verdict)
{
    lua_createtable(L, 0, 11);
    mull__set_text(L, "action", mull_action_name(verdict->action));
    mull__set_integer(L, "delay_ms", verdict->delay_ms);
    mull__set_text(L, "queue", verdict->queue);
    mull__set_text(L, "reason", mull_reason_name(verdict->reason));
    mull__set_text(L, "note", verdict->note);
    mull__set_text(L, "tier", mull_tier_name(verdict->tier));
    if (verdict->tier != MULL_TIER_NONE) {
        mull__set_integer(L, "step", verdict->step);
        if (verdict->of > 0) /* neither unlimited nor unknown */
            mull__set_integer(L, "of", verdict->of);
    }
    mull__set_rule(L, &verdict->rule);
    mull__set_text(L, "fallback", mull_fallback_name(verdict->fallback));
    mull__set_text(L, "generation", verdict->generation);
}

void mull__push_limit(lua_State *L, const mull_limit_status *limit)
{
    luaL_checkstack(L, 4, NULL);
    lua_createtable(L, 0, 9);
    mull__set_text(L, "per", limit->per);
    mull__set_text(L, "value", limit->value);
    mull__set_text(L, "file", limit->file);
    mull__set_integer(L, "line", limit->line);
    mull__set_integer(L, "since_ms", limit->since_ms);
    mull__set_integer(L, "next_ms", limit->next_ms);
    mull__set_flag(L, "waits_for_handlers", limit->waits_for_handlers);
    mull__set_integer(L, "probes", (int64_t)limit->probes);
    mull__set_text(L, "error_type", limit->error_type);
}

void mull__push_event(lua_State *L, const mull_event *event)
{
    luaL_checkstack(L, 6, NULL);
    lua_createtable(L, 0, 8);
    mull__set_text(L, "name", mull_event_name(event->kind));
    if (event->failure) {
        mull__push_failure(L, event->failure);
        lua_setfield(L, -2, "failure");
    }
    if (event->verdict) {
        mull__push_verdict(L, event->verdict);
        lua_setfield(L, -2, "verdict");
    }
    mull__set_rule(L, event->rule);
    mull__set_text(L, "text", event->text);
    mull__set_text(L, "generation", event->generation);
    mull__set_text(L, "consumer", event->consumer);
    if (event->limit) {
        mull__push_limit(L, event->limit);
        lua_setfield(L, -2, "limit");
    }
}
