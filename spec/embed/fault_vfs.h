/* fault_vfs.h: a VFS for SQLite, for tests: it stands before the default one, counts what SQLite
 * asks of it, lets the n-th call fail, may have little room, and keeps a model of the disk
 * (disk.h). SQLite is one library a process, so the transport's worker goes through it as well.
 *
 *   SQLite ──> counts, may fail ──> the default VFS
 *                        └──> disk, and `moment`: something has just changed, or is about to be
 * safe
 *
 * Only calls that can fail in life are counted: letting go of a lock and closing can't. */
#ifndef SPEC_FAULT_VFS_H
#define SPEC_FAULT_VFS_H

#include "disk.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/statvfs.h>

#define VFS_CALLS(X)                                                                               \
    X(OPEN, SQLITE_CANTOPEN)                                                                       \
    X(READ, SQLITE_IOERR_READ)                                                                     \
    X(WRITE, SQLITE_IOERR_WRITE)                                                                   \
    X(TRUNCATE, SQLITE_IOERR_TRUNCATE)                                                             \
    X(SYNC, SQLITE_IOERR_FSYNC)                                                                    \
    X(SIZE, SQLITE_IOERR_FSTAT)                                                                    \
    X(LOCK, SQLITE_IOERR_LOCK)                                                                     \
    X(SHMMAP, SQLITE_IOERR_SHMMAP)                                                                 \
    X(SHMLOCK, SQLITE_IOERR_SHMLOCK)                                                               \
    X(DELETE, SQLITE_IOERR_DELETE)                                                                 \
    X(ACCESS, SQLITE_IOERR_ACCESS)

#define VFS_ENUM(name, code) VFS_##name,
typedef enum vfs_call { VFS_CALLS(VFS_ENUM) VFS_CALL_COUNT } vfs_call;
#undef VFS_ENUM

typedef struct vfs_file {
    sqlite3_file base; /* first */
    disk_file *kept;   /* NULL: nobody keeps a model of it */
    int folder_unsafe; /* its first sync makes its name safe, as a new journal's does */
    int is_log;
    sqlite3_file *real;
} vfs_file;

typedef struct fault_vfs {
    sqlite3_vfs vfs, *real;
    pthread_mutex_t mutex; /* guards what follows, and keeps disk and model in step */
    long calls, by_kind[VFS_CALL_COUNT];
    long fail_at; /* counted from 1; 0: none fails */
    int for_good; /* ... and all that come after it */
    long failed;
    vfs_call first_failed;
    void (*failing)(void *data); /* called with the mutex held, on the thread that fails; NULL */
    void *data;
    int is_small;    /* files may grow by ... */
    int64_t room;    /* ... so many bytes, all together */
    int64_t volume;  /* how large its volume is said to be; 0: nobody can say */
    int64_t longest; /* that a log was */
    int keeps;       /* a model of the disk */
    disk disk;
    /* Called with the mutex held after each change, and with `syncs` when one has waited for the
     * disk, and nothing is safe yet; NULL. */
    void (*moment)(int syncs);
} fault_vfs;

static fault_vfs faults = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static inline const char *vfs_call_name(vfs_call call)
{
    static const char *const names[] = {
#define VFS_NAME(name, code) #name,
        VFS_CALLS(VFS_NAME)
#undef VFS_NAME
    };
    return names[call];
}

/* ---- Counting and failing -------------------------------------------------------------------- */

/* vfs_enter begins a call and says whether it is to fail; vfs_leave ends it. */
static inline int vfs_enter(vfs_call call)
{
    pthread_mutex_lock(&faults.mutex);
    long nth = ++faults.calls;
    faults.by_kind[call]++;
    int fails = faults.fail_at && (faults.for_good ? nth >= faults.fail_at : nth == faults.fail_at);
    if (fails && faults.failed++ == 0)
        faults.first_failed = call;
    if (fails && faults.failing)
        faults.failing(faults.data);
    return fails;
}

