/* backoff.h: how long to wait before trying again. */
#ifndef MULL__NET_BACKOFF_H
#define MULL__NET_BACKOFF_H

#include <stdint.h>

#include "base/rand.h"

typedef struct mull__backoff {
    int64_t first_ms, longest_ms;
    int64_t next_ms; /* before chance */
    mull__rand rand;
} mull__backoff;

/* mull__backoff_init: waits begin at `first_ms` (at least 1) and double up to `longest_ms` (at
 * least the first). A seed of 0 is the system's. */
void mull__backoff_init(mull__backoff *backoff, int64_t first_ms, int64_t longest_ms,
                        uint64_t seed);

/* mull__backoff_next gives the next wait: a half of it is sure, the other is cut by chance, so that
 * those who lost a server together don't come back together. */
int64_t mull__backoff_next(mull__backoff *backoff);

/* mull__backoff_reset: the next wait is the first again. */
void mull__backoff_reset(mull__backoff *backoff);

#endif
