/* internal_ceiling.c: how much memory the program's Lua may have, and what happens at the ceiling.
 */
#include "base/cgroup.h"
#include "lua/ceiling.h"
#include "lua/json.h"
#include "runtime/seams.h"
#include "wire/json_tree.h"

#include <jansson.h>
#include <lauxlib.h>
#include <lualib.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1024 * 1024 };

/* ---- What the machine allows ----------------------------------------------------------------- */

/* allowed_under gives what is allowed while a soft limit of the process, of its data or of its
 * whole space, is `bytes`. */
static uint64_t allowed_under(int of_data, uint64_t bytes)
{
    struct rlimit before, now;
    assert_int_equal(getrlimit(of_data ? RLIMIT_DATA : RLIMIT_AS, &before), 0);
    now = before;
    now.rlim_cur = bytes;
    assert_int_equal(setrlimit(of_data ? RLIMIT_DATA : RLIMIT_AS, &now), 0);
    uint64_t allowed = mull__machine_memory();
    assert_int_equal(setrlimit(of_data ? RLIMIT_DATA : RLIMIT_AS, &before), 0);
    return allowed;
}

static void less_than_the_machine_has_where_a_limit_says_so(void **state)
{
    (void)state;
    uint64_t all = mull__machine_memory();
    assert_true(all > 64 * MIB && all < UINT64_MAX);
    assert_int_equal(allowed_under(0, all - 1), all - 1);
    assert_int_equal(allowed_under(1, all - 2), all - 2);
    assert_int_equal(allowed_under(0, RLIM_INFINITY), all);
}

