/* delay.h: how long a tier waits at a step; steps count from 1. */
#ifndef MULL__DELAY_H
#define MULL__DELAY_H

#include "table.h"

/* MULL__DELAY_MAX_MS, 365 days, is where a computed delay and a hint without a cap saturate; no
 * delay that a policy can name is longer. */
#define MULL__DELAY_MAX_MS (INT64_C(365) * 24 * 3600 * 1000)

/* mull__span: whole milliseconds, both ends belong to it. */
typedef struct mull__span {
    int64_t low_ms, high_ms;
} mull__span;

/* mull__facts is all that chance has a say by: the same facts, the same delay. */
typedef struct mull__facts {
    uint64_t chance, consumer_hash, seed;
    uint32_t flags; /* a failure's */
    mull_tier tier;
    int64_t redeliveries; /* of a redelivery: those before it */
    int64_t step;
} mull__facts;

/* mull__wait is how long a tier waits by these facts, which have a step of it: hint, cap and jitter
 * included. */
int64_t mull__wait(const mull__plain_tier *tier, const mull__facts *facts, const mull_error *error);

/* mull__tier_span is where mull__wait may end at a step, whatever the other facts and the error:
 * both ends are reached by some. */
mull__span mull__tier_span(const mull__plain_tier *tier, int64_t step);

/* mull__longest_round is the longest that all steps of a tier may wait together. Not for an
 * unlimited one. */
int64_t mull__longest_round(const mull__plain_tier *tier);

/* ---- What these are made of ------------------------------------------------------------------ */

/* mull__delay is the delay before hint and jitter, capped. */
int64_t mull__delay(const mull__plain_tier *tier, int64_t step);

/* mull__delay_span is where the tier's jitter may take a delay; decorrelated jitter: where it may
 * go from the delay before. */
mull__span mull__delay_span(const mull__plain_tier *tier, int64_t delay_ms);

/* mull__draw takes one of a span, each with the same chance, by a 64-bit hash. */
int64_t mull__draw(mull__span span, uint64_t hash);

#endif
