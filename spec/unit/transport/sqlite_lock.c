/* sqlite_lock.c: who is taken for dead while the lock file is moved about, step by step:
 * two stores on one file, each with its own lock, and no threads. */
#include "sqlite_engine.h"

#include "runtime/engine_state.h"
#include "transport/sqlite/store.h"

#include <sys/stat.h>

static int64_t no_time(void *data)
{
    (void)data;
    return 1;
}

static mull_engine engine; /* as much of one as a port needs */
static mull_port port;
static mull__store one, other;
static char lock[96], kept[96];

static void move(const char *from, const char *to)
{
    assert_int_equal(rename(from, to), 0);
}

static int set_up_stores(void **state)
{
    char why[256];
    if (set_up(state) != 0)
        return -1;
    snprintf(lock, sizeof lock, "%s-lock", path);
    snprintf(kept, sizeof kept, "%s-kept", path);
    engine = (mull_engine){.clock = {no_time, no_time, NULL}};
    engine.allocator = mull__allocator_or_default(engine.allocator);
    port = (mull_port){.engine = &engine};
    return mull__store_open(&one, &port, path, why, sizeof why) != 0 ||
           mull__store_open(&other, &port, path, why, sizeof why) != 0 ||
           mull__store_register_owner(&one) != SQLITE_OK ||
           mull__store_register_owner(&other) != SQLITE_OK;
}

static int tear_down_stores(void **state)
{
    mull__store_close(&one);
    mull__store_close(&other);
    return tear_down(state);
}

static void transact(mull__store *store)
{
    assert_int_equal(mull__store_begin(store), SQLITE_OK);
    mull__store_rollback(store);
}

static void who_moved_on_is_alive_in_the_file_before(void **state)
{
    (void)state;
    move(lock, kept);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    move(kept, lock); /* where the other one has been all the time */
    assert_int_equal(mull__lock_owner_state(&other, one.owner), MULL__OWNER_ALIVE);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    assert_int_equal(mull__lock_owner_state(&other, one.owner), MULL__OWNER_ALIVE);
}

static void nobody_is_dead_by_a_file_that_was_replaced(void **state)
{
    (void)state;
    for (int times = 0; times < 2; times++) { /* one has no byte in the other's file any more */
        assert_int_equal(unlink(lock), 0);
        assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    }
    assert_int_equal(mull__lock_owner_state(&other, one.owner), MULL__OWNER_UNKNOWN);
    assert_int_equal(mull__lock_refresh(&other), SQLITE_OK);
    assert_int_equal(mull__lock_owner_state(&other, one.owner), MULL__OWNER_ALIVE);
}

/* come makes one more owner. */
static void come(mull__store *store)
{
    char why[256];
    assert_int_equal(mull__store_open(store, &port, path, why, sizeof why), 0);
    assert_int_equal(mull__store_register_owner(store), SQLITE_OK);
}

/* Who came when the file was away has no byte in it, and lives all the same: for who stayed with
 * the file, who went over to another one and is back, and who comes after that. */
static void nobody_is_dead_by_a_file_that_was_put_back(void **state)
{
    mull__store third, late;
    (void)state;
    move(lock, kept);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    come(&third);
    move(kept, lock);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    come(&late);
    mull__life by_other = mull__lock_owner_state(&other, third.owner);
    mull__life by_one = mull__lock_owner_state(&one, third.owner);
    mull__life by_late = mull__lock_owner_state(&late, third.owner);
    mull__store_close(&third);
    mull__store_close(&late);
    assert_true(by_other != MULL__OWNER_DEAD && by_one != MULL__OWNER_DEAD &&
                by_late != MULL__OWNER_DEAD);
}

static void who_comes_is_known_to_be_dead_at_once(void **state)
{
    mull__store third;
    (void)state;
    come(&third);
    int64_t owner = third.owner;
    assert_int_equal(mull__lock_owner_state(&one, owner), MULL__OWNER_ALIVE);
    mull__store_close(&third); /* as by a kill: its row stays */
    assert_int_equal(mull__lock_owner_state(&one, owner), MULL__OWNER_DEAD);
}