static void write_file(const char *root, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

static void make_folder(const char *root, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static uint64_t grouped(const char *root, const char *list)
{
    char path[256];
    write_file(root, "list", list);
    snprintf(path, sizeof path, "%s/list", root);
    return mull__cgroup_memory(path, root);
}

static void as_little_as_the_groups_around_it_may_have(void **state)
{
    (void)state;
    char root[] = "/tmp/mulligan-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    make_folder(root, "a");
    make_folder(root, "a/b");
    assert_int_equal(grouped(root, "0::/a/b\n"), UINT64_MAX);
    write_file(root, "a/b/memory.max", "max\n");
    assert_int_equal(grouped(root, "0::/a/b\n"), UINT64_MAX);
    write_file(root, "a/memory.max", "5000000\n");
    assert_int_equal(grouped(root, "0::/a/b\n"), 5000000);
    write_file(root, "a/b/memory.max", "4000000\n");
    assert_int_equal(grouped(root, "0::/a/b\n"), 4000000);
    assert_int_equal(grouped(root, "1:cpu:/x\n0::/a\n"), 5000000);
    /* In a container the group is the root. */
    assert_int_equal(grouped(root, "0::/\n"), UINT64_MAX);
    write_file(root, "memory.max", "3000000\n");
    assert_int_equal(grouped(root, "0::/\n"), 3000000);
    assert_int_equal(grouped(root, "0::/a/b\n"), 3000000);
    assert_int_equal(grouped(root, "4:memory:/a\n"), UINT64_MAX); /* v1 */
    assert_int_equal(grouped(root, ""), UINT64_MAX);
    assert_int_equal(mull__cgroup_memory("/tmp", root), UINT64_MAX);
    assert_int_equal(mull__cgroup_memory("/nowhere", root), UINT64_MAX);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* ---- The ceiling ----------------------------------------------------------------------------- */

static int run(lua_State *L, const char *text)
{
    assert_int_equal(luaL_loadstring(L, text), LUA_OK);
    return lua_pcall(L, 0, 0, 0);
}

static lua_State *begin(mull__ceiling *ceiling)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    luaL_openlibs(L);
    mull__ceiling_over(ceiling, L);
    return L;
}

static void three_quarters_of_that_unless_it_is_moved(void **state)
{
    (void)state;
    mull__ceiling ceiling;
    lua_State *L = begin(&ceiling);
    assert_int_equal(ceiling.most, mull__machine_memory() / 4 * 3);
    mull__ceiling_open(L);
    lua_setglobal(L, "limit");
    assert_int_equal(run(L, "assert(limit(64 << 20))"), LUA_OK);
    assert_int_equal(ceiling.most, 64 * MIB);
    assert_int_equal(run(L,
                         "local ok, why = limit(1 << 20)\n"
                         "assert(not ok and why == 'is too small: at least 3MiB is needed', why)"),
                     LUA_OK);
    assert_int_equal(run(L, "assert(not limit(0) and not limit(-1))"), LUA_OK);
    assert_int_equal(ceiling.most, 64 * MIB);
    lua_close(L);
    assert_int_equal(ceiling.used, 0);
}

static void what_is_above_it_is_refused_and_garbage_is_none_of_it(void **state)
{
    (void)state;
    mull__ceiling ceiling;
    lua_State *L = begin(&ceiling);
    ceiling.most = 16 * MIB;
    assert_int_equal(run(L, "kept = ('x'):rep(4 << 20)\n"
                            "for i = 1, 100 do local s = ('x'):rep((i % 10 + 1) << 18) .. i end"),
                     LUA_OK);
    assert_int_equal(run(L, "return ('x'):rep(17 << 20)"), LUA_ERRMEM);
    assert_string_equal(lua_tostring(L, -1), "not enough memory");
    assert_int_equal(run(L, "kept = {} for i = 1, 100 do kept[i] = ('x'):rep(1 << 20) .. i end"),
                     LUA_ERRMEM);
    assert_in_range(ceiling.used, 10 * MIB, 16 * MIB);
    assert_int_equal(run(L, "kept = nil return ('x'):rep(3 << 20)"), LUA_OK);
    assert_in_range(ceiling.used, 0, 16 * MIB);
    lua_close(L);
    assert_int_equal(ceiling.used, 0);
}

/* ---- JSON, whose tree isn't Lua's memory ----------------------------------------------------- */

static size_t jansson_has, jansson_had; /* bytes now, and at most */

static void *count_malloc(size_t size)
{
    void *memory = malloc(size);
    jansson_has += malloc_usable_size(memory) + 8; /* and malloc's own word */
    jansson_had = jansson_has > jansson_had ? jansson_has : jansson_had;
    return memory;
}

static void count_free(void *memory)
{
    jansson_has -= memory ? malloc_usable_size(memory) + 8 : 0;
    free(memory);
}

static void begin_counting(void)
{
    jansson_has = jansson_had = 0;
    json_set_alloc_funcs(count_malloc, count_free);
}

/* repeat gives `before`, `item` so many times, and `after`; with a number in the place of a "#". */
static char *repeat(const char *before, const char *item, int times, const char *after)
{
    char *text = malloc(strlen(before) + (size_t)times * (strlen(item) + 10) + strlen(after) + 1);
    assert_non_null(text);
    char *end = text + sprintf(text, "%s", before);
    for (int i = 0; i < times; i++) {
        const char *mark = strchr(item, '#');
        end += mark ? sprintf(end, "%.*s%d%s", (int)(mark - item), item, i, mark + 1)
                    : sprintf(end, "%s", item);
    }
    sprintf(end, "%s", after);
    return text;
}

static void a_tree_weighs_what_it_takes(void **state)
{
    enum { FEW = 300, MANY = 70000 };
    static const char *const texts[][3] = {
        {"[", "[],", "[]]"},
        {"[", "[[]],", "[]]"},
        {"[", "{},", "{}]"},
        {"[", "0,", "0]"},
        {"[", "1.5,", "0]"},
        {"[", "\"\",", "0]"},
        {"[", "\"a text of some length, as there are many\",", "0]"},
        {"\"", "one long text, ", "\""},
        {"\"", "\\u00fc", "\""},
        {"[", "12345678901234567890,", "0]"},
        {"{", "\"#\":0,", "\"k\":0}"},
        {"{", "\"a name of some length, and #\":{\"a\":[]},", "\"k\":0}"},
        {"{", "\"#\":\"\",", "\"k\":0}"},
        {"[", "{\"a\":0},", "0]"},
        {"[", "{\"a\":\"b\",\"c\":[1,2,3],\"d\":{\"e\":true,\"f\":null}},\n    ", "0]"},
        {"[", "[", "0"}, /* and what is no JSON */
        {"", "\"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (int times = 0; times <= MANY; times = times ? times * 233 : FEW) {
            char *text = repeat(texts[i][0], texts[i][1], times, texts[i][2]), why[256];
            size_t size = strlen(text), weight = mull__json_weight(text, size);
            begin_counting();
            mull__json *root = mull__json_parse(text, size, 0, why, sizeof why);
            mull__json_drop(root);
            if (jansson_had > weight || (root && times && weight > 4 * jansson_had))
                fail_msg("%s: %zu bytes weigh %zu", texts[i][1], jansson_had, weight);
            assert_int_equal(jansson_has, 0);
            free(text);
        }
    }
    json_set_alloc_funcs(malloc, free);
}

static void push_decode(lua_State *L)
{
    mull__open_json(L);
    lua_getfield(L, -1, "decode");
    lua_setglobal(L, "decode");
    lua_pop(L, 1);
}

/* It is refused before any of it is there, and garbage makes room for it. */
static void a_tree_counts_as_luas_while_it_is_there(void **state)
{
    (void)state;
    mull__ceiling ceiling;
    lua_State *L = begin(&ceiling);
    push_decode(L);
    ceiling.most = 16 * MIB;
    begin_counting();
    assert_int_equal(run(L, "large = '[' .. ('[],'):rep(50000) .. '[]]' decode(large)"),
                     LUA_ERRMEM);
    assert_string_equal(lua_tostring(L, -1), "not enough memory");
    lua_settop(L, 0);
    assert_int_equal(jansson_had, 0);
    assert_int_equal(run(L, "collectgarbage() collectgarbage('stop')"), LUA_OK);
    size_t used = ceiling.used;
    assert_int_equal(run(L, "decode('[[],[]]') pcall(decode, '[1, 2') pcall(decode, '[]]')\n"
                            "pcall(decode, ('['):rep(1000) .. (']'):rep(1000))"),
                     LUA_OK);
    lua_gc(L, LUA_GCCOLLECT);
    assert_in_range(ceiling.used, 1, used + 1024);
    assert_int_equal(run(L, "local text = '[' .. ('[],'):rep(20000) .. '[]]'\n"
                            "local garbage = {}\n"
                            "for i = 1, 4 do garbage[i] = ('x'):rep(2 << 20) .. i end\n"
                            "assert(not pcall(decode, text))\n"
                            "garbage = nil\n"
                            "decode(text)"),
                     LUA_OK);
    assert_int_equal(jansson_has, 0);
    lua_close(L);
    assert_int_equal(ceiling.used, 0);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_than_the_machine_has_where_a_limit_says_so),
        cmocka_unit_test(as_little_as_the_groups_around_it_may_have),
        cmocka_unit_test(three_quarters_of_that_unless_it_is_moved),
        cmocka_unit_test(what_is_above_it_is_refused_and_garbage_is_none_of_it),
        cmocka_unit_test(a_tree_weighs_what_it_takes),
        cmocka_unit_test(a_tree_counts_as_luas_while_it_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
