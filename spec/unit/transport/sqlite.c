/* sqlite.c: what only other processes, other connections and a full disk can show of
 * sqlite:FILE. Each test has a file of its own, and looks into it with a connection of its own. */
#include "sqlite_engine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <uv.h>

#include "transport/sqlite/schema.h"

static const mull_error bad = {.size = sizeof bad, .type = "Bad", .message = "no"};

/* ---- Owners that die ------------------------------------------------------------------------- */

/* die_with kills the process once it has as many messages at work as it wants. */
static void die_with(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine, (void)call, (void)message;
    live *l = data;
    if (++l->seen == l->wanted)
        raise(SIGKILL);
}

static void stand_still(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    (void)engine, (void)call, (void)message, (void)data;
    raise(SIGSTOP);
}

/* run_child runs an engine in a process of its own until it dies or stands still. */
static pid_t run_child(mull_handler handler, int wanted)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        live l;
        open_live(&l, handler, 5);
        l.wanted = wanted;
        run_live(&l);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_false(WIFEXITED(status));
    return child;
}

static void claims_of_the_killed_are_free(void **state)
{
    (void)state;
    put_five();
    run_child(die_with, 5);
    sqlite3 *db = look_in();
    assert_int_equal(count(db, "owner IS NOT NULL AND deliveries = 1"), 5);
    sqlite3_close(db);

    live l;
    open_live(&l, succeed, 5);
    l.wanted = 5;
    run_live(&l);
    for (int i = 0; i < 5; i++)
        assert_int_equal(l.deliveries[i], 2);
    assert_int_equal(l.most_suspects, 1);
    close_live(&l);
}

/* bring_another holds a poison candidate until a fresh message has come, and with it another claim.
 */
static void bring_another(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    live *l = data;
    if (message->deliveries == 1) {
        succeed(engine, call, message, data);
        return;
    }
    note_message(l, message);
    l->held = call;
    publish(l, "fresh", "body");
}

static void suspects_go_one_at_a_time(void **state)
{
    (void)state;
    put_five();
    run_child(die_with, 5);
    live l;
    open_live(&l, bring_another, 5);
    l.wanted = 10;
    run_live(&l);
    assert_int_equal(l.published, 5);
    assert_int_equal(l.most_suspects, 1);
    assert_int_equal(count(l.db, "1"), 0);
    close_live(&l);
}

/* die_of_a dies of "a" and of nothing else. */
static void die_of_a(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    live *l = data;
    if (strcmp(message->id, "a") == 0)
        raise(SIGKILL);
    note_message(l, message);
    mull_done(engine, call, NULL);
}

static void the_one_that_kills_takes_no_neighbour_far(void **state)
{
    (void)state;
    put_five();
    run_child(die_with, 5);
    /* "a" has the lowest sequence, so it may be first among equals; never before those that died
     * less often. */
    for (int deaths = 0; deaths < 3; deaths++)
        run_child(die_of_a, 100);
    sqlite3 *db = look_in();
    assert_int_equal(count(db, "id = 'a' AND deliveries >= 3"), 1);
    assert_int_equal(count(db, "id <> 'a' AND deliveries > 2"), 0);
    assert_true(count(db, "1") < 5);
    sqlite3_close(db);
}

static void claims_of_one_that_stands_still_stay(void **state)
{
    (void)state;
    live l;
    put_five();
    pid_t child = run_child(stand_still, 0);
    sqlite3 *db = look_in();
    int held = count(db, "owner IS NOT NULL");
    assert_true(held >= 1);
    put_row(db, "last");
    sqlite3_close(db);

    open_live(&l, succeed, 1);
    l.wanted = 5 - held + 1;
    run_live(&l);
    assert_string_equal(l.last_id, "last");
    assert_int_equal(count(l.db, "owner IS NOT NULL"), held);
    close_live(&l);

    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    open_live(&l, succeed, 1);
    l.wanted = held;
    run_live(&l);
    close_live(&l);
}

/* kill_other kills the process that stands still, while this one is waiting for messages. */
static pid_t other;

static void kill_other(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    if (other) {
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
        other = 0;
    }
    succeed(engine, call, message, data);
}

