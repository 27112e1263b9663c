/* policy_check.c: check(policy, consumers or nil, transports or nil): findings and bounds as data,
 * to which lua/mulligan/check/ has the words. */
#include "analysis/lint.h"
#include "base/alloc.h"
#include "base/redact.h"
#include "decide/decide.h"
#include "lua/values/scoped_memory.h"
#include "lua/values/values.h"
#include "policy_module.h"
#include "policy_views.h"
#include "runtime/check.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>

/* report is what is kept until Lua can take it, all from malloc. */
typedef struct report {
    mull__generation *generation;
    const mull__table *table;
    mull_allocator allocator;
    mull__scope_users users;
    mull__scope_user *user_list;
    mull__worker *workers;
    const char **transports;
    mull__finding *findings;
    size_t finding_count, finding_room;
    int status;
    mull__diagnostics refused;
    mull__fates fates;
    mull__effective_limit_list mixes;
    mull__range *ranges; /* of the rules of one scope */
    /* The efforts that are left: for mixes, and for the walks by any rule and by one. */
    int64_t mixing, following, following_one;
} report;

/* What may be spent on bounds, in nanoseconds, roughly. */
enum { MIXING = 100000000, FOLLOWING = 300000000 };

static int drop(lua_State *L)
{
    report *r = lua_touserdata(L, 1);
    if (r->generation)
        mull__generation_unref(r->generation);
    free(r->user_list);
    free(r->workers);
    free(r->transports);
    free(r->findings);
    free(r->ranges);
    mull__diagnostics_drop(&r->refused);
    if (r->mixes.allocator)
        mull__effective_limits_free(&r->mixes);
    if (r->fates.allocator)
        mull__fates_free(&r->fates);
    *r = (report){0};
    return 0;
}

static void *need(lua_State *L, void *memory)
{
    if (!memory)
        luaL_error(L, "not enough memory");
    return memory;
}

/* ---- Who it is for --------------------------------------------------------------------------- */

/* text_at is a field's text, which lives as long as the table on top; NULL: there is none. */
static const char *text_at(lua_State *L, const char *field)
{
    lua_getfield(L, -1, field);
    const char *text = luaL_optstring(L, -1, NULL);
    lua_pop(L, 1);
    return text;
}

/* wrong_url keeps what is wrong with a transport's URL, in the words of `run`. */
static void wrong_url(report *r, const mull__worker *worker, const char *url, const char *why)
{
    const char *transport = worker->transport ? worker->transport : "";
    char text[1024], name[201], shown[512]; /* somebody may have given the URL for its name */
    mull__redact(name, sizeof name, transport, transport);
    mull__redact(shown, sizeof shown, why, url);
    snprintf(text, sizeof text, "transport '%s': %s", name, shown);
    mull__diagnostic_keep(NULL, 0, worker->transport ? text : shown, &r->refused);
}

/* read_consumer reads the one on top, of which nothing but its name may be known. */
static void read_consumer(lua_State *L, report *r, size_t at)
{
    mull__worker *worker = &r->workers[at];
    const char *url = text_at(L, "url");
    char why[512] = "";
    worker->name = text_at(L, "name");
    worker->queue = text_at(L, "queue");
    worker->transport = text_at(L, "transport");
    lua_getfield(L, -1, "timeout_ms");
    worker->timeout_ms = luaL_optinteger(L, -1, 0);
    lua_pop(L, 1);
    if (url && mull__worker_probe(worker, url, why, sizeof why))
        wrong_url(r, worker, url, why);
    int64_t timeout_ms = worker->timeout_ms;
    r->user_list[at] = (mull__scope_user){worker->name, worker->transport, worker->queue,
                                          timeout_ms == MULL_NEVER ? MULL__FOREVER : timeout_ms,
                                          worker->can.longest_delay_ms};
}

/* read_users takes the consumers at 2 and the transports' names at 3. */
static void read_users(lua_State *L, report *r)
{
    r->users.handler_ms = MULL__HANDLER_MS;
    if (lua_isnil(L, 2))
        return;
    size_t count = r->users.count = lua_rawlen(L, 2);
    r->users.items = r->user_list = need(L, calloc(count + 1, sizeof *r->user_list));
    r->workers = need(L, calloc(count + 1, sizeof *r->workers));
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        read_consumer(L, r, i);
        lua_pop(L, 1);
    }
    count = r->users.transport_count = lua_rawlen(L, 3);
    r->users.transports = r->transports = need(L, calloc(count + 1, sizeof *r->transports));
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        r->transports[i] = luaL_checkstring(L, -1);
        lua_pop(L, 1);
    }
}

/* ---- Findings -------------------------------------------------------------------------------- */

static void keep_lint(void *data, const mull__finding *finding)
{
    report *r = data;
    if (r->finding_count == r->finding_room) {
        size_t room = 2 * r->finding_room + 16;
        mull__finding *grown = realloc(r->findings, room * sizeof *grown);
        if (!grown) {
            r->status = MULL_ENOMEM;
            return;
        }
        r->findings = grown;
        r->finding_room = room;
    }
    r->findings[r->finding_count++] = *finding;
}

