/* seam_stage.h: what the tests of a transport's answers share (seam.c, slots.c): a test's clock
 * that goes forward, what the log said, and what embedders were told. */
#ifndef SEAM_STAGE_H
#define SEAM_STAGE_H

#include "scripted_transport.h"

enum { MINUTE_MS = 60000 };

static const mull_depth no_messages = {.next_due_ms = INT64_MAX};

static inline void advance(stage *s, int64_t ms)
{
    test_clock_advance(&s->engine, &s->now_ms, ms);
}

static inline void assert_said(stage *s, const char *part)
{
    if (!strstr(s->said, part))
        fail_msg("'%s' doesn't say '%s'", s->said, part);
}

/* assert_misused, and forgets it. */
static inline void assert_misused(stage *s)
{
    assert_string_equal(s->said, "transport t: it answered what it wasn't asked");
    s->said[0] = '\0';
}

static inline mull_counts counts_of(const stage *s)
{
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(s->engine, &counts), 0);
    return counts;
}

/* answers are what embedders were told, the last of them with this status. */
typedef struct answers {
    int count, status;
} answers;

static inline void on_published(int status, void *data)
{
    answers *a = data;
    a->count++;
    a->status = status;
}

static inline void on_depth(int status, const mull_depth *depth, void *data)
{
    assert_int_equal(depth->ready, status == 0 ? 0 : MULL_UNKNOWN);
    on_published(status, data);
}

static inline int publish(stage *s, answers *a)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    return mull_publish(s->engine, "t", &message, 0, on_published, a);
}

#endif
