/* program.c: the program: its Lua state, its signals, and how it ends; see program.h. */
#include "program.h"

#include "lua/binding/engine.h"
#include "lua/binding/memory_limit.h"
#include "lua/binding/module.h"
#include "lua/binding/policy_module.h"
#include "lua/binding/stderr_output.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };

static volatile sig_atomic_t is_hung_up; /* a SIGHUP came that no engine took */

static void note(int signal_number)
{
    if (signal_number == SIGHUP)
        is_hung_up = 1;
}

/* survive keeps a signal from ending us. It isn't ignored, or what a handler starts would inherit
 * that. */
static void survive(int signal_number)
{
    if (signal(signal_number, note) == SIG_IGN)
        signal(signal_number, SIG_IGN);
}

/* end_watchdog blocks the signals that an engine takes, and the watchdog, up to the process's end:
 * when both are closed, libuv puts their default back, which is death of a process that may still
 * wait for somebody to read its log. No other thread takes them meanwhile: that of the log has them
 * blocked, and those of transports have ended. */
static void end_watchdog(void)
{
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &taken, NULL);
    mull__stall_end();
}

/* From begin_work() until the Lua state is closed nothing but the command says how it ended. */
static atomic_int at_work;
static pid_t worker; /* the process that is at work; a handler may fork others */

enum { NO_CODE = -1 };
static atomic_int command_code = NO_CODE; /* what the command gave, once it has */

/* on_exit_at_work: a library that a handler or a finalizer called may call C's exit. */
static void on_exit_at_work(void)
{
    if (!atomic_load(&at_work) || getpid() != worker)
        return;
    int code = atomic_load(&command_code);
    if (code == NO_CODE) {
        code = MULL__EXIT_RESTART;
        mull__stderr_print(
            "exit was called in the midst of the work; what was claimed will be handed "
            "out again");
    }
    fflush(NULL);
    mull__stderr_flush();
    _exit(code);
}

static int begin_work(lua_State *L)
{
    if (atexit(on_exit_at_work) != 0)
        return luaL_error(L, "not enough memory");
    worker = getpid();
    atomic_store(&at_work, 1);
    return 0;
}

/* is_worker() says whether this is the process that began the work, not one that it forked. */
static int is_worker(lua_State *L)
{
    lua_pushboolean(L, getpid() == worker);
    return 1;
}

/* writes_to_terminal() says whether a person may be looking at stdout. */
static int writes_to_terminal(lua_State *L)
{
    lua_pushboolean(L, isatty(STDOUT_FILENO));
    return 1;
}

static int none_read(lua_State *L, const char *word)
{
    const char *why = strerror(errno);
    luaL_pushfail(L);
    lua_pushstring(L, word);
    lua_pushstring(L, why);
    return 3;
}

/* read_stdin(may_wait, for_stdout) gives the next bytes of stdin, "" at its end; nil and "later"
 * where there are none yet and it may not wait; nil and "unread" where it waits `for_stdout` and
 * nobody reads that any more; nil, "error" and why. */
static int read_stdin(lua_State *L)
{
    enum { CHUNK = 64 * 1024 };
    struct pollfd ends[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = STDOUT_FILENO}};
    int may_wait = lua_toboolean(L, 1), for_stdout = lua_toboolean(L, 2);
    if (!may_wait && poll(ends, 1, 0) <= 0)
        return none_read(L, "later");
    while (for_stdout && poll(ends, 2, -1) < 0 && errno == EINTR) {
    }
    if (!ends[0].revents && ends[1].revents & (POLLERR | POLLHUP))
        return none_read(L, "unread");
    luaL_Buffer buffer;
    char *room = luaL_buffinitsize(L, &buffer, CHUNK);
    ssize_t size;
    do
        size = read(STDIN_FILENO, room, CHUNK);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return none_read(L, "error");
    luaL_pushresultsize(&buffer, (size_t)size);
    return 1;
}

/* hung_up() says whether a SIGHUP came since it was last asked. */
static int hung_up(lua_State *L)
{
    int was = is_hung_up;
    if (was)
        is_hung_up = 0;
    lua_pushboolean(L, was);
    return 1;
}

