/* budgets.h: a Lua state for other people's Lua, and what keeps it within bounds: its memory, its
 * instructions, its locale, and its errors. Every way into it is a call of mull__vm_call.
 *
 * The state's allocator never looks into the state: Lua may be in the middle of moving its stack.
 * So calls run in a coroutine: Lua tells no message handler of a lack of memory, but the stack of a
 * coroutine that failed still stands, and says where it was.
 *
 * A budget that is spent can't be caught: from then on every instruction raises, and the state's
 * own pcall raises again what it caught, until mull__vm_call returns. */
#ifndef MULL__BUDGETS_H
#define MULL__BUDGETS_H

#include "mulligan.h"

#include <locale.h>
#include <lua.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mull__vm_stop_reason {
    MULL__VM_RUNNING,
    MULL__VM_INSTRUCTIONS, /* the call's budget is spent */
    MULL__VM_MEMORY,       /* the bytes at a time are */
    MULL__VM_ALLOCATED,    /* the bytes in all are */
    MULL__VM_NO_MEMORY     /* the embedder's allocator has none */
} mull__vm_stop_reason;

/* mull__vm_budget is what a call may take. */
typedef struct mull__vm_budget {
    int64_t instructions;
    size_t at_once; /* bytes, beyond what the state has when the call begins; 0: only the state's
                       own limit holds */
    size_t in_all;  /* bytes, those given back included */
} mull__vm_budget;

/* mull__vm is usually the first member of a larger struct, which must not move. */
typedef struct mull__vm {
    lua_State *lua;    /* where calls are prepared */
    lua_State *thread; /* of it, where they run; NULL: the last one failed */
    mull_allocator allocator;
    locale_t locale;               /* "C", whatever the embedder's is */
    locale_t outside;              /* the thread's own, during a call */
    size_t used, most;             /* bytes that the state has, and may have */
    size_t spare;                  /* bytes that it may have besides, of which no message tells */
    const mull__vm_budget *budget; /* the call's; NULL: it has none */
    size_t limit;                  /* bytes that the state may have during the call */
    size_t unallocated;            /* bytes that it may still allocate */
    uint32_t full;                 /* how often so far it found no room, and all garbage was
                                      collected */
    int64_t left;                  /* instructions that it may still take */
    int64_t taken;                 /* of its budget by the last call that had one, in instructions:
                                      what it allocated and collected is converted */
    mull__vm_stop_reason stop;     /* why the call must end */
    mull__vm_stop_reason refused;  /* who refused memory last */
    /* What went wrong in the call that failed last, where the policy's own text was at work: */
    char file[256]; /* "": nowhere in it */
    int line;
    char message[1024]; /* without file and line */
} mull__vm;

/* mull__vm_open makes the state, without any library. MULL_ENOMEM. */
int mull__vm_open(mull__vm *vm, const mull_allocator *allocator, size_t most);

/* mull__vm_spare lets a state have more memory than messages tell of. Not within a call. */
void mull__vm_spare(mull__vm *vm, size_t more);

void mull__vm_close(mull__vm *vm);

/* mull__vm_of gives a state's vm. */
static inline mull__vm *mull__vm_of(lua_State *L)
{
    return *(mull__vm **)lua_getextraspace(L);
}

/* mull__vm_call calls `body` with `argument` as a light userdata, within a budget; NULL: within the
 * state's memory. MULL_ENOMEM; MULL_EPOLICY: it raised, and `file`, `line` and `message` say where
 * and what. The stack is left as it was. */
int mull__vm_call(mull__vm *vm, lua_CFunction body, void *argument, const mull__vm_budget *budget);

/* mull__vm_charge takes instructions for what a function of C does, and raises where there are no
 * more. */
void mull__vm_charge(lua_State *L, size_t instructions);

/* mull__vm_collect_for collects garbage where `bytes` more would be too many. Lua does so for
 * objects, but not for the buffers of its library. May raise. */
void mull__vm_collect_for(lua_State *L, size_t bytes);

/* mull__vm_leave and mull__vm_enter, which can't fail, stand around what calls the embedder from
 * within a call: its functions have the thread's own locale, Lua has "C", by which strings compare,
 * numbers are written and letters change their case. */
static inline void mull__vm_enter(mull__vm *vm)
{
    vm->outside = uselocale(vm->locale);
}

static inline void mull__vm_leave(mull__vm *vm)
{
    uselocale(vm->outside);
}

/* mull__vm_raise raises a text with the policy's line before it, whoever called. */
int mull__vm_raise(lua_State *L, const char *text);

/* mull__vm_pcall is pcall for the policy. */
int mull__vm_pcall(lua_State *L);

/* mull__vm_raise_no_memory raises what a spent limit of memory raises, after LUA_ERRMEM. */
int mull__vm_raise_no_memory(lua_State *L);

#endif
