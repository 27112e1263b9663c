/* resolve.c: see resolve.h. */
#include "resolve.h"

/* ---- Settings in force ----------------------------------------------------------------------- */

/* lay puts a nearer layer on top of another: rules as a whole, settings one by one. */
static void lay(mull__layer *on, const mull__layer *near)
{
    if (near->rules)
        on->rules = near->rules;
    if (near->consumer)
        on->consumer = near->consumer;
    if (near->transport)
        on->transport = near->transport;
    mull__settings_lay(&on->bounds, &near->bounds);
}

/* add_name is for a consumer's or transport's scope. A transport's layer is laid over all that is
 * farther, so that a consumer's over it is all that holds for both. */
static void add_name(mull__table *table, uint32_t number)
{
    mull__scope *scope = &table->scopes[number];
    if (scope->kind == MULL__TRANSPORT) {
        mull__layer own = scope->layer;
        own.transport = scope;
        table->transport_count++;
        scope->layer = table->nowhere.in_force;
        lay(&scope->layer, &own);
        mull__names_add(&table->transports, scope->name, number);
    } else if (scope->kind == MULL__CONSUMER) {
        scope->layer.consumer = scope;
        mull__names_add(&table->consumers, scope->name, number);
    }
}

/* open_fast_path fills in what the fast path looks at, once the settings are there. */
static void open_fast_path(mull__site *site)
{
    const mull__settings *bounds = &site->in_force.bounds;
    if (!site->in_force.rules || bounds->override != MULL__OFF)
        return;
    site->rules = &site->in_force.rules->rules;
    site->deliveries = bounds->max_deliveries == MULL__OFF ? INT64_MAX : bounds->max_deliveries;
    site->calls = bounds->max_attempts == MULL__OFF ? INT64_MAX : bounds->max_attempts - 1;
}

void mull__layers_ready(mull__table *table)
{
    table->nowhere.in_force.bounds = mull__default_settings;
    if (table->host)
        lay(&table->nowhere.in_force, &table->host->layer);
    if (table->bus)
        lay(&table->nowhere.in_force, &table->bus->layer);
    open_fast_path(&table->nowhere);
    for (size_t i = 0; i < table->scope_count; i++)
        add_name(table, (uint32_t)i);
}

mull__site mull__site_of(const mull__table *table, const char *consumer, const char *transport)
{
    uint64_t hash = 0;
    uint32_t near = MULL__NONE, far = MULL__NONE;
    if (transport)
        far = mull__names_look_up(&table->transports, transport, &hash);
    hash = 0;
    if (consumer)
        near = mull__names_look_up(&table->consumers, consumer, &hash);
    mull__site site = {
        .in_force = far == MULL__NONE ? table->nowhere.in_force : table->scopes[far].layer,
        .consumer_hash = hash,
    };
    if (near != MULL__NONE)
        lay(&site.in_force, &table->scopes[near].layer);
    open_fast_path(&site);
    return site;
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

const mull__scope *mull__scope_of(const mull__table *table, const mull__layer *layer,
                                  mull__scope_kind kind)
{
    switch (kind) {
    case MULL__CONSUMER:
        return layer->consumer;
    case MULL__TRANSPORT:
        return layer->transport;
    case MULL__BUS:
        return table->bus;
    case MULL__HOST:
        return table->host;
    case MULL__SCOPE_KINDS:
        break;
    }
    return NULL;
}

const mull__scope *mull__setting_scope(const mull__table *table, const mull__layer *layer,
                                       mull__setting setting)
{
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, layer, (mull__scope_kind)kind);
        if (scope && mull__is_set(&scope->settings, setting))
            return scope;
    }
    return NULL;
}

/* ---- Unrecoverable types --------------------------------------------------------------------- */

int mull__built_in_holds(const mull__layer *layer)
{
    return !layer->rules || !mull__first_rule(&layer->rules->rules, MULL__UNREADABLE_TYPE);
}

/* ---- For those who look ---------------------------------------------------------------------- */

void mull__table_in_force(const mull__table *table, const char *consumer, const char *transport,
                          mull__in_force *in_force)
{
    const mull__layer layer = mull__layer_named(table, consumer, transport);
    *in_force = (mull__in_force){
#define SHOW(NUMBER, field, ...) .field = layer.bounds.field,
        MULL__EACH_SETTING(SHOW)
#undef SHOW
            .rule_count = layer.rules ? mull__scope_rules(layer.rules) : 0,
    };
}

void mull__table_rule(const mull__table *table, const char *consumer, const char *transport,
                      size_t index, mull__rule_view *view)
{
    const mull__rule *rule =
        mull__rule_at(mull__layer_named(table, consumer, transport).rules, index);
    *view = (mull__rule_view){
        .source = rule->source,
        .retries = rule->retry.attempts != 0,
        .redelivers = rule->redeliver.attempts != 0,
        .retry = &rule->retry,
        .end = rule->end,
        .queue = rule->queue,
    };
}
