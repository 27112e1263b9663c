/* owner.c: who claims, and what becomes of the claims of those that died.
 *
 * An owner is a row of `owners`, and lives as long as it holds its byte of the lock file: lock.c.
 * Whatever owner a message names, be there such a row or not, is asked for in the same way, so that
 * no message waits for somebody who isn't there.
 */
#include "base/alloc.h"
#include "store.h"

#include <unistd.h>

static int remember(mull__store *store, int64_t owner, int listed)
{
    if (store->other_count == store->other_room) {
        size_t room = store->other_room ? store->other_room * 2 : 8;
        mull__other_owner *others =
            mull__grow(&store->allocator, store->others, room, sizeof *others);
        if (!others)
            return SQLITE_NOMEM;
        store->others = others;
        store->other_room = room;
    }
    store->others[store->other_count++] = (mull__other_owner){.owner = owner, .listed = listed};
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
    return mull__store_end(read, code);
}

/* insert_row: an owner of 0 gets a new number. */
static int insert_row(mull__store *store, int64_t owner)
{
    return mull__store_run(store, MULL__SQL_OWNER_NEW, "iii", owner, (int64_t)getpid(),
                           mull_port_wall(store->port));
}

/* make_room: where somebody wrote an owner with the highest number, SQLite has none for a new one.
 */
static int make_room(mull__store *store)
{
    int code = mull__store_run(store, MULL__SQL_OWNERS_TOO_HIGH, "");
    return code == SQLITE_OK ? mull__store_run(store, MULL__SQL_OWNERS_ANEW, "") : code;
}

/* free_claims: `how` is OWNER_FREE for an owner that died, whose claims count as hand-outs, or
 * OWNER_RETURN for one that leaves in order, whose claims don't. `unmade`: nobody made them, which
 * is told. The next look reads anew who claims what. */
static int free_claims(mull__store *store, int64_t owner, mull__statement how, int unmade)
{
    int code = mull__store_run(store, how, "i", owner);
    int count = sqlite3_changes(store->db);
    if (code == SQLITE_OK && unmade && count > 0)
        mull__store_log(store, MULL_WARNING,
                        "%d message(s) were claimed in the name of owner %lld, who has no such "
                        "claim; they are free again",
                        count, (long long)owner);
    store->version = -1;
    return code;
}

/* free_unclaimed frees what is claimed in our name and was never claimed by us. */
static int free_unclaimed(mull__store *store)
{
    store->claims_seen = 0;
    return free_claims(store, store->owner, MULL__SQL_OWNER_FREE, 1);
}

static int become(mull__store *store)
{
    int code = make_room(store);
    if (code == SQLITE_OK)
        code = read_owners(store);
    if (code == SQLITE_OK)
        code = insert_row(store, 0);
    if (code == SQLITE_OK)
        code = mull__lock_acquire(store, sqlite3_last_insert_rowid(store->db));
    if (code == SQLITE_OK)
        code = free_unclaimed(store);
    if (code == SQLITE_OK)
        mull__lock_mark(store,
                        store->other_count ? store->others[store->other_count - 1].owner : 0);
    return code == SQLITE_OK ? mull__store_commit(store) : code;
}

int mull__store_register_owner(mull__store *store)
{
    int code = mull__store_begin(store);
    if (code == SQLITE_OK)
        code = become(store);
    if (code != SQLITE_OK) {
        mull__store_rollback(store);
        if (store->owner)
            mull__lock_release(store);
    }
    return code;
}

int mull__store_ensure_owner_row(mull__store *store)
{
    int64_t there = 0;
    int code =
        mull__store_ask(&there, mull__store_bind(store, MULL__SQL_OWNER_THERE, "i", store->owner));
    return code == SQLITE_OK && !there ? insert_row(store, store->owner) : code;
}

int mull__store_version(mull__store *store, int64_t *version)
{
    return mull__store_ask(version, mull__store_bind(store, MULL__SQL_VERSION, ""));
}

int mull__store_poll(mull__store *store, int idle, int *news)
{
    *news = 0;
    int64_t version = store->version;
    int code = mull__store_version(store, &version);
    if (code == SQLITE_OK && (version != store->version || (idle && store->claims_seen)))
        code = read_owners(store);
    if (code != SQLITE_OK)
        return code;
    if (version != store->version)
        *news |= MULL__NEWS_WRITTEN;
    if (idle && store->claims_seen)
        *news |= MULL__NEWS_OWNER_DIED;
    store->version = version;
    /* The highest first: who waits for that one waits for all of them. */
    for (size_t i = store->other_count; i-- > 0;) {
        mull__other_owner *other = &store->others[i];
        other->life = mull__lock_owner_state(store, other->owner);
        if (other->life == MULL__OWNER_DEAD || other->life == MULL__OWNER_UNCHECKED)
            *news |= MULL__NEWS_OWNER_DIED;
    }
    return SQLITE_OK;
}

int mull__store_reap_dead_owners(mull__store *store, int idle)
{
    for (size_t i = 0; i < store->other_count; i++) {
        mull__other_owner *other = &store->others[i];
        /* It was dead when we looked, but the lock file may have been replaced since. */
        if (other->life != MULL__OWNER_DEAD ||
            mull__lock_owner_state(store, other->owner) != MULL__OWNER_DEAD)
            continue;
        int code = free_claims(store, other->owner, MULL__SQL_OWNER_FREE, !other->listed);
        if (code == SQLITE_OK)
            code = mull__store_run(store, MULL__SQL_OWNER_DELETE, "i", other->owner);
        if (code != SQLITE_OK)
            return code;
        other->life = MULL__OWNER_ALIVE;
    }
    return idle && store->claims_seen ? free_unclaimed(store) : SQLITE_OK;
}

void mull__store_unregister_owner(mull__store *store)
{
    if (!store->owner)
        return;
    int code = mull__store_begin(store);
    if (code == SQLITE_OK)
        code = free_claims(store, store->owner, MULL__SQL_OWNER_RETURN, 0);
    if (code == SQLITE_OK)
        code = mull__store_run(store, MULL__SQL_OWNER_DELETE, "i", store->owner);
    if (code == SQLITE_OK)
        code = mull__store_commit(store);
    /* Where that fails, whoever comes next sees that nobody holds the byte. */
    if (code != SQLITE_OK)
        mull__store_rollback(store);
    mull__lock_release(store);
}
