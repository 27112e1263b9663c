/* dsl_dispatch.c: see dsl_dispatch.h. */
#include "dsl_dispatch.h"

#include <lauxlib.h>
#include <string.h>

#include "base/utf8.h"
#include "lua/values/values.h"
#include "policy/settings.h"

/* find gives the innermost place in a policy's file that is at work now. Chunks of embedded files
 * have names that begin with "=", as C's do. */
static const char *find(lua_State *L, lua_Integer *line)
{
    lua_Debug at;
    for (int level = 1; lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sl", &at) && at.source[0] == '@') {
            *line = at.currentline;
            return at.source + 1;
        }
    *line = 0;
    return "policy.lua";
}

static void push_place(lua_State *L, const char *file, lua_Integer line)
{
    lua_createtable(L, 0, 2);
    mull__set_text(L, "file", file);
    mull__set_integer(L, "line", line);
}

static int place(lua_State *L)
{
    lua_Integer line;
    const char *file = find(L, &line);
    push_place(L, file, line);
    return 1;
}

/* The upvalues of a word that was looked up. */
enum { SAY = 1, OBJECT, WORD, FILE_NAME, LINE };

/* said is what a lookup gives. Lua 5.4.4 gives every call of a chain over several lines the line of
 * the first, so a word stands where it was looked up; but one that was kept in a variable stands
 * where it is called, below that. This is in C because of `return bus:on("TimeoutError")`: where a
 * function ends in the call of one in Lua, its frame is gone, and its line with it. */
static int said(lua_State *L)
{
    lua_Integer line, looked = lua_tointeger(L, lua_upvalueindex(LINE));
    const char *file = find(L, &line);
    int count = lua_gettop(L);
    if (looked > line && strcmp(lua_tostring(L, lua_upvalueindex(FILE_NAME)), file) == 0)
        line = looked;
    for (int i = SAY; i <= WORD; i++)
        lua_pushvalue(L, lua_upvalueindex(i));
    push_place(L, file, line);
    lua_rotate(L, 1, 4);
    lua_call(L, count + 3, LUA_MULTRET);
    return lua_gettop(L);
}

static int word(lua_State *L)
{
    lua_Integer line;
    const char *file = find(L, &line);
    lua_settop(L, WORD);
    lua_pushstring(L, file);
    lua_pushinteger(L, line);
    lua_pushcclosure(L, said, LINE);
    return 1;
}

/* ---- What was said before -------------------------------------------------------------------- */

/* A key is all that was said, byte by byte, so equal keys are equal values. */
typedef struct key {
    size_t size;
    char bytes[240];
} key;

/* add is 0 where the key becomes too long. */
static int add(key *k, const void *bytes, size_t size)
{
    if (size > sizeof k->bytes - k->size)
        return 0;
    memcpy(k->bytes + k->size, bytes, size);
    k->size += size;
    return 1;
}

static int add_tag(key *k, int tag)
{
    char byte = (char)tag;
    return add(k, &byte, 1);
}

/* key_add_scalar is 0 for what has no key, too. */
static int key_add_scalar(lua_State *L, key *k, int index)
{
    int type = lua_type(L, index);
    if (!add_tag(k, type))
        return 0;
    if (type == LUA_TSTRING) {
        size_t size;
        const char *text = lua_tolstring(L, index, &size);
        return size < sizeof k->bytes && add_tag(k, (int)size) && add(k, text, size);
    }
    if (lua_isinteger(L, index)) {
        lua_Integer number = lua_tointeger(L, index);
        return add(k, &number, sizeof number);
    }
    return type == LUA_TNIL || (type == LUA_TBOOLEAN && add_tag(k, lua_toboolean(L, index)));
}

/* add_table goes in the order of `next`: the same content may have several keys. */
static int add_table(lua_State *L, key *k, int index)
{
    if (lua_getmetatable(L, index) || !add_tag(k, '{'))
        return 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        if (!key_add_scalar(L, k, -2) || !key_add_scalar(L, k, -1))
            return 0;
    return add_tag(k, '}');
}

static int recall(lua_State *L)
{
    enum { KNOWN = 1, FIRST };
    key k;
    k.size = 0;
    int top = lua_gettop(L);
    luaL_checkstack(L, LUA_MINSTACK, "too many arguments");
    for (int i = FIRST; i <= top; i++)
        if (!(lua_istable(L, i) ? add_table(L, &k, i) : key_add_scalar(L, &k, i)))
            return 0;
    lua_pushlstring(L, k.bytes, k.size);
    lua_pushvalue(L, -1);
    lua_rawget(L, KNOWN);
    lua_insert(L, -2);
    return 2;
}

/* ---- The module ------------------------------------------------------------------------------ */

static int is_name(lua_State *L)
{
    size_t size = 0;
    const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &size) : NULL;
    lua_pushboolean(L, size > 0 && strlen(text) == size && mull__utf8_valid(text));
    return 1;
}

static void push_setting_row(lua_State *L, const char *field, const char *kind, const char *example)
{
    lua_createtable(L, 0, 3);
    mull__set_text(L, "field", field);
    mull__set_text(L, "kind", kind);
    mull__set_text(L, "example", example);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

void mull__settings_push(lua_State *L)
{
    lua_newtable(L);
#define ADD(NUMBER, field, kind, otherwise, example) push_setting_row(L, #field, #kind, example);
    MULL__EACH_SETTING(ADD)
#undef ADD
}

void mull__dsl_dispatch_push(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"place", place}, {"word", word}, {"is_name", is_name}, {"recall", recall}, {NULL, NULL}};
    luaL_newlib(L, functions);
    mull__settings_push(L);
    lua_setfield(L, -2, "settings");
}
