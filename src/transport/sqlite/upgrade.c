/* upgrade.c: a file of schema 1 becomes one of schema 2, in one transaction. Rows that schema 2
 * doesn't admit are repaired while they are copied, and each kind of repair is counted and told.
 *
 * Nobody else has the file open meanwhile: it is taken out of the write-ahead log first, which
 * SQLite refuses while there is another connection. So all owners are dead. The transaction has a
 * rollback journal: a crash leaves schema 1.
 */
#include "store.h"

#include <stdio.h>

/* Bodies stay where they are; those that are small go into rows, and then go. New numbers are above
 * all that there were, in the order of the line: two numbers of each message are sorted, not its
 * row, which the folder for temporary files may have no room for. No body has number 0. */
#define SPARE "2305843009213693952" /* half of MULL__NUMBERS_END: what is above isn't ours */
#define NUMBERED                                                                                   \
    " FROM (SELECT number AS old, row_number() OVER (ORDER BY seq, number) + " LAST " AS place"    \
    " FROM old_messages) CROSS JOIN old_messages AS o ON o.number = old"                           \
    " JOIN queues AS q ON q.name = o.queue"                                                        \
    " LEFT JOIN bodies AS b ON b.body = o.number"
#define LAST                                                                                       \
    "(SELECT max(0, coalesce((SELECT max(next) FROM old_counter WHERE next < " SPARE "), 0),"      \
    " coalesce((SELECT max(number) FROM old_messages WHERE number < " SPARE "), 0)))"
#define IN_ROW "length(b.bytes) <= " MULL__BODY_IN_ROW_TEXT
#define COPIED                                                                                     \
    "id, type, key, headers, published_ms, iif(" IN_ROW ", bytes, NULL),"                          \
    " iif(" IN_ROW ", NULL, o.number)"
#define IS_READY        "owner IS NULL AND deliveries <= 0 AND due_ms <= 0 AND dead_ms IS NULL"
#define OF_DEAD(column) " iif(dead_ms IS NULL, NULL, " column ")"

static const char *const before[] = {"ALTER TABLE messages RENAME TO old_messages;"
                                     "ALTER TABLE counter RENAME TO old_counter;"
                                     "DROP TABLE owners;"
                                     "ALTER TABLE bodies RENAME COLUMN body TO bytes;"
                                     "ALTER TABLE bodies RENAME COLUMN number TO body;",
                                     MULL__SCHEMA};

static const char *const after[] = {
    "DELETE FROM bodies WHERE body NOT IN (SELECT number FROM old_messages)",
    "INSERT INTO bodies SELECT 1 + " LAST ", bytes FROM bodies WHERE body = 0",
    "DELETE FROM bodies WHERE body = 0",
    "UPDATE old_messages SET number = 1 + " LAST " WHERE number = 0",
    "INSERT INTO queues (name) SELECT DISTINCT queue FROM old_messages",
    "INSERT INTO ready (queue, number, " MULL__COPIED ")"
    " SELECT q.queue, place, " COPIED NUMBERED " WHERE " IS_READY,
    "INSERT INTO waiting (number, queue, due_ms, deliveries, " MULL__COPIED
    ", dead_ms, dead_from, consumer, error_type, reason, rule)"
    " SELECT place, q.queue, max(due_ms, 0),"
    " max(0, min(deliveries, " MULL__DELIVERIES_MAX_TEXT ")), " COPIED
    ", dead_ms," OF_DEAD("coalesce(dead_from, name)") "," OF_DEAD(
        "iif(json_valid(headers), CAST(headers ->> '$.mulligan-consumer' AS TEXT), "
        "NULL)") "," OF_DEAD("error_type") "," OF_DEAD("reason") "," OF_DEAD("rule") NUMBERED
    " WHERE NOT (" IS_READY ")",
    "UPDATE queues SET ready = (SELECT count(*) FROM ready AS r WHERE r.queue = "
    "queues.queue)",
    "INSERT INTO counter (next) SELECT 1 + count(*) + " LAST " FROM old_messages",
    "DELETE FROM bodies WHERE length(bytes) <= " MULL__BODY_IN_ROW_TEXT,
    "DROP TABLE old_messages; DROP TABLE old_counter"};

