/* stderr_output.c: see stderr_output.h. */
#include "stderr_output.h"

#include "mulligan.h"
#include "stderr_queue.h"

#include <lauxlib.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line may be as large as an error of 256 KiB that JSON escapes. */
enum { QUEUE = 2 * 1024 * 1024, PATIENCE_MS = 1000, LONGEST_MS = 10000 };

/* The process has one stderr, so one queue for it. */
static _Atomic(mull__writer *) queue;
static pid_t owner; /* the process that has the queue's thread; one that it forked hasn't */

static void put(const char *text, size_t size)
{
    mull__writer *writer = atomic_load(&queue);
    if (writer)
        mull__writer_put(writer, text, size);
    else
        fwrite(text, 1, size, stderr);
}

void mull__stderr_flush(void)
{
    mull__writer *writer = atomic_load(&queue);
    if (writer)
        mull__writer_flush(writer, PATIENCE_MS, LONGEST_MS);
}

static void close_queue(void)
{
    if (getpid() != owner)
        return;
    mull__stderr_flush();
    atomic_store(&queue, NULL);
}

void mull__stderr_print(const char *format, ...)
{
    char text[2048] = "mulligan: ";
    size_t begun = strlen(text), room = sizeof text - begun - 1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + begun, room, format, arguments);
    va_end(arguments);
    strcat(text, "\n");
    put(text, strlen(text));
}

int mull__lua_stderr_write(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    put(text, size);
    return 0;
}

int mull__lua_stderr_queue(lua_State *L)
{
    const char *lost = luaL_checkstring(L, 1);
    if (atomic_load(&queue))
        return luaL_error(L, "stderr has its queue already");
    mull__writer *writer;
    if (mull__writer_new(&writer, STDERR_FILENO, QUEUE, lost) != 0 || atexit(close_queue) != 0) {
        luaL_pushfail(L);
        lua_pushliteral(L, "no memory, or no thread, for the log");
        return 2;
    }
    owner = getpid();
    atomic_store(&queue, writer);
    lua_pushboolean(L, 1);
    return 1;
}
