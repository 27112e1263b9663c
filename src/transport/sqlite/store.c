/* store.c: statements and transactions; see store.h. */
#include "store.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const texts[MULL__STATEMENT_COUNT] = {
#define TEXT(name, text) text,
    MULL__STATEMENTS(TEXT)
#undef TEXT
};

int mull__store_prepare(mull__store *store)
{
    for (int i = 0; i < MULL__STATEMENT_COUNT; i++) {
        int code = sqlite3_prepare_v3(store->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &store->statements[i], NULL);
        if (code != SQLITE_OK)
            return code;
    }
    return SQLITE_OK;
}

void mull__store_finalize(mull__store *store)
{
    for (int i = 0; i < MULL__STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
}

int64_t mull__store_now(mull__store *store)
{
    int64_t now = mull_port_now(store->port);
    int64_t ahead = mull_port_wall(store->port) - now;
    int64_t furthest = atomic_load(&store->ahead_ms);
    while (ahead > furthest)
        if (atomic_compare_exchange_weak(&store->ahead_ms, &furthest, ahead))
            return now + ahead;
    return now + furthest;
}

int64_t mull__store_due(mull__store *store, int64_t due_ms)
{
    int64_t left = due_ms - mull_port_wall(store->port);
    int64_t now = mull__store_now(store);
    if (due_ms <= 0 || left <= 0)
        return 0;
    return left > INT64_MAX - now ? INT64_MAX : now + left;
}

/* ---- Statements ------------------------------------------------------------------------------ */

static int bind(sqlite3_stmt *bound, const char *types, va_list values)
{
    int code = SQLITE_OK;
    for (int i = 0; types[i] && code == SQLITE_OK; i++)
        if (types[i] == 'i')
            code = sqlite3_bind_int64(bound, i + 1, va_arg(values, int64_t));
        else
            code = sqlite3_bind_text(bound, i + 1, va_arg(values, const char *), -1, SQLITE_STATIC);
    return code;
}

sqlite3_stmt *mull__store_bind(mull__store *store, mull__statement statement, const char *types,
                               ...)
{
    va_list values;
    va_start(values, types);
    bind(store->statements[statement], types, values); /* of values that are never too large */
    va_end(values);
    return store->statements[statement];
}

int mull__store_run(mull__store *store, mull__statement statement, const char *types, ...)
{
    va_list values;
    va_start(values, types);
    sqlite3_stmt *bound = store->statements[statement];
    int code = bind(bound, types, values);
    va_end(values);
    if (code != SQLITE_OK)
        return code;
    sqlite3_step(bound);
    return sqlite3_reset(bound);
}

int mull__store_ask(int64_t *answer, sqlite3_stmt *bound)
{
    if (sqlite3_step(bound) == SQLITE_ROW && sqlite3_column_type(bound, 0) != SQLITE_NULL)
        *answer = sqlite3_column_int64(bound, 0);
    return sqlite3_reset(bound);
}

int mull__store_end(sqlite3_stmt *bound, int code)
{
    int ended = sqlite3_reset(bound);
    return code != SQLITE_OK ? code : ended;
}

/* ---- Transactions ---------------------------------------------------------------------------- */

int mull__store_number(mull__store *store, int64_t *number)
{
    int code = SQLITE_OK;
    if (!store->state.next)
        code = mull__store_ask(&store->state.next,
                               mull__store_bind(store, MULL__SQL_COUNTER_READ, ""));
    if (code != SQLITE_OK)
        return code;
    *number = store->state.next++;
    store->state.next_used = 1;
    return SQLITE_OK;
}

int mull__store_begin(mull__store *store)
{
    store->state.next = 0;
    store->state.next_used = 0;
    store->publishes = store->refused = 0;
    store->before = store->state;
    int code = mull__store_run(store, MULL__SQL_BEGIN, "");
    if (code != SQLITE_OK)
        return code;
    mull__lock_transaction_began(store);
    return mull__db_files_check(store);
}

static int write_counter(mull__store *store)
{
    int code = mull__store_run(store, MULL__SQL_COUNTER_WRITE, "i", store->state.next);
    if (code != SQLITE_OK || sqlite3_changes(store->db) > 0)
        return code;
    return mull__store_run(store, MULL__SQL_COUNTER_NEW, "i", store->state.next);
}

int mull__store_commit(mull__store *store)
{
    int code = store->state.next_used ? write_counter(store) : SQLITE_OK;
    if (code != SQLITE_OK)
        return code;
    store->refused = store->publishes && !mull__wal_has_room(store);
    if (store->refused)
        return SQLITE_FULL;
    code = mull__store_run(store, MULL__SQL_COMMIT, "");
    return code == SQLITE_OK ? mull__db_files_confirm(store) : code;
}

void mull__store_rollback(mull__store *store)
{
    store->state = store->before;
    /* Some errors end the transaction by themselves. */
    if (!sqlite3_get_autocommit(store->db))
        mull__store_run(store, MULL__SQL_ROLLBACK, "");
}

void mull__store_log(mull__store *store, mull_level level, const char *format, ...)
{
    char line[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    mull_port_log(store->port, level, line);
}
