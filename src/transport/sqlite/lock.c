/* lock.c: the lock file, FILE-lock.
 *
 * As long as an owner lives it holds the byte at its number, by a lock that belongs to the open
 * file: the kernel lets go of it when the process ends, however it ends, and a process that merely
 * stands still keeps it.
 *
 * Somebody may delete the file, or put another in its place. Then:
 *
 *   - Each owner, which looks several times a second, takes its byte of the file that is there now,
 *     made anew where there is none. Several who make it at once get the same file. An earlier one
 *     that has a name somewhere may come back, so it keeps its byte there, too.
 *   - Nobody is declared dead by a file that isn't the one at the path, or that isn't *marked* up
 *     to its number: owners that live may not have got to it yet. A new owner marks it up to itself
 *     if all before it are within the mark. So does an owner that has waited MARK_MS for those that
 *     are not, counted from its next transaction: an owner that is busy with one can't look.
 *     Numbers only grow, so an owner that came while the file was away is above its mark.
 *   - The mark begins with the file's inode number, so a copy that is put in its place has none.
 *
 * An owner that doesn't get to it within that time, stopped or stuck, loses its claims: their
 * settles find the tokens gone, and the messages were handed out again.
 */
#include "base/clock.h"
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARK_MS = 1000 };

static const char notice[] =
    "Whoever uses the database beside this file holds locks on it: leave it where it is.\n";

/* ---- Bytes ----------------------------------------------------------------------------------- */

static struct flock byte_at(int64_t offset)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1};
}

static int take(int file, int64_t owner)
{
    struct flock lock = byte_at(owner);
    return fcntl(file, F_OFD_SETLK, &lock);
}

static void let_go(int file, int64_t owner)
{
    struct flock lock = byte_at(owner);
    lock.l_type = F_UNLCK;
    fcntl(file, F_OFD_SETLK, &lock);
}

