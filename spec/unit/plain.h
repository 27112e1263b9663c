/* plain.h: policies as C tests write them down, in place of a policy's text: structs that may be
 * constant, and a table made of them. All memory of the table is its own. */
#ifndef SPEC_PLAIN_H
#define SPEC_PLAIN_H

#include <string.h>

#include "policy/delay.h"
#include "policy/field_match.h"
#include "policy/resolve.h"

typedef struct mull__plain_rule {
    const char *type; /* "Error" for default() */
    const char *file;
    int line;
    mull__matcher matcher;              /* what mull__matcher_prepare fills in may be left out */
    mull__tier_config retry, redeliver; /* likewise */
    mull_action end;
    const char *queue; /* of the end; NULL: the scope's dead_letter_queue */
    const char *note;
    const char *scope; /* label of where it was written; NULL: in the scope that has it */
} mull__plain_rule;

typedef struct mull__plain_unrecoverable {
    const char *type, *file;
    int line;
    mull__matcher matcher;
} mull__plain_unrecoverable;

enum { MULL__UNSET = 0 };

/* MULL__UNSET where the scope doesn't set it, MULL__OFF where it says false. */
typedef struct mull__plain_settings {
    const char *dead_letter_queue; /* NULL: not set; "": set to false */
    int has_max_age, has_deadline; /* 0: max_age_ms, deadline_ms isn't set */
    int64_t max_age_ms, deadline_ms, max_attempts, max_deliveries, override, notify;
    int rate_limits_set, limits_set; /* with a count of 0: set to false */
    mull__setting_rate_limits rate_limit;
    mull__setting_call_limits limit;
    mull__source_pos places[MULL__SETTINGS];
} mull__plain_settings;

typedef struct mull__plain_scope {
    mull__scope_kind kind;
    const char *name;
    const mull__plain_rule *rules;
    size_t rule_count;
    mull__plain_settings settings;
    const mull__plain_rule *cause_rules;
    size_t cause_rule_count;
    const mull__plain_unrecoverable *unrecoverable;
    size_t unrecoverable_count;
    const mull_rule *includes;
    size_t include_count;
    const mull__replaced_rule *replaced;
    size_t replaced_count;
} mull__plain_scope;

typedef struct mull__plain {
    const mull__type_parent *parents;
    size_t parent_count;
    const mull__plain_scope *scopes;
    size_t scope_count;
    uint32_t function_count;
} mull__plain;

/* ---- Copies: where there is no memory, `failed` is set, and the copy is of no use -------------
 */

typedef struct plain_copy {
    mull__arena *arena;
    int failed;
} plain_copy;

static inline void *plain_things(plain_copy *c, const void *things, size_t count, size_t bytes)
{
    void *copied = mull__arena_zalloc(c->arena, count, bytes);
    if (!copied)
        c->failed = 1;
    else if (things && count)
        memcpy(copied, things, count * bytes);
    return copied;
}

static inline const char *plain_text(plain_copy *c, const char *text)
{
    return text ? plain_things(c, text, strlen(text) + 1, 1) : NULL;
}

static inline void plain_value(plain_copy *c, mull__condition *value)
{
    value->text = plain_text(c, value->text);
    if (value->kind == MULL__ONE_OF) {
        size_t count = value->literal_count;
        mull_value *literals = plain_things(c, value->literals, count, sizeof *literals);
        for (size_t i = 0; literals && i < count; i++)
            if (literals[i].kind == MULL_STRING)
                literals[i].as.string = plain_text(c, literals[i].as.string);
        value->literals = literals;
    } else if (value->kind == MULL__NOT) {
        mull__condition *inner = plain_things(c, value->inner, 1, sizeof *inner);
        if (inner)
            plain_value(c, inner);
        value->inner = inner;
    }
}

static inline mull__matcher plain_matcher(plain_copy *c, const mull__matcher *plain)
{
    mull__matcher matcher = {.kind = plain->kind};
    if (plain->kind == MULL__MATCH_FUNCTION)
        matcher.function = plain->function;
    if (plain->kind == MULL__MATCH_ALWAYS || plain->kind == MULL__MATCH_FUNCTION)
        return matcher;
    matcher.test_count = plain->kind == MULL__MATCH_TESTS ? plain->test_count : 0;
    matcher.part_count = plain->kind == MULL__MATCH_TESTS ? 0 : plain->part_count;
    mull__field_test *tests = plain_things(c, plain->tests, matcher.test_count, sizeof *tests);
    for (size_t i = 0; tests && i < matcher.test_count; i++) {
        tests[i].name = plain_text(c, tests[i].name);
        plain_value(c, &tests[i].value);
        tests[i].attribute = c->failed ? 0 : mull__attribute_named(tests[i].subject, tests[i].name);
    }
    mull__matcher *parts = plain_things(c, NULL, matcher.part_count, sizeof *parts);
    for (size_t i = 0; parts && i < matcher.part_count; i++)
        parts[i] = plain_matcher(c, &plain->parts[i]);
    matcher.parts = parts;
    matcher.tests = tests;
    return matcher;
}

