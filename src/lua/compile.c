/* compile.c: see compile.h. Reads what docs/plain-rules.md says into src/policy/plain.h.
 *
 * All arrays of the plain policy are userdata in the sandbox's state, and its strings are Lua's, so
 * an error in the middle leaks nothing; the registry keeps them until the table has its copies. */
#include "compile.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#include "views.h"

static const char kept, functions; /* keys of the registry, by their addresses */

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

/* ---- Rules ----------------------------------------------------------------------------------- */

static void read_delay(lua_State *L, void *item)
{
    *(int64_t *)item = lua_tointeger(L, -1);
}

static mull__backoff backoff_named(const char *name)
{
    if (name && strcmp(name, "constant") == 0)
        return MULL__CONSTANT;
    return name && strcmp(name, "linear") == 0 ? MULL__LINEAR : MULL__EXPONENTIAL;
}

static void read_tier(lua_State *L, mull__plain_tier *tier, const char *name)
{
    if (lua_getfield(L, -1, name) == LUA_TTABLE) {
        tier->on = 1;
        tier->attempts = integer_of(L, "attempts", 0);
        tier->delays = each(L, &tier->delay_count, "delays", sizeof *tier->delays, read_delay);
        tier->base_ms = integer_of(L, "base_ms", 0);
        tier->backoff = backoff_named(text_of(L, "backoff"));
        tier->factor = number_of(L, "factor");
        tier->max_delay_ms = integer_of(L, "max_delay_ms", MULL__NO_CAP);
        tier->jitter = number_of(L, "jitter");
    }
    lua_pop(L, 1);
}

/* read_test reads a test of a field of the error against one literal. */
static void read_test(lua_State *L, void *item)
{
    mull_field *field = item;
    mull_value *value = &field->value;
    field->name = text_of(L, "name");
    lua_getfield(L, -1, "value");
    lua_getfield(L, -1, "literals");
    switch (lua_rawgeti(L, -1, 1)) {
    case LUA_TSTRING:
        value->kind = MULL_STRING;
        value->as.string = lua_tostring(L, -1);
        break;
    case LUA_TBOOLEAN:
        value->kind = MULL_BOOLEAN;
        value->as.boolean = lua_toboolean(L, -1);
        break;
    default:
        value->kind = lua_isinteger(L, -1) ? MULL_INTEGER : MULL_NUMBER;
        if (value->kind == MULL_INTEGER)
            value->as.integer = lua_tointeger(L, -1);
        else
            value->as.number = lua_tonumber(L, -1);
        break;
    }
    lua_pop(L, 3);
}

static void read_matcher(lua_State *L, mull__plain_matcher *matcher)
{
    matcher->kind = MULL__MATCH_ALWAYS;
    if (lua_getfield(L, -1, "matcher") == LUA_TTABLE) {
        matcher->fields =
            each(L, &matcher->field_count, "tests", sizeof *matcher->fields, read_test);
        matcher->kind = matcher->fields ? MULL__MATCH_FIELDS : MULL__MATCH_FUNCTION;
        matcher->function = (uint32_t)integer_of(L, "number", 0);
    }
    lua_pop(L, 1);
}

static void read_rule(lua_State *L, void *item)
{
    mull__plain_rule *rule = item;
    rule->type = text_of(L, "type");
    rule->file = text_of(L, "file");
    rule->line = (int)integer_of(L, "line", 0);
    read_matcher(L, &rule->matcher);
    read_tier(L, &rule->retry, "retry");
    read_tier(L, &rule->redeliver, "redeliver");
    const char *action = text_of(L, "action");
    rule->end = action && strcmp(action, "discard") == 0 ? MULL_DISCARD : MULL_DEAD_LETTER;
    rule->queue = text_of(L, "queue");
    rule->note = text_of(L, "note");
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

/* limit_of reads a setting that is a number from 1. */
static int64_t limit_of(lua_State *L, const char *name)
{
    int64_t value = lua_getfield(L, -1, name) == LUA_TBOOLEAN ? MULL__OFF : lua_tointeger(L, -1);
    lua_pop(L, 1);
    return value; /* nil: MULL__UNSET */
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
    lua_pop(L, 1);
}

static mull__scope_kind kind_named(const char *name)
{
    static const char *const names[] = {
        [MULL__CONSUMER] = "consumer",
        [MULL__TRANSPORT] = "transport",
        [MULL__BUS] = "bus",
        [MULL__HOST] = "host",
    };
    mull__scope_kind kind = MULL__CONSUMER;
    while (kind < MULL__HOST && strcmp(names[kind], name ? name : "") != 0)
        kind++;
    return kind;
}

static void read_scope(lua_State *L, void *item)
{
    mull__plain_scope *scope = item;
    scope->kind = kind_named(text_of(L, "kind"));
    scope->name = text_of(L, "name");
    scope->rules = each(L, &scope->rule_count, "rules", sizeof *scope->rules, read_rule);
    read_settings(L, &scope->settings);
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
    int status = mull__vm_call(&sandbox->vm, read_outcome, &o, INT64_MAX);
    if (status == MULL_EPOLICY && tell)
        tell(sandbox->main, 0, sandbox->vm.message, data);
    if (status)
        return status;
    for (size_t i = 0; tell && i < o.problem_count; i++)
        tell(o.problems[i].file, o.problems[i].line, o.problems[i].text, data);
    if (o.problem_count > 0)
        return MULL_EPOLICY;
    status = mull__table_new(out, &sandbox->vm.allocator, &o.plain);
    mull__vm_call(&sandbox->vm, drop_kept, NULL, INT64_MAX);
    return status;
}

/* ---- Functions ------------------------------------------------------------------------------- */

static int ready_functions(lua_State *L)
{
    mull__sandbox_result(L);
    lua_getfield(L, -1, "functions");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &functions);
    lua_newtable(L);
    lua_getfield(L, -2, "parents");
    for (lua_Integer i = 1; lua_rawgeti(L, -1, i) == LUA_TTABLE; i++) {
        lua_getfield(L, -1, "child");
        lua_getfield(L, -2, "parent");
        lua_rawset(L, -5);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
    mull__views_open(L, lua_gettop(L));
    return 0;
}

int mull__compile_functions(mull__sandbox *sandbox)
{
    return mull__vm_call(&sandbox->vm, ready_functions, NULL, INT64_MAX);
}

typedef struct question {
    uint32_t number;
    const mull_failure *failure;
    int passes;
} question;

static int ask(lua_State *L)
{
    question *q = lua_touserdata(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &functions);
    lua_rawgeti(L, -1, (lua_Integer)q->number + 1);
    mull__views_push(L, q->failure);
    lua_call(L, 2, 1);
    q->passes = lua_toboolean(L, -1);
    return 0;
}

int mull__call_function(mull__sandbox *sandbox, uint32_t number, const mull_failure *failure,
                        char *why, size_t why_size)
{
    mull__vm *vm = &sandbox->vm;
    question q = {.number = number, .failure = failure};
    int status = mull__vm_call(vm, ask, &q, MULL__MATCH_INSTRUCTIONS);
    mull__views_end(vm->lua);
    if (status == MULL_OK)
        return q.passes;
    if (status == MULL_ENOMEM)
        snprintf(why, why_size, "%s", mull_strerror(status));
    else if (vm->file[0])
        snprintf(why, why_size, "%s:%d: %s", vm->file, vm->line, vm->message);
    else
        snprintf(why, why_size, "%s", vm->message);
    return status;
}
