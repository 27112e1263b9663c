/* delay.h: how long a tier waits at a step; steps count from 1. */
#ifndef MULL__DELAY_H
#define MULL__DELAY_H

#include "plain.h"

/* mull__span: whole milliseconds, both ends belong to it. */
typedef struct mull__span {
    int64_t low_ms, high_ms;
} mull__span;

/* mull__delay is the delay before jitter, capped. */
int64_t mull__delay(const mull__plain_tier *tier, int64_t step);

/* mull__delay_span is where the tier's jitter may take it. */
mull__span mull__delay_span(const mull__plain_tier *tier, int64_t delay_ms);

/* mull__draw takes one of a span, each with the same chance, by a 64-bit hash. */
int64_t mull__draw(mull__span span, uint64_t hash);

/* mull__longest_round is the longest that all steps of a tier may wait together. */
int64_t mull__longest_round(const mull__plain_tier *tier);

#endif
