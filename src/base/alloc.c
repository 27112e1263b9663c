/* alloc.c: see alloc.h. */
#include "alloc.h"

#include <stdlib.h>
#include <string.h>

static void *resize_by_libc(void *pointer, size_t bytes, void *data)
{
    (void)data;
    if (bytes == 0) {
        free(pointer);
        return NULL;
    }
    return realloc(pointer, bytes);
}

mull_allocator mull__allocator_or_default(mull_allocator wanted)
{
    return wanted.resize ? wanted : (mull_allocator){.resize = resize_by_libc};
}

void *mull__alloc(const mull_allocator *a, size_t bytes)
{
    return a->resize(NULL, bytes ? bytes : 1, a->data);
}

void *mull__zalloc(const mull_allocator *a, size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    void *memory = mull__alloc(a, count * bytes);
    if (memory)
        memset(memory, 0, count * bytes);
    return memory;
}

void *mull__grow(const mull_allocator *a, void *array, size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    return a->resize(array, count && bytes ? count * bytes : 1, a->data);
}

char *mull__strndup(const mull_allocator *a, const char *text, size_t length)
{
    char *copy = mull__alloc(a, length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *mull__strdup(const mull_allocator *a, const char *text)
{
    return text ? mull__strndup(a, text, strlen(text)) : NULL;
}

void mull__free(const mull_allocator *a, void *pointer)
{
    if (pointer)
        a->resize(pointer, 0, a->data);
}
