/* functions.c: see functions.h.
 *
 *   registry ──[&functions]──> a function, its err, its ctx, names of fields that it reads,
 *                              the next function, ...; it is on the stack, too, for matchers
 */
#include "functions.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "convert.h"
#include "fields.h"
#include "short.h"

static const char functions, owns, read_answer,
    answered; /* keys of the registry, by their addresses */

/* Places among a function's, and how far functions are apart. */
enum { FUNCTION = 1, ERR, CTX, NAMES, APART = CTX + MULL__READS };

/* Where on the stack they are; behind it is the function called last, with what it has. */
enum { FUNCTIONS = 2 };

/* ---- Opening --------------------------------------------------------------------------------- */

/* push_parents pushes a table child -> parent; the load's result is on top. */
static void push_parents(lua_State *L)
{
    lua_newtable(L);
    lua_getfield(L, -2, "parents");
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TTABLE; i++) {
        lua_getfield(L, -1, "child");
        lua_getfield(L, -2, "parent");
        lua_rawset(L, -5);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

/* keep_function keeps the function on top, the `i`-th, in the table below it. */
static void keep_function(lua_State *L, lua_Integer i, mull__own *own)
{
    own->is_short = mull__is_short(L);
    int count = own->is_short ? mull__push_reads(L) : 0;
    mull__views_note_reads(L, &own->reads, count);
    for (int name = count; name-- > 0;)
        lua_rawseti(L, -3 - name, i * APART + NAMES + name);
    mull__views_push_own(L, &own->views, count);
    lua_rawseti(L, -4, i * APART + CTX);
    lua_rawseti(L, -3, i * APART + ERR);
    lua_rawseti(L, -2, i * APART + FUNCTION);
}

/* keep_functions keeps the load's functions, each with an err and a ctx of its own. */
static void keep_functions(lua_State *L)
{
    lua_getfield(L, -1, "functions");
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    mull__own *own = lua_newuserdatauv(L, (size_t)count * sizeof *own + 1, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &owns);
    ((mull__sandbox *)mull__vm_of(L))->owns = own;
    lua_createtable(L, (int)(count * APART), 0);
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, -2, i + 1);
        keep_function(L, i, &own[i]);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &functions);
    lua_pop(L, 1);
}

static int ready(lua_State *L)
{
    mull__sandbox_result(L);
    push_parents(L);
    mull__views_open(L, lua_gettop(L));
    lua_pop(L, 1);
    keep_functions(L);
    lua_getfield(L, -1, "answer");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &read_answer);
    return 0;
}

int mull__functions_open(mull__sandbox *sandbox)
{
    lua_State *L = sandbox->vm.lua;
    int status = mull__vm_call(&sandbox->vm, ready, NULL, NULL);
    /* A call's bytes are those beyond what is held; its garbage goes in small steps. */
    lua_gc(L, LUA_GCCOLLECT);
    mull__vm_collect_above(&sandbox->vm, 0);
    if (status)
        return status;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &functions);
    lua_settop(L, FUNCTIONS + APART);
    sandbox->at_hand = UINT32_MAX;
    return status;
}

/* ---- Ends of calls --------------------------------------------------------------------------- */

/* place_of says where a function begins; a raise of which no line of the policy is known is told
 * there. 0: it isn't the policy's own. */
