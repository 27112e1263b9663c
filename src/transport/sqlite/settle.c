/* settle.c: messages into the file, and the end of a claim. */
#include "base/alloc.h"
#include "store.h"
#include "wire/headers.h"

static int bind_bytes(sqlite3_stmt *into, int at, const mull_message *message)
{
    return sqlite3_bind_blob64(into, at, message->body_size ? message->body : "",
                               message->body_size, SQLITE_STATIC);
}

/* insert_body gives the number of a body that goes into `bodies`; 0: into the row. */
static int insert_body(mull__store *store, const mull_message *message, int64_t number,
                       int64_t *large)
{
    *large = message->body_size > MULL__BODY_IN_ROW ? number : 0;
    if (!*large)
        return SQLITE_OK;
    int code = bind_bytes(store->statements[MULL__SQL_BODY], 2, message);
    return code == SQLITE_OK ? mull__store_run(store, MULL__SQL_BODY, "i", number) : code;
}

/* The parameters of READY and DELAYED. */
enum { AT_BODY = 8, AT_LARGE = 9, AT_DUE = 10 };

/* insert_row: a message that isn't due yet waits; any other is ready, behind all that are. */
static int insert_row(mull__store *store, const mull_outgoing *outgoing, mull__queue *queue,
                      const char *headers)
{
    const mull_message *message = outgoing->message;
    int64_t number, large, due_ms = mull__store_due(store, outgoing->due_ms);
    int code = mull__store_number(store, &number);
    if (code == SQLITE_OK)
        code = insert_body(store, message, number, &large);
    if (code != SQLITE_OK)
        return code;
    mull__statement statement = due_ms > 0 ? MULL__SQL_DELAYED : MULL__SQL_READY;
    sqlite3_stmt *row = store->statements[statement];
    if (large)
        code = sqlite3_bind_null(row, AT_BODY);
    else
        code = bind_bytes(row, AT_BODY, message);
    if (code == SQLITE_OK)
        code = large ? sqlite3_bind_int64(row, AT_LARGE, large) : sqlite3_bind_null(row, AT_LARGE);
    if (code == SQLITE_OK && due_ms > 0)
        code = sqlite3_bind_int64(row, AT_DUE, due_ms);
    queue->ready += due_ms == 0;
    queue->changed |= due_ms == 0;
    return code == SQLITE_OK
               ? mull__store_run(store, statement, "iitttti", queue->queue, number, message->id,
                                 message->type, message->key, headers, mull_port_wall(store->port))
               : code;
}

int mull__store_publish(mull__store *store, const mull_outgoing *outgoing)
{
    const mull_message *message = outgoing->message;
    mull__queue *queue;
    char *headers;
    store->publishes = 1;
    int code = mull__store_queue(store, &queue, message->queue, 1);
    if (code != SQLITE_OK)
        return code;
    /* The engine has seen to it that they are UTF-8. */
    if (mull__headers_to_json(&headers, &store->allocator, message->headers,
                              message->header_count) != 0)
        return SQLITE_NOMEM;
    code = insert_row(store, outgoing, queue, headers);
    mull__free(&store->allocator, headers);
    return code;
}

/* found says whether a statement found the claim that it is about. */
static int found(const mull__store *store, int code, int *status)
{
    *status = code == SQLITE_OK && sqlite3_changes(store->db) == 0 ? MULL_ELOST : 0;
    return code == SQLITE_OK && *status == 0;
}

static int end_row(mull__store *store, const mull__claim *claim, int *status)
{
    int code = claim->queue
                   ? mull__store_run(store, MULL__SQL_END_READY, "ii", claim->queue, claim->number)
                   : mull__store_run(store, MULL__SQL_END, "iii", claim->number, store->owner,
                                     claim->token);
    found(store, code, status);
    return code;
}

