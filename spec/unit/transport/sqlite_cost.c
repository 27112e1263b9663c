/* sqlite_cost.c: what work costs in a file with very many queues, or by a clock that is far off:
 * not in time, but in steps of SQLite's machine. */
#include "sqlite_engine.h"

enum { QUEUES = 20000, STEP = 100 };

/* ---- Steps ----------------------------------------------------------------------------------- */

static atomic_int
    steps; /* of connections, but for the test's own, and for statements of fewer than STEP */

static int on_steps(void *data)
{
    (void)data;
    steps += STEP;
    return 0;
}

static int most_length; /* of a row; 0: as SQLite has it */

static int watch_connection(sqlite3 *db, const char **why, const void *api)
{
    (void)why, (void)api;
    if (most_length)
        sqlite3_limit(db, SQLITE_LIMIT_LENGTH, most_length);
    sqlite3_progress_handler(db, STEP, on_steps, NULL);
    return SQLITE_OK;
}

static void put_empty_queues(sqlite3 *db)
{
    char text[256];
    snprintf(text, sizeof text,
             "INSERT INTO queues (name) WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL"
             " SELECT value + 1 FROM n WHERE value < %d) SELECT 'empty' || value FROM n",
             QUEUES);
    sql(db, text);
}

/* ---- Looks at what others write -------------------------------------------------------------- */

static void on_row(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    live *l = data;
    if (l->seen == 0) {
        put_row(l->db, "written by another");
        steps = 0;
    }
    succeed(engine, call, message, data);
}

static void a_look_costs_what_the_queues_cost_that_are_read(void **state)
{
    (void)state;
    live l;
    open_live(&l, on_row, 1);
    sqlite3_progress_handler(l.db, 0, NULL, NULL);
    put_empty_queues(l.db);
    put_row(l.db, "first");
    l.wanted = 2;
    run_live(&l);
    assert_string_equal(l.last_id, "written by another");
    if (steps > QUEUES)
        fail_msg("%d steps", (int)steps);
    close_live(&l);
}

/* ---- What can never be settled --------------------------------------------------------------- */

/* fail_at_length with all but "last": a dead letter would be too large for the file. */
static void fail_at_length(mull_engine *engine, mull_call call, const mull_message *message,
                           void *data)
{
    char words[9000] = {0};
    mull_error error = {.size = sizeof error, .type = "Bad", .message = words};
    note_message(data, message);
    memset(words, 'x', sizeof words - 1);
    mull_done(engine, call, strcmp(message->id, "last") == 0 ? NULL : &error);
}

static void what_can_never_be_settled_leaves_room_for_others(void **state)
{
    (void)state;
    live l;
    put_five(); /* 4 bytes each */
    strcat(url, "?claimed=12");
    most_length = 8000;
    open_live(&l, fail_at_length, 1);
    most_length = 0;
    put_row(l.db, "last");
    l.wanted = 6;
    run_live(&l); /* ends, or the watchdog ends the test */
    assert_string_equal(l.last_id, "last");
    assert_logged(&l, "message e is parked");
    assert_int_equal(count(l.db, "owner IS NOT NULL"), 5);
    close_live(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_can_never_be_settled_leaves_room_for_others),
        TEST(a_look_costs_what_the_queues_cost_that_are_read),
    };
    sqlite3_auto_extension((void (*)(void))watch_connection);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