static void a_death_is_noticed_while_running(void **state)
{
    (void)state;
    put_five();
    other = run_child(stand_still, 0);
    live l;
    open_live(&l, kill_other, 1);
    put_row(l.db, "last");
    l.wanted = 6;
    run_live(&l);
    assert_int_equal(l.seen, 6);
    close_live(&l);
}

/* ---- Rows that nobody here wrote ------------------------------------------------------------- */

static void what_no_one_here_would_write_is_refused(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"UPDATE messages SET deliveries = -1 WHERE id = 'a'", "CHECK"},
        {"UPDATE messages SET deliveries = 1000001 WHERE id = 'a'", "CHECK"},
        {"UPDATE messages SET due_ms = -1 WHERE id = 'a'", "CHECK"},
        {"UPDATE messages SET owner = 999 WHERE id = 'a'", "set owner = NULL"},
        {"UPDATE messages SET dead_ms = 1 WHERE id = 'a'", "CHECK"},
        {"UPDATE messages SET reason = 'rule' WHERE id = 'a'", "CHECK"},
        {"UPDATE messages SET headers = NULL WHERE id = 'a'", "NOT NULL"},
        {"UPDATE waiting SET owner = 999, token = 1, deliveries = 1", "no such owner"},
        {"UPDATE waiting SET owner = 100, token = NULL, deliveries = 1", "CHECK"},
        {"UPDATE waiting SET owner = 100, token = 1, deliveries = 0", "CHECK"},
        {"UPDATE waiting SET body = zeroblob(4097)", "a body stays"},
        {"UPDATE waiting SET large = 1, body = NULL", "a body stays"},
        {"INSERT INTO waiting (number, queue, due_ms, published_ms) VALUES (99, 1, 0, 1)", "CHECK"},
        {"INSERT INTO ready (queue, number, published_ms, body) VALUES (1, 99, 1, zeroblob(4097))",
         "CHECK"},
        {"UPDATE waiting SET number = 0", "CHECK"},
        {"INSERT INTO waiting (number, queue, due_ms, published_ms, body) VALUES (99, 99, 0, 1, "
         "x'')",
         "no such owner or queue"},
        {"UPDATE ready SET number = 4611686018427387904", "CHECK"},
        {"INSERT INTO ranges VALUES (1, 1, 5, 999)", "no such owner"},
        {"INSERT INTO ranges VALUES (1, 5, 1, 100)", "CHECK"},
        {"INSERT INTO ranges VALUES (1, 1, 3, 100), (1, 3, 4, 100)", "claimed already"},
        {"INSERT INTO ranges VALUES (1, 1, 4, 100); UPDATE ranges SET last = 3", "only grows"},
        {"DELETE FROM ranges", "messages are claimed by it"},
        {"DELETE FROM owners", "it has claims"},
        {"UPDATE owners SET owner = 101", "is what it is"},
        {"UPDATE counter SET next = 1", "only grows"},
        {"UPDATE counter SET next = 4611686018427387903", "only grows"},
        {"DELETE FROM counter", "it stays"},
        {"INSERT INTO counter VALUES (2, 5)", "it stays"},
        {"UPDATE queues SET head = 3; UPDATE queues SET head = 2", "only grows"},
        {"UPDATE queues SET ready = -1", "CHECK"},
        {"DELETE FROM queues", "it has messages"},
        {"INSERT INTO queues (queue, name) VALUES (9, 'x'); INSERT INTO ranges VALUES (9, 1, 1, "
         "100); DELETE FROM queues WHERE name = 'x'",
         "or claims"},
        {"INSERT OR REPLACE INTO counter VALUES (1, 1)", "it stays"},
    };
    put_five();
    sqlite3 *db = look_in();
    sql(db, "UPDATE messages SET due_ms = 1 WHERE id = 'b';"
            "INSERT INTO owners VALUES (100, 1, 1)");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_refused(db, refused[i][0], refused[i][1]);
    sql(db, "INSERT OR REPLACE INTO queues (name) VALUES ('q')");
    assert_int_equal(count(db, "queue = 'q'"), 5);
    sqlite3_close(db);
}