static void push_finding(lua_State *L, const void *item)
{
    const mull__finding *finding = item;
    const mull_rule about = {finding->file, finding->line, finding->scope, finding->type};
    mull__push_source(L, &about);
    mull__set_integer(L, "kind", finding->kind);
    mull__set_text(L, "word", finding->word);
    mull__set_integer(L, "number", finding->number);
    mull__set_integer(L, "limit", finding->limit);
    mull__push_source(L, &finding->other);
    lua_setfield(L, -2, "other");
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

static void push_rule(lua_State *L, const mull__scope *scope, const mull__rule *rule,
                      const mull__range *range)
{
    mull__push_source(L, &rule->source);
    mull__set_flag(L, "cause", mull__is_cause_rule(scope, rule));
    mull__set_flag(L, "matcher", rule->matcher.kind != MULL__MATCH_ALWAYS);
    mull__set_range(L, range);
}

/* measure gives a scope's range, and those of its rules in the report; 0: its rules are nowhere in
 * force. */
static int measure(lua_State *L, report *r, const mull__scope *scope, mull__range *range)
{
    if (mull__effective_limits_of(&r->mixes, r->table, scope, &r->users, &r->mixing,
                                  &r->allocator) ||
        mull__range_of_scope(range, &r->fates, scope, &r->mixes, &r->following))
        need(L, NULL);
    r->ranges = need(L, mull__ranges_of_rules(scope, &r->mixes, &r->following_one));
    return r->mixes.count > 0;
}

static void forget(report *r)
{
    mull__effective_limits_free(&r->mixes);
    r->mixes = (mull__effective_limit_list){0};
    free(r->ranges);
    r->ranges = NULL;
}

static void set_setting(lua_State *L, const char *field, int64_t value)
{
    if (value != MULL__OFF)
        mull__set_integer(L, field, value);
}

static void push_scope(lua_State *L, const report *r, const mull__scope *scope,
                       const mull__range *range)
{
    const mull__effective_limits all = mull__effective_limits_all(&r->mixes);
    lua_newtable(L);
    mull__set_text(L, "scope", scope->label);
    mull__set_range(L, range);
    mull__set_flag(L, "overridden", all.overridden);
    mull__set_flag(L, "default", mull__has_default(scope));
    set_setting(L, "max_attempts", all.max_attempts);
    set_setting(L, "max_age_ms", all.max_age_ms);
    set_setting(L, "deadline_ms", all.deadline_ms);
    lua_newtable(L);
    for (size_t i = 0; i < mull__scope_rules(scope); i++) {
        push_rule(L, scope, mull__rule_at(scope, i), &r->ranges[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "rules");
}

static void set_bounds(lua_State *L, report *r)
{
    lua_Integer count = 0;
    lua_newtable(L);
    for (size_t i = 0; i < r->table->scope_count; i++) {
        const mull__scope *scope = &r->table->scopes[i];
        mull__range range;
        if (mull__scope_rules(scope) == 0)
            continue;
        if (measure(L, r, scope, &range)) {
            push_scope(L, r, scope, &range);
            lua_rawseti(L, -2, ++count);
        }
        forget(r);
    }
    lua_setfield(L, -2, "bounds");
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* set_refused: what `run` would refuse. */
static void set_refused(lua_State *L, report *r)
{
    if (r->workers && !r->refused.first)
        mull__check_workers(r->workers, r->users.count, r->table, mull__diagnostic_keep,
                            &r->refused);
    mull__diagnostics_push(L, &r->refused);
    lua_setfield(L, -2, "refused");
}

/* new_report leaves a report on the policy at 1 behind the three arguments. */
static report *new_report(lua_State *L)
{
    static const char type_name[] = "mulligan.policy.check";
    lua_settop(L, 3);
    report *r = mull__scoped_userdata(L, sizeof *r, type_name, drop);
    r->generation = mull__policy_current(mull__policy_at(L, 1)->policy);
    r->table = mull__generation_table(r->generation);
    r->allocator = mull__allocator_or_default((mull_allocator){0});
    return r;
}

int mull__policy_check(lua_State *L)
{
    int names_only = lua_toboolean(L, 4);
    report *r = new_report(L);
    read_users(L, r);
    r->mixing = MIXING;
    r->following = r->following_one = FOLLOWING;
    if (names_only)
        mull__lint_not_there(r->table, &r->users, keep_lint, r);
    else if (mull__fates_of(&r->fates, r->table, NULL, &r->allocator) ||
             mull__lint_run(&r->fates, &r->users, &r->allocator, keep_lint, r))
        need(L, NULL);
    if (r->status != MULL_OK)
        need(L, NULL);
    lua_newtable(L);
    mull__set_list(L, "findings", r->findings, r->finding_count, sizeof *r->findings, push_finding);
    if (names_only)
        return 1;
    mull__set_text(L, "generation", mull__generation_name(r->generation));
    set_bounds(L, r);
    set_refused(L, r);
    return 1;
}
