/* sqlite_full.c: sqlite:FILE on a disk that is small or full, by a VFS that has only so much room.
 * What its own log takes it gives back; what is in the file is handled, however full the disk is;
 * and where an operator has to act, the log says what would be right. */
#include "sqlite_loop.h"

#include "fault_vfs.h"

enum { KB = 1024, MB = 1024 * KB, MANY = 800, SOME = 200, SMALL = 110, UNKNOWN = 0, NO_BLOCKS = 1 };

static int set_up_small(void **state)
{
    vfs_install(0);
    return set_up_loop(state);
}

static int tear_down_small(void **state)
{
    int failed = tear_down_loop(state);
    vfs_remove();
    return failed;
}

#define SMALL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_small, tear_down_small)

/* ---- An engine on it ------------------------------------------------------------------------- */

static char body[8 * MB];

static void on_answer(int status, void *data)
{
    live *l = data;
    l->published += status == 0;
    l->refused += status == MULL_EIO;
}

static void put(live *l, size_t size)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.body = body;
    message.body_size = size;
    assert_int_equal(mull_publish(l->engine, "t", &message, 0, on_answer, l), 0);
}

/* put_and_wait: each in a transaction of its own. */
static void put_and_wait(live *l, size_t size)
{
    int before = l->published + l->refused;
    put(l, size);
    await(l->published + l->refused > before);
}

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message;
    ((live *)data)->seen++;
    mull_done(engine, call, NULL);
}

static void start_sending(live *l)
{
    *l = (live){0};
    make_on_loop(l, 1);
    assert_int_equal(mull_engine_start(l->engine), 0);
}

static void assert_stayed_up(const live *l)
{
    assert_int_equal(l->down, 0);
    assert_int_equal(l->broken, 0);
}

/* empty_by runs an engine until the file has no message any more. */
static void empty_by(uint32_t concurrency, int messages)
{
    live l = {0};
    start_on_loop(&l, handle, concurrency);
    await(l.seen == messages);
    assert_stayed_up(&l);
    close_on_loop(&l);
    sqlite3 *db = look_in();
    assert_int_equal(count(db, "1"), 0);
    sqlite3_close(db);
}

/* ---- Its own log ----------------------------------------------------------------------------- */

static void put_many(void)
{
    live l;
    start_sending(&l);
    for (int i = 0; i < MANY; i++)
        put(&l, SMALL);
    await(l.published == MANY);
    close_on_loop(&l);
}

/* Nobody says how large the volume is, so the log grows until there is no more room. */
static void a_log_that_fills_the_disk_is_emptied(void **state)
{
    (void)state;
    put_many();
    vfs_shrink(MB, UNKNOWN);
    empty_by(1, MANY);
}

static void on_a_small_volume_the_log_stays_small(void **state)
{
    (void)state;
    live l;
    vfs_shrink(3 * MB, 3 * MB);
    start_sending(&l);
    for (int i = 0; i < SOME; i++)
        put_and_wait(&l, SMALL);
    assert_int_equal(l.published, SOME);
    close_on_loop(&l);
    empty_by(4, SOME);
    assert_in_range(vfs_look(&faults.longest), 1, MB);
}

/* A ramfs says that it has no blocks, and so does a tmpfs without a limit. */
static void a_volume_without_an_end_refuses_nothing(void **state)
{
    (void)state;
    live l;
    vfs_shrink(64 * MB, NO_BLOCKS);
    start_sending(&l);
    for (int i = 0; i < SOME; i++)
        put_and_wait(&l, KB);
    assert_int_equal(l.published, SOME);
    close_on_loop(&l);
}

/* A log that one large message has made long doesn't stay so. */
static void a_log_that_was_long_is_shortened(void **state)
{
    (void)state;
    live l;
    vfs_shrink(64 * MB, 64 * MB);
    start_sending(&l);
    put_and_wait(&l, 8 * MB);
    assert_true(vfs_look(&faults.longest) > 8 * MB);
    put_and_wait(&l, SMALL);
    put_and_wait(&l, SMALL);
    assert_in_range(vfs_look(&faults.room), 64 * MB - 8 * MB - 4 * MB - 200 * KB, 64 * MB);
    close_on_loop(&l);
}

/* What a transaction has written before it failed is of no use to anybody, and may be just what the
 * file needs to grow. */
static void what_a_failed_transaction_left_in_the_log_is_given_back(void **state)
{
    (void)state;
    live l;
    start_sending(&l);
    vfs_shrink(MB, UNKNOWN);
    put_and_wait(&l, 100 * KB);
    put_and_wait(&l, 2 * MB);
    assert_int_equal(l.published, 1);
    assert_int_equal(l.refused, 1);
    assert_true(vfs_look(&faults.room) > 400 * KB);
    put_and_wait(&l, 100 * KB);
    assert_int_equal(l.published, 2);
    close_on_loop(&l);
}

/* ---- Up to the brim -------------------------------------------------------------------------- */

/* fill publishes, ten at a time, until there is no room for more, and gives how many are safe. */
static int fill(size_t size)
{
    live l;
    start_sending(&l);
    for (int asked = 0; l.refused == 0;) {
        for (int i = 0; i < 10; i++, asked++)
            put(&l, size);
        await(l.published + l.refused == asked);
    }
    assert_logged(&l, "has no room for what is sent to it; make some elsewhere on its disk");
    size_t told = strlen(l.log);
    int published = l.published;
    put_and_wait(&l, size);
    assert_int_equal(l.published, published);
    assert_int_equal(strlen(l.log), told); /* once is enough */
    assert_stayed_up(&l);
    close_on_loop(&l);
    assert_true(published > 5);
    return published;
}

