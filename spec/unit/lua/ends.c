/* ends.c: a Lua state ends with policies, engines and clocks in it that nobody closed:
 * forgotten before in any order, busy, in a coroutine that never went on, or looked at by
 * somebody's own finalizer. Nothing crashes and, which ASan sees, nothing is left. */
#include "fixtures.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <unistd.h>

int luaopen_mulligan(lua_State *L);

/* What every script begins with: an engine at work, whose handler sleeps and knows its engine, with
 * a publish that nobody was told of. `url` is that of its transport. */
static const char prelude[] =
    "local mulligan, testing = require 'mulligan', require 'mulligan.testing'\n"
    "local url = ...\n"
    "local function make()\n"
    "    local made = { c = testing.clock() }\n"
    "    made.p = assert(mulligan.load_text([[\n"
    "        local bus = require('mulligan.policy').bus()\n"
    "        bus:on('E', function(err) return err.code == 7 end):retry()\n"
    "    ]], { event = function() return made end }))\n"
    "    assert(made.p:decide { error = { type = 'E', code = 7 } }.action == 'retry')\n"
    "    local engine = assert(mulligan.engine { policy = made.p, clock = made.c,\n"
    "        log = function() return made end })\n"
    "    made.e = engine\n"
    "    assert(engine:transport('t', url))\n"
    "    assert(engine:consumer('C', { transport = 't', queue = 'q', handler = function()\n"
    "        local self <close> = setmetatable({}, { __close = function() return engine end })\n"
    "        mulligan.sleep('1h')\n"
    "    end }))\n"
    "    assert(engine:start())\n"
    "    assert(engine:publish('t', 'q', 'x'))\n"
    "    made.c:turn()\n"
    "    assert(engine:publish('t', 'q', 'y', nil, function() return engine end))\n"
    "    return made\n"
    "end\n";

/* A finalizer says by `looked` that it came to its end: what it raises is lost. */
static int looks;

static int looked(lua_State *L)
{
    (void)L;
    looks++;
    return 0;
}

static void require_mulligan(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_mulligan);
    lua_setfield(L, -2, "mulligan");
    lua_getglobal(L, "require");
    lua_pushliteral(L, "mulligan");
    lua_call(L, 1, 0);
    lua_pop(L, 1);
}

/* end_with runs the prelude and a script in a state of its own, with the URL and one more argument,
 * and ends that state. */
static void end_with(const char *script, const char *url, const char *argument)
{
    lua_State *L = luaL_newstate();
    assert_non_null(L);
    luaL_openlibs(L);
    require_mulligan(L);
    lua_register(L, "looked", looked);
    lua_pushstring(L, prelude);
    lua_pushstring(L, script);
    lua_concat(L, 2);
    int status = luaL_loadstring(L, lua_tostring(L, -1));
    if (status == LUA_OK) {
        lua_pushstring(L, url);
        lua_pushstring(L, argument);
        status = lua_pcall(L, 2, 0, 0);
    }
    if (status != LUA_OK)
        fail_msg("%s, with %s: %s", script, argument, lua_tostring(L, -1));
    lua_close(L);
}

/* ---- Forgotten in any order ------------------------------------------------------------------ */

/* The argument names what is forgotten, in this order; the state's end finds the rest. */
static const char forgetting[] = "made = make()\n"
                                 "for name in select(2, ...):gmatch('.') do\n"
                                 "    made[name] = nil\n"
                                 "    collectgarbage()\n"
                                 "    collectgarbage()\n"
                                 "end\n";

static const char *const orders[] = {"",   "p",  "e",   "c",   "pe",  "pc",  "ep",  "ec",
                                     "cp", "ce", "pec", "pce", "epc", "ecp", "cpe", "cep"};

enum { ORDERS = COUNT(orders) };

static void ends_with_what_is_forgotten_in_any_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < ORDERS; i++)
        end_with(forgetting, "memory:", orders[i]);
}

/* With a database there are threads besides, which still have the publish to write. */
static void ends_with_the_threads_of_a_database(void **state)
{
    (void)state;
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char folder[] = "/tmp/mulligan-XXXXXX", url[64], file[64];
    assert_non_null(mkdtemp(folder));
    snprintf(url, sizeof url, "sqlite:%s/a.db", folder);
    for (size_t i = 0; i < ORDERS; i += 5)
        end_with(forgetting, url, orders[i]);
    for (size_t i = 0; i < COUNT(ends); i++) {
        snprintf(file, sizeof file, "%s/a.db%s", folder, ends[i]);
        remove(file);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* ---- Busy and odd ---------------------------------------------------------------------------- */

static const char *const scripts[] = {
    /* A cycle through all of them, and nothing else that knows them. */
    "local made = make()\n"
    "made = nil\n"
    "collectgarbage()\n",
    /* Two engines on one policy and one clock. */
    "first, second = make(), make()\n"
    "third = assert(mulligan.engine { policy = first.p, clock = second.c })\n"
    "first = nil\n"
    "collectgarbage()\n",
    /* A block that is never left, in a coroutine that never goes on. */
    "stuck = coroutine.create(function()\n"
    "    local made = make()\n"
    "    local p <close> = made.p\n"
    "    local e <close> = made.e\n"
    "    coroutine.yield()\n"
    "end)\n"
    "assert(coroutine.resume(stuck))\n",
    /* Somebody's finalizer, which comes after ours and looks at what is gone. */
    "watcher = setmetatable({ made = false }, { __gc = function(self)\n"
    "    assert(self.made.p:closed() and self.made.e:closed() and self.made.e:stopped())\n"
    "    assert(not pcall(self.made.p.rules, self.made.p))\n"
    "    assert(not pcall(self.made.e.counts, self.made.e))\n"
    "    assert(tostring(self.made.p):find('closed') and tostring(self.made.e):find('closed'))\n"
    "    self.made.p:close()\n"
    "    self.made.e:close()\n"
    "    looked()\n"
    "end })\n"
    "watcher.made = make()\n",
    /* An engine that never started, one that could not be made, and loads that failed. */
    "local p = assert(mulligan.load_text(''))\n"
    "idle = assert(mulligan.engine { policy = p })\n"
    "assert(not mulligan.engine { policy = p, reload_on_change = true })\n"
    "assert(not mulligan.load_text('x =') and not mulligan.load('/nowhere/policy.lua'))\n",
    /* An engine that its own callback closes while the collector is at work. */
    "local made = make()\n"
    "made.e:after(0, function()\n"
    "    made.e:close()\n"
    "    made.e, made.p = nil, nil\n"
    "    collectgarbage()\n"
    "end)\n"
    "made.c:turn()\n",
    /* A collector that works in steps, and by generations. */
    "collectgarbage('generational')\n"
    "for _ = 1, 5 do make() end\n"
    "collectgarbage('incremental', 50, 1000)\n"
    "for _ = 1, 5 do make() end\n",
};

static void ends_with_what_is_busy_or_odd(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++)
        end_with(scripts[i], "memory:", "");
    assert_int_equal(looks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_with_what_is_forgotten_in_any_order),
        cmocka_unit_test(ends_with_the_threads_of_a_database),
        cmocka_unit_test(ends_with_what_is_busy_or_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
