/* pattern.c: patterns, held against Lua's own on random input, and their bounds.
 *
 *   MULL_SEED, MULL_PATTERNS   the seed, which is printed, and how many patterns */
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pattern.h"
#include "base/rand.h"
#include "fixtures.h"

enum { PATTERNS = 100000, PLENTY = 100000000 };

/* ---- Random input ---------------------------------------------------------------------------- */

static mull__rand chance;

static size_t below(size_t count)
{
    return (size_t)(mull__rand_next(&chance) % count);
}

typedef struct words {
    char bytes[128];
    size_t size;
} words;

static void add(words *w, const char *bytes, size_t size)
{
    if (w->size + size <= sizeof w->bytes) {
        memcpy(w->bytes + w->size, bytes, size);
        w->size += size;
    }
}

#define ADD_ONE_OF(w, list) add_one_of((w), (list), COUNT(list))

static void add_one_of(words *w, const char *const *list, size_t count)
{
    const char *one = list[below(count)];
    add(w, one, strlen(one));
}

static void add_byte(words *w)
{
    static const char few[] = "aab bA1_x.%]^-[$(\t\n\377\0";
    char byte = below(30) == 0 ? (char)below(256) : few[below(sizeof few)];
    add(w, &byte, 1);
}

static words random_text(void)
{
    words w = {.size = 0};
    for (size_t left = below(14); left > 0; left--)
        add_byte(&w);
    return w;
}

/* is_plain: string.find takes a pattern without any of these for a plain text, in which a ')' is no
 * mistake. */
static int is_plain(const words *w)
{
    static const char special[] = "^$*+?.([%-";
    for (size_t i = 0; i < w->size; i++)
        if (memchr(special, w->bytes[i], sizeof special - 1))
            return 0;
    return 1;
}

/* draw_pattern is well formed more often than not, and now and then just bytes. */
static words draw_pattern(void)
{
    static const char *const items[] = {
        "a",     "b",   ".",    "%a",   "%A",     "%d",   "%s",   "%S",    "%w",    "%W",   "%l",
        "%u",    "%p",  "%c",   "%g",   "%x",     "%z",   "%.",   "%%",    "%]",    "[ab]", "[^a]",
        "[a-c]", "[]]", "[^]]", "[%]]", "[a%-c]", "[a-]", "[-a]", "[%a_]", "[%w%s]"};
    static const char *const whole[] = {"%b()", "%bab", "%baa",     "%f[%a]", "%f[^%w]", "%1",
                                        "%2",   "(",    "(",        "(",      ")",       ")",
                                        ")",    "()",   "(a*)(.-)", "$",      "^",       "%0"};
    static const char *const broken[] = {"[",  "[^",  "[a-", "[%",  "%",
                                         "%f", "%fa", "%b",  "%bx", "%9"};
    static const char *const suffixes[] = {"", "", "", "*", "+", "-", "?"};
    words w = {.size = 0};
    if (below(5) == 0)
        add(&w, "^", 1);
    for (size_t left = below(7); left > 0; left--) {
        size_t kind = below(20);
        if (kind < 11) {
            ADD_ONE_OF(&w, items);
            ADD_ONE_OF(&w, suffixes);
        } else if (kind < 18) {
            ADD_ONE_OF(&w, whole);
        } else {
            add_byte(&w);
        }
    }
    if (below(12) == 0)
        ADD_ONE_OF(&w, broken);
    if (below(5) == 0)
        add(&w, "$", 1);
    return w;
}

static words random_pattern(void)
{
    words w;
    do
        w = draw_pattern();
    while (is_plain(&w) && memchr(w.bytes, ')', w.size));
    return w;
}

/* ---- Lua's answer, and ours, as texts -------------------------------------------------------- */

typedef struct answer {
    char text[1024];
    size_t size;
} answer;

static void say(answer *a, const char *bytes, size_t size)
{
    assert_true(a->size + size < sizeof a->text);
    memcpy(a->text + a->size, bytes, size);
    a->size += size;
    a->text[a->size] = 0;
}

static void say_number(answer *a, long long number)
{
    char text[32];
    say(a, text, (size_t)snprintf(text, sizeof text, "%lld;", number));
}

