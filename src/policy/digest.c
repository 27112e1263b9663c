/* digest.c: the content hash of a table: all that a verdict can depend on or show. */
#include <string.h>

#include "base/hash.h"
#include "table_internal.h"

/* Every piece goes in with its size, so that no two tables run into the same bytes. */

static void add_number(mull__digest *digest, uint64_t number)
{
    mull__digest_add(digest, &number, sizeof number);
}

static void add_real(mull__digest *digest, double number)
{
    mull__digest_add(digest, &number, sizeof number);
}

static void add_text(mull__digest *digest, const char *text)
{
    add_number(digest, text != NULL);
    if (text)
        mull__digest_add(digest, text, strlen(text));
}

/* ---- Matchers -------------------------------------------------------------------------------- */

/* add_scalar: a literal is no list and no map; an open end is nil. */
static void add_scalar(mull__digest *digest, const mull_value *value)
{
    add_number(digest, value->kind);
    if (value->kind == MULL_BOOLEAN)
        add_number(digest, value->as.boolean != 0);
    else if (value->kind == MULL_INTEGER)
        add_number(digest, (uint64_t)value->as.integer);
    else if (value->kind == MULL_NUMBER)
        add_real(digest, value->as.number);
    else if (value->kind == MULL_STRING)
        add_text(digest, value->as.string);
}

static void add_value(mull__digest *digest, const mull__condition *value)
{
    for (; value; value = value->inner) { /* an inner one is the last piece of its outer one */
        add_number(digest, value->kind);
        add_number(digest, value->literal_count);
        for (size_t i = 0; i < value->literal_count; i++)
            add_scalar(digest, &value->literals[i]);
        add_scalar(digest, &value->low);
        add_scalar(digest, &value->high);
        add_text(digest, value->text);
    }
}

