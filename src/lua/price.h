/* price.h: what an instruction costs. Most touch a few bytes, but one that compares or reads a
 * string may touch all of it, one that hands values on may touch all of the stack, and one that
 * looks a key up may walk through all keys of a table, where these were chosen to have the same
 * hash. So while there are long strings, a large stack or large hash parts, each instruction costs
 * what the worst one could take.
 *
 * Hash parts count where a policy's own code made them: what the words keep for it has keys that no
 * policy chooses. */
#ifndef MULL__PRICE_H
#define MULL__PRICE_H

#include "pool.h"

#include <stddef.h>
#include <stdint.h>

enum {
    MULL__PRICE_LONG = 4096, /* bytes of a block from which on it may cost something */
    MULL__PRICE_DEEP = 8192  /* bytes of the stack that are free: 512 values */
};

/* mull__price_kind is what a block is for, as far as it is known when it is asked for. */
typedef enum mull__price_kind {
    MULL__PRICE_OTHER,
    MULL__PRICE_STRING,
    MULL__PRICE_HASH /* the hash part of a policy's table */
} mull__price_kind;

/* mull__price_tally counts blocks of a kind that are large. */
typedef struct mull__price_tally {
    uint32_t count[64]; /* by the size's logarithm */
    int largest;        /* the largest such logarithm since the last look; 0: there was none */
} mull__price_tally;

/* mull__price knows of the long strings of a state, of the large hash parts, and of its stack. */
typedef struct mull__price {
    size_t touched;             /* bytes of a string that an instruction may touch at no cost */
    size_t place;               /* bytes of a place in a hash part; 0: they aren't known yet */
    mull__price_tally strings;  /* by their bytes */
    mull__price_tally hashes;   /* by their places, of which there are powers of two */
    uint64_t made;              /* how many of both were made that cost something */
    int finds_stack;            /* the next block that grows is the stack */
    const void *stack, *newest; /* the latter: the block that was made last */
    size_t stack_size, newest_size;
    size_t stack_most; /* bytes that it had since the last look */
    int has_risen;     /* since the last look */
} mull__price;

/* mull__price_resize allocates, resizes (where it fails, `pointer` stays) and frees (`wanted` is 0)
 * the state's blocks. All of them must come from here. The kind is that of a block that is made
 * (`pointer` is NULL), and OTHER for any other. */
void *mull__price_resize(mull__price *price, mull__pool *pool, void *pointer, size_t old,
                         size_t wanted, mull__price_kind kind);

/* mull__price_may_be_hash says whether a new block of so many bytes has the size of a large hash
 * part. */
int mull__price_may_be_hash(const mull__price *price, size_t bytes);

/* mull__price_filling gives the instructions for filling a new hash part of so many bytes with what
 * a smaller one had, which Lua does in one go. */
int64_t mull__price_filling(const mull__price *price, size_t bytes);

/* mull__price_look gives what each instruction since the last look cost, from 1. */
int64_t mull__price_look(mull__price *price);

/* mull__price_now gives what an instruction costs as long as nothing changes. */
int64_t mull__price_now(const mull__price *price);

/* mull__price_is_calm: it costs 1, and that is quickly seen. */
static inline int mull__price_is_calm(const mull__price *price)
{
    return price->strings.largest == 0 && price->hashes.largest == 0 &&
           price->stack_size < MULL__PRICE_DEEP;
}

/* mull__price_places gives through how many places an instruction may walk at no cost. */
size_t mull__price_places(const mull__price *price);

/* mull__price_lookup gives what looking a key up costs now, beyond the instruction; mostly 0. */
size_t mull__price_lookup(const mull__price *price);

/* mull__price_is_deep says whether the stack is so large that it makes instructions dearer. */
int mull__price_is_deep(const mull__price *price);

#endif