static answer ask_lua(lua_State *L, const words *text, const words *pattern, size_t init)
{
    answer a = {.size = 0};
    lua_settop(L, 0);
    lua_getglobal(L, "string");
    lua_getfield(L, -1, "find");
    lua_pushlstring(L, text->bytes, text->size);
    lua_pushlstring(L, pattern->bytes, pattern->size);
    lua_pushinteger(L, (lua_Integer)init + 1);
    if (lua_pcall(L, 3, LUA_MULTRET, 0) != LUA_OK)
        say(&a, "!", 1);
    for (int i = 2; i <= lua_gettop(L); i++) {
        size_t size;
        if (lua_isinteger(L, i)) {
            say_number(&a, lua_tointeger(L, i));
        } else if (lua_isstring(L, i)) {
            const char *bytes = lua_tolstring(L, i, &size);
            say(&a, bytes, size);
            say(&a, ";", 1);
        } else {
            say(&a, "no;", 3);
        }
    }
    return a;
}

static void say_found(answer *a, const char *text, const mull__pattern_match *match)
{
    for (int i = 0; i < match->capture_count; i++) {
        if (match->captures[i].length == MULL__CAPTURE_OPEN) {
            a->size = 0;
            say(a, "!unfinished capture;", 20);
            return;
        }
    }
    say_number(a, match->start - text + 1);
    say_number(a, match->end - text);
    for (int i = 0; i < match->capture_count; i++) {
        const mull__capture *capture = &match->captures[i];
        if (capture->length == MULL__CAPTURE_POSITION) {
            say_number(a, capture->start - text + 1);
        } else {
            say(a, capture->start, (size_t)capture->length);
            say(a, ";", 1);
        }
    }
}

static answer ask_us(const words *text, const words *pattern, size_t init)
{
    answer a = {.size = 0};
    mull__pattern_match match;
    mull__pattern_steps steps = {.left = PLENTY};
    int found = mull__pattern_find(&match, text->bytes, text->size, init, pattern->bytes,
                                   pattern->size, &steps);
    const char *wrong = found == MULL__PATTERN_COMPLEX ? "pattern too complex" : match.wrong;
    switch (found) {
    case MULL__PATTERN_FOUND:
        say_found(&a, text->bytes, &match);
        break;
    case MULL__PATTERN_NONE:
        say(&a, "no;", 3);
        break;
    case MULL__PATTERN_OUT_OF_STEPS:
        say(&a, "spent", 5);
        break;
    default:
        say(&a, "!", 1);
        say(&a, wrong, strlen(wrong));
        say(&a, ";", 1);
        break;
    }
    return a;
}

static lua_State *open_lua(void)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    luaL_openlibs(L);
    return L;
}

static void show(const char *name, const char *bytes, size_t size)
{
    print_message("%s \"", name);
    for (size_t i = 0; i < size; i++)
        print_message(bytes[i] >= ' ' && bytes[i] <= '~' ? "%c" : "\\%03o",
                      (unsigned char)bytes[i]);
    print_message("\"\n");
}

/* same holds the two answers together; gives ours. */
static answer same(lua_State *L, const words *text, const words *pattern, size_t init)
{
    answer ours = ask_us(text, pattern, init), lua = ask_lua(L, text, pattern, init);
    if (ours.size != lua.size || memcmp(ours.text, lua.text, ours.size) != 0) {
        show("pattern", pattern->bytes, pattern->size);
        show("text", text->bytes, text->size);
        show("Lua's", lua.text, lua.size);
        show("ours", ours.text, ours.size);
        fail_msg("they differ, from %zu on", init);
    }
    return ours;
}

