/* place.c: whether the files of a database are still where they were. SQLite goes on with files
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
#include "base/alloc.h"
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* learn remembers which file is at a path. */
static int learn(mull__watched *file)
{
    struct stat status;
    if (stat(file->path, &status) != 0)
        return 0;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->known = 1;
    return 1;
}

/* mull__place_learn reads first: that makes SQLite open the log and its index. SQLite doesn't say
 * which files it has, so one that is replaced between that and this look isn't noticed. */
int mull__place_learn(mull__store *store)
{
    mull__place *place = &store->place;
    const char *path = sqlite3_db_filename(store->db, "main");
    size_t size = strlen(path) + sizeof "-shm";
    char *shm = mull__alloc(&store->allocator, size);
    if (!shm)
        return SQLITE_NOMEM;
    snprintf(shm, size, "%s-shm", path);
    place->shm.path = place->shm_path = shm;
    place->wal.path = sqlite3_filename_wal(path);
    int code = sqlite3_exec(store->db, "SELECT next FROM counter", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    struct stat status;
    if (stat(path, &status) != 0)
        return SQLITE_OK; /* an embedder's VFS that keeps it elsewhere */
    return learn(&place->wal) && learn(&place->shm) ? SQLITE_OK : SQLITE_READONLY_DBMOVED;
}

void mull__place_forget(mull__store *store)
{
    mull__free(&store->allocator, store->place.shm_path);
    store->place = (mull__place){0};
}

static int is_missing(int error)
{
    return error == ENOENT || error == ENOTDIR;
}

/* look gives a file's fate. Negative: nobody can say, an errno. */
static int look(const mull__watched *file)
{
    struct stat status;
    if (!file->known)
        return MULL__IN_PLACE;
    if (stat(file->path, &status) != 0)
        return is_missing(errno) ? MULL__MISSING : -errno;
    return status.st_ino == file->inode && status.st_dev == file->device ? MULL__IN_PLACE
                                                                         : MULL__REPLACED;
}

static int look_at_database(mull__store *store)
{
    int moved = 0;
    sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (!moved)
        return MULL__IN_PLACE;
    struct stat status;
    if (stat(sqlite3_db_filename(store->db, "main"), &status) == 0)
        return MULL__REPLACED;
    return is_missing(errno) ? MULL__MISSING : -errno;
}

int mull__place_check(mull__store *store)
{
    mull__place *place = &store->place;
    static const char *const ends[] = {"", "-wal", "-shm"};
    int fates[] = {look_at_database(store), look(&place->wal), look(&place->shm)};
    for (int i = 0; i < 3; i++) {
        if (fates[i] < 0) {
            place->error = -fates[i];
            return SQLITE_IOERR_FSTAT;
        }
        if (fates[i] == MULL__IN_PLACE)
            continue;
        place->fate = (mull__fate)fates[i];
        place->end = ends[i];
        return SQLITE_READONLY_DBMOVED;
    }
    if (!place->wal.known || mull__wal_is_whole(store))
        return SQLITE_OK;
    place->fate = MULL__CUT;
    place->end = ends[1];
    return SQLITE_READONLY_DBMOVED;
}

int mull__place_confirm(mull__store *store)
{
    int code = mull__place_check(store);
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

void mull__place_leave(mull__store *store)
{
    mull__place *place = &store->place;
    if (!sqlite3_get_autocommit(store->db))
        mull__store_rollback(store);
    if (!place->unsure && place->fate == MULL__MISSING && strcmp(place->end, "-wal") == 0 &&
        mull__wal_is_whole(store))
        save(store);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

void mull__place_words(const mull__store *store, char *why, size_t size)
{
    const mull__place *place = &store->place;
    const char *what =
        place->fate == MULL__REPLACED ? "replaced by another file" : "deleted or moved";
    if (place->unsure)
        snprintf(why, size,
                 "nobody can say whether it is still where it was (%s); make its path accessible, "
                 "and start again: what was claimed will be handed out again",
                 strerror(place->error));
    else if (!place->end)
        snprintf(why, size, "was moved while it was in use; put it back, and start again");
    else if (!place->end[0])
        snprintf(why, size,
                 "was %s while it was in use; put it back together with its -wal, or an older copy "
                 "without, and start again: what was claimed will be handed out again",
                 what);
    else if (strcmp(place->end, "-shm") == 0)
        snprintf(
            why, size,
            "its -shm was %s while it was in use; end all who use it, and start again: nothing "
            "is lost, and what was claimed will be handed out again",
            what);
    else if (place->fate == MULL__CUT)
        snprintf(
            why, size,
            "its -wal was cut short while it was in use, and with that what was not yet in the "
            "file is lost; end all who use it, and start again");
    else if (place->saved)
        snprintf(why, size,
                 "its -wal was %s while it was in use, and what was in it is saved into the file; "
                 "start again: what was claimed will be handed out again",
                 what);
    else
        snprintf(
            why, size,
            "its -wal was %s while it was in use, and with it what was not yet in the file; put "
            "it back if you can, end all who use it, and start again",
            what);
}
