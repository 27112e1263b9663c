/* output.c: see output.h. */
#include "output.h"

#include "base/alloc.h"
#include "base/list.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    FIRST_ROOM = 4096,
    DRAIN_MOST = 1024 * 1024 /* bytes: as much as a pipe can hold, unless root made it larger */
};

/* room_of makes room for more, and gives its size; 0: there is no memory. */
static size_t room_of(mull__output *o)
{
    size_t limit = o->keeps_end ? 2 * o->most : o->most + 1;
    if (o->used == limit) {
        memmove(o->bytes, o->bytes + o->used - o->most, o->most);
        o->used = o->most;
    } else if (o->used == o->room) {
        size_t room = o->room ? 2 * o->room : FIRST_ROOM;
        room = room < limit ? room : limit;
        char *bytes = mull__grow(o->allocator, o->bytes, room, 1);
        if (!bytes)
            return 0;
        o->bytes = bytes;
        o->room = room;
    }
    return o->room - o->used;
}

static void fail(mull__output *o, int status)
{
    uv_read_stop((uv_stream_t *)&o->pipe);
    if (o->status != 0)
        return;
    o->status = status;
    o->failed(o);
}

static void took(mull__output *o, size_t size)
{
    o->used += size;
    if (!o->keeps_end && o->used > o->most)
        fail(o, MULL_ETOOBIG);
}

static mull__output *output_of(void *pipe)
{
    return MULL__ENTRY(pipe, mull__output, pipe);
}

static void on_room(uv_handle_t *pipe, size_t wanted, uv_buf_t *room)
{
    (void)wanted;
    mull__output *o = output_of(pipe);
    size_t size = room_of(o);
    *room = uv_buf_init(size ? o->bytes + o->used : NULL, (unsigned)size);
}

static void on_read(uv_stream_t *pipe, ssize_t size, const uv_buf_t *room)
{
    (void)room;
    if (size > 0)
        took(output_of(pipe), (size_t)size);
    else if (size == UV_ENOBUFS)
        fail(output_of(pipe), MULL_ENOMEM);
    else if (size < 0)
        uv_read_stop(pipe);
}

int mull__output_open(mull__output *o, uv_loop_t *loop, int *write_end)
{
    int ends[2];
    uv_pipe_init(loop, &o->pipe, 0);
    /* Not libuv's own, which is a pair of sockets: a program couldn't open that as /dev/stderr. */
    if (pipe2(ends, O_CLOEXEC) != 0)
        return uv_translate_sys_error(errno);
    *write_end = ends[1];
    int status = uv_pipe_open(&o->pipe, ends[0]);
    if (status != 0)
        close(ends[0]);
    return status != 0 ? status : uv_read_start((uv_stream_t *)&o->pipe, on_room, on_read);
}

void mull__output_drain(mull__output *o)
{
    uv_os_fd_t end;
    ssize_t size = 1;
    uv_read_stop((uv_stream_t *)&o->pipe);
    if (uv_fileno((const uv_handle_t *)&o->pipe, &end) != 0)
        return;
    for (size_t all = 0; size > 0 && all < DRAIN_MOST && o->status == 0; all += (size_t)size) {
        size_t room = room_of(o);
        if (room == 0) {
            fail(o, MULL_ENOMEM);
            return;
        }
        do
            size = read(end, o->bytes + o->used, room);
        while (size < 0 && errno == EINTR);
        if (size > 0)
            took(o, (size_t)size);
    }
}

const char *mull__output_text(const mull__output *o, size_t *size)
{
    *size = o->used < o->most ? o->used : o->most;
    return o->used > 0 ? o->bytes + o->used - *size : "";
}
