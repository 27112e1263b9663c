/* json.c: reads JSON; see json.h. All memory is the Lua state's, so that a lack of it is raised as
 * everywhere. */
#include "json.h"

#include "base/utf8.h"
#include "raise.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deeper values would overrun the C stack. */
enum { LEVELS = 128 };

/* reader is at a character, or at the end, where a NUL stands. */
typedef struct reader {
    lua_State *L;
    const char *text, *at, *end;
    size_t values; /* how many there may still be */
    int unique;
} reader;

static void push_value(reader *r, int level);

/* ---- What is wrong --------------------------------------------------------------------------- */

/* fail raises what is wrong at a character, with its line and its column in characters. */
static void fail(const reader *r, const char *at, const char *what)
{
    int line = 1, column = 1;
    for (const char *c = r->text; c < at; c++) {
        int is_begun = ((unsigned char)*c & 0xC0) == 0x80;
        column = *c == '\n' ? 1 : column + !is_begun;
        line += *c == '\n';
    }
    mull__raise(r->L, "MessageDeserializationError", "not JSON: line %d, column %d: %s", line,
                column, what);
}

/* fail_with shows the text from `at` to `end` as well, as far as there is room. */
static void fail_with(const reader *r, const char *at, const char *end, const char *what)
{
    char shown[32];
    size_t size = (size_t)(end - at);
    if (size >= sizeof shown)
        size = sizeof shown - 1;
    memcpy(shown, at, size);
    shown[size] = '\0';
    for (size_t i = 0; i < size; i++)
        shown[i] = (unsigned char)shown[i] < ' ' ? '?' : shown[i];
    mull__utf8_repair(shown, size);
    fail(r, at, lua_pushfstring(r->L, "%s%s", what, shown));
}

