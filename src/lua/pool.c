/* pool.c: see pool.h. */
#include "pool.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

enum { CHUNK = 32 * 1024 }; /* bytes of the first, its header included */

typedef struct mull__pool_chunk {
    alignas(MULL__POOL_GRAIN) struct mull__pool_chunk *next;
    size_t size; /* with this header */
    char bytes[];
} chunk;

typedef struct mull__pool_large {
    alignas(MULL__POOL_GRAIN) struct mull__pool_large *next;
    struct mull__pool_large **from; /* what points to it */
    char bytes[];
} large;

static_assert(MULL__POOL_GRAIN >= alignof(max_align_t), "blocks must suit any type");
static_assert(sizeof(chunk) % MULL__POOL_GRAIN == 0, "blocks begin at a grain");

static size_t class_of(size_t size)
{
    return (size + MULL__POOL_GRAIN - 1) / MULL__POOL_GRAIN;
}

/* ---- Small blocks ---------------------------------------------------------------------------- */

/* keep makes a block one that is free. */
static void keep(mull__pool *pool, void *block, size_t class)
{
    *(void **)block = pool->free[class];
    pool->free[class] = block;
}

/* add_chunk: each is as large as all before it, where there is as much, so that a large state has
 * few. What is left of the last one serves a smaller block. */
static int add_chunk(mull__pool *pool)
{
    size_t size = pool->in_chunks > CHUNK ? pool->in_chunks : CHUNK;
    chunk *added = NULL;
    if (size > pool->most - pool->in_chunks)
        size = CHUNK;
    if (size <= pool->most - pool->in_chunks)
        added = mull__alloc(&pool->allocator, size);
    if (!added && size > CHUNK) {
        size = CHUNK;
        added = mull__alloc(&pool->allocator, size);
    }
    if (!added)
        return 0;
    size_t left = (size_t)(pool->end - pool->at);
    if (left > 0)
        keep(pool, pool->at, left / MULL__POOL_GRAIN);
    added->next = pool->chunks;
    added->size = size;
    pool->chunks = added;
    pool->in_chunks += size;
    pool->at = added->bytes;
    pool->end = (char *)added + size;
    return 1;
}

static void *take_small(mull__pool *pool, size_t size)
{
    size_t class = class_of(size), bytes = class * MULL__POOL_GRAIN;
    void *block = pool->free[class];
    if (block) {
        pool->free[class] = *(void **)block;
        return block;
    }
    if ((size_t)(pool->end - pool->at) < bytes && !add_chunk(pool))
        return NULL;
    block = pool->at;
    pool->at += bytes;
    return block;
}

/* ---- Large blocks ---------------------------------------------------------------------------- */

static large *header_of(void *pointer)
{
    return (large *)((char *)pointer - offsetof(large, bytes));
}

static void link_in(large *block)
{
    *block->from = block;
    if (block->next)
        block->next->from = &block->next;
}

static void *resize_large(mull__pool *pool, large *block, size_t wanted)
{
    if (wanted > SIZE_MAX - sizeof *block)
        return NULL;
    large *resized = mull__grow(&pool->allocator, block, sizeof *block + wanted, 1);
    if (!resized)
        return NULL;
    if (!block) {
        resized->next = pool->large;
        resized->from = &pool->large;
    }
    link_in(resized);
    return resized->bytes;
}

static void free_large(mull__pool *pool, large *block)
{
    *block->from = block->next;
    if (block->next)
        block->next->from = block->from;
    mull__free(&pool->allocator, block);
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* take_apart: where the chunks are full of free blocks of other sizes, a small block is made as a
 * large one is. */
static void *take_apart(mull__pool *pool, size_t size)
{
    pool->has_apart = 1;
    return resize_large(pool, NULL, class_of(size) * MULL__POOL_GRAIN);
}

static int is_apart(const mull__pool *pool, const void *block)
{
    uintptr_t at = (uintptr_t)block;
    for (const chunk *c = pool->has_apart ? pool->chunks : NULL; c; c = c->next)
        if (at > (uintptr_t)c && at - (uintptr_t)c < c->size)
            return 0;
    return pool->has_apart;
}

static void *take(mull__pool *pool, size_t size)
{
    if (size > MULL__POOL_SMALL)
        return resize_large(pool, NULL, size);
    void *block = take_small(pool, size);
    int is_refused = pool->most - pool->in_chunks >= CHUNK; /* by the allocator */
    return block || is_refused ? block : take_apart(pool, size);
}

static void give(mull__pool *pool, void *pointer, size_t size)
{
    if (size <= MULL__POOL_SMALL && !is_apart(pool, pointer))
        keep(pool, pointer, class_of(size));
    else
        free_large(pool, header_of(pointer));
}

/* move makes a block one of another size. A large one that can't become a small one stays where it
 * is: it is used as a small one from then on, and freed with the rest. */
static void *move(mull__pool *pool, void *pointer, size_t old, size_t wanted)
{
    void *moved = take(pool, wanted);
    if (!moved)
        return wanted < old ? pointer : NULL;
    memcpy(moved, pointer, old < wanted ? old : wanted);
    give(pool, pointer, old);
    return moved;
}

void *mull__pool_resize(mull__pool *pool, void *pointer, size_t old, size_t wanted)
{
    if (!pointer)
        return wanted > 0 ? take(pool, wanted) : NULL;
    if (wanted == 0) {
        give(pool, pointer, old);
        return NULL;
    }
    if (old > MULL__POOL_SMALL && wanted > MULL__POOL_SMALL) {
        void *resized = resize_large(pool, header_of(pointer), wanted);
        return resized || wanted > old ? resized : pointer;
    }
    if (old <= MULL__POOL_SMALL && wanted <= MULL__POOL_SMALL && class_of(old) == class_of(wanted))
        return pointer;
    return move(pool, pointer, old, wanted);
}

void mull__pool_drop(mull__pool *pool)
{
    while (pool->chunks) {
        chunk *first = pool->chunks;
        pool->chunks = first->next;
        mull__free(&pool->allocator, first);
    }
    while (pool->large)
        free_large(pool, pool->large);
    *pool = (mull__pool){.allocator = pool->allocator, .most = pool->most};
}
