/* plain_push.c: see plain_push.h. */
#include "plain_push.h"

#include "convert.h"
#include "fields.h"
#include "json_encode.h"
#include "policy/delay.h"

#include <lauxlib.h>

/* So many steps of a tier are shown; those beyond are like the last, or can be told from it. */
enum { STEPS = 32 };

void mull__push_list(lua_State *L)
{
    lua_newtable(L);
    mull__json_mark_list(L);
}

/* ---- Matchers -------------------------------------------------------------------------------- */

static void push_plain_value(lua_State *L, const mull__plain_value *value);

static void set_bound(lua_State *L, const char *field, const mull_value *bound)
{
    mull__push_value(L, bound);
    lua_setfield(L, -2, field);
}

static void set_literals(lua_State *L, const mull__plain_value *value)
{
    mull__push_list(L);
    for (size_t i = 0; i < value->literal_count; i++) {
        mull__push_value(L, &value->literals[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "literals");
}

static void set_inner(lua_State *L, const mull__plain_value *value)
{
    push_plain_value(L, value->inner);
    lua_setfield(L, -2, "value");
}

static void push_plain_value(lua_State *L, const mull__plain_value *value)
{
    static const char *const kinds[] = {"one_of",  "between", "contains", "matches",
                                        "present", "absent",  "not"};
    luaL_checkstack(L, 8, NULL);
    lua_newtable(L);
    mull__set_text(L, "kind", kinds[value->kind]);
    switch (value->kind) {
    case MULL__ONE_OF:
        set_literals(L, value);
        break;
    case MULL__BETWEEN:
        set_bound(L, "low", &value->low);
        set_bound(L, "high", &value->high);
        break;
    case MULL__CONTAINS:
    case MULL__MATCHES:
        mull__set_text(L, "text", value->text);
        break;
    case MULL__NOT:
        set_inner(L, value);
        break;
    case MULL__PRESENT:
    case MULL__ABSENT:
        break;
    }
}

void mull__push_test(lua_State *L, const mull__plain_test *test)
{
    static const char *const subjects[] = {"error", "ctx", "message", "header"};
    lua_newtable(L);
    mull__set_text(L, "subject", subjects[test->subject]);
    mull__set_text(L, "name", test->name);
    push_plain_value(L, &test->value);
    lua_setfield(L, -2, "value");
}

static void set_parts(lua_State *L, const mull__plain_matcher *matcher)
{
    mull__push_list(L);
    for (size_t i = 0; i < matcher->part_count; i++) {
        mull__push_matcher(L, &matcher->parts[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "parts");
}

static void set_tests(lua_State *L, const mull__plain_matcher *matcher)
{
    mull__push_list(L);
    for (size_t i = 0; i < matcher->test_count; i++) {
        mull__push_test(L, &matcher->tests[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "tests");
}

void mull__push_matcher(lua_State *L, const mull__plain_matcher *matcher)
{
    static const char *const kinds[] = {NULL, "tests", "function", "all", "any", "none"};
    luaL_checkstack(L, 8, NULL);
    if (matcher->kind == MULL__MATCH_ALWAYS) {
        lua_pushnil(L);
        return;
    }
    lua_newtable(L);
    mull__set_text(L, "kind", kinds[matcher->kind]);
    if (matcher->kind == MULL__MATCH_FUNCTION)
        mull__set_integer(L, "number", matcher->function);
    else if (matcher->kind == MULL__MATCH_TESTS)
        set_tests(L, matcher);
    else
        set_parts(L, matcher);
}

/* ---- Tiers ----------------------------------------------------------------------------------- */

/* set_steps: the delays before jitter, and where they may end. */
static void set_steps(lua_State *L, const mull__plain_tier *tier)
{
    int64_t count =
        tier->attempts == MULL_UNLIMITED || tier->attempts > STEPS ? STEPS : tier->attempts;
    mull__push_list(L);
    for (int64_t step = 1; step <= count; step++) {
        mull__span span = mull__tier_span(tier, step);
        lua_createtable(L, 0, 3);
        mull__set_integer(L, "delay_ms", mull__delay(tier, step));
        mull__set_integer(L, "shortest_ms", span.low_ms);
        mull__set_integer(L, "longest_ms", span.high_ms);
        lua_rawseti(L, -2, step);
    }
    lua_setfield(L, -2, "steps");
}

static void set_jitter(lua_State *L, const mull__plain_tier *tier)
{
    if (tier->jitter_kind == MULL__JITTER_FRACTION)
        lua_pushnumber(L, tier->jitter);
    else
        lua_pushstring(L, tier->jitter_kind == MULL__JITTER_FULL ? "full" : "decorrelated");
    lua_setfield(L, -2, "jitter");
}

static void set_tier(lua_State *L, const char *field, const mull__plain_tier *tier)
{
    static const char *const backoffs[] = {"constant", "linear", "exponential"};
    if (!tier->on)
        return;
    lua_createtable(L, 0, 8);
    if (tier->attempts == MULL_UNLIMITED)
        mull__set_text(L, "attempts", "unlimited");
    else
        mull__set_integer(L, "attempts", tier->attempts);
    mull__set_text(L, "backoff", tier->delays ? "list" : backoffs[tier->backoff]);
    if (!tier->delays && tier->backoff == MULL__EXPONENTIAL) {
        lua_pushnumber(L, tier->factor);
        lua_setfield(L, -2, "factor");
    }
    if (tier->max_delay_ms != MULL__NO_CAP)
        mull__set_integer(L, "max_delay_ms", tier->max_delay_ms);
    set_jitter(L, tier);
    mull__set_text(L, "hint", tier->hint);
    set_steps(L, tier);
    lua_setfield(L, -2, field);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

void mull__push_declaration(lua_State *L, const mull__rule *rule)
{
    lua_newtable(L);
    mull__set_text(L, "type", rule->source.type);
    mull__set_text(L, "file", rule->source.file);
    if (rule->source.file)
        mull__set_integer(L, "line", rule->source.line);
    mull__set_text(L, "scope", rule->source.scope);
    mull__push_matcher(L, &rule->matcher);
    lua_setfield(L, -2, "matcher");
}

void mull__push_rule(lua_State *L, const mull__rule *rule, const char *queue)
{
    mull__push_declaration(L, rule);
    set_tier(L, "retry", &rule->retry);
    set_tier(L, "redeliver", &rule->redeliver);
    mull__set_text(L, "action", mull_action_name(rule->end));
    if (rule->end == MULL_DEAD_LETTER)
        mull__set_text(L, "queue", rule->queue ? rule->queue : queue);
    mull__set_text(L, "note", rule->note);
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

static void set_limit(lua_State *L, const char *field, int64_t limit)
{
    if (limit != MULL__FOREVER)
        mull__set_integer(L, field, limit);
}

void mull__set_extent(lua_State *L, const mull__extent *extent)
{
    set_limit(L, "calls", extent->calls);
    set_limit(L, "shortest_ms", extent->shortest_ms);
    set_limit(L, "longest_ms", extent->longest_ms);
    mull__set_flag(L, "rough", extent->rough);
}
