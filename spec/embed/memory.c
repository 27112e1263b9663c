/* memory.c: an engine whose n-th allocation fails, for every n: once, and for a while. What was
 * published comes to an end all the same, nothing crashes, and nothing is left at the end. */
#include "purse.h"
#include "rig.h"

static const char policy_text[] = "local policy = require 'mulligan.policy'\n"
                                  "policy.bus():on('Passing'):retry(3, '1s')\n"
                                  "policy.bus():on('Slow'):redeliver(1, '1m')\n";

/* handle ends each call by the message's id; an end for which there is no memory is tried again. */
static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)data;
    mull_error error = MULL_INIT(mull_error);
    error.type = message->id[0] == 'p' ? "Passing" : message->id[0] == 's' ? "Slow" : "Deadly";
    int fails = (message->id[0] == 'p' && message->attempt < 3) ||
                (message->id[0] == 's' && message->redeliveries == 0) || message->id[0] == 'd';
    mull_message out = MULL_INIT(mull_message);
    out.queue = "next";
    int status;
    do
        status = mull_send(engine, call, &out, 0);
    while (status == MULL_ENOMEM);
    do
        status = mull_done(engine, call, fails ? &error : NULL);
    while (status == MULL_ENOMEM);
}

/* live_through runs the engine's whole life. 0: it could not be set up. */
static int live_through(purse *p)
{
    rig r = {.clock = {rig_now, rig_wall, &r}};
    r.policy = rig_policy(policy_text);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r.policy;
    options.clock = &r.clock;
    options.seed = 1;
    options.allocator = purse_allocator(p);
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "C";
    consumer.transport = "t";
    consumer.queue = "q";
    consumer.handler = handle;
    int made = mull_engine_new(&r.engine, &options) == 0 &&
               mull_engine_transport(r.engine, "t", "memory:") == 0 &&
               mull_engine_consumer(r.engine, &consumer) == 0 && mull_engine_start(r.engine) == 0;
    int taken = 0;
    static const char *const ids[] = {"good", "passing", "slow", "deadly", "plain"};
    for (int i = 0; made && i < 5; i++)
        taken += rig_publish(&r, "q", ids[i]) == 0;
    if (made) {
        rig_advance(&r, 600000);
        mull_counts counts = rig_counts(&r);
        assert_int_equal(r.published + r.publish_failed, taken);
        assert_int_equal(counts.done + counts.dead_lettered, r.published);
    }
    if (r.engine)
        mull_engine_close(r.engine, NULL, NULL);
    mull_policy_free(r.policy);
    assert_int_equal(p->out, 0);
    return made;
}

static void fail_each(long length)
{
    int made = 0;
    purse p;
    for (long at = 1; at < 5000; at++) {
        p = (purse){.fail_at = at, .fail_for = length};
        made += live_through(&p);
        if (p.asked < at) {
            assert_true(made > 20);
            return;
        }
    }
    fail_msg("an engine's life takes more than 5000 allocations");
}

static void the_nth_allocation_fails(void **state)
{
    (void)state;
    fail_each(1);
}

static void memory_is_short_for_a_while(void **state)
{
    (void)state;
    fail_each(40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(memory_is_short_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
