/* scoped_memory.c: see scoped_memory.h. */
#include "scoped_memory.h"

#include "base/alloc.h"
#include "metatable.h"

#include <lauxlib.h>
#include <string.h>

/* What a call of drop takes, with what may be on the stack above the userdata by then. */
enum { FRAME = 2 * LUA_MINSTACK };

void *mull__collected_userdata(lua_State *L, size_t size, const char *type, lua_CFunction drop)
{
    void *made = memset(lua_newuserdatauv(L, size, 0), 0, size);
    if (!mull__metatable_get(L, type)) {
        const luaL_Reg meta[] = {{"__gc", drop}, {"__close", drop}, {NULL, NULL}};
        luaL_setfuncs(L, meta, 0);
        mull__metatable_register(L, type);
    }
    lua_setmetatable(L, -2);
    return made;
}

static int nothing(lua_State *L)
{
    (void)L;
    return 0;
}

void mull__reserve_call(lua_State *L, int frame)
{
    luaL_checkstack(L, frame, NULL);
    lua_pushcfunction(L, nothing);
    lua_call(L, 0, 0);
}

/* The collector knows nothing of what malloc gave, and would let that pile up: so it is closed as
 * <close> variables are, and left to the collector only in a coroutine that nobody closes. The
 * memory to call drop is had now, so that the function's end can't fail. */
void *mull__scoped_userdata(lua_State *L, size_t size, const char *type, lua_CFunction drop)
{
    void *made = mull__collected_userdata(L, size, type, drop);
    mull__reserve_call(L, FRAME);
    lua_toclose(L, -1);
    return made;
}

static const char type_name[] = "mulligan.arena";

static int drop(lua_State *L)
{
    mull__arena_free(lua_touserdata(L, 1));
    return 0;
}

mull__arena *mull__arena_new(lua_State *L)
{
    mull__arena *arena = mull__scoped_userdata(L, sizeof *arena, type_name, drop);
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
