/* lock.c: the lock file, FILE-lock.
 *
 * As long as an owner lives it holds the byte at its number, by a lock that belongs to the open
 * file: the kernel lets go of it when the process ends, however it ends, and a process that merely
 * stands still keeps it.
 *
 * Somebody may delete the file, or put another in its place. Then:
 *
 *   - Each owner, which looks several times a second, takes its byte of the file that is there now,
 *     made anew where there is none. It keeps the byte of the one before, too: somebody may be
 *     asking there. Several who make it at once get the same file.
 *   - Nobody is declared dead by a file that isn't the one at the path, or that isn't *marked*:
 *     owners that live may not have got to it yet. Who finds no other owner in the database marks
 *     it, and who has waited for them: from its first transaction on, since one that is busy with a
 *     transaction can't look, and then for MARK_MS.
 *   - The mark is the file's own inode number, so a copy that is put in its place has none.
 *
 * An owner that doesn't get to it within that time, stopped or stuck, loses its claims: their
 * settles find the tokens gone, and the messages were handed out again.
 */
#include "base/alloc.h"
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
    "Whoever uses the database beside this file holds locks on it: leave it "
    "where it is.\n";

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
    if (file >= 0)
        fcntl(file, F_OFD_SETLK, &lock);
}

/* is_free: where the kernel can't say, nobody's claims are taken away. */
static int is_free(int file, int64_t owner)
{
    struct flock lock = byte_at(owner);
    return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

/* ---- Which file ------------------------------------------------------------------------------ */

static int is_at_path(const mull__lock *lock, int file)
{
    struct stat there, open;
    return file >= 0 && stat(lock->path, &there) == 0 && fstat(file, &open) == 0 &&
           there.st_ino == open.st_ino && there.st_dev == open.st_dev;
}

static int read_mark(const mull__lock *lock)
{
    char text[32] = "";
    struct stat open;
    return fstat(lock->file, &open) == 0 && pread(lock->file, text, sizeof text - 1, 0) > 0 &&
           strtoull(text, NULL, 10) == (unsigned long long)open.st_ino;
}

/* mark: where that can't be written, others wait as we did. */
static void mark(mull__lock *lock)
{
    char text[160];
    struct stat open;
    if (lock->marked || fstat(lock->file, &open) != 0)
        return;
    int length = snprintf(text, sizeof text, "%llu\n%s", (unsigned long long)open.st_ino, notice);
    lock->marked = pwrite(lock->file, text, (size_t)length, 0) == length;
}

/* is_marked: one that we waited for is as good as marked, even where it can't be written to. */
static int is_marked(mull__lock *lock)
{
    if (lock->marked || (lock->marked = read_mark(lock)))
        return 1;
    if (!lock->since_ms || mull__monotonic_ms() - lock->since_ms < MARK_MS)
        return 0;
    mark(lock);
    return 1;
}

static void use(mull__lock *lock, int file)
{
    lock->file = file;
    lock->marked = read_mark(lock);
    lock->since_ms = 0;
}

/* complain says why there is no lock to be had. */
static int complain(mull__lock *lock, int error)
{
    snprintf(lock->why, sizeof lock->why, "its lock file %s: %s", lock->path,
             error == EAGAIN ? "another process holds our place in it" : strerror(error));
    return SQLITE_IOERR_LOCK;
}

const char *mull__lock_open(mull__store *store, unsigned mode)
{
    mull__lock *lock = &store->lock;
    int file = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, (mode_t)mode);
    if (file < 0)
        return strerror(errno);
    lock->mode = mode;
    use(lock, file);
    struct flock byte = byte_at(0);
    return fcntl(file, F_OFD_GETLK, &byte) == 0 ? NULL : strerror(errno);
}

void mull__lock_close(mull__store *store)
{
    mull__lock *lock = &store->lock;
    if (lock->file >= 0)
        close(lock->file);
    if (lock->before >= 0)
        close(lock->before);
    mull__free(&store->allocator, lock->path);
    *lock = (mull__lock){.file = -1, .before = -1};
}

/* move_to makes `file` the one in use, and keeps that of now as the one before. */
static int move_to(mull__store *store, int file)
{
    mull__lock *lock = &store->lock;
    if (store->owner && take(file, store->owner) != 0)
        return -1;
    if (lock->before != file && lock->before >= 0)
        close(lock->before);
    lock->before = lock->file;
    use(lock, file);
    return 0;
}

static int move_over(mull__store *store)
{
    mull__lock *lock = &store->lock;
    if (is_at_path(lock, lock->before)) /* it was put back */
        return move_to(store, lock->before) == 0 ? SQLITE_OK : complain(lock, errno);
    int file = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, (mode_t)lock->mode);
    if (file < 0)
        return complain(lock, errno);
    if (move_to(store, file) == 0)
        return SQLITE_OK;
    int error = errno;
    close(file);
    return complain(lock, error);
}

int mull__lock_tend(mull__store *store)
{
    mull__lock *lock = &store->lock;
    if (is_at_path(lock, lock->file)) {
        lock->why[0] = 0;
        is_marked(lock); /* so that those who come later need not wait */
        return SQLITE_OK;
    }
    int code = move_over(store);
    if (code != SQLITE_OK)
        return code;
    lock->why[0] = 0;
    char line[512];
    snprintf(line, sizeof line,
             "the lock file %s was deleted or replaced; this process holds its place "
             "in the one that is there now. Leave it where it is",
             lock->path);
    mull_port_log(store->port, MULL_WARNING, line);
    return SQLITE_OK;
}

/* ---- Who lives ------------------------------------------------------------------------------- */

int mull__lock_hold(mull__store *store, int64_t owner)
{
    int code = mull__lock_tend(store);
    if (code != SQLITE_OK)
        return code;
    if (take(store->lock.file, owner) != 0)
        return complain(&store->lock, errno);
    store->owner = owner;
    return SQLITE_OK;
}

void mull__lock_drop(mull__store *store)
{
    let_go(store->lock.file, store->owner);
    let_go(store->lock.before, store->owner);
    store->owner = 0;
}

void mull__lock_mark(mull__store *store)
{
    mark(&store->lock);
}

void mull__lock_began(mull__store *store)
{
    if (!store->lock.since_ms)
        store->lock.since_ms = mull__monotonic_ms();
}

mull__life mull__lock_ask(mull__store *store, int64_t owner)
{
    mull__lock *lock = &store->lock;
    if (!is_free(lock->file, owner))
        return MULL__ALIVE;
    /* In this order: who holds a byte of another file by now held that of this one before. */
    if (!is_marked(lock) || !is_at_path(lock, lock->file))
        return lock->since_ms ? MULL__MAY_LIVE : MULL__TO_BE_ASKED;
    return MULL__DEAD;
}
