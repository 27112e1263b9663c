/* program.c: see program.h. */
#include "program.h"

#include "base/alloc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

/* ---- Its file -------------------------------------------------------------------------------- */

static int look_at(const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return uv_translate_sys_error(errno);
    return S_ISREG(found.st_mode) && access(path, X_OK) == 0 ? 0 : UV_EACCES;
}

/* look_in looks at a name in one folder of PATH, where an empty one is the working folder. */
static int look_in(const char *folder, size_t length, const char *name)
{
    char path[PATH_MAX];
    int size =
        snprintf(path, sizeof path, "%.*s%s%s", (int)length, folder, length ? "/" : "", name);
    return size < (int)sizeof path ? look_at(path) : UV_ENAMETOOLONG;
}

int mull__program_find(const char *name)
{
    if (strchr(name, '/'))
        return look_at(name);
    const char *folder = getenv("PATH");
    int status = UV_ENOENT, more = 1;
    for (folder = folder ? folder : "/bin:/usr/bin"; more; folder++) {
        size_t length = strcspn(folder, ":");
        int found = look_in(folder, length, name);
        if (found == 0)
            return 0;
        if (found == UV_EACCES) /* another folder may have one that runs */
            status = found;
        folder += length;
        more = *folder == ':';
    }
    return status;
}

/* ---- Its environment ------------------------------------------------------------------------- */

/* is_among says whether one of these variables has the name of another. */
static int is_among(const char *const *variables, const char *other)
{
    for (; *variables; variables++) {
        size_t length = strcspn(*variables, "=");
        if (strncmp(*variables, other, length) == 0 && (!other[length] || other[length] == '='))
            return 1;
    }
    return 0;
}

static size_t count_of(const char *const *list)
{
    size_t count = 0;
    while (list[count])
        count++;
    return count;
}

const char **mull__program_environment(const mull_allocator *allocator, const char *const *others)
{
    const char *const *ours = (const char *const *)environ;
    size_t count = count_of(ours) + count_of(others) + 1;
    const char **made = mull__zalloc(allocator, count, sizeof *made), **end = made;
    if (!made)
        return NULL;
    for (; *ours; ours++)
        if (!is_among(others, *ours))
            *end++ = *ours;
    for (; *others; others++)
        if (strchr(*others, '='))
            *end++ = *others;
    return made;
}

/* ---- What it reads --------------------------------------------------------------------------- */

static int write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(file, bytes, size);
        if (written < 0 && errno != EINTR)
            return uv_translate_sys_error(errno);
        bytes += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* A pipe would have to be fed by the loop, and a write to one whose reader is gone raises SIGPIPE.
 */
int mull__program_file(const char *bytes, size_t size)
{
    int file = memfd_create("mulligan", MFD_CLOEXEC);
    if (file < 0)
        return uv_translate_sys_error(errno);
    int status = write_all(file, bytes, size);
    if (status == 0 && lseek(file, 0, SEEK_SET) < 0)
        status = uv_translate_sys_error(errno);
    if (status == 0)
        return file;
    close(file);
    return status;
}
