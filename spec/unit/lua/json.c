/* json.c: json.decode beside jansson: what either reads, and what it is, for random texts,
 * good ones and spoiled ones. And where the n-th request for memory is refused, once, twice or for
 * good, a text is read as ever or not at all. MULL_TEXTS says how many texts; the seed is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>
#include <lauxlib.h>
#include <lualib.h>

#include "counting_allocator.h"
#include "lua/values/json.h"
#include "sample.h"

/* ---- Random texts ---------------------------------------------------------------------------- */

typedef struct text {
    char bytes[8192];
    size_t size;
} text;

static size_t pick(sample *s, size_t count)
{
    return (size_t)(sample_random(s) % count);
}

static void add(text *t, const char *piece)
{
    size_t size = strlen(piece);
    if (size < sizeof t->bytes - t->size) {
        memcpy(t->bytes + t->size, piece, size);
        t->size += size;
    }
}

#define ADD_ONE_OF(t, s, pieces) add(t, pieces[pick(s, sizeof pieces / sizeof *pieces)])

static const char *const in_strings[] = {
    "a",        "longer than it was",
    "\\n",      "\\\"",
    "\\\\",     "\\/",
    "\\u00e9",  "\\u20AC",
    "\xc3\xbc", "\xf0\x9f\x98\x80",
    " ",        "{",
    "\x7f",     "\\ud83d\\uDE00",
};
static const char *const spoiled[] = {
    "\"",       ",",       "]",       "}",        ":",      "[",  "{",    "\\",
    "\\u12",    "\\ud83d", "\\ude00", "\\x",      "\x01",   "\n", "\xff", "\xed\xa0\x80",
    "\xc0\xaf", "\\u0000", "0",       "00",       "-",      "1.", ".5",   "1e",
    "1e+",      "1e999",   "nul",     "nullx",    "True",   "'",  "//",   "\xef\xbb\xbf",
    "+1",       "0x10",    "NaN",     "Infinity", "1e-999", "-0", "\f",   "\xe2\x82",
};
static const char *const numbers[] = {
    "0",
    "-0",
    "7",
    "-12",
    "1.5",
    "-0.25e-3",
    "1E5",
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "0e0",
    "3e+07",
    "2e-7",
    "123456789012345678",
    "0.1234567890123456789012345678901234",
};
static const char *const spaces[] = {"", "", "", " ", "\n", "\t\r\n  "};

static void add_string(text *t, sample *s)
{
    add(t, "\"");
    for (size_t count = pick(s, 6); count > 0; count--)
        ADD_ONE_OF(t, s, in_strings);
    add(t, "\"");
}

static void add_value(text *t, sample *s, int level);

static void add_items(text *t, sample *s, int level, int named)
{
    for (size_t i = 0, count = pick(s, 5); i < count; i++) {
        add(t, i ? "," : "");
        ADD_ONE_OF(t, s, spaces);
        if (named) {
            add_string(t, s);
            ADD_ONE_OF(t, s, spaces);
            add(t, ":");
        }
        add_value(t, s, level + 1);
    }
}

static void add_value(text *t, sample *s, int level)
{
    static const char *const words[] = {"true", "false", "null"};
    size_t kind = pick(s, level < 5 ? 6 : 4);
    ADD_ONE_OF(t, s, spaces);
    if (kind == 0)
        ADD_ONE_OF(t, s, words);
    else if (kind == 1)
        ADD_ONE_OF(t, s, numbers);
    else if (kind < 4)
        add_string(t, s);
    else {
        add(t, kind == 4 ? "[" : "{");
        add_items(t, s, level, kind == 5);
        add(t, kind == 4 ? "]" : "}");
    }
    ADD_ONE_OF(t, s, spaces);
}

