/* budgets.c: see budgets.h. */
#include "budgets.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "embedded.h"

enum {
    STEP = 1000, /* instructions between two looks at the budget */
    FULL = 100,  /* times that a call may find its memory full, and all its garbage be
                    collected for that */
    THREAD = 1,  /* where the coroutine is on the stack */
    /* Bytes that take as long as an instruction does, or, for those allocated, are as large a part
     * of a call's budget: */
    ALLOCATED = 168, /* 16 MiB for 100,000 */
    WALKED = 64      /* bytes of the state, each time that all its garbage is collected */
};

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

static void *refuse(mull__vm *vm, mull__vm_stop_reason by)
{
    vm->refused = by;
    return NULL;
}

/* is_full says whether so many bytes more are too many. Lua collects all garbage then and asks once
 * more; where it did that over and over, what the call has is as good as full, even if a little
 * comes free each time: to go through all of it takes no instruction. */
static int is_full(mull__vm *vm, size_t more)
{
    int is = vm->used > vm->limit || more > vm->limit - vm->used;
    vm->full += (unsigned)is;
    return is || (vm->full > FULL && vm->budget && vm->stop == MULL__VM_RUNNING);
}

/* resize is the state's lua_Alloc. It calls none of Lua's functions. Where there is no block yet,
 * `old` says what one is for. */
static void *resize(void *data, void *pointer, size_t old, size_t wanted)
{
    mull__vm *vm = data;
    old = pointer ? old : 0;
    size_t more = wanted > old ? wanted - old : 0;
    if (more > 0 && is_full(vm, more))
        return refuse(vm, MULL__VM_MEMORY);
    if (more > vm->unallocated)
        return refuse(vm, MULL__VM_ALLOCATED);
    void *memory = wanted > 0 ? mull__grow(&vm->allocator, pointer, wanted, 1) : NULL;
    if (wanted == 0)
        mull__free(&vm->allocator, pointer);
    else if (!memory && more == 0)
        memory = pointer; /* shrinking can't fail: the old block will do */
    else if (!memory)
        return refuse(vm, MULL__VM_NO_MEMORY);
    vm->unallocated -= more;
    vm->used += wanted - old;
    return memory;
}

/* lift_limits leaves the state its own: nobody has a budget. */
static void lift_limits(mull__vm *vm)
{
    vm->budget = NULL;
    vm->limit = vm->most + vm->spare;
    vm->unallocated = SIZE_MAX;
    vm->left = INT64_MAX;
}

static int new_thread(lua_State *L)
{
    lua_newthread(L);
    return 1;
}

/* has_thread makes another coroutine where a call failed in the last one, in which Lua calls no
 * hook any more. 0: there is no memory. */
static int has_thread(mull__vm *vm)
{
    if (vm->thread)
        return 1;
    lua_pushcfunction(vm->lua, new_thread);
    if (lua_pcall(vm->lua, 0, 1, 0) == LUA_OK)
        vm->thread = lua_tothread(vm->lua, -1);
    lua_replace(vm->lua, THREAD);
    return vm->thread != NULL;
}

int mull__vm_open(mull__vm *vm, const mull_allocator *allocator, size_t most)
{
    *vm = (mull__vm){.allocator = *allocator, .most = most};
    lift_limits(vm);
    vm->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    vm->lua = vm->locale ? lua_newstate(resize, vm) : NULL;
    if (vm->lua) {
        *(mull__vm **)lua_getextraspace(vm->lua) = vm;
        lua_settop(vm->lua, THREAD);
    }
    if (!vm->lua || !has_thread(vm)) {
        mull__vm_close(vm);
        return MULL_ENOMEM;
    }
    return MULL_OK;
}

