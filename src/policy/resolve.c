/* resolve.c: see resolve.h. */
#include "resolve.h"

#include <string.h>

#include "base/struct_compat.h"

/* ---- Settings in force ----------------------------------------------------------------------- */

const mull__settings mull__default_settings = {.set = (1u << MULL__SETTINGS) - 1,
#define DEFAULT(NUMBER, field, kind, otherwise, ...) .field = otherwise,
                                               MULL__EACH_SETTING(DEFAULT)
#undef DEFAULT
};

/* lay puts a nearer effective settings on top of another: rules as a whole, settings one by one. */
static MULL__NOINLINE void lay(mull__effective_settings *on, const mull__effective_settings *near)
{
    if (near->rules)
        on->rules = near->rules;
    if (near->consumer)
        on->consumer = near->consumer;
    if (near->transport)
        on->transport = near->transport;
    if (near->settings.set == 0)
        return;
    on->settings.set |= near->settings.set;
#define TAKE(NUMBER, field, ...)                                                                   \
    if (mull__is_set(&near->settings, MULL__##NUMBER))                                             \
        on->settings.field = near->settings.field;
    MULL__EACH_SETTING(TAKE)
#undef TAKE
}

/* add_name is for a consumer's or transport's scope. A transport's effective settings is laid over
 * all that is farther, so that a consumer's over it is all that holds for both. */
static void add_name(mull__table *table, uint32_t number)
{
    mull__scope *scope = &table->scopes[number];
    if (scope->kind == MULL__TRANSPORT) {
        mull__effective_settings own = scope->effective;
        own.transport = scope;
        table->transport_count++;
        scope->effective = table->nowhere.effective;
        lay(&scope->effective, &own);
        mull__name_index_add(&table->transports, scope->name, number);
    } else if (scope->kind == MULL__CONSUMER) {
        scope->effective.consumer = scope;
        mull__name_index_add(&table->consumers, scope->name, number);
    }
}

/* open_fast_path fills in what the fast path looks at, once the settings are there. */
static void open_fast_path(mull__site *site)
{
    const mull__settings *settings = &site->effective.settings;
    site->rules = NULL;
    site->deliveries = site->calls = 0;
    if (!site->effective.rules || settings->override != MULL__OFF ||
        settings->deadline_ms != MULL__OFF)
        return;
    site->rules = &site->effective.rules->rules;
    site->deliveries = settings->max_deliveries == MULL__OFF ? INT64_MAX : settings->max_deliveries;
    site->calls = settings->max_attempts == MULL__OFF ? INT64_MAX : settings->max_attempts - 1;
}

int mull__effective_settings_ready(mull__table *table)
{
    if (mull__name_index_init(&table->consumers, &table->arena, table->scope_count) ||
        mull__name_index_init(&table->transports, &table->arena, table->scope_count))
        return MULL_ENOMEM;
    table->nowhere.effective.settings = mull__default_settings;
    if (table->host)
        lay(&table->nowhere.effective, &table->host->effective);
    if (table->bus)
        lay(&table->nowhere.effective, &table->bus->effective);
    open_fast_path(&table->nowhere);
    for (size_t i = 0; i < table->scope_count; i++)
        add_name(table, (uint32_t)i);
    return MULL_OK;
}

void mull__site_find(mull__site *site, const mull__table *table, const char *consumer,
                     const char *transport)
{
    uint64_t hash = 0;
    uint32_t near = MULL__NONE, far = MULL__NONE;
    if (transport)
        far = mull__name_index_find(&table->transports, transport, &hash);
    hash = 0;
    if (consumer)
        near = mull__name_index_find(&table->consumers, consumer, &hash);
    site->effective = far == MULL__NONE ? table->nowhere.effective : table->scopes[far].effective;
    site->consumer_hash = hash;
    if (near != MULL__NONE)
        lay(&site->effective, &table->scopes[near].effective);
    open_fast_path(site);
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

const mull__scope *mull__scope_of(const mull__table *table,
                                  const mull__effective_settings *effective, mull__scope_kind kind)
{
    const mull__scope *const scopes[MULL__SCOPE_KINDS] = {[MULL__CONSUMER] = effective->consumer,
                                                          [MULL__TRANSPORT] = effective->transport,
                                                          [MULL__BUS] = table->bus,
                                                          [MULL__HOST] = table->host};
    return scopes[kind];
}

const mull__scope *mull__scope_that_sets(const mull__table *table,
                                         const mull__effective_settings *effective,
                                         mull__setting setting)
{
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, effective, (mull__scope_kind)kind);
        if (scope && mull__is_set(&scope->settings, setting))
            return scope;
    }
    return NULL;
}

/* ---- Unrecoverable types --------------------------------------------------------------------- */

int mull__builtin_unrecoverable_applies(const mull__effective_settings *effective)
{
    return !effective->rules || !mull__first_rule(&effective->rules->rules, MULL__UNREADABLE_TYPE);
}

/* ---- Lineages -------------------------------------------------------------------------------- */

/* The scratch of a lineage: one word for each type found, then one bit for each type seen. */

static size_t bit_words(const mull__table *table)
{
    return (table->type_count + 63) / 64;
}

size_t mull__table_scratch_words(const mull__table *table)
{
    return table->type_count + bit_words(table);
}

/* sent_count is how many names a failure gives its error. Beyond LINEAGE_MAX they aren't looked at:
 * no class is that deep, and the time for each grows with those before it. */
enum { LINEAGE_MAX = 256 };

static size_t sent_count(const mull_error *error)
{
    size_t count = mull__lineage_count(error);
    return 1 + (count < LINEAGE_MAX ? count : LINEAGE_MAX);
}

/* sent is the `index`-th name that a failure gives its error: the type, then the sent lineage. */
static const char *sent(const mull_error *error, size_t index)
{
    return index == 0 ? error->type : error->lineage[index - 1];
}

/* names_type is false for what counts as not sent: Error, which is the end of every lineage, and
 * holes. */
static int names_type(const char *name)
{
    return name && *name && strcmp(name, "Error") != 0;
}

static int repeats(const mull_error *error, size_t index)
{
    const char *name = sent(error, index);
    for (size_t i = 0; i < index; i++) {
        const char *earlier = sent(error, i);
        if (earlier && strcmp(earlier, name) == 0)
            return 1;
    }
    return 0;
}

/* see marks a type and is true the first time. */
static int see(uint64_t *seen, uint32_t type)
{
    uint64_t bit = UINT64_C(1) << (type % 64);
    int first = !(seen[type / 64] & bit);
    seen[type / 64] |= bit;
    return first;
}

mull__lineage mull__lineage_of_type(const mull__table *table, uint32_t type, uint64_t *scratch)
{
    const int unrecoverable = table->types[type].unrecoverable;
    size_t count = 0;
    for (; type != MULL__ERROR_TYPE; type = table->types[type].parent)
        scratch[count++] = type;
    return (mull__lineage){scratch, count, unrecoverable};
}

mull__lineage mull__lineage_sent(const mull__table *table, const mull_error *error,
                                 uint64_t *scratch)
{
    uint64_t *seen = scratch + table->type_count;
    size_t count = 0;
    int unrecoverable = table->types[MULL__ERROR_TYPE].unrecoverable;
    memset(seen, 0, bit_words(table) * sizeof *seen);
    see(seen, MULL__ERROR_TYPE);
    /* Its declared parents go on where the sent names end: none, where the table doesn't know it.
     */
    uint32_t last = MULL__NONE;
    for (size_t i = 0; i < sent_count(error); i++) {
        const char *name = sent(error, i);
        if (!names_type(name) || repeats(error, i))
            continue;
        last = mull__type_find(table, name);
        if (last != MULL__NONE && see(seen, last))
            scratch[count++] = last;
    }
    if (last != MULL__NONE)
        while ((last = table->types[last].parent) != MULL__ERROR_TYPE)
            if (see(seen, last))
                scratch[count++] = last;
    for (size_t i = 0; i < count; i++)
        unrecoverable |= table->types[scratch[i]].unrecoverable;
    return (mull__lineage){scratch, count, unrecoverable};
}

/* ---- Rate limits ----------------------------------------------------------------------------- */

static int is_listed(const mull__type_list *list, uint32_t type)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->types[i] == type)
            return 1;
    return 0;
}

