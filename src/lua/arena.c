/* arena.c: see arena.h. */
#include "arena.h"

#include "base/alloc.h"
#include "scoped.h"

#include <lauxlib.h>

static const char type_name[] = "mulligan.arena";

static int drop(lua_State *L)
{
    mull__arena_free(lua_touserdata(L, 1));
    return 0;
}

mull__arena *mull__arena_new(lua_State *L)
{
    mull__arena *arena = mull__scoped_new(L, sizeof *arena, type_name, drop);
    arena->allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    return arena;
}

static void *checked(lua_State *L, void *memory)
{
    if (!memory)
        luaL_error(L, "not enough memory");
    return memory;
}

void *mull__arena_take(lua_State *L, mull__arena *arena, size_t count, size_t bytes)
{
    return checked(L, mull__arena_zalloc(arena, count, bytes));
}

char *mull__arena_copy(lua_State *L, mull__arena *arena, const char *bytes, size_t size)
{
    return checked(L, mull__arena_strndup(arena, bytes, size));
}
