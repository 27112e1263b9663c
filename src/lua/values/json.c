/* json.c: makes Lua values of JSON; see json.h. All memory is the Lua state's, so that a lack of it
 * is raised as everywhere. */
#include "json.h"

#include "raise.h"
#include "wire/json_read.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

/* maker has the lists and maps that aren't whole yet on the stack, and what it knows of each. A
 * name lies above its map until its value comes. */
typedef struct maker {
    lua_State *L;
    int unique, level;
    struct {
        lua_Integer count;
        int is_map, has_nulls;
    } levels[MULL__JSON_LEVELS + 1]; /* from 1 on */
} maker;

/* ---- Parts ----------------------------------------------------------------------------------- */

static void push_string(lua_State *L, const mull__json_part *part)
{
    luaL_Buffer out;
    if (!part->has_escapes) {
        lua_pushlstring(L, part->text, part->size);
        return;
    }
    char *to = luaL_buffinitsize(L, &out, part->size);
    luaL_pushresultsize(&out, mull__json_unescape(to, part));
}

/* push_number: Lua reads it, whatever the locale is; what doesn't fit 64 bits becomes a float. */
static int push_number(lua_State *L, const mull__json_part *part)
{
    lua_pushlstring(L, part->text, part->size);
    if (!lua_stringtonumber(L, lua_tostring(L, -1)) || isinf(lua_tonumber(L, -1)))
        return MULL__JSON_TOO_LARGE;
    lua_remove(L, -2);
    return 0;
}

/* push_name pushes a name of the map on top. */
static int push_name(maker *m, const mull__json_part *part)
{
    push_string(m->L, part);
    if (!m->unique)
        return 0;
    lua_pushvalue(m->L, -1);
    int is_there = lua_rawget(m->L, -3) != LUA_TNIL;
    lua_pop(m->L, 1);
    return is_there ? MULL__JSON_TWICE : 0;
}

static void begin(maker *m, int is_map)
{
    luaL_checkstack(m->L, 8, NULL);
    lua_newtable(m->L);
    m->level++;
    m->levels[m->level].is_map = is_map;
    m->levels[m->level].count = m->levels[m->level].has_nulls = 0;
}

/* put puts the value on top where it belongs. */
static void put(maker *m)
{
    if (m->level == 0)
        return;
    if (m->levels[m->level].is_map) {
        m->levels[m->level].has_nulls |= lua_islightuserdata(m->L, -1);
        lua_rawset(m->L, -3);
    } else {
        lua_rawseti(m->L, -2, ++m->levels[m->level].count);
    }
}

void mull__json_mark_list(lua_State *L)
{
    luaL_newmetatable(L, "mulligan.json.list");
    lua_setmetatable(L, -2);
}

/* drop_nulls takes what is null out of the map on top. */
static void drop_nulls(lua_State *L)
{
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (lua_islightuserdata(L, -1)) {
            lua_pushvalue(L, -2);
            lua_pushnil(L);
            lua_rawset(L, -5);
        }
}

/* end ends the list or map on top. */
static void end(maker *m)
{
    if (m->levels[m->level].has_nulls)
        drop_nulls(m->L);
    if (!m->levels[m->level].is_map && m->levels[m->level].count == 0)
        mull__json_mark_list(m->L);
    m->level--;
}

/* take makes a part's value, null as a light userdata. */
static int take(void *data, const mull__json_part *part)
{
    maker *m = data;
    int status = 0;
    switch (part->kind) {
    case MULL__JSON_NULL:
        lua_pushlightuserdata(m->L, NULL);
        break;
    case MULL__JSON_FALSE:
    case MULL__JSON_TRUE:
        lua_pushboolean(m->L, part->kind == MULL__JSON_TRUE);
        break;
    case MULL__JSON_NUMBER:
        status = push_number(m->L, part);
        break;
    case MULL__JSON_STRING:
        push_string(m->L, part);
        break;
    case MULL__JSON_NAME:
        return push_name(m, part);
    case MULL__JSON_LIST:
    case MULL__JSON_MAP:
        begin(m, part->kind == MULL__JSON_MAP);
        return 0;
    case MULL__JSON_LIST_END:
    case MULL__JSON_MAP_END:
        end(m);
        break;
    }
    if (status == 0)
        put(m);
    return status;
}

void mull__json_push(lua_State *L, const char *text, size_t size, size_t most, int unique)
{
    char why[MULL__JSON_WHY];
    maker m = {.L = L, .unique = unique};
    luaL_checkstack(L, 8, NULL);
    if (mull__json_read(text, size, most, take, &m, why) != 0)
        mull__raise(L, "MessageDeserializationError", "%s", why);
    if (lua_islightuserdata(L, -1)) {
        lua_pop(L, 1);
        lua_pushnil(L);
    }
}

/* ---- mulligan.json --------------------------------------------------------------------------- */

static int decode(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    mull__json_push(L, text, size, SIZE_MAX, 0);
    return 1;
}

static int list(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    mull__json_mark_list(L);
    return 1;
}

/* is_before orders keys, which have no NUL, by bytes. */
static int is_before(lua_State *L)
{
    lua_pushboolean(L, strcmp(luaL_checkstring(L, 1), luaL_checkstring(L, 2)) < 0);
    return 1;
}

int mull__open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"decode", decode}, {"list", list}, {"is_before", is_before}, {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    return 1;
}