static void add_matcher(mull__digest *digest, const mull__matcher *matcher)
{
    add_number(digest, matcher->kind);
    add_number(digest, matcher->function);
    add_number(digest, matcher->test_count);
    for (size_t i = 0; i < matcher->test_count; i++) {
        add_number(digest, matcher->tests[i].subject);
        add_text(digest, matcher->tests[i].name);
        add_value(digest, &matcher->tests[i].value);
    }
    add_number(digest, matcher->part_count);
    for (size_t i = 0; i < matcher->part_count; i++)
        add_matcher(digest, &matcher->parts[i]);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static void add_tier(mull__digest *digest, const mull__tier_config *tier)
{
    add_number(digest, (uint64_t)tier->on);
    add_number(digest, (uint64_t)tier->attempts);
    add_number(digest, tier->delay_count);
    for (size_t i = 0; i < tier->delay_count; i++)
        add_number(digest, (uint64_t)tier->delays[i]);
    add_number(digest, (uint64_t)tier->base_ms);
    add_number(digest, tier->backoff);
    add_real(digest, tier->factor);
    add_number(digest, (uint64_t)tier->max_delay_ms);
    add_real(digest, tier->jitter);
    add_number(digest, tier->jitter_kind);
    add_text(digest, tier->hint);
}

static void add_place(mull__digest *digest, const char *file, int line)
{
    add_text(digest, file);
    add_number(digest, (uint64_t)line);
}

static void add_source(mull__digest *digest, const mull_rule *source)
{
    add_text(digest, source->scope);
    add_place(digest, source->file, source->line);
}

static void add_rule(mull__digest *digest, const mull__rule *rule)
{
    add_source(digest, &rule->source);
    add_number(digest, rule->type);
    add_matcher(digest, &rule->matcher);
    add_tier(digest, &rule->retry);
    add_tier(digest, &rule->redeliver);
    add_number(digest, rule->end);
    add_text(digest, rule->queue);
    add_text(digest, rule->note);
}

static void add_rules(mull__digest *digest, const mull__rules *rules)
{
    add_number(digest, rules->count);
    for (size_t i = 0; i < rules->count; i++)
        add_rule(digest, &rules->items[i]);
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

static void add_count(mull__digest *digest, int64_t value)
{
    add_number(digest, (uint64_t)value);
}

static void add_per(mull__digest *digest, const mull__per *per)
{
    add_number(digest, per->kind);
    add_text(digest, per->header);
}

static void add_types(mull__digest *digest, const mull__type_list *list)
{
    add_number(digest, list->count);
    for (size_t i = 0; i < list->count; i++)
        add_number(digest, list->types[i]);
}

static void add_rate_limit(mull__digest *digest, const mull__rate_limit *limit)
{
    add_per(digest, &limit->per);
    add_place(digest, limit->place.file, limit->place.line);
    add_count(digest, limit->after);
    add_real(digest, limit->ratio);
    add_count(digest, limit->window_ms);
    add_count(digest, limit->least);
    add_count(digest, limit->messages);
    add_count(digest, limit->within_ms);
    add_types(digest, &limit->only);
    add_types(digest, &limit->except);
    add_count(digest, limit->wait_ms);
    add_count(digest, limit->max_wait_ms);
    add_text(digest, limit->hint);
    add_count(digest, limit->successes);
    add_number(digest, limit->keep != 0);
    add_count(digest, limit->ramp_ms);
}

static void add_rate_limits(mull__digest *digest, mull__setting_rate_limits limits)
{
    add_number(digest, limits.count);
    for (size_t i = 0; i < limits.count; i++)
        add_rate_limit(digest, &limits.items[i]);
}

static void add_call_limits(mull__digest *digest, mull__setting_call_limits limits)
{
    add_number(digest, limits.count);
    for (size_t i = 0; i < limits.count; i++) {
        const mull__call_limit *limit = &limits.items[i];
        add_per(digest, &limit->per);
        add_place(digest, limit->place.file, limit->place.line);
        add_count(digest, limit->count);
        add_count(digest, limit->unit_ms);
        add_count(digest, limit->burst);
    }
}

#define ADD(NUMBER, field, ...)                                                                    \
    _Generic(settings->field, const char * : add_text, int64_t                                     \
             : add_count, mull__setting_rate_limits                                                \
             : add_rate_limits, mull__setting_call_limits                                          \
             : add_call_limits)(digest, settings->field);

static void add_settings(mull__digest *digest, const mull__scope *scope)
{
    const mull__settings *settings = &scope->settings;
    add_number(digest, settings->set);
    MULL__EACH_SETTING(ADD)
    for (int i = 0; i < MULL__SETTINGS; i++)
        add_place(digest, scope->places[i].file, scope->places[i].line);
}

static void add_scope(mull__digest *digest, const mull__scope *scope)
{
    add_text(digest, scope->label);
    add_settings(digest, scope);
    add_rules(digest, &scope->rules);
    add_rules(digest, &scope->cause_rules);
    add_rules(digest, &scope->unrecoverable);
    add_number(digest, scope->include_count);
    for (size_t i = 0; i < scope->include_count; i++)
        add_source(digest, &scope->includes[i]);
    add_number(digest, scope->replaced_count);
    for (size_t i = 0; i < scope->replaced_count; i++) {
        const mull__replaced_rule *gone = &scope->replaced[i];
        add_text(digest, gone->type);
        add_text(digest, gone->scope);
        add_place(digest, gone->file, gone->line);
        add_place(digest, gone->by_file, gone->by_line);
        add_number(digest, gone->by_cause != 0);
    }
}

void mull__table_digest(const mull__table *table, char hex[33])
{
    mull__digest digest;
    mull__digest_begin(&digest);
    add_number(&digest, table->type_count);
    for (size_t i = 0; i < table->type_count; i++) {
        add_text(&digest, table->types[i].name);
        add_number(&digest, table->types[i].parent);
    }
    add_number(&digest, table->function_count);
    add_number(&digest, table->scope_count);
    for (size_t i = 0; i < table->scope_count; i++)
        add_scope(&digest, &table->scopes[i]);
    mull__digest_end(&digest, hex);
}
