/* callbacks.c: see callbacks.h. */
#include "callbacks.h"

#include "lua/values/values.h"
#include "memory_limit.h"
#include "stderr_output.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* Addresses are the registry's keys. */
static const char host_key, owners_key;

const char *mull__level_name(mull_level level)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    return names[level];
}

/* make_host makes itself known last: where an error jumps out before, it is made anew. */
static mull__callbacks *make_host(lua_State *L)
{
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &owners_key);

    mull__callbacks *host = lua_newuserdatauv(L, sizeof *host, 1);
    host->job = NULL;
    host->jobs = 0;
    host->begun = 0;
    host->watchdog = NULL;
    host->L = lua_newthread(L);
    lua_setiuservalue(L, -2, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key);
    return host;
}

mull__callbacks *mull__callbacks_of(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key);
    mull__callbacks *host = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return host ? host : make_host(L);
}

void mull__register_owner(lua_State *L, int index, const void *address)
{
    index = lua_absindex(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &owners_key);
    lua_pushvalue(L, index);
    lua_rawsetp(L, -2, address);
    lua_pop(L, 1);
}

void mull__unregister_owner(lua_State *L, const void *address)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &owners_key);
    if (lua_rawgetp(L, -1, address) != LUA_TNIL) {
        /* The key is there, so this allocates nothing. */
        lua_pushnil(L);
        lua_rawsetp(L, -3, address);
    }
    lua_pop(L, 2);
}

int mull__push_references(lua_State *L, const void *address)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &owners_key);
    if (lua_rawgetp(L, -1, address) != LUA_TUSERDATA) {
        lua_pop(L, 2);
        return 0;
    }
    lua_getiuservalue(L, -1, 1);
    lua_replace(L, -3);
    lua_pop(L, 1);
    return 1;
}

/* ---- Calls that may not raise ---------------------------------------------------------------- */

/* text_of is the text of an error value without running anything of its own. */
static const char *text_of(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING ? lua_tostring(L, index) : luaL_typename(L, index);
}

struct line {
    const void *address;
    mull_level level;
    const char *text;
    int taken;
};

static int deliver_line(lua_State *L)
{
    struct line *line = lua_touserdata(L, 1);
    if (!mull__push_references(L, line->address) || lua_getfield(L, -1, "log") != LUA_TFUNCTION)
        return 0;
    lua_pushstring(L, mull__level_name(line->level));
    lua_pushstring(L, line->text);
    lua_call(L, 2, 0);
    line->taken = 1;
    return 0;
}

/* call_outside_handler calls a function of a callback, which isn't part of the handler that may be
 * at work.
 */
static int call_outside_handler(mull__callbacks *host, lua_CFunction function, void *argument)
{
    struct mull__job *outer = mull__switch_job(host, NULL);
    int was_apart = mull__memory_limit_exempt(host->L, 1);
    lua_pushcfunction(host->L, function);
    lua_pushlightuserdata(host->L, argument);
    int status = lua_pcall(host->L, 1, 0, 0);
    mull__memory_limit_exempt(host->L, was_apart);
    mull__switch_job(host, outer);
    return status;
}

void mull__callback_log(mull__callbacks *host, const void *address, mull_level level,
                        const char *text)
{
    lua_State *L = host->L;
    struct line line = {.address = address, .level = level, .text = text};
    if (lua_checkstack(L, 4)) {
        if (call_outside_handler(host, deliver_line, &line) != LUA_OK) {
            mull__stderr_print("the log function raised: %s", text_of(L, -1));
            lua_pop(L, 1);
        }
    }
    if (!line.taken && level >= MULL_WARNING)
        mull__stderr_print("%s: %s", mull__level_name(level), text);
}

int mull__call_protected(mull__callbacks *host, const void *address, const char *what,
                         lua_CFunction function, void *argument)
{
    lua_State *L = host->L;
    if (!lua_checkstack(L, 6)) {
        mull__callback_log(host, address, MULL_ERROR_LEVEL, "out of memory");
        return -1;
    }
    if (call_outside_handler(host, function, argument) == LUA_OK)
        return 0;
    char text[1024];
    snprintf(text, sizeof text, "%s: %s", what, text_of(L, -1));
    lua_pop(L, 1);
    mull__callback_log(host, address, MULL_ERROR_LEVEL, text);
    return -1;
}

/* anchor keeps the second argument among the references of the first. */
static int anchor(lua_State *L, int type, const char *name)
{
    luaL_checktype(L, 1, LUA_TUSERDATA);
    luaL_checktype(L, 2, type);
    lua_getiuservalue(L, 1, 1);
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, name);
    return 0;
}

int mull__callback_mute_events(lua_State *L)
{
    return anchor(L, LUA_TTABLE, "quiet");
}

int mull__callback_word_verdicts(lua_State *L)
{
    return anchor(L, LUA_TFUNCTION, "in_words");
}

/* is_quiet asks the anchors on top. */
static int is_quiet(lua_State *L, const mull_event *event)
{
    return lua_getfield(L, -1, "quiet") == LUA_TTABLE &&
           lua_getfield(L, -1, mull_event_name(event->kind)) != LUA_TNIL;
}

struct told {
    const void *address;
    const mull_event *event;
};

static int tell(lua_State *L)
{
    const struct told *told = lua_touserdata(L, 1);
    if (!mull__push_references(L, told->address) || is_quiet(L, told->event))
        return 0;
    if (told->event->kind == MULL_EVENT_DECIDED &&
        lua_getfield(L, 2, "in_words") == LUA_TFUNCTION) {
        lua_pushstring(L, mull_action_name(told->event->verdict->action));
        mull__push_decided_words(L, told->event);
        lua_call(L, 2, 0);
        return 0;
    }
    if (lua_getfield(L, 2, "event") != LUA_TFUNCTION)
        return 0;
    mull__push_event(L, told->event);
    lua_call(L, 1, 0);
    return 0;
}

void mull__callback_event(mull__callbacks *host, const void *address, const mull_event *event)
{
    struct told told = {.address = address, .event = event};
    mull__call_protected(host, address, "the event function raised", tell, &told);
}

/* ---- Codes ----------------------------------------------------------------------------------- */

#define CODE(name, value, lua, text) {value, lua},
static const struct {
    int code;
    const char *name;
} codes[] = {MULL_ERRORS(CODE)};
#undef CODE

enum { CODES = sizeof codes / sizeof codes[0] };

const char *mull__code_name(int code)
{
    for (size_t i = 0; i < CODES; i++) {
        if (codes[i].code == code)
            return codes[i].name;
    }
    return "unknown";
}

int mull__code_named(const char *name)
{
    for (size_t i = 0; i < CODES; i++) {
        if (strcmp(codes[i].name, name) == 0)
            return codes[i].code;
    }
    return 0;
}

int mull__fail(lua_State *L, int code, const char *message)
{
    luaL_pushfail(L);
    lua_pushstring(L, message && *message ? message : mull_strerror(code));
    lua_pushstring(L, mull__code_name(code));
    return 3;
}
