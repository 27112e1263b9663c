/* owner.c: who claims, and what becomes of the claims of those that died.
 *
 * An owner is a row of `owners`, and lives as long as it holds its byte of the lock file: lock.c.
 * Whatever owner a message names, be there such a row or not, is asked for in the same way, so that
 * no message waits for somebody who isn't there.
 */
#include "base/alloc.h"
#include "store.h"

#include <stdio.h>
#include <unistd.h>

static int remember(mull__store *store, int64_t owner, int listed)
{
    if (store->other_count == store->other_room) {
        size_t room = store->other_room ? store->other_room * 2 : 8;
        mull__owner_seen *others =
            mull__grow(&store->allocator, store->others, room, sizeof *others);
        if (!others)
            return SQLITE_NOMEM;
        store->others = others;
        store->other_room = room;
    }
    store->others[store->other_count++] = (mull__owner_seen){.owner = owner, .listed = listed};
    return SQLITE_OK;
}

/* The columns of MULL__SQL_OWNERS. */
enum { OWNER, LISTED, CLAIMS };

static int read_owner(mull__store *store, sqlite3_stmt *row)
{
    int64_t owner = sqlite3_column_int64(row, OWNER);
    if (!store->owner || owner != store->owner)
        return remember(store, owner, sqlite3_column_int(row, LISTED));
    store->claims_seen = sqlite3_column_int(row, CLAIMS);
    return SQLITE_OK;
}

static int read_owners(mull__store *store)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_OWNERS];
    store->other_count = 0;
    store->claims_seen = 0;
    int code = SQLITE_OK;
    while (code == SQLITE_OK && sqlite3_step(read) == SQLITE_ROW)
        code = read_owner(store, read);
    int ended = sqlite3_reset(read);
    return code != SQLITE_OK ? code : ended;
}

/* insert_row: an owner of 0 gets a new number. */
static int insert_row(mull__store *store, int64_t owner)
{
    sqlite3_stmt *insert = store->statements[MULL__SQL_OWNER_NEW];
    if (owner)
        sqlite3_bind_int64(insert, 1, owner);
    else
        sqlite3_bind_null(insert, 1);
    sqlite3_bind_int64(insert, 2, getpid());
    sqlite3_bind_int64(insert, 3, mull_port_wall(store->port));
    return mull__store_run(store, MULL__SQL_OWNER_NEW);
}

/* make_room: where somebody wrote an owner with the highest number, SQLite has none for a new one.
 */
static int make_room(mull__store *store)
{
    int code = mull__store_run(store, MULL__SQL_OWNERS_TOO_HIGH);
    return code == SQLITE_OK ? mull__store_run(store, MULL__SQL_OWNERS_ANEW) : code;
}

/* tell_freed tells of claims that nobody made. */
static void tell_freed(mull__store *store, int64_t owner, int count)
{
    char line[160];
    if (count == 0)
        return;
    snprintf(line, sizeof line,
             "%d message(s) were claimed in the name of owner %lld, who has no such claim; they "
             "are free again",
             count, (long long)owner);
    mull_port_log(store->port, MULL_WARNING, line);
}

/* free_unclaimed frees what is claimed in our name and was never claimed by us. */
static int free_unclaimed(mull__store *store)
{
    sqlite3_bind_int64(store->statements[MULL__SQL_OWNER_FREE], 1, store->owner);
    int code = mull__store_run(store, MULL__SQL_OWNER_FREE);
    if (code == SQLITE_OK)
        tell_freed(store, store->owner, sqlite3_changes(store->db));
    store->claims_seen = 0;
    store->version = -1; /* so that the next look reads them anew */
    return code;
}

static int64_t highest_other(const mull__store *store)
{
    int64_t highest = 0;
    for (size_t i = 0; i < store->other_count; i++)
        if (store->others[i].owner > highest)
            highest = store->others[i].owner;
    return highest;
}

