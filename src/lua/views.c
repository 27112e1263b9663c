/* views.c: see views.h. A view is built whole for each call. */
#include "views.h"

#include <lauxlib.h>
#include <string.h>

#include "vm.h"

static const char meta, live, lineages, declared; /* keys of the registry, by their addresses */

enum { LEVELS = 16, CAUSES = 16 };

/* ---- Views ----------------------------------------------------------------------------------- */

/* push_shown pushes what the view at `index` shows. */
static void push_shown(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &live) == LUA_TTABLE) {
        lua_pushvalue(L, index);
        if (lua_rawget(L, -2) == LUA_TTABLE) {
            lua_remove(L, -2);
            return;
        }
    }
    mull__vm_raise(L, "err and ctx are there during the call only; a local can keep what was read");
}

static int view_index(lua_State *L)
{
    push_shown(L, 1);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    return 1;
}

static int view_newindex(lua_State *L)
{
    return mull__vm_raise(L, "err and ctx are read-only");
}

static int view_len(lua_State *L)
{
    push_shown(L, 1);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
    return 1;
}

int mull__views_reveal(lua_State *L)
{
    if (!lua_istable(L, 1) || !lua_getmetatable(L, 1))
        return 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &meta);
    if (!lua_rawequal(L, -1, -2))
        return 0;
    push_shown(L, 1);
    return 1;
}

/* push_view puts a view in the place of the table on top, which it shows. */
static void push_view(lua_State *L)
{
    lua_newtable(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &meta);
    lua_setmetatable(L, -2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &live);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -4);
    lua_rawset(L, -3); /* live[view] = table */
    lua_pop(L, 1);
    lua_remove(L, -2);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void push_value(lua_State *L, const mull_value *value, int level);

static void push_list(lua_State *L, const mull_value *list, int level)
{
    lua_createtable(L, (int)(list->count < 1024 ? list->count : 1024), 0);
    for (size_t i = 0; i < list->count; i++) {
        push_value(L, &list->as.items[i], level + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    push_view(L);
}

/* set_fields sets fields in the table on top; of several with one name the first counts. */
static void set_fields(lua_State *L, const mull_field *fields, size_t count, int level)
{
    for (size_t i = count; i-- > 0;) {
        push_value(L, &fields[i].value, level);
        lua_setfield(L, -2, fields[i].name);
    }
}

static void push_map(lua_State *L, const mull_value *map, int level)
{
    lua_newtable(L);
    set_fields(L, map->as.fields, map->count, level + 1);
    push_view(L);
}

static void push_value(lua_State *L, const mull_value *value, int level)
{
    luaL_checkstack(L, 8, "a value too deep");
    switch (value->kind) {
    case MULL_NIL:
        break;
    case MULL_BOOLEAN:
        lua_pushboolean(L, value->as.boolean);
        return;
    case MULL_INTEGER:
        lua_pushinteger(L, value->as.integer);
        return;
    case MULL_NUMBER:
        lua_pushnumber(L, value->as.number);
        return;
    case MULL_STRING:
        lua_pushstring(L, value->as.string);
        return;
    case MULL_LIST:
    case MULL_MAP:
        if (level >= LEVELS)
            break;
        if (value->kind == MULL_LIST)
            push_list(L, value, level);
        else
            push_map(L, value, level);
        return;
    }
    lua_pushnil(L);
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text); /* nil for NULL */
    lua_setfield(L, -2, name);
}

static void set_integer(lua_State *L, const char *name, int64_t value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

/* ---- err ------------------------------------------------------------------------------------- */

/* error_is is err:is(type): whether the type is in the error's effective lineage. */
static int error_is(lua_State *L)
{
    luaL_argcheck(L, lua_istable(L, 1), 1, "err:is(type) takes a colon");
    luaL_checktype(L, 2, LUA_TSTRING);
    push_shown(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &lineages);
    lua_pushvalue(L, -2);
    luaL_argcheck(L, lua_rawget(L, -2) == LUA_TTABLE, 1, "only an error has a type");
    lua_pushvalue(L, 2);
    lua_pushboolean(L, lua_rawget(L, -2) != LUA_TNIL);
    return 1;
}

/* add_type adds a type to the set on top; 1 where it is new and not the root. */
static int add_type(lua_State *L, const char *type)
{
    if (!type || !*type || strcmp(type, "Error") == 0)
        return 0;
    lua_pushstring(L, type);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) != LUA_TNIL) {
        lua_pop(L, 2);
        return 0;
    }
    lua_pop(L, 1);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    return 1;
}