/* end takes a message out of the file, and puts in what its handler sent. */
static int end(mull__store *store, const mull__claim *claim, const mull_settlement *settlement,
               int *status)
{
    int code = end_row(store, claim, status);
    if (code != SQLITE_OK || *status != 0)
        return code;
    if (claim->large)
        code = mull__store_run(store, MULL__SQL_END_BODY, "i", claim->large);
    for (size_t i = 0; i < settlement->send_count && code == SQLITE_OK; i++)
        code = mull__store_publish(store, &settlement->sends[i]);
    return code;
}

/* leave_ready makes a claim of a range one of `waiting`, with the claim's token. */
static int leave_ready(mull__store *store, const mull__claim *claim, int *status)
{
    *status = 0;
    if (!claim->queue)
        return SQLITE_OK;
    int code = mull__store_run(store, MULL__SQL_LEAVE_READY, "iiii", claim->queue, claim->number,
                               store->owner, claim->token);
    return found(store, code, status) ? end_row(store, claim, status) : code;
}

/* headers_of gives a settled message's headers as a row has them, to be freed. All are UTF-8: those
 * of the row were read as such (headers.c), and ours the engine has written so. */
static int headers_of(mull__store *store, const mull__claim *claim,
                      const mull_settlement *settlement, char **out)
{
    size_t most = claim->message.header_count + settlement->our_count;
    if (most > store->header_room) {
        mull_header *headers = mull__grow(&store->allocator, store->headers, most, sizeof *headers);
        if (!headers)
            return MULL_ENOMEM;
        store->headers = headers;
        store->header_room = most;
    }
    size_t count = mull_settled_headers(store->headers, &claim->message, settlement);
    return mull__headers_to_json(out, &store->allocator, store->headers, count);
}

/* settled is what the statements of a settlement that keeps the message are bound to. */
typedef struct settled {
    const mull__claim *claim;
    const mull_settlement *settlement;
    const char *headers;
    int64_t due_ms, number;
} settled;

static int run_settled(mull__store *store, mull__statement statement, const char *types,
                       const settled *to, int64_t queue)
{
    const mull_settlement *settlement = to->settlement;
    return mull__store_run(store, statement, types, to->claim->number, store->owner,
                           to->claim->token, settlement->id, to->headers, to->due_ms, to->number,
                           queue, mull_port_wall(store->port), settlement->error_type,
                           settlement->reason, settlement->rule, settlement->consumer);
}

static int note(mull__store *store, const settled *to)
{
    const mull__claim *claim = to->claim;
    return claim->queue ? mull__store_run(store, MULL__SQL_NOTE_READY, "iitt", claim->queue,
                                          claim->number, to->settlement->id, to->headers)
                        : run_settled(store, MULL__SQL_NOTE, "iiitt", to, 0);
}

/* put_off_ready moves a message out of its range, as it is to be, in one step. */
static int put_off_ready(mull__store *store, const settled *to, int64_t queue, int *status)
{
    const mull__claim *claim = to->claim;
    const mull_settlement *why = to->settlement;
    int dead = why->kind == MULL_SETTLE_DEAD_LETTER;
    int code = mull__store_run(store, MULL__SQL_PUT_OFF_READY, "iiittiiitttt", claim->number,
                               claim->queue, queue, why->id, to->headers, to->due_ms, to->number,
                               dead ? mull_port_wall(store->port) : -1,
                               dead ? why->error_type : NULL, dead ? why->reason : NULL,
                               dead ? why->rule : NULL, dead ? why->consumer : NULL);
    return found(store, code, status) ? end_row(store, claim, status) : code;
}

