/* rand.c: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
#include "rand.h"

#include <stdio.h>
#include <sys/random.h>
#include <time.h>

void mull__rand_init(mull__rand *rand, uint64_t seed)
{
    rand->state = seed;
    if (seed != 0)
        return;
    if (getrandom(&rand->state, sizeof rand->state, 0) != (ssize_t)sizeof rand->state) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        rand->state = (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
    }
}

uint64_t mull__rand_next(mull__rand *rand)
{
    uint64_t z = (rand->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void mull__rand_id(mull__rand *rand, char id[33])
{
    unsigned long long high = mull__rand_next(rand), low = mull__rand_next(rand);
    snprintf(id, 33, "%016llx%016llx", high, low);
}
