/* arena.h: memory that is taken piece by piece and freed all at once. */
#ifndef MULL__BASE_ARENA_H
#define MULL__BASE_ARENA_H

#include "mulligan.h"

/* mull__arena is empty where it is zeroed but for its allocator. It may be moved. */
typedef struct mull__arena {
    mull_allocator allocator;
    struct mull__arena_block *blocks; /* the newest first */
} mull__arena;

/* mull__arena_zalloc gives `count` zeroed elements, aligned for any type. NULL: there is no memory,
 * and what was taken before stays. */
void *mull__arena_zalloc(mull__arena *arena, size_t count, size_t bytes);

/* mull__arena_alloc gives them as they are. */
void *mull__arena_alloc(mull__arena *arena, size_t count, size_t bytes);

/* mull__arena_strndup gives a copy of the bytes with a NUL behind it, or NULL. */
char *mull__arena_strndup(mull__arena *arena, const char *bytes, size_t size);

/* mull__arena_reset is for an arena that is filled again and again: it keeps a block of what it
 * had, unless that is a large one. */
void mull__arena_reset(mull__arena *arena);

/* mull__arena_free leaves the arena empty. */
void mull__arena_free(mull__arena *arena);

#endif
