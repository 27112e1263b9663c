/* compile.c: see compile.h. Reads what docs/plain-rules.md says straight into a table's arena,
 * which goes with the table where an error ends that in the middle. The scopes of the two sandboxes
 * stand one behind the other: none is in both. */
#include "compile.h"

#include <lauxlib.h>
#include <string.h>

#include "policy/delay.h"
#include "policy/field_match.h"
#include "policy/table_internal.h"

/* reader is a load's result on its way into a table. All functions here read the value on top of
 * the stack, or a field of it, and leave it there. */
typedef struct reader {
    lua_State *L;
    mull__table *table;
    int out_of_memory;         /* the arena's allocator had none */
    size_t parts;              /* of a sandbox's matchers, their tests, and the values in these */
    uint32_t functions_before; /* of the sandboxes that were read before */
    mull__report *report;
    size_t problem_count;
    mull__type_parent *parents;
    size_t parent_count;
} reader;

static void refuse_memory(reader *r)
{
    r->out_of_memory = 1;
    luaL_error(r->L, "not enough memory");
}

/* take gives zeroed memory for `count` things. */
static void *take(reader *r, size_t count, size_t bytes)
{
    void *memory = mull__arena_zalloc(&r->table->arena, count, bytes);
    if (!memory)
        refuse_memory(r);
    return memory;
}

/* ---- What is read once ----------------------------------------------------------------------- */

/* A Lua value of which there is a copy already has it in a table, at this place of the stack: equal
 * texts share one, and rules share matchers and tiers. */
enum { KNOWN = 2 };

static void *known(reader *r)
{
    lua_pushvalue(r->L, -1);
    lua_rawget(r->L, KNOWN);
    void *copy = lua_touserdata(r->L, -1);
    lua_pop(r->L, 1);
    return copy;
}

static void remember(reader *r, void *copy)
{
    lua_pushvalue(r->L, -1);
    lua_pushlightuserdata(r->L, copy);
    lua_rawset(r->L, KNOWN);
}

/* text copies a string; NULL where it is none. */
static const char *text(reader *r)
{
    if (lua_type(r->L, -1) != LUA_TSTRING)
        return NULL;
    char *copy = known(r);
    if (!copy) {
        size_t size;
        const char *string = lua_tolstring(r->L, -1, &size);
        copy = mull__arena_strndup(&r->table->arena, string, size);
        if (!copy)
            refuse_memory(r);
        remember(r, copy);
    }
    return copy;
}

/* ---- Fields of tables ------------------------------------------------------------------------ */

static const char *text_of(reader *r, const char *name)
{
    lua_getfield(r->L, -1, name);
    const char *value = text(r);
    lua_pop(r->L, 1);
    return value;
}

static int64_t integer_of(reader *r, const char *name, int64_t otherwise)
{
    int64_t value =
        lua_getfield(r->L, -1, name) == LUA_TNUMBER ? lua_tointeger(r->L, -1) : otherwise;
    lua_pop(r->L, 1);
    return value;
}

static double number_of(reader *r, const char *name)
{
    lua_getfield(r->L, -1, name);
    double value = lua_tonumber(r->L, -1);
    lua_pop(r->L, 1);
    return value;
}

/* word_of gives the place of a field's text in a list of words, or that of the last one. */
static int word_of(reader *r, const char *name, const char *const *words)
{
    lua_getfield(r->L, -1, name);
    const char *word = lua_tostring(r->L, -1);
    int place = 0;
    while (words[place + 1] && strcmp(words[place], word ? word : "") != 0)
        place++;
    lua_pop(r->L, 1);
    return place;
}

/* items reads the list on top into an array of `bytes` each, with `read` called for every item
 * while it is on top. NULL: it is no list. */
