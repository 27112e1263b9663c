/* sqlite_io_errors.c: the n-th call that SQLite makes of the disk fails, once or from there on for
 * good, during an engine's whole life on sqlite:FILE. After one error it gets on by itself, and
 * nobody but the log can tell. Of a disk that stays broken it says one line, takes nothing new, and
 * can be stopped; and once the disk is healed, a new engine brings all of it to its end.
 *
 * By default some n are tried; MULL_EVERY=1 tries all. */
#include "ledger.h"

#include "fault_vfs.h"

enum { MESSAGES = 13, HELD = MESSAGES - 1, WATCHDOG = 60, TRIES = 3, STEP = 31 };

static mull_policy *policy;

static long step(void)
{
    const char *text = getenv("MULL_EVERY");
    long every = text ? strtol(text, NULL, 10) : STEP;
    return every > 0 ? every : STEP;
}

/* ---- The file that it begins with ------------------------------------------------------------ */

/* used is a file whose log is so long that one of the next commits brings it into the database. In
 * it is a message whose owner died. */
static struct {
    disk_content db, wal;
    ledger told;
} used;

enum { LOG_FRAMES = 990, CANDIDATE = MESSAGES };

static int at_once(const life *l)
{
    return l->next == l->count;
}

static void publish_suspect(void)
{
    life l;
    life_open(&l, policy, &used.told);
    assert_int_equal(mull_engine_transport(l.engine, "t", url), 0);
    l.next = CANDIDATE;
    l.count = CANDIDATE + 1;
    life_run(&l, at_once);
    life_close(&l);
    assert_int_equal(l.safe, 1);
}

static void load(disk_content *content, const char *end)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s", path, end);
    assert_true(disk_load(content, name));
}

static void make_used(void)
{
    publish_suspect();
    sqlite3 *db = look_in();
    sql(db, "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF;"
            "UPDATE messages SET deliveries = 1");
    for (int i = 0; i < LOG_FRAMES; i++)
        sql(db, "UPDATE counter SET next = next + 1");
    load(&used.db, "");
    load(&used.wal, "-wal");
    assert_true(used.wal.size > LOG_FRAMES * 4096);
    sqlite3_close(db);
}

static int set_up_all(void **state)
{
    if (set_up(state) != 0)
        return -1;
    policy = ledger_policy();
    make_used();
    return tear_down(state);
}

static int tear_down_all(void **state)
{
    (void)state;
    free(used.db.bytes);
    free(used.wal.bytes);
    mull_policy_free(policy);
    return 0;
}

static void put_file(const disk_content *content, const char *end)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s", path, end);
    disk_store(content, name);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static const char FULL[] = "its disk is full, and there is no room for it; make some elsewhere on "
                           "that, and try again";

/* open_with_fault opens a new file, if need be twice. 0: the fault didn't come. */
static int open_with_fault(long nth)
{
    ledger told = {0};
    life l;
    char line[256];
    vfs_install(0);
    vfs_break(nth, 0);
    life_open(&l, policy, &told);
    if (mull_engine_transport(l.engine, "t", url) != 0) {
        int code = vfs_code(faults.first_failed) & 0xff;
        const char *why = code == SQLITE_FULL ? FULL : sqlite3_errstr(code);
        snprintf(line, sizeof line, "transport 't': %s: %s\n", path, why);
        assert_string_equal(l.log, line);
        assert_int_equal(mull_engine_transport(l.engine, "t", url), 0);
    }
    life_close(&l);
    int hit = vfs_failed() > 0;
    vfs_remove();
    tear_down(NULL);
    set_up(NULL);
    return hit;
}

static void an_error_while_opening_is_told_for_what_it_is(void **state)
{
    (void)state;
    long nth = 1;
    while (open_with_fault(nth))
        nth++;
    assert_true(nth > 40);
}

/* ---- A life ---------------------------------------------------------------------------------- */

static int is_broken_for_good(const life *l)
{
    return faults.for_good && l->down && vfs_failed() >= TRIES;
}

/* open_file opens the transport; one error fails it, in one line that names the file. */
static int open_file(life *l)
{
    if (mull_engine_transport(l->engine, "t", url) == 0)
        return 1;
    assert_true(vfs_failed() > 0);
    if (!strstr(l->log, path) || strchr(l->log, '\n') != strrchr(l->log, '\n'))
        fail_msg("'%s' is no line that says what is wrong with %s", l->log, path);
    if (mull_engine_transport(l->engine, "t", url) == 0)
        return 1;
    assert_true(faults.for_good);
    return 0;
}

static int safe_of(ledger *told, int (*which)(int i))
{
    int safe = 0;
    for (int i = 0; i <= CANDIDATE; i++)
        safe += i != HELD && (told->told[i] & TOLD_SAFE) && which(i);
    return safe;
}

static int dies(int i)
{
    return fate_of(i) == DIES;
}

