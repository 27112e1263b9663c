/* append_array.h: an array that grows while others read it, without a lock. What is in it never
 * changes. Where its block is full, a longer one with the same in it takes its place; the old one
 * is kept for those who still read it, so that all take at most twice the last one. One thread at a
 * time writes. */
#ifndef MULL__APPEND_ARRAY_H
#define MULL__APPEND_ARRAY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "mulligan.h"

typedef struct mull__append_block {
    struct mull__append_block *older;
    uint32_t room;
    _Atomic uint32_t count; /* items that may be read */
    _Alignas(8) char items[];
} mull__append_block;

typedef struct mull__append_array {
    _Atomic(mull__append_block *) block; /* never NULL */
    size_t item_size;                    /* a multiple of its alignment, which is 8 at most */
} mull__append_array;

void mull__append_init(mull__append_array *array, size_t item_size);
void mull__append_free(mull__append_array *array, const mull_allocator *allocator);

/* mull__append_reserve makes room for one more item, so that mull__append can't fail.
 * MULL_ENOMEM. */
int mull__append_reserve(mull__append_array *array, const mull_allocator *allocator);

/* mull__append copies an item behind the last one: whoever reads finds all of it, or nothing. */
void mull__append(mull__append_array *array, const void *item);

/* mull__append_get is the item of a number, from 1 in the order in which they were added; NULL
 * where there is none. `item_size` is the array's, known to the compiler. */
static MULL__ALWAYS_INLINE const void *mull__append_get(const mull__append_array *array,
                                                        size_t item_size, uint32_t number)
{
    const mull__append_block *block = atomic_load_explicit(&array->block, memory_order_acquire);
    uint32_t index = number - 1; /* of 0: beyond all counts */
    if (index >= atomic_load_explicit(&block->count, memory_order_acquire))
        return NULL;
    return block->items + index * item_size;
}

#endif
