/* table.c: building a decision table: measure the plain policy, take memory once for each kind of
 * thing, then copy. Nothing can fail after the memory is there. */
#include "table.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "types.h"

/* ---- Measuring ------------------------------------------------------------------------------- */

typedef struct measure {
    size_t rules, groups, types, literals, delays, text, consumers, transports;
} measure;

static const char *const scope_words[MULL__SCOPE_KINDS] = {
    [MULL__CONSUMER] = "consumer",
    [MULL__TRANSPORT] = "transport",
    [MULL__BUS] = "bus",
    [MULL__HOST] = "host",
};

static size_t bytes_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* label_bytes: "bus", or "consumer:NAME". */
static size_t label_bytes(const mull__plain_scope *scope)
{
    return bytes_of(scope_words[scope->kind]) + bytes_of(scope->name);
}

/* groups_for is a power of two, at least twice the types that `rules` rules can have. */
static size_t groups_for(size_t rules)
{
    size_t groups = 2;
    while (groups / 2 < rules)
        groups *= 2;
    return groups;
}

static void measure_rule(measure *m, const mull__plain_rule *rule)
{
    m->types++;
    m->text += bytes_of(rule->type) + bytes_of(rule->file);
    m->text += bytes_of(rule->queue) + bytes_of(rule->note);
    m->literals += rule->matcher.field_count;
    for (size_t i = 0; i < rule->matcher.field_count; i++) {
        const mull_field *field = &rule->matcher.fields[i];
        m->text += bytes_of(field->name);
        if (field->value.kind == MULL_STRING)
            m->text += bytes_of(field->value.as.string);
    }
    m->delays += rule->retry.on ? rule->retry.delay_count : 0;
    m->delays += rule->redeliver.on ? rule->redeliver.delay_count : 0;
}

static measure measure_plain(const mull__plain *plain)
{
    measure m = {.types = 2 + 2 * plain->parent_count};
    for (size_t i = 0; i < plain->parent_count; i++)
        m.text += bytes_of(plain->parents[i].child) + bytes_of(plain->parents[i].parent);
    for (size_t i = 0; i < plain->scope_count; i++) {
        const mull__plain_scope *scope = &plain->scopes[i];
        m.rules += scope->rule_count;
        m.groups += groups_for(scope->rule_count);
        m.text += label_bytes(scope) + bytes_of(scope->settings.dead_letter_queue);
        m.consumers += scope->kind == MULL__CONSUMER;
        m.transports += scope->kind == MULL__TRANSPORT;
        for (size_t j = 0; j < scope->rule_count; j++)
            measure_rule(&m, &scope->rules[j]);
    }
    return m;
}

static int take_memory(mull__table *table, const measure *m, size_t scopes)
{
    const mull_allocator *a = &table->allocator;
    table->types = mull__zalloc(a, m->types, sizeof *table->types);
    table->scopes = mull__zalloc(a, scopes, sizeof *table->scopes);
    table->rules = mull__zalloc(a, m->rules, sizeof *table->rules);
    table->groups = mull__zalloc(a, m->groups, sizeof *table->groups);
    table->literals = mull__zalloc(a, m->literals, sizeof *table->literals);
    table->delays = mull__zalloc(a, m->delays, sizeof *table->delays);
    table->text = mull__alloc(a, m->text);
    if (!table->types || !table->scopes || !table->rules || !table->groups || !table->literals ||
        !table->delays || !table->text)
        return MULL_ENOMEM;
    if (mull__names_init(&table->type_names, a, m->types) ||
        mull__names_init(&table->consumers, a, m->consumers) ||
        mull__names_init(&table->transports, a, m->transports))
        return MULL_ENOMEM;
    return MULL_OK;
}

/* ---- Copying --------------------------------------------------------------------------------- */

/* room is where the next of each kind goes. */
typedef struct room {
    mull__table *table;
    mull__rule *rules;
    mull__group *groups;
    mull_field *literals;
    int64_t *delays;
    char *text;
} room;

static const char *copy_text(room *r, const char *text)
{
    if (!text)
        return NULL;
    size_t bytes = strlen(text) + 1;
    char *copy = memcpy(r->text, text, bytes);
    r->text += bytes;
    return copy;
}

