/* bytes.h: bytes that come in behind and go out in front. */
#ifndef MULL__NET_BYTES_H
#define MULL__NET_BYTES_H

#include <stddef.h>

#include "mulligan.h"

/* mull__bytes is empty where it is zeroed. */
typedef struct mull__bytes {
    char *start;
    size_t first, end; /* what is in it stands between them */
    size_t room;
} mull__bytes;

static inline size_t mull__bytes_size(const mull__bytes *bytes)
{
    return bytes->end - bytes->first;
}

/* mull__bytes_room gives the place behind the last byte, where `size` more may be written; then
 * they belong to it as soon as `end` says so. NULL: no memory, and it stays as it was. */
char *mull__bytes_room(mull__bytes *bytes, const mull_allocator *allocator, size_t size);

/* mull__bytes_add appends a copy. MULL_ENOMEM: it stays as it was. */
int mull__bytes_add(mull__bytes *bytes, const mull_allocator *allocator, const void *added,
                    size_t size);

/* mull__bytes_drop takes `size` bytes off the front. Memory that one burst needed is given back
 * once it is empty. */
void mull__bytes_drop(mull__bytes *bytes, const mull_allocator *allocator, size_t size);

void mull__bytes_free(mull__bytes *bytes, const mull_allocator *allocator);

#endif