static inline mull__tier_config plain_tier(plain_copy *c, const mull__tier_config *plain)
{
    if (!plain->on)
        return (mull__tier_config){0};
    mull__tier_config tier = *plain;
    tier.delay_count = plain->delays ? plain->delay_count : 0;
    tier.delays = plain->delays
                      ? plain_things(c, plain->delays, tier.delay_count, sizeof *plain->delays)
                      : NULL;
    tier.hint = plain_text(c, plain->hint);
    if (!c->failed && mull__tier_precompute(c->arena, &tier))
        c->failed = 1;
    return tier;
}

static inline mull__rules plain_rules(plain_copy *c, const mull__plain_rule *plain, size_t count)
{
    mull__rule *rules = plain_things(c, NULL, count, sizeof *rules);
    for (size_t i = 0; rules && i < count; i++, plain++)
        rules[i] = (mull__rule){
            .source = {plain_text(c, plain->file), plain->line, plain_text(c, plain->scope),
                       plain_text(c, plain->type)},
            .matcher = plain_matcher(c, &plain->matcher),
            .retry = plain_tier(c, &plain->retry),
            .redeliver = plain_tier(c, &plain->redeliver),
            .end = plain->end,
            .queue = plain_text(c, plain->queue),
            .note = plain_text(c, plain->note),
        };
    return (mull__rules){.items = rules, .count = count};
}

static inline mull__rules plain_unrecoverable(plain_copy *c, const mull__plain_unrecoverable *plain,
                                              size_t count)
{
    mull__rule *rules = plain_things(c, NULL, count, sizeof *rules);
    for (size_t i = 0; rules && i < count; i++, plain++)
        rules[i] = (mull__rule){
            .source = {plain_text(c, plain->file), plain->line, NULL, plain_text(c, plain->type)},
            .matcher = plain_matcher(c, &plain->matcher),
            .end = MULL_DEAD_LETTER,
        };
    return (mull__rules){.items = rules, .count = count};
}

static inline mull__per plain_per(plain_copy *c, const mull__per *plain)
{
    return (mull__per){plain->kind, plain_text(c, plain->header)};
}

static inline mull__source_pos plain_place(plain_copy *c, const mull__source_pos *plain)
{
    return (mull__source_pos){plain_text(c, plain->file), plain->line};
}

static inline mull__type_list plain_types(plain_copy *c, const mull__type_list *plain)
{
    const char **names = plain_things(c, plain->names, plain->count, sizeof *names);
    for (size_t i = 0; names && i < plain->count; i++)
        names[i] = plain_text(c, names[i]);
    uint32_t *types = plain_things(c, NULL, plain->count, sizeof *types);
    return (mull__type_list){names, types, plain->count};
}

static inline mull__setting_rate_limits plain_rate_limits(plain_copy *c,
                                                          mull__setting_rate_limits plain)
{
    mull__rate_limit *items = plain_things(c, plain.items, plain.count, sizeof *items);
    for (size_t i = 0; items && i < plain.count; i++) {
        items[i].per = plain_per(c, &plain.items[i].per);
        items[i].place = plain_place(c, &plain.items[i].place);
        items[i].only = plain_types(c, &plain.items[i].only);
        items[i].except = plain_types(c, &plain.items[i].except);
        items[i].hint = plain_text(c, plain.items[i].hint);
    }
    return (mull__setting_rate_limits){items, plain.count};
}

static inline mull__setting_call_limits plain_call_limits(plain_copy *c,
                                                          mull__setting_call_limits plain)
{
    mull__call_limit *items = plain_things(c, plain.items, plain.count, sizeof *items);
    for (size_t i = 0; items && i < plain.count; i++) {
        items[i].per = plain_per(c, &plain.items[i].per);
        items[i].place = plain_place(c, &plain.items[i].place);
    }
    return (mull__setting_call_limits){items, plain.count};
}

