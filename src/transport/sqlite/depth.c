/* depth.c: how many messages there are.
 *
 * All depths that are asked for at once are read in one transaction that only reads: nobody waits
 * for it, and what moves from one queue to another meanwhile is in one of them. What a depth costs
 * depends on what is claimed, and on what came to be due since the queue was last written to.
 */
#include "store.h"

static int read_depth(mull__store *store, const char *queue, mull_depth *depth)
{
    int64_t wall = mull_port_wall(store->port); /* first, so that it isn't beyond the other */
    int64_t now = mull__store_now(store);
    sqlite3_stmt *read = mull__store_bind(store, MULL__SQL_DEPTH, "ti", queue, now);
    *depth = (mull_depth){.next_due_ms = INT64_MAX};
    if (sqlite3_step(read) == SQLITE_ROW) {
        depth->ready = (uint64_t)sqlite3_column_int64(read, 1);
        depth->delayed = (uint64_t)sqlite3_column_int64(read, 2);
        depth->claimed = (uint64_t)sqlite3_column_int64(read, 3);
        if (depth->delayed)
            depth->next_due_ms = sqlite3_column_int64(read, 4) - now + wall;
    }
    return sqlite3_reset(read);
}

static int read_depths(mull__store *store, mull__list *jobs)
{
    int code = SQLITE_OK;
    mull__link *link = mull__list_first(jobs);
    for (; link && code == SQLITE_OK; link = mull__list_after(jobs, link)) {
        mull__depth_job *asked =
            MULL__ENTRY(MULL__ENTRY(link, mull__job, link), mull__depth_job, job);
        code = read_depth(store, asked->queue, &asked->depth);
        asked->job.status = 0;
    }
    return code;
}

int mull__store_depths(mull__store *store, mull__list *jobs)
{
    int code = mull__db_files_check(store);
    if (code == SQLITE_OK)
        code = mull__store_run(store, MULL__SQL_BEGIN_READING, "");
    if (code != SQLITE_OK)
        return code;
    code = read_depths(store, jobs);
    int ended = mull__store_run(store, MULL__SQL_ROLLBACK, ""); /* nothing was written */
    return code != SQLITE_OK ? code : ended;
}
