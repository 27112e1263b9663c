/* recall.c: see recall.h. */
#include "recall.h"

#include <lauxlib.h>
#include <string.h>

/* A key is all that was said, byte by byte, so equal keys are equal values. It is short where it
 * can be: Lua knows short strings again without a copy. */
typedef struct key {
    size_t size;
    char bytes[240];
} key;

enum { SMALL = 127 };

/* add is 0 where the key becomes too long. */
static int add(key *k, char tag, const void *bytes, size_t size)
{
    if (size >= sizeof k->bytes - k->size)
        return 0;
    k->bytes[k->size++] = tag;
    memcpy(k->bytes + k->size, bytes, size);
    k->size += size;
    return 1;
}

static int add_number(lua_State *L, key *k, int index)
{
    lua_Integer integer = lua_tointeger(L, index);
    lua_Number number = lua_tonumber(L, index);
    char small = (char)integer;
    if (!lua_isinteger(L, index))
        return add(k, 'n', &number, sizeof number);
    return integer >= 0 && integer <= SMALL ? add(k, 'c', &small, 1)
                                            : add(k, 'i', &integer, sizeof integer);
}

/* add_plain is 0 for what has no key, too. */
static int add_plain(lua_State *L, key *k, int index)
{
    size_t size;
    const char *text;
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
        text = lua_tolstring(L, index, &size);
        return size < sizeof k->bytes && add(k, 's', &(char){(char)size}, 1) &&
               add(k, '=', text, size);
    case LUA_TNUMBER:
        return add_number(L, k, index);
    case LUA_TBOOLEAN:
        return add(k, lua_toboolean(L, index) ? 't' : 'f', "", 0);
    case LUA_TNIL:
        return add(k, '0', "", 0);
    default:
        return 0;
    }
}

/* add_table adds what a table without a metatable has, in the order in which `next` gives it: the
 * same content may have several keys. */
static int add_table(lua_State *L, key *k, int index)
{
    if (lua_getmetatable(L, index) || !add(k, '{', "", 0))
        return 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        if (!add_plain(L, k, -2) || !add_plain(L, k, -1))
            return 0;
    return add(k, '}', "", 0);
}

int mull__recall(lua_State *L)
{
    enum { KNOWN = 1, FIRST };
    key k;
    k.size = 0;
    int top = lua_gettop(L);
    luaL_checkstack(L, LUA_MINSTACK, "too many arguments");
    for (int i = FIRST; i <= top; i++)
        if (!(lua_type(L, i) == LUA_TTABLE ? add_table(L, &k, i) : add_plain(L, &k, i)))
            return 0;
    lua_pushlstring(L, k.bytes, k.size);
    lua_pushvalue(L, -1);
    lua_rawget(L, KNOWN);
    lua_insert(L, -2);
    return 2;
}
