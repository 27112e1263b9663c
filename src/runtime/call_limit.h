/* call_limit.h: how many calls may begin in a time: the generic cell rate algorithm (ITU-T I.371,
 * appendix A). One moment is kept: when the next call would begin if all came evenly. */
#ifndef MULL__CALL_LIMIT_H
#define MULL__CALL_LIMIT_H

#include "policy/settings.h"

typedef struct mull__pace {
    int64_t even_ns; /* the theoretical arrival time of the next call */
} mull__pace;

/* mull__pace_ready gives from which moment on a call may begin, in milliseconds. The clock has no
 * finer ones, so as many calls as fit into one may begin in it at once. */
int64_t mull__pace_ready(const mull__pace *pace, const mull__call_limit *limit);

/* mull__pace_took: a call begins. */
void mull__pace_took(mull__pace *pace, const mull__call_limit *limit, int64_t now_ms);

/* The same where what a statement comes to, in nanoseconds, was worked out before: the time from
 * one call to the next, and how much earlier than evenly a call may begin. */
int64_t mull__pace_step(const mull__call_limit *limit);
int64_t mull__pace_early(const mull__call_limit *limit);

enum { MULL__NS_PER_MS = 1000000 };

static inline int mull__pace_open(const mull__pace *pace, int64_t early_ns, int64_t now_ms)
{
    return pace->even_ns - early_ns <= now_ms * MULL__NS_PER_MS;
}

/* A call that became due within the last millisecond begins as if it were in time, or each would
 * lose what the clock rounds up. */
static inline void mull__pace_move(mull__pace *pace, int64_t step_ns, int64_t now_ms)
{
    int64_t now_ns = now_ms * MULL__NS_PER_MS, late_ns = now_ns - pace->even_ns;
    pace->even_ns = (late_ns < MULL__NS_PER_MS ? pace->even_ns : now_ns) + step_ns;
}

/* mull__pace_renew: other numbers hold from now on. What the earlier ones put off waits no longer
 * than if all had begun just now that these let begin at once. */
void mull__pace_renew(mull__pace *pace, const mull__call_limit *limit, int64_t now_ms);

/* mull__pace_interval is the time from one call to the next, in milliseconds, at least 1. */
int64_t mull__pace_interval(const mull__call_limit *limit);

/* mull__pace_soon is how many calls may begin within the next second, at most `most`. */
uint64_t mull__pace_soon(const mull__pace *pace, const mull__call_limit *limit, int64_t now_ms,
                         uint64_t most);

#endif
