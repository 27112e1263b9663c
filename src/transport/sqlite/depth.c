/* depth.c: how many messages there are, and those that no index shows.
 *
 * All depths that are asked for at once are counted in one transaction that only reads: nobody
 * waits for it, and what moves from one queue to another meanwhile is in one of them.
 *
 * Hidden messages: nobody has claimed them, and their count of deliveries is below 0, so that no
 * index shows them. Nobody here writes such a row, so one is only looked for after another
 * connection wrote to the file; and since that means to read all rows, a few at a time.
 */
#include "store.h"

#include <string.h>

static int count_queue(mull__store *store, const char *queue, mull_depth *depth)
{
    int64_t wall = mull_port_wall(store->port); /* first, so that it isn't beyond the other */
    int64_t now = mull__store_now(store);
    sqlite3_stmt *read = mull__store_bind(store, MULL__SQL_DEPTH, "ti", queue, now);
    *depth = (mull_depth){.next_due_ms = INT64_MAX};
    if (sqlite3_step(read) == SQLITE_ROW) {
        depth->ready = (uint64_t)sqlite3_column_int64(read, 0);
        depth->claimed = (uint64_t)sqlite3_column_int64(read, 1);
        depth->delayed = (uint64_t)sqlite3_column_int64(read, 2);
        if (depth->delayed)
            depth->next_due_ms = sqlite3_column_int64(read, 3) - now + wall;
    }
    return sqlite3_reset(read);
}

static mull__depth_job *counting_of(mull__link *link)
{
    return MULL__ENTRY(MULL__ENTRY(link, mull__job, link), mull__depth_job, job);
}

/* count_queues counts all; `*busy`: some are ready or claimed. */
static int count_queues(mull__store *store, mull__list *jobs, int *busy)
{
    for (mull__link *link = mull__list_first(jobs); link; link = mull__list_after(jobs, link)) {
        mull__depth_job *counting = counting_of(link);
        int code = count_queue(store, counting->queue, &counting->depth);
        counting->job.status = 0;
        if (code != SQLITE_OK)
            return code;
        *busy |= counting->depth.ready > 0 || counting->depth.claimed > 0;
    }
    return SQLITE_OK;
}

/* count_hidden: they are ready as soon as they have been shown. */
static int count_hidden(mull__store *store, mull__list *jobs)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_COUNT_HIDDEN];
    int code = SQLITE_OK;
    while (code == SQLITE_OK && sqlite3_step(read) == SQLITE_ROW) {
        const char *queue = (const char *)sqlite3_column_text(read, 0);
        store->state.hidden = 1;
        code = queue ? SQLITE_OK : SQLITE_NOMEM;
        for (mull__link *at = mull__list_first(jobs); queue && at; at = mull__list_after(jobs, at))
            if (strcmp(counting_of(at)->queue, queue) == 0)
                counting_of(at)->depth.ready += (uint64_t)sqlite3_column_int64(read, 1);
    }
    return mull__store_end(read, code);
}

static int count_all(mull__store *store, mull__list *jobs, int thoroughly)
{
    int busy = 0;
    int64_t version;
    int code = mull__store_version(store, &version);
    if (code == SQLITE_OK)
        code = count_queues(store, jobs, &busy);
    if (code != SQLITE_OK || !thoroughly || busy || version == store->none_version)
        return code;
    code = count_hidden(store, jobs);
    if (code == SQLITE_OK && !store->state.hidden)
        store->none_version = version;
    return code;
}

int mull__store_depths(mull__store *store, mull__list *jobs, int thoroughly)
{
    int code = mull__db_files_check(store);
    if (code == SQLITE_OK)
        code = mull__store_run(store, MULL__SQL_BEGIN_READING, "");
    if (code != SQLITE_OK)
        return code;
    code = count_all(store, jobs, thoroughly);
    int ended = mull__store_run(store, MULL__SQL_ROLLBACK, ""); /* nothing was written */
    return code != SQLITE_OK ? code : ended;
}

/* ---- Hidden messages ------------------------------------------------------------------------- */

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

int mull__store_find_hidden(mull__store *store, int *over)
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

int mull__store_repair_hidden(mull__store *store)
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
