/* json_encode.c: see json_encode.h. The text grows in memory of its own rather than a luaL_Buffer,
 * which must be on top of the stack where the tables are walked. */
#include "json_encode.h"

#include "base/utf8.h"
#include "type.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text_type[] = "mulligan.json.text";
static const char list_type[] = "mulligan.json.list";

/* ---- The text -------------------------------------------------------------------------------- */

static int collect(lua_State *L)
{
    mull__json_text *out = lua_touserdata(L, 1);
    free(out->bytes);
    *out = (mull__json_text){0};
    return 0;
}

mull__json_text *mull__json_text_new(lua_State *L)
{
    mull__json_text *out = lua_newuserdatauv(L, sizeof *out, 0);
    *out = (mull__json_text){0};
    if (!mull__type_get(L, text_type)) {
        lua_pushcfunction(L, collect);
        lua_setfield(L, -2, "__gc");
        mull__type_keep(L, text_type);
    }
    lua_setmetatable(L, -2);
    return out;
}

void mull__json_add(lua_State *L, mull__json_text *out, const char *bytes, size_t size)
{
    if (out->room - out->size < size) {
        size_t room = (out->size + size) * 2 + 64;
        char *grown = size < SIZE_MAX / 4 ? realloc(out->bytes, room) : NULL;
        if (!grown) {
            luaL_error(L, "not enough memory");
            return;
        }
        out->bytes = grown;
        out->room = room;
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void add_text(lua_State *L, mull__json_text *out, const char *text)
{
    mull__json_add(L, out, text, strlen(text));
}

void mull__json_text_push(lua_State *L, mull__json_text *out)
{
    lua_pushlstring(L, out->bytes, out->size);
    free(out->bytes);
    *out = (mull__json_text){0};
}

/* ---- Values ---------------------------------------------------------------------------------- */

static void add_escaped(lua_State *L, mull__json_text *out, unsigned char c)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = c ? strchr(named, c) : NULL;
    char escape[8];
    if (found)
        snprintf(escape, sizeof escape, "\\%c", letters[found - named]);
    else
        snprintf(escape, sizeof escape, "\\u%04x", c);
    add_text(L, out, escape);
}

static void add_string(lua_State *L, mull__json_text *out, const char *text, size_t size)
{
    mull__json_add(L, out, "\"", 1);
    size_t from = 0;
    for (size_t i = 0; i < size;) {
        size_t step = mull__utf8_step(text + i, size - i);
        unsigned char c = (unsigned char)text[i];
        if (step == 0 && c != 0)
            luaL_error(L, "a text that isn't UTF-8 can't be JSON");
        if (c < 0x20 || c == '"' || c == '\\') {
            mull__json_add(L, out, text + from, i - from);
            add_escaped(L, out, c);
            from = i + 1;
            step = 1;
        }
        i += step;
    }
    mull__json_add(L, out, text + from, size - from);
    mull__json_add(L, out, "\"", 1);
}

/* point writes the point that the embedder's locale may have made a comma, or more. */
static void point(char *text)
{
    size_t before = strspn(text, "+-0123456789"), mark = strcspn(text + before, "0123456789e");
    if (mark == 0)
        return;
    text[before] = '.';
    memmove(text + before + 1, text + before + mark, strlen(text + before + mark) + 1);
}

/* add_number writes a float with as few digits as read back to the same, and so that it stays one:
 * 2.0 isn't 2. */
static void add_number(lua_State *L, mull__json_text *out, int index)
{
    char text[40];
    if (lua_isinteger(L, index)) {
        snprintf(text, sizeof text, "%" PRId64, (int64_t)lua_tointeger(L, index));
        add_text(L, out, text);
        return;
    }
    double number = lua_tonumber(L, index);
    if (!isfinite(number))
        luaL_error(L, "a number that isn't finite can't be JSON");
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text - 2, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    point(text);
    if (!strpbrk(text, ".e"))
        strcat(text, ".0");
    add_text(L, out, text);
}

static void add_lua_string(lua_State *L, mull__json_text *out, int index)
{
    size_t size;
    const char *text = lua_tolstring(L, index, &size);
    add_string(L, out, text, size);
}

static void add_value(lua_State *L, mull__json_text *out, int index, int level);

void mull__json_add_value(lua_State *L, mull__json_text *out, int index)
{
    add_value(L, out, index, 0);
}

/* list_size is n for a table with the keys 1 ... n, -1 where it is an object. */
static lua_Integer list_size(lua_State *L, int index)
{
    lua_Integer keys = 0, size = (lua_Integer)lua_rawlen(L, index);
    int whole = 1;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        keys++;
        whole = whole && lua_isinteger(L, -2);
    }
    if (keys > 0)
        return whole && keys == size ? size : -1;
    if (!lua_getmetatable(L, index))
        return -1;
    luaL_getmetatable(L, list_type);
    int marked = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return marked ? 0 : -1;
}

