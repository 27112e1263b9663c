/* settle.c: messages into the file, and the end of a claim. */
#include "base/alloc.h"
#include "store.h"
#include "wire/headers.h"

/* insert_row takes the next number that no message has: somebody else may have given it out. */
static int insert_row(mull__store *store, const mull_outgoing *outgoing, const char *headers,
                      int64_t *number)
{
    const mull_message *message = outgoing->message;
    int64_t due_ms = mull__store_due(store, outgoing->due_ms);
    int code;
    do {
        code = mull__store_number(store, number);
        if (code == SQLITE_OK)
            code = mull__store_run(store, MULL__SQL_INSERT, "ititttti", *number, message->queue,
                                   due_ms, message->id, message->type, message->key, headers,
                                   mull_port_wall(store->port));
    } while (code == SQLITE_CONSTRAINT_PRIMARYKEY);
    return code;
}

int mull__store_publish(mull__store *store, const mull_outgoing *outgoing)
{
    const mull_message *message = outgoing->message;
    int64_t number;
    char *headers;
    store->publishes = 1;
    /* The engine has seen to it that they are UTF-8. */
    if (mull__headers_to_json(&headers, &store->allocator, message->headers,
                              message->header_count) != 0)
        return SQLITE_NOMEM;
    int code = insert_row(store, outgoing, headers, &number);
    mull__free(&store->allocator, headers);
    if (code != SQLITE_OK)
        return code;
    sqlite3_stmt *body = store->statements[MULL__SQL_INSERT_BODY];
    code = sqlite3_bind_blob64(body, 2, message->body_size ? message->body : "", message->body_size,
                               SQLITE_STATIC);
    return code == SQLITE_OK ? mull__store_run(store, MULL__SQL_INSERT_BODY, "i", number) : code;
}

/* found says whether a statement that ends in MULL__CLAIMED found its claim. */
static int found(const mull__store *store, int code, int *status)
{
    *status = code == SQLITE_OK && sqlite3_changes(store->db) == 0 ? MULL_ELOST : 0;
    return code == SQLITE_OK && *status == 0;
}

/* end takes a message out of the file, and puts in what its handler sent. */
static int end(mull__store *store, const mull__claim *claim, const mull_settlement *settlement,
               int *status)
{
    int code =
        mull__store_run(store, MULL__SQL_DELETE, "iii", claim->number, store->owner, claim->token);
    if (!found(store, code, status))
        return code;
    code = mull__store_run(store, MULL__SQL_DELETE_BODY, "i", claim->number);
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

/* move rewrites a message's row; its body stays where it is. */
static int move(mull__store *store, const mull__claim *claim, const mull_settlement *settlement,
                int *status)
{
    static const struct {
        mull__statement statement;
        const char *types; /* each takes the first so many of the values */
    } moves[] = {[MULL_SETTLE_NOTE] = {MULL__SQL_NOTE, "iiitt"},
                 [MULL_SETTLE_GIVE_BACK] = {MULL__SQL_GIVE_BACK, "iiitti"},
                 [MULL_SETTLE_REDELIVER] = {MULL__SQL_REDELIVER, "iiittii"},
                 [MULL_SETTLE_DEAD_LETTER] = {MULL__SQL_DEAD_LETTER, "iiittiitittt"}};
    mull_settle_kind kind = settlement->kind;
    int64_t seq = 0;
    char *headers;
    *status = headers_of(store, claim, settlement, &headers);
    if (*status != 0)
        return SQLITE_OK;
    int goes_to_the_end = kind == MULL_SETTLE_REDELIVER || kind == MULL_SETTLE_DEAD_LETTER;
    int code = goes_to_the_end ? mull__store_number(store, &seq) : SQLITE_OK;
    if (code == SQLITE_OK)
        code = mull__store_run(store, moves[kind].statement, moves[kind].types, claim->number,
                               store->owner, claim->token, settlement->id, headers,
                               mull__store_due(store, settlement->due_ms), seq, settlement->queue,
                               mull_port_wall(store->port), settlement->error_type,
                               settlement->reason, settlement->rule);
    found(store, code, status);
    mull__free(&store->allocator, headers);
    return code;
}

/* pass: the poison candidate that was out is no more, so another may be claimed. */
static void pass(mull__store *store, const mull__claim *claim)
{
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
    int code =
        mull__store_run(store, MULL__SQL_RETURN, "iii", claim->number, store->owner, claim->token);
    if (code == SQLITE_OK)
        pass(store, claim);
    return code;
}
