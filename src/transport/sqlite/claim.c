/* claim.c: messages out of the file.
 *
 * The order, for each claim of a queue: first one poison candidate that is due, if none of this
 * owner's is out, the one with the fewest deliveries; then what waited and is due, by due time;
 * then what is ready, by number. So a message that kills its owner is claimed again only when all
 * that died beside it had a turn of their own, and as long as it is out, no other poison candidate
 * is out with it. Neither kind starves the other: poison candidates never take more than one of the
 * places, and nobody goes before them.
 */
#include "base/alloc.h"
#include "base/hash.h"
#include "store.h"

#include <string.h>

/* No policy puts a message off for more than 365 days; one more is for clocks that differ. */
#define FAR_MS (INT64_C(366) * 24 * 3600 * 1000)

void mull__claim_free(const mull_allocator *allocator, mull__claim *claim)
{
    mull__free(allocator, claim->headers);
    mull__free(allocator, claim);
}

/* The columns of MULL__CLAIM_COLUMNS. */
enum { NUMBER, DELIVERIES, ID, TYPE, KEY, HEADERS, PUBLISHED, BODY, LARGE, BYTES };

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

/* read_headers: a row that was spoiled by hand is better delivered bare than never. */
static int read_headers(mull__store *store, mull__claim *claim, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, HEADERS);
    if (!text)
        return SQLITE_OK; /* out of memory, as the end of the statement will say */
    mull_message *message = &claim->message;
    int code = mull__store_headers(store, text, &claim->headers, &message->header_count);
    message->headers = claim->headers;
    if (code != SQLITE_ERROR)
        return code;
    mull__store_log(
        store, MULL_ERROR_LEVEL,
        "message number %lld: its headers are no JSON object of strings; delivered without",
        (long long)claim->number);
    return SQLITE_OK;
}

/* body_of gives the column that has the body. */
static int body_of(sqlite3_stmt *row)
{
    return sqlite3_column_type(row, LARGE) == SQLITE_NULL ? BODY : BYTES;
}

/* read_claim: `queue` as in mull__claim. */
static int read_claim(mull__store *store, mull__list *claims, sqlite3_stmt *row, int64_t queue)
{
    int body = body_of(row);
    size_t bytes = size_of(row, ID) + size_of(row, TYPE) + size_of(row, KEY) + size_of(row, body);
    mull__claim *claim = mull__alloc(&store->allocator, sizeof *claim + bytes);
    if (!claim)
        return SQLITE_NOMEM;
    mull_message *message = &claim->message;
    *claim = (mull__claim){.delivery = {.size = sizeof claim->delivery, .message = message},
                           .message.size = sizeof *message,
                           .number = sqlite3_column_int64(row, NUMBER),
                           .token = ++store->token,
                           .queue = queue,
                           .published_ms = sqlite3_column_int64(row, PUBLISHED),
                           .large = sqlite3_column_int64(row, LARGE)};
    mull__list_push(claims, &claim->link);
    char *end = (char *)(claim + 1);
    int64_t deliveries = sqlite3_column_int64(row, DELIVERIES);
    message->deliveries = deliveries < MULL__DELIVERIES_MAX ? deliveries + 1 : deliveries;
    message->id = place(&end, row, ID);
    message->type = place(&end, row, TYPE);
    message->key = place(&end, row, KEY);
    message->body_size = (size_t)sqlite3_column_bytes(row, body);
    if (message->body_size > 0)
        memcpy(end, sqlite3_column_blob(row, body), message->body_size);
    end[message->body_size] = 0;
    message->body = end;
    claim->bytes = message->body_size;
    if (sqlite3_column_type(row, body) == SQLITE_NULL)
        message->body_size = MULL_BODY_MISSING;
    return read_headers(store, claim, row);
}

/* wish is what is to be claimed of a queue. */
typedef struct wish {
    mull__list *claims;
    mull__queue *queue;
    size_t wanted, *room;
} wish;

static int is_granted(const wish *of)
{
    return of->claims->count >= of->wanted || *of->room == 0;
}

static void use_room(const wish *of)
{
    const mull__claim *last = MULL__ENTRY(of->claims->head.previous, mull__claim, link);
    *of->room -= last->bytes < *of->room ? last->bytes : *of->room;
}

/* read_claims binds and runs a statement that reads at most so many messages of a queue. */
static int read_claims(mull__store *store, const wish *of, mull__statement statement, size_t most,
                       int64_t from)
{
    int64_t ready = statement == MULL__SQL_CLAIM_READY ? of->queue->queue : 0;
    sqlite3_stmt *read =
        mull__store_bind(store, statement, "iii", of->queue->queue, (int64_t)most, from);
    int code = SQLITE_OK;
    while (code == SQLITE_OK && !is_granted(of) && sqlite3_step(read) == SQLITE_ROW) {
        code = read_claim(store, of->claims, read, ready);
        if (code == SQLITE_OK)
            use_room(of);
    }
    return mull__store_end(read, code);
}

