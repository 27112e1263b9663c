/* arena.c: see arena.h. */
#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "alloc.h"

/* Each block is twice as large as the one before, within these. */
enum { LEAST = 2048, MOST = 65536, ALIGN = alignof(max_align_t) };

/* A block stands behind its own bytes, so that what is taken first of them has the address that the
 * allocator gave. */
typedef struct mull__arena_block {
    struct mull__arena_block *next;
    char *bytes;
    size_t used, room;
} block;

static size_t aligned(size_t size)
{
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static block *add_block(mull__arena *arena, size_t size)
{
    size_t room = arena->blocks ? 2 * arena->blocks->room : LEAST;
    room = room > MOST ? MOST : room;
    room = size > room ? aligned(size) : room;
    char *bytes = mull__alloc(&arena->allocator, room + sizeof(block));
    if (!bytes)
        return NULL;
    block *added = (void *)(bytes + room);
    *added = (block){.next = arena->blocks, .bytes = bytes, .room = room};
    arena->blocks = added;
    return added;
}

/* take gives `size` bytes from a multiple of `alignment` on, a power of two. */
static void *take(mull__arena *arena, size_t size, size_t alignment)
{
    block *b = arena->blocks;
    size_t at = b ? (b->used + alignment - 1) & ~(alignment - 1) : 0;
    if (!b || at > b->room || b->room - at < size) {
        b = size < SIZE_MAX / 2 ? add_block(arena, size) : NULL;
        at = 0;
    }
    if (!b)
        return NULL;
    b->used = at + size;
    return b->bytes + at;
}

void *mull__arena_alloc(mull__arena *arena, size_t count, size_t bytes)
{
    size_t size;
    return take(arena, __builtin_mul_overflow(count, bytes, &size) ? SIZE_MAX : size, ALIGN);
}

void *mull__arena_zalloc(mull__arena *arena, size_t count, size_t bytes)
{
    void *memory = mull__arena_alloc(arena, count, bytes);
    return memory ? memset(memory, 0, count * bytes) : NULL;
}

char *mull__arena_strndup(mull__arena *arena, const char *bytes, size_t size)
{
    char *copy = take(arena, size + 1, 1);
    if (copy) {
        memcpy(copy, bytes, size);
        copy[size] = 0;
    }
    return copy;
}

static void free_from(mull__arena *arena, const block *first)
{
    while (first) {
        const block *next = first->next;
        mull__free(&arena->allocator, first->bytes);
        first = next;
    }
}

void mull__arena_reset(mull__arena *arena)
{
    block *newest = arena->blocks;
    if (!newest || newest->room > MOST) {
        mull__arena_free(arena);
        return;
    }
    free_from(arena, newest->next);
    newest->next = NULL;
    newest->used = 0;
}

void mull__arena_free(mull__arena *arena)
{
    free_from(arena, arena->blocks);
    arena->blocks = NULL;
}
