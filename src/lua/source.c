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
    mull__source_file *missing; /* looked for, and couldn't be read; without texts */
    int count;                  /* of both */
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

/* add_file takes in a text, which is the arena's already. */
static int add_file(mull__source *source, mull__source_file **at, const char *name, char *text,
                    size_t size)
{
    mull__source_file *file = mull__arena_zalloc(&source->arena, 1, sizeof *file);
    char *copy = mull__arena_strndup(&source->arena, name, strlen(name));
    if (!file || !copy)
        return MULL_ENOMEM;
    while (*at && strcmp((*at)->name, name) < 0)
        at = &(*at)->next;
    *file = (mull__source_file){.next = *at, .name = copy, .text = text, .size = size};
    *at = file;
    return MULL_OK;
}

static mull__source_file *find(mull__source_file *file, const char *name)
{
    for (; file; file = file->next)
        if (strcmp(file->name, name) == 0)
            return file;
    return NULL;
}

int mull__source_add(mull__source *source, const char *name, const char *text, size_t size)
{
    char *copy = mull__arena_strndup(&source->arena, text, size);
    if (!copy || add_file(source, &source->files, name, copy, size) != MULL_OK)
        return MULL_ENOMEM;
    find(source->files, name)->given = 1;
    return MULL_OK;
}

/* expected_size gives the size that a file says to have, at most one byte too many. */
static size_t expected_size(FILE *stream)
{
    struct stat kind;
    if (fstat(fileno(stream), &kind) != 0 || kind.st_size < 0)
        return 0;
    return kind.st_size <= MULL__SOURCE_MAX ? (size_t)kind.st_size : MULL__SOURCE_MAX + 1;
}

/* read_all reads a stream to its end. */
static int read_all(char **out, size_t *out_size, mull__arena *arena, FILE *stream)
{
    char *text = NULL;
    size_t size = 0, room = 0, got;
    do {
        if (size + 1 >= room) {
            room = room ? room * 2 : expected_size(stream) + 2;
            char *grown = mull__arena_zalloc(arena, room, 1);
            if (!grown)
                return MULL_ENOMEM;
            text = size ? memcpy(grown, text, size) : grown;
        }
        got = fread(text + size, 1, room - size - 1, stream);
        size += got;
    } while (got > 0 && size <= MULL__SOURCE_MAX);
    if (ferror(stream))
        return MULL_EIO;
    *out = text;
    *out_size = size;
    return size > MULL__SOURCE_MAX ? MULL_ETOOBIG : MULL_OK;
}

/* open_regular opens a file, and nothing else: reading a pipe or a terminal might never end, and a
 * load holds the thread of an engine's loop. MULL_ENOMEM; MULL_EIO: `why`. */