static int place_of(mull__sandbox *sandbox, uint32_t number, lua_Debug *at)
{
    lua_State *L = sandbox->vm.lua;
    lua_rawgeti(L, FUNCTIONS, (lua_Integer)number * APART + FUNCTION);
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

static int end(mull__sandbox *sandbox, uint32_t number, int status, char *why, size_t why_size)
{
    mull__views_end(sandbox->vm.lua, &sandbox->views);
    return status ? failed(sandbox, number, status, why, why_size) : status;
}

/* ---- Matchers -------------------------------------------------------------------------------- */

/* match is called with the names that a function reads, the function, its err and its ctx. */
static int match(lua_State *L)
{
    mull__sandbox *sandbox = (mull__sandbox *)mull__vm_of(L);
    const mull__views_reads *reads = &sandbox->owns[sandbox->at_hand].reads;
    mull__views_fill(L, reads->count + ERR, reads);
    lua_call(L, 2, 1);
    sandbox->passes = lua_toboolean(L, -1);
    return 0;
}

/* bring puts a function, and what it has, where the next call finds it. */
static void bring(mull__sandbox *sandbox, uint32_t number)
{
    lua_State *L = sandbox->vm.lua;
    for (int i = 1; i <= APART; i++) {
        lua_rawgeti(L, FUNCTIONS, (lua_Integer)number * APART + i);
        lua_replace(L, FUNCTIONS + i);
    }
    sandbox->at_hand = number;
}

int mull__functions_match(mull__sandbox *sandbox, uint32_t number, const mull_failure *failure,
                          char *why, size_t why_size)
{
    lua_State *L = sandbox->vm.lua;
    const mull__own *own = &sandbox->owns[number];
    if (sandbox->at_hand != number)
        bring(sandbox, number);
    lua_pushcfunction(L, match);
    for (int i = 0; i < own->reads.count; i++)
        lua_pushvalue(L, FUNCTIONS + NAMES + i);
    for (int i = FUNCTION; i <= CTX; i++)
        lua_pushvalue(L, FUNCTIONS + i);
    mull__views_begin(&sandbox->views, &own->views, failure, 0, "err and ctx are");
    int status =
        mull__vm_call_top(&sandbox->vm, own->reads.count + CTX, &mull__call_budget, own->is_short);
    mull__views_end(L, &sandbox->views);
    return status ? failed(sandbox, number, status, why, why_size) : sandbox->passes;
}

/* ---- Overrides ------------------------------------------------------------------------------- */

/* begin_call pushes the `number`-th function, and in its ctx, on top of that, what it is told. */
static void begin_call(lua_State *L, uint32_t number, const mull_failure *failure,
                       const char *given)
{
    mull__sandbox *sandbox = (mull__sandbox *)mull__vm_of(L);
    const mull__own *own = &sandbox->owns[number];
    lua_Integer at = (lua_Integer)number * APART;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &functions);
    lua_rawgeti(L, -1, at + FUNCTION);
    lua_rawgeti(L, -2, at + CTX);
    lua_remove(L, -3);
    mull__views_empty(L, &own->reads); /* it may be a matcher's, too */
    mull__views_begin(&sandbox->views, &own->views, failure, 1, given);
}

static void push_verdict(lua_State *L, const mull_verdict *verdict)
{
    mull__push_verdict(L, verdict);
    mull__views_cover_field(L, "rule");
    mull__views_cover(L);
}

/* set_tier sets what a tier is in the table on top: where it is off, only that. */
static void set_tier(lua_State *L, const char *name, const mull__config_tier *tier)
{
    static const char *const backoffs[] = {
        [MULL__CONSTANT] = "constant",
        [MULL__LINEAR] = "linear",
        [MULL__EXPONENTIAL] = "exponential",
    };
    lua_createtable(L, 0, 4);
    if (tier->attempts == MULL_UNLIMITED)
        mull__set_text(L, "attempts", "unlimited");
    else
        mull__set_integer(L, "attempts", tier->attempts);
    if (tier->attempts != 0) {
        mull__set_integer(L, "delay_ms", tier->delay_ms);
        mull__set_text(L, "backoff", tier->has_list ? NULL : backoffs[tier->backoff]);
        if (tier->max_delay_ms != MULL__NO_CAP)
            mull__set_integer(L, "max_delay_ms", tier->max_delay_ms);
    }
    mull__views_cover(L);
    lua_setfield(L, -2, name);
}

static void set_limit(lua_State *L, const char *name, int64_t limit)
{
    if (limit != MULL__OFF)
        mull__set_integer(L, name, limit);
}

