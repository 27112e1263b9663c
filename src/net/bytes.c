/* bytes.c: see bytes.h. */
#include "bytes.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

enum { LEAST = 4096, KEPT = 256 * 1024 };

/* move_to_front makes room where at least a half has gone out, so that moving stays cheap. */
static void move_to_front(mull__bytes *bytes)
{
    size_t size = mull__bytes_size(bytes);
    if (bytes->first < size || bytes->first == 0)
        return;
    memcpy(bytes->start, bytes->start + bytes->first, size);
    bytes->first = 0;
    bytes->end = size;
}

char *mull__bytes_room(mull__bytes *bytes, const mull_allocator *allocator, size_t size)
{
    if (bytes->room - bytes->end < size)
        move_to_front(bytes);
    if (bytes->room - bytes->end < size) {
        if (size > SIZE_MAX / 4 - bytes->end)
            return NULL;
        size_t room = bytes->room ? bytes->room : LEAST;
        while (room - bytes->end < size)
            room *= 2;
        char *start = mull__grow(allocator, bytes->start, room, 1);
        if (!start)
            return NULL;
        bytes->start = start;
        bytes->room = room;
    }
    return bytes->start + bytes->end;
}

int mull__bytes_add(mull__bytes *bytes, const mull_allocator *allocator, const void *added,
                    size_t size)
{
    if (size == 0)
        return 0;
    char *place = mull__bytes_room(bytes, allocator, size);
    if (!place)
        return MULL_ENOMEM;
    memcpy(place, added, size);
    bytes->end += size;
    return 0;
}

void mull__bytes_drop(mull__bytes *bytes, const mull_allocator *allocator, size_t size)
{
    bytes->first += size;
    if (bytes->first < bytes->end)
        return;
    bytes->first = bytes->end = 0;
    if (bytes->room > KEPT)
        mull__bytes_free(bytes, allocator);
}

void mull__bytes_free(mull__bytes *bytes, const mull_allocator *allocator)
{
    mull__free(allocator, bytes->start);
    *bytes = (mull__bytes){0};
}
