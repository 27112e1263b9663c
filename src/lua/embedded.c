/* embedded.c: see embedded.h. */
#include "embedded.h"

#include <lauxlib.h>
#include <string.h>

/* lua_ident is how the Lua at work calls itself, to the release. No header declares it, and a Lua
 * that was linked in with its names hidden may not have it: then it is NULL. */
__attribute__((weak)) extern const char lua_ident[];

static int is_lua_of(const char *maker)
{
    const char *here = lua_ident;
    return here && strcmp(here, maker) == 0;
}

const mull__embedded *mull__embedded_find(const char *name)
{
    for (size_t i = 0; i < mull__embedded_count; i++)
        if (strcmp(mull__embedded_files[i].name, name) == 0)
            return &mull__embedded_files[i];
    return NULL;
}

/* load_by loads a file's text or its bytecode, as `mode` says. */
static int load_by(lua_State *L, const mull__embedded *file, const char *mode)
{
    int is_text = *mode == 't';
    const char *chunk = lua_pushfstring(L, "=%s", file->name);
    int status = luaL_loadbufferx(L, is_text ? file->text : file->code,
                                  is_text ? file->size : file->code_size, chunk, mode);
    lua_remove(L, -2);
    return status;
}

int mull__embedded_load_made(lua_State *L, const mull__embedded *file, const char *maker)
{
    if (file->code && is_lua_of(maker)) {
        int status = load_by(L, file, "b");
        if (status != LUA_ERRSYNTAX)
            return status;
        lua_pop(L, 1); /* its numbers or instructions have other sizes */
    }
    return load_by(L, file, "t");
}

int mull__embedded_load(lua_State *L, const mull__embedded *file)
{
    return mull__embedded_load_made(L, file, mull__embedded_maker);
}