/* push_lineage pushes the set of an error's effective lineage: what was sent, then the declared
 * parents of the last of these. */
static void push_lineage(lua_State *L, const mull_error *error)
{
    lua_newtable(L);
    const char *last = add_type(L, error->type) ? error->type : NULL;
    for (size_t i = 0; i < error->lineage_count; i++)
        if (add_type(L, error->lineage[i]))
            last = error->lineage[i];
    lua_rawgetp(L, LUA_REGISTRYINDEX, &declared);
    int set = lua_gettop(L) - 1;
    lua_pushstring(L, last ? last : "Error");
    while (lua_rawget(L, -2) == LUA_TSTRING) { /* a type gives way to its parent */
        lua_pushvalue(L, -1);
        lua_pushboolean(L, 1);
        lua_rawset(L, set);
    }
    lua_settop(L, set);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "Error");
}

/* push_plain_error pushes what an error's view shows, its cause left out. */
static void push_plain_error(lua_State *L, const mull_error *error)
{
    lua_newtable(L);
    set_fields(L, error->fields, error->field_count, 0);
    set_text(L, "type", error->type);
    set_text(L, "message", error->message ? error->message : "");
    set_text(L, "stack", error->stack ? error->stack : "");
    set_text(L, "cause", NULL);
    lua_pushcfunction(L, error_is);
    lua_setfield(L, -2, "is");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &lineages);
    lua_pushvalue(L, -2);
    push_lineage(L, error);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* causes lists an error and its causes, as many as are looked at: a circle is cut. */
static size_t list_causes(const mull_error *error, const mull_error *list[CAUSES + 1])
{
    size_t count = 0;
    for (; error && count < CAUSES + 1; error = error->cause) {
        for (size_t i = 0; i < count; i++)
            if (list[i] == error)
                return count;
        list[count++] = error;
    }
    return count;
}

static void push_error(lua_State *L, const mull_error *error)
{
    const mull_error *list[CAUSES + 1];
    lua_pushnil(L);
    for (size_t i = list_causes(error, list); i-- > 0;) { /* the deepest first */
        push_plain_error(L, list[i]);
        lua_insert(L, -2);
        lua_setfield(L, -2, "cause");
        push_view(L);
    }
}

/* ---- ctx ------------------------------------------------------------------------------------- */

static void push_message(lua_State *L, const mull_message *message)
{
    static const mull_message none = {.size = sizeof none};
    if (!message)
        message = &none;
    lua_newtable(L);
    set_text(L, "id", message->id);
    set_text(L, "type", message->type);
    set_text(L, "key", message->key);
    set_integer(L, "size", (int64_t)message->body_size);
    lua_newtable(L);
    for (size_t i = message->header_count; i-- > 0;)
        set_text(L, message->headers[i].name, message->headers[i].value);
    push_view(L);
    lua_setfield(L, -2, "headers");
    push_view(L);
}

static void push_context(lua_State *L, const mull_failure *failure)
{
    lua_newtable(L);
    set_integer(L, "attempt", failure->attempt);
    set_integer(L, "redeliveries", failure->redeliveries);
    set_integer(L, "deliveries", failure->deliveries);
    set_integer(L, "calls", failure->calls);
    set_integer(L, "age_ms", failure->age_ms);
    set_text(L, "consumer", failure->consumer);
    set_text(L, "transport", failure->transport);
    push_message(L, failure->message);
    lua_setfield(L, -2, "message");
    push_view(L);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void mull__views_open(lua_State *L, int parents)
{
    static const luaL_Reg methods[] = {
        {"__index", view_index}, {"__newindex", view_newindex}, {"__len", view_len}, {NULL, NULL}};
    lua_pushvalue(L, parents);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &declared);
    luaL_newlib(L, methods);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &meta);
    mull__views_end(L);
}

void mull__views_push(lua_State *L, const mull_failure *failure)
{
    luaL_checkstack(L, 16, "no room for err and ctx");
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &live);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lineages);
    push_error(L, failure->error);
    push_context(L, failure);
}

void mull__views_end(lua_State *L)
{
    /* A key that is there takes a value without new memory, and it is there since the opening. */
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &live);
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lineages);
}
