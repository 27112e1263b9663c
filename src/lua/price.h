/* price.h: what an instruction costs. Most touch a few bytes, but one that compares or reads a
 * string may touch all of it, and one that hands values on may touch all of the stack. So while
 * there are long strings or a large stack, each instruction costs what the worst one could take. */
#ifndef MULL__PRICE_H
#define MULL__PRICE_H

#include "mulligan.h"

#include <stddef.h>
#include <stdint.h>

enum { MULL__PRICE_DEEP = 8192 }; /* bytes of the stack that are free: 512 values */

/* mull__price knows of the long strings of a state, and of its stack. */
typedef struct mull__price {
    size_t touched;             /* bytes of a string that an instruction may touch at no cost */
    uint32_t strings[65];       /* how many long ones there are, by the size's logarithm */
    int longest;                /* the largest such logarithm since the last look */
    uint64_t made;              /* how many were made that cost something */
    int finds_stack;            /* the next block that grows is the stack */
    const void *stack, *newest; /* the latter: the block that was made last */
    size_t stack_size, newest_size;
    size_t stack_most; /* bytes that it had since the last look */
    int has_risen;     /* since the last look */
} mull__price;

/* mull__price_resize allocates, resizes (where it fails, `pointer` stays) and frees (`wanted` is 0)
 * the state's blocks. All of them must come from here. */
void *mull__price_resize(mull__price *price, const mull_allocator *allocator, void *pointer,
                         size_t old, size_t wanted, int is_string);

/* mull__price_look gives what each instruction since the last look cost, from 1. */
int64_t mull__price_look(mull__price *price);

/* mull__price_now gives what an instruction costs as long as nothing changes. */
int64_t mull__price_now(const mull__price *price);

/* mull__price_is_calm: it costs 1, and that is quickly seen. */
static inline int mull__price_is_calm(const mull__price *price)
{
    return price->longest == 0 && price->stack_size < MULL__PRICE_DEEP;
}

/* mull__price_is_deep says whether the stack is so large that it makes instructions dearer. */
int mull__price_is_deep(const mull__price *price);

#endif
