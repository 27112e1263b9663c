/* rack.h: an array that grows while others read it, without a lock. What stands on it never
 * changes. Where its board is full, a longer one with the same on it takes its place; the old one
 * is kept for those who still read it, so that all boards together take at most twice the last one.
 */
#ifndef MULL__RACK_H
#define MULL__RACK_H

#include <stdatomic.h>
#include <stdint.h>

#include "mulligan.h"
#include "rare.h"

typedef struct mull__board {
    struct mull__board *older;
    uint32_t room;
    _Atomic uint32_t count; /* items that may be read */
    _Alignas(8) unsigned char items[];
} mull__board;

/* mull__rack: who writes (one at a time) knows the board as his own, too. */
typedef struct mull__rack {
    _Atomic(const mull__board *) board; /* never NULL */
    mull__board *own;                   /* NULL: nothing stands on it yet */
    size_t item_size;                   /* a multiple of its alignment, which is 8 at most */
} mull__rack;

void mull__rack_init(mull__rack *rack, size_t item_size);
void mull__rack_free(mull__rack *rack, const mull_allocator *allocator);

/* mull__rack_reserve makes room for one more item, so that mull__rack_put can't fail.
 * MULL_ENOMEM.
 */
int mull__rack_reserve(mull__rack *rack, const mull_allocator *allocator);

/* mull__rack_put copies an item behind the last one: whoever reads finds all of it, or nothing. */
void mull__rack_put(mull__rack *rack, const void *item);

/* mull__rack_get is the item of a number, from 1 in the order in which they were put; NULL where
 * there is none. `item_size` is the rack's, known to the compiler. */
static MULL__IN_PLACE const void *mull__rack_get(const mull__rack *rack, size_t item_size,
                                                 uint32_t number)
{
    const mull__board *board = atomic_load_explicit(&rack->board, memory_order_acquire);
    uint32_t index = number - 1; /* of 0: beyond all counts */
    if (index >= atomic_load_explicit(&board->count, memory_order_acquire))
        return NULL;
    return board->items + index * item_size;
}

#endif