/* is_free: where the kernel can't say, nobody's claims are taken away. */
static int is_free(int file, int64_t owner)
{
    struct flock lock = byte_at(owner);
    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

/* ---- Which file ------------------------------------------------------------------------------ */

/* in_use is the file at the path, when it was last looked at. */
static int in_use(const mull__lock *lock)
{
    return lock->files[lock->count - 1];
}

static int is_at_path(const mull__lock *lock, int file)
{
    struct stat there, open;
    return stat(lock->path, &there) == 0 && fstat(file, &open) == 0 &&
           there.st_ino == open.st_ino && there.st_dev == open.st_dev;
}

/* read_mark gives the owner up to whom the file is marked; 0: it isn't. */
static int64_t read_mark(const mull__lock *lock)
{
    char text[64] = "", *rest;
    struct stat open;
    if (fstat(in_use(lock), &open) != 0 || pread(in_use(lock), text, sizeof text - 1, 0) <= 0 ||
        strtoull(text, &rest, 10) != (unsigned long long)open.st_ino)
        return 0;
    return strtoll(rest, NULL, 10);
}

/* mark: where that can't be written, others wait as we did. */
static void mark(mull__lock *lock, int64_t to)
{
    char text[160];
    struct stat open;
    lock->marked_to = to;
    if (fstat(in_use(lock), &open) != 0)
        return;
    int length = snprintf(text, sizeof text, "%llu %-20lld\n%s", (unsigned long long)open.st_ino,
                          (long long)to, notice);
    ssize_t written = pwrite(in_use(lock), text, (size_t)length, 0);
    (void)written;
}

/* marked_to is what the file says by now, or what we know better. */
static int64_t marked_to(mull__lock *lock)
{
    int64_t there = read_mark(lock);
    if (there > lock->marked_to)
        lock->marked_to = there;
    return lock->marked_to;
}

/* is_marked: one that we waited for is as good as marked, even where it can't be written to. One
 * wait at a time, so that it ends, however many owners come and die meanwhile. */
static int is_marked(mull__lock *lock, int64_t owner)
{
    if (owner <= lock->marked_to || owner <= marked_to(lock))
        return 1;
    if (lock->wait_to <= lock->marked_to) {
        lock->wait_to = owner;
        lock->since_ms = 0;
    }
    if (!lock->since_ms || mull__monotonic_ms() - lock->since_ms < MARK_MS)
        return 0;
    mark(lock, lock->wait_to);
    return owner <= lock->marked_to;
}

/* ---- Moving over ----------------------------------------------------------------------------- */

static int has_name(int file)
{
    struct stat open;
    return fstat(file, &open) == 0 && open.st_nlink > 0;
}

/* use makes `file` the last one. The others stay, with our byte, as long as somebody might put them
 * back. */
static void use(mull__lock *lock, int file)
{
    int kept = 0, others = 0;
    for (int i = 0; i < lock->count; i++)
        others += lock->files[i] != file;
    for (int i = 0; i < lock->count; i++) {
        int other = lock->files[i];
        if (other == file)
            continue;
        if (has_name(other) && (i > 0 || others < MULL__LOCK_FILES))
            lock->files[kept++] = other;
        else
            close(other);
    }
    lock->files[kept] = file;
    lock->count = kept + 1;
    lock->marked_to = read_mark(lock);
    lock->wait_to = lock->since_ms = 0;
}

/* complain says why there is no lock to be had. */
static int complain(mull__lock *lock, int error)
{
    snprintf(lock->why, sizeof lock->why, "its lock file %.180s: %s", lock->path,
             error == EAGAIN ? "another process holds our place in it" : strerror(error));
    return SQLITE_IOERR_LOCK;
}

/* open_file opens what is at the path, or makes it: for all who may use the database, as SQLite
 * makes its own files, whatever the umask, and for root too. Where that fails, others will say. */
static int open_file(const mull__store *store)
{
    struct stat database, made;
    int known = stat(sqlite3_db_filename(store->db, "main"), &database) == 0;
    mode_t mode = known ? database.st_mode & 0777 : 0644;
    int file = open(store->lock.path, O_RDWR | O_CREAT | O_CLOEXEC, mode);
    if (!known || file < 0 || fstat(file, &made) != 0 || made.st_size > 0)
        return file;
    int given = geteuid() != 0 || fchown(file, database.st_uid, database.st_gid) == 0;
    if (given && (made.st_mode & 0777) != mode)
        fchmod(file, mode);
    return file;
}

const char *mull__lock_open(mull__store *store)
{
    mull__lock *lock = &store->lock;
    snprintf(lock->path, sizeof lock->path, "%s-lock", sqlite3_db_filename(store->db, "main"));
    int file = open_file(store);
    if (file < 0)
        return strerror(errno);
    use(lock, file);
    struct flock byte = byte_at(0);
    return fcntl(file, F_OFD_GETLK, &byte) == 0 ? NULL : strerror(errno);
}

void mull__lock_close(mull__store *store)
{
    for (int i = 0; i < store->lock.count; i++)
        close(store->lock.files[i]);
    store->lock.count = 0;
}

/* move_over: a file that we have open is used as it is, since our own lock on it would be in the
 * way of another open file. */
static int move_over(mull__store *store)
{
    mull__lock *lock = &store->lock;
    int known = -1;
    for (int i = 0; i < lock->count; i++)
        if (is_at_path(lock, lock->files[i]))
            known = lock->files[i];
    int file = known >= 0 ? known : open_file(store);
    if (file < 0)
        return complain(lock, errno);
    if (store->owner && take(file, store->owner) != 0) {
        complain(lock, errno);
        if (known < 0)
            close(file);
        return SQLITE_IOERR_LOCK;
    }
    use(lock, file);
    return SQLITE_OK;
}

int mull__lock_refresh(mull__store *store)
{
    mull__lock *lock = &store->lock;
    if (is_at_path(lock, in_use(lock))) {
        lock->why[0] = 0;
        is_marked(lock, store->owner); /* so that those who come later need not wait */
        return SQLITE_OK;
    }
    int code = move_over(store);
    if (code != SQLITE_OK)
        return code;
    is_marked(lock, store->owner);
    lock->why[0] = 0;
    mull__store_log(store, MULL_WARNING,
                    "the lock file %s was deleted or replaced; this process holds its place in the "
                    "one that is there now. Leave it where it is",
                    lock->path);
    return SQLITE_OK;
}

/* ---- Who lives ------------------------------------------------------------------------------- */

int mull__lock_acquire(mull__store *store, int64_t owner)
{
    int code = mull__lock_refresh(store);
    if (code != SQLITE_OK)
        return code;
    if (take(in_use(&store->lock), owner) != 0)
        return complain(&store->lock, errno);
    store->owner = owner;
    return SQLITE_OK;
}

void mull__lock_release(mull__store *store)
{
    for (int i = 0; i < store->lock.count; i++)
        let_go(store->lock.files[i], store->owner);
    store->owner = 0;
}

void mull__lock_mark(mull__store *store, int64_t highest)
{
    mull__lock *lock = &store->lock;
    if (highest == 0 || highest <= marked_to(lock))
        mark(lock, store->owner);
}

void mull__lock_transaction_began(mull__store *store)
{
    if (!store->lock.since_ms)
        store->lock.since_ms = mull__monotonic_ms();
}

mull__life mull__lock_owner_state(mull__store *store, int64_t owner)
{
    mull__lock *lock = &store->lock;
    if (owner < 1)
        return MULL__OWNER_DEAD; /* nobody ever was */
    if (!is_free(in_use(lock), owner))
        return MULL__OWNER_ALIVE;
    /* In this order: who holds a byte of another file by now held that of this one before. */
    if (!is_marked(lock, owner) || !is_at_path(lock, in_use(lock)))
        return lock->since_ms ? MULL__OWNER_UNKNOWN : MULL__OWNER_UNCHECKED;
    return MULL__OWNER_DEAD;
}
