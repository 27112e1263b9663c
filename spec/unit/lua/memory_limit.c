/* limit.c: how much memory the program's Lua may have, and what happens at the limit.
 */
#include "lua/binding/memory_limit.h"
#include "base/system_limits.h"
#include "lua/values/json.h"
#include "runtime/engine_control.h"

#include <lauxlib.h>
#include <lualib.h>
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
    return mull__cgroup_memory_limit(path, root);
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
    assert_int_equal(mull__cgroup_memory_limit("/tmp", root), UINT64_MAX);
    assert_int_equal(mull__cgroup_memory_limit("/nowhere", root), UINT64_MAX);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* ---- The limit ----------------------------------------------------------------------------- */

static int run(lua_State *L, const char *text)
{
    assert_int_equal(luaL_loadstring(L, text), LUA_OK);
    return lua_pcall(L, 0, 0, 0);
}

static lua_State *begin(mull__memory_limit *limit)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    luaL_openlibs(L);
    mull__memory_limit_install(limit, L);
    return L;
}

static void three_quarters_of_that_unless_it_is_moved(void **state)
{
    (void)state;
    mull__memory_limit limit;
    lua_State *L = begin(&limit);
    assert_int_equal(limit.most, mull__machine_memory() / 4 * 3);
    mull__memory_limit_push(L);
    lua_setglobal(L, "limit");
    assert_int_equal(run(L, "assert(limit(64 << 20))"), LUA_OK);
    assert_int_equal(limit.most, 64 * MIB);
    assert_int_equal(run(L,
                         "local ok, why = limit(1 << 20)\n"
                         "assert(not ok and why == 'is too small: at least 3MiB is needed', why)"),
                     LUA_OK);
    assert_int_equal(run(L, "assert(not limit(0) and not limit(-1))"), LUA_OK);
    assert_int_equal(limit.most, 64 * MIB);
    lua_close(L);
    assert_int_equal(limit.used, 0);
}

static void what_is_above_it_is_refused_and_garbage_is_none_of_it(void **state)
{
    (void)state;
    mull__memory_limit limit;
    lua_State *L = begin(&limit);
    limit.most = 16 * MIB;
    assert_int_equal(run(L, "kept = ('x'):rep(4 << 20)\n"
                            "for i = 1, 100 do local s = ('x'):rep((i % 10 + 1) << 18) .. i end"),
                     LUA_OK);
    assert_int_equal(run(L, "return ('x'):rep(17 << 20)"), LUA_ERRMEM);
    assert_string_equal(lua_tostring(L, -1), "not enough memory");
    assert_int_equal(run(L, "kept = {} for i = 1, 100 do kept[i] = ('x'):rep(1 << 20) .. i end"),
                     LUA_ERRMEM);
    assert_in_range(limit.used, 10 * MIB, 16 * MIB);
    assert_int_equal(run(L, "kept = nil return ('x'):rep(3 << 20)"), LUA_OK);
    assert_in_range(limit.used, 0, 16 * MIB);
    lua_close(L);
    assert_int_equal(limit.used, 0);
}

/* ---- Is memory used up? ---------------------------------------------------------------------- */

/* refused says whether memory was refused for good while a text ran. */
static int refused(lua_State *L, const char *text, int status)
{
    mull__memory_limit_watch(L);
    assert_int_equal(run(L, text), status);
    lua_settop(L, 0);
    return mull__memory_limit_refused(L);
}

static void what_is_had_after_a_collection_was_not_refused(void **state)
{
    (void)state;
    mull__memory_limit limit;
    lua_State *L = begin(&limit);
    limit.most = 16 * MIB;
    assert_int_equal(run(L, "collectgarbage('stop') half = ('x'):rep(1 << 20)"), LUA_OK);
    assert_false(refused(L, "for i = 1, 30 do local s = half .. i end", LUA_OK));
    assert_true(refused(L, "return ('x'):rep(15 << 20)", LUA_ERRMEM));
    assert_false(refused(L, "return ('x'):rep(17 << 20)", LUA_ERRMEM)); /* it never fits */
    assert_true(refused(L, "local list = {} while true do list[#list + 1] = {} end", LUA_ERRMEM));
    /* A handler that goes on says of it what it likes, and may take all that is free again. */
    assert_true(refused(L,
                        "pcall(function() local l = {} while true do l[#l + 1] = {} end end)\n"
                        "for i = 1, 1000 do local t = {} end error('no luck')",
                        LUA_ERRRUN));
    assert_false(refused(L, "local s = half .. 'x' error(s)", LUA_ERRRUN));
    lua_close(L);
}