/* pause(ms) waits, whatever signal comes. */
static int pause_ms(lua_State *L)
{
    struct timespec until;
    lua_Integer ms = luaL_checkinteger(L, 1);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    return 0;
}

/* descriptors(needed) raises the limit of open files so that so many are there beside what else is
 * open: nil where they are; else how many there can be. What handlers start inherits the limit, so
 * it isn't raised for nothing. */
static int descriptors(lua_State *L)
{
    enum { OTHERS = 64 };
    lua_Integer needed = luaL_checkinteger(L, 1) + OTHERS;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || (rlim_t)needed <= limit.rlim_cur)
        return 0;
    rlim_t most = limit.rlim_max;
    limit.rlim_cur = (rlim_t)needed;
    if (limit.rlim_cur <= most && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    lua_pushinteger(L, most > OTHERS ? (lua_Integer)most - OTHERS : 0);
    return 1;
}

/* open_program: what only the program's own commands have, as mulligan.program. */
static int open_program(lua_State *L)
{
    static const luaL_Reg functions[] = {{"main_engine", mull__engine_make_main},
                                         {"guard_handlers", mull__stall_guard},
                                         {"watch", mull__stall_watch},
                                         {"begin_work", begin_work},
                                         {"is_worker", is_worker},
                                         {"writes_to_terminal", writes_to_terminal},
                                         {"read_stdin", read_stdin},
                                         {"hung_up", hung_up},
                                         {"pause", pause_ms},
                                         {"descriptors", descriptors},
                                         {"look", mull__policy_look},
                                         {"catch_up", mull__policy_catch_up},
                                         {"standing", mull__policy_standing},
                                         {"serve", mull__serve},
                                         {"serve_policy", mull__serve_policy},
                                         {"mute", mull__engine_mute},
                                         {"mute_policy", mull__callback_mute_events},
                                         {NULL, NULL}};
    luaL_newlib(L, functions);
    mull__open_serve(L);
    mull__memory_limit_push(L);
    lua_setfield(L, -2, "memory_limit");
    mull__fs_open(L);
    lua_setfield(L, -2, "folders");
    return 1;
}

static int run(lua_State *L)
{
    char **words = lua_touserdata(L, 1);
    int count = (int)lua_tointeger(L, 2);
    luaL_openlibs(L);
    luaL_requiref(L, "mulligan.program", open_program, 0);
    mull__push_function(L, "mulligan.cli", "main");
    lua_newtable(L);
    for (int i = 1; i < count; i++) {
        lua_pushstring(L, words[i]);
        lua_rawseti(L, -2, i);
    }
    lua_call(L, 1, 1);
    return 1;
}

/* tell_error is a message handler, so that what it raises itself is caught as well. */
static int tell_error(lua_State *L)
{
    mull__stderr_print("%s", luaL_tolstring(L, 1, NULL));
    return 0;
}

int mull__program(int argc, char **argv)
{
    survive(SIGPIPE); /* who reads our output may go: a write says so */
    const char *command = argc > 1 ? argv[1] : "";
    int runs = strcmp(command, "run") == 0;
    if (runs || strcmp(command, "serve") == 0 || strcmp(command, "decide") == 0)
        survive(SIGHUP); /* it means a reload */
    int code = EXIT_USAGE;
    lua_State *L = luaL_newstate();
    if (!L) {
        mull__stderr_print("out of memory");
        return code;
    }
    mull__memory_limit ceiling;
    mull__memory_limit_install(&ceiling, L);
    mull__set_count_hook(L); /* coroutines that are made outside of handlers, too */
    lua_pushcfunction(L, tell_error);
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, argv);
    lua_pushinteger(L, argc);
    int status = lua_pcall(L, 2, 1, -4);
    if (status == LUA_OK)
        code = (int)lua_tointeger(L, -1);
    else if (status != LUA_ERRRUN) /* it wasn't told: no memory, or it can't be shown */
        mull__stderr_print("%s",
                           status == LUA_ERRMEM ? "not enough memory" : "an error in an error");
    atomic_store(&command_code, code);
    mull__stall_leave();
    lua_close(L);
    atomic_store(&at_work, 0);
    if (runs)
        end_watchdog();
    return code;
}
