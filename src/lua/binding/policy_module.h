/* policy_module.h: policies as Lua sees them. */
#ifndef MULL__POLICY_MODULE_H
#define MULL__POLICY_MODULE_H

#include "callbacks.h"
#include "diagnostics.h"
#include "lua/values/scoped_memory.h"

/* mull__lua_policy is shared by the Lua value and by the engines that use it; the last frees it. */
typedef struct mull__lua_policy {
    mull_policy *policy;
    mull_decider *decider; /* made by the first decide */
    mull__callbacks *host;
    mull__diagnostics problems;
    int collecting; /* a load or reload by call is under way, which returns the problems */
    int users;
    int busy; /* its log or event function is at work: one in the other, perhaps */
} mull__lua_policy;

/* mull__policy_at gives the open policy at `index`, or raises. */
mull__lua_policy *mull__policy_at(lua_State *L, int index);

/* mull__policy_read_failure reads the failure at 2, a table or JSON, and at 3 a table { seed =,
 * no_jitter = } or nil, and gives the policy at 1, whose own functions may not ask; raises. From
 * then on nothing may be made in `L` while the policy is in use: a finalizer may close it. */
mull__lua_policy *mull__policy_read_failure(lua_State *L, mull__arena *arena,
                                            mull_failure *failure);

/* mull__policy_decider makes the policy's decider where there is none yet: as mull_decider_new. */
int mull__policy_decider(mull__lua_policy *policy);

/* mull__policy_look is look(policy): how its files look from outside; another number: they may have
 * changed. mull__policy_catch_up is catch_up(policy): reloads it without a word, for what changed
 * while it was loaded first. */
int mull__policy_look(lua_State *L);
int mull__policy_catch_up(lua_State *L);

/* mull__policy_standing is standing(policy): the list of its files; whether they are what runs; and
 * why they were refused, nil where they weren't. */
int mull__policy_standing(lua_State *L);

/* mull__policy_drop ends one use. */
void mull__policy_drop(mull__lua_policy *policy);

/* mull__lua_load is load(path or nil, text or nil, name, log, event, host_path, host_text). */
int mull__lua_load(lua_State *L);

/* mull__open_policy makes the type; its functions and methods are left on the stack, as by
 * mull__type_define. */
void mull__open_policy(lua_State *L);

#endif