static void who_comes_to_a_new_file_declares_nobody_dead(void **state)
{
    mull__store third;
    (void)state;
    assert_int_equal(unlink(lock), 0);
    come(&third);
    mull__life life = mull__lock_owner_state(&third, one.owner);
    mull__store_close(&third);
    assert_int_equal(life, MULL__OWNER_UNCHECKED);
}

/* However many come and die meanwhile, who was waited for first isn't waited for longer. */
static void a_wait_goes_on_whoever_else_is_asked_for(void **state)
{
    (void)state;
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    transact(&one);
    assert_int_equal(mull__lock_owner_state(&one, one.owner + 100), MULL__OWNER_UNKNOWN);
    assert_true(one.lock.since_ms != 0);
}

/* ... and so does who was in two others meanwhile. */
static void nobody_is_dead_by_a_file_that_comes_back_late(void **state)
{
    char second[96];
    (void)state;
    snprintf(second, sizeof second, "%s-kept-wal", path);
    move(lock, kept);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    move(lock, second);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    move(kept, lock);
    assert_int_equal(mull__lock_owner_state(&other, one.owner), MULL__OWNER_ALIVE);
}

static void the_time_to_wait_begins_with_a_transaction(void **state)
{
    (void)state;
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(mull__lock_refresh(&other), SQLITE_OK);
    assert_int_equal(mull__lock_owner_state(&other, one.owner), MULL__OWNER_UNCHECKED);
    transact(&other);
    assert_int_equal(mull__lock_owner_state(&other, one.owner), MULL__OWNER_UNKNOWN);
}

static void who_comes_at_the_last_moment_isnt_buried(void **state)
{
    int news;
    (void)state;
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(mull__lock_refresh(&other), SQLITE_OK);
    transact(&other);
    for (news = 0; other.lock.marked_to < one.owner || !news; sqlite3_sleep(1))
        assert_int_equal(mull__store_poll(&other, &news), SQLITE_OK);
    assert_int_equal(other.other_count, 1);
    assert_int_equal(other.others[0].life, MULL__OWNER_DEAD);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    assert_int_equal(mull__store_begin(&other), SQLITE_OK);
    assert_int_equal(mull__store_reap_dead_owners(&other), SQLITE_OK);
    assert_int_equal(mull__store_commit(&other), SQLITE_OK);
    sqlite3 *db = look_in();
    assert_string_equal(ask(db, "SELECT count(*) FROM owners"), "2");
    sqlite3_close(db);
}

/* It is made by whoever comes first, root too, and used by all who may use the database. */
static void it_is_as_open_as_the_database(void **state)
{
    struct stat there;
    (void)state;
    assert_int_equal(chmod(path, 0664), 0);
    int may_give = geteuid() == 0 && chown(path, 12345, 54321) == 0;
    mull__store_close(&other);
    assert_int_equal(unlink(lock), 0);
    char why[256];
    mode_t before = umask(077);
    int opened = mull__store_open(&other, &port, path, why, sizeof why);
    assert_int_equal(mull__lock_refresh(&one), SQLITE_OK);
    umask(before);
    assert_int_equal(opened, 0);
    assert_int_equal(stat(lock, &there), 0);
    assert_int_equal(there.st_mode & 0777, 0664);
    if (may_give)
        assert_true(there.st_uid == 12345 && there.st_gid == 54321);
    assert_int_equal(mull__store_register_owner(&other), SQLITE_OK);
}

#define STORES_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_stores, tear_down_stores)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORES_TEST(who_moved_on_is_alive_in_the_file_before),
        STORES_TEST(nobody_is_dead_by_a_file_that_was_replaced),
        STORES_TEST(nobody_is_dead_by_a_file_that_was_put_back),
        STORES_TEST(nobody_is_dead_by_a_file_that_comes_back_late),
        STORES_TEST(who_comes_is_known_to_be_dead_at_once),
        STORES_TEST(who_comes_to_a_new_file_declares_nobody_dead),
        STORES_TEST(a_wait_goes_on_whoever_else_is_asked_for),
        STORES_TEST(the_time_to_wait_begins_with_a_transaction),
        STORES_TEST(who_comes_at_the_last_moment_isnt_buried),
        STORES_TEST(it_is_as_open_as_the_database),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