static inline int vfs_leave(int code)
{
    pthread_mutex_unlock(&faults.mutex);
    return code;
}

/* vfs_code is how a call fails: of writes every other finds the disk full. */
static inline int vfs_code(vfs_call call)
{
    static const int codes[] = {
#define VFS_CODE(name, code) code,
        VFS_CALLS(VFS_CODE)
#undef VFS_CODE
    };
    return call == VFS_WRITE && faults.fail_at % 2 ? SQLITE_FULL : codes[call];
}

static inline int vfs_fail(vfs_call call)
{
    return vfs_leave(vfs_code(call));
}

static inline void vfs_moment(int syncs)
{
    if (faults.moment)
        faults.moment(syncs);
}

/* vfs_done ends a call that changed something, where it went well. */
static inline int vfs_done(int code)
{
    if (code == SQLITE_OK)
        vfs_moment(0);
    return vfs_leave(code);
}

/* ---- Files ----------------------------------------------------------------------------------- */

#define REAL(call, ...)                                                                            \
    (((vfs_file *)file)->real->pMethods->call(((vfs_file *)file)->real, __VA_ARGS__))

static inline int vfs_close(sqlite3_file *file)
{
    sqlite3_file *real = ((vfs_file *)file)->real;
    return real->pMethods->xClose(real);
}

static inline int vfs_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 offset)
{
    if (vfs_enter(VFS_READ))
        return vfs_fail(VFS_READ);
    return vfs_leave(REAL(xRead, bytes, size, offset));
}

static inline int64_t vfs_size_now(sqlite3_file *file)
{
    sqlite3_int64 size = 0;
    REAL(xFileSize, &size);
    return size;
}

static inline int vfs_put(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    disk_file *kept = ((vfs_file *)file)->kept;
    int64_t before = vfs_size_now(file);
    if (faults.is_small && offset + size - before > faults.room)
        return SQLITE_FULL;
    int code = REAL(xWrite, bytes, size, offset);
    int64_t after = vfs_size_now(file);
    faults.room -= after - before;
    if (((vfs_file *)file)->is_log && after > faults.longest)
        faults.longest = after;
    if (code == SQLITE_OK && kept)
        disk_change_file(kept, 0, bytes, (size_t)size, offset);
    return code;
}

/* vfs_write: there is a moment in the middle of a large one, and one that fails was half done. */
static inline int vfs_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 offset)
{
    int fails = vfs_enter(VFS_WRITE), half = size > DISK_SECTOR ? size / 2 : 0;
    int code = half ? vfs_put(file, bytes, half, offset) : SQLITE_OK;
    if (fails)
        return vfs_fail(VFS_WRITE);
    if (half && code == SQLITE_OK)
        vfs_moment(0);
    if (code == SQLITE_OK)
        code = vfs_put(file, (const char *)bytes + half, size - half, offset + half);
    return vfs_done(code);
}

static inline int vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (vfs_enter(VFS_TRUNCATE))
        return vfs_fail(VFS_TRUNCATE);
    disk_file *kept = ((vfs_file *)file)->kept;
    int64_t before = vfs_size_now(file);
    int code = REAL(xTruncate, size);
    faults.room += before - vfs_size_now(file);
    if (code == SQLITE_OK && kept)
        disk_change_file(kept, 1, NULL, 0, size);
    return vfs_done(code);
}

static inline int vfs_sync(sqlite3_file *file, int flags)
{
    if (vfs_enter(VFS_SYNC))
        return vfs_fail(VFS_SYNC);
    vfs_file *f = (vfs_file *)file;
    int code = REAL(xSync, flags);
    if (code == SQLITE_OK)
        vfs_moment(1);
    if (code == SQLITE_OK && f->kept) {
        disk_sync(f->kept);
        if (f->folder_unsafe)
            disk_sync_folder(&faults.disk);
        f->folder_unsafe = 0;
    }
    return vfs_done(code);
}

