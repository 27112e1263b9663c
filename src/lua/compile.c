/* compile.c: see compile.h. Reads what docs/plain-rules.md says into src/policy/plain.h.
 *
 * All arrays of the plain policy are userdata in the sandbox's state, and its strings are Lua's, so
 * an error in the middle leaks nothing; the registry keeps them until the table has its copies. */
#include "compile.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

static const char kept; /* a key of the registry, by its address */

/* ---- Reading tables: each reads a field of the table on top -----------------------------------
 */

/* keep_new pushes a table that keeps what is taken. */
static void keep_new(lua_State *L)
{
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept);
}

/* take gives zeroed memory for `count` things. */
static void *take(lua_State *L, size_t count, size_t bytes)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept);
    void *memory = lua_newuserdatauv(L, count * bytes + 1, 0);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
    return memset(memory, 0, count * bytes + 1);
}

/* keep_as keeps what was taken last under the value at `index` too. */
static void keep_as(lua_State *L, int index)
{
    lua_pushvalue(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept);
    lua_insert(L, -2);
    lua_rawgeti(L, -2, (lua_Integer)lua_rawlen(L, -2));
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* The fields of rules, of which there are many, are read by keys that are on the stack from its
 * bottom on, so that none of their names is looked up for each. */
enum { TYPE = 2, FILE_NAME, LINE, SCOPE, MATCHER, RETRY, REDELIVER, QUEUE, DISCARD };

static void push_keys(lua_State *L)
{
    static const char *const names[] = {"type",  "file",      "line",  "scope",  "matcher",
                                        "retry", "redeliver", "queue", "discard"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        lua_pushstring(L, names[i]);
}

/* get pushes the value of a key of the table on top, and gives its type. */
static int get(lua_State *L, int key)
{
    lua_pushvalue(L, key);
    return lua_rawget(L, -2);
}

static const char *text_at(lua_State *L, int key)
{
    const char *text = get(L, key) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    lua_pop(L, 1);
    return text;
}

static int line_at(lua_State *L)
{
    get(L, LINE);
    int line = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return line;
}

static const char *text_of(lua_State *L, const char *name)
{
    const char *text = lua_getfield(L, -1, name) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    lua_pop(L, 1);
    return text;
}

static int64_t integer_of(lua_State *L, const char *name, int64_t otherwise)
{
    int64_t value = lua_getfield(L, -1, name) == LUA_TNUMBER ? lua_tointeger(L, -1) : otherwise;
    lua_pop(L, 1);
    return value;
}

static double number_of(lua_State *L, const char *name)
{
    lua_getfield(L, -1, name);
    double value = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return value;
}

/* place_in gives the number of a name in a list of words, or that of the last one. */
static int place_in(const char *const *words, int count, const char *name)
{
    int place = 0;
    while (place < count - 1 && strcmp(words[place], name ? name : "") != 0)
        place++;
    return place;
}

/* each reads the list in field `name` into an array of `bytes` each, with `read` called for every
 * item while it is on top. */
static void *each(lua_State *L, size_t *count, const char *name, size_t bytes,
                  void (*read)(lua_State *L, void *item))
{
    *count = 0;
    if (lua_getfield(L, -1, name) != LUA_TTABLE) {
        lua_pop(L, 1);
        return NULL;
    }
    luaL_checkstack(L, 8, "a result too deep");
    *count = (size_t)lua_rawlen(L, -1);
    char *items = take(L, *count, bytes);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        read(L, items + i * bytes);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return items;
}

/* ---- Matchers -------------------------------------------------------------------------------- */

/* MATCHER_ROOM is the stack that a level of a matcher takes at most, with its lists. */
enum { MATCHER_ROOM = 8 };

/* check_depth: matchers and is_not are walked by functions that call themselves. */
static void check_depth(lua_State *L, int depth)
{
    if (depth > MULL__NESTING_MAX)
        luaL_error(L, "a matcher is nested more than %d deep", MULL__NESTING_MAX);
    luaL_checkstack(L, MATCHER_ROOM, "a matcher too deep");
}

/* read_scalar reads the string, number or boolean on top; nil is MULL_NIL. */
static void read_scalar(lua_State *L, void *item)
{
    mull_value *value = item;
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        *value = (mull_value){.kind = MULL_STRING, .as.string = lua_tostring(L, -1)};
        break;
    case LUA_TBOOLEAN:
        *value = (mull_value){.kind = MULL_BOOLEAN, .as.boolean = lua_toboolean(L, -1)};
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, -1))
            *value = (mull_value){.kind = MULL_INTEGER, .as.integer = lua_tointeger(L, -1)};
        else
            *value = (mull_value){.kind = MULL_NUMBER, .as.number = lua_tonumber(L, -1)};
        break;
    default:
        *value = (mull_value){.kind = MULL_NIL};
        break;
    }
}

