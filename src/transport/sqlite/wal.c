/* wal.c: the write-ahead log, FILE-wal: whether it is whole, and that it takes no more room than is
 * left for it.
 *
 *   FILE-wal   32 bytes with a salt │ frame │ frame │ frame │ what a failed transaction left
 *   FILE-shm   its index begins with the same salt, and the number of frames that count
 *
 * The log is brought into the file (a checkpoint) once it has 1,000 frames, or earlier where the
 * volume is almost full: the file may have to grow by as much as is in the log, and only then is
 * the log's room free again.
 */
#include "base/hash.h"
#include "store.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

/* A log of so many FRAMES is brought into the file, as SQLite does by default, and a shorter one
 * that takes more than a SHARE-th of what is free. It keeps its length, but not more than a KEPT-th
 * of the volume.
 *
 * RESERVE: room that nothing published may take, so that what is in the file can be settled. Where
 * there is PLENTY that isn't looked at. */
enum { FRAMES = 1000, SHARE = 4, KEPT = 16, KEPT_MOST = 64 << 20 };
enum { RESERVE = 256 << 10, PLENTY = 1 << 30 };

enum { LOG_HEADER = 32, LOG_SALT = 16, FRAME_HEADER = 24, PAGE_MOST = 65536, INDEX_REGION = 32768 };

/* wal_index is how the log's index begins, in two copies: sqlite.org/walformat.html, 2.1. */
typedef struct wal_index {
    uint32_t version, unused, changes;
    uint8_t ready, big_endian;
    uint16_t page_size; /* 1: 65536 */
    uint32_t frames, pages, frame_checksum[2], salt[2], checksum[2];
} wal_index;

enum { INDEX_VERSION = 3007000, INDEX_WORDS = sizeof(wal_index) / sizeof(uint32_t) };

static sqlite3_file *file_of(const mull__store *store, int which)
{
    sqlite3_file *file = NULL;
    if (store->db) /* there is none where memory failed while it was opened */
        sqlite3_file_control(store->db, "main", which, &file);
    return file && file->pMethods ? file : NULL;
}

static sqlite3_file *database_of(const mull__store *store)
{
    return file_of(store, SQLITE_FCNTL_FILE_POINTER);
}

static sqlite3_file *log_of(const mull__store *store)
{
    return file_of(store, SQLITE_FCNTL_JOURNAL_POINTER);
}

static int64_t size_of(sqlite3_file *file)
{
    sqlite3_int64 size;
    return file && file->pMethods->xFileSize(file, &size) == SQLITE_OK ? size : -1;
}

/* read_index: 0 where SQLite keeps it elsewhere or in another form, or is just writing it. */
static int read_index(const mull__store *store, wal_index *out)
{
    sqlite3_file *file = database_of(store);
    void volatile *region = NULL;
    if (!file || file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, INDEX_REGION, 0, &region) != SQLITE_OK || !region)
        return 0;
    uint32_t copies[2 * INDEX_WORDS];
    for (size_t i = 0; i < 2 * INDEX_WORDS; i++)
        copies[i] = ((uint32_t volatile *)region)[i];
    memcpy(out, copies, sizeof *out);
    return memcmp(out, copies + INDEX_WORDS, sizeof *out) == 0 && out->version == INDEX_VERSION &&
           out->ready;
}

static int64_t frame_size(const wal_index *of)
{
    return FRAME_HEADER + (of->page_size == 1 ? PAGE_MOST : of->page_size);
}

/* end_of is the size of the log up to its last commit. */
static int64_t end_of(const wal_index *of)
{
    return of->frames ? LOG_HEADER + of->frames * frame_size(of) : 0;
}

/* has_all: its salt is there as well, since SQLite writes on behind what is missing. What can't be
 * read now isn't missing. */
static int has_all(sqlite3_file *log, const wal_index *of)
{
    char header[LOG_HEADER];
    int64_t size = size_of(log);
    if (size < 0)
        return 1;
    if (size < end_of(of))
        return 0;
    return log->pMethods->xRead(log, header, LOG_HEADER, 0) != SQLITE_OK ||
           memcmp(header + LOG_SALT, of->salt, sizeof of->salt) == 0;
}

/* hash_of gives what a frame was hashed to; 0: it can't be read now. */
static uint64_t hash_of(sqlite3_file *log, const wal_index *of, uint32_t frame)
{
    char bytes[FRAME_HEADER + PAGE_MOST];
    int64_t size = frame_size(of);
    int code = log->pMethods->xRead(log, bytes, (int)size, LOG_HEADER + (frame - 1) * size);
    return code == SQLITE_OK ? mull__hash(bytes, (size_t)size) : 0;
}

