/* db_files.c: whether the files of a database are still where they were. SQLite goes on with files
 * that were deleted, moved or replaced, or with a log that was cut short, and what it commits then
 * is gone with them; so each transaction looks twice:
 *
 *   BEGIN, look ── changes ── COMMIT, look ── answers
 *
 * What is answered as safe was on the disk, in files that were found in their places afterwards.
 * Where it can't be said after a commit, what was in it is neither safe nor undone, so it ends as
 * if they were gone. The first look only keeps harm small: who opened the file after its log was
 * replaced writes to another one, and the index of both is the same.
 */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const ends[] = {"", "-wal", "-shm"};

static int look(const mull__store *store, const char *end, struct stat *status)
{
    char path[4096]; /* SQLite takes shorter ones only */
    snprintf(path, sizeof path, "%s%s", sqlite3_db_filename(store->db, "main"), end);
    return stat(path, status);
}

/* mull__db_files_record reads first: that makes SQLite open the log and its index. SQLite doesn't
 * say which of those it has, so one that is replaced between that and this look isn't noticed. */
int mull__db_files_record(mull__store *store)
{
    int code = sqlite3_exec(store->db, "SELECT next FROM counter", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    int moved = 0;
    struct stat status;
    for (int i = 0; i < MULL__FILES; i++) {
        store->place.known = look(store, ends[i], &status) == 0;
        if (!store->place.known && i > 0)
            return SQLITE_READONLY_DBMOVED;
        if (!store->place.known)
            break; /* an embedder's VFS that keeps it elsewhere */
        store->place.devices[i] = status.st_dev;
        store->place.inodes[i] = status.st_ino;
    }
    sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved ? SQLITE_READONLY_DBMOVED : SQLITE_OK;
}

static int gone(mull__db_files *place, mull__fate fate, const char *end)
{
    place->fate = fate;
    place->end = end;
    return SQLITE_READONLY_DBMOVED;
}

int mull__db_files_check(mull__store *store)
{
    mull__db_files *place = &store->place;
    for (int i = 0; place->known && i < MULL__FILES; i++) {
        struct stat now;
        if (look(store, ends[i], &now) == 0) {
            if (now.st_ino != place->inodes[i] || now.st_dev != place->devices[i])
                return gone(place, MULL__REPLACED, ends[i]);
        } else if (errno == ENOENT || errno == ENOTDIR) {
            return gone(place, MULL__FILE_MISSING, ends[i]);
        } else {
            place->error = errno;
            return SQLITE_IOERR_FSTAT;
        }
    }
    return !place->known || mull__wal_is_intact(store) ? SQLITE_OK
                                                       : gone(place, MULL__FILE_TRUNCATED, "-wal");
}

int mull__db_files_confirm(mull__store *store)
{
    int code = mull__db_files_check(store);
    store->place.unsure = code == SQLITE_IOERR_FSTAT;
    return code;
}

/* save brings what is in a log without a name into the file, where it can be found. */
static void save(mull__store *store)
{
    int in_log = -1, saved = -1;
    int code =
        sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_FULL, &in_log, &saved);
    store->place.saved = code == SQLITE_OK && in_log == saved;
}

void mull__db_files_abandon(mull__store *store)
{
    mull__db_files *place = &store->place;
    if (!sqlite3_get_autocommit(store->db))
        mull__store_rollback(store);
    if (!place->unsure && place->end && strcmp(place->end, "-wal") == 0 &&
        place->fate == MULL__FILE_MISSING && mull__wal_is_intact(store))
        save(store);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

void mull__db_files_describe(const mull__store *store, char *why, size_t size)
{
    const mull__db_files *place = &store->place;
    const char *what =
        place->fate == MULL__REPLACED ? "replaced by another file" : "deleted or moved";
    if (place->unsure)
        snprintf(why, size,
                 "nobody can say whether it is still where it was (%s); make its path accessible, "
                 "and start again: what was claimed will be handed out again",
                 strerror(place->error));
    else if (!place->end)
        snprintf(why, size, "was moved while it was in use; put it back, and start again");
    else if (place->fate == MULL__FILE_TRUNCATED)
        snprintf(why, size,
                 "its -wal was cut short while it was in use, and with that what was not yet in "
                 "the file is lost; end all who use it, and start again");
    else if (!place->end[0])
        snprintf(why, size,
                 "was %s while it was in use; put it back together with its -wal, or an older copy "
                 "without, and start again: what was claimed will be handed out again",
                 what);
    else
        snprintf(why, size, "its %s was %s while it was in use%s", place->end, what,
                 strcmp(place->end, "-shm") == 0
                     ? "; end all who use it, and start again: nothing is lost, and what was "
                       "claimed will be handed out again"
                 : place->saved
                     ? ", and what was in it is saved into the file; start again: what was claimed "
                       "will be handed out again"
                     : ", and with it what was not yet in the file; put it back if you can, end "
                       "all who use it, and start again");
}
