/* internal_short.c: functions that are found to be short, held against what they do.
 *
 *   MULL_SEED, MULL_SHORT   the seed, which is printed, and how many random functions */
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <time.h>

#include "base/rand.h"
#include "fixtures.h"
#include "lua/short.h"

enum { FUNCTIONS = 10000, RUNS = 4, TOO_MANY = 20 * MULL__SHORT };

static mull__rand chance;

static size_t below(size_t count)
{
    return (size_t)(mull__rand_next(&chance) % count);
}

/* ---- Running --------------------------------------------------------------------------------- */

static int instructions, calls; /* of the run at hand; calls of functions that aren't C's */

static void on_hook(lua_State *L, lua_Debug *at)
{
    lua_getinfo(L, "S", at);
    if (at->event == LUA_HOOKCALL || at->event == LUA_HOOKTAILCALL)
        calls += *at->what != 'C';
    else if (++instructions > TOO_MANY)
        luaL_error(L, "it doesn't end");
}

/* any is the __index of what functions are given: one value or another. */
static int any(lua_State *L)
{
    size_t which = below(6);
    lua_settop(L, 1);
    if (which == 0)
        lua_pushnil(L);
    else if (which == 1)
        lua_pushstring(L, below(2) ? "a" : "12");
    else if (which == 2)
        lua_pushboolean(L, (int)below(2));
    else if (which < 5)
        lua_pushinteger(L, (lua_Integer)below(5));
    return 1;
}

