/* rack.c: see rack.h. */
#include "rack.h"

#include <string.h>

#include "alloc.h"

enum { FIRST_ROOM = 8 };

void mull__rack_init(mull__rack *rack, size_t item_size)
{
    static const mull__board empty;
    rack->own = NULL;
    rack->item_size = item_size;
    atomic_init(&rack->board, &empty);
}

void mull__rack_free(mull__rack *rack, const mull_allocator *allocator)
{
    mull__board *older;
    for (mull__board *board = rack->own; board; board = older) {
        older = board->older;
        mull__free(allocator, board);
    }
    mull__rack_init(rack, rack->item_size);
}

static uint32_t count_of(const mull__board *board)
{
    return board ? atomic_load_explicit(&board->count, memory_order_relaxed) : 0;
}

int mull__rack_reserve(mull__rack *rack, const mull_allocator *allocator)
{
    mull__board *old = rack->own;
    uint32_t count = count_of(old);
    if (old && count < old->room)
        return MULL_OK;
    uint32_t room = old ? 2 * old->room : FIRST_ROOM;
    mull__board *board = mull__alloc(allocator, sizeof *board + room * rack->item_size);
    if (!board)
        return MULL_ENOMEM;
    board->older = old;
    board->room = room;
    atomic_init(&board->count, count);
    if (old)
        memcpy(board->items, old->items, count * rack->item_size);
    rack->own = board;
    atomic_store_explicit(&rack->board, board, memory_order_release);
    return MULL_OK;
}

void mull__rack_put(mull__rack *rack, const void *item)
{
    mull__board *board = rack->own;
    uint32_t count = count_of(board);
    memcpy(board->items + count * rack->item_size, item, rack->item_size);
    atomic_store_explicit(&board->count, count + 1, memory_order_release);
}