/* keeps_end: what was cut off and written on behind is a gap, and that begins before the end of the
 * last frame that there was. Until a log begins anew, with another salt, a frame stays as it is. */
static int keeps_end(mull__store *store, sqlite3_file *log, const wal_index *of)
{
    mull__last_frame *end = &store->last_frame;
    int same = memcmp(end->salt, of->salt, sizeof end->salt) == 0;
    uint64_t now = same && end->hash ? hash_of(log, of, end->frame) : 0;
    if (now && now != end->hash)
        return 0;
    if (!same || end->frame != of->frames) {
        end->hash = hash_of(log, of, of->frames);
        end->frame = of->frames;
        memcpy(end->salt, of->salt, sizeof end->salt);
    }
    return 1;
}

/* Who makes the log shorter or begins it anew changes the index first; who makes it longer changes
 * the index last. So with the same index before and after, the log in between belongs to it. */
int mull__wal_is_intact(mull__store *store)
{
    wal_index before, after;
    sqlite3_file *log = log_of(store);
    if (!log || !read_index(store, &before) || before.frames == 0 ||
        (has_all(log, &before) && keeps_end(store, log, &before)))
        return 1;
    return !read_index(store, &after) || memcmp(&before, &after, sizeof before) != 0;
}

/* ---- Room ------------------------------------------------------------------------------------ */

/* volume_of gives what the file's volume has; 0: nobody can say, or it has no end and says 0, as
 * ramfs does. */
static int volume_of(const mull__store *store, int64_t *whole, int64_t *left)
{
    struct statvfs volume;
    if (statvfs(sqlite3_db_filename(store->db, "main"), &volume) != 0 || volume.f_blocks == 0)
        return 0;
    *whole = (int64_t)volume.f_blocks * (int64_t)volume.f_frsize;
    *left = (int64_t)volume.f_bavail * (int64_t)volume.f_frsize;
    return 1;
}

static int is_long(const mull__store *store, int frames)
{
    wal_index now;
    int64_t whole, left;
    return frames >= FRAMES || (volume_of(store, &whole, &left) && read_index(store, &now) &&
                                end_of(&now) > left / SHARE);
}

/* after_commit: a checkpoint that fails is tried again after the next commit. One of a log that was
 * cut short would write what is missing into the file as nothing. */
static int after_commit(void *data, sqlite3 *db, const char *name, int frames)
{
    if (is_long(data, frames) && mull__wal_is_intact(data))
        sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

void mull__wal_configure(mull__store *store)
{
    char text[64];
    int64_t whole, left, kept = KEPT_MOST;
    if (volume_of(store, &whole, &left) && whole / KEPT < kept)
        kept = whole / KEPT;
    snprintf(text, sizeof text, "PRAGMA journal_size_limit = %lld", (long long)kept);
    sqlite3_exec(store->db, text, NULL, NULL, NULL); /* where it fails, the log stays longer */
    sqlite3_wal_hook(store->db, after_commit, store);
}

/* cut_back gives the room back that a failed transaction has taken behind the last commit, which
 * SQLite keeps: the file may need it to grow. Nobody reads it, and nobody writes but us. */
static void cut_back(mull__store *store)
{
    wal_index now;
    sqlite3_file *log = log_of(store);
    if (mull__store_run(store, MULL__SQL_BEGIN, "") != SQLITE_OK)
        return;
    if (read_index(store, &now) && size_of(log) > end_of(&now))
        log->pMethods->xTruncate(log, end_of(&now));
    mull__store_run(store, MULL__SQL_ROLLBACK, "");
}

int mull__wal_truncate(mull__store *store)
{
    int64_t whole, left;
    store->disk_was_full = volume_of(store, &whole, &left) && left < RESERVE;
    if (!mull__wal_is_intact(store))
        return SQLITE_READONLY_DBMOVED;
    cut_back(store);
    int code = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    store->log_is_held = (code & 0xff) == SQLITE_BUSY;
    return code;
}

int mull__wal_has_room(mull__store *store)
{
    int64_t whole, left, needed = 0;
    if (!volume_of(store, &whole, &left) || left >= PLENTY)
        return 1;
    mull__store_ask(&needed, mull__store_bind(store, MULL__SQL_SIZE, ""));
    int64_t size = size_of(database_of(store)), growth = needed - size;
    return size < 0 || growth <= 0 || left >= RESERVE + 2 * growth;
}
