/* process.h: a program that runs beside the loop.
 *
 *   start ── ended by itself ─────────────────────────────┬── KILL to what is left of its group
 *     └── its time is over, or stop: TERM to the group ───┤      └── ended()
 *           └── 5 s later: KILL to the group ─────────────┘
 *
 * It has a process group of its own, in a session of its own: Ctrl-C in a terminal doesn't reach
 * it. */
#ifndef MULL__PROCESS_H
#define MULL__PROCESS_H

#include "mulligan.h"

#include <uv.h>

enum { MULL__KILL_MS = 5000, MULL__STDERR_KEPT = 64 * 1024 };

typedef struct mull__process mull__process;

/* mull__process_options says what to run. All of it is borrowed for the call. */
typedef struct mull__process_options {
    uv_loop_t *loop;
    const mull_allocator *allocator;
    const char *const *words;     /* the program, as execvp looks for it, its arguments, NULL */
    const char *const *variables; /* see mull__program_environment */
    const char *input;            /* what it reads from stdin */
    size_t input_size;
    const char *file; /* what it reads from descriptor 3; NULL: it has none */
    size_t file_size;
    size_t output_most; /* bytes of stdout that are kept */
    int output_end;     /* of a longer one the last; 0: that ends the process */
    int64_t timeout_ms; /* MULL_NEVER */
    void (*ended)(void *data);
    void *data;
} mull__process_options;

/* mull__process_result is how it ended. The texts live as long as the process's memory. */
typedef struct mull__process_result {
    int status;    /* its exit code, where no signal ended it */
    int signal;    /* 0: none */
    int timed_out; /* its time was over before it ended */
    int failed;    /* MULL_ETOOBIG: of stdout; MULL_ENOMEM: for what it wrote */
    const char *output, *errors;
    size_t output_size, error_size; /* of stderr MULL__STDERR_KEPT at most, the last */
} mull__process_result;

/* mull__process_start starts one; `ended` is called on a later turn of the loop, when nothing of it
 * is left. Else libuv's code says why it can't be started: UV_ENOENT, UV_EACCES, UV_EMFILE ... */
int mull__process_start(mull__process **out, const mull__process_options *options);

/* mull__process_stop asks it to end, once. */
void mull__process_stop(mull__process *process);

/* mull__process_result_of gives how it ended, from `ended` on. */
void mull__process_result_of(const mull__process *process, mull__process_result *result);

/* mull__process_free frees one; one that hasn't ended is killed, and `ended` isn't called. */
void mull__process_free(mull__process *process);

#endif
