/* counting_allocator.c: an allocator that counts what is out, moves whatever grows, and spoils what
 * is freed, so that what is read too late is seen without a sanitizer as well. Where it is scarce,
 * some requests fail. One thread. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

typedef struct block {
    _Alignas(16) size_t bytes;
} block;

static void *resize(void *pointer, size_t bytes, void *data)
{
    counting_allocator *p = data;
    block *old = pointer ? (block *)pointer - 1 : NULL, *made = NULL;
    if (bytes > 0) {
        if (p->scarce && happens(p->sim, p->sim->faults.no_memory)) {
            p->failures++;
            p->failed_ms = p->sim->now_ms;
            return NULL;
        }
        made = malloc(sizeof *made + bytes);
        if (!made)
            return NULL;
        made->bytes = bytes;
        p->blocks++;
        p->bytes += bytes;
    }
    if (old) {
        if (made)
            memcpy(made + 1, old + 1, old->bytes < bytes ? old->bytes : bytes);
        p->blocks--;
        p->bytes -= old->bytes;
        memset(old + 1, 0xDD, old->bytes);
        free(old);
    }
    return made ? made + 1 : NULL;
}

mull_allocator counting_allocator_ops(counting_allocator *p)
{
    return (mull_allocator){resize, p};
}
