/* source.c: see source.h. */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"

struct mull__source {
    mull_allocator allocator;
    char *folder; /* NULL: none, or closed */
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
    s->allocator = *allocator;
    s->folder = mull__strdup(allocator, folder);
    if (folder && !s->folder) {
        mull__source_free(s);
        return MULL_ENOMEM;
    }
    *out = s;
    return MULL_OK;
}

static void free_file(const mull_allocator *a, mull__source_file *file)
{
    mull__free(a, file->name);
    mull__free(a, file->text);
    mull__free(a, file);
}

static void free_files(const mull_allocator *a, mull__source_file *file)
{
    while (file) {
        mull__source_file *next = file->next;
        free_file(a, file);
        file = next;
    }
}

void mull__source_free(mull__source *source)
{
    if (!source)
        return;
    const mull_allocator a = source->allocator;
    free_files(&a, source->files);
    free_files(&a, source->missing);
    mull__free(&a, source->folder);
    mull__free(&a, source);
}

/* add_owned takes in a text that it owns from now on, on failure too. */
static int add_owned(const mull_allocator *a, mull__source_file **at, const char *name, char *text,
                     size_t size)
{
    mull__source_file *file = mull__zalloc(a, 1, sizeof *file);
    char *copy = mull__strdup(a, name);
    if (!file || !copy) {
        mull__free(a, text);
        mull__free(a, copy);
        mull__free(a, file);
        return MULL_ENOMEM;
    }
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
    char *copy = mull__strndup(&source->allocator, text, size);
    if (!copy || add_owned(&source->allocator, &source->files, name, copy, size) != MULL_OK)
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

/* read_all reads a stream to its end into memory that the caller owns. */
static int read_all(char **out, size_t *out_size, const mull_allocator *a, FILE *stream)
{
    char *text = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (size + 1 >= room) {
            room = room ? room * 2 : expected_size(stream) + 2;
            char *grown = mull__grow(a, text, room, 1);
            if (!grown) {
                mull__free(a, text);
                return MULL_ENOMEM;
            }
            text = grown;
        }
        size_t got = fread(text + size, 1, room - size - 1, stream);
        size += got;
        if (got == 0 || size > MULL__SOURCE_MAX)
            break;
    }
    if (ferror(stream) || size > MULL__SOURCE_MAX) {
        mull__free(a, text);
        return ferror(stream) ? MULL_EIO : MULL_ETOOBIG;
    }
    text[size] = 0;
    *out = text;
    *out_size = size;
    return MULL_OK;
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

/* open_file opens the file of a name; its path is the caller's to free, whatever this returns.
 * MULL_ENOMEM; MULL_EIO: `why`. */
static int open_file(FILE **stream, char **path, const mull__source *source, const char *name,
                     char *why, size_t why_size)
{
    size_t room = strlen(source->folder) + strlen(name) + 1;
    *stream = NULL;
    *path = mull__alloc(&source->allocator, room);
    if (!*path)
        return MULL_ENOMEM;
    snprintf(*path, room, "%s%s", source->folder, name);
    return open_regular(stream, *path, why, why_size);
}

/* read_stream reads a file to its end into memory that the caller owns, and closes it. As
 * open_file. */
static int read_stream(char **text, size_t *size, const mull_allocator *a, FILE *stream,
                       const char *path, char *why, size_t why_size)
{
    errno = 0;
    int status = read_all(text, size, a, stream);
    if (status == MULL_EIO)
        snprintf(why, why_size, "%s can't be read: %s", path, strerror(errno));
    else if (status == MULL_ETOOBIG)
        snprintf(why, why_size, "%s is larger than %d MiB", path, MULL__SOURCE_MAX / 1024 / 1024);
    fclose(stream);
    return status == MULL_ETOOBIG ? MULL_EIO : status;
}

/* read_file reads the file of a name into memory that the caller owns. As open_file. */
static int read_file(char **text, size_t *size, const mull__source *source, const char *name,
                     char *why, size_t why_size)
{
    const mull_allocator *a = &source->allocator;
    FILE *stream;
    char *path;
    int status = open_file(&stream, &path, source, name, why, why_size);
    if (status == MULL_OK)
        status = read_stream(text, size, a, stream, path, why, why_size);
    mull__free(a, path);
    return status;
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
    const mull_allocator *a = &source->allocator;
    int is_new = !find(source->missing, name);
    if (is_new && source->count == MULL__SOURCE_FILES) {
        snprintf(why, why_size, "a policy can't look for more than %d files", MULL__SOURCE_FILES);
        return MULL_EIO;
    }
    char *text;
    size_t size;
    int status = read_file(&text, &size, source, name, why, why_size);
    if (status == MULL_OK)
        status = add_owned(a, &source->files, name, text, size);
    else if (status == MULL_EIO && is_new &&
             add_owned(a, &source->missing, name, NULL, 0) != MULL_OK)
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
static int appeared(const mull__source *source, const mull__source_file *file)
{
    char *text, why[1];
    size_t size;
    int status = read_file(&text, &size, source, file->name, why, sizeof why);
    if (status == MULL_OK)
        mull__free(&source->allocator, text);
    return status == MULL_ENOMEM ? status : status == MULL_OK;
}

/* moved: mull__source_moved for a file that was read. */
static int moved(const mull__source *source, const mull__source_file *file)
{
    char *path, why[1];
    FILE *stream;
    int status = open_file(&stream, &path, source, file->name, why, sizeof why);
    mull__free(&source->allocator, path);
    if (status)
        return status == MULL_ENOMEM ? status : 1;
    int same = is_same(file, stream);
    fclose(stream);
    return !same;
}

int mull__source_moved(const mull__source *source)
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
    char *paths = mull__alloc(&source->allocator, room), *at = paths;
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
    mull__free(&source->allocator, source->folder);
    source->folder = NULL;
}
