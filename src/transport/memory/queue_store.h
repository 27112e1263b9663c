/* queue_store.h: messages in memory and the order in which they go out.
 *
 *   store ──< queue ── later   not due yet: a heap by due time, then sequence
 *                   ── due     was put off and is due now: first, in the same order
 *                   ── line    was never put off: by sequence
 *
 * An item that is claimed is in none of the three; it goes back to its old place, or to the end of
 * a line with a new sequence. Times are of the monotonic clock: no step of the wall clock moves
 * what waits here.
 */
#ifndef MULL__MEMORY_QUEUE_STORE_H
#define MULL__MEMORY_QUEUE_STORE_H

#include "base/list.h"
#include "mulligan/transport.h"

/* mull__content is what a message says; shared by the item and those who were handed it. */
typedef struct mull__content {
    size_t references;
    mull_message message;
} mull__content;

typedef struct mull__item {
    mull__link link;                    /* in `due` or `line` */
    struct mull__item *child, *sibling; /* in `later` */
    struct mull__queue *queue;
    mull__content *content;
    uint64_t seq;
    int64_t due_ms; /* MULL__AT_ONCE: it was never put off */
    int64_t deliveries;
    int halved; /* by settle=halfway: its copy is out, and it makes no other */
} mull__item;

#define MULL__AT_ONCE INT64_MIN

typedef struct mull__queue {
    mull__link link;
    mull__item *later;
    uint64_t later_count, claimed;
    mull__list due, line;
    char name[];
} mull__queue;

typedef struct mull__queue_store {
    mull_allocator allocator;
    mull__list queues;
    uint64_t last_seq;
} mull__queue_store;

void mull__queue_store_init(mull__queue_store *store, const mull_allocator *allocator);
void mull__queue_store_free(
    mull__queue_store *store); /* claimed items are their holders' to free */

/* mull__queue_store_queue gives the queue of a name, making it if need be. NULL: out of memory. */
mull__queue *mull__queue_store_queue(mull__queue_store *store, const char *name);

/* mull__item_new copies a message, with no place yet. NULL: out of memory. */
mull__item *mull__item_new(mull__queue_store *store, const mull_message *message, int64_t due_ms);
void mull__item_free(mull__queue_store *store, mull__item *item);

/* mull__content_new copies a message, as a settlement makes it (NULL: as it is); NULL: out of
 * memory. _drop takes one reference back. */
mull__content *mull__content_new(const mull_allocator *allocator, const mull_message *message,
                                 const mull_settlement *settlement);
void mull__content_drop(const mull_allocator *allocator, mull__content *content);

/* mull__queue_store_push puts an item at the end of its queue's line, or among those that are put
 * off. */
void mull__queue_store_push(mull__queue_store *store, mull__item *item);

/* mull__queue_store_requeue puts an item that was taken back where it was. */
void mull__queue_store_requeue(mull__item *item);

/* mull__queue_take takes the next item; NULL: none is due by now. */
mull__item *mull__queue_take(mull__queue *queue, int64_t now_ms);

/* mull__queue_count counts; next_due_ms is on the monotonic clock, INT64_MAX: none is put off. */
mull_depth mull__queue_count(mull__queue *queue, int64_t now_ms);

#endif
