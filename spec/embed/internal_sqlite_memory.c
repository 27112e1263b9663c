/* internal_sqlite_memory.c: an engine on sqlite:FILE whose n-th allocation fails, for every n, on
 * whichever thread: what was published comes to its end, and nothing is left in memory. The clocks
 * are the real ones, since what failed is tried again in real time. */
#include "purse.h"
#include "rig.h"

#include <stdatomic.h>
#include <unistd.h>

static char path[64], url[80];

static void remove_file(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char name[96];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        remove(name);
    }
}

/* life is what happened to the two messages that are published. */
typedef struct life {
    mull_policy *policy;
    mull_engine *engine;
    int published, refused, sent;
    int failed; /* the first call of the second one */
} life;

static void on_published(int status, void *data)
{
    life *l = data;
    if (status == 0)
        l->published++;
    else
        l->refused++;
}

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    life *l = data;
    mull_error error = MULL_INIT(mull_error);
    error.type = "Passing";
    mull_message out = MULL_INIT(mull_message);
    out.queue = "next";
    int fails = message->id[0] == 'b' && message->redeliveries == 0;
    l->failed += fails;
    int status;
    do
        status = mull_send(engine, call, &out, 0);
    while (status == MULL_ENOMEM);
    do
        status = mull_done(engine, call, fails ? &error : NULL);
    while (status == MULL_ENOMEM);
}

static void take(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message;
    ((life *)data)->sent++;
    while (mull_done(engine, call, NULL) == MULL_ENOMEM)
        continue;
}

static int set_up(life *l, purse *p)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->policy;
    options.allocator = purse_allocator(p);
    mull_consumer_options consumer = rig_consumer(handle, l);
    mull_consumer_options next = consumer;
    next.name = "D";
    next.queue = "next";
    next.handler = take;
    return mull_engine_new(&l->engine, &options) == 0 &&
           mull_engine_transport(l->engine, "t", url) == 0 &&
           mull_engine_consumer(l->engine, &consumer) == 0 &&
           mull_engine_consumer(l->engine, &next) == 0;
}

static int publish(life *l, const char *id)
{
    mull_header header = {"name", "value"};
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = id;
    message.headers = &header;
    message.header_count = 1;
    return mull_publish(l->engine, "t", &message, 0, on_published, l) == 0;
}

/* live_through runs an engine's whole life. 0: it could not be set up. */
static int live_through(purse *p, mull_policy *policy)
{
    life l = {.policy = policy};
    int made = set_up(&l, p);
    if (made) {
        int taken = publish(&l, "a") + publish(&l, "b");
        assert_int_equal(mull_stop_when_empty(l.engine), 0);
        made = mull_engine_run(l.engine) == 0;
        mull_counts counts = MULL_INIT(mull_counts);
        mull_engine_counts(l.engine, &counts);
        if (made) {
            assert_int_equal(l.published + l.refused, taken);
            assert_int_equal(l.sent, l.published);
            assert_int_equal(counts.done, 2 * l.published);
            assert_int_equal(counts.redelivered, l.failed);
        }
    }
    if (l.engine)
        mull_engine_close(l.engine, NULL, NULL);
    assert_int_equal(atomic_load(&p->out), 0);
    return made;
}

static void the_nth_allocation_fails(void **state)
{
    (void)state;
    mull_policy *policy =
        rig_policy("require('mulligan.policy').bus():on('Passing'):redeliver(1, '1ms')");
    int made = 0;
    for (long at = 1;; at++) {
        purse p = {.fail_at = at};
        remove_file();
        made += live_through(&p, policy);
        if (atomic_load(&p.asked) < at)
            break;
    }
    assert_true(made > 20);
    remove_file();
    mull_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails),
    };
    snprintf(path, sizeof path, "/tmp/mulligan-memory-%ld.db", (long)getpid());
    snprintf(url, sizeof url, "sqlite:%s", path);
    alarm(240); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
