/* modules.c: loads a transport from the library's own folder of modules. Its code runs with all
 * that this process may do, so the folder follows from where this code was loaded from, never from
 * the environment, the working folder or a search path; and nobody may be able to write there who
 * couldn't replace the library itself. */
#include "modules.h"

#include "mulligan/module.h"
#include "transports.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Where it is ----------------------------------------------------------------------------- */

/* place is a module's file, in its folder. */
typedef struct place {
    const char *scheme;
    char own[PATH_MAX]; /* the file that this code is in */
    char folder[PATH_MAX], file[PATH_MAX + MULL__SCHEME_MAX + sizeof "/.so"];
} place;

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
static int find_in(place *p, const char *folder)
{
    char path[2 * PATH_MAX];
    struct stat found;
    int own = (int)(strrchr(p->own, '/') - p->own);
    snprintf(path, sizeof path, "%.*s/%s", own, p->own, folder);
    if (!realpath(folder[0] == '/' ? folder : path, p->folder))
        return 0;
    snprintf(p->file, sizeof p->file, "%s/%s.so", p->folder, p->scheme);
    return lstat(p->file, &found) == 0 || errno != ENOENT;
}

/* find: where both have one, that of an installation goes before that of a build. */
static int find(place *p)
{
    return mull__modules_folders && own_file(p->own) &&
           (find_in(p, mull__modules_folders[0]) || find_in(p, mull__modules_folders[1]));
}

/* ---- Whether it may be loaded ---------------------------------------------------------------- */

/* reason is where a failure is told. */
typedef struct reason {
    const place *of;
    char *text;
    size_t size;
} reason;

/* refuse says why a module isn't loaded; 0. */
__attribute__((format(printf, 2, 3))) static int refuse(const reason *why, const char *format, ...)
{
    int length = snprintf(why->text, why->size, "'%s:' can't be loaded: ", why->of->scheme);
    va_list arguments;
    va_start(arguments, format);
    if (length > 0 && (size_t)length < why->size)
        vsnprintf(why->text + length, why->size - (size_t)length, format, arguments);
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
static int is_safe(const reason *why, const char *path, mode_t kind, const struct stat *own)
{
    struct stat found;
    char room[128];
    if (lstat(path, &found) != 0)
        return refuse(why, "%s: %s", path, strerror_r(errno, room, sizeof room));
    if ((found.st_mode & S_IFMT) != kind)
        return refuse(why, "%s is no %s", path,
                      kind == S_IFREG ? "regular file; put the module itself there" : "folder");
    if (!is_trusted(found.st_uid, own))
        return refuse(why, "%s belongs to user %u; it must be root's, or user %u's, as mulligan is",
                      path, (unsigned)found.st_uid, (unsigned)own->st_uid);
    if (found.st_mode & (S_IWGRP | S_IWOTH))
        return refuse(why, "%s may be written to by others than its owner; chmod go-w it", path);
    return 1;
}

/* may_be_loaded looks at each folder from the first that mulligan's own file isn't in (who may
 * exchange one above may exchange mulligan as well), then at the module's file. Nobody else can
 * exchange what is in a folder that is safe, so what was looked at is what dlopen finds by the same
 * path. */
static int may_be_loaded(const reason *why, const place *p)
{
    struct stat own;
    char path[sizeof p->file];
    if (stat(p->own, &own) != 0)
        return refuse(why, "mulligan's own file was replaced while it runs; start it anew");
    for (const char *end = p->file; (end = strchr(end + 1, '/'));) {
        snprintf(path, sizeof path, "%.*s", (int)(end - p->file), p->file);
        if (strncmp(p->own, path, strlen(path)) == 0 && p->own[strlen(path)] == '/')
            continue;
        if (!is_safe(why, path, S_IFDIR, &own))
            return 0;
    }
    return is_safe(why, p->file, S_IFREG, &own);
}

/* ---- Whether it is one ----------------------------------------------------------------------- */

/* fits: of a module of another version no more is read than its size and version. */
static int fits(const reason *why, const struct mull_module *module)
{
    const place *p = why->of;
    if (!module)
        return refuse(why, "%s is no module of mulligan; it has no `mull_module`", p->file);
    if (module->version != MULL_TRANSPORT_VERSION)
        return refuse(why,
                      "%s is for transports of version %d, this mulligan for %d; "
                      "install both of one release",
                      p->file, module->version, MULL_TRANSPORT_VERSION);
    if (module->size < sizeof *module || module->port_size > sizeof(mull_port_calls))
        return refuse(why,
                      "%s doesn't fit this mulligan; "
                      "install both of one release",
                      p->file);
    const mull_transport_ops *ops = module->transport;
    if (!module->name || strcmp(module->name, p->scheme) != 0 || !ops ||
        ops->version != module->version || strcmp(ops->scheme, p->scheme) != 0)
        return refuse(why,
                      "%s is the module '%s', with a transport for '%s:'; "
                      "both must be called as its file is",
                      p->file, module->name ? module->name : "", ops ? ops->scheme : "");
    const char *slot = mull__missing_slot(ops);
    return slot ? refuse(why, "%s has no `%s`; only `depth`, `hold` and `flush` may be missing",
                         p->file, slot)
                : 1;
}

const mull_transport_ops *mull__module_load(const char *scheme, char *why, size_t why_size)
{
    place p = {.scheme = scheme};
    const reason refused = {&p, why, why_size};
    why[0] = '\0';
    /* No other text becomes part of a path. */
    if (!mull__is_scheme(scheme) || !find(&p) || !may_be_loaded(&refused, &p))
        return NULL;
    /* Not by /proc/self/fd/N: glibc takes a number that is used again for the library of its name.
     */
    void *library = dlopen(p.file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        refuse(&refused, "%s", dlerror());
        return NULL;
    }
    const struct mull_module *module = dlsym(library, "mull_module");
    return fits(&refused, module) ? module->transport : NULL;
}
