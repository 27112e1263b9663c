/* call_limit.c: see call_limit.h. */
#include "call_limit.h"

static const int64_t ns_per_ms = MULL__NS_PER_MS, soon_ms = 1000;

/* Rounded up: never more calls than the policy says. */
int64_t mull__pace_step(const mull__call_limit *limit)
{
    int64_t unit_ns = limit->unit_ms * ns_per_ms;
    return (unit_ns + limit->count - 1) / limit->count;
}

int64_t mull__pace_early(const mull__call_limit *limit)
{
    int64_t interval = mull__pace_step(limit), burst_ns = 0;
    if (__builtin_mul_overflow(limit->burst - 1, interval, &burst_ns))
        burst_ns = INT64_MAX / 2;
    int64_t least_ns = ns_per_ms - interval; /* as many as fit into a millisecond */
    return burst_ns > least_ns ? burst_ns : least_ns;
}

int64_t mull__pace_ready(const mull__pace *pace, const mull__call_limit *limit)
{
    int64_t from_ns = pace->even_ns - mull__pace_early(limit);
    return from_ns <= 0 ? 0 : (from_ns - 1) / ns_per_ms + 1;
}

void mull__pace_took(mull__pace *pace, const mull__call_limit *limit, int64_t now_ms)
{
    mull__pace_move(pace, mull__pace_step(limit), now_ms);
}

void mull__pace_renew(mull__pace *pace, const mull__call_limit *limit, int64_t now_ms)
{
    int64_t most_ns = now_ms * ns_per_ms + mull__pace_early(limit) + mull__pace_step(limit);
    pace->even_ns = pace->even_ns < most_ns ? pace->even_ns : most_ns;
}

int64_t mull__pace_interval(const mull__call_limit *limit)
{
    return (mull__pace_step(limit) - 1) / ns_per_ms + 1;
}

uint64_t mull__pace_soon(const mull__pace *pace, const mull__call_limit *limit, int64_t now_ms,
                         uint64_t most)
{
    int64_t until_ns = (now_ms + soon_ms) * ns_per_ms;
    int64_t left_ns = until_ns - (pace->even_ns - mull__pace_early(limit));
    int64_t fresh_ns =
        soon_ms * ns_per_ms + mull__pace_early(limit); /* where none began for long */
    left_ns = left_ns < fresh_ns ? left_ns : fresh_ns;
    uint64_t calls = left_ns > 0 ? (uint64_t)(left_ns / mull__pace_step(limit)) + 1 : 0;
    return calls < most ? calls : most;
}
