/* downstream.h: a service that handlers call, and the run of an engine against it: an outage, then
 * so many calls a second and no more. All of it is on a test's clock, so that an hour takes seconds
 * and comes out the same each time.
 *
 *   down: every call fails, after `fails_ms`        from `down_ms` on: one more call may begin each
 *                                                   `interval_ms`; what comes beyond is refused */
#ifndef BENCH_DOWNSTREAM_H
#define BENCH_DOWNSTREAM_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_STEP_MS = 100 }; /* calls and the backlog are noted for each such step */

typedef struct bench_outage {
    const char *policy; /* its text */
    int messages, concurrency;
    int64_t down_ms;     /* the outage lasts from 0 until then */
    int64_t fails_ms;    /* a call that fails takes so long while it is down, */
    int64_t refuses_ms;  /* so long when it is refused, */
    int64_t works_ms;    /* and so long when it succeeds */
    int64_t interval_ms; /* of the calls that it takes once it is back */
    int64_t early_ms;    /* so much earlier a call may come: a bucket of early_ms / interval_ms */
    int tenants;         /* messages have a header "tenant", in turn; 0: none, and all is down */
    int lacks_first;     /* the tenant that is down, the first one, has no messages */
} bench_outage;

typedef struct bench_step {
    uint32_t calls;   /* that began in it */
    uint32_t backlog; /* messages that weren't done at its end, dead letters left out */
} bench_step;

typedef struct bench_outage_run {
    int messages; /* that were published */
    int64_t calls_while_down;
    int64_t dead_lettered;   /* in all */
    int64_t backlog_at_back; /* when the service was back */
    int64_t gone_ms;         /* when the last message was done or dead */
    int64_t others_gone_ms;  /* when the last one of a tenant that is never down was */
    int64_t peak;            /* calls in 100 ms, wherever these begin, once it is back */
    bench_step *steps;       /* `step_count`, yours to free */
    size_t step_count;
} bench_outage_run;

/* bench_outage_measure runs an engine until nothing is left. -1: it can't be set up, or there is no
 * memory, which it says. */
int bench_outage_measure(bench_outage_run *run, const bench_outage *outage);

#endif
