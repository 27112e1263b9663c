/* vm.c: see vm.h. */
#include "vm.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

enum { STEP = 1000 }; /* instructions between two looks at the budget */

mull__vm *mull__vm_of(lua_State *L)
{
    return *(mull__vm **)lua_getextraspace(L);
}

/* find_policy finds the innermost function at work that is a policy's: "@" begins the names that
 * its files have as chunks, "=" those of C and of what is embedded. */
static int find_policy(lua_State *L, lua_Debug *at)
{
    for (int level = 0; lua_getstack(L, level, at); level++)
        if (lua_getinfo(L, "Sl", at) && at->source[0] == '@')
            return 1;
    return 0;
}

static void keep_place(mull__vm *vm, const lua_Debug *at)
{
    snprintf(vm->file, sizeof vm->file, "%s", at->source + 1);
    vm->line = at->currentline;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* refuse keeps where the state was when it got no memory: no message handler is told of that. To
 * ask for a place takes no memory. */
static void *refuse(mull__vm *vm, mull__vm_stop by)
{
    lua_Debug at;
    vm->refused = by;
    if (vm->lua && vm->stop == MULL__VM_GOING && find_policy(vm->lua, &at))
        keep_place(vm, &at);
    return NULL;
}

static void *resize(void *data, void *pointer, size_t old, size_t wanted)
{
    mull__vm *vm = data;
    if (!pointer)
        old = 0; /* Lua puts the kind of object there */
    if (wanted == 0) {
        mull__free(&vm->allocator, pointer);
        vm->used -= old;
        return NULL;
    }
    size_t most = vm->most + vm->spare;
    if (wanted > old && (wanted > most || vm->used - old > most - wanted))
        return refuse(vm, MULL__VM_MEMORY);
    void *memory = mull__grow(&vm->allocator, pointer, wanted, 1);
    if (!memory && (wanted > old || !pointer))
        return refuse(vm, MULL__VM_NO_MEMORY);
    if (!memory)
        memory = pointer; /* shrinking can't fail: the old block will do */
    vm->used += wanted - old;
    return memory;
}

int mull__vm_open(mull__vm *vm, const mull_allocator *allocator, size_t most)
{
    *vm = (mull__vm){.allocator = *allocator, .most = most};
    vm->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    vm->lua = vm->locale ? lua_newstate(resize, vm) : NULL;
    if (!vm->lua) {
        mull__vm_close(vm);
        return MULL_ENOMEM;
    }
    *(mull__vm **)lua_getextraspace(vm->lua) = vm;
    return MULL_OK;
}

void mull__vm_close(mull__vm *vm)
{
    if (vm->lua)
        lua_close(vm->lua);
    if (vm->locale)
        freelocale(vm->locale);
    vm->lua = NULL;
    vm->locale = (locale_t)0;
}

/* ---- What went wrong ------------------------------------------------------------------------- */

static void keep_message(mull__vm *vm, const char *text)
{
    snprintf(vm->message, sizeof vm->message, "%s", text);
    mull__utf8_mend(vm->message, strlen(vm->message));
}

/* skip_place gives what follows "name:line: " in a message, and the line in it; where the message
 * begins in another way, all of it. */
static const char *skip_place(const char *text, const char *name, int *line)
{
    size_t length = strlen(name);
    int number = 0, taken = 0;
    if (strncmp(text, name, length) != 0 ||
        sscanf(text + length, ":%9d:%n", &number, &taken) != 1 || taken == 0)
        return text;
    *line = number;
    text += length + (size_t)taken;
    return *text == ' ' ? text + 1 : text;
}

/* keep_error is the message handler: what was raised, and where. An error value says its own line
 * where Lua or error() put it there; that is nearer than where it was raised again. */
static int keep_error(lua_State *L)
{
    mull__vm *vm = mull__vm_of(L);
    if (vm->stop != MULL__VM_GOING)
        return 1;
    lua_Debug at;
    int found = find_policy(L, &at);
    if (found)
        keep_place(vm, &at);
    const char *text = lua_tostring(L, 1);
    if (text && found)
        text = skip_place(text, at.short_src, &vm->line);
    if (text) {
        keep_message(vm, text);
        return 1;
    }
    snprintf(vm->message, sizeof vm->message, "error was called with a %s, where a text says more",
             luaL_typename(L, 1));
    return 1;
}

int mull__vm_raise(lua_State *L, const char *text)
{
    lua_Debug at;
    if (find_policy(L, &at))
        lua_pushfstring(L, "%s:%d: %s", at.short_src, at.currentline, text);
    else
        lua_pushstring(L, text);
    return lua_error(L);
}

/* ---- Budgets --------------------------------------------------------------------------------- */

static int raise_stop(lua_State *L)
{
    lua_pushliteral(L, "the budget is spent");
    return lua_error(L);
}

static void count(lua_State *L, lua_Debug *hook)
{
    (void)hook;
    mull__vm *vm = mull__vm_of(L);
    if (vm->stop == MULL__VM_GOING) {
        vm->left -= STEP;
        if (vm->left > 0)
            return;
        lua_Debug at;
        if (find_policy(L, &at))
            keep_place(vm, &at);
        vm->stop = MULL__VM_INSTRUCTIONS;
        lua_sethook(L, count, LUA_MASKCOUNT, 1);
    }
    raise_stop(L);
}

int mull__vm_no_memory(lua_State *L)
{
    mull__vm *vm = mull__vm_of(L);
    if (vm->stop == MULL__VM_GOING) {
        vm->stop = vm->refused;
        lua_Debug at;
        if (find_policy(L, &at))
            keep_place(vm, &at);
        lua_sethook(L, count, LUA_MASKCOUNT, 1);
    }
    return raise_stop(L);
}

int mull__vm_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    /* error("not enough memory", 0) looks the same to Lua, but no memory was refused. */
    if (status == LUA_ERRMEM && mull__vm_of(L)->refused != MULL__VM_GOING)
        return mull__vm_no_memory(L);
    if (mull__vm_of(L)->stop != MULL__VM_GOING)
        return raise_stop(L);
    if (status != LUA_OK) {
        lua_pushboolean(L, 0);
        lua_insert(L, -2);
        return 2;
    }
    return lua_gettop(L);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* How strings compare, numbers are written and letters change their case is the locale's in Lua. */
void mull__vm_enter(mull__vm *vm)
{
    vm->outside = uselocale(vm->locale);
}

void mull__vm_leave(mull__vm *vm)
{
    uselocale(vm->outside);
}

/* failed gives the code for what lua_pcall gave, with its message. */
static int failed(mull__vm *vm, int status)
{
    if (status == LUA_ERRMEM && vm->stop == MULL__VM_GOING)
        vm->stop = vm->refused;
    switch (vm->stop) {
    case MULL__VM_NO_MEMORY:
        return MULL_ENOMEM;
    case MULL__VM_MEMORY:
        snprintf(
            vm->message, sizeof vm->message,
            "more than %zu MiB of memory; is there a table or a string that grows without end?",
            vm->most / 1024 / 1024);
        break;
    case MULL__VM_INSTRUCTIONS:
        snprintf(vm->message, sizeof vm->message,
                 "more than %lld instructions; is there a loop without an end?",
                 (long long)vm->budget);
        break;
    case MULL__VM_GOING:
        if (status == LUA_ERRMEM) /* as in mull__vm_pcall; no message handler was told */
            snprintf(vm->message, sizeof vm->message, "not enough memory");
        else if (!vm->message[0])
            snprintf(vm->message, sizeof vm->message, "an error within an error");
        break;
    }
    return MULL_EPOLICY;
}

int mull__vm_call(mull__vm *vm, lua_CFunction body, void *argument, int64_t budget)
{
    lua_State *L = vm->lua;
    vm->stop = vm->refused = MULL__VM_GOING;
    vm->budget = vm->left = budget;
    vm->file[0] = vm->message[0] = 0;
    vm->line = 0;
    lua_sethook(L, count, LUA_MASKCOUNT, STEP);
    int top = lua_gettop(L);
    lua_pushcfunction(L, keep_error);
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, argument);
    mull__vm_enter(vm);
    int status = lua_pcall(L, 1, 0, top + 1);
    mull__vm_leave(vm);
    lua_settop(L, top);
    /* A pcall that caught a spent budget as its very last act must not hide it. */
    if (status == LUA_OK && vm->stop == MULL__VM_GOING)
        return MULL_OK;
    return failed(vm, status);
}
