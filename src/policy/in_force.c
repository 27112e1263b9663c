/* in_force.c: which scope's rules and which bounds hold for a consumer on a transport. */
#include "delay.h"
#include "shape.h"

static int64_t nearer(int64_t near, int64_t far)
{
    return near != MULL__INHERITED ? near : far;
}

mull__layer mull__over(const mull__layer *near, const mull__layer *far)
{
    const mull__bounds *n = &near->bounds, *f = &far->bounds;
    return (mull__layer){
        .rules = near->rules ? near->rules : far->rules,
        .consumer = near->consumer ? near->consumer : far->consumer,
        .transport = near->transport ? near->transport : far->transport,
        .bounds = {
            .dead_letter_queue = n->dead_letter_queue ? n->dead_letter_queue : f->dead_letter_queue,
            .max_age_ms = nearer(n->max_age_ms, f->max_age_ms),
            .max_attempts = nearer(n->max_attempts, f->max_attempts),
            .max_deliveries = nearer(n->max_deliveries, f->max_deliveries),
            .override = nearer(n->override, f->override),
        }};
}

const mull__layer *mull__layer_hashed(const mull__table *table, const char *consumer,
                                      const char *transport, mull__layer *room,
                                      uint64_t *consumer_hash)
{
    const mull__layer *layer = &table->base;
    *consumer_hash = 0;
    if (transport) {
        uint64_t hash;
        uint32_t number = mull__names_look_up(&table->transports, transport, &hash);
        if (number != MULL__NONE)
            layer = &table->scopes[number].layer;
    }
    if (!consumer)
        return layer;
    uint32_t number = mull__names_look_up(&table->consumers, consumer, consumer_hash);
    if (number == MULL__NONE)
        return layer;
    *room = mull__over(&table->scopes[number].layer, layer);
    return room;
}

const mull__layer *mull__layer_named(const mull__table *table, const char *consumer,
                                     const char *transport, mull__layer *room)
{
    uint64_t hash;
    return mull__layer_hashed(table, consumer, transport, room, &hash);
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

/* sets: a scope sets a setting itself. A transport's bounds lie over the base, so that they don't
 * tell; its places do. */
static int sets(const mull__scope *scope, mull__setting setting)
{
    return scope && scope->sets & 1u << setting;
}

const mull__scope *mull__setting_scope(const mull__table *table, const mull__layer *layer,
                                       mull__setting setting)
{
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, layer, (mull__scope_kind)kind);
        if (sets(scope, setting))
            return scope;
    }
    return NULL;
}

/* ---- Unrecoverable types --------------------------------------------------------------------- */

int mull__built_in_holds(const mull__layer *layer)
{
    return !layer->rules || !mull__first_rule(&layer->rules->rules, MULL__UNREADABLE_TYPE);
}

/* add_name adds a name that isn't there yet; names of types are the table's, one of each. */
static size_t add_name(const char **names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (names[i] == name)
            return count;
    names[count] = name;
    return count + 1;
}

size_t mull__unrecoverable_names(const mull__table *table, const mull__layer *layer,
                                 const char **names)
{
    size_t count = 0;
    for (int kind = 0; kind < MULL__SCOPE_KINDS; kind++) {
        const mull__scope *scope = mull__scope_of(table, layer, (mull__scope_kind)kind);
        for (size_t i = 0; scope && i < scope->unrecoverable.count; i++)
            count = add_name(names, count, scope->unrecoverable.items[i].source.type);
    }
    if (mull__built_in_holds(layer))
        count = add_name(names, count, table->types[MULL__UNREADABLE_TYPE].name);
    return count;
}

/* ---- For those who look ---------------------------------------------------------------------- */

void mull__table_in_force(const mull__table *table, const char *consumer, const char *transport,
                          mull__in_force *in_force)
{
    mull__layer room;
    const mull__layer *layer = mull__layer_named(table, consumer, transport, &room);
    const mull__scope *limit = mull__setting_scope(table, layer, MULL__RATE_LIMIT);
    const mull__scope *notify = mull__setting_scope(table, layer, MULL__NOTIFY);
    *in_force = (mull__in_force){
        .dead_letter_queue = layer->bounds.dead_letter_queue,
        .max_age_ms = layer->bounds.max_age_ms,
        .max_attempts = layer->bounds.max_attempts,
        .max_deliveries = layer->bounds.max_deliveries,
        .rate_after = limit ? limit->rate_after : MULL__OFF,
        .rate_wait_ms = limit ? limit->rate_wait_ms : 0,
        .override = layer->bounds.override,
        .notify = notify ? notify->notify : MULL__OFF,
        .rule_count = layer->rules ? mull__scope_rules(layer->rules) : 0,
    };
}

/* rule_at counts the cause rules behind the others. */
static const mull__rule *rule_at(const mull__scope *scope, size_t index)
{
    const mull__rules *rules = &scope->rules;
    return index < rules->count ? &rules->items[index]
                                : &scope->cause_rules.items[index - rules->count];
}

void mull__table_rule(const mull__table *table, const char *consumer, const char *transport,
                      size_t index, mull__rule_view *view)
{
    mull__layer room;
    const mull__layer *layer = mull__layer_named(table, consumer, transport, &room);
    const mull__rule *rule = rule_at(layer->rules, index);
    *view = (mull__rule_view){
        .source = rule->source,
        .retries = rule->retry.attempts != 0,
        .redelivers = rule->redeliver.attempts != 0,
        .retry_attempts = rule->retry.attempts,
        .round_ms = mull__longest_round(&rule->retry),
        .end = rule->end,
        .queue = rule->queue,
    };
}
