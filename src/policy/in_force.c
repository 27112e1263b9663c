/* in_force.c: which scope's rules and which bounds hold for a consumer on a transport. */
#include "base/hash.h"
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
        .bounds = {
            .dead_letter_queue = n->dead_letter_queue ? n->dead_letter_queue : f->dead_letter_queue,
            .max_age_ms = nearer(n->max_age_ms, f->max_age_ms),
            .max_attempts = nearer(n->max_attempts, f->max_attempts),
            .max_deliveries = nearer(n->max_deliveries, f->max_deliveries),
        }};
}

static const mull__scope *find(const mull__table *table, const mull__names *names, const char *name,
                               uint64_t hash)
{
    uint32_t number = mull__names_find(names, name, hash);
    return number == MULL__NONE ? NULL : &table->scopes[number];
}

const mull__layer *mull__layer_for(const mull__table *table, const char *consumer,
                                   uint64_t consumer_hash, const char *transport, mull__layer *room)
{
    const mull__scope *near = NULL, *far = NULL;
    if (transport)
        far = find(table, &table->transports, transport, mull__hash_text(transport));
    if (consumer)
        near = find(table, &table->consumers, consumer, consumer_hash);
    const mull__layer *layer = far ? &far->layer : &table->base;
    if (!near)
        return layer;
    *room = mull__over(&near->layer, layer);
    return room;
}

static const mull__layer *layer_by_name(const mull__table *table, const char *consumer,
                                        const char *transport, mull__layer *room)
{
    uint64_t hash = consumer ? mull__hash_text(consumer) : 0;
    return mull__layer_for(table, consumer, hash, transport, room);
}

void mull__table_in_force(const mull__table *table, const char *consumer, const char *transport,
                          mull__in_force *in_force)
{
    mull__layer room;
    const mull__layer *layer = layer_by_name(table, consumer, transport, &room);
    *in_force = (mull__in_force){
        .dead_letter_queue = layer->bounds.dead_letter_queue,
        .max_age_ms = layer->bounds.max_age_ms,
        .max_attempts = layer->bounds.max_attempts,
        .max_deliveries = layer->bounds.max_deliveries,
        .rule_count = layer->rules ? layer->rules->rule_count : 0,
    };
}

void mull__table_rule(const mull__table *table, const char *consumer, const char *transport,
                      size_t index, mull__rule_view *view)
{
    mull__layer room;
    const mull__layer *layer = layer_by_name(table, consumer, transport, &room);
    const mull__rule *rule = &layer->rules->rules[index];
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
