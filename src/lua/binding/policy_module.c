/* policy_module.c: load, decide, reload; see docs/lua-module.md. */
#include "policy_module.h"

#include "base/alloc.h"
#include "base/files_look.h"
#include "decide/decide.h"
#include "lua/values/metatable.h"
#include "lua/values/values.h"
#include "policy/table_internal.h"
#include "policy_views.h"
#include "wire/failure_value.h"
#include "wire/json_value.h"
#include "wire/verdict_json.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

static const char type_name[] = "mulligan.policy";

/* ---- Callbacks of the library ---------------------------------------------------------------- */

/* What an engine's own reload finds is told by the event alone. */
static void on_problem(const char *file, int line, const char *text, void *data)
{
    mull__lua_policy *policy = data;
    if (policy->collecting)
        mull__diagnostic_keep(file, line, text, &policy->problems);
}

/* An engine decides by the policy as well, so these are what says whether the policy is busy. */
static void on_log(mull_level level, const char *text, void *data)
{
    mull__lua_policy *policy = data;
    policy->busy++;
    mull__callback_log(policy->host, policy, level, text);
    policy->busy--;
}

static void on_event(const mull_event *event, void *data)
{
    mull__lua_policy *policy = data;
    policy->busy++;
    mull__callback_event(policy->host, policy, event);
    policy->busy--;
}

/* ---- Life ------------------------------------------------------------------------------------ */

void mull__policy_drop(mull__lua_policy *policy)
{
    if (--policy->users > 0)
        return;
    mull_decider_free(policy->decider);
    mull_policy_free(policy->policy);
    mull__diagnostics_drop(&policy->problems);
    free(policy);
}

static int collect(lua_State *L)
{
    mull__lua_policy **slot = luaL_checkudata(L, 1, type_name);
    if (*slot) {
        mull__unregister_owner(L, *slot);
        mull__policy_drop(*slot);
    }
    *slot = NULL;
    return 0;
}

mull__lua_policy *mull__policy_at(lua_State *L, int index)
{
    mull__lua_policy **slot = luaL_checkudata(L, index, type_name);
    if (!*slot)
        luaL_error(L, "the policy is closed");
    return *slot;
}

/* push_policy pushes a policy that isn't loaded yet, with the functions at `log` and after it. */
static mull__lua_policy *push_policy(lua_State *L, int log)
{
    mull__callbacks *host = mull__callbacks_of(L);
    mull__lua_policy **slot = lua_newuserdatauv(L, sizeof(mull__lua_policy *), 1);
    *slot = NULL;
    luaL_setmetatable(L, type_name);
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, log);
    lua_setfield(L, -2, "log");
    lua_pushvalue(L, log + 1);
    lua_setfield(L, -2, "event");
    lua_setiuservalue(L, -2, 1);
    *slot = calloc(1, sizeof **slot);
    if (!*slot) {
        luaL_error(L, "not enough memory");
        return NULL;
    }
    **slot = (mull__lua_policy){.host = host, .users = 1};
    mull__register_owner(L, -1, *slot);
    return *slot;
}

int mull__lua_load(lua_State *L)
{
    size_t text_size = 0;
    const char *path = luaL_optstring(L, 1, NULL);
    const char *text = luaL_optlstring(L, 2, NULL, &text_size);
    const char *name = luaL_optstring(L, 3, NULL);
    size_t host_text_size = 0;
    const char *host_path = luaL_optstring(L, 6, NULL);
    const char *host_text = luaL_optlstring(L, 7, NULL, &host_text_size);
    lua_settop(L, 7);
    mull__lua_policy *policy = push_policy(L, 4);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.path = text ? name : path;
    options.text = text;
    options.text_size = text_size;
    options.host_path = host_path;
    options.host_text = host_text;
    options.host_text_size = host_text_size;
    options.problem = on_problem;
    options.log = on_log;
    if (lua_isfunction(L, 5))
        options.event = on_event;
    options.data = policy;
    policy->collecting = 1;
    int status = mull_policy_load(&policy->policy, &options);
    policy->collecting = 0;
    if (status == 0)
        return 1;
    return mull__diagnostics_fail(L, &policy->problems, status);
}

/* ---- Methods --------------------------------------------------------------------------------- */

/* refuse_if_busy keeps a policy's own log and event functions from coming back into it. */
static void refuse_if_busy(lua_State *L, const mull__lua_policy *policy)
{
    if (policy->busy)
        luaL_error(L, "not possible in the policy's own log or event function");
}

/* read_plain reads a failure in JSON without Lua; 0: it isn't a plain one. */
static int read_plain(lua_State *L, mull__arena *arena, mull_failure *failure)
{
    size_t size;
    mull_value value;
    const char *text = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &size) : NULL;
    return text && mull__json_value(&value, arena, text, size) == 0 &&
           mull__failure_of_value(failure, arena, &value) == 0;
}