static mull_value scalar_of(lua_State *L, const char *name)
{
    mull_value value;
    lua_getfield(L, -1, name);
    read_scalar(L, &value);
    lua_pop(L, 1);
    return value;
}

/* read_value reads the value in the table on top. */
static void read_value(lua_State *L, mull__plain_value *value, int depth)
{
    static const char *const kinds[] = {
        [MULL__ONE_OF] = "one_of",   [MULL__BETWEEN] = "between", [MULL__CONTAINS] = "contains",
        [MULL__MATCHES] = "matches", [MULL__PRESENT] = "present", [MULL__ABSENT] = "absent",
        [MULL__NOT] = "not",
    };
    check_depth(L, depth);
    value->kind = (mull__value_kind)place_in(kinds, 7, text_of(L, "kind"));
    value->literals =
        each(L, &value->literal_count, "literals", sizeof *value->literals, read_scalar);
    value->low = scalar_of(L, "low");
    value->high = scalar_of(L, "high");
    value->text = text_of(L, "text");
    if (value->kind == MULL__NOT) {
        mull__plain_value *inner = take(L, 1, sizeof *inner);
        lua_getfield(L, -1, "value");
        read_value(L, inner, depth + 1);
        lua_pop(L, 1);
        value->inner = inner;
    }
}

static void read_test(lua_State *L, void *item)
{
    static const char *const subjects[] = {
        [MULL__OF_ERROR] = "error",
        [MULL__OF_CTX] = "ctx",
        [MULL__OF_MESSAGE] = "message",
        [MULL__OF_HEADER] = "header",
    };
    mull__plain_test *test = item;
    test->subject = (mull__subject)place_in(subjects, 4, text_of(L, "subject"));
    test->name = text_of(L, "name");
    lua_getfield(L, -1, "value");
    read_value(L, &test->value, 1);
    lua_pop(L, 1);
}

static void read_matcher(lua_State *L, mull__plain_matcher *matcher, int depth);

