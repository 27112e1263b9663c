/* module_file.c: loads a module from the library's own folder of them. Its code runs with all that
 * this process may do, so the folder follows from where this code was loaded from, never from the
 * environment, the working folder or a search path; and nobody may be able to write there who
 * couldn't replace the library itself. */
#include "module_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Where it is ----------------------------------------------------------------------------- */

/* maps_path reads a line of /proc/self/maps: the path of what has an address; NULL: it isn't that.
 */
static const char *maps_path(char *line, uintptr_t address)
{
    uintptr_t begin = 0, end = 0;
    int at = 0;
    int read = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &at);
    if (read != 2 || at == 0 || address < begin || address >= end || line[at] != '/')
        return NULL;
    line[strcspn(line, "\n")] = '\0';
    return line + at;
}

/* own_file finds the file that this code was loaded from. The kernel says it: dladdr has what the
 * program was called by, and a path from a folder that may be another one by now. */
static int own_file(char path[PATH_MAX])
{
    char line[PATH_MAX + 128];
    const char *found = NULL;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return 0;
    while (!found && fgets(line, sizeof line, maps))
        found = maps_path(line, (uintptr_t)&own_file);
    fclose(maps);
    return found && snprintf(path, PATH_MAX, "%s", found) < PATH_MAX;
}

/* find_in looks into one folder, seen from our own. 0: there is no such file. */
static int find_in(mull__module_search *s, const char *folder)
{
    char path[2 * PATH_MAX];
    struct stat found;
    int own = (int)(strrchr(s->own, '/') - s->own);
    snprintf(path, sizeof path, "%.*s/%s", own, s->own, folder);
    if (!realpath(folder[0] == '/' ? folder : path, s->folder))
        return 0;
    snprintf(s->file, sizeof s->file, "%s/%s.so", s->folder, s->name);
    return lstat(s->file, &found) == 0 || errno != ENOENT;
}

/* find: where both have one, that of an installation goes before that of a build. */
static int find(mull__module_search *s)
{
    return mull__modules_folders && own_file(s->own) &&
           (find_in(s, mull__modules_folders[0]) || find_in(s, mull__modules_folders[1]));
}

/* ---- Whether it may be loaded ---------------------------------------------------------------- */

int mull__module_refuse(const mull__module_search *s, const char *format, ...)
{
    int length = snprintf(s->why, s->size, "%s can't be loaded: ", s->title);
    va_list arguments;
    va_start(arguments, format);
    if (length > 0 && (size_t)length < s->size)
        vsnprintf(s->why + length, s->size - (size_t)length, format, arguments);
    va_end(arguments);
    return 0;
}

/* is_trusted: what belongs to this user can't be worse than mulligan itself, or than its caller. A
 * program that has more rights than its caller (AT_SECURE) doesn't trust the caller. */
static int is_trusted(uid_t user, const struct stat *own)
{
    return user == 0 || user == own->st_uid || (user == geteuid() && !getauxval(AT_SECURE));
}

/* is_safe: it is of its kind (S_IFDIR, S_IFREG), and only who may replace our own file may replace
 * what is at `path`. */
static int is_safe(const mull__module_search *s, const char *path, mode_t kind,
                   const struct stat *own)
{
    struct stat found;
    char room[128];
    if (lstat(path, &found) != 0)
        return mull__module_refuse(s, "%s: %s", path, strerror_r(errno, room, sizeof room));
    if ((found.st_mode & S_IFMT) != kind)
        return mull__module_refuse(s, "%s is no %s", path,
                                   kind == S_IFREG ? "regular file; put the module itself there"
                                                   : "folder");
    if (!is_trusted(found.st_uid, own))
        return mull__module_refuse(
            s, "%s belongs to user %u; it must be root's, or user %u's, as mulligan is", path,
            (unsigned)found.st_uid, (unsigned)own->st_uid);
    if (found.st_mode & (S_IWGRP | S_IWOTH))
        return mull__module_refuse(
            s, "%s may be written to by others than its owner; chmod go-w it", path);
    return 1;
}

/* may_be_loaded looks at each folder from the first that mulligan's own file isn't in (who may
 * exchange one above may exchange mulligan as well), then at the module's file. Nobody else can
 * exchange what is in a folder that is safe, so what was looked at is what dlopen finds by the same
 * path. */
static int may_be_loaded(const mull__module_search *s)
{
    struct stat own;
    char path[sizeof s->file];
    if (stat(s->own, &own) != 0)
        return mull__module_refuse(s,
                                   "mulligan's own file was replaced while it runs; start it anew");
    for (const char *end = s->file; (end = strchr(end + 1, '/'));) {
        snprintf(path, sizeof path, "%.*s", (int)(end - s->file), s->file);
        if (strncmp(s->own, path, strlen(path)) == 0 && s->own[strlen(path)] == '/')
            continue;
        if (!is_safe(s, path, S_IFDIR, &own))
            return 0;
    }
    return is_safe(s, s->file, S_IFREG, &own);
}

const void *mull__module_symbol(mull__module_search *s, const char *symbol)
{
    s->why[0] = '\0';
    if (!find(s) || !may_be_loaded(s))
        return NULL;
    /* Not by /proc/self/fd/N: glibc takes a number that is used again for the library of its name.
     */
    void *library = dlopen(s->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        mull__module_refuse(s, "%s", dlerror());
        return NULL;
    }
    const void *found = dlsym(library, symbol);
    if (!found)
        mull__module_refuse(s, "%s is no module of mulligan; it has no `%s`", s->file, symbol);
    return found;
}