static int become(mull__store *store)
{
    int code = make_room(store);
    if (code == SQLITE_OK)
        code = read_owners(store);
    if (code == SQLITE_OK)
        code = insert_row(store, 0);
    if (code == SQLITE_OK)
        code = mull__lock_hold(store, sqlite3_last_insert_rowid(store->db));
    if (code == SQLITE_OK)
        code = free_unclaimed(store);
    if (code == SQLITE_OK)
        mull__lock_mark(store, highest_other(store));
    return code == SQLITE_OK ? mull__store_commit(store) : code;
}

int mull__store_own(mull__store *store)
{
    int code = mull__store_begin(store);
    if (code == SQLITE_OK)
        code = become(store);
    if (code != SQLITE_OK) {
        mull__store_rollback(store);
        if (store->owner)
            mull__lock_drop(store);
    }
    return code;
}

int mull__store_stay(mull__store *store)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_OWNER_THERE];
    sqlite3_bind_int64(read, 1, store->owner);
    int there = sqlite3_step(read) == SQLITE_ROW;
    int code = sqlite3_reset(read);
    return code == SQLITE_OK && !there ? insert_row(store, store->owner) : code;
}

int mull__store_version(mull__store *store, int64_t *version)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_VERSION];
    if (sqlite3_step(read) == SQLITE_ROW)
        *version = sqlite3_column_int64(read, 0);
    return sqlite3_reset(read);
}

int mull__store_look(mull__store *store, int idle, int *news)
{
    *news = 0;
    int64_t version = store->version;
    int code = mull__store_version(store, &version);
    if (code == SQLITE_OK && (version != store->version || (idle && store->claims_seen)))
        code = read_owners(store);
    if (code != SQLITE_OK)
        return code;
    if (version != store->version)
        *news |= MULL__WRITTEN;
    if (idle && store->claims_seen)
        *news |= MULL__FREED;
    store->version = version;
    /* The highest first: who waits for that one waits for all of them. */
    for (size_t i = store->other_count; i-- > 0;) {
        mull__owner_seen *other = &store->others[i];
        other->life = mull__lock_ask(store, other->owner);
        if (other->life == MULL__DEAD || other->life == MULL__TO_BE_ASKED)
            *news |= MULL__FREED;
    }
    return SQLITE_OK;
}

/* free_claims ends an owner: `how` is OWNER_FREE for one that died, whose claims count as
 * hand-outs, or OWNER_RETURN for one that leaves in order, whose claims don't. */
static int free_claims(mull__store *store, int64_t owner, mull__statement how, int *freed)
{
    sqlite3_bind_int64(store->statements[how], 1, owner);
    int code = mull__store_run(store, how);
    if (code != SQLITE_OK)
        return code;
    *freed = sqlite3_changes(store->db);
    sqlite3_bind_int64(store->statements[MULL__SQL_OWNER_DELETE], 1, owner);
    return mull__store_run(store, MULL__SQL_OWNER_DELETE);
}

int mull__store_bury(mull__store *store, int idle)
{
    for (size_t i = 0; i < store->other_count; i++) {
        mull__owner_seen *other = &store->others[i];
        /* It was dead when we looked, but the lock file may have been replaced since. */
        if (other->life != MULL__DEAD || mull__lock_ask(store, other->owner) != MULL__DEAD)
            continue;
        int freed;
        int code = free_claims(store, other->owner, MULL__SQL_OWNER_FREE, &freed);
        if (code != SQLITE_OK)
            return code;
        if (!other->listed)
            tell_freed(store, other->owner, freed);
        other->life = MULL__ALIVE;
        store->version = -1; /* so that the next look reads who is left */
    }
    return idle && store->claims_seen ? free_unclaimed(store) : SQLITE_OK;
}

void mull__store_disown(mull__store *store)
{
    if (!store->owner)
        return;
    int freed;
    int code = mull__store_begin(store);
    if (code == SQLITE_OK)
        code = free_claims(store, store->owner, MULL__SQL_OWNER_RETURN, &freed);
    if (code == SQLITE_OK)
        code = mull__store_commit(store);
    /* Where that fails, whoever comes next sees that nobody holds the byte. */
    if (code != SQLITE_OK)
        mull__store_rollback(store);
    mull__lock_drop(store);
}
