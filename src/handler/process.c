/* process.c: see process.h. */
#include "process.h"

#include "base/alloc.h"
#include "output.h"
#include "program.h"

#include <signal.h>
#include <unistd.h>

struct mull__process {
    mull_allocator allocator;
    uv_process_t child;
    uv_timer_t timer;
    mull__output out, err;
    int handles; /* of these that are open */
    int runs, stops, timed_out, is_over;
    int is_abandoned; /* it frees itself */
    int status, signal;
    void (*ended)(void *data);
    void *data;
};

/* ---- Its end --------------------------------------------------------------------------------- */

static void free_memory(mull__process *p)
{
    mull_allocator allocator = p->allocator;
    mull__free(&allocator, p->out.bytes);
    mull__free(&allocator, p->err.bytes);
    mull__free(&allocator, p);
}

static void on_closed(uv_handle_t *handle)
{
    mull__process *p = handle->data;
    if (--p->handles > 0)
        return;
    p->is_over = 1;
    if (p->is_abandoned)
        free_memory(p);
    else
        p->ended(p->data);
}

static void close_handle(mull__process *p, void *handle)
{
    ((uv_handle_t *)handle)->data = p;
    uv_close(handle, on_closed);
}

/* signal_group: a group's number isn't given to another process while one of it is left. */
static void signal_group(const mull__process *p, int number)
{
    uv_kill(-p->child.pid, number);
}

static void on_timer(uv_timer_t *timer)
{
    mull__process *p = timer->data;
    if (p->stops) {
        signal_group(p, SIGKILL);
    } else {
        p->timed_out = 1;
        mull__process_stop(p);
    }
}

static void set_timer(mull__process *p, int64_t ms)
{
    uv_update_time(p->timer.loop);
    uv_timer_start(&p->timer, on_timer, (uint64_t)ms, 0);
}

void mull__process_stop(mull__process *p)
{
    if (!p->runs || p->stops)
        return;
    p->stops = 1;
    signal_group(p, SIGTERM);
    set_timer(p, MULL__KILL_MS);
}

/* on_exit doesn't wait for the pipes' ends: a daemon that left the group may keep them open. */
static void on_exit_of(uv_process_t *child, int64_t status, int number)
{
    mull__process *p = child->data;
    p->runs = 0;
    p->status = (int)status;
    p->signal = number;
    signal_group(p, SIGKILL);
    mull__output_drain(&p->out);
    mull__output_drain(&p->err);
    close_handle(p, &p->child);
    close_handle(p, &p->timer);
    close_handle(p, &p->out.pipe);
    close_handle(p, &p->err.pipe);
}

static void on_output_failed(mull__output *o)
{
    mull__process_stop(o->pipe.data);
}

void mull__process_result_of(const mull__process *p, mull__process_result *result)
{
    *result = (mull__process_result){.status = p->status,
                                     .signal = p->signal,
                                     .timed_out = p->timed_out,
                                     .failed = p->out.status ? p->out.status : p->err.status};
    result->output = mull__output_text(&p->out, &result->output_size);
    result->errors = mull__output_text(&p->err, &result->error_size);
}

void mull__process_free(mull__process *p)
{
    if (!p)
        return;
    if (p->is_over) {
        free_memory(p);
        return;
    }
    p->is_abandoned = 1;
    if (p->runs)
        signal_group(p, SIGKILL);
}

/* ---- Its start ------------------------------------------------------------------------------- */

enum { STDIN, STDOUT, STDERR, MORE, FILES };

/* open_files opens what the process will have; libuv's code. */
static int open_files(mull__process *p, const mull__process_options *options, int files[FILES])
{
    int status = mull__output_open(&p->out, options->loop, &files[STDOUT]);
    int other = mull__output_open(&p->err, options->loop, &files[STDERR]);
    status = status ? status : other;
    if (status == 0)
        files[STDIN] = mull__program_file(options->input, options->input_size);
    if (status == 0 && options->file)
        files[MORE] = mull__program_file(options->file, options->file_size);
    if (status == 0 && files[STDIN] < 0)
        status = files[STDIN];
    return status == 0 && options->file && files[MORE] < 0 ? files[MORE] : status;
}

static int spawn(mull__process *p, const mull__process_options *options, const int files[FILES])
{
    uv_stdio_container_t stdio[FILES];
    for (int i = 0; i < FILES; i++)
        stdio[i] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = files[i]};
    const char **variables = mull__program_environment(&p->allocator, options->variables);
    if (!variables)
        return UV_ENOMEM;
    const uv_process_options_t how = {
        .exit_cb = on_exit_of,
        .file = options->words[0],
        .args = (char **)(uintptr_t)options->words, /* which it doesn't write to */
        .env = (char **)(uintptr_t)variables,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = options->file ? FILES : MORE,
        .stdio = stdio,
    };
    int status = uv_spawn(options->loop, &p->child, &how);
    p->handles++; /* which it is also where that failed */
    p->runs = status == 0;
    mull__free(&p->allocator, variables);
    return status;
}

static int start(mull__process *p, const mull__process_options *options)
{
    int files[FILES] = {-1, -1, -1, -1};
    uv_timer_init(options->loop, &p->timer);
    p->handles = 3; /* the timer, two pipes */
    int status = open_files(p, options, files);
    p->child.data = p->timer.data = p->out.pipe.data = p->err.pipe.data = p;
    if (status == 0)
        status = spawn(p, options, files);
    for (int i = 0; i < FILES; i++)
        if (files[i] >= 0)
            close(files[i]);
    if (status == 0 && options->timeout_ms != MULL_NEVER)
        set_timer(p, options->timeout_ms);
    return status;
}

/* give_up closes what a process that couldn't be started has opened. */
static void give_up(mull__process *p)
{
    p->is_abandoned = 1;
    if (p->handles == 4)
        close_handle(p, &p->child);
    close_handle(p, &p->timer);
    close_handle(p, &p->out.pipe);
    close_handle(p, &p->err.pipe);
}

int mull__process_start(mull__process **out, const mull__process_options *options)
{
    mull__process *p = mull__zalloc(options->allocator, 1, sizeof *p);
    if (!p)
        return UV_ENOMEM;
    p->allocator = *options->allocator;
    p->out = (mull__output){.allocator = &p->allocator,
                            .most = options->output_most,
                            .keeps_end = options->output_end,
                            .failed = on_output_failed};
    p->err = (mull__output){.allocator = &p->allocator,
                            .most = MULL__STDERR_KEPT,
                            .keeps_end = 1,
                            .failed = on_output_failed};
    p->ended = options->ended;
    p->data = options->data;
    int status = start(p, options);
    if (status == 0)
        *out = p;
    else
        give_up(p);
    return status;
}