static int is_stale(int i)
{
    return fate_of(i) == STALE;
}

static int is_redelivered(int i)
{
    return fate_of(i) == REDELIVERED;
}

/* check_counts: each end came once, and nothing came of what was refused. */
static void check_counts(const life *l)
{
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(l->engine, &counts);
    assert_int_equal(counts.done, 2 * safe_of(l->ledger, sends));
    assert_int_equal(counts.dead_lettered, safe_of(l->ledger, dies));
    assert_int_equal(counts.discarded, safe_of(l->ledger, is_stale));
    assert_int_equal(counts.redelivered, safe_of(l->ledger, is_redelivered));
    for (int i = 0; i <= CANDIDATE; i++) {
        int safe = (l->ledger->told[i] & TOLD_SAFE) != 0;
        assert_int_equal((l->ledger->told[i] & CALLED) != 0, safe);
        assert_int_equal(l->handed[i], safe && sends(i) && !is_held(l, i));
    }
}

/* check_course: what was told on the way. */
static void check_course(const life *l)
{
    char line[160];
    snprintf(line, sizeof line, "transport t is down: %s: ", path);
    if (l->down && !strstr(l->log, line))
        fail_msg("'%s' has no '%s'", l->log, line);
    if (faults.for_good) {
        assert_int_equal(l->up, 0);
        assert_true(l->down <= 1);
        assert_int_equal(l->late_calls, 0);
    } else {
        assert_int_equal(l->answered, MESSAGES);
        assert_true(l->up <= 1 && l->down <= l->up + 1);
        check_counts(l);
    }
}

static void look_again(uv_async_t *async)
{
    (void)async; /* a turn of the loop is all that is wanted */
}

static void wake(void *async)
{
    uv_async_send(async);
}

/* run leads a life. Its loop is woken by each call that fails, since the worker tries on without a
 * word. */
static void run(life *l)
{
    uv_async_t failing;
    uv_async_init(&l->loop, &failing, look_again);
    vfs_tell(wake, &failing);
    life_start(l);
    life_run(l, is_broken_for_good);
    vfs_tell(NULL, NULL);
    uv_close((uv_handle_t *)&failing, NULL);
    check_course(l);
    uv_run(&l->loop, UV_RUN_NOWAIT);
}

/* check_left: after one error, only what should be left is. */
static void check_left(ledger *told)
{
    int held = (told->told[HELD] & TOLD_SAFE) != 0;
    sqlite3 *db = look_in();
    assert_int_equal(count(db, "1"), safe_of(told, dies) + held);
    assert_int_equal(count(db, "queue = 'q' AND owner IS NULL AND deliveries = 0"), held);
    sqlite3_close(db);
}

/* lead is a whole life, and what comes after it. 0: it was over before the fault came. */
static int lead(long nth, int for_good, int is_used)
{
    ledger told = {0};
    life l;
    alarm(WATCHDOG);
    if (is_used) {
        put_file(&used.db, "");
        put_file(&used.wal, "-wal");
        ledger_copy(&told, &used.told);
    }
    vfs_install(0);
    vfs_break(is_used ? 0 : nth, for_good);
    life_open(&l, policy, &told);
    l.count = MESSAGES;
    l.holds = 1;
    l.ends = is_used ? 2 : 0;
    int opened = open_file(&l);
    if (is_used)
        vfs_break(nth, for_good);
    if (opened)
        run(&l);
    life_close(&l);
    assert_int_equal(l.answered, l.next);
    int hit = vfs_failed() > 0;
    vfs_remove();
    if (!for_good)
        check_left(&told);
    ledger_close(&told, policy);
    tear_down(NULL);
    set_up(NULL);
    return hit;
}

static void lead_with_each(int for_good, int is_used)
{
    int kinds[VFS_CALL_COUNT] = {0}, hits = 0;
    for (long nth = 1; lead(nth, for_good, is_used); nth += step()) {
        hits++;
        kinds[faults.first_failed]++;
    }
    print_message("%d lives:", hits);
    for (int i = 0; i < VFS_CALL_COUNT; i++)
        if (kinds[i])
            print_message(" %s %d", vfs_call_name((vfs_call)i), kinds[i]);
    print_message("\n");
    assert_true(hits > 3);
}

static void one_error_on_a_new_file(void **state)
{
    (void)state;
    lead_with_each(0, 0);
}

static void one_error_on_a_used_file(void **state)
{
    (void)state;
    lead_with_each(0, 1);
}

static void errors_for_good_on_a_new_file(void **state)
{
    (void)state;
    lead_with_each(1, 0);
}

static void errors_for_good_on_a_used_file(void **state)
{
    (void)state;
    lead_with_each(1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_error_while_opening_is_told_for_what_it_is),
        TEST(one_error_on_a_new_file),
        TEST(one_error_on_a_used_file),
        TEST(errors_for_good_on_a_new_file),
        TEST(errors_for_good_on_a_used_file),
    };
    return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
