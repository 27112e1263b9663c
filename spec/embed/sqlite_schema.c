/* sqlite_schema.c: databases that another version of mulligan wrote. A file of each old version is
 * kept under spec/transport as SQL: what is in it comes to its end. What no version wrote, and what
 * a newer one did, is refused and left as it was. */
#include "sqlite_engine.h"

#include <sys/stat.h>

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
    /* What is due, what is new; and once it is sure that their owner is dead, what it had. */
    assert_string_equal(orders.text, "later body of later 1 1;delayed delayed 1 0;- no id 1 0;"
                                     "kills body of kills 2 0;fresh fresh 2 0;");
    assert_string_equal(dead.text, "dead body of dead 1 0;");
    sqlite3 *db = look_in();
    assert_int_equal(count(db, "1"), 0);
    assert_string_equal(ask(db, "SELECT count(*) FROM owners"), "0");
    sqlite3_close(db);
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
        TEST(other_versions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
