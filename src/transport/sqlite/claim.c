/* claim.c: messages out of the file.
 *
 * The order, for each claim of a queue: first one suspect, if none of this owner's is out, the one
 * with the fewest deliveries; then what was put off and is due, by due time; then the rest, by
 * sequence. So a message that kills its owner is claimed again only when all that died beside it
 * had a turn of their own, and as long as it is out, no other suspect is out with it. Neither kind
 * starves the other: suspects never take more than one of the places, and nobody goes before them.
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "store.h"

#include <stdio.h>
#include <string.h>

/* No policy puts a message off for more than 365 days; one more is for clocks that differ. */
#define FAR_MS (INT64_C(366) * 24 * 3600 * 1000)

enum { FAR_NAMED = 20 };

void mull__claim_free(const mull_allocator *allocator, mull__claim *claim)
{
    mull__free(allocator, claim->headers);
    mull__free(allocator, claim->text);
    mull__free(allocator, claim);
}

/* The columns of MULL__CLAIM_COLUMNS. */
enum { NUMBER, DELIVERIES, ID, TYPE, KEY, HEADERS, BODY };

/* place copies a column to `*end` and moves that behind it; NULL stays NULL. */
static const char *place(char **end, sqlite3_stmt *row, int column)
{
    const void *text = sqlite3_column_text(row, column);
    if (!text)
        return NULL;
    size_t length = (size_t)sqlite3_column_bytes(row, column);
    char *start = *end;
    memcpy(start, text, length);
    start[length] = 0;
    *end += length + 1;
    return start;
}

static size_t size_of(sqlite3_stmt *row, int column)
{
    return (size_t)sqlite3_column_bytes(row, column) + 1;
}

static int read_strings(mull__store *store, mull__claim *claim, sqlite3_stmt *row)
{
    mull_message *message = &claim->delivery.message;
    size_t bytes = size_of(row, ID) + size_of(row, TYPE) + size_of(row, KEY) + size_of(row, BODY);
    char *end = claim->text = mull__alloc(&store->allocator, bytes);
    if (!end)
        return SQLITE_NOMEM;
    message->id = place(&end, row, ID);
    message->type = place(&end, row, TYPE);
    message->key = place(&end, row, KEY);
    message->body_size = (size_t)sqlite3_column_bytes(row, BODY);
    if (message->body_size > 0)
        memcpy(end, sqlite3_column_blob(row, BODY), message->body_size);
    end[message->body_size] = 0;
    message->body = end;
    if (sqlite3_column_type(row, BODY) == SQLITE_NULL)
        message->body_size = MULL_BODY_MISSING;
    return SQLITE_OK;
}

/* read_headers: a row that was spoiled by hand is better delivered bare than never. */
static int read_headers(mull__store *store, mull__claim *claim, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, HEADERS);
    if (!text)
        return SQLITE_OK; /* out of memory, as the end of the statement will say */
    mull_message *message = &claim->delivery.message;
    int code = mull__store_headers(store, text, &claim->headers, &message->header_count);
    message->headers = claim->headers;
    if (code != SQLITE_ERROR)
        return code;
    char line[128];
    snprintf(line, sizeof line,
             "message number %lld: its headers are no JSON object of strings; delivered without",
             (long long)claim->number);
    mull_port_log(store->port, MULL_ERROR_LEVEL, line);
    return SQLITE_OK;
}

/* count_of gives what the claim will make of the deliveries. */
static int64_t count_of(sqlite3_stmt *row)
{
    int64_t deliveries = sqlite3_column_int64(row, DELIVERIES);
    return deliveries < MULL__DELIVERIES_MAX ? deliveries + 1 : MULL__DELIVERIES_MAX;
}

static int read_claim(mull__store *store, mull__list *claims, sqlite3_stmt *row)
{
    mull__claim *claim = mull__zalloc(&store->allocator, 1, sizeof *claim);
    if (!claim)
        return SQLITE_NOMEM;
    mull__list_push(claims, &claim->link);
    claim->number = sqlite3_column_int64(row, NUMBER);
    claim->token = ++store->token;
    claim->delivery.message.size = sizeof claim->delivery.message;
    claim->delivery.message.deliveries = count_of(row);
    int code = read_strings(store, claim, row);
    return code != SQLITE_OK ? code : read_headers(store, claim, row);
}

static int read_claims(mull__store *store, mull__list *claims, mull__statement statement)
{
    sqlite3_stmt *read = store->statements[statement];
    int code = SQLITE_OK;
    while (code == SQLITE_OK && sqlite3_step(read) == SQLITE_ROW)
        code = read_claim(store, claims, read);
    int ended = sqlite3_reset(read);
    return code != SQLITE_OK ? code : ended;
}

