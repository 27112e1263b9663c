/* store.c: statements and transactions; see store.h. */
#include "store.h"

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
    for (int i = 0; i < MULL__STATEMENT_COUNT; i++) {
        sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
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

int mull__store_run(mull__store *store, mull__statement statement)
{
    sqlite3_step(store->statements[statement]);
    return sqlite3_reset(store->statements[statement]);
}

int mull__store_number(mull__store *store, int64_t *number)
{
    if (!store->state.next) {
        sqlite3_stmt *read = store->statements[MULL__SQL_COUNTER_READ];
        if (sqlite3_step(read) == SQLITE_ROW)
            store->state.next = sqlite3_column_int64(read, 0);
        int code = sqlite3_reset(read);
        if (code != SQLITE_OK)
            return code;
    }
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
    int code = mull__store_run(store, MULL__SQL_BEGIN);
    if (code != SQLITE_OK)
        return code;
    mull__lock_began(store);
    return mull__place_check(store);
}

static int write_counter(mull__store *store)
{
    sqlite3_bind_int64(store->statements[MULL__SQL_COUNTER_WRITE], 1, store->state.next);
    int code = mull__store_run(store, MULL__SQL_COUNTER_WRITE);
    if (code != SQLITE_OK || sqlite3_changes(store->db) > 0)
        return code;
    sqlite3_bind_int64(store->statements[MULL__SQL_COUNTER_NEW], 1, store->state.next);
    return mull__store_run(store, MULL__SQL_COUNTER_NEW);
}

int mull__store_commit(mull__store *store)
{
    int code = store->state.next_used ? write_counter(store) : SQLITE_OK;
    if (code != SQLITE_OK)
        return code;
    store->refused = store->publishes && !mull__wal_leaves_room(store);
    if (store->refused)
        return SQLITE_FULL;
    code = mull__store_run(store, MULL__SQL_COMMIT);
    return code == SQLITE_OK ? mull__place_confirm(store) : code;
}

void mull__store_rollback(mull__store *store)
{
    store->state = store->before;
    /* Some errors end the transaction by themselves. */
    if (!sqlite3_get_autocommit(store->db))
        mull__store_run(store, MULL__SQL_ROLLBACK);
}

void mull__bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}
