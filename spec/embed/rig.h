/* rig.h: what the C tests of the engine share: a clock that stands still, an engine on it with the
 * transport "t", and an allocator that counts and may fail. */
#ifndef RIG_H
#define RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mulligan.h"

typedef struct rig {
    int64_t now_ms;
    mull_clock clock;
    mull_policy *policy;
    mull_engine *engine;
    int published, publish_failed;
} rig;

static inline int64_t rig_now(void *data)
{
    return ((rig *)data)->now_ms;
}

static inline int64_t rig_wall(void *data)
{
    return 1700000000000 + ((rig *)data)->now_ms;
}

static inline void rig_problem(const char *file, int line, const char *text, void *data)
{
    (void)data;
    print_message("%s:%d: %s\n", file ? file : "-", line, text);
}

static inline mull_policy *rig_policy(const char *text)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.problem = rig_problem;
    mull_policy *policy = NULL;
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    return policy;
}

/* rig_consumer is the consumer "C" of the queue "q" on the transport "t". */
static inline mull_consumer_options rig_consumer(mull_handler handler, void *data)
{
    mull_consumer_options options = MULL_INIT(mull_consumer_options);
    options.name = "C";
    options.transport = "t";
    options.queue = "q";
    options.handler = handler;
    options.data = data;
    return options;
}

/* rig_open makes an engine; it is started with `consumer`, where that isn't NULL. */
static inline void rig_open(rig *r, const char *policy, const char *url,
                            const mull_consumer_options *consumer)
{
    *r = (rig){.clock = {rig_now, rig_wall, r}};
    r->policy = rig_policy(policy);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r->policy;
    options.problem = rig_problem;
    options.clock = &r->clock;
    options.seed = 1;
    assert_int_equal(mull_engine_new(&r->engine, &options), 0);
    assert_int_equal(mull_engine_transport(r->engine, "t", url), 0);
    if (consumer) {
        assert_int_equal(mull_engine_consumer(r->engine, consumer), 0);
        assert_int_equal(mull_engine_start(r->engine), 0);
    }
}

/* rig_open_plain: an empty policy, messages in memory, and one handler. */
static inline void rig_open_plain(rig *r, mull_handler handler, void *data)
{
    mull_consumer_options consumer = rig_consumer(handler, data);
    rig_open(r, "", "memory:", &consumer);
}

static inline void rig_published(int status, void *data)
{
    rig *r = data;
    if (status == 0)
        r->published++;
    else
        r->publish_failed++;
}

static inline int rig_publish(rig *r, const char *queue, const char *id)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = queue;
    message.id = id;
    message.body = "body";
    message.body_size = 4;
    return mull_publish(r->engine, "t", &message, 0, rig_published, r);
}

/* rig_advance moves the clock, stopping at each timer on the way. */
static inline void rig_advance(rig *r, int64_t ms)
{
    int64_t target = r->now_ms + ms;
    for (;;) {
        int64_t next = mull_engine_turn(r->engine);
        if (next > target)
            break;
        if (next > r->now_ms)
            r->now_ms = next;
    }
    r->now_ms = target;
    mull_engine_turn(r->engine);
}

static inline mull_counts rig_counts(const rig *r)
{
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(r->engine, &counts), 0);
    return counts;
}

static inline void rig_close(rig *r)
{
    mull_engine_close(r->engine, NULL, NULL);
    mull_policy_free(r->policy);
}

#endif