/* expected raises that something else stands where the reader is. */
static void expected(const reader *r, const char *what)
{
    const char *end = r->at;
    if (end == r->end)
        fail(r, end, lua_pushfstring(r->L, "expected %s, not the end", what));
    while (end < r->end && !strchr(" \t\r\n,:[]{}", *end))
        end++;
    fail_with(r, r->at, end == r->at ? end + 1 : end,
              lua_pushfstring(r->L, "expected %s, not ", what));
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static const char *skip_digits(const reader *r, const char *at)
{
    const char *from = at;
    while (*at >= '0' && *at <= '9')
        at++;
    if (at == from)
        fail_with(r, r->at, at < r->end ? at + 1 : at, "a number lacks a digit: ");
    return at;
}

/* push_number: Lua reads it, whatever the locale is; what doesn't fit 64 bits becomes a float. */
static void push_number(reader *r)
{
    const char *end = r->at + (*r->at == '-');
    end = *end == '0' ? end + 1 : skip_digits(r, end);
    if (*end == '.')
        end = skip_digits(r, end + 1);
    if (*end == 'e' || *end == 'E') {
        end += end[1] == '+' || end[1] == '-' ? 2 : 1;
        end = skip_digits(r, end);
    }
    lua_pushlstring(r->L, r->at, (size_t)(end - r->at));
    if (!lua_stringtonumber(r->L, lua_tostring(r->L, -1)) || isinf(lua_tonumber(r->L, -1)))
        fail_with(r, r->at, end, "a number is too large: ");
    lua_remove(r->L, -2);
    r->at = end;
}

/* ---- Strings --------------------------------------------------------------------------------- */

/* end_of_string gives where its closing quote is. */
static const char *end_of_string(const reader *r, int *has_escapes)
{
    const char *at = r->at + 1;
    while (at < r->end && *at != '"') {
        size_t size = mull__utf8_char_size(at, (size_t)(r->end - at));
        if (size == 0)
            fail(r, at, "a byte that isn't UTF-8");
        if ((unsigned char)*at < ' ')
            fail(r, at, "a control character in a string must be escaped");
        if (*at == '\\') {
            *has_escapes = 1;
            size += at[1] == '"' || at[1] == '\\';
        }
        at += size;
    }
    if (at == r->end)
        fail(r, r->at, "a string has no closing quote");
    return at;
}

/* read_hex reads the four digits of an escape at `at`, which may end before. */
static unsigned long read_hex(const reader *r, const char *at)
{
    char digits[5] = "";
    strncat(digits, at + 2, 4);
    if (strspn(digits, "0123456789abcdefABCDEF") < 4)
        fail(r, at, "\\u takes four hexadecimal digits");
    return strtoul(digits, NULL, 16);
}

/* read_code gives the character of an escape, and moves behind it; two that are a pair are one. */
static unsigned long read_code(const reader *r, const char **at)
{
    const char *from = *at;
    unsigned long code = read_hex(r, from);
    *at += 6;
    if (code < 0xD800 || code > 0xDFFF)
        return code;
    int is_pair = code < 0xDC00 && from[6] == '\\' && from[7] == 'u';
    unsigned long second = is_pair ? read_hex(r, *at) : 0;
    if (second < 0xDC00 || second > 0xDFFF)
        fail(r, from, "half of a surrogate pair");
    *at += 6;
    return 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
}

static void push_unescaped(const reader *r, const char *at, const char *end)
{
    static const char letters[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
    luaL_Buffer out;
    luaL_buffinit(r->L, &out);
    while (at < end) {
        const char *letter = *at == '\\' ? strchr(letters, at[1]) : NULL;
        if (*at != '\\') {
            luaL_addchar(&out, *at++);
        } else if (at[1] == 'u') {
            lua_pushfstring(r->L, "%U", read_code(r, &at));
            luaL_addvalue(&out);
        } else if (letter) {
            luaL_addchar(&out, characters[letter - letters]);
            at += 2;
        } else {
            fail(r, at, "no such escape");
        }
    }
    luaL_pushresult(&out);
}

static void push_string(reader *r)
{
    int has_escapes = 0;
    const char *from = r->at + 1, *end = end_of_string(r, &has_escapes);
    if (has_escapes)
        push_unescaped(r, from, end);
    else
        lua_pushlstring(r->L, from, (size_t)(end - from));
    r->at = end + 1;
}

/* ---- Lists and maps -------------------------------------------------------------------------- */

/* next gives the character after spaces; at the end NUL. */
static char next(reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')
        r->at++;
    return *r->at;
}

/* goes_on passes a comma, or the end of a list or map: 0. */
static int goes_on(reader *r, char end, const char *what)
{
    char c = next(r);
    if (c != ',' && c != end)
        expected(r, what);
    r->at++;
    return c == ',';
}

/* begins passes the beginning of a list or map; 0: and its end. */
static int begins(reader *r, char end)
{
    r->at++;
    if (next(r) != end)
        return 1;
    r->at++;
    return 0;
}

void mull__json_mark_list(lua_State *L)
{
    luaL_newmetatable(L, "mulligan.json.list");
    lua_setmetatable(L, -2);
}

static void push_list(reader *r, int level)
{
    lua_Integer count = 0;
    lua_newtable(r->L);
    if (!begins(r, ']')) {
        mull__json_mark_list(r->L);
        return;
    }
    do {
        push_value(r, level);
        lua_rawseti(r->L, -2, ++count);
    } while (goes_on(r, ']', "\",\" or \"]\""));
}

/* push_name pushes a name of the map on top. */
static void push_name(reader *r)
{
    if (next(r) != '"')
        expected(r, "a name in quotes");
    const char *at = r->at;
    push_string(r);
    if (strlen(lua_tostring(r->L, -1)) != lua_rawlen(r->L, -1))
        fail(r, at, "a name must not hold \\u0000");
    if (r->unique) {
        lua_pushvalue(r->L, -1);
        if (lua_rawget(r->L, -3) != LUA_TNIL)
            fail_with(r, at, r->at, "a name is there twice: ");
        lua_pop(r->L, 1);
    }
    if (next(r) != ':')
        expected(r, "\":\"");
    r->at++;
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

static void push_map(reader *r, int level)
{
    int has_nulls = 0;
    lua_newtable(r->L);
    if (!begins(r, '}'))
        return;
    do {
        push_name(r);
        push_value(r, level);
        has_nulls |= lua_islightuserdata(r->L, -1);
        lua_rawset(r->L, -3);
    } while (goes_on(r, '}', "\",\" or \"}\""));
    if (has_nulls)
        drop_nulls(r->L);
}

/* ---- Any value ------------------------------------------------------------------------------- */

static int is_word(reader *r, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        return 0;
    r->at += size;
    return 1;
}

static void push_word(reader *r)
{
    if (is_word(r, "true"))
        lua_pushboolean(r->L, 1);
    else if (is_word(r, "false"))
        lua_pushboolean(r->L, 0);
    else if (is_word(r, "null"))
        lua_pushlightuserdata(r->L, NULL);
    else
        expected(r, "a value");
}

static void count_value(reader *r, int level)
{
    if (level > LEVELS)
        mull__raise(r->L, "MessageDeserializationError", "JSON nested deeper than %d levels",
                    LEVELS);
    if (r->values-- == 0)
        mull__raise(r->L, "MessageDeserializationError", "JSON of too many values");
    luaL_checkstack(r->L, 8, NULL);
}

/* push_value pushes the value that begins next, null as a light userdata. */
static void push_value(reader *r, int level)
{
    count_value(r, level);
    char c = next(r);
    if (c == '{')
        push_map(r, level + 1);
    else if (c == '[')
        push_list(r, level + 1);
    else if (c == '"')
        push_string(r);
    else if (c == '-' || (c >= '0' && c <= '9'))
        push_number(r);
    else
        push_word(r);
}

void mull__json_push(lua_State *L, const char *text, size_t size, size_t most, int unique)
{
    reader r = {L, text, text, text + size, most, unique};
    push_value(&r, 0);
    next(&r);
    if (r.at < r.end)
        expected(&r, "the end");
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