static void *items(reader *r, size_t *count, size_t bytes, void (*read)(reader *r, void *item))
{
    lua_State *L = r->L;
    *count = 0;
    if (!lua_istable(L, -1))
        return NULL;
    *count = (size_t)lua_rawlen(L, -1);
    char *list = take(r, *count, bytes);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        read(r, list + i * bytes);
        lua_pop(L, 1);
    }
    return list;
}

/* each does the same with the list in field `name`. */
static void *each(reader *r, size_t *count, const char *name, size_t bytes,
                  void (*read)(reader *r, void *item))
{
    luaL_checkstack(r->L, 8, "a result too deep");
    lua_getfield(r->L, -1, name);
    void *list = items(r, count, bytes, read);
    lua_pop(r->L, 1);
    return list;
}

/* ---- Matchers -------------------------------------------------------------------------------- */

/* read_scalar reads a string, number or boolean; nil is MULL_NIL. */
static void read_scalar(reader *r, void *item)
{
    lua_State *L = r->L;
    mull_value *value = item;
    int type = lua_type(L, -1);
    *value = (mull_value){.kind = MULL_NIL};
    if (type == LUA_TSTRING)
        *value = (mull_value){.kind = MULL_STRING, .as.string = text(r)};
    else if (type == LUA_TBOOLEAN)
        *value = (mull_value){.kind = MULL_BOOLEAN, .as.boolean = lua_toboolean(L, -1)};
    else if (lua_isinteger(L, -1))
        *value = (mull_value){.kind = MULL_INTEGER, .as.integer = lua_tointeger(L, -1)};
    else if (type == LUA_TNUMBER)
        *value = (mull_value){.kind = MULL_NUMBER, .as.number = lua_tonumber(L, -1)};
}

static mull_value scalar_of(reader *r, const char *name)
{
    mull_value value;
    lua_getfield(r->L, -1, name);
    read_scalar(r, &value);
    lua_pop(r->L, 1);
    return value;
}

/* One matcher may stand in another twice, that twice in a third, and so on: the state's limit of
 * memory knows nothing of what they are together. More parts than so many fit in no load, each
 * written down. */
enum { MOST_PARTS = 500000 };

static void count_parts(reader *r, size_t more)
{
    r->parts += more;
    if (r->parts > MOST_PARTS)
        luaL_error(r->L,
                   "matchers with more than %d parts and values, each as often as it stands in "
                   "another",
                   MOST_PARTS);
}

static void read_value(reader *r, mull__condition *value)
{
    value->kind = (mull__value_kind)word_of(r, "kind", mull__value_words);
    value->literals =
        each(r, &value->literal_count, "literals", sizeof *value->literals, read_scalar);
    count_parts(r, value->literal_count);
    value->low = scalar_of(r, "low");
    value->high = scalar_of(r, "high");
    value->text = text_of(r, "text");
    if (value->kind == MULL__NOT) {
        mull__condition *inner = take(r, 1, sizeof *inner);
        lua_getfield(r->L, -1, "value");
        read_value(r, inner);
        lua_pop(r->L, 1);
        value->inner = inner;
    }
}

static void read_test(reader *r, void *item)
{
    mull__field_test *test = item;
    test->subject = (mull__subject)word_of(r, "subject", mull__subject_words);
    test->name = text_of(r, "name");
    test->attribute = mull__attribute_named(test->subject, test->name);
    lua_getfield(r->L, -1, "value");
    read_value(r, &test->value);
    lua_pop(r->L, 1);
}