/* redeliver: at once is to the end of `ready`, but for what was a dead letter and says so. */
static int redeliver(mull__store *store, settled *to, int *status)
{
    mull__queue *queue;
    if (to->due_ms > 0)
        return run_settled(store, MULL__SQL_REDELIVER, "iiittii", to, 0);
    int code = leave_ready(store, to->claim, status);
    if (code != SQLITE_OK || *status != 0)
        return code;
    code = mull__store_number(store, &to->number);
    if (code == SQLITE_OK)
        code = mull__store_queue(store, &queue, to->claim->message.queue, 1);
    if (code == SQLITE_OK)
        code = run_settled(store, MULL__SQL_REQUEUE, "iiittii", to, 0);
    if (!found(store, code, status))
        return code == SQLITE_OK ? run_settled(store, MULL__SQL_REDELIVER, "iiittii", to, 0) : code;
    queue->ready++;
    queue->changed = 1;
    return mull__store_run(store, MULL__SQL_END, "iii", to->claim->number, store->owner,
                           to->claim->token);
}

static int bury(mull__store *store, settled *to, int *status)
{
    mull__queue *queue;
    int code = mull__store_queue(store, &queue, to->settlement->queue, 1);
    if (code == SQLITE_OK)
        code = mull__store_number(store, &to->number);
    if (code == SQLITE_OK && to->claim->queue)
        return put_off_ready(store, to, queue->queue, status);
    return code == SQLITE_OK
               ? run_settled(store, MULL__SQL_DEAD_LETTER, "iiittiiiitttt", to, queue->queue)
               : code;
}

/* keep carries out a settlement that keeps the message. */
static int keep(mull__store *store, settled *to, int *status)
{
    mull_settle_kind kind = to->settlement->kind;
    int at_once = kind == MULL_SETTLE_REDELIVER && to->due_ms == 0;
    int code;
    if (kind == MULL_SETTLE_NOTE)
        code = note(store, to);
    else if (kind == MULL_SETTLE_DEAD_LETTER)
        code = bury(store, to, status);
    else if (to->claim->queue && !at_once)
        code = put_off_ready(store, to, to->claim->queue, status);
    else if (kind == MULL_SETTLE_GIVE_BACK)
        code = run_settled(store, MULL__SQL_GIVE_BACK, "iiitti", to, 0);
    else
        code = redeliver(store, to, status);
    found(store, code, status);
    return code;
}

static int move(mull__store *store, const mull__claim *claim, const mull_settlement *settlement,
                int *status)
{
    char *headers;
    *status = headers_of(store, claim, settlement, &headers);
    if (*status != 0)
        return SQLITE_OK;
    settled to = {claim, settlement, headers, mull__store_due(store, settlement->due_ms),
                  claim->number};
    int code = keep(store, &to, status);
    mull__free(&store->allocator, headers);
    return code;
}

/* pass: the poison candidate that was out is no more, so another may be claimed; and a range may be
 * empty now, also where the claim was found lost. */
static void pass(mull__store *store, const mull__claim *claim)
{
    store->ended |= claim->queue != 0;
    if (store->state.poison_candidate == claim->token)
        store->state.poison_candidate = 0;
}

int mull__store_settle(mull__store *store, const mull__claim *claim,
                       const mull_settlement *settlement, int *status)
{
    mull_settle_kind kind = settlement->kind;
    int gone = kind == MULL_SETTLE_ACK || kind == MULL_SETTLE_DISCARD;
    int code =
        gone ? end(store, claim, settlement, status) : move(store, claim, settlement, status);
    if (code == SQLITE_OK && mull__store_claim_ends(settlement, *status))
        pass(store, claim);
    return code;
}

int mull__store_claim_ends(const mull_settlement *settlement, int status)
{
    return status == MULL_ELOST || (status == 0 && settlement->kind != MULL_SETTLE_NOTE);
}

int mull__store_unclaim(mull__store *store, const mull__claim *claim)
{
    int status, code = leave_ready(store, claim, &status);
    if (code == SQLITE_OK)
        code = mull__store_run(store, MULL__SQL_RETURN, "iii", claim->number, store->owner,
                               claim->token);
    if (code == SQLITE_OK)
        pass(store, claim);
    return code;
}
