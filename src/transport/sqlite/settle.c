/* settle.c: messages into the file, and the end of a claim. */
#include "base/alloc.h"
#include "store.h"
#include "wire/json.h"

/* written gives headers as the column has them, where SQL can look into them: an object always. */
static const char *written(const char *json)
{
    return *json ? json : "{}";
}

/* insert_row takes the next number that no message has: somebody else may have given it out. */
static int insert_row(mull__store *store, sqlite3_stmt *row, int64_t *number)
{
    int code;
    do {
        code = mull__store_number(store, number);
        if (code != SQLITE_OK)
            return code;
        sqlite3_bind_int64(row, 1, *number);
        code = mull__store_run(store, MULL__SQL_INSERT);
    } while (code == SQLITE_CONSTRAINT_PRIMARYKEY);
    return code;
}

int mull__store_publish(mull__store *store, const mull_outgoing *outgoing, const char *headers)
{
    const mull_message *message = &outgoing->message;
    int64_t number;
    store->publishes = 1;
    sqlite3_stmt *row = store->statements[MULL__SQL_INSERT];
    mull__bind_text(row, 2, message->queue);
    sqlite3_bind_int64(row, 3, mull__store_due(store, outgoing->due_ms));
    mull__bind_text(row, 4, message->id);
    mull__bind_text(row, 5, message->type);
    mull__bind_text(row, 6, message->key);
    mull__bind_text(row, 7, written(headers));
    sqlite3_bind_int64(row, 8, mull_port_wall(store->port));
    int code = insert_row(store, row, &number);
    if (code != SQLITE_OK)
        return code;
    sqlite3_stmt *body = store->statements[MULL__SQL_INSERT_BODY];
    sqlite3_bind_int64(body, 1, number);
    sqlite3_bind_blob64(body, 2, message->body_size ? message->body : "", message->body_size,
                        SQLITE_STATIC);
    return mull__store_run(store, MULL__SQL_INSERT_BODY);
}

static void free_all(mull__store *store, char **headers, size_t count)
{
    for (size_t i = 0; headers && i < count; i++)
        mull__free(&store->allocator, headers[i]);
    mull__free(&store->allocator, headers);
}

/* write_all writes the headers of all that is sent, before anything is changed. */
static int write_all(mull__store *store, const mull_settlement *settlement, char ***out)
{
    size_t count = settlement->send_count;
    *out = NULL;
    if (count == 0)
        return 0;
    char **headers = mull__zalloc(&store->allocator, count, sizeof *headers);
    if (!headers)
        return MULL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const mull_message *message = &settlement->sends[i].message;
        int status = mull__headers_to_json(&headers[i], &store->allocator, message->headers,
                                           message->header_count);
        if (status != 0) {
            free_all(store, headers, count);
            return status;
        }
    }
    *out = headers;
    return 0;
}

/* change runs a statement that ends in MULL__CLAIMED; `*status` is MULL_ELOST where it found no
 * such claim. */
static int change(mull__store *store, mull__statement statement, const mull__claim *claim,
                  int *status)
{
    sqlite3_stmt *write = store->statements[statement];
    sqlite3_bind_int64(write, 1, claim->number);
    sqlite3_bind_int64(write, 2, store->owner);
    sqlite3_bind_int64(write, 3, claim->token);
    int code = mull__store_run(store, statement);
    *status = code == SQLITE_OK && sqlite3_changes(store->db) == 0 ? MULL_ELOST : 0;
    return code;
}

/* end takes a message out of the file, and puts in what its handler sent. */
static int end(mull__store *store, const mull__claim *claim, const mull_settlement *settlement,
               int *status)
{
    char **headers;
    *status = write_all(store, settlement, &headers);
    if (*status != 0)
        return SQLITE_OK;
    int code = change(store, MULL__SQL_DELETE, claim, status);
    if (code == SQLITE_OK && *status == 0) {
        sqlite3_bind_int64(store->statements[MULL__SQL_DELETE_BODY], 1, claim->number);
        code = mull__store_run(store, MULL__SQL_DELETE_BODY);
        for (size_t i = 0; i < settlement->send_count && code == SQLITE_OK; i++)
            code = mull__store_publish(store, &settlement->sends[i], headers[i]);
    }
    free_all(store, headers, settlement->send_count);
    return code;
}

static int bind_place(mull__store *store, sqlite3_stmt *row, int64_t due_ms)
{
    int64_t seq;
    int code = mull__store_number(store, &seq);
    sqlite3_bind_int64(row, 6, due_ms);
    sqlite3_bind_int64(row, 7, seq);
    return code;
}

static void bind_death(mull__store *store, sqlite3_stmt *row, const mull_settlement *settlement)
{
    mull__bind_text(row, 8, settlement->queue);
    sqlite3_bind_int64(row, 9, mull_port_wall(store->port));
    mull__bind_text(row, 10, settlement->error_type);
    mull__bind_text(row, 11, settlement->reason);
    mull__bind_text(row, 12, settlement->rule);
}

/* move rewrites a message's row; its body stays where it is. */
static int move(mull__store *store, mull__statement statement, const mull__claim *claim,
                const mull_settlement *settlement, int *status)
{
    char *headers;
    *status = mull__headers_to_json(&headers, &store->allocator, settlement->headers,
                                    settlement->header_count);
    if (*status != 0)
        return SQLITE_OK;
    sqlite3_stmt *row = store->statements[statement];
    mull__bind_text(row, 4, settlement->id);
    mull__bind_text(row, 5, written(headers));
    int code = SQLITE_OK;
    if (statement != MULL__SQL_GIVE_BACK)
        code = bind_place(store, row, mull__store_due(store, settlement->due_ms));
    if (statement == MULL__SQL_DEAD_LETTER)
        bind_death(store, row, settlement);
    if (code == SQLITE_OK)
        code = change(store, statement, claim, status);
    mull__free(&store->allocator, headers);
    return code;
}

static int carry_out(mull__store *store, const mull__claim *claim,
                     const mull_settlement *settlement, int *status)
{
    switch (settlement->kind) {
    case MULL_SETTLE_ACK:
    case MULL_SETTLE_DISCARD:
        return end(store, claim, settlement, status);
    case MULL_SETTLE_REDELIVER:
        return move(store, MULL__SQL_REDELIVER, claim, settlement, status);
    case MULL_SETTLE_DEAD_LETTER:
        return move(store, MULL__SQL_DEAD_LETTER, claim, settlement, status);
    case MULL_SETTLE_GIVE_BACK:
        return move(store, MULL__SQL_GIVE_BACK, claim, settlement, status);
    }
    *status = MULL_EINVAL;
    return SQLITE_OK;
}

/* pass: the suspect that was out is no more, so another may be claimed. */
static void pass(mull__store *store, const mull__claim *claim)
{
    if (store->state.suspect == claim->token)
        store->state.suspect = 0;
}

int mull__store_settle(mull__store *store, const mull__claim *claim,
                       const mull_settlement *settlement, int *status)
{
    int code = carry_out(store, claim, settlement, status);
    if (code == SQLITE_OK && (*status == 0 || *status == MULL_ELOST))
        pass(store, claim);
    return code;
}

int mull__store_return(mull__store *store, const mull__claim *claim)
{
    int status;
    int code = change(store, MULL__SQL_RETURN, claim, &status);
    if (code == SQLITE_OK)
        pass(store, claim);
    return code;
}