static void add_list(lua_State *L, mull__json_text *out, int index, lua_Integer size, int level)
{
    mull__json_add(L, out, "[", 1);
    for (lua_Integer i = 1; i <= size; i++) {
        if (i > 1)
            mull__json_add(L, out, ",", 1);
        lua_rawgeti(L, index, i);
        add_value(L, out, lua_gettop(L), level);
        lua_pop(L, 1);
    }
    mull__json_add(L, out, "]", 1);
}

static int by_bytes(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* push_keys pushes a userdata of the table's keys in order; the table keeps the strings alive. */
static const char **push_keys(lua_State *L, int index, size_t *count)
{
    *count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "the keys of a table must be 1 ... n or all strings to be JSON");
        if (strlen(lua_tostring(L, -2)) != lua_rawlen(L, -2))
            luaL_error(L, "a key with a NUL can't be JSON");
        ++*count;
    }
    const char **keys = lua_newuserdatauv(L, *count * sizeof *keys, 0);
    size_t i = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        keys[i++] = lua_tostring(L, -2);
    qsort(keys, *count, sizeof *keys, by_bytes);
    return keys;
}

static void add_map(lua_State *L, mull__json_text *out, int index, int level)
{
    size_t count;
    const char **keys = push_keys(L, index, &count);
    mull__json_add(L, out, "{", 1);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            mull__json_add(L, out, ",", 1);
        lua_pushstring(L, keys[i]);
        add_lua_string(L, out, lua_gettop(L));
        mull__json_add(L, out, ":", 1);
        lua_rawget(L, index);
        add_value(L, out, lua_gettop(L), level);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    mull__json_add(L, out, "}", 1);
}

static void add_table(lua_State *L, mull__json_text *out, int index, int level)
{
    if (level > MULL__JSON_LEVELS)
        luaL_error(L, "a table nested deeper than %d levels, or in itself, can't be JSON",
                   (int)MULL__JSON_LEVELS);
    luaL_checkstack(L, 10, NULL);
    lua_Integer size = list_size(L, index);
    if (size >= 0)
        add_list(L, out, index, size, level);
    else
        add_map(L, out, index, level);
}

static void add_value(lua_State *L, mull__json_text *out, int index, int level)
{
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        add_text(L, out, "null");
        return;
    case LUA_TBOOLEAN:
        add_text(L, out, lua_toboolean(L, index) ? "true" : "false");
        return;
    case LUA_TNUMBER:
        add_number(L, out, index);
        return;
    case LUA_TSTRING:
        add_lua_string(L, out, index);
        return;
    case LUA_TTABLE:
        add_table(L, out, index, level + 1);
        return;
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(L, index)) {
            add_text(L, out, "null");
            return;
        }
        break;
    default:
        break;
    }
    luaL_error(L, "a %s can't be JSON", luaL_typename(L, index));
}

int mull__json_encode(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    mull__json_text *out = mull__json_text_new(L);
    mull__json_add_value(L, out, 1);
    mull__json_text_push(L, out);
    return 1;
}

void mull__json_mark_list(lua_State *L)
{
    luaL_newmetatable(L, list_type);
    lua_setmetatable(L, -2);
}
