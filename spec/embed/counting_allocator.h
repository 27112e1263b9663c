/* counting_allocator.h: an allocator for tests, which counts and fails on demand. Any thread. */
#ifndef SPEC_COUNTING_ALLOCATOR_H
#define SPEC_COUNTING_ALLOCATOR_H

#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "mulligan.h"

/* counting_allocator counts the blocks that are out, and their bytes; of the requests for memory,
 * which are counted from 1, the `fail_at`-th and those after it fail, `fail_for` of them (0: one).
 * A fail_at of 0: none does. */
typedef struct counting_allocator {
    atomic_long out, bytes, asked;
    atomic_long fail_at; /* may be taken back meanwhile */
    long fail_for;
} counting_allocator;

#define FOR_GOOD (1L << 40) /* a fail_for */

/* counting_allocator_refuses counts a request. */
static inline int counting_allocator_refuses(counting_allocator *p)
{
    long nth = atomic_fetch_add(&p->asked, 1) + 1, at = p->fail_at;
    return at && nth >= at && nth - at < (p->fail_for ? p->fail_for : 1);
}

static inline void *counting_allocator_resize(void *pointer, size_t bytes, void *data)
{
    counting_allocator *p = data;
    long before = (long)malloc_usable_size(pointer);
    if (bytes == 0) {
        atomic_fetch_sub(&p->bytes, before);
        atomic_fetch_sub(&p->out, pointer != NULL);
        free(pointer);
        return NULL;
    }
    if (counting_allocator_refuses(p))
        return NULL;
    void *memory = realloc(pointer, bytes);
    atomic_fetch_add(&p->out, pointer == NULL && memory != NULL);
    if (memory)
        atomic_fetch_add(&p->bytes, (long)malloc_usable_size(memory) - before);
    return memory;
}

static inline mull_allocator counting_allocator_ops(counting_allocator *p)
{
    return (mull_allocator){counting_allocator_resize, p};
}

#endif
