/* push.c: into Lua; see convert.h. A verdict has the keys of `mulligan decide`, and what is null
 * there is nil here. */
#include "convert.h"

#include "fields.h"

#include <lauxlib.h>
#include <string.h>

/* Causes below this are cut off: nobody looks at them, and a cycle ends here. */
enum { CAUSES = 16 };

/* ---- Errors ---------------------------------------------------------------------------------- */

void mull__push_value(lua_State *L, const mull_value *value)
{
    luaL_checkstack(L, 4, NULL);
    switch (value->kind) {
    case MULL_NIL:
        lua_pushnil(L);
        break;
    case MULL_BOOLEAN:
        lua_pushboolean(L, value->as.boolean);
        break;
    case MULL_INTEGER:
        lua_pushinteger(L, value->as.integer);
        break;
    case MULL_NUMBER:
        lua_pushnumber(L, value->as.number);
        break;
    case MULL_STRING:
        lua_pushstring(L, value->as.string);
        break;
    case MULL_LIST:
        lua_newtable(L);
        for (size_t i = 0; i < value->count; i++) {
            mull__push_value(L, &value->as.items[i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        break;
    case MULL_MAP:
        lua_newtable(L);
        for (size_t i = 0; i < value->count; i++) {
            mull__push_value(L, &value->as.fields[i].value);
            lua_setfield(L, -2, value->as.fields[i].name);
        }
        break;
    }
}

static void push_error(lua_State *L, const mull_error *error, int depth)
{
    luaL_checkstack(L, 6, NULL);
    lua_newtable(L);
    /* The first field of a name counts, and the error's own keys before all. */
    for (size_t i = error->field_count; i-- > 0;) {
        mull__push_value(L, &error->fields[i].value);
        lua_setfield(L, -2, error->fields[i].name);
    }
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

static void set_headers(lua_State *L, const mull_message *message)
{
    lua_createtable(L, 0, (int)message->header_count);
    for (size_t i = message->header_count; i-- > 0;) {
        lua_pushstring(L, message->headers[i].value);
        lua_setfield(L, -2, message->headers[i].name);
    }
    lua_setfield(L, -2, "headers");
}

void mull__push_message(lua_State *L, const mull_message *message)
{
    lua_createtable(L, 0, 10);
    mull__set_text(L, "id", message->id);
    mull__set_text(L, "type", message->type);
    mull__set_text(L, "key", message->key);
    mull__set_text(L, "queue", message->queue);
    lua_pushlstring(L, message->body ? message->body : "", message->body_size);
    lua_setfield(L, -2, "body");
    set_headers(L, message);
    mull__set_integer(L, "attempt", message->attempt);
    mull__set_integer(L, "redeliveries", message->redeliveries);
    mull__set_integer(L, "calls", message->calls);
    mull__set_integer(L, "deliveries", message->deliveries);
}

void mull__set_where(lua_State *L, const mull_failure *failure)
{
    mull__set_text(L, "consumer", failure->consumer);
    mull__set_text(L, "transport", failure->transport);
    mull__set_integer(L, "attempt", failure->attempt);
    mull__set_integer(L, "redeliveries", failure->redeliveries);
    mull__set_integer(L, "calls", failure->calls);
    mull__set_integer(L, "deliveries", failure->deliveries);
    mull__set_integer(L, "age_ms", failure->age_ms);
}

void mull__push_failure(lua_State *L, const mull_failure *failure)
{
    luaL_checkstack(L, 6, NULL);
    lua_createtable(L, 0, 9);
    if (failure->error) {
        push_error(L, failure->error, 0);
        lua_setfield(L, -2, "error");
    }
    mull__set_where(L, failure);
    lua_createtable(L, 0, 5);
    if (failure->message) {
        mull__set_text(L, "id", failure->message->id);
        mull__set_text(L, "type", failure->message->type);
        mull__set_text(L, "key", failure->message->key);
        mull__set_integer(L, "size", (int64_t)failure->message->body_size);
        set_headers(L, failure->message);
    }
    lua_setfield(L, -2, "message");
}

/* ---- Verdicts, events ------------------------------------------------------------------------ */

void mull__set_rule(lua_State *L, const mull_rule *rule)
{
    if (!rule || !rule->file)
        return;
    lua_createtable(L, 0, 4);
    mull__set_text(L, "file", rule->file);
    mull__set_integer(L, "line", rule->line);
    mull__set_text(L, "scope", rule->scope);
    mull__set_text(L, "type", rule->type);
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

void mull__push_event(lua_State *L, const mull_event *event)
{
    luaL_checkstack(L, 6, NULL);
    lua_createtable(L, 0, 6);
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
}
