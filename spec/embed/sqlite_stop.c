/* sqlite_stop.c: engines on sqlite:FILE that stop: nothing is claimed when `stopped` is told, and a
 * file that another process keeps locked holds nobody up for ever. */
#include "sqlite_engine.h"

static void stop_at_once(mull_engine *engine, mull_call call, const mull_message *message,
                         void *data)
{
    succeed(engine, call, message, data);
    mull_stop(engine);
}

static void note_claimed(void *data)
{
    live *l = data;
    l->most_suspects = count(l->db, "owner IS NOT NULL");
}

/* open_stopping opens an engine whose handler stops it, and which looks into the file then. */
static void open_stopping(live *l, const char *policy, mull_handler handler)
{
    *l = (live){.most_suspects = -1};
    l->policy = test_engine_policy(policy);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->policy;
    options.stopped = note_claimed;
    options.data = l;
    assert_int_equal(mull_engine_new(&l->engine, &options), 0);
    assert_int_equal(mull_engine_transport(l->engine, "t", url), 0);
    l->db = look_in();
    mull_consumer_options consumer = test_engine_consumer(handler, l);
    assert_int_equal(mull_consumer_add(l->engine, &consumer), 0);
}

static void nothing_is_claimed_when_it_has_stopped(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        live l;
        put_five();
        open_stopping(&l, "", stop_at_once);
        run_live(&l);
        assert_int_equal(l.most_suspects, 0);
        assert_int_equal(count(l.db, "deliveries > 0"), 0);
        close_live(&l);
    }
}

/* lock_and_stop: the settle of this call finds the file locked, by a connection that stays. */
static void lock_and_stop(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    live *l = data;
    sql(l->db, "BEGIN IMMEDIATE");
    stop_at_once(engine, call, message, data);
}

static void a_locked_file_holds_up_no_stop(void **state)
{
    (void)state;
    live l;
    open_live(&l, lock_and_stop, 1);
    publish(&l, "a", "body");
    run_live(&l); /* ends, or the watchdog ends the test */
    assert_int_equal(l.seen, 1);
    assert_logged(&l, "before the end");
    /* Five seconds of waiting for the file, five of the stop: where the stop's are over first, the
     * settle is still under way, and may come true. */
    int answered = l.down;
    sql(l.db, "ROLLBACK");
    assert_int_equal(count(l.db, "1"), 1);
    close_live(&l);
    sqlite3 *db = look_in(); /* it was handled and not settled: once more, uncounted */
    int left = count(db, "owner IS NULL AND deliveries = 0");
    assert_int_equal(left, answered ? 1 : count(db, "1"));
    sqlite3_close(db);
}

static void fail_and_stop(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = "Oops";
    note_message(data, message);
    mull_stop(engine);
    mull_done(engine, call, &error);
}

static void a_death_is_counted_once_however_often_it_goes_back(void **state)
{
    (void)state;
    live l;
    open_live(&l, NULL, 0);
    publish(&l, "a", "body");
    mull_stop(l.engine);
    run_live(&l);
    close_live(&l);
    for (int stops = 1; stops <= 3; stops++) {
        open_stopping(&l, "require('mulligan.policy').bus():default():retry(9, '1h')",
                      fail_and_stop);
        if (stops == 1)
            sql(l.db, "UPDATE messages SET deliveries = 1"); /* its first owner died */
        run_live(&l);
        assert_int_equal(l.deliveries[0], 2);
        char calls[12];
        snprintf(calls, sizeof calls, "%d", stops);
        assert_string_equal(ask(l.db, "SELECT headers ->> 'mulligan-calls' FROM messages"), calls);
        assert_int_equal(count(l.db, "deliveries = 1"), 1);
        close_live(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_claimed_when_it_has_stopped),
        TEST(a_locked_file_holds_up_no_stop),
        TEST(a_death_is_counted_once_however_often_it_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