/* What is found, before, and told, afterwards. */
static const struct {
    const char *which, *words;
} repairs[] = {
    {"messages", "message(s) were brought from schema 1 to schema 2"},
    {"messages WHERE owner IN (SELECT owner FROM owners)",
     "message(s) were claimed by a process that has died; they are free again, and that counts"},
    {"messages WHERE owner NOT IN (SELECT owner FROM owners)",
     "message(s) were claimed in the name of nobody; they are free again"},
    {"messages WHERE deliveries < 0", "message(s) had fewer than 0 deliveries; they have none now"},
    {"messages WHERE deliveries > " MULL__DELIVERIES_MAX_TEXT,
     "message(s) had more than " MULL__DELIVERIES_MAX_TEXT " deliveries; they have as many now"},
    {"messages WHERE due_ms < 0", "message(s) were due before 1970; they are due at once"},
    {"messages WHERE dead_ms IS NULL AND coalesce(dead_from, error_type, reason, rule) NOT NULL",
     "message(s) were no dead letters, but said why; they don't any more"},
    {"messages WHERE dead_ms NOT NULL AND dead_from IS NULL",
     "dead letter(s) didn't say from which queue; they are said to be from their own"},
    {"messages WHERE number NOT IN (SELECT number FROM bodies)",
     "message(s) have no body; they become dead letters that say so"},
    {"bodies WHERE number NOT IN (SELECT number FROM messages)", "body(s) of no message are gone"},
};
enum { REPAIRS = sizeof repairs / sizeof *repairs };

static int find_repairs(sqlite3 *db, int64_t counts[REPAIRS])
{
    char text[256];
    int code = SQLITE_OK;
    for (int i = 0; i < REPAIRS && code == SQLITE_OK; i++) {
        sqlite3_stmt *read;
        snprintf(text, sizeof text, "SELECT count(*) FROM %s", repairs[i].which);
        code = sqlite3_prepare_v2(db, text, -1, &read, NULL);
        if (code == SQLITE_OK && sqlite3_step(read) == SQLITE_ROW)
            counts[i] = sqlite3_column_int64(read, 0);
        if (code == SQLITE_OK)
            code = sqlite3_finalize(read);
    }
    return code;
}

static int run_all(sqlite3 *db, const char *const *texts, size_t count)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < count && code == SQLITE_OK; i++)
        code = sqlite3_exec(db, texts[i], NULL, NULL, NULL);
    return code;
}

static int copy(sqlite3 *db, int64_t counts[REPAIRS])
{
    char version[64];
    snprintf(version, sizeof version, "PRAGMA user_version = %d; COMMIT", MULL__SCHEMA_VERSION);
    int code = sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = find_repairs(db, counts);
    if (code == SQLITE_OK)
        code = run_all(db, before, sizeof before / sizeof *before);
    if (code == SQLITE_OK)
        code = run_all(db, after, sizeof after / sizeof *after);
    return code == SQLITE_OK ? sqlite3_exec(db, version, NULL, NULL, NULL) : code;
}

int mull__store_upgrade(mull__store *store)
{
    sqlite3 *db = store->db;
    int64_t counts[REPAIRS] = {0};
    int code = sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE",
                            NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = copy(db, counts);
    if (code != SQLITE_OK)
        return code; /* and the connection is closed, which undoes it */
    for (int i = 0; i < REPAIRS; i++)
        if (counts[i] > 0)
            mull__store_log(store, i == 0 ? MULL_INFO : MULL_WARNING, "%lld %s",
                            (long long)counts[i], repairs[i].words);
    return sqlite3_exec(db, "PRAGMA locking_mode = NORMAL; SELECT count(*) FROM sqlite_schema",
                        NULL, NULL, NULL);
}
