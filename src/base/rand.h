/* rand.h: chance for ids: seeded by a test, or by the system. Not for secrets. */
#ifndef MULL__RAND_H
#define MULL__RAND_H

#include <stdint.h>

typedef struct mull__rand {
    uint64_t state;
} mull__rand;

/* mull__rand_init seeds it; a seed of 0 takes one from the system. */
void mull__rand_init(mull__rand *rand, uint64_t seed);
uint64_t mull__rand_next(mull__rand *rand);

/* mull__rand_id writes 32 random hex digits and a NUL. */
void mull__rand_id(mull__rand *rand, char id[33]);

#endif