/* copy_type gives a type's number. A name that is there already leaves its copy unused. */
static uint32_t copy_type(room *r, const char *name)
{
    return mull__types_add(r->table, copy_text(r, name));
}

static void copy_types(room *r, const mull__plain *plain)
{
    mull__types_add(r->table, "Error"); /* in the order of their numbers */
    mull__types_add(r->table, "MessageDeserializationError");
    for (size_t i = 0; i < plain->parent_count; i++) {
        uint32_t child = copy_type(r, plain->parents[i].child);
        r->table->types[child].parent = copy_type(r, plain->parents[i].parent);
    }
}

static mull__plain_matcher copy_matcher(room *r, const mull__plain_matcher *plain)
{
    mull__plain_matcher matcher = {.kind = plain->kind};
    if (plain->kind == MULL__MATCH_FUNCTION)
        matcher.function = plain->function;
    if (plain->kind != MULL__MATCH_FIELDS)
        return matcher;
    matcher.fields = r->literals;
    matcher.field_count = plain->field_count;
    for (size_t i = 0; i < plain->field_count; i++) {
        mull_field *literal = r->literals++;
        *literal = plain->fields[i];
        literal->name = copy_text(r, literal->name);
        if (literal->value.kind == MULL_STRING)
            literal->value.as.string = copy_text(r, literal->value.as.string);
    }
    return matcher;
}

static mull__plain_tier copy_tier(room *r, const mull__plain_tier *plain)
{
    if (!plain->on)
        return (mull__plain_tier){0};
    mull__plain_tier tier = *plain;
    tier.on = 1;
    if (plain->delays && plain->delay_count) {
        tier.delays = memcpy(r->delays, plain->delays, plain->delay_count * sizeof *plain->delays);
        r->delays += plain->delay_count;
    } else {
        tier.delays = NULL;
        tier.delay_count = 0;
    }
    return tier;
}

