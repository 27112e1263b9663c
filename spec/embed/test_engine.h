/* test_engine.h: what the C tests of the engine share: a clock that stands still, an engine on it
 * with the transport "t", and an allocator that counts and may fail. */
#ifndef TEST_ENGINE_H
#define TEST_ENGINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mulligan.h"

typedef struct test_engine {
    int64_t now_ms;
    mull_clock clock;
    mull_policy *policy;
    mull_engine *engine;
    int published, publish_failed;
} test_engine;

static inline int64_t test_engine_now(void *data)
{
    return ((test_engine *)data)->now_ms;
}

static inline int64_t test_engine_wall(void *data)
{
    return 1700000000000 + ((test_engine *)data)->now_ms;
}

static inline void test_engine_problem(const char *file, int line, const char *text, void *data)
{
    (void)data;
    print_message("%s:%d: %s\n", file ? file : "-", line, text);
}

static inline mull_policy *test_engine_policy(const char *text)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.problem = test_engine_problem;
    mull_policy *policy = NULL;
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    return policy;
}

/* test_engine_consumer is the consumer "C" of the queue "q" on the transport "t". */
static inline mull_consumer_options test_engine_consumer(mull_handler handler, void *data)
{
    mull_consumer_options options = MULL_INIT(mull_consumer_options);
    options.name = "C";
    options.transport = "t";
    options.queue = "q";
    options.handler = handler;
    options.data = data;
    return options;
}

/* test_engine_open makes an engine; it is started with `consumer`, where that isn't NULL. */
static inline void test_engine_open(test_engine *r, const char *policy, const char *url,
                                    const mull_consumer_options *consumer)
{
    *r = (test_engine){.clock = {test_engine_now, test_engine_wall, r}};
    r->policy = test_engine_policy(policy);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r->policy;
    options.problem = test_engine_problem;
    options.clock = &r->clock;
    options.seed = 1;
    assert_int_equal(mull_engine_new(&r->engine, &options), 0);
    assert_int_equal(mull_engine_transport(r->engine, "t", url), 0);
    if (consumer) {
        assert_int_equal(mull_consumer_add(r->engine, consumer), 0);
        assert_int_equal(mull_engine_start(r->engine), 0);
    }
}

/* test_engine_open_plain: an empty policy, messages in memory, and one handler. */
static inline void test_engine_open_plain(test_engine *r, mull_handler handler, void *data)
{
    mull_consumer_options consumer = test_engine_consumer(handler, data);
    test_engine_open(r, "", "memory:", &consumer);
}

static inline void test_engine_published(int status, void *data)
{
    test_engine *r = data;
    if (status == 0)
        r->published++;
    else
        r->publish_failed++;
}

static inline int test_engine_publish(test_engine *r, const char *queue, const char *id)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = queue;
    message.id = id;
    message.body = "body";
    message.body_size = 4;
    return mull_publish(r->engine, "t", &message, 0, test_engine_published, r);
}

/* test_clock_advance moves an engine's clock, stopping at each timer on the way. What fires may
 * close the engine: `*engine` is NULL then. */
static inline void test_clock_advance(mull_engine *const *engine, int64_t *now_ms, int64_t ms)
{
    int64_t target = *now_ms + ms;
    for (;;) {
        int64_t next = mull_engine_turn(*engine);
        if (next > target)
            break;
        if (next > *now_ms)
            *now_ms = next;
    }
    *now_ms = target;
    mull_engine_turn(*engine);
}

static inline void test_engine_advance(test_engine *r, int64_t ms)
{
    test_clock_advance(&r->engine, &r->now_ms, ms);
}

static inline mull_counts test_engine_counts(const test_engine *r)
{
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(r->engine, &counts), 0);
    return counts;
}

static inline void test_engine_close(test_engine *r)
{
    mull_engine_close(r->engine, NULL, NULL);
    mull_policy_free(r->policy);
}

#endif
