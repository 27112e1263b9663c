/* source.c: see source.h. */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/hash.h"

struct mull__source {
    mull__arena arena;  /* all memory of it, and of its files */
    const char *folder; /* NULL: none, or closed */
    mull__source_file *files;
    mull__source_file *host; /* NULL: the host has no policy of its own; its name is its path */
    int count;               /* of the files */
    int has_appeared_late;   /* one that was looked for in vain before */
};

int mull__source_new(mull__source **out, const mull_allocator *allocator, const char *folder)
{
    *out = NULL;
    mull__source *s = mull__zalloc(allocator, 1, sizeof *s);
    if (!s)
        return MULL_ENOMEM;
    s->arena.allocator = *allocator;
    if (folder && !(s->folder = mull__arena_strndup(&s->arena, folder, strlen(folder)))) {
        mull__source_free(s);
        return MULL_ENOMEM;
    }
    *out = s;
    return MULL_OK;
}

void mull__source_free(mull__source *source)
{
    if (!source)
        return;
    const mull_allocator a = source->arena.allocator;
    mull__arena_free(&source->arena);
    mull__free(&a, source);
}

int mull__source_add_host(mull__source *source, const char *path, const char *text, size_t size)
{
    mull__source_file *host = mull__arena_zalloc(&source->arena, 1, sizeof *host);
    if (!host || !(host->name = mull__arena_strndup(&source->arena, path, strlen(path))))
        return MULL_ENOMEM;
    if (text && !(host->text = mull__arena_strndup(&source->arena, text, size)))
        return MULL_ENOMEM;
    host->size = size;
    host->given = text != NULL;
    source->host = host;
    return MULL_OK;
}

/* find gives a file of the source, one that couldn't be read too. */
static mull__source_file *find(const mull__source *source, const char *name)
{
    mull__source_file *file = source->files;
    while (file && strcmp(file->name, name) != 0)
        file = file->next;
    return file;
}

/* add_file takes in a file with a text or without, which is the arena's already. */
static int add_file(mull__source *source, const char *name, char *text, size_t size, int given)
{
    mull__source_file **at = &source->files;
    mull__source_file *file = mull__arena_zalloc(&source->arena, 1, sizeof *file);
    char *copy = mull__arena_strndup(&source->arena, name, strlen(name));
    if (!file || !copy)
        return MULL_ENOMEM;
    while (*at && strcmp((*at)->name, name) < 0)
        at = &(*at)->next;
    *file = (mull__source_file){*at, copy, text, size, given};
    *at = file;
    return MULL_OK;
}

int mull__source_add(mull__source *source, const char *name, const char *text, size_t size)
{
    char *copy = mull__arena_strndup(&source->arena, text, size);
    return copy ? add_file(source, name, copy, size, 1) : MULL_ENOMEM;
}

/* read_all reads a file to its end; by now that may be elsewhere than its size said. */
static int read_all(char **out, size_t *out_size, mull__arena *arena, int fd, size_t expected)
{
    size_t room = (expected < MULL__SOURCE_MAX ? expected : MULL__SOURCE_MAX) + 2, size = 0;
    char *text = mull__arena_zalloc(arena, room, 1);
    for (ssize_t got; text && (got = read(fd, text + size, room - size - 1)) != 0;) {
        if (got < 0)
            return MULL_EIO;
        size += (size_t)got;
        if (size > MULL__SOURCE_MAX)
            return MULL_ETOOBIG;
        if (size + 1 == room) {
            room *= 2;
            char *grown = mull__arena_zalloc(arena, room, 1);
            text = grown ? memcpy(grown, text, size) : NULL;
        }
    }
    *out = text;
    *out_size = size;
    return text ? MULL_OK : MULL_ENOMEM;
}

/* read_file reads a regular file, and no other: reading a pipe or a terminal might never end, and a
 * load holds the thread of an engine's loop. MULL_ENOMEM; MULL_EIO: `why`. */
