/* tickets.c: see tickets.h: a hash table whose chains go through the tickets themselves. Numbers
 * count up, so that their low bits spread them evenly. */
#include "tickets.h"

#include "engine_state.h"

static mull__ticket **bucket_of(mull__tickets *tickets, mull_ticket number)
{
    enum { FEW = sizeof tickets->few / sizeof *tickets->few };
    return tickets->buckets ? &tickets->buckets[number & (tickets->room - 1)]
                            : &tickets->few[number & (FEW - 1)];
}

static void move_all(mull__tickets *to, mull__ticket *chain)
{
    while (chain) {
        mull__ticket *next = chain->next, **bucket = bucket_of(to, chain->number);
        chain->next = *bucket;
        *bucket = chain;
        chain = next;
    }
}

/* grow doubles the buckets, where there is memory. */
static void grow(mull_engine *engine)
{
    enum { FIRST_ROOM = 64 };
    mull__tickets *tickets = &engine->tickets, grown = *tickets;
    grown.room = tickets->room ? 2 * tickets->room : FIRST_ROOM;
    grown.buckets = mull__zalloc(&engine->allocator, grown.room, sizeof *grown.buckets);
    if (!grown.buckets)
        return;
    for (size_t i = 0; i < sizeof tickets->few / sizeof *tickets->few; i++) {
        move_all(&grown, tickets->few[i]);
        grown.few[i] = NULL;
    }
    for (size_t i = 0; i < tickets->room; i++)
        move_all(&grown, tickets->buckets[i]);
    mull__free(&engine->allocator, tickets->buckets);
    *tickets = grown;
}

void mull__tickets_free(mull_engine *engine)
{
    mull__free(&engine->allocator, engine->tickets.buckets);
}

mull_ticket mull__ticket_give(mull_port *port, mull__ticket *ticket, mull__ticket_kind kind)
{
    mull__tickets *tickets = &port->engine->tickets;
    MULL__ASSERT(ticket->number == 0);
    if (tickets->count > tickets->room)
        grow(port->engine);
    tickets->count++;
    mull__ticket **bucket = bucket_of(tickets, ++tickets->last);
    *ticket = (mull__ticket){.next = *bucket, .number = tickets->last, .port = port, .kind = kind};
    *bucket = ticket;
    return ticket->number;
}

void mull__ticket_take(mull_engine *engine, mull__ticket *ticket)
{
    if (ticket->number == 0)
        return;
    mull__ticket **at = bucket_of(&engine->tickets, ticket->number);
    while (*at != ticket)
        at = &(*at)->next;
    *at = ticket->next;
    ticket->number = 0;
    engine->tickets.count--;
}

mull__ticket *mull__ticket_find(const mull_port *port, mull_ticket number)
{
    mull__ticket *ticket = *bucket_of(&port->engine->tickets, number);
    while (ticket && ticket->number != number)
        ticket = ticket->next;
    return ticket && ticket->port == port ? ticket : NULL;
}
