/* module.c: require "mulligan". What is C is in mulligan.core; the rest is lua/mulligan/init.lua.
 */
#include "module.h"

#include "base/clock.h"
#include "engine.h"
#include "lua/language/dsl_dispatch.h"
#include "lua/machine/embedded.h"
#include "lua/values/json.h"
#include "lua/values/raise.h"
#include "policy_views.h"
#include "stderr_output.h"

#include <lauxlib.h>

/* ---- The files of lua/ ----------------------------------------------------------------------- */

static int load_file(lua_State *L, const mull__embedded *file)
{
    if (mull__embedded_load(L, file) != LUA_OK)
        return lua_error(L);
    lua_pushstring(L, file->name);
    lua_call(L, 1, 1);
    return 1;
}

/* open_file is what require calls; its upvalue is the file's number. */
static int open_file(lua_State *L)
{
    return load_file(L, &mull__embedded_files[lua_tointeger(L, lua_upvalueindex(1))]);
}

/* ---- mulligan.core --------------------------------------------------------------------------- */

/* moment() is the time of day as text, in UTC. */
static int moment(lua_State *L)
{
    char text[MULL__TIMESTAMP_SIZE];
    mull__timestamp_write(mull__wall_ms(), text);
    lua_pushstring(L, text);
    return 1;
}

/* push_events pushes the list of the events' names. */
static void push_events(lua_State *L)
{
    lua_createtable(L, MULL_EVENT_LAST, 0);
    for (int kind = 0; kind < MULL_EVENT_LAST; kind++) {
        lua_pushstring(L, mull_event_name((mull_event_kind)kind));
        lua_rawseti(L, -2, kind + 1);
    }
}

/* set_type sets what a type has in C, and what its values have, in the table on top. */
static void set_type(lua_State *L, const char *name, void (*open)(lua_State *L))
{
    open(L);
    lua_pushfstring(L, "%s_methods", name);
    lua_insert(L, -2);
    lua_rawset(L, -4);
    lua_pushfstring(L, "%s_functions", name);
    lua_insert(L, -2);
    lua_rawset(L, -3);
}

static int open_core(lua_State *L)
{
    static const luaL_Reg functions[] = {{"load", mull__lua_load},
                                         {"engine", mull__lua_engine_new},
                                         {"clock", mull__test_clock_new},
                                         {"sleep", mull__lua_sleep},
                                         {"send", mull__lua_send},
                                         {"log", mull__lua_log},
                                         {"may_wait", mull__lua_may_wait},
                                         {"process", mull__lua_process},
                                         {"workers", mull__engine_workers},
                                         {"find_program", mull__lua_find_program},
                                         {"fetch", mull__lua_fetch},
                                         {"has_http", mull__lua_has_http},
                                         {"error", mull__lua_error},
                                         {"in_words", mull__callback_word_verdicts},
                                         {"moment", moment},
                                         {"policy_explain", mull__policy_explain},
                                         {"policy_table", mull__policy_table},
                                         {"stderr_write", mull__lua_stderr_write},
                                         {"stderr_queue", mull__lua_stderr_queue},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    set_type(L, "policy", mull__open_policy);
    set_type(L, "engine", mull__open_engine);
    set_type(L, "clock", mull__test_clock_open);
    mull__open_json(L);
    lua_setfield(L, -2, "json");
    push_events(L);
    lua_setfield(L, -2, "events");
    mull__settings_push(L);
    lua_setfield(L, -2, "settings");
    lua_pushstring(L, mull_version());
    lua_setfield(L, -2, "version");
    return 1;
}

/* prefer leaves alone what somebody put there before: a file of their own in place of ours. */
static void prefer(lua_State *L, const char *name)
{
    if (lua_getfield(L, -2, name) == LUA_TNIL) {
        lua_pushvalue(L, -2);
        lua_setfield(L, -4, name);
    }
    lua_pop(L, 2);
}

static void preload(lua_State *L)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    for (size_t i = 0; i < mull__embedded_count; i++) {
        lua_pushinteger(L, (lua_Integer)i);
        lua_pushcclosure(L, open_file, 1);
        prefer(L, mull__embedded_files[i].name);
    }
    lua_pushcfunction(L, open_core);
    prefer(L, "mulligan.core");
    lua_pop(L, 1);
}

int luaopen_mulligan(lua_State *L)
{
    preload(L);
    return load_file(L, mull__embedded_find("mulligan"));
}

int luaopen_mulligan_testing(lua_State *L)
{
    preload(L);
    luaL_requiref(L, "mulligan", luaopen_mulligan, 0);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_getfield(L, -1, "mulligan.testing");
    lua_call(L, 0, 1);
    return 1;
}

void mull__push_function(lua_State *L, const char *module, const char *function)
{
    luaL_requiref(L, "mulligan", luaopen_mulligan, 0);
    lua_getglobal(L, "require");
    lua_pushstring(L, module);
    lua_call(L, 1, 1);
    lua_getfield(L, -1, function);
}