static size_t number_from(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void as_lua_does(void **state)
{
    (void)state;
    uint64_t seed = number_from("MULL_SEED", (size_t)time(NULL) | 1);
    print_message("# MULL_SEED=%llu\n", (unsigned long long)seed);
    mull__rand_init(&chance, seed);
    lua_State *L = open_lua();
    size_t found = 0, none = 0, raised = 0, refused_only = 0;
    for (size_t left = number_from("MULL_PATTERNS", PATTERNS); left > 0; left--) {
        words pattern = random_pattern(), text = random_text();
        answer a = same(L, &text, &pattern, below(text.size + 2));
        const char *wrong = mull__pattern_check(pattern.bytes, pattern.size);
        int has_raised = a.text[0] == '!';
        if (has_raised && !wrong)
            show("not refused", pattern.bytes, pattern.size);
        assert_true(!has_raised || wrong);
        raised += (size_t)has_raised;
        refused_only += wrong && !has_raised;
        found += !has_raised && strcmp(a.text, "no;") != 0;
        none += strcmp(a.text, "no;") == 0;
    }
    print_message("# found %zu, none %zu, raised %zu, refused though not raised %zu\n", found, none,
                  raised, refused_only);
    assert_true(found > 0 && none > 0 && raised > 0);
    lua_close(L);
}

/* ---- Checking -------------------------------------------------------------------------------- */

/* A pattern that is refused, and a text that leads Lua to the same complaint. */
static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text, *wrong;
    } cases[] = {
        {"%", "", "malformed pattern (ends with '%')"},
        {"a%", "a", "malformed pattern (ends with '%')"},
        {"[", "", "malformed pattern (missing ']')"},
        {"[]", "", "malformed pattern (missing ']')"},
        {"[^]", "", "malformed pattern (missing ']')"},
        {"[a%]", "", "malformed pattern (missing ']')"},
        {"[a%", "", "malformed pattern (missing ']')"},
        {"%b", "", "malformed pattern (missing arguments to '%b')"},
        {"%bx", "", "malformed pattern (missing arguments to '%b')"},
        {"%f", "", "missing '[' after '%f' in pattern"},
        {"%fa", "", "missing '[' after '%f' in pattern"},
        {"%f[a", "", "malformed pattern (missing ']')"},
        {"a?)", "", "invalid pattern capture"},
        {"())", "", "invalid pattern capture"},
        {"(", "", "unfinished capture"},
        {"((a)", "a", "unfinished capture"},
        {"%1", "", "invalid capture index %1"},
        {"(%1)", "", "invalid capture index %1"},
        {"()%2", "", "invalid capture index %2"},
        {"%0", "", "invalid capture index %0"},
        {"()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()()", "",
         "too many captures"},
    };
    lua_State *L = open_lua();
    for (size_t i = 0; i < COUNT(cases); i++) {
        words text = {.size = 0}, pattern = {.size = 0};
        add(&text, cases[i].text, strlen(cases[i].text));
        add(&pattern, cases[i].pattern, strlen(cases[i].pattern));
        const char *wrong = mull__pattern_check(pattern.bytes, pattern.size);
        assert_non_null(wrong);
        assert_string_equal(wrong, cases[i].wrong);
        answer a = same(L, &text, &pattern, 0);
        assert_true(strncmp(a.text + 1, wrong, strlen(wrong)) == 0);
    }
    lua_close(L);
}

static void accepted(void **state)
{
    (void)state;
    static const char *const patterns[] = {"",       "^",      "$",     "^$",    "a$b",  "[]]",
                                           "[^]]",   "[]-a]",  "[%]]",  "(a)%1", "()",   "(()())",
                                           "%f[%w]", "%b()",   "%bxx*", "*",     "a**",  "[a-%]]",
                                           "%%",     "[[(%%]", "(*)",   "]",     "%]-$", "-"};
    for (size_t i = 0; i < COUNT(patterns); i++)
        assert_null(mull__pattern_check(patterns[i], strlen(patterns[i])));
}