/* sign writes owner and token to the rows of the claims behind `last`. */
static int sign(mull__store *store, mull__list *claims, mull__link *last)
{
    sqlite3_stmt *write = store->statements[MULL__SQL_CLAIM];
    mull__link *link = last ? mull__list_after(claims, last) : mull__list_first(claims);
    for (; link; link = mull__list_after(claims, link)) {
        const mull__claim *claim = MULL__ENTRY(link, mull__claim, link);
        sqlite3_bind_int64(write, 1, claim->number);
        sqlite3_bind_int64(write, 2, store->owner);
        sqlite3_bind_int64(write, 3, claim->token);
        int code = mull__store_run(store, MULL__SQL_CLAIM);
        if (code != SQLITE_OK)
            return code;
    }
    return SQLITE_OK;
}

static int read_suspect(mull__store *store, mull__list *claims, const char *queue)
{
    size_t before = claims->count;
    mull__bind_text(store->statements[MULL__SQL_SUSPECT], 1, queue);
    int code = read_claims(store, claims, MULL__SQL_SUSPECT);
    if (claims->count > before)
        store->state.suspect = MULL__ENTRY(claims->head.previous, mull__claim, link)->token;
    return code;
}

static int read_some(mull__store *store, mull__list *claims, mull__statement statement,
                     const char *queue, size_t limit)
{
    sqlite3_stmt *read = store->statements[statement];
    mull__bind_text(read, 1, queue);
    sqlite3_bind_int64(read, 2, (int64_t)limit);
    return read_claims(store, claims, statement);
}

int mull__store_claim(mull__store *store, mull__list *claims, const char *queue, size_t wanted,
                      int64_t now_ms)
{
    size_t full = claims->count + wanted;
    mull__link *last = claims->count ? claims->head.previous : NULL;
    int code = SQLITE_OK;
    if (!store->state.suspect)
        code = read_suspect(store, claims, queue);
    if (code == SQLITE_OK && claims->count < full) {
        sqlite3_bind_int64(store->statements[MULL__SQL_DUE], 3, now_ms);
        code = read_some(store, claims, MULL__SQL_DUE, queue, full - claims->count);
    }
    if (code == SQLITE_OK && claims->count < full)
        code = read_some(store, claims, MULL__SQL_FRESH, queue, full - claims->count);
    return code != SQLITE_OK ? code : sign(store, claims, last);
}

/* due_of: INT64_MAX says that nothing is due. */
static int64_t due_of(sqlite3_stmt *row, int column)
{
    int64_t due_ms = sqlite3_column_int64(row, column);
    return due_ms < INT64_MAX ? due_ms : INT64_MAX - 1;
}

int mull__store_next_due(mull__store *store, const char *queue, int64_t now_ms, int64_t *due_ms,
                         int *far)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_NEXT_DUE];
    mull__bind_text(read, 1, queue);
    sqlite3_bind_int64(read, 2, now_ms);
    *due_ms = INT64_MAX;
    *far = 0;
    if (sqlite3_step(read) == SQLITE_ROW && sqlite3_column_type(read, 0) != SQLITE_NULL) {
        *due_ms = due_of(read, 0);
        *far = *due_ms - now_ms > FAR_MS;
    }
    return sqlite3_reset(read);
}

static void tell_far(mull__store *store, const char *queue, int64_t count, const char *numbers)
{
    char line[1024];
    snprintf(line, sizeof line,
             "queue '%.200s': %lld message(s) are due in more than 365 days, later than any policy "
             "can say; they wait until somebody sets their due_ms: number %s",
             queue, (long long)count, numbers);
    mull_port_log(store->port, MULL_ERROR_LEVEL, line);
}

int mull__store_tell_far(mull__store *store, const char *queue, int64_t now_ms, uint64_t *told)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_FAR];
    mull__bind_text(read, 1, queue);
    sqlite3_bind_int64(read, 2, now_ms);
    sqlite3_bind_int64(read, 3, FAR_NAMED);
    char numbers[FAR_NAMED * 24] = "";
    size_t length = 0;
    int64_t count = 0;
    while (sqlite3_step(read) == SQLITE_ROW) {
        count = sqlite3_column_int64(read, 1);
        length += (size_t)snprintf(numbers + length, sizeof numbers - length, "%s%lld",
                                   length ? ", " : "", (long long)sqlite3_column_int64(read, 0));
    }
    int code = sqlite3_reset(read);
    uint64_t which = mull__hash_text(numbers) + (uint64_t)count;
    if (code == SQLITE_OK && which != *told) {
        tell_far(store, queue, count, numbers);
        *told = which;
    }
    return code;
}

int mull__store_waiting(mull__store *store,
                        int (*found)(void *data, const char *queue, int64_t due_ms), void *data)
{
    sqlite3_stmt *read = store->statements[MULL__SQL_QUEUES];
    sqlite3_bind_int(read, 1, !store->state.suspect);
    int more = 1;
    while (more && sqlite3_step(read) == SQLITE_ROW)
        more =
            found(data, (const char *)sqlite3_column_text(read, 0), sqlite3_column_int64(read, 1));
    return sqlite3_reset(read);
}