static void what_fills_the_disk_is_handled(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        uint32_t concurrency;
    } cases[] = {{KB, 1}, {KB, 600}, {20 * KB, 1}, {50 * KB, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        vfs_shrink(MB, MB);
        empty_by(cases[i].concurrency, fill(cases[i].size));
        tear_down(NULL);
        set_up(NULL);
    }
}

/* A message that fits into the log and not into the file as well would keep the log for ever. */
static void what_would_fit_into_the_log_only_is_refused(void **state)
{
    (void)state;
    live l;
    vfs_shrink(3 * MB, 3 * MB);
    start_sending(&l);
    put_and_wait(&l, SMALL);
    put_and_wait(&l, 2 * MB);
    assert_int_equal(l.published, 1);
    assert_int_equal(l.refused, 1);
    put_and_wait(&l, 100 * KB);
    assert_int_equal(l.published, 2);
    assert_stayed_up(&l);
    close_on_loop(&l);
}

enum { EAGER = 64 };

/* put_eagerly publishes again at once, whatever comes of it. */
static void put_eagerly(int status, void *data)
{
    live *l = data;
    l->refused += status != 0;
    assert_true(l->refused < 5000);
    if (l->seen >= l->wanted)
        return;
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.body = body;
    message.body_size = 20 * KB;
    assert_int_equal(mull_publish(l->engine, "t", &message, 0, put_eagerly, l), 0);
}

static void what_is_there_is_handled_beside_those_who_send_again_at_once(void **state)
{
    (void)state;
    live l = {0};
    vfs_shrink(MB, MB);
    int safe = fill(20 * KB);
    make_on_loop(&l, 1);
    mull_consumer_options consumer = test_engine_consumer(handle, &l);
    assert_int_equal(mull_consumer_add(l.engine, &consumer), 0);
    l.wanted = safe;
    for (int i = 0; i < EAGER; i++)
        put_eagerly(0, &l);
    await(l.refused > EAGER);
    assert_int_equal(mull_engine_start(l.engine), 0);
    await(l.seen >= safe);
    close_on_loop(&l);
}

/* Many that don't fit together are tried one by one. */
static void as_many_as_fit_are_published(void **state)
{
    (void)state;
    live l;
    vfs_shrink(2 * MB, 2 * MB);
    start_sending(&l);
    for (int i = 0; i < 100; i++)
        put(&l, 50 * KB);
    await(l.published + l.refused == 100);
    assert_in_range(l.published, 15, 40);
    assert_stayed_up(&l);
    close_on_loop(&l);
}

/* ---- What helps ------------------------------------------------------------------------------ */

/* Somebody who reads needs the file as it is, so that nothing of the log can be brought into it. */
static void a_reader_who_holds_the_log_is_named(void **state)
{
    (void)state;
    live l = {0};
    put_many();
    sqlite3 *reader = look_in();
    sql(reader, "BEGIN");
    assert_int_equal(count(reader, "1"), MANY);
    vfs_shrink(MB, UNKNOWN);
    start_on_loop(&l, handle, 4);
    await(l.down == 1);
    assert_logged(&l, "has no room for more (database or disk is full); another process keeps its "
                      "log from being emptied: end that, or make some elsewhere on its disk");
    assert_int_equal(count(reader, "1"), MANY);
    sql(reader, "COMMIT");
    await(l.seen == MANY && l.up == 1);
    assert_int_equal(l.down, 1);
    sqlite3_close(reader);
    close_on_loop(&l);
}

/* Others have filled the disk: nothing of ours would make room. */
static void where_others_fill_the_disk_room_is_to_be_made_elsewhere(void **state)
{
    (void)state;
    live l;
    vfs_shrink(3 * MB, 3 * MB);
    start_sending(&l);
    put_and_wait(&l, SMALL);
    vfs_shrink(0, 3 * MB);
    live taker = {0};
    start_on_loop(&taker, handle, 1);
    await(taker.down == 1);
    assert_logged(&taker, "has no room for more (database or disk is full); make some elsewhere on "
                          "its disk, and it goes on");
    vfs_shrink(MB, 3 * MB);
    await(taker.seen == 1 && taker.up == 1);
    close_on_loop(&taker);
    close_on_loop(&l);
}

static void a_full_disk_is_told_when_it_is_opened(void **state)
{
    (void)state;
    static const char full[] = "a.db: its disk is full, and there is no room for it; make some "
                               "elsewhere on that, and try again";
    for (int there = 0; there < 2; there++) {
        live l = {0};
        if (there)
            sqlite3_close(make_file());
        vfs_shrink(0, UNKNOWN);
        new_engine(&l);
        assert_int_equal(mull_engine_transport(l.engine, "t", url), MULL_EIO);
        assert_logged(&l, full);
        vfs_shrink(MB, UNKNOWN);
        assert_int_equal(mull_engine_transport(l.engine, "t", url), 0);
        mull_engine_close(l.engine, NULL, NULL);
        mull_policy_free(l.policy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SMALL_TEST(a_log_that_fills_the_disk_is_emptied),
        SMALL_TEST(on_a_small_volume_the_log_stays_small),
        SMALL_TEST(a_volume_without_an_end_refuses_nothing),
        SMALL_TEST(a_log_that_was_long_is_shortened),
        SMALL_TEST(what_a_failed_transaction_left_in_the_log_is_given_back),
        SMALL_TEST(what_fills_the_disk_is_handled),
        SMALL_TEST(what_would_fit_into_the_log_only_is_refused),
        SMALL_TEST(what_is_there_is_handled_beside_those_who_send_again_at_once),
        SMALL_TEST(as_many_as_fit_are_published),
        SMALL_TEST(a_reader_who_holds_the_log_is_named),
        SMALL_TEST(where_others_fill_the_disk_room_is_to_be_made_elsewhere),
        SMALL_TEST(a_full_disk_is_told_when_it_is_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
