/* disk.h: a model of a disk, for tests: what of each file is safe when the power goes.
 *
 *   write, truncate ──> pending ──sync──> safe            of a file
 *   open, delete    ──> now ──sync of the folder──> safe  of a name
 *
 * A cut may find each pending write done, undone or torn at a sector, in any combination, and each
 * name as it is now or as it was when its folder was last synced. */
#ifndef SPEC_DISK_H
#define SPEC_DISK_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DISK_SECTOR = 512, DISK_NAMES = 4 };

/* disk_change is a write that isn't synced, or a truncation. */
typedef struct disk_change {
    struct disk_change *next;
    int64_t offset; /* of a truncation: the new size */
    size_t size;
    int truncates;
    unsigned char bytes[];
} disk_change;

typedef struct disk_content {
    unsigned char *bytes;
    size_t size;
} disk_content;

typedef struct disk_file {
    struct disk_file *next; /* of all that there ever were */
    disk_content safe;
    disk_change *first, **end;
} disk_file;

/* disk_name is a place in the folder; its files are NULL where there is none. */
typedef struct disk_name {
    char path[128];
    disk_file *now, *safe;
} disk_name;

typedef struct disk {
    disk_name names[DISK_NAMES];
    size_t count;
    disk_file *files;
} disk;

/* ---- Chance ---------------------------------------------------------------------------------- */

/* chance gives the next of a row of random numbers (splitmix64). */
static inline uint64_t chance(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* ---- Contents -------------------------------------------------------------------------------- */

static inline void *disk_must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static inline void disk_resize(disk_content *content, size_t size)
{
    content->bytes = disk_must(realloc(content->bytes, size + 1));
    if (size > content->size)
        memset(content->bytes + content->size, 0, size - content->size);
    content->size = size;
}

static inline void disk_put(disk_content *content, const disk_change *change, size_t from,
                            size_t size)
{
    size_t offset = (size_t)change->offset + from;
    if (offset + size > content->size)
        disk_resize(content, offset + size);
    memcpy(content->bytes + offset, change->bytes + from, size);
}

static inline void disk_apply(disk_content *content, const disk_change *change)
{
    if (change->truncates)
        disk_resize(content, (size_t)change->offset);
    else
        disk_put(content, change, 0, change->size);
}

/* disk_tear applies some sectors of a change. */
static inline void disk_tear(disk_content *content, const disk_change *change, uint64_t *seed)
{
    if (change->truncates)
        return;
    for (size_t from = 0; from < change->size;) {
        size_t left = DISK_SECTOR - ((size_t)change->offset + from) % DISK_SECTOR;
        size_t size = left < change->size - from ? left : change->size - from;
        if (chance(seed) % 2)
            disk_put(content, change, from, size);
        from += size;
    }
}

/* ---- What a program does --------------------------------------------------------------------- */

static inline disk_name *disk_find(disk *d, const char *named)
{
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->names[i].path, named) == 0)
            return &d->names[i];
    if (d->count == DISK_NAMES || strlen(named) >= sizeof d->names[0].path)
        abort();
    disk_name *name = &d->names[d->count++];
    *name = (disk_name){0};
    snprintf(name->path, sizeof name->path, "%s", named);
    return name;
}

/* disk_open gives the file of that name; one that wasn't there is new. */
static inline disk_file *disk_open(disk *d, const char *named)
{
    disk_name *name = disk_find(d, named);
    if (name->now)
        return name->now;
    disk_file *file = disk_must(calloc(1, sizeof *file));
    file->end = &file->first;
    file->next = d->files;
    d->files = file;
    return name->now = file;
}

static inline void disk_delete(disk *d, const char *named)
{
    disk_find(d, named)->now = NULL;
}

static inline void disk_sync_folder(disk *d)
{
    for (size_t i = 0; i < d->count; i++)
        d->names[i].safe = d->names[i].now;
}

static inline void disk_change_file(disk_file *file, int truncates, const void *bytes, size_t size,
                                    int64_t offset)
{
    disk_change *change = disk_must(malloc(sizeof *change + size));
    *change = (disk_change){.offset = offset, .size = size, .truncates = truncates};
    if (size > 0)
        memcpy(change->bytes, bytes, size);
    *file->end = change;
    file->end = &change->next;
}

static inline void disk_sync(disk_file *file)
{
    while (file->first) {
        disk_change *change = file->first;
        disk_apply(&file->safe, change);
        file->first = change->next;
        free(change);
    }
    file->end = &file->first;
}

static inline void disk_free(disk *d)
{
    while (d->files) {
        disk_file *file = d->files;
        d->files = file->next;
        disk_sync(file);
        free(file->safe.bytes);
        free(file);
    }
    *d = (disk){0};
}

/* ---- The power goes -------------------------------------------------------------------------- */

/* disk_left is what a cut leaves of a file, in one of four ways: nothing of what is pending, all,
 * what came first, or any of it. */
static inline disk_content disk_left(const disk_file *file, uint64_t *seed)
{
    disk_content left = {0};
    disk_resize(&left, file->safe.size);
    if (file->safe.size > 0)
        memcpy(left.bytes, file->safe.bytes, file->safe.size);
    uint64_t way = chance(seed) % 4;
    for (const disk_change *c = file->first; c && way > 0; c = c->next) {
        uint64_t luck = chance(seed) % 8;
        if (way == 1 || (way == 2 && luck > 0) || (way == 3 && luck > 3)) {
            disk_apply(&left, c);
        } else if (way == 2 || luck == 0) {
            disk_tear(&left, c, seed);
            if (way == 2)
                break;
        }
    }
    return left;
}

static inline void disk_store(const disk_content *content, const char *named)
{
    int file = open(named, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (file < 0 || write(file, content->bytes, content->size) != (ssize_t)content->size)
        abort();
    close(file);
}

/* disk_load reads a real file of less than 8 MiB; 0: there is none. */
static inline int disk_load(disk_content *content, const char *named)
{
    enum { MOST = 8 << 20 };
    *content = (disk_content){0};
    int file = open(named, O_RDONLY);
    if (file < 0)
        return 0;
    disk_resize(content, MOST);
    ssize_t size = read(file, content->bytes, MOST);
    close(file);
    if (size < 0 || size == MOST)
        abort();
    content->size = (size_t)size;
    return 1;
}

/* disk_cut writes what a power cut at this moment leaves into another folder. */
static inline void disk_cut(const disk *d, const char *to, uint64_t *seed)
{
    for (size_t i = 0; i < d->count; i++) {
        const disk_name *name = &d->names[i];
        const disk_file *file = chance(seed) % 2 ? name->now : name->safe;
        if (!file)
            continue;
        char copy[256];
        snprintf(copy, sizeof copy, "%s%s", to, strrchr(name->path, '/'));
        disk_content left = disk_left(file, seed);
        disk_store(&left, copy);
        free(left.bytes);
    }
}

#endif
