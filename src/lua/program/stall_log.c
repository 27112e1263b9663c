/* stall_log.c: the loop is held: what the watchdog of `mulligan run` writes; see program.h. */

#include "base/system_limits.h"
#include "lua/binding/engine.h"
#include "lua/binding/module.h"
#include "lua/binding/stderr_output.h"
#include "lua/values/values.h"
#include "program.h"
#include "runtime/engine_control.h"
#include "runtime/stall_watchdog.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOK_MS = 250, HELD_MS = 5000 };

/* File descriptors that a loop takes, with its signals. */
enum { OF_LOOP = 6 };

/* The process has one. */
static struct {
    mull__watchdog *watchdog;
    char format[16], level[16]; /* of the log */
    lua_State *L; /* in which its thread writes lines of log; made when there is one */
} the;

/* ---- Telling, on the watchdog's thread ------------------------------------------------------- */

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

/* write_line writes a line of log by the log's own Lua, in a state that is nobody else's. */
static int write_line(lua_State *L)
{
    static const char *const states[] = {[MULL__STALLED] = "held",
                                         [MULL__STALL_OVER] = "goes on",
                                         [MULL__STALL_PAST_GRACE] = "too long"};
    const mull__stall *stall = lua_touserdata(L, 1);
    luaL_openlibs(L);
    mull__push_function(L, "mulligan.log", "held");
    lua_pushstring(L, the.format);
    lua_pushstring(L, the.level);
    lua_newtable(L);
    mull__set_text(L, "state", states[stall->state]);
    mull__set_integer(L, "ms", stall->ms);
    mull__set_text(L, "consumer", or_null(stall->consumer));
    mull__set_text(L, "message", or_null(stall->message));
    mull__set_text(L, "file", or_null(stall->file));
    mull__set_integer(L, "line", stall->line);
    lua_call(L, 3, 0);
    return 0;
}

/* log_line falls back to a line without a format where there is no memory for Lua. */
static void log_line(mull__stall *stall)
{
    if (!the.L)
        the.L = luaL_newstate();
    if (the.L) {
        lua_pushcfunction(the.L, write_line);
        lua_pushlightuserdata(the.L, stall);
        if (lua_pcall(the.L, 1, 0, 0) == LUA_OK)
            return;
        lua_settop(the.L, 0);
    }
    mull__stderr_print("the loop was held for %lld ms, consumer %s, message %s",
                       (long long)stall->ms, stall->consumer, stall->message);
}

static void tell(const mull__stall *stall, void *data)
{
    (void)data;
    mull__stall copy = *stall;
    log_line(&copy);
    if (stall->state != MULL__STALL_PAST_GRACE)
        return;
    mull__stderr_flush();
    _exit(MULL__EXIT_RESTART);
}

/* ---- Calls that may block -------------------------------------------------------------------- */

/* noted calls Lua's own function, the upvalue, as if it were the one that was called. */
static int noted(lua_State *L)
{
    mull__note_position(L);
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* wrap_blocking_functions: those functions of the table on top, which may block, note where they
 * are called.
 */
static void wrap_blocking_functions(lua_State *L, const char *const names[])
{
    for (; *names; names++) {
        lua_getfield(L, -1, *names);
        lua_pushcclosure(L, noted, 1);
        lua_setfield(L, -2, *names);
    }
    lua_pop(L, 1);
}

int mull__stall_guard(lua_State *L)
{
    mull__meter_patterns(L);
    lua_getglobal(L, LUA_OSLIBNAME);
    wrap_blocking_functions(L, (const char *const[]){"execute", NULL});
    lua_getglobal(L, LUA_IOLIBNAME);
    wrap_blocking_functions(
        L, (const char *const[]){"close", "lines", "open", "popen", "read", "write", NULL});
    luaL_getmetatable(L, LUA_FILEHANDLE);
    lua_getfield(L, -1, "__index");
    wrap_blocking_functions(
        L, (const char *const[]){"close", "flush", "lines", "read", "write", NULL});
    lua_pop(L, 1);
    lua_pushglobaltable(L);
    wrap_blocking_functions(L, (const char *const[]){"print", NULL});
    return 0;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

int mull__stall_watch(lua_State *L)
{
    snprintf(the.format, sizeof the.format, "%s", luaL_checkstring(L, 1));
    snprintf(the.level, sizeof the.level, "%s", luaL_checkstring(L, 2));
    mull__callbacks *host = mull__callbacks_of(L);
    const mull__watchdog_options options = {
        .look_ms = LOOK_MS, .held_ms = HELD_MS, .grace_ms = MULL__GRACE_MS, .tell = tell};
    if (mull__watchdog_new(&the.watchdog, &options) != 0) {
        char why[256] = "no memory, or no thread";
        mull__descriptors_missing(OF_LOOP, why, sizeof why);
        luaL_pushfail(L);
        lua_pushfstring(L, "the watchdog can't start: %s", why);
        return 2;
    }
    host->watchdog = the.watchdog;
    mull__watchdog_heartbeat(the.watchdog); /* what opens transports may be held as well */
    lua_pushboolean(L, 1);
    return 1;
}

void mull__stall_leave(void)
{
    mull__watchdog_exiting(the.watchdog);
}

void mull__stall_end(void)
{
    mull__watchdog_free(the.watchdog);
    the.watchdog = NULL;
    if (the.L)
        lua_close(the.L);
    the.L = NULL;
}
