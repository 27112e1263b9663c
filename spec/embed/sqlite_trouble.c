/* sqlite_trouble.c: a database that is full, that can only be read, or that another program keeps
 * locked, while an engine publishes, claims and settles. One line says so; nothing new is taken;
 * what can't be done is answered with an error or tried again; and once an operator has made room,
 * all of it goes on by itself and nothing is lost.
 *
 * MULL_LOCKED_S: for how many seconds the file is locked (as long as it takes to say so: 5 s). */
#include "sqlite_loop.h"

#include <time.h>

/* worker is an engine whose handlers may send something large, and do something once. */
typedef struct worker {
    live l;       /* first */
    size_t sends; /* bytes */
    int holds;    /* a call isn't ended by its handler */
    mull_call held;
    void (*act)(struct worker *worker);
    sqlite3 *db; /* the operator's */
} worker;

enum { LARGE = 20000 };

static const char large[LARGE];

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    worker *w = data;
    (void)message;
    w->l.seen++;
    if (w->sends) {
        mull_message out = MULL_INIT(mull_message);
        out.queue = "next";
        out.body = large;
        out.body_size = w->sends;
        assert_int_equal(mull_send(engine, call, &out, 0), 0);
    }
    if (w->act)
        w->act(w);
    w->act = NULL;
    if (w->holds)
        w->held = call;
    else
        mull_done(engine, call, NULL);
}

static void on_answer(int status, void *data)
{
    worker *w = data;
    w->l.published += status == 0;
    w->l.refused += status == MULL_EIO;
}

/* put publishes something large to a queue that nobody reads, and waits for the answer. */
static void put(worker *w, const char *queue)
{
    int before = w->l.published + w->l.refused;
    mull_message message = MULL_INIT(mull_message);
    message.queue = queue;
    message.body = large;
    message.body_size = LARGE;
    assert_int_equal(mull_publish(w->l.engine, "t", &message, 0, on_answer, w), 0);
    await(w->l.published + w->l.refused > before);
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    (void)depth;
    assert_int_equal(status, 0);
    *(int *)data = 1;
}

/* read_from has the engine go through with a transaction that changes nothing. */
static void read_from(worker *w)
{
    int answered = 0;
    assert_int_equal(mull_queue_depth(w->l.engine, "t", "next", on_depth, &answered), 0);
    await(answered);
}

static void assert_went_on(const worker *w)
{
    assert_int_equal(w->l.down, 1);
    assert_int_equal(w->l.up, 1);
    assert_int_equal(w->l.broken, 0);
}

/* ---- It is full ------------------------------------------------------------------------------ */

/* no_growth holds each connection that is opened to the pages that are there: SQLITE_FULL is real.
 */
static int no_growth(sqlite3 *db, const char **why, const struct sqlite3_api_routines *api)
{
    (void)why, (void)api;
    return sqlite3_exec(db, "PRAGMA max_page_count = 1", NULL, NULL, NULL);
}

/* begin_full makes a file with 20 dead letters, of which an operator may want to be rid. */
static void begin_full(worker *w)
{
    *w = (worker){.db = make_file()};
    sql(w->db,
        "INSERT INTO queues (name) VALUES ('error');"
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
        " INSERT INTO waiting (number, queue, due_ms, published_ms, large, dead_ms, dead_from)"
        " SELECT 1000 + i, queue, 0, 1, 1000 + i, 1, 'q' FROM n, queues;"
        "INSERT INTO bodies SELECT number, zeroblob(20000) FROM waiting;"
        "UPDATE counter SET next = 2000");
}

static void start_full(worker *w, uint32_t concurrency)
{
    sqlite3_auto_extension((void (*)(void))no_growth);
    start_on_loop(&w->l, handle, concurrency);
    sqlite3_cancel_auto_extension((void (*)(void))no_growth);
}

static void make_room(worker *w)
{
    sql(w->db, "DELETE FROM messages WHERE queue = 'error'");
}

