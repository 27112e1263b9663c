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

/* ---- Layers ---------------------------------------------------------------------------------- */

/* LAYERS_FOR_EACH is how many layers may be worked out ahead for each scope with a name, so that
 * they take no more memory than a policy's own size accounts for. */
enum { LAYERS_FOR_EACH = 16 };

static int are_too_many(size_t consumers, size_t transports)
{
    return consumers > LAYERS_FOR_EACH && transports > LAYERS_FOR_EACH;
}

size_t mull__layers(size_t consumers, size_t transports)
{
    size_t columns = 1 + transports;
    return columns + (are_too_many(consumers, transports) ? consumers : consumers * columns);
}

/* in_force is `near` on top of `far`, where that is all of it. */
static mull__layer in_force(const mull__layer *near, const mull__layer *far)
{
    mull__layer layer = mull__over(near, far);
    const mull__bounds *bounds = &layer.bounds;
    if (!layer.rules || bounds->override != MULL__OFF)
        return layer;
    layer.brief = (mull__brief){
        .rules = layer.rules->rules,
        .deliveries = bounds->max_deliveries == MULL__OFF ? INT64_MAX : bounds->max_deliveries,
        .calls = bounds->max_attempts == MULL__OFF ? INT64_MAX : bounds->max_attempts - 1,
    };
    return layer;
}

/* add_transport lays a transport over what holds without one. */
static void add_transport(mull__table *table, mull__scope *scope, mull__layer *layers)
{
    const mull__name name = mull__name_of(scope->name);
    mull__names_add(&table->transports, &name, (uint32_t)table->columns - 1);
    scope->layer.transport = scope;
    scope->layer = in_force(&scope->layer, &layers[0]);
    layers[table->columns++] = scope->layer;
}

/* add_consumer is for after all transports are there. */
static void add_consumer(mull__table *table, mull__scope *scope, mull__layer *layers,
                         uint32_t number)
{
    const mull__name name = mull__name_of(scope->name);
    mull__names_add(&table->consumers, &name, number);
    scope->layer.consumer = scope;
    if (table->crowded) {
        layers[table->columns + number] = scope->layer;
        return;
    }
    mull__layer *row = &layers[(1 + number) * table->columns];
    for (size_t i = 0; i < table->columns; i++)
        row[i] = in_force(&scope->layer, &layers[i]);
}

static size_t count_of(const mull__table *table, mull__scope_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < table->scope_count; i++)
        count += table->scopes[i].kind == kind;
    return count;
}

void mull__lay(mull__table *table, mull__layer *layers, const mull__layer *defaults)
{
    static const mull__layer nothing = {
        .bounds = {.max_age_ms = MULL__INHERITED,
                   .max_attempts = MULL__INHERITED,
                   .max_deliveries = MULL__INHERITED,
                   .override = MULL__INHERITED},
    };
    const mull__layer *host = table->host ? &table->host->layer : &nothing;
    const mull__layer under = mull__over(host, defaults);
    layers[0] = in_force(table->bus ? &table->bus->layer : &nothing, &under);
    table->columns = 1;
    table->crowded =
        are_too_many(count_of(table, MULL__CONSUMER), count_of(table, MULL__TRANSPORT));
    for (size_t i = 0; i < table->scope_count; i++)
        if (table->scopes[i].kind == MULL__TRANSPORT)
            add_transport(table, &table->scopes[i], layers);
    uint32_t consumers = 0;
    for (size_t i = 0; i < table->scope_count; i++)
        if (table->scopes[i].kind == MULL__CONSUMER)
            add_consumer(table, &table->scopes[i], layers, consumers++);
    table->layers = layers;
}

mull__site mull__site_of(const mull__table *table, const char *consumer, const char *transport,
                         mull__layer *room)
{
    /* Numbers from 1: MULL__NONE becomes 0. */
    uint32_t row = 0, column = 0;
    uint64_t consumer_hash = 0;
    if (transport) {
        const mull__name name = mull__name_of(transport);
        column = mull__names_find(&table->transports, &name) + 1;
    }
    if (consumer) {
        const mull__name name = mull__name_of(consumer);
        consumer_hash = name.hash;
        row = mull__names_find(&table->consumers, &name) + 1;
    }
    if (row == 0 || !table->crowded)
        return (mull__site){&table->layers[row * table->columns + column], consumer_hash};
    *room = in_force(&table->layers[table->columns + row - 1], &table->layers[column]);
    return (mull__site){room, consumer_hash};
}

const mull__layer *mull__layer_named(const mull__table *table, const char *consumer,
                                     const char *transport, mull__layer *room)
{
    return mull__site_of(table, consumer, transport, room).layer;
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