/* No byte beyond the pattern's end is looked at: there is none, for the sanitizer to see. */
static void within_bounds(void **state)
{
    (void)state;
    static const char *const patterns[] = {"%",   "[",  "[^",  "[%", "%b",
                                           "%bx", "%f", "%f[", "(",  "a"};
    for (size_t i = 0; i < COUNT(patterns); i++) {
        size_t size = strlen(patterns[i]);
        char *pattern = malloc(size), *text = malloc(1);
        assert_true(pattern && text);
        memcpy(pattern, patterns[i], size);
        text[0] = 'a';
        mull__pattern_check(pattern, size);
        mull__pattern_match match;
        mull__pattern_steps steps = {.left = 1000};
        mull__pattern_find(&match, text, 1, 0, pattern, size, &steps);
        mull__pattern_find(&match, text, 1, 1, pattern, size, &steps);
        free(pattern);
        free(text);
    }
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

static int find(const char *text, size_t size, const char *pattern, mull__pattern_steps *steps)
{
    mull__pattern_match match;
    return mull__pattern_find(&match, text, size, 0, pattern, strlen(pattern), steps);
}

/* Patterns that take Lua from seconds to years. */
static void bombs(void **state)
{
    (void)state;
    static char text[100000];
    memset(text, 'a', sizeof text);
    static const char *const patterns[] = {
        ".-.-.-.-.-.-b", "a*a*a*a*a*b",      "(.-)%1b", "a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?b",
        ".+.+.+.+b",     "[^b]-[^b]-[^b]-b", "%baba",   "(a+)(a+)%1%2b",
    };
    for (size_t i = 0; i < COUNT(patterns); i++) {
        mull__pattern_steps steps = {.left = 1000000};
        assert_int_equal(find(text, sizeof text, patterns[i], &steps), MULL__PATTERN_OUT_OF_STEPS);
        assert_true(steps.left < 0);
    }
}

/* A step more than are needed is found, a step less isn't. */
static void exactly_the_steps(void **state)
{
    (void)state;
    const char *text = "the quick brown fox jumps over the lazy dog";
    static const char *const patterns[] = {"%a+ dog$", "(%w+) over %w+", "[x-z]+", ".-(o).-%1",
                                           "no"};
    for (size_t i = 0; i < COUNT(patterns); i++) {
        mull__pattern_steps steps = {.left = PLENTY};
        int found = find(text, strlen(text), patterns[i], &steps);
        int64_t needed = PLENTY - steps.left;
        assert_true(needed > 0);
        steps.left = needed;
        assert_int_equal(find(text, strlen(text), patterns[i], &steps), found);
        assert_int_equal(steps.left, 0);
        steps.left = needed - 1;
        assert_int_equal(find(text, strlen(text), patterns[i], &steps), MULL__PATTERN_OUT_OF_STEPS);
    }
}

/* A set is looked through, and a long one costs what it is long. */
static void long_sets_cost(void **state)
{
    (void)state;
    static char pattern[10002];
    memset(pattern, 'b', sizeof pattern - 1);
    pattern[0] = '[';
    pattern[sizeof pattern - 3] = ']';
    pattern[sizeof pattern - 2] = '*';
    mull__pattern_steps steps = {.left = 100000};
    assert_int_equal(find("bbbbbbbbbbbbbbbbbbbb", 20, pattern, &steps), MULL__PATTERN_FOUND);
    steps.left = 100000;
    assert_int_equal(find("aaaaaaaaaaaaaaaaaaaa", 20, "[^x]*", &steps), MULL__PATTERN_FOUND);
    memset(pattern + 1, 'c', sizeof pattern - 5);
    steps.left = 100000;
    assert_int_equal(find("bbbbbbbbbbbbbbbbbbbb", 20, pattern, &steps), MULL__PATTERN_OUT_OF_STEPS);
}

static void nesting(void **state)
{
    (void)state;
    lua_State *L = open_lua();
    for (size_t depth = 90; depth <= 105; depth++) {
        words pattern = {.size = 0}, text = {.size = 0};
        for (size_t i = 0; i < depth; i++)
            add(&text, "a", 1);
        for (size_t i = 0; i < 31 && i < depth; i++)
            add(&pattern, "()", 2);
        add(&pattern, "a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?", 40);
        same(L, &text, &pattern, 0);
    }
    /* 199 optional items are taken, 200 are not. */
    char pattern[404];
    for (size_t count = 198; count <= 201; count++) {
        for (size_t i = 0; i < count; i++)
            memcpy(pattern + 2 * i, "a?", 2);
        static char text[300];
        memset(text, 'a', sizeof text);
        mull__pattern_match match;
        mull__pattern_steps steps = {.left = PLENTY};
        int found = mull__pattern_find(&match, text, sizeof text, 0, pattern, 2 * count, &steps);
        lua_settop(L, 0);
        lua_getglobal(L, "string");
        lua_getfield(L, -1, "find");
        lua_pushlstring(L, text, sizeof text);
        lua_pushlstring(L, pattern, 2 * count);
        int status = lua_pcall(L, 2, 1, 0);
        assert_int_equal(found, status == LUA_OK ? MULL__PATTERN_FOUND : MULL__PATTERN_COMPLEX);
        if (status != LUA_OK)
            assert_string_equal(lua_tostring(L, -1), "pattern too complex");
        assert_int_equal(found == MULL__PATTERN_FOUND, count < 200);
    }
    lua_close(L);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_lua_does),    cmocka_unit_test(refused),
        cmocka_unit_test(accepted),       cmocka_unit_test(within_bounds),
        cmocka_unit_test(bombs),          cmocka_unit_test(exactly_the_steps),
        cmocka_unit_test(long_sets_cost), cmocka_unit_test(nesting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