static void a_count_that_is_off_is_put_right(void **state)
{
    (void)state;
    put_five();
    live l;
    open_live(&l, succeed, 1);
    sql(l.db, "DELETE FROM ready WHERE id = 'c'");
    mull_stop_when_empty(l.engine);
    assert_int_equal(mull_engine_run(l.engine), 0);
    assert_int_equal(l.seen, 4);
    assert_logged(&l, "queue 'q': its count of what is ready was off by 1");
    close_live(&l);
}

static void a_count_of_what_waits_that_is_too_small_stops_nothing(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "UPDATE queues SET due = 0, delayed = 0",
        "UPDATE queues SET due = 0, delayed = 1, mark_ms = 0", /* and all of it has come due */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_five();
        live l;
        open_live(&l, succeed, 1);
        sql(l.db, "UPDATE messages SET due_ms = 1");
        sql(l.db, wrong[i]);
        mull_stop_when_empty(l.engine);
        assert_int_equal(mull_engine_run(l.engine), 0);
        assert_int_equal(l.seen, 5);
        check_shape(l.db);
        close_live(&l);
    }
}

/* bring_far publishes nothing, but puts a message where it will never come due. */
static void bring_far(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    live *l = data;
    if (l->seen == 0)
        sql(l->db, "UPDATE messages SET due_ms = 9223372036854775807 WHERE id = 'e'");
    succeed(engine, call, message, data);
}

static void what_never_comes_due_is_named(void **state)
{
    (void)state;
    put_five();
    live l;
    open_live(&l, bring_far, 1);
    l.wanted = 4;
    run_live(&l);
    close_live(&l);
    open_live(&l, succeed, 1);
    publish(&l, "f", "body");
    mull_stop_when_empty(l.engine);
    assert_int_equal(mull_engine_run(l.engine), MULL_EREFUSED);
    assert_logged(&l, "queue 'q': 1 message(s) are due in more than 365 days, later than any "
                      "policy can say; they wait until somebody sets their due_ms: number 5");
    assert_int_equal(l.seen, 1);
    close_live(&l);
}

static void refused(const char *bad_url, const char *why);

/* ---- Memory ---------------------------------------------------------------------------------- */

static int most_claimed;

static void count_claimed(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    int claimed = count(((live *)data)->db, "owner IS NOT NULL");
    most_claimed = claimed > most_claimed ? claimed : most_claimed;
    succeed(engine, call, message, data);
}

static void claimed_bodies_are_bounded_and_one_is_let_through(void **state)
{
    (void)state;
    live l;
    strcat(url, "?claimed=1000");
    open_live(&l, count_claimed, 8);
    for (int i = 0; i < 5; i++)
        put_row(l.db, "small");
    put_row(l.db, "large");
    sql(l.db, "UPDATE ready SET body = zeroblob(600);"
              "UPDATE ready SET body = NULL, large = number WHERE id = 'large';"
              "INSERT INTO bodies SELECT number, zeroblob(100000) FROM ready WHERE id = 'large'");
    l.wanted = 6;
    run_live(&l);
    assert_string_equal(l.last_id, "large");
    assert_int_equal(most_claimed, 2);
    close_live(&l);
    refused("sqlite:a.db?claimed=0", "no option but claimed=BYTES, 1 or more");
    refused("sqlite:a.db?claimed=1x", "no option but claimed=BYTES, 1 or more");
}

/* hold_and_send: its call ends once what it sends has been handled. */
static void hold_and_send(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    live *l = data;
    const mull_message sent = {.size = sizeof sent, .queue = "other"};
    l->held = call;
    note_message(l, message);
    assert_int_equal(mull_publish(engine, "t", &sent, 0, NULL, NULL), 0);
}

static void end_held(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    live *l = data;
    succeed(engine, call, message, l);
    mull_done(engine, l->held, NULL);
}

static void a_consumer_that_has_nothing_gets_one_though_there_is_no_room(void **state)
{
    (void)state;
    live l;
    strcat(url, "?claimed=1000");
    open_live(&l, hold_and_send, 8);
    mull_consumer_options second = test_engine_consumer(end_held, &l);
    second.name = "D";
    second.queue = "other";
    assert_int_equal(mull_consumer_add(l.engine, &second), 0);
    put_row(l.db, "large");
    sql(l.db, "UPDATE ready SET body = zeroblob(4000)");
    l.wanted = 2;
    run_live(&l); /* ends, or the watchdog ends the test */
    close_live(&l);
}