static void push_given(lua_State *L)
{
    lua_newtable(L);
    lua_newtable(L);
    lua_pushcfunction(L, any);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

/* run the function on top, which stays. */
static void run(lua_State *L)
{
    lua_pushvalue(L, -1);
    push_given(L);
    push_given(L);
    instructions = calls = 0;
    lua_sethook(L, on_hook, LUA_MASKCOUNT | LUA_MASKCALL, 1);
    lua_pcall(L, 2, 0, 0);
    lua_sethook(L, NULL, 0, 0);
    lua_settop(L, 1);
}

/* push_function leaves nothing else on the stack. */
static void push_function(lua_State *L, const char *body)
{
    lua_settop(L, 0);
    lua_pushfstring(L, "local up = ...; return function(err, ctx) %s end", body);
    if (luaL_loadstring(L, lua_tostring(L, 1)) != LUA_OK || lua_pcall(L, 0, 1, 0) != LUA_OK)
        fail_msg("%s: %s", lua_tostring(L, 1), lua_tostring(L, -1));
    lua_replace(L, 1);
    lua_settop(L, 1);
}

/* ---- Known ones ------------------------------------------------------------------------------ */

static void known_ones(void **state)
{
    (void)state;
    static const char *const brief[] = {
        "",
        "return err.status == 429 and err.region == 'north'",
        "return err.status >= 500 and err.status < 600",
        "return err.status // 100 == 5 or -err.x ~= ~err.y",
        "local m = ctx.message return m.headers.tenant == err.tenant",
        "return err.list[1] == 1 and #err.list > 2 and err[ctx.consumer]",
        "if err.a then return 1.5 elseif err.b then return nil end",
        "do goto out end ::out:: return not err",
    };
    static const char *const other[] = {
        "while err.a do end",
        "repeat local a = 1 until err.a",
        "for i = 1, 2 do end",
        "for k in err do end",
        "::again:: if err.a then goto again end",
        "return err:is('T')",
        "return up",
        "up = 1",
        "return name",
        "name = 1",
        "return {}",
        "err.a = 1",
        "return err.a .. 'x'",
        "return function() end",
        "local a <close> = nil",
    };
    lua_State *L = luaL_newstate();
    for (size_t i = 0; i < COUNT(brief); i++) {
        push_function(L, brief[i]);
        if (!mull__is_short(L))
            fail_msg("not short: %s", brief[i]);
    }
    for (size_t i = 0; i < COUNT(other); i++) {
        push_function(L, other[i]);
        if (mull__is_short(L))
            fail_msg("short: %s", other[i]);
    }
    lua_settop(L, 0);
    luaL_loadstring(L, "return 1"); /* its arguments have no names */
    assert_false(mull__is_short(L));
    lua_pushcfunction(L, any);
    assert_false(mull__is_short(L));
    lua_close(L);
}

/* A function grows by one instruction until it is too long. */
static void as_long_as_may_be(void **state)
{
    (void)state;
    lua_State *L = luaL_newstate();
    char body[16 * MULL__SHORT] = "";
    size_t size = 0;
    int longest = 0;
    for (int left = MULL__SHORT + 1; left > 0; left--) {
        size += (size_t)snprintf(body + size, sizeof body - size, "ctx = err.a ");
        push_function(L, body);
        if (!mull__is_short(L))
            break;
        run(L);
        longest = instructions;
    }
    assert_int_equal(longest, MULL__SHORT);
    lua_close(L);
}

static void check_reads(lua_State *L, const char *body, const char *wanted)
{
    push_function(L, body);
    char found[256] = "";
    int count = mull__push_reads(L);
    assert_int_equal(lua_gettop(L), 1 + count);
    for (int i = 1; i <= count; i++) {
        strcat(found, lua_tostring(L, 1 + i));
        strcat(found, " ");
    }
    assert_string_equal(found, wanted);
}

static void what_they_read(void **state)
{
    (void)state;
    lua_State *L = luaL_newstate();
    check_reads(L, "", "");
    check_reads(L, "return err.a == 429 and err.bc == 2.5e7 and err.a ~= 'd'", "a bc ");
    check_reads(L, "return ctx.a == err.b and err[1] and err[ctx.x] and err.b.c", "b ");
    check_reads(L, "return err['a\\0b'] or err[''] or err.c", " c ");
    check_reads(L, "return err.a or err.b or err.c or err.d or err.e", "a b c d ");
    char body[8192] = "return err.a == 'long ";
    memset(body + strlen(body), 'x', 4096);
    strcat(body, "' or err.b");
    check_reads(L, body, "a ");
    lua_close(L);
}

/* ---- Random ones ----------------------------------------------------------------------------- */

typedef struct words {
    char bytes[16384];
    size_t size;
    int is_long; /* has something that no short function has */
} words;

static void add(words *w, const char *text)
{
    size_t size = strlen(text);
    if (size < sizeof w->bytes - w->size)
        memcpy(w->bytes + w->size, text, size + 1);
    w->size += size;
}

static void add_value(words *w, int depth);

/* add_pair adds two values with something between, before and behind. */
static void add_pair(words *w, const char *before, const char *between, const char *behind,
                     int depth)
{
    add(w, before);
    add_value(w, depth - 1);
    add(w, between);
    add_value(w, depth - 1);
    add(w, behind);
}

static void add_value(words *w, int depth)
{
    static const char *const leaves[] = {
        "err.a",       "ctx.b",
        "err.message", "err[1]",
        "err[300]",    "(err)",
        "1",           "-3",
        "'a'",         "'a long text that is not one of the short ones'",
        "2.5",         "70000",
        "nil",         "true",
        "false"};
    static const char *const between[] = {
        " + ",  " - ",  " * ",  " / ",  " // ", " % ",  " ^ ", " & ",  " | ",   " ~ ",
        " << ", " >> ", " == ", " ~= ", " < ",  " <= ", " > ", " >= ", " and ", " or "};
    static const char *const before[] = {"(not ", "(- ", "(#", "(~"};
    static const char *const lengthy[] = {"up",
                                          "name",
                                          "err:is('T')",
                                          "up(1)",
                                          "{}",
                                          "(err.a .. ctx.b)",
                                          "(function() return err end)",
                                          "err.is()"};
    size_t which = below(64);
    if (which == 0) {
        add(w, lengthy[below(COUNT(lengthy))]);
        w->is_long = 1;
    } else if (depth == 0 || which < 12) {
        add(w, leaves[below(COUNT(leaves))]);
    } else if (which < 20) {
        add(w, before[below(COUNT(before))]);
        add_value(w, depth - 1);
        add(w, ")");
    } else if (which < 26) {
        add_pair(w, "(", ")[", "]", depth);
    } else {
        add_pair(w, "(", between[below(COUNT(between))], ")", depth);
    }
}

static void add_block(words *w, int depth);

/* add_around adds a block, after a value. */
static void add_around(words *w, const char *before, const char *between, int depth)
{
    add(w, before);
    add_value(w, 1);
    add(w, between);
    add_block(w, depth - 1);
}

static void add_loop(words *w, int depth)
{
    w->is_long = 1;
    switch (below(4)) {
    case 0:
        add_around(w, "while err.a == ", " do ", depth);
        break;
    case 1:
        add_around(w, "for i = 1, ", " do ", depth);
        break;
    case 2:
        add_around(w, "for k in ", " do ", depth);
        break;
    default:
        add_around(w, "do ::again:: if ctx.a == ", " then goto again end end do ", depth);
        break;
    }
    add(w, "end ");
}

static void add_statement(words *w, int depth)
{
    size_t which = below(24);
    if (which == 0) {
        add_loop(w, depth);
    } else if (which < 10) {
        add_around(w, "if ", " then ", depth);
        add_around(w, "elseif ", " then ", depth);
        add(w, "end ");
    } else if (which < 14) {
        add_pair(w, "if ", " then goto out end ctx = ", " ::out:: ", 2);
    } else {
        add(w, which < 19 ? "local a = " : "ctx = ");
        add_value(w, 3);
        add(w, " ");
    }
}

static void add_block(words *w, int depth)
{
    for (size_t left = depth > 0 ? below(4) : 0; left > 0; left--) {
        add(w, "do ");
        add_statement(w, depth);
        add(w, "end ");
    }
}

static void random_body(words *w)
{
    w->size = 0;
    w->is_long = 0;
    add_block(w, 3);
    add(w, "return ");
    add_value(w, 3);
}

static size_t number_from(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* check one function; gives whether it is short. What is in no way long may have too much. */
static int check(lua_State *L, const words *w)
{
    push_function(L, w->bytes);
    int is_short = mull__is_short(L);
    if (is_short && w->is_long)
        fail_msg("short: %s", w->bytes);
    if (!is_short && !w->is_long && w->size < MULL__SHORT)
        fail_msg("not short: %s", w->bytes);
    for (int i = 0; i < RUNS && is_short; i++) {
        run(L);
        if (instructions > MULL__SHORT || calls != 1)
            fail_msg("%d instructions, %d calls: %s", instructions, calls, w->bytes);
    }
    return is_short;
}

static void random_ones(void **state)
{
    (void)state;
    static words w;
    uint64_t seed = number_from("MULL_SEED", (size_t)time(NULL) | 1);
    print_message("# MULL_SEED=%llu\n", (unsigned long long)seed);
    mull__rand_init(&chance, seed);
    lua_State *L = luaL_newstate();
    luaL_requiref(L, "string", luaopen_string, 1); /* text computes by its metatable */
    size_t brief = 0, left = number_from("MULL_SHORT", FUNCTIONS), other = left;
    for (; left > 0; left--) {
        random_body(&w);
        if (w.size < sizeof w.bytes)
            brief += (size_t)check(L, &w);
    }
    other -= brief;
    print_message("# %zu short, %zu not\n", brief, other);
    assert_true(brief > other / 10 && other > brief / 10);
    lua_close(L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_ones),
        cmocka_unit_test(as_long_as_may_be),
        cmocka_unit_test(what_they_read),
        cmocka_unit_test(random_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
