/* owner.c: who claims, and what becomes of the claims of those that died.
 *
 * An owner is a row of `owners`, and lives as long as it holds its byte of the lock file: lock.c.
 * The file admits no claim of an owner without a row, and keeps the row of one that has claims.
 */
#include "base/alloc.h"
#include "store.h"

#include <unistd.h>

/* Clocks of processes differ by less. */
#define MARK_AHEAD_MS INT64_C(1000)

static int remember(mull__store *store, int64_t owner)
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
    store->others[store->other_count++] = (mull__other_owner){.owner = owner};
    return SQLITE_OK;
}

static int read_owners(mull__store *store)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_OWNERS];
    store->other_count = 0;
    int code = SQLITE_OK;
    while (code == SQLITE_OK && sqlite3_step(read) == SQLITE_ROW)
        if (!store->owner || sqlite3_column_int64(read, 0) != store->owner)
            code = remember(store, sqlite3_column_int64(read, 0));
    return mull__store_end(read, code);
}

static int insert_row(mull__store *store, int64_t owner)
{
    return mull__store_run(store, MULL__SQL_OWNER_NEW, "iii", owner, (int64_t)getpid(),
                           mull_port_wall(store->port));
}

/* insert_new takes the next number that no owner has: somebody else may have written a row. */
static int insert_new(mull__store *store, int64_t *owner)
{
    int code;
    do {
        code = mull__store_number(store, owner);
        if (code == SQLITE_OK)
            code = insert_row(store, *owner);
    } while (mull__is_taken(code));
    return code;
}

/* set_marks_back counts anew where a mark is far ahead of the clock, or each depth would. Whoever
 * set it goes by a clock that was set back, or did; so this is where owners come and go, and not in
 * each transaction, where two such owners would count by turns. */
static int set_marks_back(mull__store *store)
{
    return mull__store_run(store, MULL__SQL_MARK_BACK, "ii", MARK_AHEAD_MS,
                           mull_port_wall(store->port));
}

/* remove_owner frees an owner's claims, and takes out its row. `counted`: it died, so the hand-outs
 * count; 0: it leaves in order. */
static int remove_owner(mull__store *store, int64_t owner, int64_t counted)
{
    static const mull__statement steps[] = {MULL__SQL_OWNER_MOVE, MULL__SQL_OWNER_MOVED,
                                            MULL__SQL_OWNER_RANGES, MULL__SQL_OWNER_FREE};
    int code = SQLITE_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && code == SQLITE_OK; i++)
        code = mull__store_run(
            store, steps[i],
            steps[i] == MULL__SQL_OWNER_MOVE || steps[i] == MULL__SQL_OWNER_FREE ? "ii" : "i",
            owner, counted);
    if (code == SQLITE_OK)
        code = mull__store_run(store, MULL__SQL_OWNER_DELETE, "i", owner);
    return code == SQLITE_OK ? set_marks_back(store) : code;
}

/* free_nameless: what was claimed, and no range says by whom, as in a file that was repaired, is
 * claimed by nobody who lives to end it. It may be what killed its owner, so it counts as a death.
 */
static int free_nameless(mull__store *store, int *freed)
{
    int code = mull__store_run(store, MULL__SQL_NAMELESS_MOVE, "");
    *freed = code == SQLITE_OK ? sqlite3_changes(store->db) : 0;
    return *freed ? mull__store_run(store, MULL__SQL_NAMELESS_MOVED, "") : code;
}

static int become(mull__store *store, int *freed)
{
    int64_t owner = 0;
    int code = read_owners(store);
    if (code == SQLITE_OK)
        code = insert_new(store, &owner);
    if (code == SQLITE_OK)
        code = mull__lock_acquire(store, owner);
    if (code == SQLITE_OK)
        mull__lock_mark(store,
                        store->other_count ? store->others[store->other_count - 1].owner : 0);
    if (code == SQLITE_OK)
        code = free_nameless(store, freed);
    if (code == SQLITE_OK)
        code = set_marks_back(store);
    return code == SQLITE_OK ? mull__store_commit(store) : code;
}

int mull__store_register_owner(mull__store *store)
{
    int freed = 0, code = mull__store_begin(store);
    if (code == SQLITE_OK)
        code = become(store, &freed);
    if (code != SQLITE_OK) {
        mull__store_rollback(store);
        if (store->owner)
            mull__lock_release(store);
    } else if (freed) {
        mull__store_log(store, MULL_WARNING,
                        "%d message(s) were claimed, and their claims are lost; they are free "
                        "again, and that counts",
                        freed);
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

int mull__store_poll(mull__store *store, int *news)
{
    *news = 0;
    int64_t version = store->version;
    int code = mull__store_version(store, &version);
    if (code == SQLITE_OK && version != store->version) {
        *news |= MULL__NEWS_WRITTEN;
        code = read_owners(store);
    }
    if (code != SQLITE_OK)
        return code;
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

int mull__store_reap_dead_owners(mull__store *store)
{
    for (size_t i = 0; i < store->other_count; i++) {
        mull__other_owner *other = &store->others[i];
        /* It was dead when we looked, but the lock file may have been replaced since. */
        if (other->life != MULL__OWNER_DEAD ||
            mull__lock_owner_state(store, other->owner) != MULL__OWNER_DEAD)
            continue;
        int code = remove_owner(store, other->owner, 1);
        if (code != SQLITE_OK)
            return code;
        store->version = -1; /* the next look reads anew who is an owner */
        other->life = MULL__OWNER_ALIVE;
    }
    return SQLITE_OK;
}

void mull__store_unregister_owner(mull__store *store)
{
    if (!store->owner)
        return;
    int code = mull__store_begin(store);
    if (code == SQLITE_OK)
        code = remove_owner(store, store->owner, 0);
    if (code == SQLITE_OK)
        code = mull__store_commit(store);
    /* Where that fails, whoever comes next sees that nobody holds the byte. */
    if (code != SQLITE_OK)
        mull__store_rollback(store);
    mull__lock_release(store);
}