/* ---- Depth ----------------------------------------------------------------------------------- */

static void on_depth(int status, const mull_depth *depth, void *data)
{
    live *l = data;
    assert_int_equal(status, 0);
    assert_int_equal(depth->ready, 5);
    sql(l->db, "COMMIT");
    mull_stop(l->engine);
}

static void a_depth_waits_for_no_writer(void **state)
{
    (void)state;
    put_five();
    live l;
    open_live(&l, NULL, 0);
    sql(l.db, "BEGIN IMMEDIATE; DELETE FROM messages");
    assert_int_equal(mull_queue_depth(l.engine, "t", "q", on_depth, &l), 0);
    run_live(&l);
    assert_int_equal(count(l.db, "1"), 0);
    close_live(&l);
}

/* ---- What is in the file --------------------------------------------------------------------- */

static void refuse(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    note_message(data, message);
    mull_done(engine, call, &bad);
}

static void a_dead_letter_can_be_read_with_sql(void **state)
{
    (void)state;
    live l;
    open_live(&l, refuse, 1);
    publish(&l, "a", "the body");
    l.wanted = 1;
    run_live(&l);
    assert_string_equal(ask(l.db, "SELECT queue || ' ' || dead_from || ' ' || error_type || ' ' ||"
                                  " reason || ' ' || rule || ' ' || deliveries FROM messages"),
                        "error q Bad rule policy.lua:2 0");
    assert_int_equal(count(l.db, "dead_ms BETWEEN published_ms AND published_ms + 60000"), 1);
    assert_string_equal(ask(l.db, "SELECT headers ->> 'mulligan-error-type' FROM messages"), "Bad");
    assert_string_equal(ask(l.db, "SELECT body FROM messages"), "the body");
    assert_string_equal(ask(l.db, "SELECT consumer FROM dead_letters"), "C");
    assert_string_equal(ask(l.db, "PRAGMA journal_mode"), "wal");
    assert_int_equal(atoi(ask(l.db, "PRAGMA application_id")), MULL__SCHEMA_APPLICATION);
    assert_int_equal(atoi(ask(l.db, "PRAGMA user_version")), MULL__SCHEMA_VERSION);
    close_live(&l);
}

static void a_dead_letter_has_the_id_that_it_was_given(void **state)
{
    (void)state;
    live l;
    open_live(&l, refuse, 1);
    publish(&l, NULL, "body");
    l.wanted = 1;
    run_live(&l);
    assert_int_equal(strlen(l.last_id), 32);
    assert_string_equal(ask(l.db, "SELECT id FROM messages WHERE queue = 'error'"), l.last_id);
    close_live(&l);
}

static void a_row_with_spoiled_headers_is_delivered(void **state)
{
    (void)state;
    live l;
    open_live(&l, succeed, 1);
    put_row(l.db, "a");
    sql(l.db, "UPDATE messages SET headers = '{\"x\": 1'");
    l.wanted = 1;
    run_live(&l);
    assert_string_equal(l.last_id, "a");
    assert_int_equal(l.last_headers, 0);
    assert_non_null(strstr(l.log, "message number "));
    close_live(&l);
}

/* ---- Files that are refused ------------------------------------------------------------------ */

static void refused(const char *bad_url, const char *why)
{
    live l = {0};
    new_engine(&l);
    assert_int_not_equal(mull_engine_transport(l.engine, "t", bad_url), 0);
    if (!strstr(l.log, why))
        fail_msg("'%s' has no '%s'", l.log, why);
    mull_engine_close(l.engine, NULL, NULL);
    mull_policy_free(l.policy);
}

