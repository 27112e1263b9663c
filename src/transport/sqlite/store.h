/* store.h: the database of a sqlite: transport, without threads or a loop: what is in a
 * transaction, and what each operation does to the rows. After open, only the worker's thread
 * touches a store.
 *
 * Functions that return int give an SQLite code, SQLITE_OK where all went well. A bad one means
 * that the whole transaction is to be rolled back.
 */
#ifndef MULL__SQLITE_STORE_H
#define MULL__SQLITE_STORE_H

#include "base/list.h"
#include "mulligan/transport.h"
#include "schema.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/types.h>

#define MULL__STATEMENT_ENUM(name, text) MULL__SQL_##name,
typedef enum mull__statement {
    MULL__STATEMENTS(MULL__STATEMENT_ENUM) MULL__STATEMENT_COUNT
} mull__statement;
#undef MULL__STATEMENT_ENUM

typedef enum mull__life {
    MULL__OWNER_ALIVE,
    MULL__OWNER_DEAD,
    MULL__OWNER_UNKNOWN,  /* the lock file is too new to say */
    MULL__OWNER_UNCHECKED /* the same; the time to wait begins with our next transaction */
} mull__life;

/* mull__other_owner is another process (or transport) that claims from the same file. */
typedef struct mull__other_owner {
    int64_t owner;
    mull__life life;
} mull__other_owner;

/* mull__queue is a queue's row, as this transaction found it and will write it. */
typedef struct mull__queue {
    int64_t queue;
    const char *name; /* borrowed until the transaction is over */
    int64_t head, ready;
    int changed;
    uint64_t hash; /* of its name */
    size_t next;   /* in its bucket, from 1 on; 0: none */
} mull__queue;

enum { MULL__LOCK_FILES = 16 };

/* mull__lock is the lock file; see lock.c. */
typedef struct mull__lock {
    char path[4096]; /* beside the file itself, symbolic links followed: all agree on one */
    int files[MULL__LOCK_FILES]; /* the last is in use; earlier ones may come back, oldest first */
    int count;
    int64_t marked_to; /* an owner up to this who has no byte in it is dead */
    int64_t wait_to;   /* those above that, and up to this, have time to come over ... */
    int64_t since_ms;  /* ... counted from here, monotonic: our next transaction; 0: none yet */
    char why[256];     /* it can't be used; "": it can */
} mull__lock;

typedef enum mull__fate { MULL__FILE_MISSING, MULL__REPLACED, MULL__FILE_TRUNCATED } mull__fate;

enum { MULL__FILES = 3 };

/* mull__db_files is where the files of the database are: itself, its -wal and its -shm. */
typedef struct mull__db_files {
    int known; /* which files these are */
    dev_t devices[MULL__FILES];
    ino_t inodes[MULL__FILES];
    const char *end; /* of the name of the one that is gone, as "-wal"; NULL: none was found gone */
    mull__fate fate; /* ... and what became of it */
    int saved;       /* the log was deleted, and what was in it is in the file */
    int error;       /* errno: why nobody could say where one is; 0 */
    int unsure;      /* ... when it had to be said */
} mull__db_files;

/* mull__last_frame is the last frame that the log had when it was last found whole. */
typedef struct mull__last_frame {
    uint32_t frame, salt[2]; /* of that log */
    uint64_t hash;           /* 0: not known */
} mull__last_frame;

typedef struct mull__store {
    mull_port *port;
    mull_allocator allocator;
    sqlite3 *db;
    sqlite3_stmt *statements[MULL__STATEMENT_COUNT];
    _Atomic(int64_t) ahead_ms; /* see mull__store_now */

    /* Until the transaction is committed, `before` keeps what a rollback brings back. */
    struct {
        int64_t next;             /* number; 0: not read in this transaction */
        int64_t poison_candidate; /* the token of the poison candidate that is out; 0: none is */
        int next_used;
    } state, before;
    mull__queue *queues;            /* those that this transaction has touched */
    size_t *buckets;                /* ... by their names: the first of each, from 1 on; 0: none */
    size_t queue_count, queue_room; /* a power of two, of both */
    int ended;                      /* a message of a range of ours has, in this transaction */

    mull__db_files place;
    mull__last_frame last_frame;
    mull__lock lock;
    int publishes;     /* this transaction does ... */
    int refused;       /* ... and there was no room for that */
    int disk_was_full; /* it was when the log was last to be emptied ... */
    int log_is_held;   /* ... and that could not be done, since another process is at it */
    int64_t owner;     /* ours; 0: not yet one */
    int64_t token;     /* of the last claim */
    int64_t version;
    mull__other_owner *others;
    size_t other_count, other_room;
    mull_header *headers; /* room for those of a settled message */
    size_t header_room;
} mull__store;

