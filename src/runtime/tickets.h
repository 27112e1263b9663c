/* tickets.h: the numbers by which transports speak of what is the engine's. */
#ifndef MULL__TICKETS_H
#define MULL__TICKETS_H

#include "mulligan/transport.h"

#include <stddef.h>

typedef enum mull__ticket_kind {
    MULL__TICKET_CONSUMER,
    MULL__TICKET_DELIVERY,
    MULL__TICKET_SETTLEMENT,
    MULL__TICKET_PUBLISH,
    MULL__TICKET_DEPTH
} mull__ticket_kind;

/* mull__ticket lives in what it stands for, so that giving one needs no memory. */
typedef struct mull__ticket {
    struct mull__ticket *next;
    mull_ticket number; /* 0: it isn't given */
    mull_port *port;    /* whom it was given */
    mull__ticket_kind kind;
} mull__ticket;

/* mull__tickets are those that are given, by their numbers. More buckets only make it faster. */
typedef struct mull__tickets {
    mull__ticket **buckets; /* a power of two of them; NULL: `few` */
    size_t room, count;
    mull__ticket *few[8];
    mull_ticket last;
} mull__tickets;

void mull__tickets_free(mull_engine *engine);

/* mull__ticket_give gives the next number. */
mull_ticket mull__ticket_give(mull_port *port, mull__ticket *ticket, mull__ticket_kind kind);
void mull__ticket_take(mull_engine *engine, mull__ticket *ticket); /* its number is gone */

/* mull__ticket_find: NULL where this port has no such one. */
mull__ticket *mull__ticket_find(const mull_port *port, mull_ticket number);

#endif
