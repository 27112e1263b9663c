/* sqlite_schema.c: databases that another version of mulligan wrote. A file of each old version is
 * kept under spec/transport as SQL: what is in it comes to its end. What no version wrote, and what
 * a newer one did, is refused and left as it was. */
#include "sqlite_engine.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* read_file gives a text that ends in a NUL. */
static char *read_file(const char *name)
{
    struct stat status;
    FILE *in = fopen(name, "rb");
    if (!in)
        fail_msg("no %s: run this from the root of the tree", name);
    assert_int_equal(fstat(fileno(in), &status), 0);
    char *text = calloc(1, (size_t)status.st_size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)status.st_size, in), status.st_size);
    fclose(in);
    return text;
}

static void write_version(const char *name)
{
    char *text = read_file(name);
    sqlite3 *db = look_in();
    sql(db, text);
    sqlite3_close(db);
    free(text);
}

/* taken is what a handler saw, as "id body deliveries redeliveries;". */
typedef struct taken {
    char text[512];
} taken;

static void take(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    taken *t = data;
    size_t length = strlen(t->text);
    int had_id = strlen(message->id) < 32;
    snprintf(t->text + length, sizeof t->text - length, "%s %.*s %d %d;",
             had_id ? message->id : "-", (int)message->body_size, (const char *)message->body,
             (int)message->deliveries, (int)message->redeliveries);
    mull_done(engine, call, NULL);
}

static void version_1_is_handled_to_its_end(void **state)
{
    (void)state;
    taken orders = {""}, dead = {""};
    test_engine r = {0};
    write_version("spec/transport/schema-1.sql");
    r.policy =
        test_engine_policy("require('mulligan.policy').bus():dead_letter_queue('elsewhere')");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r.policy;
    options.problem = test_engine_problem;
    assert_int_equal(mull_engine_new(&r.engine, &options), 0);
    assert_int_equal(mull_engine_transport(r.engine, "t", url), 0);
    mull_consumer_options consumer = test_engine_consumer(take, &orders);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    consumer = test_engine_consumer(take, &dead);
    consumer.name = "D";
    consumer.queue = "error";
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    mull_stop_when_empty(r.engine);
    assert_int_equal(mull_engine_run(r.engine), 0);
    assert_int_equal(test_engine_counts(&r).done, 6);
    test_engine_close(&r);
    /* What their owner had died with, one at a time; what is due, what is new. */
    assert_string_equal(orders.text, "kills body of kills 2 0;later body of later 1 1;"
                                     "fresh fresh 2 0;delayed delayed 1 0;- no id 1 0;");
    assert_string_equal(dead.text, "dead body of dead 1 0;");
    sqlite3 *db = look_in();
    assert_int_equal(count(db, "1"), 0);
    assert_string_equal(ask(db, "SELECT count(*) FROM owners"), "0");
    sqlite3_close(db);
}

static int user_version(void)
{
    sqlite3 *db = look_in();
    int version = atoi(ask(db, "PRAGMA user_version"));
    sqlite3_close(db);
    return version;
}

/* open_only opens the file with an engine, and closes it. */
static int open_only(live *l)
{
    *l = (live){0};
    new_engine(l);
    int status = mull_engine_transport(l->engine, "t", url);
    mull_engine_close(l->engine, NULL, NULL);
    mull_policy_free(l->policy);
    return status;
}

static void version_1_stays_while_somebody_has_it_open(void **state)
{
    (void)state;
    live l;
    write_version("spec/transport/schema-1.sql");
    sqlite3 *db = look_in();
    assert_int_equal(count(db, "1"), 6);
    assert_int_equal(open_only(&l), MULL_EIO);
    assert_logged(&l, "another process has had it open for 5 s; end it, and try again");
    assert_null(strchr(strchr(l.log, '\n') + 1, '\n'));
    assert_int_equal(atoi(ask(db, "PRAGMA user_version")), 1);
    sqlite3_close(db);
    assert_int_equal(open_only(&l), 0);
    assert_int_equal(user_version(), 2);
}

static void version_1_stays_where_somebody_added_to_it(void **state)
{
    (void)state;
    static const char *const added[] = {"VIEW depths AS SELECT 1",
                                        "VIEW of AS SELECT * FROM messages",
                                        "INDEX by_type ON messages (type)"};
    static const char *const named[] = {"the view 'depths'", "the view 'of'",
                                        "the index 'by_type'"};
    live l;
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        char text[128];
        write_version("spec/transport/schema-1.sql");
        sqlite3 *db = look_in();
        snprintf(text, sizeof text, "CREATE %s", added[i]);
        sql(db, text);
        sqlite3_close(db);
        assert_int_equal(open_only(&l), MULL_EIO);
        assert_logged(&l, named[i]);
        assert_int_equal(user_version(), 1);
        assert_int_equal(unlink(path), 0);
    }
}

