/* sandbox.h: a policy's files, run with nothing around them that could do harm or differ from run
 * to run. lua/mulligan/sandbox.lua says what is around them, lua/mulligan/policy.lua what the words
 * in them mean; this loads the two, runs the files, and keeps the result. */
#ifndef MULL__SANDBOX_H
#define MULL__SANDBOX_H

#include "decide/decide.h"
#include "lua/machine/budgets.h"
#include "proxies.h"
#include "source.h"

/* The budgets of a load. A second run of the same files has a little more, so that it never fails
 * where the first one just passed. */
enum {
    MULL__LOAD_INSTRUCTIONS = 50000000,
    MULL__AGAIN_INSTRUCTIONS = 60000000,
    MULL__CALL_INSTRUCTIONS = 100000,
    MULL__LOAD_MIB = 64,
    MULL__AGAIN_SPARE_MIB = 8,
    MULL__LOADED_SPARE_MIB = 16 /* besides, once the files ran */
};

/* mull__function_budget is that of a call of a matcher, override or notify. */
extern const mull__vm_budget mull__function_budget;

/* mull__sandbox_options is what a sandbox is for; all that it points to is borrowed. */
typedef struct mull__sandbox_options {
    mull__source *source;
    const char *main; /* the name of the first file */
    mull__log *log;
    int again;                        /* the files ran before */
    int silent;                       /* what they print while they are loaded goes nowhere */
    int is_host;                      /* it is for the source's host policy, which `main` names */
    const struct mull__sandbox *host; /* that of the host policy, loaded; NULL: there is none */
} mull__sandbox_options;

typedef struct mull__sandbox {
    mull__vm vm;
    mull__proxies proxies;
    const mull__proxy_pair *owns; /* of each function */
    mull__sandbox_options options;
    uint32_t function_count; /* mull__compile sets it */
} mull__sandbox;

int mull__sandbox_new(mull__sandbox **out, const mull_allocator *allocator,
                      const mull__sandbox_options *options); /* MULL_ENOMEM */
void mull__sandbox_free(mull__sandbox *sandbox);

/* mull__sandbox_load runs the files and ends the load: mistakes in the policy, of whatever kind,
 * are in the result then. MULL_ENOMEM; MULL_EPOLICY where not even that could be done: vm.message.
 */
int mull__sandbox_load(mull__sandbox *sandbox);

/* mull__sandbox_result pushes what collect gave, as docs/plain-rules.md has it. */
void mull__sandbox_result(lua_State *L);

/* mull__sandbox_shared pushes, in another sandbox's state, a copy of what a loaded one shares with
 * it: `shared` of its result. May raise. */
void mull__sandbox_shared(lua_State *L, const mull__sandbox *from);

#endif
