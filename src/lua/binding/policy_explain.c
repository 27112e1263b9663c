/* policy_explain.c: policy:explain, why a verdict is what it is, and what follows; docs/explain.md.
 * All is found first, while nothing of Lua's can raise, and then made into tables. */
#include "analysis/explain.h"
#include "lua/values/scoped_memory.h"

#include "base/alloc.h"
#include "decide/decide.h"
#include "lua/values/values.h"
#include "policy/resolve.h"
#include "policy_module.h"
#include "policy_views.h"

#include <lauxlib.h>

/* finding is an explanation, with the generation whose strings are in it. */
typedef struct finding {
    mull_allocator allocator;
    mull__generation *generation;
    mull__explanation explanation;
    mull_failure failure; /* completed */
} finding;

static int drop(lua_State *L)
{
    finding *f = lua_touserdata(L, 1);
    if (f->explanation.arena.allocator.resize)
        mull__explanation_drop(&f->explanation);
    f->explanation = (mull__explanation){.status = 0};
    if (f->generation)
        mull__generation_unref(f->generation);
    f->generation = NULL;
    return 0;
}

static int look(void *data, const mull__table *table, const mull_failure *failure,
                const mull__runner *runner, uint64_t *seen)
{
    finding *f = data;
    f->failure = *failure;
    return mull__explain(&f->explanation, &f->allocator, table, failure, runner, seen);
}

/* ---- Candidates ------------------------------------------------------------------------------ */

static void set_test(lua_State *L, const mull__candidate *candidate)
{
    if (!candidate->trial.test)
        return;
    mull__push_test(L, candidate->trial.test);
    if (candidate->given.kind != MULL_NIL) {
        mull__push_value(L, &candidate->given);
        lua_setfield(L, -2, "given");
    }
    lua_setfield(L, -2, "test");
}

static void push_candidate(lua_State *L, const void *item)
{
    static const char *const kinds[] = {"unrecoverable", "rule", "cause_rule"};
    static const char *const results[] = {"passed", "lost", "raised"};
    const mull__candidate *candidate = item;
    lua_createtable(L, 0, 8);
    mull__set_text(L, "kind", kinds[candidate->trial.kind]);
    mull__set_text(L, "result", results[candidate->trial.end]);
    mull__push_source(L, candidate->trial.source); /* the built-in one has no place */
    lua_setfield(L, -2, "rule");
    mull__push_matcher(L, candidate->trial.matcher);
    lua_setfield(L, -2, "matcher");
    set_test(L, candidate);
    mull__set_text(L, "why", candidate->trial.why);
    if (candidate->trial.depth > 0) {
        mull__set_integer(L, "depth", candidate->trial.depth);
        mull__set_text(L, "cause", candidate->error->type);
    }
}

/* ---- The timeline ---------------------------------------------------------------------------- */

static void push_step(lua_State *L, const void *item)
{
    const mull__step *step = item;
    mull__push_verdict(L, &step->verdict);
    lua_pushnil(L);
    lua_setfield(L, -2, "generation");
    lua_pushnil(L);
    lua_setfield(L, -2, "delay_ms");
    mull__set_integer(L, "earliest_ms", step->at_ms[MULL__LOW]);
    mull__set_integer(L, "latest_ms", step->at_ms[MULL__HIGH]);
    mull__set_integer(L, "shortest_delay_ms", step->delay_ms[MULL__LOW]);
    mull__set_integer(L, "longest_delay_ms", step->delay_ms[MULL__HIGH]);
    mull__set_integer(L, "attempt", step->attempt);
    mull__set_integer(L, "redeliveries", step->redeliveries);
    mull__set_integer(L, "calls", step->calls);
}

static void set_strip(lua_State *L, const char *field, const mull__timeline_part *strip)
{
    lua_createtable(L, 0, 3);
    mull__set_list(L, "first", strip->first, strip->first_count, sizeof *strip->first, push_step);
    mull__set_list(L, "last", strip->last, strip->last_count, sizeof *strip->last, push_step);
    mull__set_integer(L, "left_out",
                      strip->count - (int64_t)(strip->first_count + strip->last_count));
    lua_setfield(L, -2, field);
}

static void set_timeline(lua_State *L, const mull__explanation *explanation)
{
    lua_createtable(L, 0, 4);
    set_strip(L, "both", &explanation->both);
    int have_parted = explanation->alone[MULL__LOW].count > 0;
    if (have_parted) {
        set_strip(L, "shortest", &explanation->alone[MULL__LOW]);
        set_strip(L, "longest", &explanation->alone[MULL__HIGH]);
    }
    mull__set_flag(L, "cut", explanation->is_cut);
    lua_setfield(L, -2, "timeline");
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void set_override(lua_State *L, const mull__explanation *explanation)
{
    if (!explanation->is_overridden)
        return;
    lua_newtable(L);
    mull__push_verdict(L, &explanation->by_rules);
    lua_setfield(L, -2, "before");
    mull__set_text(L, "failed", explanation->override_failed);
    lua_setfield(L, -2, "override");
}

static void set_failure(lua_State *L, const mull_failure *failure)
{
    lua_createtable(L, 0, 8);
    mull__set_text(L, "type", failure->error->type);
    mull__set_text(L, "message", failure->error->message);
    mull__set_failure_counters(L, failure);
    lua_setfield(L, -2, "failure");
}

static void push_finding(lua_State *L, finding *f)
{
    const mull__table *table = mull__generation_table(f->generation);
    lua_createtable(L, 0, 8);
    f->explanation.verdict.generation = mull__generation_name(f->generation);
    mull__set_text(L, "generation", f->explanation.verdict.generation);
    set_failure(L, &f->failure);
    mull__push_verdict(L, &f->explanation.verdict);
    lua_setfield(L, -2, "verdict");
    set_override(L, &f->explanation);
    mull__set_scopes(L, table, f->failure.consumer, f->failure.transport);
    const mull__effective_settings effective =
        mull__effective_settings_of(table, f->failure.consumer, f->failure.transport);
    mull__set_settings(L, table, &effective);
    mull__set_list(L, "candidates", f->explanation.candidates, f->explanation.candidate_count,
                   sizeof *f->explanation.candidates, push_candidate);
    set_timeline(L, &f->explanation);
}

int mull__policy_explain(lua_State *L)
{
    static const char type_name[] = "mulligan.policy.finding";
    lua_settop(L, 3);
    mull__arena *arena = mull__arena_new(L);
    mull_failure failure;
    finding *f = mull__scoped_userdata(L, sizeof *f, type_name, drop);
    f->allocator = mull__allocator_or_default((mull_allocator){.resize = NULL});
    mull__lua_policy *policy = mull__policy_read_failure(L, arena, &failure);
    int status = mull__policy_decider(policy);
    if (status == MULL_OK)
        status = mull__decider_inspect(policy->decider, &failure, look, f);
    if (status != MULL_OK)
        return mull__fail(L, status, NULL);
    f->generation = mull__generation_ref(mull__decider_generation(policy->decider));
    push_finding(L, f);
    return 1;
}