static inline int vfs_size(sqlite3_file *file, sqlite3_int64 *size)
{
    if (vfs_enter(VFS_SIZE))
        return vfs_fail(VFS_SIZE);
    return vfs_leave(REAL(xFileSize, size));
}

static inline int vfs_lock(sqlite3_file *file, int level)
{
    if (vfs_enter(VFS_LOCK))
        return vfs_fail(VFS_LOCK);
    return vfs_leave(REAL(xLock, level));
}

static inline int vfs_unlock(sqlite3_file *file, int level)
{
    return REAL(xUnlock, level);
}

static inline int vfs_reserved(sqlite3_file *file, int *reserved)
{
    return REAL(xCheckReservedLock, reserved);
}

static inline int vfs_control(sqlite3_file *file, int operation, void *argument)
{
    return REAL(xFileControl, operation, argument);
}

static inline int vfs_sector(sqlite3_file *file)
{
    sqlite3_file *real = ((vfs_file *)file)->real;
    return real->pMethods->xSectorSize(real);
}

static inline int vfs_character(sqlite3_file *file)
{
    sqlite3_file *real = ((vfs_file *)file)->real;
    return real->pMethods->xDeviceCharacteristics(real);
}

/* vfs_shm_map: each page of the index needs room, too. */
static inline int vfs_shm_map(sqlite3_file *file, int page, int size, int extend,
                              void volatile **memory)
{
    if (vfs_enter(VFS_SHMMAP))
        return vfs_fail(VFS_SHMMAP);
    int code = REAL(xShmMap, page, size, 0, memory);
    if (code != SQLITE_OK || *memory || !extend)
        return vfs_leave(code);
    if (faults.is_small && size > faults.room) {
        errno = ENOSPC;
        return vfs_leave(SQLITE_IOERR_SHMSIZE);
    }
    faults.room -= size;
    return vfs_leave(REAL(xShmMap, page, size, extend, memory));
}

static inline int vfs_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    if (flags & SQLITE_SHM_UNLOCK)
        return REAL(xShmLock, offset, count, flags);
    if (vfs_enter(VFS_SHMLOCK))
        return vfs_fail(VFS_SHMLOCK);
    return vfs_leave(REAL(xShmLock, offset, count, flags));
}

static inline void vfs_shm_barrier(sqlite3_file *file)
{
    sqlite3_file *real = ((vfs_file *)file)->real;
    real->pMethods->xShmBarrier(real);
}

static inline int vfs_shm_unmap(sqlite3_file *file, int deletes)
{
    return REAL(xShmUnmap, deletes);
}

/* ---- The folder ------------------------------------------------------------------------------ */

static const sqlite3_io_methods vfs_methods = {
    .iVersion = 2, /* no xFetch: nothing is read past us */
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_reserved,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector,
    .xDeviceCharacteristics = vfs_character,
    .xShmMap = vfs_shm_map,
    .xShmLock = vfs_shm_lock,
    .xShmBarrier = vfs_shm_barrier,
    .xShmUnmap = vfs_shm_unmap,
};

static inline int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                           int *out_flags)
{
    (void)vfs;
    vfs_file *f = (vfs_file *)file;
    *f = (vfs_file){.real = (sqlite3_file *)(f + 1), .is_log = (flags & SQLITE_OPEN_WAL) != 0};
    if (vfs_enter(VFS_OPEN))
        return vfs_fail(VFS_OPEN);
    int code = faults.real->xOpen(faults.real, name, f->real, flags, out_flags);
    if (code != SQLITE_OK)
        return vfs_leave(code);
    f->base.pMethods = &vfs_methods;
    if (faults.keeps && name) {
        int journal = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
        f->folder_unsafe = (flags & journal) && !disk_find(&faults.disk, name)->now;
        f->kept = disk_open(&faults.disk, name);
    }
    return vfs_done(code);
}

