/* readers.c: whose a message is, where consumers share a queue by type. See readers.h. */
#include "readers.h"

#include "admission.h"

#include <string.h>

/* next_beside gives the next consumer on the queue of `c`, `c` too, that isn't being removed. */
static mull__consumer *next_beside(const mull__consumer *c, mull__consumer *after)
{
    do
        after = mull__next_consumer(c->engine, after);
    while (after && (after->is_reader || after->state == MULL__CONSUMER_LEAVES ||
                     !mull__same_queue(after, c)));
    return after;
}

mull__consumer *mull__reader_of(const mull__consumer *c)
{
    mull__consumer *reader = NULL;
    while ((reader = mull__next_consumer(c->engine, reader)))
        if (reader->is_reader && reader->state != MULL__CONSUMER_LEAVES &&
            mull__same_queue(reader, c))
            break;
    return reader;
}

static int names(const mull__consumer *c, const char *type)
{
    for (size_t i = 0; i < c->type_count; i++)
        if (strcmp(c->types[i], type) == 0)
            return 1;
    return 0;
}

mull__consumer *mull__taker_of(const mull__consumer *c, const char *type)
{
    mull__consumer *rest = NULL;
    for (mull__consumer *other = NULL; (other = next_beside(c, other));) {
        if (type && names(other, type))
            return other;
        if (!other->types && (!rest || other->reader))
            rest = other; /* one that competes beside the reader has its own subscription */
    }
    return rest;
}

mull__consumer *mull__reader_goes_to(mull__consumer *reader, const char *type, int *waits)
{
    mull__consumer *taker = mull__taker_of(reader, type);
    int has_room = taker && taker->reader == reader && mull__admission_has_room(taker);
    *waits = taker ? !has_room : !next_beside(reader, NULL);
    return has_room ? taker : reader;
}

/* ---- Who may share --------------------------------------------------------------------------- */

static int refuse_type(const mull__consumer *c)
{
    for (size_t i = 0; i < c->type_count; i++) {
        for (size_t j = 0; j < i; j++)
            if (strcmp(c->types[i], c->types[j]) == 0)
                return MULL__REFUSE(c->engine, "consumer '%s': `types` names '%s' twice", c->name,
                                    c->types[i]);
        for (mull__consumer *other = NULL; (other = next_beside(c, other));)
            if (other != c && names(other, c->types[i]))
                return MULL__REFUSE(c->engine,
                                    "consumer '%s': messages of type '%s' on the queue '%s' are "
                                    "taken by consumer '%s' already; name each type once",
                                    c->name, c->types[i], c->queue, other->name);
    }
    return 0;
}

/* refuse_rest: where nobody names types, any number may compete for all messages. */
static int refuse_rest(const mull__consumer *c)
{
    const mull__consumer *rest = c->types ? NULL : c;
    for (mull__consumer *other = NULL; (other = next_beside(c, other));) {
        if (other == c || other->types)
            continue;
        if (rest)
            return MULL__REFUSE(c->engine,
                                "consumer '%s': where consumers of the queue '%s' name `types`, "
                                "only one may take the rest, and '%s' does; give one of them types",
                                c->name, c->queue, other->name);
        rest = other;
    }
    return 0;
}

int mull__types_share(const mull__consumer *c)
{
    if (c->types)
        return 1;
    for (mull__consumer *other = NULL; (other = next_beside(c, other));)
        if (other->types)
            return 1;
    return 0;
}

int mull__types_refuse(const mull__consumer *c)
{
    if (!mull__types_share(c))
        return 0;
    if (!c->floor.can_delay)
        return MULL__REFUSE(c->engine,
                            "consumer '%s': transport '%s' has no delayed delivery, which `types` "
                            "need: a message that finds no room is put back for a second",
                            c->name, c->port->name);
    int status = refuse_type(c);
    return status ? status : refuse_rest(c);
}