static int open_regular(FILE **stream, const char *path, char *why, size_t why_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        snprintf(why, why_size, "there is no file %s", path);
        return MULL_EIO;
    }
    struct stat kind;
    int found = fd >= 0 && fstat(fd, &kind) == 0;
    if (found && !S_ISREG(kind.st_mode) && !S_ISDIR(kind.st_mode)) {
        snprintf(why, why_size, "%s is no regular file, but a pipe, a device or the like", path);
        close(fd);
        return MULL_EIO;
    }
    *stream = found ? fdopen(fd, "rb") : NULL;
    if (*stream)
        return MULL_OK;
    int status = errno == ENOMEM ? MULL_ENOMEM : MULL_EIO;
    snprintf(why, why_size, "%s can't be read: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

/* open_file opens the file of a name. MULL_ENOMEM; MULL_EIO: `why`. */
static int open_file(FILE **stream, const char **path, mull__source *source, const char *name,
                     char *why, size_t why_size)
{
    size_t room = strlen(source->folder) + strlen(name) + 1;
    char *whole = mull__arena_zalloc(&source->arena, room, 1);
    if (!whole)
        return MULL_ENOMEM;
    snprintf(whole, room, "%s%s", source->folder, name);
    *path = whole;
    return open_regular(stream, whole, why, why_size);
}

/* read_file reads the file of a name. As open_file. */
static int read_file(char **text, size_t *size, mull__source *source, const char *name, char *why,
                     size_t why_size)
{
    FILE *stream;
    const char *path;
    int status = open_file(&stream, &path, source, name, why, why_size);
    if (status)
        return status;
    errno = 0;
    status = read_all(text, size, &source->arena, stream);
    if (status == MULL_EIO)
        snprintf(why, why_size, "%s can't be read: %s", path, strerror(errno));
    else if (status == MULL_ETOOBIG)
        snprintf(why, why_size, "%s is larger than %d MiB", path, MULL__SOURCE_MAX / 1024 / 1024);
    fclose(stream);
    return status == MULL_ETOOBIG ? MULL_EIO : status;
}

int mull__source_get(mull__source *source, const char *name, const mull__source_file **file,
                     char *why, size_t why_size)
{
    *file = find(source->files, name);
    if (*file)
        return MULL_OK;
    if (!source->folder) {
        snprintf(why, why_size, "the policy was given as a text, so there are no files beside it");
        return MULL_EIO;
    }
    int is_new = !find(source->missing, name);
    if (is_new && source->count == MULL__SOURCE_FILES) {
        snprintf(why, why_size, "a policy can't look for more than %d files", MULL__SOURCE_FILES);
        return MULL_EIO;
    }
    char *text;
    size_t size;
    int status = read_file(&text, &size, source, name, why, why_size);
    if (status == MULL_OK)
        status = add_file(source, &source->files, name, text, size);
    else if (status == MULL_EIO && is_new &&
             add_file(source, &source->missing, name, NULL, 0) != MULL_OK)
        return MULL_ENOMEM;
    source->count += is_new;
    *file = find(source->files, name);
    return status;
}

/* is_same says whether what is left of a stream is a file's text. */
static int is_same(const mull__source_file *file, FILE *stream)
{
    char block[8192];
    size_t at = 0, got;
    while ((got = fread(block, 1, sizeof block, stream)) > 0) {
        if (got > file->size - at || memcmp(file->text + at, block, got) != 0)
            return 0;
        at += got;
    }
    return !ferror(stream) && at == file->size;
}

/* appeared: mull__source_moved for a file that couldn't be read. */
static int appeared(mull__source *source, const mull__source_file *file)
{
    char *text, why[1];
    size_t size;
    int status = read_file(&text, &size, source, file->name, why, sizeof why);
    return status == MULL_ENOMEM ? status : status == MULL_OK;
}

/* moved: mull__source_moved for a file that was read. */
static int moved(mull__source *source, const mull__source_file *file)
{
    char why[1];
    const char *path;
    FILE *stream;
    int status = open_file(&stream, &path, source, file->name, why, sizeof why);
    if (status)
        return status == MULL_ENOMEM ? status : 1;
    int same = is_same(file, stream);
    fclose(stream);
    return !same;
}

int mull__source_moved(mull__source *source)
{
    const mull__source_file *const lists[] = {source->files, source->missing};
    int status = 0;
    for (int i = 0; i < 2; i++)
        for (const mull__source_file *file = lists[i]; file && status == 0; file = file->next)
            if (source->folder && !file->given)
                status = file->text ? moved(source, file) : appeared(source, file);
    return status;
}

char *mull__source_files(const mull__source *source)
{
    const mull__source_file *const lists[] = {source->files, source->missing};
    if (!source->folder)
        return NULL;
    size_t folder = strlen(source->folder), room = 1;
    for (int i = 0; i < 2; i++)
        for (const mull__source_file *file = lists[i]; file; file = file->next)
            room += folder + strlen(file->name) + 1;
    char *paths = mull__alloc(&source->arena.allocator, room), *at = paths;
    for (int i = 0; paths && i < 2; i++)
        for (const mull__source_file *file = lists[i]; file; file = file->next)
            at += snprintf(at, room - (size_t)(at - paths), "%s%s", source->folder, file->name) + 1;
    if (paths)
        *at = 0;
    return paths;
}

void mull__source_close(mull__source *source, char name[33])
{
    mull__digest digest;
    mull__digest_begin(&digest);
    for (const mull__source_file *file = source->files; file; file = file->next) {
        mull__digest_add(&digest, file->name, strlen(file->name));
        mull__digest_add(&digest, file->text, file->size);
    }
    mull__digest_end(&digest, name);
    source->folder = NULL;
}