void mull__vm_spare(mull__vm *vm, size_t more)
{
    vm->spare += more;
    lift_limits(vm);
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
    mull__utf8_repair(vm->message, strlen(vm->message));
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

/* skip_embedded skips the place in an embedded file that error(text, 2) names where that calls what
 * raises, as it does each of the policy's files. It says nothing to the policy's author. */
static const char *skip_embedded(const char *text)
{
    int line;
    for (size_t i = 0; i < mull__embedded_count; i++) {
        const char *rest = skip_place(text, mull__embedded_files[i].name, &line);
        if (rest != text)
            return rest;
    }
    return text;
}

/* keep_raised keeps what was raised, which may be converted for it. Its line, where Lua or error()
 * put it there, is nearer than where it was raised again. */
static int keep_raised(lua_State *L)
{
    mull__vm *vm = mull__vm_of(L);
    const char *text = lua_tostring(L, 1);
    lua_Debug at;
    if (text && find_policy(vm->thread, &at))
        text = skip_embedded(skip_place(text, at.short_src, &vm->line));
    if (text)
        keep_message(vm, text);
    else
        snprintf(vm->message, sizeof vm->message,
                 "error was called with a %s, where a text says more", luaL_typename(L, 1));
    return 0;
}

/* keep_error keeps what the coroutine failed with, which is on top of its stack, and where. */
static void keep_error(mull__vm *vm, int status)
{
    lua_Debug at;
    if (vm->stop != MULL__VM_RUNNING)
        return;
    if (find_policy(vm->thread, &at))
        keep_place(vm, &at);
    if (status != LUA_ERRRUN)
        return;
    lua_pushcfunction(vm->lua, keep_raised);
    lua_xmove(vm->thread, vm->lua, 1);
    if (lua_pcall(vm->lua, 1, 0, 0) != LUA_OK)
        lua_pop(vm->lua, 1);
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

static void count(lua_State *L, lua_Debug *hook);

/* stop ends the call: from now on every instruction raises. */
static int stop(lua_State *L, mull__vm_stop_reason why)
{
    mull__vm *vm = mull__vm_of(L);
    if (vm->stop == MULL__VM_RUNNING) {
        vm->stop = why;
        lua_Debug at;
        if (find_policy(L, &at))
            keep_place(vm, &at);
        lua_sethook(L, count, LUA_MASKCOUNT, 1);
    }
    return raise_stop(L);
}

/* count is the hook. */
static void count(lua_State *L, lua_Debug *hook)
{
    (void)hook;
    if (mull__vm_of(L)->stop != MULL__VM_RUNNING)
        raise_stop(L);
    mull__vm_charge(L, STEP);
}

void mull__vm_charge(lua_State *L, size_t instructions)
{
    mull__vm *vm = mull__vm_of(L);
    vm->left = (uint64_t)vm->left > instructions ? vm->left - (int64_t)instructions : 0;
    if (vm->left == 0)
        stop(L, MULL__VM_INSTRUCTIONS);
}

void mull__vm_collect_for(lua_State *L, size_t bytes)
{
    if (is_full(mull__vm_of(L), bytes))
        lua_gc(L, LUA_GCCOLLECT);
}

int mull__vm_raise_no_memory(lua_State *L)
{
    return stop(L, mull__vm_of(L)->refused);
}

int mull__vm_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    /* error("not enough memory", 0) looks the same to Lua, but no memory was refused. */
    if (status == LUA_ERRMEM && mull__vm_of(L)->refused != MULL__VM_RUNNING)
        return mull__vm_raise_no_memory(L);
    if (mull__vm_of(L)->stop != MULL__VM_RUNNING)
        return raise_stop(L);
    if (status != LUA_OK) {
        lua_pushboolean(L, 0);
        lua_insert(L, -2);
        return 2;
    }
    return lua_gettop(L);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* most_at_once gives the limit of memory that a message tells: the call's own, where that is the
 * nearer one. */
static size_t most_at_once(const mull__vm *vm)
{
    int is_own = vm->budget && vm->budget->at_once && vm->limit < vm->most + vm->spare;
    return is_own ? vm->budget->at_once : vm->most;
}

static void say_bytes(mull__vm *vm, size_t bytes, const char *rest)
{
    size_t mib = bytes / 1024 / 1024;
    int whole_gib = mib % 1024 == 0;
    snprintf(vm->message, sizeof vm->message, "more than %zu %s %s", whole_gib ? mib / 1024 : mib,
             whole_gib ? "GiB" : "MiB", rest);
}

/* failed gives the code for what lua_pcall gave, with its message. */
static int failed(mull__vm *vm, int status)
{
    if (status == LUA_ERRMEM && vm->stop == MULL__VM_RUNNING)
        vm->stop = vm->refused;
    switch (vm->stop) {
    case MULL__VM_NO_MEMORY:
        return MULL_ENOMEM;
    case MULL__VM_MEMORY:
        say_bytes(vm, most_at_once(vm),
                  "of memory; is there a table or a string that grows without end?");
        break;
    case MULL__VM_ALLOCATED:
        say_bytes(vm, vm->budget->in_all,
                  "of memory in all; is there a string or a table that is made again and again?");
        break;
    case MULL__VM_INSTRUCTIONS:
        snprintf(vm->message, sizeof vm->message,
                 "more than %lld instructions; is there a loop without an end?",
                 (long long)vm->budget->instructions);
        break;
    case MULL__VM_RUNNING:
        if (status == LUA_ERRMEM) /* as in mull__vm_pcall; no message handler was told */
            snprintf(vm->message, sizeof vm->message, "not enough memory");
        else if (!vm->message[0])
            snprintf(vm->message, sizeof vm->message, "an error within an error");
        break;
    }
    return MULL_EPOLICY;
}

static void begin(mull__vm *vm, const mull__vm_budget *budget)
{
    vm->stop = vm->refused = MULL__VM_RUNNING;
    vm->full = 0;
    vm->file[0] = vm->message[0] = 0;
    vm->line = 0;
    if (!budget)
        return;
    vm->budget = budget;
    vm->left = budget->instructions;
    vm->unallocated = budget->in_all;
    if (budget->at_once && vm->used < vm->limit && budget->at_once < vm->limit - vm->used)
        vm->limit = vm->used + budget->at_once;
    lua_sethook(vm->thread, count, LUA_MASKCOUNT, STEP);
}

/* taken_of tells how much of its budget a call has taken: instructions, or bytes in all where that
 * is the larger part. */
static int64_t taken_of(const mull__vm *vm)
{
    const mull__vm_budget *budget = vm->budget;
    int64_t instructions = budget->instructions - (vm->left > 0 ? vm->left : 0);
    int64_t bytes = (int64_t)((budget->in_all - vm->unallocated) / ALLOCATED);
    int64_t walked = (int64_t)(vm->full * (vm->used / WALKED));
    return (instructions > bytes ? instructions : bytes) + walked;
}

static int carry_out(mull__vm *vm, lua_CFunction body, void *argument)
{
    lua_State *L = vm->thread;
    int results;
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, argument);
    mull__vm_enter(vm);
    int status = lua_resume(L, vm->lua, 1, &results);
    if (status != LUA_OK)
        keep_error(vm, status);
    mull__vm_leave(vm);
    if (vm->budget)
        lua_sethook(L, NULL, 0, 0);
    if (status == LUA_OK)
        lua_pop(L, results);
    else
        vm->thread = NULL;
    /* Where it went well all the same, a pcall caught the end as its very last act. */
    if (status != LUA_OK || vm->stop != MULL__VM_RUNNING)
        status = failed(vm, status);
    if (vm->budget)
        vm->taken = taken_of(vm);
    lift_limits(vm);
    return status;
}

int mull__vm_call(mull__vm *vm, lua_CFunction body, void *argument, const mull__vm_budget *budget)
{
    vm->taken = 0;
    if (!has_thread(vm))
        return MULL_ENOMEM;
    begin(vm, budget);
    return carry_out(vm, body, argument);
}