static void read_parts(lua_State *L, mull__plain_matcher *matcher, int depth)
{
    lua_getfield(L, -1, "parts");
    size_t count = (size_t)lua_rawlen(L, -1);
    mull__plain_matcher *parts = take(L, count, sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        read_matcher(L, &parts[i], depth + 1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    matcher->parts = parts;
    matcher->part_count = count;
}

/* read_matcher reads the matcher on top. */
static void read_matcher(lua_State *L, mull__plain_matcher *matcher, int depth)
{
    static const char *const kinds[] = {
        [MULL__MATCH_ALWAYS] = "always",     [MULL__MATCH_TESTS] = "tests",
        [MULL__MATCH_FUNCTION] = "function", [MULL__MATCH_ALL] = "all",
        [MULL__MATCH_ANY] = "any",           [MULL__MATCH_NONE] = "none",
    };
    check_depth(L, depth);
    matcher->kind = (mull__matcher_kind)place_in(kinds, 6, text_of(L, "kind"));
    switch (matcher->kind) {
    case MULL__MATCH_TESTS:
        matcher->tests = each(L, &matcher->test_count, "tests", sizeof *matcher->tests, read_test);
        break;
    case MULL__MATCH_FUNCTION:
        matcher->function = (uint32_t)integer_of(L, "number", 0);
        break;
    default:
        read_parts(L, matcher, depth);
        break;
    }
}

/* read_matcher_of reads the matcher of the rule or declaration on top. */
static void read_matcher_of(lua_State *L, mull__plain_matcher *matcher)
{
    matcher->kind = MULL__MATCH_ALWAYS;
    if (get(L, MATCHER) == LUA_TTABLE)
        read_matcher(L, matcher, 1);
    lua_pop(L, 1);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void read_delay(lua_State *L, void *item)
{
    *(int64_t *)item = lua_tointeger(L, -1);
}

static mull__backoff backoff_of(lua_State *L)
{
    static const char *const words[] = {
        [MULL__CONSTANT] = "constant",
        [MULL__LINEAR] = "linear",
        [MULL__EXPONENTIAL] = "exponential",
    };
    return (mull__backoff)place_in(words, 3, text_of(L, "backoff"));
}

static void read_jitter(lua_State *L, mull__plain_tier *tier)
{
    tier->jitter_kind = MULL__JITTER_FRACTION;
    if (lua_getfield(L, -1, "jitter") == LUA_TSTRING)
        tier->jitter_kind = strcmp(lua_tostring(L, -1), "full") == 0 ? MULL__JITTER_FULL
                                                                     : MULL__JITTER_DECORRELATED;
    else
        tier->jitter = lua_tonumber(L, -1);
    lua_pop(L, 1);
}

static int64_t attempts_of(lua_State *L)
{
    int kind = lua_getfield(L, -1, "attempts");
    int64_t attempts = kind == LUA_TSTRING ? MULL_UNLIMITED : lua_tointeger(L, -1);
    lua_pop(L, 1);
    return attempts;
}

/* read_new_tier reads the tier on top. */
static void read_new_tier(lua_State *L, mull__plain_tier *tier)
{
    tier->on = 1;
    tier->attempts = attempts_of(L);
    tier->delays = each(L, &tier->delay_count, "delays", sizeof *tier->delays, read_delay);
    tier->base_ms = integer_of(L, "base_ms", 0);
    tier->backoff = backoff_of(L);
    tier->factor = number_of(L, "factor");
    tier->max_delay_ms = integer_of(L, "max_delay_ms", MULL__NO_CAP);
    read_jitter(L, tier);
    tier->hint = text_of(L, "hint");
}

/* read_tier: rules share tiers, so what was read is kept under the tier's table. */
static void read_tier(lua_State *L, mull__plain_tier *tier, int key)
{
    if (get(L, key) == LUA_TTABLE) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &kept);
        lua_pushvalue(L, -2);
        lua_rawget(L, -2);
        const mull__plain_tier *known = lua_touserdata(L, -1);
        lua_pop(L, 2);
        if (known) {
            *tier = *known;
        } else {
            read_new_tier(L, tier);
            mull__plain_tier *copy = take(L, 1, sizeof *copy);
            *copy = *tier;
            keep_as(L, -1);
        }
    }
    lua_pop(L, 1);
}

static void read_rule(lua_State *L, void *item)
{
    mull__plain_rule *rule = item;
    rule->type = text_at(L, TYPE);
    rule->file = text_at(L, FILE_NAME);
    rule->line = line_at(L);
    rule->scope = text_at(L, SCOPE);
    read_matcher_of(L, &rule->matcher);
    read_tier(L, &rule->retry, RETRY);
    read_tier(L, &rule->redeliver, REDELIVER);
    rule->end = get(L, DISCARD) == LUA_TNIL ? MULL_DEAD_LETTER : MULL_DISCARD;
    lua_pop(L, 1);
    rule->queue = text_at(L, QUEUE);
    rule->note = text_at(L, DISCARD);
}

static void read_unrecoverable(lua_State *L, void *item)
{
    mull__plain_unrecoverable *declared = item;
    declared->type = text_at(L, TYPE);
    declared->file = text_at(L, FILE_NAME);
    declared->line = line_at(L);
    read_matcher_of(L, &declared->matcher);
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

/* limit_of reads a setting that is a number from 1. */
static int64_t limit_of(lua_State *L, const char *name)
{
    int64_t value = lua_getfield(L, -1, name) == LUA_TBOOLEAN ? MULL__OFF : lua_tointeger(L, -1);
    lua_pop(L, 1);
    return value; /* nil: MULL__UNSET */
}

/* function_of reads a setting that is the number of a function. */
static int64_t function_of(lua_State *L, const char *name)
{
    int64_t value = limit_of(L, name);
    int kind = lua_getfield(L, -1, name);
    lua_pop(L, 1);
    return kind == LUA_TNUMBER ? value + 1 : value;
}

static void read_rate_limit(lua_State *L, mull__plain_settings *settings)
{
    int kind = lua_getfield(L, -1, "rate_limit");
    if (kind == LUA_TTABLE) {
        settings->rate_after = integer_of(L, "after", 1);
        settings->rate_wait_ms = integer_of(L, "wait_ms", 0);
    } else if (kind == LUA_TBOOLEAN) {
        settings->rate_after = MULL__OFF;
    }
    lua_pop(L, 1);
}

static void read_settings(lua_State *L, mull__plain_settings *settings)
{
    lua_getfield(L, -1, "settings");
    int kind = lua_getfield(L, -1, "dead_letter_queue");
    settings->dead_letter_queue = kind == LUA_TBOOLEAN ? "" : lua_tostring(L, -1);
    lua_pop(L, 1);
    kind = lua_getfield(L, -1, "max_age_ms");
    settings->has_max_age = kind != LUA_TNIL;
    settings->max_age_ms = kind == LUA_TBOOLEAN ? MULL__OFF : lua_tointeger(L, -1);
    lua_pop(L, 1);
    settings->max_attempts = limit_of(L, "max_attempts");
    settings->max_deliveries = limit_of(L, "max_deliveries");
    read_rate_limit(L, settings);
    settings->override = function_of(L, "override");
    settings->notify = function_of(L, "notify");
    lua_pop(L, 1);
}

static void read_places(lua_State *L, mull__plain_place *places)
{
    static const char *const names[] = {
        [MULL__DEAD_LETTER_QUEUE] = "dead_letter_queue",
        [MULL__MAX_AGE] = "max_age_ms",
        [MULL__MAX_ATTEMPTS] = "max_attempts",
        [MULL__MAX_DELIVERIES] = "max_deliveries",
        [MULL__RATE_LIMIT] = "rate_limit",
        [MULL__OVERRIDE] = "override",
        [MULL__NOTIFY] = "notify",
    };
    if (lua_getfield(L, -1, "places") == LUA_TTABLE)
        for (int i = 0; i < MULL__SETTINGS; i++) {
            if (lua_getfield(L, -1, names[i]) == LUA_TTABLE) {
                places[i].file = text_of(L, "file");
                places[i].line = (int)integer_of(L, "line", 0);
            }
            lua_pop(L, 1);
        }
    lua_pop(L, 1);
}

static void read_include(lua_State *L, void *item)
{
    mull__plain_include *include = item;
    include->scope = text_of(L, "scope");
    include->file = text_of(L, "file");
    include->line = (int)integer_of(L, "line", 0);
}

static void read_replaced(lua_State *L, void *item)
{
    mull__plain_replaced *gone = item;
    gone->type = text_of(L, "type");
    gone->scope = text_of(L, "scope");
    gone->file = text_of(L, "file");
    gone->line = (int)integer_of(L, "line", 0);
    gone->by_file = text_of(L, "by_file");
    gone->by_line = (int)integer_of(L, "by_line", 0);
    const char *word = text_of(L, "word");
    gone->by_cause = word && strcmp(word, "on_cause") == 0;
}

static mull__scope_kind scope_kind_of(lua_State *L)
{
    static const char *const names[] = {
        [MULL__CONSUMER] = "consumer",
        [MULL__TRANSPORT] = "transport",
        [MULL__BUS] = "bus",
        [MULL__HOST] = "host",
    };
    return (mull__scope_kind)place_in(names, MULL__SCOPE_KINDS, text_of(L, "kind"));
}

static void read_scope(lua_State *L, void *item)
{
    mull__plain_scope *scope = item;
    scope->kind = scope_kind_of(L);
    scope->name = text_of(L, "name");
    scope->rules = each(L, &scope->rule_count, "rules", sizeof *scope->rules, read_rule);
    scope->cause_rules =
        each(L, &scope->cause_rule_count, "cause_rules", sizeof *scope->cause_rules, read_rule);
    scope->unrecoverable = each(L, &scope->unrecoverable_count, "unrecoverable",
                                sizeof *scope->unrecoverable, read_unrecoverable);
    read_settings(L, &scope->settings);
    read_places(L, scope->settings.places);
    scope->includes =
        each(L, &scope->include_count, "includes", sizeof *scope->includes, read_include);
    scope->replaced =
        each(L, &scope->replaced_count, "replaced", sizeof *scope->replaced, read_replaced);
}

static void read_parent(lua_State *L, void *item)
{
    mull__plain_parent *parent = item;
    parent->child = text_of(L, "child");
    parent->parent = text_of(L, "parent");
}

/* ---- The whole ------------------------------------------------------------------------------- */

typedef struct problem {
    const char *file;
    int line;
    const char *text;
} problem;

/* outcome is a load's result in C: mistakes, or a plain policy. */
typedef struct outcome {
    const problem *problems;
    size_t problem_count;
    mull__plain plain;
} outcome;

static void read_problem(lua_State *L, void *item)
{
    problem *p = item;
    p->file = text_of(L, "file");
    p->line = (int)integer_of(L, "line", 0);
    p->text = text_of(L, "text");
}

static int read_outcome(lua_State *L)
{
    outcome *o = lua_touserdata(L, 1);
    keep_new(L);
    luaL_checkstack(L, DISCARD, "a result");
    push_keys(L);
    mull__sandbox_result(L);
    o->problems = each(L, &o->problem_count, "problems", sizeof *o->problems, read_problem);
    o->plain.parents =
        each(L, &o->plain.parent_count, "parents", sizeof *o->plain.parents, read_parent);
    o->plain.scopes = each(L, &o->plain.scope_count, "scopes", sizeof *o->plain.scopes, read_scope);
    if (lua_getfield(L, -1, "functions") == LUA_TTABLE)
        o->plain.function_count = (uint32_t)lua_rawlen(L, -1);
    return 0;
}

static int drop_kept(lua_State *L)
{
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept);
    return 0;
}

int mull__compile(mull__table **out, mull__sandbox *sandbox, mull_problem_fn tell, void *data)
{
    *out = NULL;
    outcome o = {0};
    int status = mull__vm_call(&sandbox->vm, read_outcome, &o, NULL);
    if (status == MULL_EPOLICY && tell)
        tell(sandbox->main, 0, sandbox->vm.message, data);
    if (status)
        return status;
    for (size_t i = 0; tell && i < o.problem_count; i++)
        tell(o.problems[i].file, o.problems[i].line, o.problems[i].text, data);
    if (o.problem_count > 0)
        return MULL_EPOLICY;
    status = mull__table_new(out, &sandbox->vm.allocator, &o.plain);
    mull__vm_call(&sandbox->vm, drop_kept, NULL, NULL);
    return status;
}
