/* parsed.c: see parsed.h. */
#include "parsed.h"

#include <lauxlib.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "embedded.h"
#include "vm.h"

/* code is a file as lua_dump gave it: bytecode of the very Lua that loads it again. */
typedef struct code {
    const char *name;
    char *bytes;
    size_t size, room;
} code;

struct mull__parsed {
    mull_allocator allocator;
    size_t count;
    code files[];
};

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* of_policies: the other embedded files are the program's. */
static int of_policies(const char *name)
{
    return begins(name, "mulligan.policy") || begins(name, "mulligan.preset") ||
           begins(name, "mulligan.sandbox");
}

typedef struct dump {
    const mull_allocator *allocator;
    code *file;
} dump;

static int add_piece(lua_State *L, const void *piece, size_t size, void *data)
{
    (void)L;
    dump *d = data;
    code *file = d->file;
    if (size > file->room - file->size) {
        size_t least = file->size + size, room = least > 2 * file->room ? least : 2 * file->room;
        char *longer = mull__grow(d->allocator, file->bytes, room, 1);
        if (!longer)
            return MULL_ENOMEM;
        file->bytes = longer;
        file->room = room;
    }
    if (size > 0)
        memcpy(file->bytes + file->size, piece, size);
    file->size += size;
    return 0;
}

static void no_memory(lua_State *L)
{
    mull__vm_of(L)->refused = MULL__VM_NO_MEMORY;
    mull__vm_no_memory(L);
}

static void check_loaded(lua_State *L, int status)
{
    if (status == LUA_ERRMEM)
        mull__vm_no_memory(L);
    if (status != LUA_OK)
        lua_error(L);
}

static int parse_all(lua_State *L)
{
    mull__parsed *parsed = lua_touserdata(L, 1);
    for (size_t i = 0; i < mull__embedded_count; i++) {
        const struct mull__embedded *file = &mull__embedded_files[i];
        if (!of_policies(file->name))
            continue;
        const char *chunk = lua_pushfstring(L, "=%s", file->name);
        check_loaded(L, luaL_loadbufferx(L, file->text, file->size, chunk, "t"));
        dump d = {&parsed->allocator, &parsed->files[parsed->count++]};
        d.file->name = file->name;
        if (lua_dump(L, add_piece, &d, 0) != 0)
            no_memory(L);
        lua_settop(L, 1);
    }
    return 0;
}

static void drop(mull__parsed *parsed)
{
    const mull_allocator a = parsed->allocator;
    for (size_t i = 0; i < parsed->count; i++)
        mull__free(&a, parsed->files[i].bytes);
    mull__free(&a, parsed);
}

static int make(mull__parsed **out)
{
    mull_allocator a = mull__allocator_or_default((mull_allocator){0});
    mull__parsed *parsed =
        mull__zalloc(&a, 1, sizeof *parsed + mull__embedded_count * sizeof *parsed->files);
    if (!parsed)
        return MULL_ENOMEM;
    parsed->allocator = a;
    mull__vm vm;
    int status = mull__vm_open(&vm, &a, SIZE_MAX);
    if (status == MULL_OK) {
        status = mull__vm_call(&vm, parse_all, parsed, NULL);
        mull__vm_close(&vm);
    }
    if (status)
        drop(parsed);
    else
        *out = parsed;
    return status;
}

int mull__parsed_get(const mull__parsed **out)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    static mull__parsed *all;
    pthread_mutex_lock(&making);
    int status = all ? MULL_OK : make(&all);
    *out = all;
    pthread_mutex_unlock(&making);
    return status;
}

void mull__parsed_push(lua_State *L, const mull__parsed *parsed, const char *name)
{
    for (size_t i = 0; i < parsed->count; i++) {
        const code *file = &parsed->files[i];
        if (strcmp(file->name, name) != 0)
            continue;
        check_loaded(L, luaL_loadbufferx(L, file->bytes, file->size, name, "b"));
        return;
    }
    luaL_error(L, "there is no embedded file %s", name);
}
