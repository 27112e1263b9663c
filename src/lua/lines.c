/* lines.c: see lines.h. */
#include "lines.h"

#include <lauxlib.h>
#include <stdio.h>

/* skip_line reads on behind the next newline. */
static void skip_line(FILE *file)
{
    int c;
    while ((c = getc(file)) != EOF && c != '\n') {
    }
}

int mull__read_line(lua_State *L)
{
    luaL_Stream *stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);
    lua_Integer limit = luaL_checkinteger(L, 2);
    luaL_argcheck(L, stream->closef && stream->f, 1, "the file is closed");
    luaL_Buffer line;
    luaL_buffinit(L, &line);
    lua_Integer size = 0;
    int c;
    while ((c = getc(stream->f)) != EOF && c != '\n') {
        if (size++ == limit) {
            skip_line(stream->f);
            lua_pushboolean(L, 0);
            return 1;
        }
        luaL_addchar(&line, (char)c);
    }
    if (c == EOF && ferror(stream->f))
        return luaL_fileresult(L, 0, NULL);
    if (c == EOF && size == 0) {
        luaL_pushfail(L);
        return 1;
    }
    luaL_pushresult(&line);
    return 1;
}
