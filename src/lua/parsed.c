/* parsed.c: see parsed.h. */
#include "parsed.h"

#include <lauxlib.h>
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
    int sealed;
    size_t count;
    code files[];
};

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
        size_t room = file->size + size > 2 * file->room ? file->size + size : 2 * file->room;
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

int mull__parsed_new(mull__parsed **out, const mull_allocator *allocator)
{
    *out = mull__zalloc(allocator, 1, sizeof **out + mull__embedded_count * sizeof *(*out)->files);
    if (!*out)
        return MULL_ENOMEM;
    (*out)->allocator = *allocator;
    return MULL_OK;
}

void mull__parsed_seal(mull__parsed *parsed)
{
    if (!parsed->sealed) /* else others may be reading */
        parsed->sealed = 1;
}

void mull__parsed_free(mull__parsed *parsed)
{
    if (!parsed)
        return;
    const mull_allocator a = parsed->allocator;
    for (size_t i = 0; i < mull__embedded_count; i++)
        mull__free(&a, parsed->files[i].bytes);
    mull__free(&a, parsed);
}

static const struct mull__embedded *find(lua_State *L, const char *name)
{
    for (size_t i = 0; i < mull__embedded_count; i++)
        if (strcmp(mull__embedded_files[i].name, name) == 0)
            return &mull__embedded_files[i];
    luaL_error(L, "there is no embedded file %s", name);
    return NULL;
}

static void parse(lua_State *L, const struct mull__embedded *file)
{
    const char *chunk = lua_pushfstring(L, "=%s", file->name);
    check_loaded(L, luaL_loadbufferx(L, file->text, file->size, chunk, "t"));
    lua_remove(L, -2);
}

/* keep takes in the function on top. Where it fails, the next one takes the place. */
static void keep(lua_State *L, mull__parsed *parsed, const char *name)
{
    code *file = &parsed->files[parsed->count];
    dump d = {&parsed->allocator, file};
    file->name = name;
    file->size = 0;
    if (lua_dump(L, add_piece, &d, 0) != 0)
        no_memory(L);
    parsed->count++;
}

void mull__parsed_push(lua_State *L, mull__parsed *parsed, const char *name)
{
    for (size_t i = 0; i < parsed->count; i++) {
        const code *file = &parsed->files[i];
        if (strcmp(file->name, name) != 0)
            continue;
        check_loaded(L, luaL_loadbufferx(L, file->bytes, file->size, name, "b"));
        return;
    }
    const struct mull__embedded *file = find(L, name);
    parse(L, file);
    if (!parsed->sealed)
        keep(L, parsed, file->name);
}
