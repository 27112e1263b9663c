/* settle.c: messages into the file, and the end of a claim. */
#include "base/alloc.h"
#include "store.h"
#include "wire/headers.h"

static int bind_bytes(sqlite3_stmt *into, int at, const mull_message *message)
{
    return sqlite3_bind_blob64(into, at, message->body_size ? message->body : "",
                               message->body_size, SQLITE_STATIC);
}

/* insert_body gives the number of a body that goes into `bodies`; 0: into the row. Its message's,
 * or the next one that is free: somebody else may have written a row. */
static int insert_body(mull__store *store, const mull_message *message, int64_t number,
                       int64_t *large)
{
    *large = message->body_size > MULL__BODY_IN_ROW ? number : 0;
    if (!*large)
        return SQLITE_OK;
    int code = bind_bytes(store->statements[MULL__SQL_BODY], 2, message);
    if (code == SQLITE_OK)
        code = mull__store_run(store, MULL__SQL_BODY, "i", *large);
    while (mull__is_taken(code)) {
        code = mull__store_number(store, large);
        if (code == SQLITE_OK)
            code = mull__store_run(store, MULL__SQL_BODY, "i", *large);
    }
    return code;
}

/* bind_body binds a body, or the number of one in `bodies`, to a statement with MULL__VALUES. */
static int bind_body(mull__store *store, mull__statement statement, const mull_message *message,
                     int64_t large)
{
    sqlite3_stmt *into = store->statements[statement];
    int code =
        large ? sqlite3_bind_null(into, MULL__AT_BODY) : bind_bytes(into, MULL__AT_BODY, message);
    if (code != SQLITE_OK)
        return code;
    return large ? sqlite3_bind_int64(into, MULL__AT_LARGE, large)
                 : sqlite3_bind_null(into, MULL__AT_LARGE);
}

static void count_ready(mull__queue *queue)
{
    queue->ready++;
    queue->changed = 1;
}