static int read_file(char **text, size_t *size, mull__arena *arena, const char *folder,
                     const char *name, char *why, size_t why_size)
{
    size_t room = strlen(folder) + strlen(name) + 1;
    char *path = mull__arena_zalloc(arena, room, 1);
    if (!path)
        return MULL_ENOMEM;
    snprintf(path, room, "%s%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat kind = {.st_mode = S_IFREG};
    int status = fd >= 0 && fstat(fd, &kind) == 0 ? MULL_OK : MULL_EIO;
    int is_other = !S_ISREG(kind.st_mode) && !S_ISDIR(kind.st_mode);
    if (status == MULL_OK && !is_other)
        status = read_all(text, size, arena, fd, (size_t)kind.st_size);
    int is_out_of_memory = status == MULL_ENOMEM || (status == MULL_EIO && errno == ENOMEM);
    if (is_other)
        snprintf(why, why_size, "%s is no regular file, but a pipe, a device or the like", path);
    else if (status == MULL_ETOOBIG)
        snprintf(why, why_size, "%s is larger than %d MiB", path, MULL__SOURCE_MAX / 1024 / 1024);
    else if (fd < 0 && errno == ENOENT)
        snprintf(why, why_size, "there is no file %s", path);
    else if (status == MULL_EIO)
        snprintf(why, why_size, "%s can't be read: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (is_out_of_memory)
        return MULL_ENOMEM;
    return status == MULL_OK && !is_other ? MULL_OK : MULL_EIO;
}

int mull__source_get(mull__source *source, const char *name, const mull__source_file **out,
                     char *why, size_t why_size)
{
    mull__source_file *file = find(source, name);
    *out = file;
    if (file && file->text)
        return MULL_OK;
    if (!source->folder) {
        snprintf(why, why_size, "the policy was given as a text, so there are no files beside it");
        return MULL_EIO;
    }
    if (!file && source->count == MULL__SOURCE_FILES) {
        snprintf(why, why_size, "a policy can't look for more than %d files", MULL__SOURCE_FILES);
        return MULL_EIO;
    }
    char *text = NULL;
    size_t size = 0;
    int status = read_file(&text, &size, &source->arena, source->folder, name, why, why_size);
    if (status == MULL_ENOMEM)
        return status;
    if (!file) {
        if (add_file(source, name, text, size, 0) != MULL_OK)
            return MULL_ENOMEM;
        source->count++;
    } else if (status == MULL_OK) {
        source->has_appeared_late = 1;
    }
    *out = find(source, name);
    return status;
}

int mull__source_get_host(mull__source *source, const mull__source_file **file, char *why,
                          size_t why_size)
{
    mull__source_file *host = source->host;
    *file = host;
    return host->text
               ? MULL_OK
               : read_file(&host->text, &host->size, &source->arena, "", host->name, why, why_size);
}

static int is_on_disk(const mull__source_file *host)
{
    return host && !host->given;
}

/* has_moved is mull__source_changed for one file. */
static int has_moved(const mull__source *source, const char *folder, const mull__source_file *file)
{
    mull__arena arena = {.allocator = source->arena.allocator};
    char *text = NULL, why[1];
    size_t size = 0;
    int status = read_file(&text, &size, &arena, folder, file->name, why, sizeof why);
    int same = text && file->text ? size == file->size && memcmp(text, file->text, size) == 0
                                  : !text && !file->text;
    mull__arena_free(&arena);
    return status == MULL_ENOMEM ? status : !same;
}

int mull__source_changed(mull__source *source)
{
    int status = source->has_appeared_late;
    for (mull__source_file *file = source->files; file && status == 0; file = file->next)
        if (source->folder && !file->given)
            status = has_moved(source, source->folder, file);
    if (status == 0 && is_on_disk(source->host))
        status = has_moved(source, "", source->host);
    return status;
}

/* add_path writes a path with its NUL, where `at` isn't NULL, and gives its bytes. */
static size_t add_path(char *at, const char *folder, const char *name)
{
    size_t before = strlen(folder), bytes = before + strlen(name) + 1;
    if (at) {
        memcpy(at, folder, before);
        memcpy(at + before, name, bytes - before);
    }
    return bytes;
}

/* add_paths writes those of all files, where `at` isn't NULL, and gives their bytes. */
static size_t add_paths(char *at, const mull__source *source)
{
    size_t bytes = 0;
    for (mull__source_file *file = source->folder ? source->files : NULL; file; file = file->next)
        bytes += add_path(at ? at + bytes : NULL, source->folder, file->name);
    if (is_on_disk(source->host))
        bytes += add_path(at ? at + bytes : NULL, "", source->host->name);
    return bytes;
}

char *mull__source_files(const mull__source *source)
{
    size_t bytes = add_paths(NULL, source);
    char *paths = bytes > 0 ? mull__alloc(&source->arena.allocator, bytes + 1) : NULL;
    if (paths)
        paths[add_paths(paths, source)] = 0;
    return paths;
}

void mull__source_close(mull__source *source, char name[33])
{
    mull__digest digest;
    mull__digest_begin(&digest);
    for (mull__source_file *file = source->files; file; file = file->next)
        if (file->text) {
            mull__digest_add(&digest, file->name, strlen(file->name));
            mull__digest_add(&digest, file->text, file->size);
        }
    if (source->host && source->host->text) {
        mull__digest_add(&digest, "/", 1); /* no file's name begins so */
        mull__digest_add(&digest, source->host->text, source->host->size);
    }
    mull__digest_end(&digest, name);
    source->folder = NULL;
}