static void end(worker *w)
{
    close_on_loop(&w->l);
    sqlite3_close(w->db);
}

static void a_publish_finds_it_full(void **state)
{
    (void)state;
    worker w;
    begin_full(&w);
    start_full(&w, 1);
    put(&w, "next");
    put(&w, "next");
    assert_int_equal(w.l.refused, 2);
    assert_int_equal(w.l.down, 1);
    assert_logged(&w.l,
                  "has no room for more (database or disk is full); make some, and it goes on");
    make_room(&w);
    put(&w, "next");
    assert_int_equal(w.l.published, 1);
    await(w.l.up == 1);
    assert_went_on(&w);
    assert_int_equal(count(w.db, "1"), 1);
    end(&w);
}

static void a_settle_finds_it_full(void **state)
{
    (void)state;
    worker w;
    begin_full(&w);
    insert(w.db, 0, 10);
    w.sends = LARGE;
    w.holds = 1;
    start_full(&w, 1);
    await(w.held && count(w.db, "owner IS NOT NULL") == 3);
    mull_done(w.l.engine, w.held, NULL); /* the second one begins before it is known that ... */
    await(w.l.down == 1 && w.l.seen == 2);
    mull_done(w.l.engine, w.held, NULL);
    assert_logged(&w.l, "trying again, taking nothing new");
    put(&w, "next");
    put(&w, "next");
    assert_int_equal(w.l.refused, 2);
    assert_int_equal(w.l.seen, 2); /* ... and no third, though that is claimed */
    assert_int_equal(count(w.db, "owner IS NOT NULL"), 3);
    assert_int_equal(count(w.db, "queue = 'q'"), 10);
    w.holds = 0;
    make_room(&w);
    await(count(w.db, "queue = 'q'") == 0);
    assert_int_equal(w.l.seen, 10);
    assert_int_equal(count(w.db, "queue = 'next'"), 10); /* as often as it was handled */
    assert_went_on(&w);
    end(&w);
}

/* A range takes no page, however many it claims. */
static void what_is_ready_is_claimed_without_room(void **state)
{
    (void)state;
    enum { MANY = 600 };
    worker w;
    begin_full(&w);
    insert(w.db, 0, MANY);
    start_full(&w, MANY);
    await(count(w.db, "queue = 'q'") == 0);
    assert_int_equal(w.l.seen, MANY);
    assert_int_equal(w.l.down, 0);
    end(&w);
}

/* There is no page for the index of so many claims of what waited, but for that of some, who make
 * room. */
static void what_can_not_be_claimed_at_once_is_claimed_little_by_little(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    worker w;
    begin_full(&w);
    insert(w.db, 0, MANY);
    sql(w.db, "UPDATE messages SET due_ms = 1 WHERE queue = 'q';"
              "DELETE FROM messages WHERE queue = 'q' AND number % 10 = 0");
    start_full(&w, MANY);
    await(count(w.db, "queue = 'q'") == 0);
    assert_int_equal(w.l.seen, MANY - MANY / 10);
    await(w.l.up == w.l.down);
    put(&w, "next");
    assert_int_equal(w.l.published, 1);
    end(&w);
}

/* ---- It can only be read --------------------------------------------------------------------- */

static int read_only_file, read_only_disk;
static sqlite3_vfs shim;
static sqlite3_io_methods log_methods;
static const sqlite3_io_methods *real_log_methods;

static int write_log(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
    return read_only_disk ? SQLITE_READONLY : real_log_methods->xWrite(file, bytes, size, at);
}

