/* lines.c: see lines.h. */
#include "lines.h"

#include "type.h"

#include <errno.h>
#include <lauxlib.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char type_name[] = "mulligan.lines";

typedef struct reader {
    char *line; /* what is read of it so far, `size` bytes; from malloc */
    size_t size, room, limit;
    int is_long; /* it is longer than the limit: nothing of it is kept */
    int at_end;
    size_t from, to; /* chunk[from ... to) is read and not looked at yet */
    char chunk[64 * 1024];
} reader;

/* keep adds bytes to the line, which may become too long. 0, or ENOMEM. */
static int keep(reader *r, const char *bytes, size_t size)
{
    r->is_long |= size > r->limit - r->size;
    if (r->is_long || size == 0) {
        r->size = r->is_long ? 0 : r->size;
        return 0;
    }
    if (r->room - r->size < size) {
        size_t room = 2 * (r->size + size);
        char *grown = realloc(r->line, room);
        if (!grown)
            return ENOMEM;
        r->line = grown;
        r->room = room;
    }
    memcpy(r->line + r->size, bytes, size);
    r->size += size;
    return 0;
}

/* take takes what is read into the line, and says in `whole` whether all of that is there. 0, or
 * ENOMEM. */
static int take(reader *r, int *whole)
{
    const char *begin = r->chunk + r->from, *end = memchr(begin, '\n', r->to - r->from);
    size_t size = end ? (size_t)(end - begin) : r->to - r->from;
    if (keep(r, begin, size))
        return ENOMEM;
    r->from += size + (end != NULL);
    *whole = end || (r->at_end && (r->size > 0 || r->is_long));
    return 0;
}

/* fill reads once. 0, or an errno. */
static int fill(reader *r)
{
    ssize_t size;
    do
        size = read(STDIN_FILENO, r->chunk, sizeof r->chunk);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return errno;
    r->at_end = size == 0;
    r->from = 0;
    r->to = (size_t)size;
    return 0;
}

/* why_none says why no line can be read now; NULL: one may come. Where it waits for stdin, whoever
 * reads stdout may go away first. */
static const char *why_none(lua_State *L, const reader *r)
{
    struct pollfd ends[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = STDOUT_FILENO}};
    int may_wait = lua_toboolean(L, 2), for_stdout = lua_toboolean(L, 3);
    if (r->at_end)
        return "end";
    if (!may_wait)
        return poll(ends, 1, 0) > 0 ? NULL : "later";
    while (for_stdout && poll(ends, 2, -1) < 0 && errno == EINTR) {
    }
    return !ends[0].revents && ends[1].revents & (POLLERR | POLLHUP) ? "unread" : NULL;
}

static int fail(lua_State *L, const char *word, const char *why)
{
    luaL_pushfail(L);
    lua_pushstring(L, word);
    if (!why)
        return 2;
    lua_pushstring(L, why);
    return 3;
}

static int next(lua_State *L)
{
    reader *r = luaL_checkudata(L, 1, type_name);
    int whole = 0;
    for (int problem = take(r, &whole); !whole; problem = take(r, &whole)) {
        const char *word = problem ? NULL : why_none(L, r);
        if (word)
            return fail(L, word, NULL);
        if (problem || (problem = fill(r)))
            return fail(L, "error", strerror(problem));
    }
    if (r->is_long)
        lua_pushboolean(L, 0);
    else
        lua_pushlstring(L, r->line, r->size);
    r->size = 0;
    r->is_long = 0;
    return 1;
}

static int collect(lua_State *L)
{
    reader *r = luaL_checkudata(L, 1, type_name);
    free(r->line);
    r->line = NULL;
    return 0;
}

int mull__lua_lines(lua_State *L)
{
    lua_Integer limit = luaL_checkinteger(L, 1);
    luaL_argcheck(L, limit >= 0, 1, "must be 0 or more");
    reader *made = lua_newuserdatauv(L, sizeof *made, 0);
    memset(made, 0, offsetof(reader, chunk));
    made->limit = (size_t)limit;
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
