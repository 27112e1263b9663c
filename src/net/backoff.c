/* backoff.c: see backoff.h. */
#include "backoff.h"

void mull__backoff_init(mull__backoff *backoff, int64_t first_ms, int64_t longest_ms, uint64_t seed)
{
    backoff->first_ms = first_ms > 0 ? first_ms : 1;
    backoff->longest_ms = longest_ms > backoff->first_ms ? longest_ms : backoff->first_ms;
    mull__rand_init(&backoff->rand, seed);
    mull__backoff_reset(backoff);
}

int64_t mull__backoff_next(mull__backoff *backoff)
{
    int64_t whole = backoff->next_ms;
    uint64_t chance = (uint64_t)(whole - whole / 2) + 1;
    backoff->next_ms = whole > backoff->longest_ms / 2 ? backoff->longest_ms : 2 * whole;
    return whole / 2 + (int64_t)(mull__rand_next(&backoff->rand) % chance);
}

void mull__backoff_reset(mull__backoff *backoff)
{
    backoff->next_ms = backoff->first_ms;
}
