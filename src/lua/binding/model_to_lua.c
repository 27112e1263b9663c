/* model_to_lua.c: rules as Lua tables; see policy_views.h. */
#include "policy_views.h"

#include "lua/values/json.h"
#include "lua/values/values.h"
#include "policy/delay.h"

#include <lauxlib.h>
#include <stdlib.h>

void mull__push_list(lua_State *L)
{
    lua_newtable(L);
    mull__json_mark_list(L);
}

void mull__push_items(lua_State *L, const void *items, size_t count, size_t bytes,
                      void (*push)(lua_State *L, const void *item))
{
    luaL_checkstack(L, 8, NULL);
    mull__push_list(L);
    for (size_t i = 0; i < count; i++) {
        push(L, (const char *)items + i * bytes);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

void mull__set_list(lua_State *L, const char *field, const void *items, size_t count, size_t bytes,
                    void (*push)(lua_State *L, const void *item))
{
    mull__push_items(L, items, count, bytes, push);
    lua_setfield(L, -2, field);
}

/* ---- Matchers -------------------------------------------------------------------------------- */

static void push_literal(lua_State *L, const void *value)
{
    mull__push_value(L, value);
}

static void push_plain_value(lua_State *L, const mull__condition *value)
{
    luaL_checkstack(L, 8, NULL);
    lua_newtable(L);
    mull__set_text(L, "kind", mull__value_words[value->kind]);
    if (value->kind == MULL__ONE_OF)
        mull__set_list(L, "literals", value->literals, value->literal_count,
                       sizeof *value->literals, push_literal);
    if (value->kind == MULL__BETWEEN) {
        mull__push_value(L, &value->low);
        lua_setfield(L, -2, "low");
        mull__push_value(L, &value->high);
        lua_setfield(L, -2, "high");
    }
    if (value->kind == MULL__CONTAINS || value->kind == MULL__MATCHES)
        mull__set_text(L, "text", value->text);
    if (value->kind == MULL__NOT) {
        push_plain_value(L, value->inner);
        lua_setfield(L, -2, "value");
    }
}

void mull__push_test(lua_State *L, const void *item)
{
    const mull__field_test *test = item;
    lua_newtable(L);
    mull__set_text(L, "subject", mull__subject_words[test->subject]);
    mull__set_text(L, "name", test->name);
    push_plain_value(L, &test->value);
    lua_setfield(L, -2, "value");
}

static void push_part(lua_State *L, const void *matcher)
{
    mull__push_matcher(L, matcher);
}

void mull__push_matcher(lua_State *L, const mull__matcher *matcher)
{
    if (matcher->kind == MULL__MATCH_ALWAYS) {
        lua_pushnil(L);
        return;
    }
    lua_newtable(L);
    mull__set_text(L, "kind", mull__matcher_words[matcher->kind]);
    if (matcher->kind == MULL__MATCH_FUNCTION)
        mull__set_integer(L, "number", matcher->function);
    else if (matcher->kind == MULL__MATCH_TESTS)
        mull__set_list(L, "tests", matcher->tests, matcher->test_count, sizeof *matcher->tests,
                       mull__push_test);
    else
        mull__set_list(L, "parts", matcher->parts, matcher->part_count, sizeof *matcher->parts,
                       push_part);
}

/* ---- Tiers ----------------------------------------------------------------------------------- */

/* set_steps: the delays before jitter, and where they may end. */
static void set_steps(lua_State *L, const mull__tier_config *tier, int64_t most)
{
    int64_t count =
        tier->attempts == MULL_UNLIMITED || tier->attempts > most ? most : tier->attempts;
    mull__push_list(L);
    for (int64_t step = 1; step <= count; step++) {
        mull__ms_range span = mull__tier_ms_range(tier, step);
        lua_createtable(L, 0, 3);
        mull__set_integer(L, "delay_ms", mull__delay(tier, step));
        mull__set_integer(L, "shortest_ms", span.low_ms);
        mull__set_integer(L, "longest_ms", span.high_ms);
        lua_rawseti(L, -2, step);
    }
    lua_setfield(L, -2, "steps");
}

static void set_tier(lua_State *L, const char *field, const mull__tier_config *tier, int64_t steps)
{
    static const char *const jitters[] = {NULL, "full", "decorrelated"};
    if (!tier->on)
        return;
    lua_createtable(L, 0, 8);
    if (tier->attempts == MULL_UNLIMITED)
        mull__set_text(L, "attempts", "unlimited");
    else
        mull__set_integer(L, "attempts", tier->attempts);
    mull__set_text(L, "backoff", tier->delays ? "list" : mull__backoff_words[tier->backoff]);
    if (!tier->delays && tier->backoff == MULL__EXPONENTIAL)
        mull__set_number(L, "factor", tier->factor);
    if (tier->max_delay_ms != MULL__NO_CAP)
        mull__set_integer(L, "max_delay_ms", tier->max_delay_ms);
    if (tier->jitter_kind == MULL__JITTER_FRACTION)
        mull__set_number(L, "jitter", tier->jitter);
    mull__set_text(L, "jitter", jitters[tier->jitter_kind]);
    mull__set_text(L, "hint", tier->hint);
    set_steps(L, tier, steps);
    lua_setfield(L, -2, field);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

void mull__push_declaration(lua_State *L, const void *item)
{
    const mull__rule *rule = item;
    mull__push_source(L, &rule->source);
    mull__push_matcher(L, &rule->matcher);
    lua_setfield(L, -2, "matcher");
}

void mull__push_rule(lua_State *L, const mull__rule *rule, const char *queue, int64_t steps)
{
    mull__push_declaration(L, rule);
    set_tier(L, "retry", &rule->retry, steps);
    set_tier(L, "redeliver", &rule->redeliver, steps);
    mull__set_text(L, "action", mull_action_name(rule->end));
    if (rule->end == MULL_DEAD_LETTER)
        mull__set_text(L, "queue", rule->queue ? rule->queue : queue);
    mull__set_text(L, "note", rule->note);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void push_limit(lua_State *L, const mull__per *per, const mull__source_pos *place)
{
    lua_newtable(L);
    if (per->kind != MULL__PER_CONSUMER)
        mull__set_text(L, "per", mull__per_words[per->kind]);
    mull__set_text(L, "header", per->header);
    mull__set_text(L, "file", place->file);
    mull__set_integer(L, "line", place->line);
}

static void push_name(lua_State *L, const void *item)
{
    lua_pushstring(L, *(const char *const *)item);
}

static void set_types(lua_State *L, const char *field, const mull__type_list *list)
{
    if (list->count > 0)
        mull__set_list(L, field, list->names, list->count, sizeof *list->names, push_name);
}

static void set_start(lua_State *L, const mull__rate_limit *limit)
{
    if (limit->after != MULL__OFF) {
        mull__set_integer(L, "after", limit->after);
    } else {
        mull__set_number(L, "ratio", limit->ratio);
        mull__set_integer(L, "window_ms", limit->window_ms);
        mull__set_integer(L, "least", limit->least);
    }
    mull__set_integer(L, "messages", limit->messages);
    if (limit->within_ms != MULL__OFF)
        mull__set_integer(L, "within_ms", limit->within_ms);
    set_types(L, "only", &limit->only);
    set_types(L, "except", &limit->except);
}

void mull__push_rate_limit(lua_State *L, const void *item)
{
    const mull__rate_limit *limit = item;
    push_limit(L, &limit->per, &limit->place);
    set_start(L, limit);
    mull__set_integer(L, "wait_ms", limit->wait_ms);
    mull__set_integer(L, "max_wait_ms", limit->max_wait_ms);
    mull__set_text(L, "hint", limit->hint);
    mull__set_integer(L, "successes", limit->successes);
    mull__set_flag(L, "keep", limit->keep);
    if (limit->ramp_ms > 0)
        mull__set_integer(L, "ramp_ms", limit->ramp_ms);
}

void mull__push_call_limit(lua_State *L, const void *item)
{
    const mull__call_limit *limit = item;
    push_limit(L, &limit->per, &limit->place);
    mull__set_integer(L, "count", limit->count);
    mull__set_integer(L, "unit_ms", limit->unit_ms);
    mull__set_integer(L, "burst", limit->burst);
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

static void set_limit(lua_State *L, const char *field, int64_t limit)
{
    if (limit != MULL__FOREVER)
        mull__set_integer(L, field, limit);
}

void mull__set_range(lua_State *L, const mull__range *range)
{
    set_limit(L, "calls", range->calls);
    set_limit(L, "shortest_ms", range->shortest_ms);
    set_limit(L, "longest_ms", range->longest_ms);
    mull__set_flag(L, "rough", range->rough);
    set_limit(L, "last_call_ms", range->last_call_ms);
}

mull__range *mull__ranges_of_rules(const mull__scope *scope,
                                   const mull__effective_limit_list *mixes, int64_t *effort)
{
    size_t count = mull__scope_rules(scope);
    const mull__rule *before = NULL;
    mull__range *ranges = calloc(count + 1, sizeof *ranges);
    for (size_t i = 0; i < count && ranges; i++) {
        const mull__rule *rule = mull__rule_at(scope, i);
        if (before)
            ranges[i] = ranges[i - 1];
        if (mull__range_of_rule(&ranges[i], rule, before, mixes, effort)) {
            free(ranges);
            return NULL;
        }
        before = rule;
    }
    return ranges;
}