typedef enum mull__job_kind {
    MULL__JOB_PUBLISH, /* a mull__publish_job */
    MULL__JOB_SETTLE,  /* of a mull__claim */
    MULL__JOB_RETURN,  /* of a mull__claim that nobody was told of */
    MULL__JOB_DEPTH,   /* a mull__depth_job */
    MULL__JOB_END      /* of a mull__reader that reads no more */
} mull__job_kind;

/* mull__job is something to be done in the next transaction. */
typedef struct mull__job {
    mull__link link;
    mull__job_kind kind;
    int status; /* 0 or a MULL_E code; true once the transaction is over */
} mull__job;

/* mull__depth_job is a question for the depth of a queue. One block. */
typedef struct mull__depth_job {
    mull__job job; /* first */
    char *queue;
    mull_depth depth;
    mull_ticket ticket;
} mull__depth_job;

/* mull__claim is a delivery: a message that was claimed, and the job that ends it. */
typedef struct mull__claim {
    mull_delivery delivery; /* first */
    mull_message message;
    mull__link link;
    int64_t number, token;
    int64_t queue; /* in `ready` of that queue; 0: in `waiting` */
    int64_t large; /* its body in `bodies`; 0: none */
    int64_t published_ms;
    size_t bytes;         /* of its body; 0: no settle can end it */
    mull_header *headers; /* a block of their own; all other text is behind the struct */
    struct mull__reader *reader;
    mull__job job;
    const mull_settlement *settlement;
    mull_ticket ticket; /* of that */
} mull__claim;

/* ---- open.c: a file becomes a store, or a line that says why not ----------------------------- */

/* mull__store_open opens or creates the file at `path`. On failure a MULL_E code, and in `why` what
 * is wrong. */
int mull__store_open(mull__store *store, mull_port *port, const char *path, char *why,
                     size_t why_size);
void mull__store_close(mull__store *store);

/* ---- upgrade.c: a file of an earlier schema ---------------------------------------------------
 */

/* mull__store_upgrade brings a file of schema 1 to this one, while it is opened. SQLITE_BUSY:
 * another process has it open. Where it fails, the file is as it was once it is closed. */
int mull__store_upgrade(mull__store *store);

/* ---- store.c: statements, transactions, the clock -------------------------------------------- */

int mull__store_prepare(mull__store *store);
void mull__store_finalize(mull__store *store);

/* mull__store_now is a wall clock that never goes back: the furthest ahead of the monotonic clock
 * that the wall clock ever was. What is written as due is on it, so that a clock that is set back
 * neither stalls what waits nor hurries what is put off afterwards. Any thread. */
int64_t mull__store_now(mull__store *store);

/* mull__store_due turns a due time of the wall clock into one of mull__store_now; 0: at once. */
int64_t mull__store_due(mull__store *store, int64_t due_ms);

/* mull__store_bind gives a statement with its first values bound, each of a type: 'i' int64_t, 't'
 * const char *, borrowed until the statement has run; NULL is NULL. */
sqlite3_stmt *mull__store_bind(mull__store *store, mull__statement statement, const char *types,
                               ...);

/* mull__store_run binds and runs a statement that gives no rows, and resets it. */
int mull__store_run(mull__store *store, mull__statement statement, const char *types, ...);

/* mull__store_ask reads one number and resets the statement. No row or NULL: `*answer` stays. */
int mull__store_ask(int64_t *answer, sqlite3_stmt *bound);

/* mull__store_end resets a statement, and gives `code`, or what the reset says where it is good. */
int mull__store_end(sqlite3_stmt *bound, int code);

/* mull__store_number gives the next number. */
int mull__store_number(mull__store *store, int64_t *number);

