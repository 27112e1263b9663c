/* view.c: what the model takes from the engine's own state: by which policy a consumer's limits go
 * by now, what was drawn by chance, and what was decided where there was no memory to ask for it.
 * The model holds what it takes against what it may be. */
#include "sim.h"

#include "runtime/limiting.h"

#include <stdlib.h>
#include <string.h>

/* consumer_in finds the engine's; NULL: it has none. */
static mull__consumer *consumer_in(const consumer *c)
{
    mull__consumer *found = NULL;
    while (c->process->engine && (found = mull__next_consumer(c->process->engine, found)))
        if (strcmp(found->name, c->name) == 0)
            return found;
    return NULL;
}

const generation *view_generation(const consumer *c)
{
    const mull__consumer *in = consumer_in(c);
    if (!in || !in->generation)
        return NULL;
    const char *name = mull__generation_name(in->generation);
    return generation_of(c->process->sim, strtoull(name + 16, NULL, 16));
}

static int same_per(const mull__per *a, const mull__per *b)
{
    return a->kind == b->kind && (a->kind != MULL__PER_HEADER || strcmp(a->header, b->header) == 0);
}

const mull__limit_state *view_state(const consumer *c, const statement *l, const char *value)
{
    const mull__consumer *in = consumer_in(c);
    const mull__per *per = l->rate ? &l->rate->per : &l->calls->per;
    for (size_t i = 0; in && in->limits && i < in->limits->count; i++) {
        const mull__limit *found = in->limits->items[i];
        if (!found->rate == !l->rate && same_per(mull__limit_per(found), per))
            return found->whole ? found->whole : mull__value_find(&found->values, value);
    }
    return NULL;
}

int view_more_may_come(const consumer *c)
{
    const mull__consumer *in = consumer_in(c);
    return in && in->engine->waits < in->more_until &&
           mull__turn_ms(in->engine) < in->more_until_ms;
}

int64_t view_more_until_ms(const consumer *c)
{
    const mull__consumer *in = consumer_in(c);
    return in ? in->more_until_ms : 0;
}

static const mull__delivery *delivery_in(const handout *h)
{
    return h->delivery.runtime;
}

int view_held(const handout *h)
{
    return delivery_in(h)->held;
}

int view_gated(const handout *h)
{
    return delivery_in(h)->gated;
}

int view_failed_as(const handout *h, const char *type)
{
    return strcmp(delivery_in(h)->error->type, type) == 0;
}

int view_tells_type(const handout *h)
{
    return delivery_in(h)->tells_type;
}

int view_settles(const handout *h, mull_settle_kind *kind)
{
    *kind = delivery_in(h)->settlement.kind;
    return delivery_in(h)->state == MULL__SETTLING;
}
