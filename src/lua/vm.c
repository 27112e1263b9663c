/* vm.c: see vm.h. */
#include "vm.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "embedded.h"
#include "short.h"

enum {
    STEP = 1000,       /* instructions between two looks at the budget; fewer where they are dear */
    STACK = 100,       /* values: more than a new state has room for */
    FULL = 100,        /* times that a call may find its memory full, and all its garbage be
                          collected for that */
    KEEP_ERROR = 1,    /* where the message handler is on the stack */
    MOST_IN_CHUNKS = 2 /* times what the state may have, for small blocks that are free */
};
_Static_assert((int)MULL__SHORT < (int)STEP, "a short function ends before the first look");

static int keep_error(lua_State *L);

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

static void look_soon(mull__vm *vm);

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

/* is_policys says whether what is at work makes tables of the policy's larger: its own functions,
 * and those of C that write for it. */
static int is_policys(const mull__vm *vm)
{
    lua_Debug at;
    if (!lua_getstack(vm->lua, 0, &at) || !lua_getinfo(vm->lua, "S", &at))
        return 0;
    return at.what[0] == 'C' ? vm->writes : at.source[0] == '@';
}

/* kind_of gives what a new block is for: Lua puts an object's type in place of its old size, and 0
 * for anything else. An array of a hash part's very size is taken for one. */
static mull__price_kind kind_of(const mull__vm *vm, size_t type, size_t wanted)
{
    if (type == LUA_TSTRING)
        return MULL__PRICE_STRING;
    if (type == 0 && mull__price_may_be_hash(&vm->price, wanted) && is_policys(vm))
        return MULL__PRICE_HASH;
    return MULL__PRICE_OTHER;
}

/* is_full says whether so many bytes more are too many. Lua collects all garbage then and asks once
 * more; where it did that over and over, what the call has is as good as full, even if a little
 * comes free each time: to go through all of it takes no instruction. */
static int is_full(mull__vm *vm, size_t more)
{
    unsigned is = vm->used > vm->limit || more > vm->limit - vm->used;
    vm->full += is;
    return is || (vm->full > FULL && vm->budget && vm->stop == MULL__VM_GOING);
}

static void *resize(void *data, void *pointer, size_t old, size_t wanted)
{
    mull__vm *vm = data;
    int is_new_long = !pointer && wanted >= MULL__PRICE_LONG;
    mull__price_kind kind = is_new_long ? kind_of(vm, old, wanted) : MULL__PRICE_OTHER;
    old = pointer ? old : 0;
    size_t more = wanted > old ? wanted - old : 0;
    if (more > 0 && is_full(vm, more))
        return refuse(vm, MULL__VM_MEMORY);
    if (more > vm->unallocated)
        return refuse(vm, MULL__VM_ALLOCATED);
    int64_t filling =
        kind == MULL__PRICE_HASH && vm->budget ? mull__price_filling(&vm->price, wanted) : 0;
    if (filling > 0 && filling > vm->left)
        return refuse(vm, MULL__VM_INSTRUCTIONS);
    void *memory = mull__price_resize(&vm->price, &vm->pool, pointer, old, wanted, kind);
    if (!memory && wanted > 0)
        return refuse(vm, MULL__VM_NO_MEMORY);
    vm->left -= filling;
    vm->unallocated -= more;
    vm->used += wanted - old;
    if (vm->price.has_risen)
        look_soon(vm);
    return memory;
}

/* lift_limits leaves the state its own: nobody has a budget. */
static void lift_limits(mull__vm *vm)
{
    vm->budget = NULL;
    vm->limit = vm->most + vm->spare;
    vm->unallocated = SIZE_MAX;
    vm->left = INT64_MAX;
    vm->step = 0;
}

/* measure_place: how large a place in a table's hash part is, Lua doesn't tell. */
static int measure_place(lua_State *L)
{
    enum { PLACES = 16 };
    mull__price *price = &mull__vm_of(L)->price;
    lua_createtable(L, 0, PLACES);
    price->place = price->newest_size / PLACES;
    return 0;
}