/* lineage_has: a type of the error's effective lineage is listed; as mull__lineage_sent goes along
 * it, but without scratch. */
static int lineage_has(const mull__table *table, const mull_error *error,
                       const mull__type_list *list)
{
    if (is_listed(list, MULL__ERROR_TYPE))
        return 1;
    uint32_t last = MULL__NONE;
    for (size_t i = 0; i < sent_count(error); i++) {
        if (!names_type(sent(error, i)) || repeats(error, i))
            continue;
        last = mull__type_find(table, sent(error, i));
        if (last != MULL__NONE && is_listed(list, last))
            return 1;
    }
    if (last == MULL__NONE)
        return 0;
    while ((last = table->types[last].parent) != MULL__ERROR_TYPE)
        if (is_listed(list, last))
            return 1;
    return 0;
}

int mull__rate_limit_counts(const mull__table *table, const mull__rate_limit *limit,
                            const mull_error *error)
{
    return (limit->only.count == 0 || lineage_has(table, error, &limit->only)) &&
           (limit->except.count == 0 || !lineage_has(table, error, &limit->except));
}

size_t mull__unrecoverable_names(const mull__table *table,
                                 const mull__effective_settings *effective, uint64_t *scratch)
{
    const char **names = (const char **)(void *)scratch;
    uint64_t *seen = scratch + table->type_count;
    size_t count = 0;
    memset(seen, 0, bit_words(table) * sizeof *seen);
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, effective, (mull__scope_kind)kind);
        for (size_t i = 0; scope && i < scope->unrecoverable.count; i++) {
            uint32_t type = scope->unrecoverable.items[i].type;
            if (see(seen, type))
                names[count++] = table->types[type].name;
        }
    }
    if (mull__builtin_unrecoverable_applies(effective) && see(seen, MULL__UNREADABLE_TYPE))
        names[count++] = table->types[MULL__UNREADABLE_TYPE].name;
    return count;
}
