/* sample.h: which of many requests for memory a test lets fail: a random sample of them, or, with
 * MULL_EVERY=1, each; with MULL_EVERY=10, one in ten. The seed is printed; MULL_SEED gives one. */
#ifndef SPEC_SAMPLE_H
#define SPEC_SAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* SLOWNESS is how many times as long a test takes under a sanitizer that runs much of Lua. */
#if defined(__SANITIZE_THREAD__)
enum { SLOWNESS = 4 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SLOWNESS = 2 };
#else
enum { SLOWNESS = 1 };
#endif

/* sample goes on from 1 in random steps, of `step` on average; 1: no number is left out. */
typedef struct sample {
    uint64_t state;
    long step;
} sample;

static inline uint64_t sample_random(sample *s)
{
    s->state = s->state * 6364136223846793005u + 1442695040888963407u;
    return s->state >> 33;
}

/* sample_seed is the same for all samples of a program. */
static inline uint64_t sample_seed(void)
{
    static uint64_t seed;
    if (seed)
        return seed;
    const char *given = getenv("MULL_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("MULL_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* sample_of begins a sample, another one with each call. */
static inline sample sample_of(long step)
{
    static uint64_t samples;
    const char *every = getenv("MULL_EVERY");
    if (every && atol(every) > 0)
        step = atol(every);
    return (sample){.state = sample_seed() + samples++, .step = step};
}

/* sample_after gives the next number behind `at`; 0: the first one. */
static inline long sample_after(sample *s, long at)
{
    return at + 1 + (s->step > 1 ? (long)(sample_random(s) % (uint64_t)(2 * s->step - 1)) : 0);
}

#endif
