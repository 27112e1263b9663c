/* sqlite_spoiled.c: a file that somebody wrote to by hand, or that a repair has left with fewer
 * rows than it had. */
#include "sqlite_engine.h"

static const mull_error bad = {.size = sizeof bad, .type = "Bad", .message = "no"};

static void run_until_empty(live *l)
{
    mull_stop_when_empty(l->engine);
    assert_int_equal(mull_engine_run(l->engine), 0);
}

/* ---- Claims that are taken away -------------------------------------------------------------- */

static void lose_first(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    live *l = data;
    if (l->seen == 0)
        sql(l->db, "UPDATE messages SET owner = NULL");
    succeed(engine, call, message, data);
}

static void a_settle_without_its_claim_changes_nothing(void **state)
{
    (void)state;
    live l;
    open_live(&l, lose_first, 1);
    publish(&l, "a", "body");
    l.wanted = 2;
    run_live(&l);
    assert_int_equal(l.deliveries[0], 1);
    assert_int_equal(l.deliveries[1], 2);
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(l.engine, &counts);
    assert_int_equal(counts.done, 1);
    assert_int_equal(count(l.db, "1"), 0);
    close_live(&l);
}

static void lose_third(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    live *l = data;
    if (l->seen == 0)
        sql(l->db, "UPDATE messages SET owner = NULL WHERE id = 'c'");
    succeed(engine, call, message, data);
}

static void a_claim_that_is_lost_among_others_is_lost_alone(void **state)
{
    (void)state;
    put_five();
    live l;
    open_live(&l, lose_third, 5);
    l.wanted = 6;
    run_live(&l);
    assert_int_equal(l.deliveries[5], 2);
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(l.engine, &counts);
    assert_int_equal(counts.done, 5);
    assert_int_equal(count(l.db, "1"), 0);
    check_ranges(l.db);
    close_live(&l);
}

/* lose_for_good deletes its message, and fails with it. */
static void lose_for_good(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    live *l = data;
    note_message(l, message);
    sql(l->db, "DELETE FROM messages");
    mull_done(engine, call, &bad);
}

static void a_claim_that_is_lost_leaves_no_range(void **state)
{
    (void)state;
    live l;
    open_live(&l, lose_for_good, 1);
    publish(&l, "a", "body");
    l.wanted = 1;
    run_live(&l);
    check_ranges(l.db);
    close_live(&l);
}

static void claim_again(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    live *l = data;
    if (l->seen == 0)
        sql(l->db, "UPDATE waiting SET token = token + 1000");
    succeed(engine, call, message, data);
}

static void a_settle_is_conditional_on_its_token(void **state)
{
    (void)state;
    live l;
    open_live(&l, claim_again, 1);
    put_row(l.db, "a");
    sql(l.db, "UPDATE messages SET due_ms = 1"); /* so that it waits */
    l.wanted = 1;
    run_live(&l);
    assert_int_equal(count(l.db, "owner IS NOT NULL"), 1);
    close_live(&l);
    sqlite3 *db = look_in(); /* an owner that ends properly leaves nothing claimed or counted */
    assert_int_equal(count(db, "owner IS NULL AND deliveries = 0"), 1);
    assert_string_equal(ask(db, "SELECT count(*) FROM owners"), "0");
    sqlite3_close(db);
}

/* ---- Ranges that are lost ------------------------------------------------------------------- */

/* lose_ranges: as if "a" to "d" were claimed, "c" by somebody who is known, and their bodies were
 * large. */
static void lose_ranges(sqlite3 *db)
{
    sql(db, "INSERT INTO bodies SELECT number, zeroblob(5000) FROM ready;"
            "UPDATE ready SET body = NULL, large = number;"
            "INSERT INTO owners SELECT next, 1, 1 FROM counter;"
            "UPDATE counter SET next = next + 1;"
            "INSERT INTO ranges SELECT queue, number, number, owner FROM ready, owners"
            " WHERE id = 'c';"
            "UPDATE queues SET ready = 1, head = (SELECT number FROM ready WHERE id = 'd')");
}

static void what_was_claimed_by_nobody_knows_whom_is_free_again(void **state)
{
    (void)state;
    put_five();
    sqlite3 *db = look_in();
    lose_ranges(db);
    sqlite3_close(db);
    live l;
    open_live(&l, succeed, 5);
    run_until_empty(&l);
    assert_logged(&l, "3 message(s) were claimed, and their claims are lost; they are free again, "
                      "and that counts");
    assert_int_equal(l.seen, 5);
    assert_int_equal(l.most_suspects, 1);
    int64_t deaths = 0;
    for (int i = 0; i < 5; i++)
        deaths += l.deliveries[i] - 1;
    assert_int_equal(deaths, 4);
    check_shape(l.db);
    close_live(&l);
}

/* ---- Numbers that are taken ------------------------------------------------------------------ */

static void check_body(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    assert_int_equal(message->body_size, 5000);
    assert_int_equal(((const char *)message->body)[4999], *message->id);
    succeed(engine, call, message, data);
}

static void a_body_whose_number_is_taken_gets_another(void **state)
{
    (void)state;
    char body[5001] = {0};
    live l;
    open_live(&l, check_body, 5);
    sql(l.db, "INSERT INTO bodies SELECT next + column1, x'01' FROM counter,"
              " (VALUES (0), (1), (2), (4), (6))");
    for (const char *id = "abc"; *id; id++) {
        memset(body, *id, 5000);
        publish(&l, (char[]){*id, 0}, body);
    }
    run_until_empty(&l);
    assert_int_equal(l.published, 3);
    assert_int_equal(l.seen, 3);
    assert_string_equal(ask(l.db, "SELECT count(*) || ' ' || max(length(bytes)) FROM bodies"),
                        "5 1");
    close_live(&l);
}

static void a_body_stays_as_it_is(void **state)
{
    (void)state;
    put_five();
    sqlite3 *db = look_in();
    sql(db, "INSERT INTO bodies VALUES (7, x'01'), (8, x'01')");
    assert_refused(db, "INSERT OR REPLACE INTO bodies VALUES (7, x'02')", "a body stays as it is");
    assert_refused(db, "UPDATE bodies SET bytes = x'02'", "a body stays as it is");
    assert_refused(db, "UPDATE OR REPLACE bodies SET body = 8 WHERE body = 7",
                   "a body stays as it is");
    assert_string_equal(ask(db, "SELECT group_concat(hex(bytes)) FROM bodies"), "01,01");
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_settle_without_its_claim_changes_nothing),
        TEST(a_claim_that_is_lost_among_others_is_lost_alone),
        TEST(a_claim_that_is_lost_leaves_no_range),
        TEST(a_settle_is_conditional_on_its_token),
        TEST(a_body_whose_number_is_taken_gets_another),
        TEST(a_body_stays_as_it_is),
        TEST(what_was_claimed_by_nobody_knows_whom_is_free_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
