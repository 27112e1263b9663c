/* table.c: building a decision table out of a plain policy, with the means of copy.h. */
#include "table.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "copy.h"
#include "types.h"

/* ---- Measuring ------------------------------------------------------------------------------- */

typedef struct measure {
    mull__size size;
    size_t types, consumers, transports;
} measure;

static const char *const scope_words[MULL__SCOPE_KINDS] = {
    [MULL__CONSUMER] = "consumer",
    [MULL__TRANSPORT] = "transport",
    [MULL__BUS] = "bus",
    [MULL__HOST] = "host",
};

/* label_bytes: "bus", or "consumer:NAME". */
static size_t label_bytes(const mull__plain_scope *scope)
{
    return strlen(scope_words[scope->kind]) + (scope->name ? 1 + strlen(scope->name) : 0) + 1;
}

/* groups_for is a power of two, at least twice the types that `rules` rules can have. */
static size_t groups_for(size_t rules)
{
    size_t groups = 2;
    while (groups / 2 < rules)
        groups *= 2;
    return groups;
}

static void measure_rules(measure *m, size_t count)
{
    m->types += count;
    mull__measure_things(&m->size, count, sizeof(mull__rule));
    mull__measure_things(&m->size, groups_for(count), sizeof(mull__group));
}

static void measure_chains(measure *m, const mull__plain_rule *rules, size_t count)
{
    measure_rules(m, count);
    for (size_t i = 0; i < count; i++) {
        const mull__plain_rule *rule = &rules[i];
        mull__measure_text(&m->size, rule->type);
        mull__measure_text(&m->size, rule->file);
        mull__measure_text(&m->size, rule->scope);
        mull__measure_text(&m->size, rule->queue);
        mull__measure_text(&m->size, rule->note);
        mull__measure_matcher(&m->size, &rule->matcher);
        mull__measure_tier(&m->size, &rule->retry);
        mull__measure_tier(&m->size, &rule->redeliver);
    }
}

static void measure_unrecoverable(measure *m, const mull__plain_scope *scope)
{
    measure_rules(m, scope->unrecoverable_count);
    for (size_t i = 0; i < scope->unrecoverable_count; i++) {
        mull__measure_text(&m->size, scope->unrecoverable[i].type);
        mull__measure_text(&m->size, scope->unrecoverable[i].file);
        mull__measure_matcher(&m->size, &scope->unrecoverable[i].matcher);
    }
}

/* measure_shown: what is only for those who look at a policy. */
static void measure_shown(mull__size *size, const mull__plain_scope *scope)
{
    for (int i = 0; i < MULL__SETTINGS; i++)
        mull__measure_text(size, scope->settings.places[i].file);
    mull__measure_things(size, scope->include_count, sizeof *scope->includes);
    for (size_t i = 0; i < scope->include_count; i++) {
        mull__measure_text(size, scope->includes[i].scope);
        mull__measure_text(size, scope->includes[i].file);
    }
    mull__measure_things(size, scope->replaced_count, sizeof *scope->replaced);
    for (size_t i = 0; i < scope->replaced_count; i++) {
        mull__measure_text(size, scope->replaced[i].type);
        mull__measure_text(size, scope->replaced[i].scope);
        mull__measure_text(size, scope->replaced[i].file);
        mull__measure_text(size, scope->replaced[i].by_file);
    }
}

static measure measure_plain(const mull__plain *plain)
{
    measure m = {.types = 2 + 2 * plain->parent_count};
    for (size_t i = 0; i < plain->parent_count; i++) {
        mull__measure_text(&m.size, plain->parents[i].child);
        mull__measure_text(&m.size, plain->parents[i].parent);
    }
    mull__measure_things(&m.size, plain->scope_count, sizeof(mull__scope));
    for (size_t i = 0; i < plain->scope_count; i++) {
        const mull__plain_scope *scope = &plain->scopes[i];
        m.size.text += label_bytes(scope);
        mull__measure_text(&m.size, scope->settings.dead_letter_queue);
        m.consumers += scope->kind == MULL__CONSUMER;
        m.transports += scope->kind == MULL__TRANSPORT;
        measure_chains(&m, scope->rules, scope->rule_count);
        measure_chains(&m, scope->cause_rules, scope->cause_rule_count);
        measure_unrecoverable(&m, scope);
        measure_shown(&m.size, scope);
    }
    mull__measure_things(&m.size, m.types, sizeof(mull__type));
    mull__measure_things(&m.size, mull__layers(m.consumers, m.transports), sizeof(mull__layer));
    return m;
}

