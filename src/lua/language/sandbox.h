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

typedef struct mull__sandbox {
    mull__vm vm;
    mull__proxies proxies;
    const mull__proxy_pair *owns; /* of each function */
    mull__source *source;         /* borrowed */
    const char *main;             /* the name of the first file; borrowed */
    mull__log *log;               /* borrowed */
    int again;                    /* the files ran before */
    int silent;                   /* what is printed goes nowhere */
} mull__sandbox;

/* mull__sandbox_new makes a sandbox for the files of a source, `again` where they ran before;
 * `silent`: what they print while they are loaded goes nowhere. MULL_ENOMEM. */
int mull__sandbox_new(mull__sandbox **out, const mull_allocator *allocator, mull__source *source,
                      const char *main, mull__log *log, int again, int silent);
void mull__sandbox_free(mull__sandbox *sandbox);

/* mull__sandbox_load runs the files and ends the load: mistakes in the policy, of whatever kind,
 * are in the result then. MULL_ENOMEM; MULL_EPOLICY where not even that could be done: vm.message.
 */
int mull__sandbox_load(mull__sandbox *sandbox);

/* mull__sandbox_result pushes what collect gave, as docs/plain-rules.md has it. */
void mull__sandbox_result(lua_State *L);

#endif
