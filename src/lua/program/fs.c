/* fs.c: what commands that write files need of the system; see program.h. */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The module alone has no program to look from. */
#ifndef MULL__TYPES
#define MULL__TYPES ""
#endif

enum { PATH_SIZE = 4096 };

static int make(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat found;
    int made = mkdir(path, 0777) == 0;
    if (!made && errno == EEXIST && stat(path, &found) == 0)
        made = S_ISDIR(found.st_mode);
    return luaL_fileresult(L, made, path);
}

static int exists(const char *path)
{
    struct stat found;
    return lstat(path, &found) == 0;
}

static int is_there(lua_State *L)
{
    lua_pushboolean(L, exists(luaL_checkstring(L, 1)));
    return 1;
}

/* rename_to_free renames where nothing has the new name. A filesystem that can't do both in one
 * step does one after the other. */
static int rename_to_free(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (exists(to)) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

static int put(lua_State *L)
{
    const char *from = luaL_checkstring(L, 1), *to = luaL_checkstring(L, 2);
    int status = lua_toboolean(L, 3) ? rename(from, to) : rename_to_free(from, to);
    return luaL_fileresult(L, status == 0, to);
}

/* push_folder pushes a folder's path without links; 0: it is none. */
static int push_folder(lua_State *L, const char *path)
{
    char resolved[PATH_SIZE];
    if (!realpath(lua_pushfstring(L, "%s/.", path), resolved))
        return 0;
    lua_pushstring(L, resolved);
    return 1;
}

/* types: where the build installs them, seen from the program; else where a build has them. */
static int types(lua_State *L)
{
    char program[PATH_SIZE];
    ssize_t size = readlink("/proc/self/exe", program, sizeof program);
    if (size <= 0 || (size_t)size == sizeof program)
        return 0;
    program[size] = '\0';
    *strrchr(program, '/') = '\0';
    const char *installed = MULL__TYPES;
    if (installed[0] != '/')
        installed = lua_pushfstring(L, "%s/%s", program, installed);
    const char *built = lua_pushfstring(L, "%s/lua/mulligan/meta", program);
    return push_folder(L, installed) || push_folder(L, built);
}

void mull__fs_open(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"make", make}, {"is_there", is_there}, {"put", put}, {"types", types}, {NULL, NULL}};
    luaL_newlib(L, functions);
}
