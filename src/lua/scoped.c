/* scoped.c: see scoped.h. */
#include "scoped.h"

#include "host.h"
#include "type.h"

#include <lauxlib.h>
#include <string.h>

/* What a call of drop takes, with what may be on the stack above the userdata by then. */
enum { FRAME = 2 * LUA_MINSTACK };

void *mull__kept_new(lua_State *L, size_t size, const char *type, lua_CFunction drop)
{
    void *made = memset(lua_newuserdatauv(L, size, 0), 0, size);
    if (!mull__type_get(L, type)) {
        lua_pushcfunction(L, drop);
        lua_setfield(L, -2, "__gc");
        lua_pushcfunction(L, drop);
        lua_setfield(L, -2, "__close");
        mull__type_keep(L, type);
    }
    lua_setmetatable(L, -2);
    return made;
}

/* The collector knows nothing of what malloc gave, and would let that pile up: so it is closed as
 * <close> variables are, and left to the collector only in a coroutine that nobody closes. The
 * memory to call drop is had now, so that the function's end can't fail. */
void *mull__scoped_new(lua_State *L, size_t size, const char *type, lua_CFunction drop)
{
    void *made = mull__kept_new(L, size, type, drop);
    mull__reserve_call(L, FRAME);
    lua_toclose(L, -1);
    return made;
}