static int take_memory(mull__table *table, const measure *m)
{
    const mull_allocator *a = &table->allocator;
    table->things = mull__zalloc(a, m->size.things, 1);
    table->text = mull__alloc(a, m->size.text);
    if (!table->things || !table->text)
        return MULL_ENOMEM;
    if (mull__names_init(&table->type_names, a, m->types) ||
        mull__names_init(&table->consumers, a, m->consumers) ||
        mull__names_init(&table->transports, a, m->transports))
        return MULL_ENOMEM;
    return MULL_OK;
}

/* ---- Types ----------------------------------------------------------------------------------- */

/* builder is a table in the making, and where the next copy goes. */
typedef struct builder {
    mull__table *table;
    mull__room room;
} builder;

/* add_type gives a type's number. A name that is there already leaves its copy unused. */
static uint32_t add_type(builder *b, const char *name)
{
    return mull__types_add(b->table, mull__copy_text(&b->room, name));
}

static void add_types(builder *b, const mull__plain *plain, size_t types)
{
    b->table->types = mull__take(&b->room, types, sizeof *b->table->types);
    mull__types_add(b->table, "Error"); /* in the order of their numbers */
    mull__types_add(b->table, "MessageDeserializationError");
    for (size_t i = 0; i < plain->parent_count; i++) {
        uint32_t child = add_type(b, plain->parents[i].child);
        uint32_t parent = add_type(b, plain->parents[i].parent);
        b->table->types[child].parent = parent;
    }
    b->table->declared_types = b->table->type_count;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

static mull__group *group_of(mull__group *groups, uint32_t mask, uint32_t type)
{
    uint32_t at = type & mask;
    while (groups[at].type != type && groups[at].type != MULL__NONE)
        at = (at + 1) & mask;
    return &groups[at];
}

/* grouped links the rules of each type, from the last to the first. */
static mull__rules grouped(builder *b, mull__rule *items, size_t count)
{
    size_t size = groups_for(count);
    uint32_t mask = (uint32_t)size - 1;
    mull__group *groups = mull__take(&b->room, size, sizeof *groups);
    for (size_t i = 0; i < size; i++)
        groups[i] = (mull__group){MULL__NONE, NULL};
    for (size_t i = count; i-- > 0;) {
        mull__group *group = group_of(groups, mask, items[i].type);
        group->type = items[i].type;
        items[i].next = group->first ? (uint32_t)(group->first - items) : MULL__NONE;
        group->first = &items[i];
    }
    return (mull__rules){items, count, groups, groups + mask, mask};
}

static mull_rule copy_source(builder *b, const char *type, const char *file, int line,
                             const char *label)
{
    return (mull_rule){mull__copy_file(&b->room, file), line, label, type};
}

/* label_in is where a rule was written: mostly in the scope that has it. */
static const char *label_in(builder *b, const mull__scope *scope, const char *label)
{
    if (!label || strcmp(label, scope->label) == 0)
        return scope->label;
    return mull__copy_text(&b->room, label);
}

static mull__rules copy_chains(builder *b, const mull__scope *scope, const mull__plain_rule *plain,
                               size_t count)
{
    mull__rule *rules = mull__take(&b->room, count, sizeof *rules);
    for (size_t i = 0; i < count; i++, plain++) {
        uint32_t type = add_type(b, plain->type);
        rules[i] = (mull__rule){
            .source = copy_source(b, b->table->types[type].name, plain->file, plain->line,
                                  label_in(b, scope, plain->scope)),
            .type = type,
            .matcher = mull__copy_matcher(&b->room, &plain->matcher),
            .retry = mull__copy_tier(&b->room, &plain->retry),
            .redeliver = mull__copy_tier(&b->room, &plain->redeliver),
            .end = plain->end,
            .queue = mull__copy_text(&b->room, plain->queue),
            .note = mull__copy_text(&b->room, plain->note),
        };
        if (rules[i].matcher.kind == MULL__MATCH_ALWAYS || rules[i].matcher.equals) {
            rules[i].brief_retries = rules[i].retry.lot_count;
            rules[i].brief_redeliveries = rules[i].redeliver.lot_count;
        }
    }
    b->table->rule_count += count;
    return grouped(b, rules, count);
}

static mull__rules copy_unrecoverable(builder *b, const mull__scope *scope,
                                      const mull__plain_unrecoverable *plain, size_t count)
{
    mull__rule *rules = mull__take(&b->room, count, sizeof *rules);
    for (size_t i = 0; i < count; i++, plain++) {
        uint32_t type = add_type(b, plain->type);
        rules[i] = (mull__rule){
            .source =
                copy_source(b, b->table->types[type].name, plain->file, plain->line, scope->label),
            .type = type,
            .matcher = mull__copy_matcher(&b->room, &plain->matcher),
            .end = MULL_DEAD_LETTER,
        };
    }
    b->table->unrecoverable_count += count;
    return grouped(b, rules, count);
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

enum { MAX_DELIVERIES = 20 };

static const mull__layer defaults = {
    .bounds = {.dead_letter_queue = "error",
               .max_age_ms = MULL__OFF,
               .max_attempts = MULL__OFF,
               .max_deliveries = MAX_DELIVERIES,
               .override = MULL__OFF},
};

static int64_t inherited_or(int64_t setting)
{
    return setting == MULL__UNSET ? MULL__INHERITED : setting;
}

static unsigned what_is_set(const mull__plain_settings *settings)
{
    return (unsigned)(settings->dead_letter_queue != NULL) << MULL__DEAD_LETTER_QUEUE |
           (unsigned)(settings->has_max_age != 0) << MULL__MAX_AGE |
           (unsigned)(settings->max_attempts != MULL__UNSET) << MULL__MAX_ATTEMPTS |
           (unsigned)(settings->max_deliveries != MULL__UNSET) << MULL__MAX_DELIVERIES |
           (unsigned)(settings->rate_after != MULL__UNSET) << MULL__RATE_LIMIT |
           (unsigned)(settings->override != MULL__UNSET) << MULL__OVERRIDE |
           (unsigned)(settings->notify != MULL__UNSET) << MULL__NOTIFY;
}

static void copy_settings(builder *b, mull__scope *scope, const mull__plain_settings *settings)
{
    const char *queue = settings->dead_letter_queue;
    scope->layer.bounds = (mull__bounds){
        .dead_letter_queue =
            queue && !*queue ? defaults.bounds.dead_letter_queue : mull__copy_text(&b->room, queue),
        .max_age_ms = settings->has_max_age ? settings->max_age_ms : MULL__INHERITED,
        .max_attempts = inherited_or(settings->max_attempts),
        .max_deliveries = inherited_or(settings->max_deliveries),
        .override = inherited_or(settings->override),
    };
    scope->sets = what_is_set(settings);
    scope->rate_after = inherited_or(settings->rate_after);
    scope->rate_wait_ms = settings->rate_after > 0 ? settings->rate_wait_ms : 0;
    scope->notify = inherited_or(settings->notify);
    for (int i = 0; i < MULL__SETTINGS; i++)
        scope->places[i] = (mull__plain_place){
            mull__copy_file(&b->room, settings->places[i].file),
            settings->places[i].line,
        };
}

static void copy_label(builder *b, mull__scope *scope, const mull__plain_scope *plain)
{
    size_t bytes = label_bytes(plain);
    char *label = b->room.text;
    int named = snprintf(label, bytes, "%s%s%s", scope_words[plain->kind], plain->name ? ":" : "",
                         plain->name ? plain->name : "");
    b->room.text += named + 1;
    scope->label = label;
    if (plain->name)
        scope->name = label + strlen(scope_words[plain->kind]) + 1;
}

static void copy_shown(builder *b, mull__scope *scope, const mull__plain_scope *plain)
{
    mull__plain_include *includes = mull__take(&b->room, plain->include_count, sizeof *includes);
    for (size_t i = 0; i < plain->include_count; i++)
        includes[i] = (mull__plain_include){
            mull__copy_text(&b->room, plain->includes[i].scope),
            mull__copy_file(&b->room, plain->includes[i].file),
            plain->includes[i].line,
        };
    mull__plain_replaced *replaced = mull__take(&b->room, plain->replaced_count, sizeof *replaced);
    for (size_t i = 0; i < plain->replaced_count; i++) {
        const mull__plain_replaced *gone = &plain->replaced[i];
        replaced[i] = *gone;
        replaced[i].type = mull__copy_text(&b->room, gone->type);
        replaced[i].scope = label_in(b, scope, gone->scope);
        replaced[i].file = mull__copy_file(&b->room, gone->file);
        replaced[i].by_file = mull__copy_file(&b->room, gone->by_file);
    }
    scope->includes = includes;
    scope->include_count = plain->include_count;
    scope->replaced = replaced;
    scope->replaced_count = plain->replaced_count;
}

static void copy_scope(builder *b, mull__scope *scope, const mull__plain_scope *plain)
{
    scope->kind = plain->kind;
    copy_label(b, scope, plain);
    scope->rules = copy_chains(b, scope, plain->rules, plain->rule_count);
    scope->cause_rules = copy_chains(b, scope, plain->cause_rules, plain->cause_rule_count);
    scope->unrecoverable =
        copy_unrecoverable(b, scope, plain->unrecoverable, plain->unrecoverable_count);
    copy_settings(b, scope, &plain->settings);
    copy_shown(b, scope, plain);
    if (mull__scope_rules(scope) > 0)
        scope->layer.rules = scope;
}

static const mull__scope *unnamed(const mull__table *table, mull__scope_kind kind)
{
    for (size_t i = 0; i < table->scope_count; i++)
        if (table->scopes[i].kind == kind)
            return &table->scopes[i];
    return NULL;
}

/* resolve works out ahead what holds where, and makes scopes found by name. */
static void resolve(builder *b, const measure *m)
{
    mull__table *table = b->table;
    table->bus = unnamed(table, MULL__BUS);
    table->host = unnamed(table, MULL__HOST);
    size_t count = mull__layers(m->consumers, m->transports);
    mull__lay(table, mull__take(&b->room, count, sizeof *table->layers), &defaults);
}

/* ---- The table ------------------------------------------------------------------------------- */

static void fill(mull__table *table, const mull__plain *plain, const measure *m)
{
    builder b = {table, {.things = table->things, .text = table->text}};
    add_types(&b, plain, m->types);
    table->scopes = mull__take(&b.room, plain->scope_count, sizeof *table->scopes);
    table->scope_count = plain->scope_count;
    table->unrecoverable_count = 1;
    for (size_t i = 0; i < plain->scope_count; i++)
        copy_scope(&b, &table->scopes[i], &plain->scopes[i]);
    table->function_count = plain->function_count;
    mull__types_ready(table);
    resolve(&b, m);
}

int mull__table_new(mull__table **out, const mull_allocator *allocator, const mull__plain *plain)
{
    *out = NULL;
    mull__table *table = mull__zalloc(allocator, 1, sizeof *table);
    if (!table)
        return MULL_ENOMEM;
    table->allocator = *allocator;
    measure m = measure_plain(plain);
    if (take_memory(table, &m)) {
        mull__table_free(table);
        return MULL_ENOMEM;
    }
    fill(table, plain, &m);
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
    mull__free(&a, table->things);
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
