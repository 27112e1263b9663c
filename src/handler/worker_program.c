/* worker_program.c: a worker's process; see workers_internal.h.
 *
 *   start ── it runs ──┬── it ended ── KILL to what is left of its group ──┐
 *     ^                └── it is to end: TERM ── 5 s ── KILL ──────────────┤
 *     └─────── a wait of 0.1 to 30 s ── its worker's calls have ended <────┘
 *
 * It has a session and a process group of its own, as a program of m.exec has. */
#include "program.h"
#include "workers_internal.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_WAIT_MS = 100, LONGEST_WAIT_MS = 30000, UP_MS = 60000 };

/* ---- What it writes -------------------------------------------------------------------------- */

static void end_line(mull__worker_program *p)
{
    mull__utf8_repair(p->line, p->line_size);
    for (size_t i = 0; i < p->line_size; i++)
        p->line[i] = p->line[i] ? p->line[i] : ' ';
    if (p->line_size > 0)
        mull__workers_log(p->workers, MULL_INFO, "worker process %d: %.*s", p->child.pid,
                          (int)p->line_size, p->line);
    p->line_size = 0;
}

static void take_output(mull__worker_program *p, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n' || p->line_size == sizeof p->line)
            end_line(p);
        if (bytes[i] != '\n' && bytes[i] != '\r')
            p->line[p->line_size++] = bytes[i];
    }
}

static void on_room(uv_handle_t *pipe, size_t wanted, uv_buf_t *room)
{
    mull__worker_program *p = pipe->data;
    (void)wanted;
    *room = uv_buf_init(p->read, sizeof p->read);
}

static void on_output(uv_stream_t *pipe, ssize_t size, const uv_buf_t *room)
{
    if (size > 0)
        take_output(pipe->data, room->base, (size_t)size);
    else if (size < 0)
        uv_read_stop(pipe);
}

/* drain_output takes what is there: a daemon that left the group may keep the pipe open. */
static void drain_output(mull__worker_program *p)
{
    enum { MOST = 1024 * 1024 / sizeof p->read };
    uv_os_fd_t end;
    uv_read_stop((uv_stream_t *)&p->output);
    if (uv_fileno((const uv_handle_t *)&p->output, &end) != 0)
        return;
    for (size_t i = 0; i < MOST; i++) {
        ssize_t size = read(end, p->read, sizeof p->read);
        if (size <= 0)
            break;
        take_output(p, p->read, (size_t)size);
    }
    end_line(p);
}

/* ---- Its end --------------------------------------------------------------------------------- */

static void set_timer(mull__worker_program *p, int64_t ms);

static void stop_starting(mull__worker_program *p)
{
    if (p->starting)
        p->workers->calls->working(p->workers->data, -1);
    p->starting = 0;
}

static void on_closed(uv_handle_t *handle)
{
    mull__worker_program *p = handle->data;
    mull__workers *workers = p->workers;
    p->open--;
    if (p->open == 0)
        mull__worker_program_settle(p);
    mull__workers_handle_closed(workers); /* which may be gone */
}

static void close_handles(mull__worker_program *p)
{
    uv_close((uv_handle_t *)&p->child, on_closed);
    uv_close((uv_handle_t *)&p->output, on_closed);
}

/* on_exit_of: its connection is at its end once the rest of its group is killed; a process that has
 * left the group may keep that open. */
static void on_exit_of(uv_process_t *child, int64_t status, int number)
{
    mull__worker_program *p = child->data;
    p->runs = 0;
    p->status = (int)status;
    p->signal = number;
    uv_timer_stop(&p->timer);
    uv_kill(-child->pid, SIGKILL);
    stop_starting(p);
    drain_output(p);
    if (p->workers->state == MULL__WORKERS_STARTED || number)
        mull__workers_log(p->workers, MULL_WARNING, "worker process %d ended with %s %d",
                          child->pid, number ? "signal" : "exit code",
                          number ? number : (int)status);
    close_handles(p);
    if (p->worker && !p->worker->peer)
        mull__worker_over(p->worker);
}

static void on_timer(uv_timer_t *timer)
{
    mull__worker_program *p = timer->data;
    if (!p->runs) {
        mull__worker_program_start(p);
        return;
    }
    p->ends++;
    uv_kill(-p->child.pid, p->ends == 2 ? SIGTERM : SIGKILL);
    if (p->ends == 2)
        set_timer(p, MULL__WORKER_KILL_MS);
}

static void set_timer(mull__worker_program *p, int64_t ms)
{
    uv_timer_start(&p->timer, on_timer, (uint64_t)ms, 0);
}

