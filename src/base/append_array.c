/* append_array.c: see append_array.h. */
#include "append_array.h"

#include <string.h>

#include "alloc.h"

enum { FIRST_ROOM = 8 };

/* empty has no room, so that nobody writes to it. */
static const mull__append_block empty;

void mull__append_init(mull__append_array *array, size_t item_size)
{
    array->item_size = item_size;
    atomic_init(&array->block, (mull__append_block *)(uintptr_t)&empty);
}

void mull__append_free(mull__append_array *array, const mull_allocator *allocator)
{
    mull__append_block *older, *block = atomic_load_explicit(&array->block, memory_order_relaxed);
    for (; block != &empty; block = older) {
        older = block->older;
        mull__free(allocator, block);
    }
}

int mull__append_reserve(mull__append_array *array, const mull_allocator *allocator)
{
    mull__append_block *old = atomic_load_explicit(&array->block, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&old->count, memory_order_relaxed);
    if (count < old->room)
        return MULL_OK;
    uint32_t room = count ? 2 * count : FIRST_ROOM;
    mull__append_block *block = mull__alloc(allocator, sizeof *block + room * array->item_size);
    if (!block)
        return MULL_ENOMEM;
    block->older = old;
    block->room = room;
    atomic_init(&block->count, count);
    memcpy(block->items, old->items, count * array->item_size);
    atomic_store_explicit(&array->block, block, memory_order_release);
    return MULL_OK;
}

void mull__append(mull__append_array *array, const void *item)
{
    mull__append_block *block = atomic_load_explicit(&array->block, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&block->count, memory_order_relaxed);
    memcpy(block->items + count * array->item_size, item, array->item_size);
    atomic_store_explicit(&block->count, count + 1, memory_order_release);
}