static void what_version_2_does_not_admit_is_repaired(void **state)
{
    (void)state;
    static const char *const told[] = {
        "13 message(s) were brought from schema 1 to schema 2",
        "2 message(s) were claimed by a process that has died",
        "1 message(s) were claimed in the name of nobody",
        "1 message(s) had fewer than 0 deliveries",
        "1 message(s) had more than 1000000 deliveries",
        "2 message(s) were due before 1970",
        "1 message(s) were no dead letters, but said why",
        "1 dead letter(s) didn't say from which queue",
        "2 message(s) have no body",
        "1 body(s) of no message are gone",
    };
    live l;
    write_version("spec/transport/schema-1.sql");
    sqlite3 *db = look_in();
    sql(db, "INSERT INTO messages (number, seq, queue, due_ms, deliveries, owner, published_ms,"
            " dead_ms, reason, id) VALUES (10, 1, 'q', -1, 0, NULL, 1, NULL, NULL, 'early'),"
            " (11, 2, 'q', -9223372036854775807 - 1, -5, NULL, 1, NULL, NULL, 'few'),"
            " (12, 2, 'q', 0, 9223372036854775807, NULL, 1, NULL, NULL, 'many'),"
            " (-7, 3, 'q', 0, 0, 99, 1, NULL, NULL, 'nobody'),"
            " (9223372036854775807, 3, 'q', 0, 0, NULL, 1, NULL, 'rule', 'says'),"
            " (0, 3, 'x', 0, 0, NULL, 1, 5, 'rule', 'buried'),"
            " (14, 4, 'q', 0, 0, NULL, 1, NULL, NULL, 'large');"
            "INSERT INTO bodies VALUES (10, x'61'), (11, x'61'), (12, x'61'), (-7, x'61'),"
            " (14, zeroblob(5000)), (0, x'61'), (77, x'61');"
            "DELETE FROM bodies WHERE number = 8; UPDATE counter SET next = 3");
    sqlite3_close(db);
    assert_int_equal(open_only(&l), 0);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        assert_logged(&l, told[i]);
    db = look_in();
    assert_string_equal(ask(db, "SELECT group_concat(id, ' ') FROM messages WHERE body IS NULL"),
                        "says");
    assert_int_equal(count(db, "id IS NULL AND body IS NULL"), 1);
    assert_int_equal(count(db, "length(body) = 5000"), 1);
    assert_int_equal(count(db, "owner IS NOT NULL"), 0);
    assert_int_equal(count(db, "number <= 14"), 0);
    assert_string_equal(ask(db, "SELECT group_concat(id, ' ') FROM (SELECT id FROM ready"
                                " JOIN queues USING (queue) WHERE name = 'q' ORDER BY number)"),
                        "early few says large");
    assert_string_equal(ask(db, "SELECT consumer FROM dead_letters WHERE error_type NOT NULL"),
                        "C");
    sql(db, "DELETE FROM messages WHERE body IS NULL");
    check_shape(db);
    sqlite3_close(db);
}

/* ---- Killed while it is upgraded ------------------------------------------------------------- */

static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void copy_file(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    assert_int_equal(system(command), 0);
}

static void write_many(int rows, const char *kept)
{
    char text[1024];
    write_version("spec/transport/schema-1.sql");
    sqlite3 *db = look_in();
    snprintf(text, sizeof text,
             "PRAGMA synchronous = OFF; BEGIN;"
             "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 99 + %d)"
             " INSERT INTO messages (number, seq, queue, due_ms, deliveries, published_ms, id)"
             " SELECT i, i, 'q' || i %% 3, iif(i %% 5, 0, i), i %% 7 = 0, i, 'm' || i FROM n;"
             "INSERT INTO bodies SELECT number, zeroblob(iif(number %% 100, 100, 5000))"
             " FROM messages WHERE number >= 100; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)",
             rows);
    sql(db, text);
    sqlite3_close(db);
    copy_file(path, kept);
}