static void what_is_no_place_for_a_database_is_refused(void **state)
{
    (void)state;
    char text[128];
    refused("sqlite:", "'sqlite:' names no file");
    refused("sqlite::memory:", "names no file");
    refused("sqlite:a.db?mode=ro", "no option but claimed=BYTES");
    snprintf(text, sizeof text, "sqlite:%s", folder);
    refused(text, "is a folder");
    snprintf(text, sizeof text, "sqlite:%s/none/a.db", folder);
    refused(text, "No such file");
    refused("sqlite:/dev/null", "no regular file");
    if (geteuid() != 0) {
        chmod(folder, 0500);
        refused(url, "can't be written to");
        chmod(folder, 0700);
    }
}

static void what_is_no_database_is_refused(void **state)
{
    (void)state;
    char kept[32] = {0};
    int file = open(path, O_CREAT | O_RDWR, 0600);
    assert_int_equal(write(file, "Dear diary, this is no table.\n", 30), 30);
    refused(url, "is no SQLite database");
    assert_int_equal(pread(file, kept, 31, 0), 30);
    assert_string_equal(kept, "Dear diary, this is no table.\n");
    close(file);
}

static void another_programs_database_is_refused(void **state)
{
    (void)state;
    sqlite3 *db = look_in();
    sql(db, "CREATE TABLE bookmarks (url TEXT)");
    refused(url, "another program's");
    assert_string_equal(ask(db, "SELECT count(*) FROM sqlite_schema"), "1");
    assert_string_equal(ask(db, "PRAGMA journal_mode"), "delete"); /* as read just now */
    sqlite3_close(db);
}

static void a_newer_schema_is_refused(void **state)
{
    (void)state;
    put_five();
    sqlite3 *db = look_in();
    char text[64];
    snprintf(text, sizeof text, "PRAGMA user_version = %d", MULL__SCHEMA_VERSION + 1);
    sql(db, text);
    refused(url, "newer mulligan");
    assert_int_equal(count(db, "1"), 5);
    sqlite3_close(db);
}

/* ---- A file that can't be written ------------------------------------------------------------ */

