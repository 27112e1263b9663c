/* block.h: a struct with all that it points to, in one block. The same functions lay it out twice:
 * first without memory, which only counts, then into as much as was counted. */
#ifndef MULL__BASE_BLOCK_H
#define MULL__BASE_BLOCK_H

#include <stddef.h>
#include <string.h>

typedef struct mull__block {
    char *memory; /* NULL: only count */
    size_t used;
} mull__block;

/* mull__block_take gives room, aligned for any type; NULL while counting. */
static inline void *mull__block_take(mull__block *block, size_t bytes)
{
    size_t at = block->used;
    block->used += (bytes + 15) & ~(size_t)15;
    return block->memory ? block->memory + at : NULL;
}

/* mull__block_text copies a text; NULL stays NULL. */
static inline const char *mull__block_text(mull__block *block, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    char *copy = (char *)mull__block_take(block, size);
    return copy ? (const char *)memcpy(copy, text, size) : NULL;
}

#endif