/* mull__store_queue gives the row of a queue as this transaction has it, until it asks for another
 * one. Where there is none, it is made if `make` says so; else `*out` is NULL. */
int mull__store_queue(mull__store *store, mull__queue **out, const char *name, int make);

/* mull__store_begin and _commit look whether the files are in their places: what commit answers
 * with SQLITE_OK is on the disk, where it will be found. */
int mull__store_begin(mull__store *store);
int mull__store_commit(mull__store *store);
void mull__store_rollback(mull__store *store);

__attribute__((format(printf, 3, 4))) void mull__store_log(mull__store *store, mull_level level,
                                                           const char *format, ...);

/* ---- db_files.c: whether the files are still where they were --------------------------------- */

/* mull__db_files_record remembers which files these are, once all are open.
 * SQLITE_READONLY_DBMOVED: one is gone already. */
int mull__db_files_record(mull__store *store);

/* mull__db_files_check: SQLITE_READONLY_DBMOVED, and `place` says which: one was deleted, moved or
 * replaced, or the log was cut short. SQLITE_IOERR_FSTAT: nobody can say. */
int mull__db_files_check(mull__store *store);

/* mull__db_files_confirm is the last check after a commit, and before a close: where nobody can
 * say, nobody ever will, so errors is for good. */
int mull__db_files_confirm(mull__store *store);

/* mull__db_files_abandon sees to it that nothing is written any more, not by closing either; but
 * first it brings into the file what is in a log that was deleted. */
void mull__db_files_abandon(mull__store *store);

/* mull__db_files_describe says what mull__db_files_check found, and what would be right. */
void mull__db_files_describe(const mull__store *store, char *why, size_t size);

/* ---- wal.c: the write-ahead log: whether it is whole, and that it is short ------------------- */

/* mull__wal_configure keeps the log short from now on. */
void mull__wal_configure(mull__store *store);

/* mull__wal_is_intact: 0 where something is missing that was committed. */
int mull__wal_is_intact(mull__store *store);

/* mull__wal_truncate brings the log into the file and makes it empty, outside of transactions. It
 * calls the busy handler. */
int mull__wal_truncate(mull__store *store);

/* mull__wal_has_room says whether there is room for what a transaction publishes: in the log, in
 * the file later, and to settle what is there. */
int mull__wal_has_room(mull__store *store);

/* ---- errors.c: errors in words -------------------------------------------------------------- */

/* mull__is_full says whether a bad code means that there is no room. */
int mull__is_full(sqlite3 *db, int code);

/* mull__is_taken says whether a bad code means that there is a row with the number of a new one. */
int mull__is_taken(int code);

/* mull__error_describe says in `why` what a bad code means, and what would be right. 1: it is
 * broken for good, and left as it is; 0: it is worth trying again. */
int mull__error_describe(mull__store *store, int code, char *why, size_t size);

/* mull__error_of_job says what the status of a job means that went wrong by itself; NULL: it went
 * well, or the database is to blame. */
const char *mull__error_of_job(int status);

/* ---- lock.c: the lock file, by which owners are told apart ----------------------------------- */

/* mull__lock_open opens the lock file and tries it out. NULL, or what is wrong. */
const char *mull__lock_open(mull__store *store);
void mull__lock_close(mull__store *store);

/* mull__lock_refresh goes over to the file that is at the path now; SQLITE_IOERR_LOCK, and `why`:
 * it can't. Outside of transactions too. */
int mull__lock_refresh(mull__store *store);

/* mull__lock_acquire makes us the owner, by our byte, before anyone can see our row; within a
 * transaction. */
int mull__lock_acquire(mull__store *store, int64_t owner);
void mull__lock_release(mull__store *store);

/* mull__lock_mark: we are an owner, and `highest` (0: none) is the highest of the others, in this
 * transaction: before its commit, so that whoever finds our row finds us within the mark, too. */
void mull__lock_mark(mull__store *store, int64_t highest);

/* mull__lock_transaction_began: a transaction to write has begun. */
void mull__lock_transaction_began(mull__store *store);

/* mull__lock_owner_state says whether another owner lives. */
mull__life mull__lock_owner_state(mull__store *store, int64_t owner);

/* ---- owner.c: who claims, and owners that died ----------------------------------------------- */

