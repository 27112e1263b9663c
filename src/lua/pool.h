/* pool.h: the memory of a Lua state, which makes a great many small blocks and is dropped at once.
 *
 *   small blocks   are cut from chunks; a freed one is kept for the next of its size
 *   large ones     are the allocator's, each with a header, so that they are found again; so are
 *                  small ones where the chunks have as much as they may have, but none that fits */
#ifndef MULL__POOL_H
#define MULL__POOL_H

#include "mulligan.h"

#include <stddef.h>

enum {
    MULL__POOL_GRAIN = 16, /* bytes that sizes are rounded up to */
    MULL__POOL_SMALL = 512 /* the most that a small block may have */
};

/* mull__pool is empty where it is zeroed, but for its allocator and `most`. */
typedef struct mull__pool {
    mull_allocator allocator;
    size_t most; /* bytes that it may have in chunks: what was small once never becomes large */
    size_t in_chunks;
    int has_apart;  /* a small block may be none of a chunk's */
    char *at, *end; /* what is left of the newest chunk */
    struct mull__pool_chunk *chunks;
    struct mull__pool_large *large;
    void *free[MULL__POOL_SMALL / MULL__POOL_GRAIN + 1]; /* by size, each the first of a list */
} mull__pool;

/* mull__pool_resize allocates (`pointer` is NULL, `old` 0), resizes and frees (`wanted` is 0) as
 * lua_Alloc does. NULL: there is no memory, and the block stays as it was; never where it shrinks.
 */
void *mull__pool_resize(mull__pool *pool, void *pointer, size_t old, size_t wanted);

/* mull__pool_drop frees all blocks. */
void mull__pool_drop(mull__pool *pool);

#endif
