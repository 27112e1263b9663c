/* owner.c: who claims, and whether it is alive.
 *
 * An owner is a row of `owners`. As long as it lives it holds the byte at its number of the lock
 * file, by a lock that belongs to the open file: the kernel lets go of it when the process ends,
 * however it ends, and a process that merely stands still keeps it.
 */
#include "base/alloc.h"
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct flock byte_at(int64_t offset)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
}

const char *mull__lock_open(mull__store *store, unsigned mode)
{
    store->lock = open(store->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, (mode_t)mode);
    if (store->lock < 0)
        return strerror(errno);
    struct flock lock = byte_at(0);
    if (fcntl(store->lock, F_OFD_GETLK, &lock) != 0)
        return strerror(errno);
    return NULL;
}

/* is_dead: where the kernel can't say, nobody's claims are taken away. */
static int is_dead(const mull__store *store, int64_t owner)
{
    struct flock lock = byte_at(owner);
    return fcntl(store->lock, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

/* hold_byte locks our byte before anyone can see our row. */
static int hold_byte(mull__store *store)
{
    int64_t owner = sqlite3_last_insert_rowid(store->db);
    struct flock lock = byte_at(owner);
    if (fcntl(store->lock, F_OFD_SETLK, &lock) != 0)
        return SQLITE_IOERR_LOCK;
    store->owner = owner;
    return SQLITE_OK;
}

static void drop_byte(mull__store *store)
{
    struct flock lock = byte_at(store->owner);
    lock.l_type = F_UNLCK;
    fcntl(store->lock, F_OFD_SETLK, &lock);
    store->owner = 0;
}

int mull__store_own(mull__store *store)
{
    int code = mull__store_begin(store);
    if (code != SQLITE_OK)
        return code;
    sqlite3_stmt *insert = store->statements[MULL__SQL_OWNER_NEW];
    sqlite3_bind_int64(insert, 1, getpid());
    sqlite3_bind_int64(insert, 2, mull_port_wall(store->port));
    code = mull__store_run(store, MULL__SQL_OWNER_NEW);
    if (code == SQLITE_OK)
        code = hold_byte(store);
    if (code == SQLITE_OK)
        code = mull__store_commit(store);
    if (code != SQLITE_OK) {
        mull__store_rollback(store);
        if (store->owner)
            drop_byte(store);
    }
    return code;
}

static int remember(mull__store *store, int64_t owner)
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
    store->others[store->other_count++] = (mull__owner_seen){.owner = owner};
    return SQLITE_OK;
}

static int read_others(mull__store *store)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_OWNERS];
    sqlite3_bind_int64(read, 1, store->owner);
    store->other_count = 0;
    int code = SQLITE_OK;
    while (code == SQLITE_OK && sqlite3_step(read) == SQLITE_ROW)
        code = remember(store, sqlite3_column_int64(read, 0));
    int ended = sqlite3_reset(read);
    return code != SQLITE_OK ? code : ended;
}

static int read_version(mull__store *store, int64_t *version)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_VERSION];
    if (sqlite3_step(read) == SQLITE_ROW)
        *version = sqlite3_column_int64(read, 0);
    return sqlite3_reset(read);
}

int mull__store_look(mull__store *store, int *news)
{
    *news = 0;
    int64_t version = store->version;
    int code = read_version(store, &version);
    if (code != SQLITE_OK)
        return code;
    if (version != store->version) {
        code = read_others(store);
        if (code != SQLITE_OK)
            return code;
        store->version = version;
        *news = 1;
    }
    for (size_t i = 0; i < store->other_count; i++) {
        store->others[i].dead = is_dead(store, store->others[i].owner);
        *news |= store->others[i].dead;
    }
    return SQLITE_OK;
}

/* free_claims ends an owner: `how` is OWNER_FREE for one that died, whose claims count as
 * hand-outs, or OWNER_RETURN for one that leaves in order, whose claims don't. */
static int free_claims(mull__store *store, int64_t owner, mull__statement how)
{
    sqlite3_bind_int64(store->statements[how], 1, owner);
    int code = mull__store_run(store, how);
    if (code != SQLITE_OK)
        return code;
    sqlite3_bind_int64(store->statements[MULL__SQL_OWNER_DELETE], 1, owner);
    return mull__store_run(store, MULL__SQL_OWNER_DELETE);
}

int mull__store_bury(mull__store *store)
{
    for (size_t i = 0; i < store->other_count; i++) {
        if (!store->others[i].dead)
            continue;
        int code = free_claims(store, store->others[i].owner, MULL__SQL_OWNER_FREE);
        if (code != SQLITE_OK)
            return code;
        store->others[i].dead = 0;
        store->version = -1; /* so that the next look reads who is left */
    }
    return SQLITE_OK;
}

void mull__store_disown(mull__store *store)
{
    if (!store->owner)
        return;
    int code = mull__store_begin(store);
    if (code == SQLITE_OK)
        code = free_claims(store, store->owner, MULL__SQL_OWNER_RETURN);
    if (code == SQLITE_OK)
        code = mull__store_commit(store);
    /* Where that fails, whoever comes next sees that nobody holds the byte. */
    if (code != SQLITE_OK)
        mull__store_rollback(store);
    drop_byte(store);
}