int mull__vm_open(mull__vm *vm, const mull_allocator *allocator, size_t most)
{
    *vm = (mull__vm){.allocator = *allocator,
                     .pool = {.allocator = *allocator, .most = MOST_IN_CHUNKS * most},
                     .most = most,
                     .price.touched = SIZE_MAX};
    lift_limits(vm);
    vm->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    vm->lua = vm->locale ? lua_newstate(resize, vm) : NULL;
    if (!vm->lua) {
        mull__vm_close(vm);
        return MULL_ENOMEM;
    }
    *(mull__vm **)lua_getextraspace(vm->lua) = vm;
    vm->price.finds_stack = 1;
    lua_pushcfunction(vm->lua, measure_place);
    if (!lua_checkstack(vm->lua, STACK) || lua_pcall(vm->lua, 0, 0, 0) != LUA_OK) {
        mull__vm_close(vm);
        return MULL_ENOMEM;
    }
    lua_pushcfunction(vm->lua, keep_error);
    return MULL_OK;
}

void mull__vm_close(mull__vm *vm)
{
    mull__pool_drop(&vm->pool);
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
        text = skip_embedded(skip_place(text, at.short_src, &vm->line));
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

static void count(lua_State *L, lua_Debug *hook);

/* stop ends the call: from now on every instruction raises. */
static int stop(lua_State *L, mull__vm_stop why)
{
    mull__vm *vm = mull__vm_of(L);
    if (vm->stop == MULL__VM_GOING) {
        vm->stop = why;
        lua_Debug at;
        if (find_policy(L, &at))
            keep_place(vm, &at);
        lua_sethook(L, count, LUA_MASKCOUNT, 1);
    }
    return raise_stop(L);
}

static void set_step(lua_State *L, int step)
{
    mull__vm_of(L)->step = step;
    lua_sethook(L, count, step ? LUA_MASKCOUNT : 0, step);
}

static int next_step(const mull__vm *vm)
{
    int64_t price = mull__price_now(&vm->price);
    return price < STEP ? STEP / (int)price : 1;
}

/* look_soon: instructions have become dearer, from the next one on. */
static void look_soon(mull__vm *vm)
{
    if (vm->step > 1 && vm->stop == MULL__VM_GOING) {
        vm->left -= vm->step;
        set_step(vm->lua, 1);
    }
}

/* shrink_stack: Lua makes a stack smaller that is much too large for what is in it when an error is
 * caught. What isn't on it any more shall not make instructions dearer. */
static void shrink_stack(lua_State *L)
{
    lua_pushcfunction(L, raise_stop);
    lua_pcall(L, 0, 0, 0);
    lua_pop(L, 1);
}

void mull__vm_collect_above(mull__vm *vm, size_t bytes)
{
    vm->idle_below = bytes;
    lua_gc(vm->lua, bytes ? LUA_GCSTOP : LUA_GCRESTART);
}

/* collect_again: also where the garbage may be what makes instructions dear. */
static void collect_again(mull__vm *vm)
{
    if (vm->used > vm->idle_below || mull__price_now(&vm->price) > 1)
        mull__vm_collect_above(vm, 0);
}

static void count(lua_State *L, lua_Debug *hook)
{
    (void)hook;
    mull__vm *vm = mull__vm_of(L);
    if (vm->stop != MULL__VM_GOING)
        raise_stop(L);
    if (mull__price_is_deep(&vm->price))
        shrink_stack(L);
    if (vm->idle_below)
        collect_again(vm);
    vm->left -= vm->step * mull__price_look(&vm->price);
    mull__vm_check(L);
    int step = next_step(vm);
    if (step != vm->step)
        set_step(L, step);
}

void mull__vm_check(lua_State *L)
{
    if (mull__vm_of(L)->left <= 0)
        stop(L, MULL__VM_INSTRUCTIONS);
}

void mull__vm_spend(lua_State *L, size_t instructions)
{
    mull__vm *vm = mull__vm_of(L);
    vm->left = (uint64_t)vm->left > instructions ? vm->left - (int64_t)instructions : 0;
    mull__vm_check(L);
}

void mull__vm_spend_lookups(lua_State *L, size_t count)
{
    size_t price = mull__price_lookup(&mull__vm_of(L)->price);
    mull__vm_spend(L, price > 0 && count > SIZE_MAX / price ? SIZE_MAX : price * count);
}

void mull__vm_spend_steps(lua_State *L, uint64_t steps)
{
    mull__vm_spend(L, (size_t)(steps / mull__price_places(&mull__vm_of(L)->price)));
}

void mull__vm_make_room(lua_State *L, size_t bytes)
{
    if (is_full(mull__vm_of(L), bytes))
        lua_gc(L, LUA_GCCOLLECT);
}

int mull__vm_no_memory(lua_State *L)
{
    return stop(L, mull__vm_of(L)->refused);
}

int mull__vm_pcall(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    mull__vm_of(L)->writes = 0;
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
    if (status == LUA_ERRMEM && vm->stop == MULL__VM_GOING)
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
    case MULL__VM_GOING:
        if (status == LUA_ERRMEM) /* as in mull__vm_pcall; no message handler was told */
            snprintf(vm->message, sizeof vm->message, "not enough memory");
        else if (!vm->message[0])
            snprintf(vm->message, sizeof vm->message, "an error within an error");
        break;
    }
    return MULL_EPOLICY;
}