static void it_is_used_up_where_an_eighth_of_it_is_kept(void **state)
{
    (void)state;
    mull__memory_limit limit;
    lua_State *L = begin(&limit);
    limit.most = 16 * MIB; /* 12 MiB of it for objects */
    assert_int_equal(run(L, "before = ('x'):rep(4 << 20) .. '.'"), LUA_OK);
    assert_int_equal(mull__memory_limit_start(L), 1);
    assert_false(mull__memory_limit_is_short(L));
    assert_int_equal(run(L, "after = ('x'):rep(900 << 10) .. '.'"), LUA_OK);
    assert_false(mull__memory_limit_is_short(L));
    assert_true(mull__memory_limit_is_free(L));
    assert_int_equal(run(L, "more = ('x'):rep(200 << 10) .. '.'"), LUA_OK);
    assert_true(mull__memory_limit_is_short(L));
    assert_true(mull__memory_limit_is_free(L));
    assert_int_equal(run(L, "most = ('x'):rep(3 << 20) .. '.'"), LUA_OK);
    lua_gc(L, LUA_GCCOLLECT);
    assert_false(mull__memory_limit_is_free(L));
    assert_int_equal(run(L, "most = nil"), LUA_OK);
    lua_gc(L, LUA_GCCOLLECT);
    assert_true(mull__memory_limit_is_free(L));
    assert_int_equal(run(L, "before = nil"), LUA_OK); /* what there was may go, too */
    assert_false(mull__memory_limit_is_short(L));
    assert_int_equal(run(L, "held = setmetatable({ ('x'):rep(4 << 20) .. '.' }, { __gc = type })\n"
                            "after, more = ('x'):rep(3 << 20) .. '.', ('x'):rep(1 << 20) .. '.'"),
                     LUA_OK);
    assert_true(mull__memory_limit_is_short(L));
    assert_int_equal(run(L, "held = nil"), LUA_OK);
    assert_false(mull__memory_limit_is_short(L));
    lua_close(L);
}

static void nothing_is_where_there_is_no_ceiling(void **state)
{
    (void)state;
    lua_State *L = luaL_newstate();
    mull__memory_limit_watch(L);
    assert_false(mull__memory_limit_refused(L));
    assert_false(mull__memory_limit_is_short(L));
    assert_true(mull__memory_limit_is_free(L));
    assert_false(mull__memory_limit_exempt(L, 1));
    mull__memory_limit_lift(L);
    lua_close(L);
}

static void what_is_apart_from_handlers_has_a_quarter_left(void **state)
{
    (void)state;
    mull__memory_limit limit;
    lua_State *L = begin(&limit);
    limit.most = 16 * MIB;
    assert_int_equal(run(L, "list = {} while true do list = { list } end"), LUA_ERRMEM);
    lua_settop(L, 0);
    assert_false(mull__memory_limit_exempt(L, 1));
    assert_int_equal(run(L, "return { ('x'):rep(1 << 20) .. '.' }"), LUA_OK);
    assert_true(mull__memory_limit_exempt(L, 0));
    assert_int_equal(luaL_loadstring(L, "return 'a handler'"), LUA_ERRMEM);
    lua_settop(L, 0);
    mull__memory_limit_lift(L);
    assert_int_equal(run(L, "return ('x'):rep(20 << 20)"), LUA_OK);
    lua_close(L);
}

/* What JSON is read into is Lua's, and what stood in the way of it is collected. */
static void json_is_read_within_it(void **state)
{
    (void)state;
    mull__memory_limit limit;
    lua_State *L = begin(&limit);
    mull__open_json(L);
    lua_getfield(L, -1, "decode");
    lua_setglobal(L, "decode");
    lua_pop(L, 1);
    limit.most = 16 * MIB;
    assert_int_equal(run(L, "decode('[' .. ('[],'):rep(500000) .. '[]]')"), LUA_ERRMEM);
    assert_string_equal(lua_tostring(L, -1), "not enough memory");
    lua_settop(L, 0);
    assert_int_equal(run(L, "local text = '[' .. ('[],'):rep(100000) .. '[]]'\n"
                            "local garbage = {}\n"
                            "for i = 1, 4 do garbage[i] = ('x'):rep(2 << 20) .. i end\n"
                            "assert(not pcall(decode, text))\n"
                            "garbage = nil\n"
                            "decode(text)"),
                     LUA_OK);
    lua_close(L);
    assert_int_equal(limit.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_than_the_machine_has_where_a_limit_says_so),
        cmocka_unit_test(as_little_as_the_groups_around_it_may_have),
        cmocka_unit_test(three_quarters_of_that_unless_it_is_moved),
        cmocka_unit_test(what_is_above_it_is_refused_and_garbage_is_none_of_it),
        cmocka_unit_test(what_is_had_after_a_collection_was_not_refused),
        cmocka_unit_test(it_is_used_up_where_an_eighth_of_it_is_kept),
        cmocka_unit_test(nothing_is_where_there_is_no_ceiling),
        cmocka_unit_test(what_is_apart_from_handlers_has_a_quarter_left),
        cmocka_unit_test(json_is_read_within_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