/* sign writes owner and token to the rows that wait. */
static int sign(mull__store *store, mull__list *claims)
{
    int code = SQLITE_OK;
    mull__link *link = mull__list_first(claims);
    for (; link && code == SQLITE_OK; link = mull__list_after(claims, link)) {
        const mull__claim *claim = MULL__ENTRY(link, mull__claim, link);
        code = mull__store_run(store, MULL__SQL_CLAIM, "iii", claim->number, store->owner,
                               claim->token);
    }
    return code;
}

/* note_range: what is ready is claimed up to `last`, and the range that ended at the head grows,
 * where it is ours. */
static int note_range(mull__store *store, mull__queue *queue, int64_t last, size_t count)
{
    int64_t first = queue->head + 1;
    int code =
        mull__store_run(store, MULL__SQL_EXTEND, "iiii", queue->queue, store->owner, first, last);
    if (code == SQLITE_OK && sqlite3_changes(store->db) == 0)
        code = mull__store_run(store, MULL__SQL_RANGE, "iiii", queue->queue, store->owner, first,
                               last);
    queue->head = last;
    queue->ready -= (int64_t)count;
    queue->changed = 1;
    return code;
}

static int claim_waiting(mull__store *store, const wish *of, int64_t now_ms)
{
    int code = SQLITE_OK;
    if (!store->state.poison_candidate) {
        code = read_claims(store, of, MULL__SQL_CLAIM_SUSPECT, 1, now_ms);
        if (of->claims->count)
            store->state.poison_candidate = store->token;
    }
    if (code == SQLITE_OK)
        code = read_claims(store, of, MULL__SQL_CLAIM_DUE, of->wanted - of->claims->count, now_ms);
    return code == SQLITE_OK ? sign(store, of->claims) : code;
}

/* correct: nothing is ready any more, and the count says otherwise: somebody else wrote to it. */
static void correct(mull__store *store, mull__queue *queue)
{
    mull__store_log(store, MULL_WARNING,
                    "queue '%.200s': its count of what is ready was off by %lld", queue->name,
                    (long long)queue->ready);
    queue->ready = 0;
    queue->changed = 1;
}

static int claim_ready(mull__store *store, const wish *of)
{
    size_t before = of->claims->count;
    mull__queue *queue = of->queue;
    int code = read_claims(store, of, MULL__SQL_CLAIM_READY, of->wanted - before, queue->head);
    size_t count = of->claims->count - before;
    if (code == SQLITE_OK && count > 0) {
        const mull__claim *last = MULL__ENTRY(of->claims->head.previous, mull__claim, link);
        code = note_range(store, queue, last->number, count);
    }
    if (code == SQLITE_OK && !is_granted(of) && queue->ready != 0)
        correct(store, queue);
    return code;
}

int mull__store_claim(mull__store *store, mull__list *claims, const char *name, size_t wanted,
                      size_t *room, int64_t now_ms)
{
    wish to_claim = {.claims = claims, .wanted = wanted, .room = room};
    int code = mull__store_queue(store, &to_claim.queue, name, 0);
    if (code != SQLITE_OK || !to_claim.queue)
        return code;
    code = claim_waiting(store, &to_claim, now_ms);
    return code == SQLITE_OK ? claim_ready(store, &to_claim) : code;
}

/* tell_far names those of a queue that aren't due by `now_ms`, all of which are far, where they
 * aren't those that were `*told` of last time: a hash; 0: none. */
static int tell_far(mull__store *store, const char *queue, int64_t now_ms, uint64_t *told)
{
    sqlite3_stmt *read = mull__store_bind(store, MULL__SQL_FAR, "ti", queue, now_ms);
    const char *numbers = NULL;
    if (sqlite3_step(read) == SQLITE_ROW)
        numbers = (const char *)sqlite3_column_text(read, 0);
    int64_t count = sqlite3_column_int64(read, 1);
    uint64_t which = numbers ? mull__hash_text(numbers) + (uint64_t)count : *told;
    if (which != *told)
        mull__store_log(store, MULL_ERROR_LEVEL,
                        "queue '%.200s': %lld message(s) are due in more than 365 days, later than "
                        "any policy can say; they wait until somebody sets their due_ms: number %s",
                        queue, (long long)count, numbers);
    *told = which;
    return sqlite3_reset(read);
}

int mull__store_next_due(mull__store *store, const char *queue, int64_t now_ms, int64_t *due_ms,
                         uint64_t *told)
{
    /* Once the poison candidate that is out is no more, the next claim tells. */
    int64_t no_candidate_is_out = !store->state.poison_candidate;
    *due_ms = INT64_MAX;
    int code = mull__store_ask(due_ms, mull__store_bind(store, MULL__SQL_NEXT_DUE, "tii", queue,
                                                        now_ms, no_candidate_is_out));
    int far = *due_ms != INT64_MAX && *due_ms - now_ms > FAR_MS;
    return code == SQLITE_OK && far ? tell_far(store, queue, now_ms, told) : code;
}