mull__lua_policy *mull__policy_read_failure(lua_State *L, mull__arena *arena, mull_failure *failure)
{
    refuse_if_busy(L, mull__policy_at(L, 1));
    if (!read_plain(L, arena, failure))
        mull__read_failure(L, 2, arena, failure);
    if (lua_type(L, 3) != LUA_TNIL) {
        luaL_checktype(L, 3, LUA_TTABLE);
        if (lua_getfield(L, 3, "seed") != LUA_TNIL) {
            if (!lua_isinteger(L, -1))
                luaL_error(L, "seed must be a whole number");
            failure->seed = (uint64_t)lua_tointeger(L, -1);
        }
        if (lua_getfield(L, 3, "no_jitter"), lua_toboolean(L, -1))
            failure->flags |= MULL_NO_JITTER;
        lua_pop(L, 2);
    }
    return mull__policy_at(L, 1); /* a finalizer may have closed it */
}

int mull__policy_decider(mull__lua_policy *policy)
{
    return policy->decider ? MULL_OK : mull_decider_new(&policy->decider, policy->policy);
}

/* keep copies the texts of a verdict into the arena: what is made of them may run the collector,
 * and a finalizer that decides takes those of the decider away. */
static int keep(mull__arena *arena, mull_verdict *verdict)
{
    const char **texts[] = {&verdict->queue,      &verdict->note,      &verdict->rule.file,
                            &verdict->rule.scope, &verdict->rule.type, &verdict->generation};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!*texts[i])
            continue;
        *texts[i] = mull__arena_strndup(arena, *texts[i], strlen(*texts[i]));
        if (!*texts[i])
            return MULL_ENOMEM;
    }
    return 0;
}

/* decide_at pushes the verdict on the failure at index 2, by `push`, or nil and why there is none.
 */
static int decide_at(lua_State *L, void (*push)(lua_State *L, const mull_verdict *verdict))
{
    lua_settop(L, 3);
    mull__arena *arena = mull__arena_new(L);
    mull_failure failure;
    mull__lua_policy *policy = mull__policy_read_failure(L, arena, &failure);
    mull_verdict verdict = MULL_INIT(mull_verdict);
    int status = mull__policy_decider(policy);
    if (status == 0)
        status = mull_decide(policy->decider, &failure, &verdict);
    if (status == 0)
        status = keep(arena, &verdict);
    if (status != 0)
        return mull__fail(L, status, NULL);
    push(L, &verdict);
    mull__arena_free(arena);
    return 1;
}

static int decide(lua_State *L)
{
    return decide_at(L, mull__push_verdict);
}

typedef struct verdict_text {
    mull_allocator allocator;
    mull__json_text json;
} verdict_text;

static int drop_text(lua_State *L)
{
    verdict_text *text = lua_touserdata(L, 1);
    mull__free(&text->allocator, text->json.memory);
    text->json.memory = NULL;
    return 0;
}

static void push_verdict_text(lua_State *L, const mull_verdict *verdict)
{
    verdict_text *text = mull__scoped_userdata(L, sizeof *text, "mulligan.verdict_text", drop_text);
    text->allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    text->json.allocator = &text->allocator;
    int status = mull__verdict_to_json(&text->json, verdict);
    if (status != 0)
        luaL_error(L, status == MULL_EINVAL ? "a text that isn't UTF-8 can't be JSON"
                                            : "not enough memory");
    lua_pushlstring(L, text->json.memory, text->json.size);
}

/* decide_json decides on a text in JSON, and gives one. */
static int decide_json(lua_State *L)
{
    return decide_at(L, push_verdict_text);
}

static int drop_problems(lua_State *L)
{
    mull__diagnostics_drop(lua_touserdata(L, 1));
    return 0;
}

static int reload(lua_State *L)
{
    static const char list_name[] = "mulligan.policy.problems";
    size_t size = 0;
    const char *text = luaL_optlstring(L, 2, NULL, &size);
    mull__diagnostics *problems =
        mull__scoped_userdata(L, sizeof *problems, list_name, drop_problems);
    mull__lua_policy *policy = mull__policy_at(L, 1);
    refuse_if_busy(L, policy);
    policy->collecting = 1;
    int status = mull_policy_reload(policy->policy, text, size);
    policy->collecting = 0;
    *problems = policy->problems;
    policy->problems = (mull__diagnostics){NULL, NULL};
    if (status < 0)
        return mull__diagnostics_fail(L, problems, status);
    if (status == 0)
        lua_pushboolean(L, 1);
    else
        lua_pushliteral(L, "unchanged");
    return 1;
}