static void push_config(lua_State *L, const mull__config *config)
{
    lua_createtable(L, 0, 6);
    mull__set_text(L, "dead_letter_queue", config->dead_letter_queue);
    set_limit(L, "max_age_ms", config->max_age_ms);
    set_limit(L, "max_attempts", config->max_attempts);
    lua_createtable(L, (int)config->unrecoverable_count, 0);
    for (size_t i = 0; i < config->unrecoverable_count; i++) {
        lua_pushstring(L, config->unrecoverable[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    mull__views_cover(L);
    lua_setfield(L, -2, "unrecoverable");
    set_tier(L, "retry", &config->retry);
    set_tier(L, "redeliver", &config->redeliver);
    mull__views_cover(L);
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
    static const char *const actions[] = {
        [MULL_RETRY] = "retry",
        [MULL_REDELIVER] = "redeliver",
        [MULL_DEAD_LETTER] = "dead_letter",
        [MULL_DISCARD] = "discard",
    };
    const char *action = text_of(L, "action");
    int which = MULL_RETRY;
    while (which < MULL_DISCARD && strcmp(actions[which], action) != 0)
        which++;
    lua_getfield(L, -1, "delay_ms");
    int64_t delay_ms = lua_tointeger(L, -1);
    lua_pop(L, 1);
    *answer = (mull__answer){.given = 1,
                             .action = (mull_action)which,
                             .delay_ms = delay_ms,
                             .queue = text_of(L, "queue"),
                             .note = text_of(L, "note")};
    lua_rawsetp(L, LUA_REGISTRYINDEX, &answered);
}

typedef struct question {
    uint32_t number;
    const mull__overridden *shown;
    mull__answer answer;
} question;

static int ask(lua_State *L)
{
    question *q = lua_touserdata(L, 1);
    begin_call(L, q->number, q->shown->failure, "failure, verdict and config are");
    push_verdict(L, q->shown->verdict);
    push_config(L, q->shown->config);
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

int mull__functions_override(mull__sandbox *sandbox, uint32_t number, const mull__overridden *shown,
                             mull__answer *answer, char *why, size_t why_size)
{
    question q = {.number = number, .shown = shown};
    int status = mull__vm_call(&sandbox->vm, ask, &q, &mull__call_budget);
    if (status == MULL_OK)
        *answer = q.answer;
    return end(sandbox, number, status, why, why_size);
}

/* ---- Notifies -------------------------------------------------------------------------------- */

typedef struct news {
    uint32_t number;
    const mull_event *event;
} news;

/* push_event pushes an event in the place of the ctx on top, which shows its failure. */
static void push_event(lua_State *L, const mull_event *event)
{
    lua_createtable(L, 0, 6);
    lua_insert(L, -2);
    if (!event->failure) {
        lua_pop(L, 1);
        lua_pushnil(L);
    }
    lua_setfield(L, -2, "failure");
    mull__set_text(L, "name", mull_event_name(event->kind));
    if (event->verdict) {
        push_verdict(L, event->verdict);
        lua_setfield(L, -2, "verdict");
    }
    mull__set_rule(L, event->rule);
    mull__views_cover_field(L, "rule");
    mull__set_text(L, "text", event->text);
    mull__set_text(L, "generation", event->generation);
    mull__views_cover(L);
}

static int tell(lua_State *L)
{
    const news *n = lua_touserdata(L, 1);
    begin_call(L, n->number, n->event->failure, "an event is");
    push_event(L, n->event);
    lua_call(L, 1, 0);
    return 0;
}

int mull__functions_notify(mull__sandbox *sandbox, uint32_t number, const mull_event *event,
                           char *why, size_t why_size)
{
    news n = {.number = number, .event = event};
    int status = mull__vm_call(&sandbox->vm, tell, &n, &mull__call_budget);
    return end(sandbox, number, status, why, why_size);
}