/* insert_row: a message that isn't due yet waits; any other is ready, behind all that are. */
static int insert_row(mull__store *store, const mull_outgoing *outgoing, mull__queue *queue,
                      const char *headers)
{
    const mull_message *message = outgoing->message;
    int64_t number, large, due_ms = mull__store_due(store, outgoing->due_ms);
    mull__statement statement = due_ms > 0 ? MULL__SQL_DELAYED : MULL__SQL_READY;
    int code = mull__store_number(store, &number);
    if (code == SQLITE_OK)
        code = insert_body(store, message, number, &large);
    if (code == SQLITE_OK)
        code = bind_body(store, statement, message, large);
    if (code != SQLITE_OK)
        return code;
    if (due_ms == 0)
        count_ready(queue);
    return mull__store_run(store, statement, due_ms > 0 ? "iittttii" : "iitttti", queue->queue,
                           number, message->id, message->type, message->key, headers,
                           mull_port_wall(store->port), due_ms);
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

/* found says whether the statement just run found the claim that it is about. */
static int found(const mull__store *store, int code)
{
    return code == SQLITE_OK && sqlite3_changes(store->db) > 0;
}

static int status_of(const mull__store *store, int code)
{
    return code == SQLITE_OK && !found(store, code) ? MULL_ELOST : 0;
}

static int end_row(mull__store *store, const mull__claim *claim)
{
    return claim->queue
               ? mull__store_run(store, MULL__SQL_END_READY, "ii", claim->queue, claim->number)
               : mull__store_run(store, MULL__SQL_END, "iii", claim->number, store->owner,
                                 claim->token);
}

/* end takes a message out of the file, and puts in what its handler sent. */
static int end(mull__store *store, const mull__claim *claim, const mull_settlement *settlement,
               int *status)
{
    int code = end_row(store, claim);
    *status = status_of(store, code);
    if (!found(store, code))
        return code;
    if (claim->large)
        code = mull__store_run(store, MULL__SQL_END_BODY, "i", claim->large);
    for (size_t i = 0; i < settlement->send_count && code == SQLITE_OK; i++)
        code = mull__store_publish(store, &settlement->sends[i]);
    return code;
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

/* move_ready takes a claim out of `ready` and inserts it elsewhere from memory. `types` says how
 * many of the values the statement takes. */
static int move_ready(mull__store *store, const settled *to, mull__statement statement,
                      const char *types, int64_t queue)
{
    const mull__claim *claim = to->claim;
    const mull_message *message = &claim->message;
    const mull_settlement *settlement = to->settlement;
    int code = end_row(store, claim);
    if (!found(store, code))
        return code;
    code = bind_body(store, statement, message, claim->large);
    if (code != SQLITE_OK)
        return code;
    return mull__store_run(store, statement, types, queue, to->number,
                           message->id ? message->id : settlement->id, message->type, message->key,
                           to->headers, claim->published_ms, to->due_ms,
                           mull_port_wall(store->port), message->queue, settlement->error_type,
                           settlement->reason, settlement->rule, settlement->consumer);
}

/* requeue is a redelivery at once: to the end of `ready`, but for what was a dead letter, which
 * stays in `waiting` and says so. */
static int requeue(mull__store *store, settled *to)
{
    mull__queue *queue;
    int code = mull__store_number(store, &to->number);
    if (code == SQLITE_OK)
        code = mull__store_queue(store, &queue, to->claim->message.queue, 1);
    if (code == SQLITE_OK)
        code = to->claim->queue ? move_ready(store, to, MULL__SQL_READY, "iitttti", queue->queue)
                                : run_settled(store, MULL__SQL_REQUEUE, "iiittii", to, 0);
    if (found(store, code)) {
        count_ready(queue);
        return to->claim->queue ? code : end_row(store, to->claim);
    }
    return code == SQLITE_OK && !to->claim->queue
               ? run_settled(store, MULL__SQL_REDELIVER, "iiittii", to, 0)
               : code;
}

static int bury(mull__store *store, settled *to)
{
    mull__queue *queue;
    int code = mull__store_queue(store, &queue, to->settlement->queue, 1);
    if (code == SQLITE_OK)
        code = mull__store_number(store, &to->number);
    if (code != SQLITE_OK)
        return code;
    return to->claim->queue
               ? move_ready(store, to, MULL__SQL_BURIED, "iittttiiittttt", queue->queue)
               : run_settled(store, MULL__SQL_DEAD_LETTER, "iiittiiiitttt", to, queue->queue);
}

/* keep carries out a settlement that keeps the message. */
static int keep(mull__store *store, settled *to)
{
    mull_settle_kind kind = to->settlement->kind;
    if (kind == MULL_SETTLE_NOTE)
        return note(store, to);
    if (kind == MULL_SETTLE_DEAD_LETTER)
        return bury(store, to);
    if (kind == MULL_SETTLE_REDELIVER && to->due_ms == 0)
        return requeue(store, to);
    if (to->claim->queue)
        return move_ready(store, to, MULL__SQL_DELAYED, "iittttii", to->claim->queue);
    return kind == MULL_SETTLE_GIVE_BACK
               ? run_settled(store, MULL__SQL_GIVE_BACK, "iiitti", to, 0)
               : run_settled(store, MULL__SQL_REDELIVER, "iiittii", to, 0);
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
    int code = keep(store, &to);
    *status = status_of(store, code);
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

/* acknowledged gives the claim that a job ends by deleting its row of `ready`, and nothing else;
 * NULL: the job does something else. */
static const mull__claim *acknowledged(mull__link *link)
{
    mull__job *job = MULL__ENTRY(link, mull__job, link);
    const mull__claim *claim = MULL__ENTRY(job, mull__claim, job);
    if (job->kind != MULL__JOB_SETTLE || !claim->queue || claim->large)
        return NULL;
    const mull_settlement *settlement = claim->settlement;
    int gone = settlement->kind == MULL_SETTLE_ACK || settlement->kind == MULL_SETTLE_DISCARD;
    return gone && settlement->send_count == 0 ? claim : NULL;
}

mull__link *mull__store_run_of(mull__list *jobs, mull__link *first)
{
    mull__link *last = first, *link = first;
    const mull__claim *before = acknowledged(first);
    while (before && (link = mull__list_after(jobs, link))) {
        const mull__claim *claim = acknowledged(link);
        if (!claim || claim->queue != before->queue || claim->number != before->number + 1)
            break;
        before = claim;
        last = link;
    }
    return last;
}

int mull__store_end_run(mull__store *store, mull__link *first, mull__link *last, int *ended)
{
    const mull__claim *from = acknowledged(first), *to = acknowledged(last);
    int64_t there = 0;
    int code = mull__store_ask(&there, mull__store_bind(store, MULL__SQL_COUNT_READY, "iii",
                                                        from->queue, from->number, to->number));
    *ended = code == SQLITE_OK && there == to->number - from->number + 1;
    if (!*ended)
        return code;
    store->ended = 1;
    return mull__store_run(store, MULL__SQL_END_RUN, "iii", from->queue, from->number, to->number);
}

int mull__store_claim_ends(const mull_settlement *settlement, int status)
{
    return status == MULL_ELOST || (status == 0 && settlement->kind != MULL_SETTLE_NOTE);
}

/* A claim of a range becomes one of `waiting` first, with the claim's token. */
int mull__store_unclaim(mull__store *store, const mull__claim *claim)
{
    int code = SQLITE_OK;
    if (claim->queue)
        code = mull__store_run(store, MULL__SQL_LEAVE_READY, "iiii", claim->queue, claim->number,
                               store->owner, claim->token);
    if (claim->queue && found(store, code))
        code = end_row(store, claim);
    if (code == SQLITE_OK)
        code = mull__store_run(store, MULL__SQL_RETURN, "iii", claim->number, store->owner,
                               claim->token);
    if (code == SQLITE_OK)
        pass(store, claim);
    return code;
}