/* spoil puts a piece somewhere, in the place of a byte or beside it, or cuts the rest off. */
static void spoil(text *t, sample *s)
{
    static text rest;
    size_t at = pick(s, t->size + 1), from = at + (at < t->size && pick(s, 2));
    rest.size = t->size - from;
    memcpy(rest.bytes, t->bytes + from, rest.size);
    t->size = at;
    if (pick(s, 8) == 0)
        return;
    ADD_ONE_OF(t, s, spoiled);
    size_t left = sizeof t->bytes - t->size;
    size_t kept = rest.size < left ? rest.size : left;
    memcpy(t->bytes + t->size, rest.bytes, kept);
    t->size += kept;
}

/* ---- Beside jansson -------------------------------------------------------------------------- */

static int is_same(lua_State *L, const json_t *value);

static int are_items_same(lua_State *L, const json_t *list)
{
    size_t count = json_array_size(list);
    int same = lua_istable(L, -1) && lua_rawlen(L, -1) == count;
    for (size_t i = 0; i < count && same; i++) {
        const json_t *item = json_array_get(list, i);
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        same = json_is_null(item) ? lua_touserdata(L, -1) == NULL && lua_islightuserdata(L, -1)
                                  : is_same(L, item);
        lua_pop(L, 1);
    }
    return same;
}

static int are_members_same(lua_State *L, json_t *map)
{
    const char *name;
    json_t *value;
    size_t count = 0;
    int same = lua_istable(L, -1);
    json_object_foreach(map, name, value)
    {
        count += !json_is_null(value);
        lua_getfield(L, -1, name);
        same = same && is_same(L, value);
        lua_pop(L, 1);
    }
    if (same)
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
            count--;
    return same && count == 0;
}

/* is_same says whether the value on top is what jansson read; null is nil there. */
static int is_same(lua_State *L, const json_t *value)
{
    size_t size;
    const char *string;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return are_members_same(L, (json_t *)(uintptr_t)value);
    case JSON_ARRAY:
        return are_items_same(L, value);
    case JSON_STRING:
        string = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &size) : NULL;
        return string && size == json_string_length(value) &&
               memcmp(string, json_string_value(value), size) == 0;
    case JSON_INTEGER:
        return lua_isinteger(L, -1) && lua_tointeger(L, -1) == json_integer_value(value);
    case JSON_REAL:
        return lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1) &&
               lua_tonumber(L, -1) == json_real_value(value);
    case JSON_NULL:
        return lua_isnil(L, -1);
    case JSON_TRUE:
    case JSON_FALSE:
        break;
    }
    return lua_isboolean(L, -1) && lua_toboolean(L, -1) == json_is_true(value);
}

static int decode(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    mull__json_push(L, bytes, size, (size_t)lua_tointeger(L, 2), lua_toboolean(L, 3));
    return 1;
}

/* read pushes what a text is, or why it is none: 0. */
static int read_text(lua_State *L, const text *t, lua_Integer most, int unique)
{
    lua_pushcfunction(L, decode);
    lua_pushlstring(L, t->bytes, t->size);
    lua_pushinteger(L, most);
    lua_pushboolean(L, unique);
    return lua_pcall(L, 3, 1, 0) == LUA_OK;
}

static void compare(lua_State *L, const text *t, int unique)
{
    json_error_t why;
    size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL | (unique ? JSON_REJECT_DUPLICATES : 0);
    json_t *reference = json_loadb(t->bytes, t->size, flags, &why);
    int well = read_text(L, t, INT64_MAX, unique);
    int is_wide = !reference && json_error_code(&why) == json_error_numeric_overflow;
    if (reference ? !well || !is_same(L, reference) : well && !is_wide)
        fail_msg("%s by us, %s by jansson (%s): %.*s", well ? "read" : luaL_tolstring(L, -1, NULL),
                 reference ? "read" : "refused", reference ? "" : why.text, (int)t->size, t->bytes);
    json_decref(reference);
    lua_settop(L, 0);
}

