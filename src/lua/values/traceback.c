/* traceback.c: see traceback.h. */
#include "traceback.h"

#include <lauxlib.h>
#include <string.h>

/* Of a deeper stack only the innermost and the outermost levels are shown. */
enum { INNERMOST = 10, OUTERMOST = 11 };

/* levels_of gives how many levels a stack has. Lua walks the stack for each level that is asked
 * for, so this asks for few of them. */
static int levels_of(lua_State *of)
{
    lua_Debug at;
    int low = 0, high = 1; /* there are at least `low`, and at most `high` */
    while (lua_getstack(of, high, &at)) {
        low = high;
        high *= 2;
    }
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (lua_getstack(of, middle, &at))
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

static void add_place(luaL_Buffer *out, const char *file, int line)
{
    char number[16], *at = number + sizeof number;
    luaL_addstring(out, file);
    if (line <= 0)
        return;
    for (; line > 0; line /= 10)
        *--at = (char)('0' + line % 10);
    *--at = ':';
    luaL_addlstring(out, at, (size_t)(number + sizeof number - at));
}

static void add_name(luaL_Buffer *out, const lua_Debug *at)
{
    if (*at->namewhat) {
        int is_global = strcmp(at->namewhat, "global") == 0;
        luaL_addstring(out, is_global ? "function" : at->namewhat);
        luaL_addstring(out, " '");
        luaL_addstring(out, at->name);
        luaL_addchar(out, '\'');
    } else if (strcmp(at->what, "main") == 0) {
        luaL_addstring(out, "main chunk");
    } else if (strcmp(at->what, "C") == 0) {
        luaL_addchar(out, '?');
    } else {
        luaL_addstring(out, "function <");
        add_place(out, at->short_src, at->linedefined);
        luaL_addchar(out, '>');
    }
}

static void add_level(luaL_Buffer *out, const lua_Debug *at)
{
    luaL_addstring(out, "\n\t");
    add_place(out, at->short_src, at->currentline);
    luaL_addstring(out, ": in ");
    add_name(out, at);
    if (at->istailcall)
        luaL_addstring(out, "\n\t(...tail calls...)");
}

void mull__traceback(lua_State *L, lua_State *of, int level)
{
    lua_Debug at;
    luaL_Buffer out;
    int gap = level + INNERMOST, left_out = levels_of(of) - OUTERMOST - gap;
    luaL_buffinit(L, &out);
    luaL_addstring(&out, "stack traceback:");
    for (; lua_getstack(of, level, &at); level++) {
        if (level == gap && left_out > 1) {
            lua_pushfstring(L, "\n\t...\t(skipping %d levels)", left_out);
            luaL_addvalue(&out);
            level += left_out - 1;
        } else {
            lua_getinfo(of, "Slnt", &at);
            add_level(&out, &at);
        }
    }
    luaL_pushresult(&out);
}
