/* delay.h: how long a tier waits at a step; steps count from 1. */
#ifndef MULL__DELAY_H
#define MULL__DELAY_H

#include "base/arena.h"
#include "base/hash.h"
#include "table.h"

/* MULL__DELAY_MAX_MS, 365 days, is where a computed delay and a hint without a cap saturate; no
 * delay that a policy can name is longer. */
#define MULL__DELAY_MAX_MS (INT64_C(365) * 24 * 3600 * 1000)

/* mull__jitter_inputs is all that chance has a say by: the same inputs, the same delay. */
typedef struct mull__jitter_inputs {
    uint64_t chance, consumer_hash, seed;
    uint32_t flags; /* a failure's */
    mull_tier tier;
    int64_t redeliveries; /* of a redelivery: those before it */
    int64_t step;
} mull__jitter_inputs;

/* mull__tier_delay is how long a tier waits by these inputs, which have a step of it: hint, cap and
 * jitter included. */
int64_t mull__tier_delay(const mull__tier_config *tier, const mull__jitter_inputs *inputs,
                         const mull_error *error);

/* mull__tier_ms_range is where mull__tier_delay may end at a step, whatever the other inputs and
 * the error: both ends are reached by some. */
mull__ms_range mull__tier_ms_range(const mull__tier_config *tier, int64_t step);

/* mull__longest_retry_round is the longest that all steps of a tier may wait together. Not for an
 * unlimited one. */
int64_t mull__longest_retry_round(const mull__tier_config *tier);

/* ---- What these are made of ------------------------------------------------------------------ */

/* mull__hint_ms is how long an error asks to wait, by a field in seconds, whole milliseconds, at
 * most MULL__DELAY_MAX_MS; 0: it doesn't say. */
int64_t mull__hint_ms(const char *name, const mull_error *error);

/* mull__delay is the delay before hint and jitter, capped. */
int64_t mull__delay(const mull__tier_config *tier, int64_t step);

/* mull__jitter_ms_range is where the tier's jitter may take a delay; decorrelated jitter: where it
 * may go from the delay before. */
mull__ms_range mull__jitter_ms_range(const mull__tier_config *tier, int64_t delay_ms);

/* mull__jitter_hash is the hash that a step draws by. It depends on nothing else. What is counted
 * is spread over the word before it meets what is a hash already. */
static inline uint64_t mull__jitter_hash(const mull__jitter_inputs *inputs, int64_t redeliveries,
                                         int64_t step)
{
    uint64_t counted = (uint64_t)step * 4 + (uint64_t)inputs->tier;
    counted = (counted + ((uint64_t)redeliveries << 32)) * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hashes =
        inputs->chance ^ inputs->consumer_hash ^ (inputs->seed << 32 | inputs->seed >> 32);
    return mull__mix_word(mull__mix_word(hashes + counted));
}

/* mull__chance_from_id is the chance of a failure that comes without one: the hash of its message's
 * id. There may be no message, and no id. */
uint64_t mull__chance_from_id(const mull_message *message);

/* mull__mul_high is the upper half of a 128-bit product. */
static inline uint64_t mull__mul_high(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
#else
    uint64_t a_low = (uint32_t)a, a_high = a >> 32;
    uint64_t b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    uint64_t carry = a_low * b_high + (uint32_t)middle;
    return a_high * b_high + (middle >> 32) + (carry >> 32);
#endif
}

/* mull__draw_jitter takes one of so many choices from `low_ms` on, each with the same chance, by a
 * 64-bit hash. */
static inline int64_t mull__draw_jitter(int64_t low_ms, uint64_t choices, uint64_t hash)
{
    return low_ms + (int64_t)mull__mul_high(hash, choices);
}

static inline uint64_t mull__range_size(mull__ms_range span)
{
    return (uint64_t)(span.high_ms - span.low_ms) + 1;
}

/* mull__precomputed_step is a step of a tier, worked out ahead: what its delay is drawn from, and
 * of how many steps it is one. */
typedef struct mull__precomputed_step {
    int64_t low_ms;
    uint64_t choices;
    int64_t of;
} mull__precomputed_step;

/* MULL__PRECOMPUTED_MAX is of how many steps of a tier the precomputed steps are worked out ahead.
 */
enum { MULL__PRECOMPUTED_MAX = 8 };

/* mull__tier_precompute fills in the precomputed steps, as far as steps depend on nothing else.
 * MULL_ENOMEM. */
int mull__tier_precompute(mull__arena *arena, mull__tier_config *tier);

#endif