static inline int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    (void)vfs;
    struct stat status = {0};
    if (vfs_enter(VFS_DELETE))
        return vfs_fail(VFS_DELETE);
    stat(name, &status);
    int code = faults.real->xDelete(faults.real, name, sync_folder);
    if (code == SQLITE_OK)
        faults.room += status.st_size;
    if (code == SQLITE_OK && faults.keeps) {
        disk_delete(&faults.disk, name);
        if (sync_folder)
            disk_sync_folder(&faults.disk);
    }
    return vfs_done(code);
}

static inline int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *result)
{
    (void)vfs;
    if (vfs_enter(VFS_ACCESS))
        return vfs_fail(VFS_ACCESS);
    return vfs_leave(faults.real->xAccess(faults.real, name, flags, result));
}

/* ---- Taking it into use ---------------------------------------------------------------------- */

/* vfs_install makes it the default, with all of it reset. `keeps`: a model of the disk, of files
 * that don't exist yet. */
static inline void vfs_install(int keeps)
{
    sqlite3_vfs *real = faults.real ? faults.real : sqlite3_vfs_find(NULL);
    disk_free(&faults.disk);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    faults = (fault_vfs){.vfs = *real, .real = real, .mutex = mutex, .keeps = keeps};
    faults.vfs.szOsFile += (int)sizeof(vfs_file);
    faults.vfs.zName = "faults";
    faults.vfs.pNext = NULL;
    faults.vfs.xOpen = vfs_open;
    faults.vfs.xDelete = vfs_delete;
    faults.vfs.xAccess = vfs_access;
    sqlite3_vfs_register(&faults.vfs, 1);
}

/* vfs_break lets the n-th call from now on fail, and all that come after it. */
static inline void vfs_break(long nth, int for_good)
{
    pthread_mutex_lock(&faults.mutex);
    faults.calls = faults.failed = 0;
    faults.fail_at = nth;
    faults.for_good = for_good;
    pthread_mutex_unlock(&faults.mutex);
}

/* vfs_tell has somebody told of each call that fails; NULL: nobody any more. */
static inline void vfs_tell(void (*failing)(void *data), void *data)
{
    pthread_mutex_lock(&faults.mutex);
    faults.failing = failing;
    faults.data = data;
    pthread_mutex_unlock(&faults.mutex);
}

static inline long vfs_failed(void)
{
    pthread_mutex_lock(&faults.mutex);
    long failed = faults.failed;
    pthread_mutex_unlock(&faults.mutex);
    return failed;
}

/* vfs_shrink lets files grow by `room` bytes from now on. `volume` is what there is to be said of
 * the disk; 0: nothing; less than a block: that it has none. */
static inline void vfs_shrink(int64_t room, int64_t volume)
{
    pthread_mutex_lock(&faults.mutex);
    faults.is_small = 1;
    faults.room = room;
    faults.volume = volume;
    faults.longest = 0;
    pthread_mutex_unlock(&faults.mutex);
}

/* vfs_look gives `room`, `volume` or `longest` as it is now. */
static inline int64_t vfs_look(const int64_t *figure)
{
    pthread_mutex_lock(&faults.mutex);
    int64_t now = *figure;
    pthread_mutex_unlock(&faults.mutex);
    return now;
}

/* statvfs takes the place of the system's, also for the library. */
__attribute__((visibility("default"))) int statvfs(const char *name, struct statvfs *out)
{
    enum { BLOCK = 512 };
    int64_t volume = vfs_look(&faults.volume), room = vfs_look(&faults.room);
    (void)name;
    *out = (struct statvfs){.f_frsize = BLOCK};
    out->f_blocks = (fsblkcnt_t)(volume / BLOCK);
    out->f_bavail = room > 0 && out->f_blocks > 0 ? (fsblkcnt_t)(room / BLOCK) : 0;
    return volume ? 0 : -1;
}

/* vfs_remove brings the default VFS back; no file may be open. */
static inline void vfs_remove(void)
{
    sqlite3_vfs_unregister(&faults.vfs);
    sqlite3_vfs_register(faults.real, 1);
    disk_free(&faults.disk);
}

#undef REAL

#endif
