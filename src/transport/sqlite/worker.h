/* worker.h: the thread of a sqlite: transport.
 *
 *   loop                                         worker
 *   ────                                         ──────
 *   mull__worker_submit        ── jobs ─────>    takes all that came while the last transaction
 *                                                ran, claims as much as there is credit for,
 *   mull__worker_take_answers  <── answers ──    commits once, and tells the loop
 *
 * A settle makes room for a claim in the same transaction: the loop isn't asked in between.
 */
#ifndef MULL__SQLITE_WORKER_H
#define MULL__SQLITE_WORKER_H

#include "store.h"

#include <uv.h>

/* mull__publish_job is a message to be inserted: a copy, in one block. */
typedef struct mull__publish_job {
    mull__job job;          /* first */
    mull_outgoing outgoing; /* of `message` */
    mull_message message;
    mull_ticket ticket;
} mull__publish_job;

/* mull__reader is a subscription. Its memory is the loop's, which frees it once MULL__JOB_END was
 * answered (the worker has claimed nothing for it since, and has posted all that it had), and each
 * MULL__JOB_RETURN for it as well. */
typedef struct mull__reader {
    mull__link link;     /* in the worker's list */
    mull__link own_link; /* in the loop's */
    mull__job job;       /* its end */
    mull_ticket consumer;
    char *queue;

    /* The loop's: */
    uint32_t wish; /* credit to be given to the worker */
    int ending;    /* the job is under way, or answered ... */
    int forgotten; /* ... that */
    uint32_t returning;

    uint32_t given; /* guarded by the mutex: credit */

    /* The worker's: */
    uint32_t credit;
    uint32_t out; /* claimed and not settled */
    uint32_t out_before;
    int dry;                 /* nothing to claim until there is news */
    int64_t next_due_ms;     /* of mull__store_now; INT64_MAX: none that is known */
    uint64_t far_due_logged; /* which ones were told of that are too far off */
} mull__reader;

/* mull__answers is what the loop takes. */
typedef struct mull__answers {
    mull__list jobs;   /* done */
    mull__list claims; /* new ones */
    uint64_t wakes;    /* how many were seen to */
    int64_t due_ms;    /* when the worker wants to be told to look; INT64_MAX: never */
    int state_news;
    mull_health health;
    char why[768]; /* the last thing that was wrong with the file, while it isn't up or a job has
                      MULL_EIO */
    int finished;  /* the thread has ended */
} mull__answers;

typedef struct mull__worker {
    mull__store store;
    const char *path; /* borrowed */
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t cond;
    uv_async_t *async; /* rung when there are answers */

    /* Guarded by the mutex: */
    mull__list inbox;    /* jobs */
    mull__list arrivals; /* readers that the worker doesn't know yet */
    uint64_t wakes;
    int closing;
    uint64_t close_by; /* uv_hrtime */
    mull__answers answers;
    int unread;  /* there are answers */
    int reading; /* the loop is at them */

    /* The worker's: */
    mull__list readers;
    mull__list batch;           /* jobs of this transaction */
    mull__list counts;          /* ... but questions for depths */
    mull__list done;            /* ... and those that need none, or no more */
    mull__list again;           /* jobs that were kept out of the last one */
    mull__list returns;         /* MULL__JOB_RETURNs that failed: tried again later */
    mull__list claims;          /* of this transaction */
    mull__job *doing;           /* one of the batch; NULL: none */
    size_t bytes, bytes_before; /* ... and what their bodies have */
    size_t leaving;             /* ... and those of claims that end in it: still in memory */
    size_t most_bytes;          /* of bodies that may be out, but for the last one's */
    uint64_t seen;              /* of the wakes */
    int ending;                 /* it is being closed: claim nothing more */
    int claiming;               /* in this transaction */
    uint64_t looked_at, retry_at, busy_since; /* uv_hrtime */
    size_t most;                              /* jobs and claims of a transaction */
    uint64_t empty_at;                        /* the log, if need be; uv_hrtime */
    int emptying;                             /* it is being tried */
    mull_health health;
    int unwritable; /* it may be, until something was written */
    int refuses;    /* what would be published, and has said so */
    int miscounted; /* the last depths could not be read */
    uint64_t commits;
} mull__worker;

/* mull__worker_start takes over an open store, and claims bodies of up to so many bytes, but for
 * the last one's. MULL_EIO: no thread; the store is as it was. */
int mull__worker_start(mull__worker *worker, const char *path, size_t most_bytes,
                       uv_async_t *async);

/* mull__worker_submit hands over the jobs (emptying the list) and all readers' wishes, and wakes
 * the worker once. `wake`: it is to claim what it can, and say so. */
void mull__worker_submit(mull__worker *worker, mull__list *jobs, mull__list *readers, int wake);
void mull__worker_add_reader(mull__worker *worker, mull__reader *reader);

/* mull__worker_take_answers gives the answers so far. The worker won't end before the loop has
 * said, by mull__worker_answers_seen, that it has seen to them. */
void mull__worker_take_answers(mull__worker *worker, mull__answers *answers);
void mull__worker_answers_seen(mull__worker *worker);

/* mull__worker_close: no more claims; what was given is carried out, the store is closed, and the
 * last answer is `finished`. A file that another process keeps locked is given up after
 * `drain_ms`. */
void mull__worker_close(mull__worker *worker, int64_t drain_ms);
void mull__worker_join(mull__worker *worker);

/* The thread, and how it waits for others that write: SQLite's busy handler. */
void mull__worker_run(void *worker);
int mull__worker_busy(void *worker, int count);

#endif