static void read_matcher(reader *r, void *item)
{
    mull__matcher *matcher = item;
    matcher->kind = (mull__matcher_kind)word_of(r, "kind", mull__matcher_words);
    matcher->function = r->functions_before + (uint32_t)integer_of(r, "number", 0);
    matcher->parts = each(r, &matcher->part_count, "parts", sizeof *matcher, read_matcher);
    matcher->tests = each(r, &matcher->test_count, "tests", sizeof *matcher->tests, read_test);
    count_parts(r, matcher->part_count + matcher->test_count);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void read_delay(reader *r, void *item)
{
    *(int64_t *)item = lua_tointeger(r->L, -1);
}

static void read_tier(reader *r, void *item)
{
    static const char *const jitters[] = {"full", "decorrelated", "a fraction", NULL};
    static const mull__jitter_kind jitter_kinds[] = {MULL__JITTER_FULL, MULL__JITTER_DECORRELATED,
                                                     MULL__JITTER_FRACTION};
    mull__tier_config *tier = item;
    tier->on = 1;
    tier->attempts = integer_of(r, "attempts", MULL_UNLIMITED); /* else "unlimited" */
    tier->delays = each(r, &tier->delay_count, "delays", sizeof *tier->delays, read_delay);
    tier->base_ms = integer_of(r, "base_ms", 0);
    tier->backoff = (mull__backoff)word_of(r, "backoff", mull__backoff_words);
    tier->factor = number_of(r, "factor");
    tier->max_delay_ms = integer_of(r, "max_delay_ms", MULL__NO_CAP);
    tier->jitter_kind = jitter_kinds[word_of(r, "jitter", jitters)];
    tier->jitter = number_of(r, "jitter");
    tier->hint = text_of(r, "hint");
    if (mull__tier_precompute(&r->table->arena, tier))
        refuse_memory(r);
}

/* shared reads the table in field `name`, once for all that have it; where there is none, `into`
 * stays as it is. */
static void shared(reader *r, const char *name, void *into, size_t bytes,
                   void (*read)(reader *r, void *item))
{
    if (lua_getfield(r->L, -1, name) == LUA_TTABLE) {
        void *copy = known(r);
        if (!copy) {
            copy = take(r, 1, bytes);
            read(r, copy);
            remember(r, copy);
        }
        memcpy(into, copy, bytes);
    }
    lua_pop(r->L, 1);
}

/* read_rule reads a rule, or an unrecoverable declaration, which has no chain. */
static void read_rule(reader *r, void *item)
{
    mull__rule *rule = item;
    rule->source = (mull_rule){
        .file = text_of(r, "file"),
        .line = (int)integer_of(r, "line", 0),
        .scope = text_of(r, "scope"),
        .type = text_of(r, "type"),
    };
    shared(r, "matcher", &rule->matcher, sizeof rule->matcher, read_matcher);
    shared(r, "retry", &rule->retry, sizeof rule->retry, read_tier);
    shared(r, "redeliver", &rule->redeliver, sizeof rule->redeliver, read_tier);
    rule->queue = text_of(r, "queue");
    rule->end = lua_getfield(r->L, -1, "discard") == LUA_TNIL ? MULL_DEAD_LETTER : MULL_DISCARD;
    rule->note = text(r);
    lua_pop(r->L, 1);
}

static void read_rules(reader *r, mull__rules *rules, const char *name)
{
    rules->items = each(r, &rules->count, name, sizeof *rules->items, read_rule);
}

/* ---- Settings: read_KIND reads the value of a setting of that kind; `false` is off ------------
 */

static void read_count(reader *r, int64_t *value)
{
    *value = lua_isboolean(r->L, -1) ? MULL__OFF : lua_tointeger(r->L, -1);
}

static void read_span(reader *r, int64_t *value)
{
    read_count(r, value);
}

static void read_function(reader *r, int64_t *value)
{
    *value =
        lua_isboolean(r->L, -1) ? MULL__OFF : r->functions_before + lua_tointeger(r->L, -1) + 1;
}

static void read_name(reader *r, void *item)
{
    *(const char **)item = text(r);
}

static void read_types(reader *r, mull__type_list *list, const char *name)
{
    list->names = each(r, &list->count, name, sizeof *list->names, read_name);
    list->types = take(r, list->count, sizeof *list->types);
}

static mull__per per_of(reader *r)
{
    return (mull__per){(mull__per_kind)word_of(r, "per", mull__per_words), text_of(r, "header")};
}

static mull__source_pos own_place_of(reader *r)
{
    return (mull__source_pos){text_of(r, "file"), (int)integer_of(r, "line", 0)};
}

static void read_rate_limit(reader *r, void *item)
{
    mull__rate_limit *limit = item;
    *limit = (mull__rate_limit){
        .per = per_of(r),
        .place = own_place_of(r),
        .after = integer_of(r, "after", MULL__OFF),
        .ratio = number_of(r, "ratio"),
        .window_ms = integer_of(r, "window_ms", 0),
        .least = integer_of(r, "least", 0),
        .messages = integer_of(r, "messages", 1),
        .within_ms = integer_of(r, "within_ms", MULL__OFF),
        .wait_ms = integer_of(r, "wait_ms", 0),
        .max_wait_ms = integer_of(r, "max_wait_ms", 0),
        .hint = text_of(r, "hint"),
        .successes = integer_of(r, "successes", 1),
        .keep = scalar_of(r, "keep").as.boolean,
        .ramp_ms = integer_of(r, "ramp_ms", 0),
    };
    read_types(r, &limit->only, "only");
    read_types(r, &limit->except, "except");
}

static void read_call_limit(reader *r, void *item)
{
    *(mull__call_limit *)item = (mull__call_limit){
        .per = per_of(r),
        .place = own_place_of(r),
        .count = integer_of(r, "count", 1),
        .unit_ms = integer_of(r, "unit_ms", 0),
        .burst = integer_of(r, "burst", 1),
    };
}

static void read_rate_limits(reader *r, mull__setting_rate_limits *value)
{
    value->items = items(r, &value->count, sizeof *value->items, read_rate_limit);
}

static void read_call_limits(reader *r, mull__setting_call_limits *value)
{
    value->items = items(r, &value->count, sizeof *value->items, read_call_limit);
}

/* read_queue leaves `value`, its default, where it is `false`. */
static void read_queue(reader *r, const char **value)
{
    if (!lua_isboolean(r->L, -1))
        *value = text(r);
}

/* place_of gives where a setting was said; the scope's places are below its settings. */
static mull__source_pos place_of(reader *r, const char *name)
{
    mull__source_pos place = {0};
    if (lua_getfield(r->L, -2, name) == LUA_TTABLE)
        place = own_place_of(r);
    lua_pop(r->L, 1);
    return place;
}

static void read_settings(reader *r, mull__settings *settings, mull__source_pos *places)
{
    lua_getfield(r->L, -1, "places");
    lua_getfield(r->L, -2, "settings");
#define READ(NUMBER, name, kind, ...)                                                              \
    places[MULL__##NUMBER] = place_of(r, #name);                                                   \
    if (lua_getfield(r->L, -1, #name) != LUA_TNIL) {                                               \
        settings->set |= 1u << MULL__##NUMBER;                                                     \
        settings->name = mull__default_settings.name;                                              \
        read_##kind(r, &settings->name);                                                           \
    }                                                                                              \
    lua_pop(r->L, 1);
    MULL__EACH_SETTING(READ)
#undef READ
    lua_pop(r->L, 2);
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

static void read_include(reader *r, void *item)
{
    *(mull_rule *)item = (mull_rule){.file = text_of(r, "file"),
                                     .line = (int)integer_of(r, "line", 0),
                                     .scope = text_of(r, "scope")};
}

static void read_replaced(reader *r, void *item)
{
    static const char *const words[] = {"on", "on_cause", NULL};
    *(mull__replaced_rule *)item = (mull__replaced_rule){
        .type = text_of(r, "type"),
        .scope = text_of(r, "scope"),
        .file = text_of(r, "file"),
        .line = (int)integer_of(r, "line", 0),
        .by_file = text_of(r, "by_file"),
        .by_line = (int)integer_of(r, "by_line", 0),
        .by_cause = word_of(r, "word", words),
    };
}

static void read_scope(reader *r, void *item)
{
    mull__scope *scope = item;
    scope->kind = (mull__scope_kind)word_of(r, "kind", mull__scope_words);
    scope->name = text_of(r, "name");
    read_rules(r, &scope->rules, "rules");
    read_rules(r, &scope->cause_rules, "cause_rules");
    read_rules(r, &scope->unrecoverable, "unrecoverable");
    read_settings(r, &scope->settings, scope->places);
    scope->includes =
        each(r, &scope->include_count, "includes", sizeof *scope->includes, read_include);
    scope->replaced =
        each(r, &scope->replaced_count, "replaced", sizeof *scope->replaced, read_replaced);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void read_parent(reader *r, void *item)
{
    *(mull__type_parent *)item = (mull__type_parent){text_of(r, "child"), text_of(r, "parent")};
}

/* read_problem calls the embedder, so not with the state's locale. */
static void read_problem(reader *r, void *item)
{
    (void)item;
    mull__vm_leave(mull__vm_of(r->L));
    mull__report_add(text_of(r, "file"), (int)integer_of(r, "line", 0), text_of(r, "text"),
                     r->report);
    mull__vm_enter(mull__vm_of(r->L));
}

/* add_scopes puts the result's scopes behind those that are there. */
static void add_scopes(reader *r)
{
    mull__table *table = r->table;
    size_t count, before = table->scope_count;
    const mull__scope *more = each(r, &count, "scopes", sizeof *more, read_scope);
    if (count == 0)
        return;
    mull__scope *all = take(r, before + count, sizeof *all);
    if (before > 0)
        memcpy(all, table->scopes, before * sizeof *all);
    memcpy(all + before, more, count * sizeof *all);
    table->scopes = all;
    table->scope_count = before + count;
}

/* read_result: the types' parents are those of the sandbox that is read last, which knows all. */
static int read_result(lua_State *L)
{
    reader *r = lua_touserdata(L, 1);
    mull__sandbox *sandbox = (mull__sandbox *)mull__vm_of(L);
    size_t problems;
    r->L = L;
    r->parts = 0;
    r->functions_before = r->table->function_count;
    lua_newtable(L); /* KNOWN */
    mull__sandbox_result(L);
    each(r, &problems, "problems", 0, read_problem);
    r->problem_count += problems;
    r->parents = each(r, &r->parent_count, "parents", sizeof *r->parents, read_parent);
    add_scopes(r);
    if (lua_getfield(L, -1, "functions") == LUA_TTABLE)
        sandbox->function_count = (uint32_t)lua_rawlen(L, -1);
    r->table->function_count += sandbox->function_count;
    return 0;
}

static int read_sandbox(reader *r, mull__sandbox *sandbox)
{
    int status = mull__vm_call(&sandbox->vm, read_result, r, NULL);
    if (r->out_of_memory)
        return MULL_ENOMEM;
    if (status == MULL_EPOLICY)
        mull__report_add(sandbox->options.main, 0, sandbox->vm.message, r->report);
    return status;
}

int mull__compile(mull__table **out, mull__sandbox *host, mull__sandbox *own, mull__report *report)
{
    mull__table *table;
    *out = NULL;
    if (mull__table_begin(&table, &own->vm.allocator))
        return MULL_ENOMEM;
    table->has_host_policy = host != NULL;
    reader r = {.table = table, .report = report};
    int status = host ? read_sandbox(&r, host) : MULL_OK;
    if (status == MULL_OK)
        status = read_sandbox(&r, own);
    if (status == MULL_OK && r.problem_count > 0)
        status = MULL_EPOLICY;
    if (status == MULL_OK)
        status = mull__table_finish(table, r.parents, r.parent_count);
    if (status == MULL_OK)
        *out = table;
    else
        mull__table_free(table);
    return status;
}