static inline mull__settings plain_settings(plain_copy *c, const mull__plain_settings *plain)
{
    const char *queue = plain->dead_letter_queue;
    mull__settings settings = {
        .dead_letter_queue =
            queue && !*queue ? mull__default_settings.dead_letter_queue : plain_text(c, queue),
        .max_age_ms = plain->max_age_ms,
        .deadline_ms = plain->deadline_ms,
        .max_attempts = plain->max_attempts,
        .max_deliveries = plain->max_deliveries,
        .rate_limit = plain_rate_limits(c, plain->rate_limit),
        .limit = plain_call_limits(c, plain->limit),
        .override = plain->override,
        .notify = plain->notify,
    };
    const int are_set[] = {
        [MULL__DEAD_LETTER_QUEUE] = queue != NULL,
        [MULL__MAX_AGE] = plain->has_max_age,
        [MULL__DEADLINE] = plain->has_deadline,
        [MULL__MAX_ATTEMPTS] = plain->max_attempts != MULL__UNSET,
        [MULL__MAX_DELIVERIES] = plain->max_deliveries != MULL__UNSET,
        [MULL__RATE_LIMIT] = plain->rate_limits_set,
        [MULL__LIMIT] = plain->limits_set,
        [MULL__OVERRIDE] = plain->override != MULL__UNSET,
        [MULL__NOTIFY] = plain->notify != MULL__UNSET,
    };
    for (size_t i = 0; i < sizeof are_set / sizeof *are_set; i++)
        settings.set |= (unsigned)(are_set[i] != 0) << i;
    return settings;
}

static inline mull__replaced_rule *plain_replaced(plain_copy *c, const mull__replaced_rule *plain,
                                                  size_t count)
{
    mull__replaced_rule *replaced = plain_things(c, plain, count, sizeof *replaced);
    for (size_t i = 0; replaced && i < count; i++) {
        replaced[i].type = plain_text(c, plain[i].type);
        replaced[i].scope = plain_text(c, plain[i].scope);
        replaced[i].file = plain_text(c, plain[i].file);
        replaced[i].by_file = plain_text(c, plain[i].by_file);
    }
    return replaced;
}

static inline void plain_scope(plain_copy *c, mull__scope *scope, const mull__plain_scope *plain)
{
    scope->kind = plain->kind;
    scope->name = plain_text(c, plain->name);
    scope->rules = plain_rules(c, plain->rules, plain->rule_count);
    scope->cause_rules = plain_rules(c, plain->cause_rules, plain->cause_rule_count);
    scope->unrecoverable = plain_unrecoverable(c, plain->unrecoverable, plain->unrecoverable_count);
    scope->settings = plain_settings(c, &plain->settings);
    for (int i = 0; i < MULL__SETTINGS; i++)
        scope->places[i] = (mull__source_pos){plain_text(c, plain->settings.places[i].file),
                                              plain->settings.places[i].line};
    scope->include_count = plain->include_count;
    scope->includes =
        plain_things(c, plain->includes, plain->include_count, sizeof *scope->includes);
    for (size_t i = 0; scope->includes && i < plain->include_count; i++) {
        scope->includes[i].scope = plain_text(c, plain->includes[i].scope);
        scope->includes[i].file = plain_text(c, plain->includes[i].file);
    }
    scope->replaced_count = plain->replaced_count;
    scope->replaced = plain_replaced(c, plain->replaced, plain->replaced_count);
}

/* plain_padding is taken of a table's arena first, so that another piece is the one for which it
 * asks the allocator. */
static size_t plain_padding;

/* mull__table_new makes a table. MULL_ENOMEM. */
static inline int mull__table_new(mull__table **out, const mull_allocator *allocator,
                                  const mull__plain *plain)
{
    mull__table *table;
    *out = NULL;
    if (mull__table_begin(&table, allocator))
        return MULL_ENOMEM;
    plain_copy c = {.arena = &table->arena};
    plain_things(&c, NULL, plain_padding, 1);
    table->scopes = plain_things(&c, NULL, plain->scope_count, sizeof *table->scopes);
    table->scope_count = plain->scope_count;
    table->function_count = plain->function_count;
    mull__type_parent *parents =
        plain_things(&c, plain->parents, plain->parent_count, sizeof *parents);
    for (size_t i = 0; parents && i < plain->parent_count; i++)
        parents[i] = (mull__type_parent){plain_text(&c, parents[i].child),
                                         plain_text(&c, parents[i].parent)};
    for (size_t i = 0; table->scopes && i < plain->scope_count; i++)
        plain_scope(&c, &table->scopes[i], &plain->scopes[i]);
    if (c.failed || mull__table_finish(table, parents, plain->parent_count)) {
        mull__table_free(table);
        return MULL_ENOMEM;
    }
    *out = table;
    return MULL_OK;
}

#endif
