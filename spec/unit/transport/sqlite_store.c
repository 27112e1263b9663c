/* sqlite_store.c: what a store does step by step, without a thread: what becomes of what
 * it knows when a transaction is undone, and by a clock that moves between two looks at it. */
#include "sqlite_engine.h"

#include "runtime/engine_state.h"
#include "transport/sqlite/store.h"

static int64_t no_time(void *data)
{
    (void)data;
    return 1;
}

/* wall moves on with each look. */
static int64_t wall(void *data)
{
    static int64_t now = 1;
    (void)data;
    return now++;
}

static mull_engine engine; /* as much of one as a port needs */
static mull_port port;
static mull__store store;
static sqlite3 *other;

static int set_up_store(void **state)
{
    char why[256];
    if (set_up(state) != 0)
        return -1;
    engine = (mull_engine){.clock = {no_time, wall, NULL}};
    engine.allocator = mull__allocator_or_default(engine.allocator);
    port = (mull_port){.engine = &engine};
    if (mull__store_open(&store, &port, path, why, sizeof why) != 0)
        return -1;
    other = look_in();
    return mull__store_register_owner(&store) != SQLITE_OK;
}

static int tear_down_store(void **state)
{
    sqlite3_close(other);
    mull__store_close(&store);
    return tear_down(state);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_store, tear_down_store)

static void put_rows(int count, const char *due_ms)
{
    char text[512];
    snprintf(text, sizeof text,
             "INSERT INTO queues (name) VALUES ('q');"
             "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n"
             " WHERE value < %d) INSERT INTO waiting (number, queue, due_ms, published_ms, body)"
             " SELECT next + value, queue, %s, 1, x'' FROM n, queues, counter;"
             "UPDATE counter SET next = next + %d + 1",
             count, due_ms, count);
    sql(other, text);
}

static mull_depth depth_of(void)
{
    mull__list jobs;
    mull__depth_job counting = {.queue = (char[]){"q"}};
    mull__list_init(&jobs);
    mull__list_push(&jobs, &counting.job.link);
    assert_int_equal(mull__store_depths(&store, &jobs), SQLITE_OK);
    return counting.depth;
}

static void the_last_moment_there_is_stays_one_to_come(void **state)
{
    (void)state;
    put_rows(1, "9223372036854775807");
    mull_depth depth = depth_of();
    assert_int_equal(depth.delayed, 1);
    assert_true(depth.next_due_ms > INT64_MAX / 2);
}

/* One that takes the place of another is told of like the first. */
static void each_that_is_too_far_is_told_of(void **state)
{
    (void)state;
    uint64_t told = 0;
    int64_t due_ms;
    put_rows(2, "9223372036854775806");
    sql(other, "UPDATE messages SET queue = 'x' WHERE number = (SELECT max(number) FROM waiting)");
    assert_int_equal(mull__store_next_due(&store, "q", 1, &due_ms, &told), SQLITE_OK);
    uint64_t first = told;
    assert_int_not_equal(first, 0);
    assert_int_equal(mull__store_next_due(&store, "q", 1, &due_ms, &told), SQLITE_OK);
    assert_int_equal(told, first);
    sql(other, "UPDATE messages SET queue = iif(queue = 'q', 'x', 'q')");
    assert_int_equal(mull__store_next_due(&store, "q", 1, &due_ms, &told), SQLITE_OK);
    assert_int_not_equal(told, first);
}

/* ---- A mark that is far ahead ---------------------------------------------------------------- */

static int on_step(void *data)
{
    ++*(int *)data;
    return 0;
}

/* What another process counted by a clock that has been set back since. */
static void a_mark_that_is_ahead_is_counted_through_once(void **state)
{
    (void)state;
    enum { DELAYED = 5000 };
    int steps = 0;
    mull__store_unregister_owner(&store);
    put_rows(DELAYED, "1000000");
    sql(other, "UPDATE queues SET mark_ms = 2000000, due = delayed, delayed = 0");
    assert_int_equal(mull__store_register_owner(&store), SQLITE_OK);
    sqlite3_progress_handler(store.db, 1, on_step, &steps);
    mull_depth depth = depth_of();
    assert_int_equal(depth.delayed, DELAYED);
    assert_int_equal(depth.ready, 0);
    if (steps > DELAYED)
        fail_msg("%d steps", steps);
    check_shape(other);
}

static void a_mark_of_one_who_leaves_is_set_back(void **state)
{
    (void)state;
    put_rows(5, "1000000");
    sql(other, "UPDATE queues SET mark_ms = 2000000, due = delayed, delayed = 0");
    mull__store_unregister_owner(&store);
    assert_int_equal(atoi(ask(other, "SELECT mark_ms < 1000000 FROM queues")), 1);
    check_shape(other);
}

/* ---- Very many queues ------------------------------------------------------------------------ */

static size_t compared;

int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);

int __wrap_strcmp(const char *a, const char *b)
{
    compared++;
    return __real_strcmp(a, b);
}

enum { MANY = 2000 };

/* publish_to_all: to each of many queues. */
static void publish_to_all(void)
{
    static char names[MANY][16];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "q%d", i);
        mull_message message = MULL_INIT(mull_message);
        message.queue = names[i];
        const mull_outgoing outgoing = {.size = sizeof outgoing, .message = &message};
        assert_int_equal(mull__store_publish(&store, &outgoing), SQLITE_OK);
    }
}

static void a_queue_is_found_among_many(void **state)
{
    (void)state;
    assert_int_equal(mull__store_begin(&store), SQLITE_OK);
    publish_to_all();
    mull__store_rollback(&store);
    compared = 0;
    assert_int_equal(mull__store_begin(&store), SQLITE_OK);
    publish_to_all();
    if (compared > 10 * MANY)
        fail_msg("%zu names were compared", compared);
    assert_int_equal(mull__store_commit(&store), SQLITE_OK);
    assert_int_equal(mull__store_begin(&store), SQLITE_OK);
    publish_to_all();
    publish_to_all();
    assert_int_equal(mull__store_commit(&store), SQLITE_OK);
    assert_string_equal(ask(other, "SELECT count(*) || ' ' || min(ready) || ' ' || max(ready)"
                                   " FROM queues"),
                        "2000 3 3");
    check_shape(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_queue_is_found_among_many),
        STORE_TEST(a_mark_that_is_ahead_is_counted_through_once),
        STORE_TEST(a_mark_of_one_who_leaves_is_set_back),
        STORE_TEST(each_that_is_too_far_is_told_of),
        STORE_TEST(the_last_moment_there_is_stays_one_to_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