static void any_text_is_read_as_jansson_does(void **state)
{
    (void)state;
    const char *given = getenv("MULL_TEXTS");
    long count = given ? atol(given) : 20000 / SLOWNESS;
    sample s = sample_of(2);
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    static text t;
    for (long i = 0; i < count; i++) {
        t.size = 0;
        add_value(&t, &s, 0);
        compare(L, &t, (int)pick(&s, 2));
        for (size_t times = pick(&s, 3); times > 0; times--)
            spoil(&t, &s);
        compare(L, &t, (int)pick(&s, 2));
    }
    lua_close(L);
}

static void of_too_many_values_none_is_read(void **state)
{
    (void)state;
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    text t = {"[1,{\"a\":[2,null]}]", 18};
    assert_int_equal(read_text(L, &t, 6, 1), 1);
    assert_int_equal(read_text(L, &t, 5, 1), 0);
    lua_close(L);
}

/* ---- Without memory -------------------------------------------------------------------------- */

static counting_allocator luas;
static long janssons; /* requests */

static void *refuse_jansson(size_t bytes)
{
    (void)bytes;
    janssons++;
    return NULL;
}

static void *resize(void *data, void *pointer, size_t old, size_t wanted)
{
    (void)data;
    if (wanted == 0) {
        free(pointer);
        return NULL;
    }
    if ((!pointer || wanted > old) && counting_allocator_refuses(&luas))
        return NULL;
    return realloc(pointer, wanted);
}

/* read_short decodes while requests are refused, and gives whether that went well. What it read is
 * what it always is, and what it raised the lack of memory. */
static int read_short(lua_State *L, const char *json, long at, long length, const json_t *wanted)
{
    lua_settop(L, 0);
    lua_pushcfunction(L, decode);
    lua_pushstring(L, json);
    lua_pushinteger(L, INT64_MAX);
    lua_pushboolean(L, 0);
    lua_gc(L, LUA_GCCOLLECT);
    luas = (counting_allocator){.fail_at = at, .fail_for = length};
    int status = lua_pcall(L, 3, 1, 0);
    luas.fail_at = 0;
    if (status != LUA_OK) {
        assert_string_equal(luaL_tolstring(L, -1, NULL), "not enough memory");
        return 0;
    }
    assert_true(is_same(L, wanted));
    return 1;
}

static void where_memory_ends_it_is_read_whole_or_not_at_all(void **state)
{
    (void)state;
    static const long lengths[] = {1, 2, FOR_GOOD};
    static char json[16384];
    lua_State *L = lua_newstate(resize, NULL);
    assert_non_null(L);
    lua_gc(L, LUA_GCSTOP);
    int end =
        sprintf(json, "{\"text\":\"a text of more than sixteen bytes\",\"escaped\":\"\\u20ac");
    for (int i = 0; i < 200; i++)
        end += sprintf(json + end, "\\n a text of some length %d \\ud83d\\ude00", i);
    end +=
        sprintf(json + end, "\",\"numbers\":[123456789012345678,0.12345678901234567890123456789");
    for (int i = 0; i < 100; i++)
        end += sprintf(json + end, ",{\"a name of more than sixteen bytes %d\":[[null],%d]}", i, i);
    sprintf(json + end, "]}");
    json_t *wanted = json_loads(json, 0, NULL);
    assert_non_null(wanted);
    assert_int_equal(read_short(L, json, 0, 1, wanted), 1);
    long asked = luas.asked, refused = 0;
    json_set_alloc_funcs(refuse_jansson, free);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (long at = 1; at <= asked; at++)
            refused += !read_short(L, json, at, lengths[i], wanted);
    json_set_alloc_funcs(malloc, free);
    print_message("%ld requests, %ld times it was refused\n", asked, refused);
    assert_true(asked > 100 && refused > asked);
    assert_int_equal(janssons, 0);
    json_decref(wanted);
    lua_close(L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_text_is_read_as_jansson_does),
        cmocka_unit_test(of_too_many_values_none_is_read),
        cmocka_unit_test(where_memory_ends_it_is_read_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
