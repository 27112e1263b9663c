/* rate_limit.h: one limit on failures: of a consumer, or of one value of its messages. It counts
 * calls that ended; once too many failed it is in force, and lets one call through at a time, a
 * probe, each a wait after the one before. No clock, no chance, no engine: all of that is given.
 *
 *   COUNTS ── enough failures ──> LIMITED ── enough successes ──> COUNTS, with a ramp at first
 *
 * Moments are milliseconds of one clock that never goes back. */
#ifndef MULL__RATE_LIMIT_H
#define MULL__RATE_LIMIT_H

#include "policy/settings.h"

typedef struct mull__failed_message {
    uint64_t id; /* a hash of it */
    int64_t last_ms;
} mull__failed_message;

typedef struct mull__ended_calls { /* that ended within one step of the window */
    int64_t at_ms;
    uint64_t calls, failed;
} mull__ended_calls;

typedef struct mull__rate {
    const mull_allocator *allocator;
    /* What counts while it isn't in force. */
    int64_t row;     /* failures since the last success */
    int64_t *row_ms; /* the last of these, at most `after`; for `within` */
    size_t row_count;
    mull__failed_message *messages; /* that failed, the last ones, at most `messages` */
    size_t message_count;
    mull__ended_calls *window; /* for `ratio`, the oldest first */
    size_t window_first, window_end, window_room;
    uint64_t window_calls, window_failed;
    /* While it is in force. */
    int limited;
    int64_t since_ms, next_ms; /* no probe begins earlier than `next_ms` */
    int64_t wait_ms;           /* the next wait, jitter and hint apart */
    int64_t successes;         /* in a row */
    uint64_t probes;           /* begun */
    uint64_t last_probe;       /* the hash of its message's id */
    int probing;               /* a probe's handler is at work */
    /* Afterwards. */
    int64_t ramp_from_ms, ramp_ms; /* 0: no ramp */
} mull__rate;

/* mull__rate_call is a call that ended. */
typedef struct mull__rate_call {
    int64_t now_ms;
    uint64_t message; /* the hash of its id */
    uint64_t chance;  /* for jitter, drawn anew */
    int64_t hint_ms;  /* how long the error says to wait; 0: nothing */
    int failed;
} mull__rate_call;

typedef enum mull__rate_change {
    MULL__RATE_SAME,
    MULL__RATE_STARTS,
    MULL__RATE_ENDS
} mull__rate_change;

/* mull__rate_ended takes in a call that ended and counts. Where there is no memory to note a
 * failure, it isn't counted: the limit begins later. */
mull__rate_change mull__rate_ended(mull__rate *rate, const mull__rate_limit *limit,
                                   const mull__rate_call *call);

/* mull__rate_probes: a call begins while the limit is in force. */
void mull__rate_probes(mull__rate *rate, uint64_t message);

/* mull__rate_handlers gives how many of `concurrency` handlers a ramp allows, and in `more_ms` when
 * it allows the next one; all of them where there is no ramp, or its time is over. */
uint32_t mull__rate_handlers(const mull__rate *rate, int64_t now_ms, uint32_t concurrency,
                             int64_t *more_ms);

/* mull__rate_end ends a limit that is in force, whatever it counted. */
void mull__rate_end(mull__rate *rate, const mull__rate_limit *limit, int64_t now_ms);

/* mull__rate_free gives back what it noted; it counts from nothing. */
void mull__rate_free(mull__rate *rate);

#endif