/* open_file opens by the real VFS: the database to be read only, or a log that refuses to be
 * written. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
    sqlite3_vfs *real = vfs->pAppData;
    if (read_only_file && (flags & SQLITE_OPEN_MAIN_DB))
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    int code = real->xOpen(real, name, file, flags, out);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL)) {
        real_log_methods = file->pMethods;
        log_methods = *real_log_methods;
        log_methods.xWrite = write_log;
        file->pMethods = &log_methods;
    }
    return code;
}

static int set_up_shim(void **state)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    shim = *real;
    shim.zName = "shim";
    shim.pAppData = real;
    shim.xOpen = open_file;
    read_only_file = read_only_disk = 0;
    return sqlite3_vfs_register(&shim, 1) != SQLITE_OK || set_up_loop(state) != 0;
}

static int tear_down_shim(void **state)
{
    sqlite3_vfs_unregister(&shim);
    return tear_down_loop(state);
}

static void end_writing(worker *w)
{
    (void)w;
    read_only_disk = 1;
}

static void it_becomes_read_only(void **state)
{
    (void)state;
    worker w = {.db = make_file(), .act = end_writing};
    insert(w.db, 0, 10);
    start_on_loop(&w.l, handle, 1);
    await(w.l.down == 1);
    assert_logged(&w.l, "can only be read (attempt to write a readonly database); make it and its");
    put(&w, "next");
    assert_int_equal(w.l.refused, 1);
    assert_true(w.l.seen <= 3); /* those that were claimed before */
    read_from(&w);
    assert_int_equal(w.l.up, 0); /* by reading it isn't known to work again */
    read_only_disk = 0;
    await(count(w.db, "queue = 'q'") == 0);
    put(&w, "next");
    assert_int_equal(w.l.published, 1);
    assert_int_equal(w.l.seen, 10);
    assert_went_on(&w);
    end(&w);
}

static void what_can_only_be_read_is_refused(void **state)
{
    (void)state;
    sqlite3_close(make_file());
    live l = {0};
    new_engine(&l);
    read_only_file = 1;
    assert_int_equal(mull_engine_transport(l.engine, "t", url), MULL_EIO);
    assert_logged(&l, "can only be read; the file and its folder must be writable");
    mull_engine_close(l.engine, NULL, NULL);
    mull_policy_free(l.policy);
}

/* ---- Another program keeps it locked --------------------------------------------------------- */

static time_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* lock_it: the settle of this message, and what is published, find the file locked. */
static void lock_it(worker *w)
{
    sql(w->db, "BEGIN IMMEDIATE");
    mull_message message = MULL_INIT(mull_message);
    message.queue = "next";
    assert_int_equal(mull_publish(w->l.engine, "t", &message, 0, on_answer, w), 0);
}

static void it_is_locked_for_long(void **state)
{
    (void)state;
    const char *asked = getenv("MULL_LOCKED_S");
    int for_s = asked ? atoi(asked) : 0;
    alarm(60 + (unsigned)for_s);
    worker w = {.db = make_file(), .act = lock_it};
    insert(w.db, 0, 10);
    time_t from = seconds();
    start_on_loop(&w.l, handle, 1);
    await(w.l.down == 1 && seconds() - from >= for_s);
    assert_logged(&w.l, "another process has had it locked for 5 s; once that ends, it goes on");
    assert_true(w.l.seen <= 3); /* those that were claimed before */
    assert_int_equal(w.l.published + w.l.refused, 0);
    sql(w.db, "COMMIT");
    await(count(w.db, "queue = 'q'") == 0 && w.l.published == 1);
    assert_int_equal(w.l.seen, 10);
    assert_int_equal(count(w.db, "queue = 'next'"), 1);
    assert_went_on(&w);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(a_publish_finds_it_full),
        LOOP_TEST(a_settle_finds_it_full),
        LOOP_TEST(what_is_ready_is_claimed_without_room),
        LOOP_TEST(what_can_not_be_claimed_at_once_is_claimed_little_by_little),
        cmocka_unit_test_setup_teardown(it_becomes_read_only, set_up_shim, tear_down_shim),
        cmocka_unit_test_setup_teardown(what_can_only_be_read_is_refused, set_up_shim,
                                        tear_down_shim),
        LOOP_TEST(it_is_locked_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
