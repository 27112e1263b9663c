/* claim.h: the transport's own state, its claims, and what becomes of one that is settled. */
#ifndef MULL__MEMORY_CLAIM_H
#define MULL__MEMORY_CLAIM_H

#include "options.h"
#include "queue_store.h"

#include <uv.h>

/* mull__memory_reader is a subscription. It is delivered to while it is READY. */
typedef struct mull__memory_reader {
    mull__link link;
    mull_ticket consumer;
    mull__queue *queue;
    mull_source_state state;
    uint32_t credit, out;
} mull__memory_reader;

/* mull__memory_answer is what is told of a settlement, a publish or a depth. */
typedef struct mull__memory_answer {
    mull__link link; /* in those that come late */
    enum { MULL__MEMORY_SETTLED, MULL__MEMORY_PUBLISHED, MULL__MEMORY_DEPTH } kind;
    mull_ticket ticket;
    int status;
    const char *why; /* static */
    mull_depth depth;
} mull__memory_answer;

/* mull__memory_claim is a delivery. Its item is NULL once the claim is gone; what the message says
 * stays until release. A NOTE gives the item other content, and leaves the claim's as it was. */
typedef struct mull__memory_claim {
    mull_delivery delivery; /* first */
    mull__link link;
    mull_message message;
    mull__memory_reader *reader; /* NULL: it has ended */
    mull__item *item;
    mull__content *content;
    int64_t deadline_ms;
    mull__memory_answer answer; /* to its last settlement */
    int released;
    int misbehaved; /* by settle=: its copy is there, or was refused */
} mull__memory_claim;

typedef struct mull__memory_transport {
    mull_port *port;
    mull_allocator allocator;
    mull__memory_options options;
    char *url;
    mull__queue_store store;
    mull__list readers;
    mull__list claims; /* not freed; those with an item are in the order of their deadlines */
    mull__list late;   /* answers that were given already, by answers=late */
    uv_idle_t idle;    /* runs the next turn */
    int awake;
    mull_timer *timer;
    int64_t timer_ms; /* monotonic; INT64_MAX: not set */
    int64_t up_ms;    /* while it is down: when it comes up, monotonic */
    int up, closing;
} mull__memory_transport;

/* mull__memory_claim_new makes a claim for an item that was taken. NULL: out of memory. */
mull__memory_claim *mull__memory_claim_new(mull__memory_transport *self,
                                           mull__memory_reader *reader, mull__item *item);
void mull__memory_claim_free(mull__memory_transport *self, mull__memory_claim *claim);

/* mull__memory_claim_put lets a claim have an item; mull__memory_claim_take takes it out. The claim
 * keeps what it needs to read on. */
void mull__memory_claim_put(mull__memory_claim *claim, mull__item *item);
mull__item *mull__memory_claim_take(mull__memory_claim *claim);

/* mull__memory_delay turns a due time of the wall clock into one of the monotonic clock.
 * MULL_EREFUSED: this transport can't put anything off for that long. */
int mull__memory_delay(const mull__memory_transport *self, int64_t due_ms, int64_t *out);

/* mull__memory_claim_settle carries a settlement out: 0, or why not in the claim's answer, and
 * nothing has changed. */
int mull__memory_claim_settle(mull__memory_transport *self, mull__memory_claim *claim,
                              const mull_settlement *settlement);

/* mull__memory_claim_fail notes why a settlement failed, and gives the status. */
int mull__memory_claim_fail(mull__memory_claim *claim, int status, const char *why);

/* mull__memory_tell_later: the next turn gives the answer and frees it. */
void mull__memory_tell_later(mull__memory_transport *self, mull__memory_answer *answer);

#endif