static void copy_rule(room *r, const mull__plain_rule *plain, const char *label)
{
    uint32_t type = copy_type(r, plain->type);
    *r->rules++ = (mull__rule){
        .source = {copy_text(r, plain->file), plain->line, label, r->table->types[type].name},
        .type = type,
        .next = MULL__NONE,
        .matcher = copy_matcher(r, &plain->matcher),
        .retry = copy_tier(r, &plain->retry),
        .redeliver = copy_tier(r, &plain->redeliver),
        .end = plain->end,
        .queue = copy_text(r, plain->queue),
        .note = copy_text(r, plain->note),
    };
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static mull__group *group_of(mull__group *groups, uint32_t mask, uint32_t type)
{
    uint32_t at = type & mask;
    while (groups[at].type != type && groups[at].type != MULL__NONE)
        at = (at + 1) & mask;
    return &groups[at];
}

/* group_rules links the rules of each type, from the last to the first. */
static void group_rules(room *r, mull__scope *scope, mull__rule *rules)
{
    size_t size = groups_for(scope->rule_count);
    mull__group *groups = r->groups;
    r->groups += size;
    scope->groups = groups;
    scope->group_mask = (uint32_t)size - 1;
    for (size_t i = 0; i < size; i++)
        groups[i] = (mull__group){MULL__NONE, MULL__NONE};
    for (size_t i = scope->rule_count; i-- > 0;) {
        mull__group *group = group_of(groups, scope->group_mask, rules[i].type);
        group->type = rules[i].type;
        rules[i].next = group->first;
        group->first = (uint32_t)i;
    }
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

enum { MAX_DELIVERIES = 20 };

static const mull__layer defaults = {
    .bounds = {.dead_letter_queue = "error",
               .max_age_ms = MULL__OFF,
               .max_attempts = MULL__OFF,
               .max_deliveries = MAX_DELIVERIES},
};

static int64_t bound(int64_t setting)
{
    return setting == MULL__UNSET ? MULL__INHERITED : setting;
}

static mull__bounds copy_bounds(room *r, const mull__plain_settings *settings)
{
    const char *queue = settings->dead_letter_queue;
    return (mull__bounds){
        .dead_letter_queue =
            queue && !*queue ? defaults.bounds.dead_letter_queue : copy_text(r, queue),
        .max_age_ms = settings->has_max_age ? settings->max_age_ms : MULL__INHERITED,
        .max_attempts = bound(settings->max_attempts),
        .max_deliveries = bound(settings->max_deliveries),
    };
}

static void copy_label(room *r, mull__scope *scope, const mull__plain_scope *plain)
{
    size_t bytes = label_bytes(plain);
    scope->label = r->text;
    if (plain->name) {
        scope->name = r->text + bytes_of(scope_words[plain->kind]);
        snprintf(r->text, bytes, "%s:%s", scope_words[plain->kind], plain->name);
    } else {
        snprintf(r->text, bytes, "%s", scope_words[plain->kind]);
    }
    r->text += bytes;
}

static void copy_scope(room *r, mull__scope *scope, const mull__plain_scope *plain)
{
    mull__rule *rules = r->rules;
    scope->kind = plain->kind;
    copy_label(r, scope, plain);
    scope->rules = rules;
    scope->rule_count = plain->rule_count;
    for (size_t i = 0; i < plain->rule_count; i++)
        copy_rule(r, &plain->rules[i], scope->label);
    group_rules(r, scope, rules);
    scope->layer.rules = plain->rule_count ? scope : NULL;
    scope->layer.bounds = copy_bounds(r, &plain->settings);
}

/* put_over lays the scopes of a kind that has no names over the base. */
static void put_over(mull__table *table, mull__scope_kind kind)
{
    for (size_t i = 0; i < table->scope_count; i++)
        if (table->scopes[i].kind == kind)
            table->base = mull__over(&table->scopes[i].layer, &table->base);
}

/* resolve works out ahead what doesn't depend on the consumer, and makes scopes found by name. */
static void resolve(mull__table *table)
{
    table->base = defaults;
    put_over(table, MULL__HOST);
    put_over(table, MULL__BUS);
    for (size_t i = 0; i < table->scope_count; i++) {
        mull__scope *scope = &table->scopes[i];
        if (!scope->name)
            continue;
        int transport = scope->kind == MULL__TRANSPORT;
        if (transport)
            scope->layer = mull__over(&scope->layer, &table->base);
        mull__names_add(transport ? &table->transports : &table->consumers, scope->name,
                        mull__hash_text(scope->name), (uint32_t)i);
    }
}

/* ---- The table ------------------------------------------------------------------------------- */

static void fill(mull__table *table, const mull__plain *plain)
{
    room r = {table, table->rules, table->groups, table->literals, table->delays, table->text};
    copy_types(&r, plain);
    for (size_t i = 0; i < plain->scope_count; i++)
        copy_scope(&r, &table->scopes[i], &plain->scopes[i]);
    table->scope_count = plain->scope_count;
    table->rule_count = (size_t)(r.rules - table->rules);
    table->function_count = plain->function_count;
    resolve(table);
}

int mull__table_new(mull__table **out, const mull_allocator *allocator, const mull__plain *plain)
{
    *out = NULL;
    mull__table *table = mull__zalloc(allocator, 1, sizeof *table);
    if (!table)
        return MULL_ENOMEM;
    table->allocator = *allocator;
    measure m = measure_plain(plain);
    if (take_memory(table, &m, plain->scope_count)) {
        mull__table_free(table);
        return MULL_ENOMEM;
    }
    fill(table, plain);
    *out = table;
    return MULL_OK;
}

void mull__table_free(mull__table *table)
{
    if (!table)
        return;
    const mull_allocator a = table->allocator;
    mull__free(&a, table->transports.slots);
    mull__free(&a, table->consumers.slots);
    mull__free(&a, table->type_names.slots);
    mull__free(&a, table->text);
    mull__free(&a, table->delays);
    mull__free(&a, table->literals);
    mull__free(&a, table->groups);
    mull__free(&a, table->rules);
    mull__free(&a, table->scopes);
    mull__free(&a, table->types);
    mull__free(&a, table);
}

size_t mull__table_rules(const mull__table *table)
{
    return table->rule_count;
}

uint32_t mull__table_functions(const mull__table *table)
{
    return table->function_count;
}
