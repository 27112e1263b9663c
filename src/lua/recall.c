/* recall.c: see recall.h. */
#include "recall.h"

#include <string.h>

/* A key is all that was said, byte by byte, so equal keys are equal values. */
typedef struct key {
    size_t size;
    int fits;
    char bytes[240];
} key;

/* A key is short where it can be: Lua knows short strings again without a copy. */
enum { SHORT = 255, SMALL = 127 };

static void add_bytes(key *k, const void *bytes, size_t size)
{
    if (!k->fits || size > sizeof k->bytes - k->size) {
        k->fits = 0;
        return;
    }
    memcpy(k->bytes + k->size, bytes, size);
    k->size += size;
}

static void add_byte(key *k, char byte)
{
    if (k->size < sizeof k->bytes)
        k->bytes[k->size++] = byte;
    else
        k->fits = 0;
}

static void add(key *k, char tag, const void *bytes, size_t size)
{
    add_byte(k, tag);
    add_bytes(k, bytes, size);
}

static void add_string(lua_State *L, key *k, int index)
{
    size_t size;
    const char *text = lua_tolstring(L, index, &size);
    k->fits = k->fits && size <= SHORT;
    add_byte(k, 's');
    add_byte(k, (char)size);
    add_bytes(k, text, size);
}

static void add_number(lua_State *L, key *k, int index)
{
    lua_Integer integer = lua_tointeger(L, index);
    lua_Number number = lua_tonumber(L, index);
    if (!lua_isinteger(L, index)) {
        add(k, 'n', &number, sizeof number);
    } else if (integer >= 0 && integer <= SMALL) {
        add_byte(k, 'c');
        add_byte(k, (char)integer);
    } else {
        add(k, 'i', &integer, sizeof integer);
    }
}

static void add_plain(lua_State *L, key *k, int index)
{
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
        add_string(L, k, index);
        break;
    case LUA_TNUMBER:
        add_number(L, k, index);
        break;
    case LUA_TBOOLEAN:
        add_byte(k, lua_toboolean(L, index) ? 't' : 'f');
        break;
    case LUA_TNIL:
        add_byte(k, '0');
        break;
    default:
        k->fits = 0;
        break;
    }
}

/* add_table adds what a table without a metatable has, in the order in which `next` gives it: the
 * same content may have several keys. */
static void add_table(lua_State *L, key *k, int index)
{
    if (lua_getmetatable(L, index)) {
        lua_pop(L, 1);
        k->fits = 0;
        return;
    }
    add_byte(k, '{');
    lua_pushnil(L);
    while (lua_next(L, index)) {
        add_plain(L, k, -2);
        add_plain(L, k, -1);
        lua_pop(L, k->fits ? 1 : 2);
        if (!k->fits)
            return;
    }
    add_byte(k, '}');
}

int mull__recall_key(lua_State *L, int first)
{
    key k;
    k.size = 0;
    k.fits = 1;
    int top = lua_gettop(L);
    for (int i = first; i <= top && k.fits; i++)
        if (lua_type(L, i) == LUA_TTABLE)
            add_table(L, &k, i);
        else
            add_plain(L, &k, i);
    if (k.fits)
        lua_pushlstring(L, k.bytes, k.size);
    return k.fits;
}

int mull__recall(lua_State *L)
{
    if (!mull__recall_key(L, 2))
        return 0;
    lua_pushvalue(L, -1);
    lua_rawget(L, 1);
    lua_insert(L, -2);
    return 2;
}
