/* workers_internal.h: what the files of the workers share.
 *
 *   workers.c          the pool: which worker has which call
 *   worker_messages.c  what is said to a worker, and what it says
 *   worker_program.c   its process: started, watched, ended, started again */
#ifndef MULL__WORKERS_INTERNAL_H
#define MULL__WORKERS_INTERNAL_H

#include "base/list.h"
#include "control/session.h"
#include "net/listener.h"
#include "workers.h"

enum {
    MULL__WORKER_FRAME = 2 * 1024 * 1024, /* of a frame, beside the largest body */
    MULL__WORKER_KILL_MS = 5000,          /* from a cancel to TERM, and from that to KILL */
    MULL__WORKER_LEAVE_MS = 1000,         /* from the end of its connection to TERM */
    MULL__WORKER_TICK_MS = 1000
};

struct mull__worker_consumer {
    mull__link link;
    mull__workers *workers;
    int64_t timeout_ms;
    uint32_t room; /* as the engine knows */
    char name[];
};

typedef struct mull__worker_program mull__worker_program;

/* mull__worker_offer: how many messages of a consumer a worker takes at a time. */
typedef struct mull__worker_offer {
    mull__worker_consumer *consumer;
    uint32_t slots, open;
} mull__worker_offer;

typedef struct mull__worker_call {
    uint32_t id;
    mull_call call;
    mull__worker_consumer *consumer;
    int64_t cancelled_ms; /* 0: it isn't */
    char *wrong;          /* why a message that it sends can't be; NULL: all can */
} mull__worker_call;

/* mull__worker is a connection. It is there until its calls have ended: a started one's when its
 * process has. */
typedef struct mull__worker {
    mull__link link;
    mull__workers *workers;
    mull__worker_program *program;
    mull__peer *peer; /* NULL: it is gone */
    mull__session session;
    int finishes, is_dirty; /* is_dirty: something is in session.out */
    mull__worker_offer *offers;
    size_t offer_count, offer_room;
    mull__worker_call *calls;
    size_t call_count, call_room;
} mull__worker;

struct mull__worker_program {
    mull__workers *workers;
    mull__worker *worker; /* NULL: none */
    uv_process_t child;
    uv_timer_t timer;
    uv_pipe_t output;
    int runs, open; /* open: handles of a process; the timer isn't one of these */
    int starting;   /* counted as `working` */
    int ends;       /* 1: it is to end, 2: TERM was sent, 3: KILL */
    int64_t started_ms, wait_ms;
    int status, signal;
    char line[4096]; /* of its output, as far as it has come */
    size_t line_size;
    char read[16384];
};

typedef enum mull__workers_state {
    MULL__WORKERS_NEW,
    MULL__WORKERS_STARTED,
    MULL__WORKERS_STOPPING,
    MULL__WORKERS_CLOSING
} mull__workers_state;

struct mull__workers {
    mull_allocator allocator;
    uv_loop_t *loop;
    mull_engine *engine;
    const mull__workers_calls *calls;
    void *data;
    mull__workers_state state;
    mull__listener *listener;
    uv_timer_t tick;
    uv_prepare_t flush; /* what is said in a turn of the loop goes out at its end */
    mull__list consumers, workers;
    mull__worker_program *adopting; /* whose connection is being made */
    size_t most;                    /* bytes of a message */
    uint64_t late;                  /* answers */
    int handles;                    /* open ones, the listener's as one */
    char **words;
    uint32_t count;
    mull__worker_program programs[];
};

/* ---- workers.c ------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) void
mull__workers_log(const mull__workers *workers, mull_level level, const char *format, ...);
int64_t mull__workers_now(const mull__workers *workers);

/* mull__workers_tell_room tells the engine how many handlers of a consumer may be at work now. */
void mull__workers_tell_room(mull__worker_consumer *consumer);

/* mull__worker_touched: something was written to its session. */
void mull__worker_touched(mull__worker *worker);

/* mull__worker_over ends the calls of a worker that is gone, and frees it. */
void mull__worker_over(mull__worker *worker);

/* mull__worker_drop_call forgets a call that has ended. */
void mull__worker_drop_call(mull__worker *worker, mull__worker_call *call);

mull__worker_offer *mull__worker_offer_of(const mull__worker *worker,
                                          const mull__worker_consumer *consumer);

/* mull__workers_consumer_named: the name has `size` bytes. NULL: there is none. */
mull__worker_consumer *mull__workers_consumer_named(mull__workers *workers, const char *name,
                                                    size_t size);

void mull__workers_handle_closed(mull__workers *workers);

/* ---- worker_messages.c ----------------------------------------------------------------------- */

extern const mull__session_ops mull__worker_session;

/* mull__worker_say_handle adds a call to what is said; its id. */
uint32_t mull__worker_say_handle(mull__worker *worker, const mull__worker_consumer *consumer,
                                 const mull_message *message);
void mull__worker_say_cancel(mull__worker *worker, uint32_t id, const char *reason);
void mull__worker_say_stop(mull__worker *worker, int64_t grace_ms);

/* ---- worker_program.c ------------------------------------------------------------------------ */

void mull__worker_program_start(mull__worker_program *program);

/* mull__worker_program_welcome: it has said hello. */
void mull__worker_program_welcome(mull__worker_program *program);

/* mull__worker_program_end has its process end: TERM after `wait_ms`, then KILL. */
void mull__worker_program_end(mull__worker_program *program, int64_t wait_ms);

/* mull__worker_program_settle starts another process, once the last one and its worker are gone. */
void mull__worker_program_settle(mull__worker_program *program);

#endif
