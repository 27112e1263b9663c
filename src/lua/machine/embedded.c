/* embedded.c: see embedded.h. */
#include "embedded.h"

#include <lauxlib.h>
#include <string.h>

/* lua_ident is how the Lua at work calls itself, to the release. No header declares it, and a Lua
 * that was linked in with its names hidden may not have it: then it is NULL. */
__attribute__((weak)) extern const char lua_ident[];

const mull__embedded *mull__embedded_find(const char *name)
{
    for (size_t i = 0; i < mull__embedded_count; i++)
        if (strcmp(mull__embedded_files[i].name, name) == 0)
            return &mull__embedded_files[i];
    return NULL;
}

static int load(lua_State *L, const char *name, const char *bytes, size_t size, const char *mode)
{
    const char *chunk = lua_pushfstring(L, "=%s", name);
    int status = luaL_loadbufferx(L, bytes, size, chunk, mode);
    lua_remove(L, -2);
    return status;
}

int mull__embedded_load_for(lua_State *L, const mull__embedded *file, const char *maker)
{
    const char *here = lua_ident;
    if (file->code && here && strcmp(here, maker) == 0) {
        int status = load(L, file->name, file->code, file->code_size, "b");
        if (status != LUA_ERRSYNTAX)
            return status;
        lua_pop(L, 1); /* its numbers or instructions have other sizes */
    }
    return load(L, file->name, file->text, file->size, "t");
}

int mull__embedded_load(lua_State *L, const mull__embedded *file)
{
    return mull__embedded_load_for(L, file, mull__embedded_lua_ident);
}