/* collect_strings: garbage that an earlier call left shall not make this one's instructions dearer.
 */
static void collect_strings(mull__vm *vm)
{
    if (vm->price.made != vm->settled) {
        lua_gc(vm->lua, LUA_GCCOLLECT);
        vm->settled = vm->price.made;
        vm->price.has_risen = 1;
    }
}

/* begin: a short function ends before anybody would look at its budget, so that nobody is asked to.
 * What makes instructions dearer on the way asks for looks then. */
static inline void begin(mull__vm *vm, const mull__vm_budget *budget, int is_short)
{
    vm->stop = vm->refused = MULL__VM_GOING;
    vm->full = 0;
    vm->file[0] = vm->message[0] = 0;
    vm->line = vm->writes = 0;
    lift_limits(vm);
    if (!budget)
        return;
    vm->budget = budget;
    vm->left = budget->instructions;
    vm->unallocated = budget->in_all;
    vm->price.touched = budget->touched;
    collect_strings(vm);
    if (budget->at_once && vm->used < vm->limit && budget->at_once < vm->limit - vm->used)
        vm->limit = vm->used + budget->at_once;
    if (vm->price.has_risen)
        mull__price_look(&vm->price);
    int is_calm = mull__price_is_calm(&vm->price);
    vm->step = is_calm ? STEP : next_step(vm);
    if (!is_short || !is_calm)
        lua_sethook(vm->lua, count, LUA_MASKCOUNT, vm->step);
}

/* carry_out calls what is on top of the stack, which gives nothing. */
static inline int carry_out(mull__vm *vm, int arguments)
{
    lua_State *L = vm->lua;
    mull__vm_enter(vm);
    int status = lua_pcall(L, arguments, 0, KEEP_ERROR);
    mull__vm_leave(vm);
    if (lua_gethookmask(L))
        lua_sethook(L, NULL, 0, 0);
    if (status != LUA_OK || vm->stop != MULL__VM_GOING) {
        /* Where it went well all the same, a pcall caught the end as its very last act. */
        lua_pop(L, status != LUA_OK);
        status = failed(vm, status);
    }
    lift_limits(vm);
    return status;
}

int mull__vm_call(mull__vm *vm, lua_CFunction body, void *argument, const mull__vm_budget *budget)
{
    begin(vm, budget, 0);
    lua_pushcfunction(vm->lua, body);
    lua_pushlightuserdata(vm->lua, argument);
    return carry_out(vm, 1);
}

int mull__vm_call_top(mull__vm *vm, int arguments, const mull__vm_budget *budget, int is_short)
{
    begin(vm, budget, is_short);
    return carry_out(vm, arguments);
}
