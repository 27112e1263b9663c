/* store.h: the database of a sqlite: transport, without threads or a loop: what is in a
 * transaction, and what each operation does to the rows. After open, only the worker's thread
 * touches a store.
 *
 *   open.c     a file becomes a store, or a line that says why not
 *   store.c    statements, transactions, the clock
 *   owner.c    who claims: the lock file, and owners that died
 *   claim.c    messages out of the file
 *   settle.c   and back into it: publishes too
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

#define MULL__STATEMENT_ENUM(name, text) MULL__SQL_##name,
typedef enum mull__statement {
    MULL__STATEMENTS(MULL__STATEMENT_ENUM) MULL__STATEMENT_COUNT
} mull__statement;
#undef MULL__STATEMENT_ENUM

/* mull__owner_seen is another process (or transport) that claims from the same file. */
typedef struct mull__owner_seen {
    int64_t owner;
    int dead;
} mull__owner_seen;

typedef struct mull__store {
    mull_port *port;
    mull_allocator allocator;
    sqlite3 *db;
    sqlite3_stmt *statements[MULL__STATEMENT_COUNT];
    _Atomic(int64_t) ahead_ms; /* see mull__store_now */

    /* Until the transaction is committed, `before` keeps what a rollback brings back. */
    struct {
        int64_t next;    /* number; 0: not read in this transaction */
        int64_t suspect; /* the number of the suspect that is out; 0: none is */
        int next_used;
    } state, before;

    char *lock_path;
    int lock;      /* the lock file; -1: none */
    int64_t owner; /* ours; 0: not yet one */
    int64_t token; /* of the last claim */
    int64_t version;
    mull__owner_seen *others;
    size_t other_count, other_room;
} mull__store;

typedef enum mull__job_kind {
    MULL__JOB_PUBLISH, /* a mull__publishing */
    MULL__JOB_SETTLE,  /* of a mull__claim */
    MULL__JOB_RETURN,  /* of a mull__claim that nobody was told of */
    MULL__JOB_DEPTH    /* a mull__counting */
} mull__job_kind;

/* mull__job is something to be done in the next transaction. */
typedef struct mull__job {
    mull__link link;
    mull__job_kind kind;
    int status; /* 0 or a MULL_E code; true once the transaction is over */
} mull__job;

/* mull__claim is a delivery: a message that was claimed, and the job that ends it. */
typedef struct mull__claim {
    mull_delivery delivery; /* first */
    mull__link link;
    int64_t number, token;
    mull_header *headers; /* a block of their own */
    char *text;           /* id, type, key and body, in one block */
    struct mull__reader *reader;
    mull__job job;
    const mull_settlement *settlement;
    int settling; /* the job is under way */
    int released; /* ... and the engine needs the delivery no more */
} mull__claim;

/* ---- open.c ---------------------------------------------------------------------------------- */

/* mull__store_open opens or creates the file at `path`. On failure a MULL_E code, and in `why` what
 * is wrong. */
int mull__store_open(mull__store *store, mull_port *port, const char *path, char *why,
                     size_t why_size);
void mull__store_close(mull__store *store);

/* ---- store.c --------------------------------------------------------------------------------- */

int mull__store_prepare(mull__store *store);
void mull__store_finalize(mull__store *store);

/* mull__store_now is a wall clock that never goes back: the furthest ahead of the monotonic clock
 * that the wall clock ever was. What is written as due is on it, so that a clock that is set back
 * neither stalls what waits nor hurries what is put off afterwards. Any thread. */
int64_t mull__store_now(mull__store *store);

/* mull__store_due turns a due time of the wall clock into one of mull__store_now; 0: at once. */
int64_t mull__store_due(mull__store *store, int64_t due_ms);

/* mull__store_run runs a statement that gives no rows, and resets it. */
int mull__store_run(mull__store *store, mull__statement statement);

/* mull__store_number gives the next number. */
int mull__store_number(mull__store *store, int64_t *number);

int mull__store_begin(mull__store *store);
int mull__store_commit(mull__store *store);
void mull__store_rollback(mull__store *store);

void mull__bind_text(sqlite3_stmt *statement, int index, const char *text);

/* ---- owner.c --------------------------------------------------------------------------------- */

/* mull__lock_open opens the lock file and tries it out. NULL, or what is wrong with it. */
const char *mull__lock_open(mull__store *store, unsigned mode);

/* mull__store_own makes the store an owner, in a transaction of its own; once. */
int mull__store_own(mull__store *store);

/* mull__store_look says whether anything may have come to be claimed since it was last asked:
 * others wrote to the file, or an owner has died. It writes nothing. */
int mull__store_look(mull__store *store, int *news);

/* mull__store_bury frees what dead owners held, within a transaction. */
int mull__store_bury(mull__store *store);

/* mull__store_disown ends being an owner, in a transaction of its own. */
void mull__store_disown(mull__store *store);

/* ---- claim.c --------------------------------------------------------------------------------- */

/* mull__store_claim claims up to `wanted` messages of a queue, at least one, onto the end of
 * `claims`: what is due by `now_ms` of mull__store_now, and a suspect only where none is out. */
int mull__store_claim(mull__store *store, mull__list *claims, const char *queue, size_t wanted,
                      int64_t now_ms);

/* mull__store_next_due is when the next message that isn't due by `now_ms` is; INT64_MAX: none. */
int mull__store_next_due(mull__store *store, const char *queue, int64_t now_ms, int64_t *due_ms);

/* mull__store_depth counts; next_due_ms is on the wall clock. */
int mull__store_depth(mull__store *store, const char *queue, mull_depth *depth);

void mull__claim_free(const mull_allocator *allocator, mull__claim *claim);

/* ---- settle.c -------------------------------------------------------------------------------- */

/* mull__store_publish inserts a message; `headers` is JSON. */
int mull__store_publish(mull__store *store, const mull_outgoing *outgoing, const char *headers);

/* mull__store_settle carries out a settlement. `*status`: 0; MULL_ELOST, nothing changed;
 * MULL_EINVAL or MULL_ENOMEM, nothing changed: a header that isn't UTF-8, or no memory to write it.
 */
int mull__store_settle(mull__store *store, const mull__claim *claim,
                       const mull_settlement *settlement, int *status);

/* mull__store_return takes a claim back as if it had never been. */
int mull__store_return(mull__store *store, const mull__claim *claim);

#endif
