/* functions.c: see functions.h.
 *
 *   registry ──[Lua's own indices]──> a function, its err, its ctx, the next function, ...
 */
#include "functions.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "lua/values/values.h"

_Static_assert((int)MULL__CALL_INSTRUCTIONS == (int)MULL__CALL_STEPS,
               "functions and patterns have the same budget");

static const char owns, read_answer, answered; /* keys of the registry, by their addresses */

/* Indices of the first function, its err and its ctx, and how far functions are apart. */
enum { FUNCTION = LUA_RIDX_LAST + 1, ERR, CTX, APART = 3 };

/* ---- Opening --------------------------------------------------------------------------------- */

/* register_functions keeps the load's functions, each with an err and a ctx of its own. */
static void register_functions(lua_State *L)
{
    lua_getfield(L, -1, "functions");
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    mull__proxy_pair *own = lua_newuserdatauv(L, (size_t)count * sizeof *own + 1, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &owns);
    ((mull__sandbox *)mull__vm_of(L))->owns = own;
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, -1, i + 1);
        lua_rawseti(L, LUA_REGISTRYINDEX, i * APART + FUNCTION);
        mull__proxies_push_pair(L, &own[i]);
        lua_rawseti(L, LUA_REGISTRYINDEX, i * APART + CTX);
        lua_rawseti(L, LUA_REGISTRYINDEX, i * APART + ERR);
    }
    lua_pop(L, 1);
}

static int ready(lua_State *L)
{
    const mull__sandbox *typed_by = lua_touserdata(L, 1);
    mull__sandbox_result(L);
    if (typed_by)
        mull__sandbox_shared(L, typed_by);
    else
        lua_getfield(L, -1, "parent_of");
    mull__proxies_open(L);
    register_functions(L);
    lua_getfield(L, -1, "answer");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &read_answer);
    return 0;
}