int mull__policy_look(lua_State *L)
{
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    char *paths = mull__policy_files(mull__policy_at(L, 1)->policy, &allocator);
    lua_pushinteger(L, (lua_Integer)mull__files_look(paths));
    mull__free(&allocator, paths);
    return 1;
}

int mull__policy_catch_up(lua_State *L)
{
    mull__lua_policy *policy = mull__policy_at(L, 1);
    policy->collecting = 1;
    mull__policy_reload_files(policy->policy, 1);
    policy->collecting = 0;
    mull__diagnostics_drop(&policy->problems);
    return 0;
}

/* files_of gives the policy's files, as mull__policy_files, in the memory of this call. */
static const char *files_of(lua_State *L, mull_policy *policy)
{
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    mull__arena *arena = mull__arena_new(L);
    char *paths = mull__policy_files(policy, &allocator);
    size_t size = 0;
    while (paths && paths[size])
        size += strlen(paths + size) + 1;
    const char *copy = mull__arena_strndup(arena, paths ? paths : "", size);
    mull__free(&allocator, paths);
    return copy ? copy : "";
}

int mull__policy_standing(lua_State *L)
{
    mull_policy *policy = mull__policy_at(L, 1)->policy;
    mull__files_status standing;
    const char *path = files_of(L, policy);
    mull__policy_files_status(policy, &standing);
    lua_newtable(L);
    for (lua_Integer i = 1; *path; i++, path += strlen(path) + 1) {
        lua_pushstring(L, path);
        lua_rawseti(L, -2, i);
    }
    lua_pushboolean(L, standing.files_run);
    lua_pushstring(L, standing.why[0] ? standing.why : NULL);
    return 3;
}

static int generation(lua_State *L)
{
    char name[33];
    mull_policy_generation(mull__policy_at(L, 1)->policy, name);
    lua_pushstring(L, name);
    return 1;
}

static int rules(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)mull_policy_rules(mull__policy_at(L, 1)->policy));
    return 1;
}

/* scopes() is how many scopes have rules. */
static int scopes(lua_State *L)
{
    mull__generation *generation = mull__policy_current(mull__policy_at(L, 1)->policy);
    const mull__table *table = mull__generation_table(generation);
    lua_Integer count = 0;
    for (size_t i = 0; i < table->scope_count; i++)
        count += mull__scope_rules(&table->scopes[i]) > 0;
    mull__generation_unref(generation);
    lua_pushinteger(L, count);
    return 1;
}

static int close_policy(lua_State *L)
{
    mull__lua_policy **slot = luaL_checkudata(L, 1, type_name);
    if (*slot && (*slot)->users > 1)
        return luaL_error(L, "an engine uses this policy; close that first");
    if (*slot)
        refuse_if_busy(L, *slot);
    return collect(L);
}

/* leave is what `local policy <close>` does at the end of its block. An error on its way there, the
 * second argument, isn't replaced by one of ours: the collector closes what can't be closed yet. */
static int leave(lua_State *L)
{
    mull__lua_policy *const *slot = luaL_checkudata(L, 1, type_name);
    int in_use = *slot && ((*slot)->users > 1 || (*slot)->busy);
    return in_use && !lua_isnoneornil(L, 2) ? 0 : close_policy(L);
}

static int is_closed(lua_State *L)
{
    mull__lua_policy *const *slot = luaL_checkudata(L, 1, type_name);
    lua_pushboolean(L, !*slot);
    return 1;
}

static int show(lua_State *L)
{
    mull__lua_policy *const *slot = luaL_checkudata(L, 1, type_name);
    if (!*slot) {
        lua_pushfstring(L, "%s: closed", type_name);
        return 1;
    }
    char name[33];
    mull_policy_generation((*slot)->policy, name);
    size_t count = mull_policy_rules((*slot)->policy);
    lua_pushfstring(L, "%s: %I rule%s, generation %s", type_name, (LUAI_UACINT)count,
                    count == 1 ? "" : "s", name);
    return 1;
}

void mull__open_policy(lua_State *L)
{
    static const luaL_Reg methods[] = {{"decide", decide},
                                       {"decide_json", decide_json},
                                       {"reload", reload},
                                       {"generation", generation},
                                       {"rules", rules},
                                       {"scopes", scopes},
                                       {"table", mull__policy_table},
                                       {"explain", mull__policy_explain},
                                       {"check", mull__policy_check},
                                       {"close", close_policy},
                                       {"closed", is_closed},
                                       {NULL, NULL}};
    static const luaL_Reg meta[] = {
        {"__gc", collect}, {"__close", leave}, {"__tostring", show}, {NULL, NULL}};
    mull__type_define(L, type_name, meta, methods);
}
