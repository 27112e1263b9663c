/* lines.c: see lines.h. */
#include "lines.h"

#include "type.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const char type_name[] = "mulligan.lines";

enum { CHUNK = 64 * 1024 };

/* What is read and not given yet is bytes[from ... to). */
typedef struct reader {
    char *bytes;
    size_t from, to, room;
    size_t looked; /* there is no newline before it */
    size_t limit;
    int at_end;
    int skipping; /* the line is too long: nothing of it is kept */
} reader;

static int is_ready(void)
{
    fd_set in;
    FD_ZERO(&in);
    FD_SET(STDIN_FILENO, &in);
    struct timeval none = {0};
    return select(STDIN_FILENO + 1, &in, NULL, NULL, &none) > 0;
}

/* make_room gives a chunk's room behind what is there. */
static int make_room(reader *r)
{
    if (r->from > 0) {
        memmove(r->bytes, r->bytes + r->from, r->to - r->from);
        r->to -= r->from;
        r->looked -= r->from;
        r->from = 0;
    }
    if (r->room - r->to >= CHUNK)
        return 0;
    size_t room = r->room * 2 > r->to + CHUNK ? r->room * 2 : r->to + CHUNK;
    char *grown = realloc(r->bytes, room);
    if (!grown)
        return -1;
    r->bytes = grown;
    r->room = room;
    return 0;
}

/* fill reads once. 0, or an errno. */
static int fill(reader *r)
{
    if (make_room(r) != 0)
        return ENOMEM;
    ssize_t size;
    do
        size = read(STDIN_FILENO, r->bytes + r->to, CHUNK);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return errno;
    r->at_end = size == 0;
    r->to += (size_t)size;
    return 0;
}

/* find_line looks for the end of the line; NULL: not read yet. A line that is too long by then is
 * let go of, so that memory is bounded. */
static const char *find_line(reader *r)
{
    const char *end = NULL;
    if (r->to > r->looked)
        end = memchr(r->bytes + r->looked, '\n', r->to - r->looked);
    r->looked = r->to;
    size_t size = end ? (size_t)(end - r->bytes) - r->from : r->to - r->from;
    r->skipping |= size > r->limit;
    if (!end && r->skipping)
        r->from = r->to;
    if (!end && r->at_end && (r->skipping || r->to > r->from))
        end = r->bytes + r->to;
    return end;
}

static int give_line(lua_State *L, reader *r, const char *end)
{
    size_t stop = (size_t)(end - r->bytes);
    if (r->skipping)
        lua_pushboolean(L, 0);
    else
        lua_pushlstring(L, r->bytes + r->from, stop - r->from);
    r->skipping = 0;
    r->from = stop < r->to ? stop + 1 : r->to;
    r->looked = r->from;
    return 1;
}

static int next(lua_State *L)
{
    reader *r = luaL_checkudata(L, 1, type_name);
    int may_wait = lua_toboolean(L, 2);
    const char *end;
    while (!(end = find_line(r))) {
        const char *word = r->at_end ? "end" : !may_wait && !is_ready() ? "later" : NULL;
        if (word) {
            luaL_pushfail(L);
            lua_pushstring(L, word);
            return 2;
        }
        int problem = fill(r);
        if (problem) {
            luaL_pushfail(L);
            lua_pushliteral(L, "error");
            lua_pushstring(L, strerror(problem));
            return 3;
        }
    }
    return give_line(L, r, end);
}

static int collect(lua_State *L)
{
    reader *r = luaL_checkudata(L, 1, type_name);
    free(r->bytes);
    *r = (reader){.at_end = 1};
    return 0;
}

int mull__lua_lines(lua_State *L)
{
    lua_Integer limit = luaL_checkinteger(L, 1);
    luaL_argcheck(L, limit >= 0, 1, "must be 0 or more");
    reader *made = lua_newuserdatauv(L, sizeof *made, 0);
    *made = (reader){.limit = (size_t)limit};
    if (!mull__type_get(L, type_name)) {
        lua_pushcfunction(L, collect);
        lua_setfield(L, -2, "__gc");
        lua_createtable(L, 0, 1);
        lua_pushcfunction(L, next);
        lua_setfield(L, -2, "next");
        lua_setfield(L, -2, "__index");
        mull__type_keep(L, type_name);
    }
    lua_setmetatable(L, -2);
    return 1;
}