static void an_upgrade_that_is_killed_leaves_one_version_or_the_other(void **state)
{
    (void)state;
    int rows = from_environment("MULL_ROWS", 5000), kills = from_environment("MULL_KILLS", 5);
    char kept[96];
    live l;
    snprintf(kept, sizeof kept, "%s-kept", path);
    alarm(0);
    write_many(rows, kept);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(open_only(&l), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t took_us = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
    for (int i = 0, killed = 0; i < kills; i++) {
        copy_file(kept, path);
        pid_t child = fork();
        if (child == 0)
            _exit(open_only(&l) != 0);
        usleep((useconds_t)(took_us * random() / RAND_MAX));
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        killed += WIFSIGNALED(status);
        sqlite3 *db = look_in();
        assert_int_equal(count(db, "1"), rows + 6);
        sqlite3_close(db);
        if (i == kills - 1)
            print_message("%d rows, %lld ms, %d of %d killed, last one of schema %d\n", rows,
                          (long long)took_us / 1000, killed, kills, user_version());
        assert_int_equal(open_only(&l), 0);
        db = look_in();
        assert_int_equal(count(db, "1"), rows + 6);
        assert_int_equal(count(db, "length(body) = 5000"), (rows + 99) / 100);
        check_shape(db);
        sqlite3_close(db);
    }
}

static void several_that_would_upgrade_it_at_once_all_open_it(void **state)
{
    (void)state;
    enum { SEVERAL = 4 };
    char kept[96];
    live l;
    pid_t children[SEVERAL];
    snprintf(kept, sizeof kept, "%s-kept", path);
    write_many(3000, kept);
    for (int i = 0; i < SEVERAL; i++)
        if ((children[i] = fork()) == 0)
            _exit(open_only(&l) != 0);
    for (int i = 0; i < SEVERAL; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(user_version(), 2);
}

static int is_there(const char *end)
{
    char name[96];
    struct stat status;
    snprintf(name, sizeof name, "%s%s", path, end);
    return stat(name, &status) == 0;
}

/* set_limit: no file may become longer. */
static void set_limit(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void an_upgrade_that_fails_leaves_no_other_file(void **state)
{
    (void)state;
    char kept[96];
    struct stat status;
    live l;
    snprintf(kept, sizeof kept, "%s-kept", path);
    write_many(3000, kept);
    assert_int_equal(stat(path, &status), 0);
    signal(SIGXFSZ, SIG_IGN);
    set_limit((rlim_t)status.st_size);
    assert_int_equal(open_only(&l), MULL_EIO);
    set_limit(RLIM_INFINITY);
    assert_logged(&l, path);
    assert_false(is_there("-wal") || is_there("-shm") || is_there("-journal"));
    assert_int_equal(user_version(), 1);
    assert_int_equal(open_only(&l), 0);
    assert_int_equal(user_version(), 2);
}

/* write_journal writes the head of a rollback journal, of a file that had so many pages. */
static void write_journal(const char *name, int pages)
{
    const unsigned char head[512] = {
        0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0xff, 0xff,
        0xff, 0xff, 0,    0,    0,    1,    0,    0,    0,    (unsigned char)pages,
        0,    0,    2,    0,    0,    0,    16,   0};
    FILE *out = fopen(name, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(head, 1, sizeof head, out), sizeof head);
    assert_int_equal(fclose(out), 0);
}

static void a_journal_without_its_file_is_refused(void **state)
{
    (void)state;
    live l;
    char journal[96];
    snprintf(journal, sizeof journal, "%s-journal", path);
    put_five();
    copy_file(path, journal); /* nothing that SQLite would take for one */
    assert_int_equal(open_only(&l), 0);
    assert_int_equal(remove(path), 0);
    write_journal(journal, 5);
    assert_int_equal(open_only(&l), MULL_EIO);
    assert_logged(&l, "isn't there, but its journal");
    assert_false(is_there(""));
    assert_true(is_there("-journal"));
    assert_int_equal(remove(journal), 0);
    assert_int_equal(open_only(&l), 0);
}

/* As a power cut leaves it that comes while a file is made. */
static void a_journal_of_a_file_that_was_new_is_not(void **state)
{
    (void)state;
    live l;
    char journal[96];
    snprintf(journal, sizeof journal, "%s-journal", path);
    write_journal(journal, 0);
    assert_int_equal(open_only(&l), 0);
    assert_false(is_there("-journal"));
    assert_int_equal(user_version(), 2);
}

/* refused_as opens a file whose version was changed. */
static void refused_as(sqlite3 *db, int version, const char *why)
{
    char text[64];
    snprintf(text, sizeof text, "PRAGMA user_version = %d", version);
    sql(db, text);
    live l = {0};
    new_engine(&l);
    assert_int_equal(mull_engine_transport(l.engine, "t", url), MULL_EIO);
    if (!strstr(l.log, why) || strchr(l.log, '\n') != strrchr(l.log, '\n'))
        fail_msg("'%s' isn't one line with '%s'", l.log, why);
    mull_engine_close(l.engine, NULL, NULL);
    mull_policy_free(l.policy);
    assert_int_equal(atoi(ask(db, "PRAGMA user_version")), version);
    assert_int_equal(count(db, "owner IS NULL AND deliveries = 0"), 5);
}

static void other_versions_are_refused(void **state)
{
    (void)state;
    put_five();
    sqlite3 *db = look_in();
    int now = atoi(ask(db, "PRAGMA user_version"));
    refused_as(db, 0, "no version that was ever written");
    refused_as(db, -1, "no version that was ever written");
    refused_as(db, now + 1, "was written by a newer mulligan");
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(version_1_is_handled_to_its_end),
        TEST(version_1_stays_while_somebody_has_it_open),
        TEST(what_version_2_does_not_admit_is_repaired),
        TEST(an_upgrade_that_is_killed_leaves_one_version_or_the_other),
        TEST(version_1_stays_where_somebody_added_to_it),
        TEST(several_that_would_upgrade_it_at_once_all_open_it),
        TEST(an_upgrade_that_fails_leaves_no_other_file),
        TEST(a_journal_without_its_file_is_refused),
        TEST(a_journal_of_a_file_that_was_new_is_not),
        TEST(other_versions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