void mull__worker_program_end(mull__worker_program *p, int64_t wait_ms)
{
    if (!p->runs || p->ends > 0)
        return;
    p->ends = 1;
    set_timer(p, wait_ms);
}

void mull__worker_program_settle(mull__worker_program *p)
{
    if (p->runs || p->open > 0 || p->worker || p->workers->state != MULL__WORKERS_STARTED)
        return;
    int was_up = mull__workers_now(p->workers) - p->started_ms >= UP_MS;
    int64_t next_ms = p->wait_ms ? 2 * p->wait_ms : FIRST_WAIT_MS;
    p->wait_ms = was_up ? FIRST_WAIT_MS : next_ms < LONGEST_WAIT_MS ? next_ms : LONGEST_WAIT_MS;
    set_timer(p, p->wait_ms);
}

/* ---- Its start ------------------------------------------------------------------------------- */

void mull__worker_program_welcome(mull__worker_program *p)
{
    stop_starting(p);
}

/* ends are descriptors: ours of the connection, the process's, and both of what it writes to. */
typedef struct ends {
    int ours, its, reads, writes;
} ends;

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int open_ends(ends *e)
{
    int pair[2], pipe[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return uv_translate_sys_error(errno);
    e->ours = pair[0];
    e->its = pair[1];
    if (fcntl(e->ours, F_SETFL, O_NONBLOCK) != 0 || pipe2(pipe, O_CLOEXEC) != 0)
        return uv_translate_sys_error(errno);
    e->reads = pipe[0];
    e->writes = pipe[1];
    return 0;
}

static int spawn(mull__worker_program *p, const ends *e)
{
    static const char *const none[] = {NULL};
    uv_stdio_container_t stdio[] = {{.flags = UV_INHERIT_FD, .data.fd = e->its},
                                    {.flags = UV_INHERIT_FD, .data.fd = e->writes},
                                    {.flags = UV_INHERIT_FD, .data.fd = e->writes}};
    const char **variables = mull__program_environment(&p->workers->allocator, none);
    if (!variables)
        return UV_ENOMEM;
    const uv_process_options_t how = {.exit_cb = on_exit_of,
                                      .file = p->workers->words[0],
                                      .args = p->workers->words,
                                      .env = (char **)(uintptr_t)variables,
                                      .flags = UV_PROCESS_DETACHED,
                                      .stdio_count = 3,
                                      .stdio = stdio};
    int status = uv_spawn(p->workers->loop, &p->child, &how);
    p->runs = status == 0;
    mull__free(&p->workers->allocator, variables);
    return status;
}

/* open_handles opens those of a process; where it couldn't be started they are closed again. */
static int open_handles(mull__worker_program *p, ends *e)
{
    uv_pipe_init(p->workers->loop, &p->output, 0);
    int status = uv_pipe_open(&p->output, e->reads);
    if (status == 0)
        e->reads = -1;
    if (status == 0)
        status = uv_read_start((uv_stream_t *)&p->output, on_room, on_output);
    p->child = (uv_process_t){0};
    int spawned = status == 0;
    if (spawned)
        status = spawn(p, e);
    p->child.data = p->output.data = p;
    p->open = spawned ? 2 : 1; /* libuv has the process's handle where its start failed, too */
    p->workers->handles += p->open;
    if (status != 0 && spawned)
        close_handles(p);
    else if (status != 0)
        uv_close((uv_handle_t *)&p->output, on_closed);
    return status;
}

static void connect_it(mull__worker_program *p, ends *e)
{
    p->workers->adopting = p;
    int status = mull__listener_adopt(p->workers->listener, e->ours);
    p->workers->adopting = NULL;
    e->ours = -1;
    if (status != 0)
        mull__worker_program_end(p, 0);
}

void mull__worker_program_start(mull__worker_program *p)
{
    ends e = {-1, -1, -1, -1};
    int opened = 0, status = open_ends(&e);
    p->ends = 0;
    p->started_ms = mull__workers_now(p->workers);
    if (status == 0) {
        opened = 1;
        status = open_handles(p, &e);
    }
    if (status == 0) {
        p->starting = 1;
        p->workers->calls->working(p->workers->data, 1);
        connect_it(p, &e);
    } else {
        mull__workers_log(p->workers, MULL_WARNING, "worker %s can't be started: %s",
                          p->workers->words[0], uv_strerror(status));
        if (!opened)
            mull__worker_program_settle(p);
    }
    close_one(&e.ours);
    close_one(&e.its);
    close_one(&e.reads);
    close_one(&e.writes);
}
