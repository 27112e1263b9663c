/* workers.h: worker processes that handle messages, by the protocol of docs/workers.md.
 *
 *   mull__workers_handle ──> the worker with the most free slots ── `handle` ──> it works
 *                        <── its answer, or its end: mull_done, or `crashed`
 *
 * Each is started with a socket as its standard input, and started again when it ends. All of it is
 * on the thread of the loop. */
#ifndef MULL__WORKERS_H
#define MULL__WORKERS_H

#include "mulligan.h"

#include <uv.h>

typedef struct mull__workers mull__workers;
typedef struct mull__worker_consumer mull__worker_consumer;

typedef struct mull__workers_calls {
    /* room says how many handlers of a consumer may be at work; 0: it has no worker. */
    void (*room)(void *data, const char *consumer, uint32_t room);
    void (*crashed)(void *data, mull_call call, const mull_error *error);
    void (*no_memory)(void *data, mull_call call); /* it can't be made */
    void (*working)(void *data, int change);       /* what will have an end is open: +1, -1 */
    void (*log)(void *data, mull_level level, const char *text);
    void (*generation)(void *data, char out[33]);
    void (*closed)(void *data); /* the last: the workers are gone, and so is their memory */
} mull__workers_calls;

/* The engine and the loop outlive the workers; the rest is borrowed for the call. */
typedef struct mull__workers_options {
    uv_loop_t *loop;
    mull_allocator allocator;
    mull_engine *engine;
    const char *const *words; /* the program, its arguments, NULL */
    uint32_t processes;
    const mull__workers_calls *calls; /* static */
    void *data;
} mull__workers_options;

/* mull__workers_open: MULL_ENOMEM. */
int mull__workers_open(mull__workers **out, const mull__workers_options *options);

/* mull__workers_consumer adds a consumer whose messages they handle. NULL: no memory. */
mull__worker_consumer *mull__workers_consumer(mull__workers *workers, const char *name,
                                              int64_t timeout_ms, size_t max_body);

/* mull__workers_remove: none of its calls is open. */
void mull__workers_remove(mull__worker_consumer *consumer);

void mull__workers_start(void *workers);

/* mull__workers_stop: no call begins any more. Workers are told, and those that end stay so. */
void mull__workers_stop(void *workers, int64_t grace_ms);

/* mull__workers_close ends them: no call is open. */
void mull__workers_close(void *workers);

/* mull__workers_handle is a mull_handler_fn whose data is a mull__worker_consumer. */
void mull__workers_handle(mull_engine *engine, mull_call call, const mull_message *message,
                          void *consumer);

/* mull__workers_cancel tells the worker why: "timeout", "lost" or "stop". The call ends when it
 * answers, or has ended. */
void mull__workers_cancel(mull__worker_consumer *consumer, mull_call call, const char *reason);

#endif