/* mull__store_register_owner makes the store an owner, in a transaction of its own; once. */
int mull__store_register_owner(mull__store *store);

/* mull__store_ensure_owner_row renews our row where somebody deleted it, within a transaction:
 * without it nobody would free our claims after our death. */
int mull__store_ensure_owner_row(mull__store *store);

/* mull__store_version gives a number that changes when another connection writes to the file. */
int mull__store_version(mull__store *store, int64_t *version);

/* mull__store_poll says whether anything may have come to be claimed since it was last asked. It
 * writes nothing. */
enum {
    MULL__NEWS_WRITTEN = 1, /* others wrote to the file */
    MULL__NEWS_OWNER_DIED =
        2 /* an owner has died, so that mull__store_reap_dead_owners has something to do */
};
int mull__store_poll(mull__store *store, int *news);

/* mull__store_reap_dead_owners frees what dead owners held, within a transaction. */
int mull__store_reap_dead_owners(mull__store *store);

/* mull__store_unregister_owner ends being an owner, in a transaction of its own. */
void mull__store_unregister_owner(mull__store *store);

/* ---- claim.c: messages out of the file ------------------------------------------------------- */

/* mull__store_claim claims messages of a queue into `claims`, which is empty: what is due by
 * `now_ms` of mull__store_now, and a poison candidate only where none is out. It ends with the
 * message by which they are `wanted` many, or their bodies have `*room` bytes. `*room` is what is
 * left of it; 0: none. */
int mull__store_claim(mull__store *store, mull__list *claims, const char *queue, size_t wanted,
                      size_t *room, int64_t now_ms);

/* mull__store_next_due is when the next message that isn't due by `now_ms` is; INT64_MAX: none.
 * Where that is later than any policy can have put it off, all such messages are logged, unless
 * they are those that were `*told` of last time: a hash; 0: none. */
int mull__store_next_due(mull__store *store, const char *queue, int64_t now_ms, int64_t *due_ms,
                         uint64_t *told);

void mull__claim_free(const mull_allocator *allocator, mull__claim *claim);

/* ---- headers.c: ... and their headers -------------------------------------------------------- */

/* mull__store_headers reads headers as a row has them into one block from the allocator: an array
 * with its strings behind it, to be freed by mull__free; NULL where there are none. SQLITE_ERROR:
 * the text is no JSON object of strings, or has one that a header can't have. */
int mull__store_headers(mull__store *store, const char *text, mull_header **out, size_t *count);

/* ---- depth.c: how many there are ------------------------------------------------------------- */

/* mull__store_depths answers a list of mull__depth_job in one transaction that only reads, so that
 * all of it was so at one moment; next_due_ms is on the wall clock. */
int mull__store_depths(mull__store *store, mull__list *jobs);

/* ---- settle.c: and back into it: publishes too ----------------------------------------------- */

/* mull__store_publish inserts a message. */
int mull__store_publish(mull__store *store, const mull_outgoing *outgoing);

/* mull__store_settle carries out a settlement. `*status`: 0; MULL_ELOST, MULL_EINVAL (a header that
 * isn't UTF-8) or MULL_ENOMEM: nothing changed. Where there is no memory for what the handler sent,
 * the code is SQLITE_NOMEM, where something is too large it is SQLITE_TOOBIG, and the whole
 * transaction is to be taken back. */
int mull__store_settle(mull__store *store, const mull__claim *claim,
                       const mull_settlement *settlement, int *status);

/* mull__store_run_of gives the last job of a run: jobs that end claims of `ready` whose numbers
 * follow one another, and do nothing else. `first`: it is alone. */
mull__link *mull__store_run_of(mull__list *jobs, mull__link *first);

/* mull__store_end_run carries out a run by one statement. `*ended`: 0 where one of its claims was
 * lost, and nothing changed. */
int mull__store_end_run(mull__store *store, mull__link *first, mull__link *last, int *ended);

/* mull__store_claim_ends says whether a settlement with that status is the end of its claim. */
int mull__store_claim_ends(const mull_settlement *settlement, int status);

/* mull__store_unclaim takes a claim back as if it had never been. */
int mull__store_unclaim(mull__store *store, const mull__claim *claim);

#endif