static void set_limit(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* fill_disk: the first message's settle, and what is published meanwhile, find the disk full. */
static void fill_disk(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    live *l = data;
    note_message(l, message);
    if (l->seen == 1) {
        struct stat status;
        char wal[96];
        snprintf(wal, sizeof wal, "%s-wal", path);
        assert_int_equal(stat(wal, &status), 0);
        set_limit((rlim_t)status.st_size);
        publish(l, "b", "never");
    }
    mull_done(engine, call, NULL);
}

static void on_log_of_full_disk(mull_level level, const char *text, void *data)
{
    on_log(level, text, data);
    if (strstr(text, "is down"))
        set_limit(RLIM_INFINITY);
}

static void a_full_disk_loses_nothing(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    live l = {0};
    l.policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l.policy;
    options.log = on_log_of_full_disk;
    options.data = &l;
    assert_int_equal(mull_engine_new(&l.engine, &options), 0);
    assert_int_equal(mull_engine_transport(l.engine, "t", url), 0);
    l.db = look_in();
    mull_consumer_options consumer = test_engine_consumer(fill_disk, &l);
    assert_int_equal(mull_consumer_add(l.engine, &consumer), 0);
    static const char *const ids[] = {"a", "c", "d", "e", "f"};
    for (int i = 0; i < 5; i++)
        publish(&l, ids[i], "body");
    mull_stop_when_empty(l.engine);
    run_live(&l);
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(l.engine, &counts);
    assert_int_equal(l.published, 5);
    assert_int_equal(l.refused, 1);
    assert_int_equal(counts.done, 5);
    assert_int_equal(l.down, 1);
    assert_int_equal(l.up, 1);
    assert_int_equal(count(l.db, "1"), 0);
    close_live(&l);
}

static void another_writer_is_waited_for(void **state)
{
    (void)state;
    live l;
    put_five();
    open_live(&l, succeed, 1);
    l.wanted = 5;
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db = look_in();
        sql(db, "BEGIN IMMEDIATE");
        kill(getpid(), SIGSTOP);
        usleep(100000);
        sql(db, "COMMIT");
        _exit(0);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    kill(child, SIGCONT);
    run_live(&l);
    assert_int_equal(l.seen, 5);
    assert_int_equal(l.down, 0);
    close_live(&l);
    waitpid(child, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void another_writer_cant_keep_it_from_closing(void **state)
{
    (void)state;
    live l;
    open_live(&l, NULL, 0);
    sql(l.db, "BEGIN IMMEDIATE");
    publish(&l, "a", "body");
    mull_engine_close(l.engine, NULL, NULL);
    assert_int_equal(l.published, 0);
    assert_int_equal(l.refused, 1);
    sql(l.db, "COMMIT");
    assert_int_equal(count(l.db, "1"), 0);
    mull_policy_free(l.policy);
    sqlite3_close(l.db);
}

/* ---- Closing ----------------------------------------------------------------------------------
 */

static void on_closed(void *data)
{
    *(int *)data = 1;
}

static void what_is_on_its_way_at_a_close_goes_back_uncounted(void **state)
{
    (void)state;
    put_five();
    uv_loop_t loop;
    uv_loop_init(&loop);
    live l = {.policy = test_engine_policy("")};
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l.policy;
    options.loop = &loop;
    assert_int_equal(mull_engine_new(&l.engine, &options), 0);
    assert_int_equal(mull_engine_transport(l.engine, "t", url), 0);
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "C";
    consumer.transport = "t";
    consumer.queue = "q";
    consumer.handler = succeed;
    assert_int_equal(mull_consumer_add(l.engine, &consumer), 0);
    assert_int_equal(mull_engine_start(l.engine), 0);
    sqlite3 *db = look_in();
    /* Three turns give the worker its credit; then the loop stands still until it has claimed. */
    for (int turn = 0; turn < 3; turn++)
        uv_run(&loop, UV_RUN_NOWAIT);
    while (count(db, "owner IS NOT NULL") == 0)
        usleep(1000);
    int closed = 0;
    mull_engine_close(l.engine, on_closed, &closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, 1);
    assert_int_equal(count(db, "owner IS NULL AND deliveries = 0"), 5);
    assert_int_equal(uv_loop_close(&loop), 0);
    mull_policy_free(l.policy);
    sqlite3_close(db);
}

/* ---- Two on one file ------------------------------------------------------------------------- */

enum { SHARED = 200 };

static void two_transports_share_a_file(void **state)
{
    (void)state;
    live l;
    open_live(&l, succeed, 4);
    assert_int_equal(mull_engine_transport(l.engine, "u", url), 0);
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "D";
    consumer.transport = "u";
    consumer.queue = "q";
    consumer.handler = succeed;
    consumer.data = &l;
    consumer.concurrency = 4;
    assert_int_equal(mull_consumer_add(l.engine, &consumer), 0);
    for (int i = 0; i < SHARED; i++)
        publish(&l, "x", "body");
    mull_stop_when_empty(l.engine);
    run_live(&l);
    assert_int_equal(l.published, SHARED);
    assert_int_equal(l.seen, SHARED); /* none twice */
    close_live(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(claims_of_the_killed_are_free),
        TEST(suspects_go_one_at_a_time),
        TEST(the_one_that_kills_takes_no_neighbour_far),
        TEST(claims_of_one_that_stands_still_stay),
        TEST(a_death_is_noticed_while_running),
        TEST(what_no_one_here_would_write_is_refused),
        TEST(a_count_that_is_off_is_put_right),
        TEST(a_count_of_what_waits_that_is_too_small_stops_nothing),
        TEST(what_never_comes_due_is_named),
        TEST(claimed_bodies_are_bounded_and_one_is_let_through),
        TEST(a_consumer_that_has_nothing_gets_one_though_there_is_no_room),
        TEST(a_depth_waits_for_no_writer),
        TEST(a_dead_letter_can_be_read_with_sql),
        TEST(a_dead_letter_has_the_id_that_it_was_given),
        TEST(a_row_with_spoiled_headers_is_delivered),
        TEST(what_is_no_place_for_a_database_is_refused),
        TEST(what_is_no_database_is_refused),
        TEST(another_programs_database_is_refused),
        TEST(a_newer_schema_is_refused),
        TEST(a_full_disk_loses_nothing),
        TEST(another_writer_is_waited_for),
        TEST(another_writer_cant_keep_it_from_closing),
        TEST(what_is_on_its_way_at_a_close_goes_back_uncounted),
        TEST(two_transports_share_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