int mull__functions_open(mull__sandbox *sandbox, const mull__sandbox *typed_by)
{
    enum { PAUSE = 200 }; /* Lua's own */
    int status = mull__vm_call(&sandbox->vm, ready, (void *)(uintptr_t)typed_by, NULL);
    /* A call's bytes are those beyond what is held; its garbage goes in small steps. */
    lua_gc(sandbox->vm.lua, LUA_GCINC, PAUSE, 0, 0);
    lua_gc(sandbox->vm.lua, LUA_GCCOLLECT);
    return status;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* question is what a call is about, and what it gave. */
typedef struct question {
    uint32_t number;
    const mull_failure *failure;
    const mull_verdict *verdict;
    const mull__config *config;
    const mull_event *event;
    int64_t *steps; /* NULL: nobody counts them */
    mull__answer answer;
    int passes;
} question;

/* push_call_arguments pushes the function, and in its err, unless its ctx has that in it, and in
 * its ctx, what it is told. */
static void push_call_arguments(lua_State *L, const question *q, int has_error, const char *given)
{
    mull__sandbox *sandbox = (mull__sandbox *)mull__vm_of(L);
    lua_Integer at = (lua_Integer)q->number * APART;
    lua_rawgeti(L, LUA_REGISTRYINDEX, at + FUNCTION);
    if (!has_error)
        lua_rawgeti(L, LUA_REGISTRYINDEX, at + ERR);
    lua_rawgeti(L, LUA_REGISTRYINDEX, at + CTX);
    mull__proxies_begin(&sandbox->proxies, &sandbox->owns[q->number], q->failure, has_error, given);
}

/* place_of says where a function begins; a raise of which no line of the policy is known is told
 * there. 0: it isn't the policy's own. */
static int place_of(mull__sandbox *sandbox, uint32_t number, lua_Debug *at)
{
    lua_State *L = sandbox->vm.lua;
    lua_rawgeti(L, LUA_REGISTRYINDEX, (lua_Integer)number * APART + FUNCTION);
    lua_getinfo(L, ">S", at);
    return at->source[0] == '@';
}

/* failed gives the status of a call, with why it failed. */
static int failed(mull__sandbox *sandbox, uint32_t number, int status, char *why, size_t why_size)
{
    const mull__vm *vm = &sandbox->vm;
    lua_Debug at;
    if (status == MULL_ENOMEM)
        snprintf(why, why_size, "%s", mull_strerror(status));
    else if (vm->file[0])
        snprintf(why, why_size, "%s:%d: %s", vm->file, vm->line, vm->message);
    else if (place_of(sandbox, number, &at))
        snprintf(why, why_size, "%s:%d: %s", at.source + 1, at.linedefined, vm->message);
    else
        snprintf(why, why_size, "%s", vm->message);
    return status;
}

/* call calls the function that a question is about, by `body`. */
static int call(mull__sandbox *sandbox, lua_CFunction body, question *q, char *why, size_t why_size)
{
    int status = mull__vm_call(&sandbox->vm, body, q, &mull__function_budget);
    mull__proxies_end(sandbox->vm.lua, &sandbox->proxies);
    if (q->steps)
        *q->steps -= sandbox->vm.taken;
    return status ? failed(sandbox, q->number, status, why, why_size) : status;
}

/* ---- Matchers -------------------------------------------------------------------------------- */

static int match(lua_State *L)
{
    question *q = lua_touserdata(L, 1);
    push_call_arguments(L, q, 0, "err and ctx are");
    lua_call(L, 2, 1);
    q->passes = lua_toboolean(L, -1);
    return 0;
}

int mull__functions_match(void *sandbox, uint32_t number, const mull_failure *failure,
                          int64_t *steps, char *why, size_t why_size)
{
    question q = {.number = number, .failure = failure, .steps = steps};
    int status = call(sandbox, match, &q, why, why_size);
    return status ? status : q.passes;
}

/* ---- Overrides ------------------------------------------------------------------------------- */

/* set_tier sets what a tier is in the table on top: where it is off, only that. */
static void set_tier(lua_State *L, const char *name, const mull__config_tier *tier)
{
    lua_createtable(L, 0, 4);
    if (tier->attempts == MULL_UNLIMITED)
        mull__set_text(L, "attempts", "unlimited");
    else
        mull__set_integer(L, "attempts", tier->attempts);
    if (tier->attempts != 0) {
        mull__set_integer(L, "delay_ms", tier->delay_ms);
        mull__set_text(L, "backoff", tier->has_list ? NULL : mull__backoff_words[tier->backoff]);
        if (tier->max_delay_ms != MULL__NO_CAP)
            mull__set_integer(L, "max_delay_ms", tier->max_delay_ms);
    }
    lua_setfield(L, -2, name);
}

static void set_limit(lua_State *L, const char *name, int64_t limit)
{
    if (limit != MULL__OFF)
        mull__set_integer(L, name, limit);
}

static void push_config(lua_State *L, const mull__config *config)
{
    lua_createtable(L, 0, 7);
    mull__set_text(L, "dead_letter_queue", config->dead_letter_queue);
    set_limit(L, "max_age_ms", config->max_age_ms);
    set_limit(L, "max_attempts", config->max_attempts);
    lua_createtable(L, (int)config->unrecoverable_count, 0);
    for (size_t i = 0; i < config->unrecoverable_count; i++) {
        lua_pushstring(L, config->unrecoverable[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "unrecoverable");
    set_tier(L, "retry", &config->retry);
    set_tier(L, "redeliver", &config->redeliver);
    if (config->has_rule) {
        lua_createtable(L, 0, 2);
        set_tier(L, "retry", &config->rule_retry);
        set_tier(L, "redeliver", &config->rule_redeliver);
        lua_setfield(L, -2, "rule");
    }
    mull__proxy_wrap(L);
}

static const char *text_of(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    const char *text = lua_tostring(L, -1); /* the table keeps it */
    lua_pop(L, 1);
    return text;
}

/* take_answer takes the plain answer on top, and keeps it. */
static void take_answer(lua_State *L, mull__answer *answer)
{
    const char *action = text_of(L, "action");
    mull_action which = MULL_RETRY;
    while (which < MULL_DISCARD && strcmp(mull_action_name(which), action) != 0)
        which++;
    lua_getfield(L, -1, "delay_ms");
    int64_t delay_ms = lua_tointeger(L, -1);
    lua_pop(L, 1);
    *answer = (mull__answer){.given = 1,
                             .action = which,
                             .delay_ms = delay_ms,
                             .queue = text_of(L, "queue"),
                             .note = text_of(L, "note")};
    lua_rawsetp(L, LUA_REGISTRYINDEX, &answered);
}

static int ask(lua_State *L)
{
    question *q = lua_touserdata(L, 1);
    push_call_arguments(L, q, 1, "failure, verdict and config are");
    mull__push_verdict(L, q->verdict);
    mull__proxy_wrap(L);
    push_config(L, q->config);
    lua_call(L, 3, 1);
    if (lua_isnil(L, -1))
        return 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &read_answer);
    lua_pushvalue(L, -2);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1))
        return luaL_error(L,
                          "override must return nothing or one of policy.retry(...), "
                          "policy.redeliver(...), policy.dead_letter(...) and policy.discard(...), "
                          "not a %s",
                          luaL_typename(L, -2));
    take_answer(L, &q->answer);
    return 0;
}

int mull__functions_override(void *sandbox, uint32_t number, const mull_failure *failure,
                             const mull_verdict *verdict, const mull__config *config,
                             mull__answer *answer, char *why, size_t why_size)
{
    question q = {.number = number, .failure = failure, .verdict = verdict, .config = config};
    int status = call(sandbox, ask, &q, why, why_size);
    if (status == MULL_OK)
        *answer = q.answer;
    return status;
}

/* ---- Notifies -------------------------------------------------------------------------------- */

/* push_event pushes an event in the place of the ctx on top, which shows its failure. */
static void push_event(lua_State *L, const mull_event *event)
{
    mull_event rest = *event;
    rest.failure = NULL;
    mull__push_event(L, &rest);
    lua_insert(L, -2);
    if (!event->failure) {
        lua_pop(L, 1);
        lua_pushnil(L);
    }
    lua_setfield(L, -2, "failure");
    mull__proxy_wrap(L);
}

static int tell(lua_State *L)
{
    question *q = lua_touserdata(L, 1);
    push_call_arguments(L, q, 1, "an event is");
    push_event(L, q->event);
    lua_call(L, 1, 0);
    return 0;
}

int mull__functions_notify(void *sandbox, uint32_t number, const mull_event *event, int64_t *steps,
                           char *why, size_t why_size)
{
    question q = {.number = number, .failure = event->failure, .event = event, .steps = steps};
    return call(sandbox, tell, &q, why, why_size);
}
