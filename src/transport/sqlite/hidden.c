/* hidden.c: messages that no index shows: nobody has claimed them, and their count of deliveries is
 * below 0. Nobody here writes such a row, so one is only looked for after another connection wrote
 * to the file; and since that means to read all rows, a few at a time.
 */
#include "store.h"

static int search_slice(mull__store *store, int *over)
{
    sqlite3_stmt *read = mull__store_bind(store, MULL__SQL_FIND_HIDDEN, "i", store->search_from);
    int64_t last = INT64_MAX;
    if (sqlite3_step(read) == SQLITE_ROW && sqlite3_column_type(read, 0) != SQLITE_NULL) {
        last = sqlite3_column_int64(read, 0);
        store->state.hidden |= sqlite3_column_int(read, 1);
    }
    *over = last == INT64_MAX;
    store->search_from = *over ? INT64_MIN : last + 1;
    return sqlite3_reset(read);
}

int mull__store_search(mull__store *store, int *over)
{
    *over = store->version >= 0 && store->version == store->none_version;
    if (*over || store->version < 0)
        return SQLITE_OK;
    if (store->search_from == INT64_MIN)
        store->search_version = store->version;
    int code = search_slice(store, over);
    if (code == SQLITE_OK && *over && !store->state.hidden &&
        store->search_version == store->version)
        store->none_version = store->version;
    return code;
}

int mull__store_show(mull__store *store)
{
    if (!store->state.hidden)
        return SQLITE_OK;
    int code = mull__store_run(store, MULL__SQL_SHOW_HIDDEN, "");
    int count = sqlite3_changes(store->db);
    if (code != SQLITE_OK)
        return code;
    store->state.hidden = 0;
    if (count > 0)
        mull__store_log(store, MULL_WARNING,
                        "%d message(s) had fewer than 0 deliveries; they have none now", count);
    return SQLITE_OK;
}
