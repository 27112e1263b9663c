/* store.c: statements and transactions; see store.h. */
#include "store.h"
#include "base/alloc.h"
#include "base/hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const texts[MULL__STATEMENT_COUNT] = {
#define TEXT(name, text) text,
    MULL__STATEMENTS(TEXT)
#undef TEXT
};

int mull__store_prepare(mull__store *store)
{
    for (int i = 0; i < MULL__STATEMENT_COUNT; i++) {
        int code = sqlite3_prepare_v3(store->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &store->statements[i], NULL);
        if (code != SQLITE_OK)
            return code;
    }
    return SQLITE_OK;
}

void mull__store_finalize(mull__store *store)
{
    for (int i = 0; i < MULL__STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
}

int64_t mull__store_now(mull__store *store)
{
    int64_t now = mull_port_now(store->port);
    int64_t ahead = mull_port_wall(store->port) - now;
    int64_t furthest = atomic_load(&store->ahead_ms);
    while (ahead > furthest)
        if (atomic_compare_exchange_weak(&store->ahead_ms, &furthest, ahead))
            return now + ahead;
    return now + furthest;
}

int64_t mull__store_due(mull__store *store, int64_t due_ms)
{
    int64_t left = due_ms - mull_port_wall(store->port);
    int64_t now = mull__store_now(store);
    if (due_ms <= 0 || left <= 0)
        return 0;
    return left > INT64_MAX - now ? INT64_MAX : now + left;
}

/* ---- Statements ------------------------------------------------------------------------------ */

static int bind(sqlite3_stmt *bound, const char *types, va_list values)
{
    int code = SQLITE_OK;
    for (int i = 0; types[i] && code == SQLITE_OK; i++)
        if (types[i] == 'i')
            code = sqlite3_bind_int64(bound, i + 1, va_arg(values, int64_t));
        else
            code = sqlite3_bind_text(bound, i + 1, va_arg(values, const char *), -1, SQLITE_STATIC);
    return code;
}

sqlite3_stmt *mull__store_bind(mull__store *store, mull__statement statement, const char *types,
                               ...)
{
    va_list values;
    va_start(values, types);
    bind(store->statements[statement], types, values); /* of values that are never too large */
    va_end(values);
    return store->statements[statement];
}

int mull__store_run(mull__store *store, mull__statement statement, const char *types, ...)
{
    va_list values;
    va_start(values, types);
    sqlite3_stmt *bound = store->statements[statement];
    int code = bind(bound, types, values);
    va_end(values);
    if (code != SQLITE_OK)
        return code;
    sqlite3_step(bound);
    return sqlite3_reset(bound);
}

int mull__store_ask(int64_t *answer, sqlite3_stmt *bound)
{
    if (sqlite3_step(bound) == SQLITE_ROW && sqlite3_column_type(bound, 0) != SQLITE_NULL)
        *answer = sqlite3_column_int64(bound, 0);
    return sqlite3_reset(bound);
}

int mull__store_end(sqlite3_stmt *bound, int code)
{
    int ended = sqlite3_reset(bound);
    return code != SQLITE_OK ? code : ended;
}

/* ---- Transactions ---------------------------------------------------------------------------- */

int mull__store_number(mull__store *store, int64_t *number)
{
    int code = SQLITE_OK;
    if (!store->state.next)
        code = mull__store_ask(&store->state.next,
                               mull__store_bind(store, MULL__SQL_COUNTER_READ, ""));
    if (code != SQLITE_OK)
        return code;
    *number = store->state.next++;
    store->state.next_used = 1;
    return SQLITE_OK;
}

static size_t *bucket_of(mull__store *store, uint64_t hash)
{
    return &store->buckets[hash & (store->queue_room - 1)];
}

static mull__queue *known_queue(mull__store *store, const char *name, uint64_t hash)
{
    size_t at = store->queue_count ? *bucket_of(store, hash) : 0;
    for (; at; at = store->queues[at - 1].next)
        if (store->queues[at - 1].hash == hash && strcmp(store->queues[at - 1].name, name) == 0)
            return &store->queues[at - 1];
    return NULL;
}

static void forget_queues(mull__store *store)
{
    for (size_t i = 0; i < store->queue_count; i++)
        *bucket_of(store, store->queues[i].hash) = 0;
    store->queue_count = 0;
}

/* read_queue: `queue` stays 0 where there is no row. */
static int read_queue(mull__store *store, mull__queue *queue)
{
    sqlite3_stmt *read = mull__store_bind(store, MULL__SQL_QUEUE, "t", queue->name);
    if (sqlite3_step(read) == SQLITE_ROW) {
        queue->queue = sqlite3_column_int64(read, 0);
        queue->head = sqlite3_column_int64(read, 1);
        queue->ready = sqlite3_column_int64(read, 2);
    }
    return sqlite3_reset(read);
}

static int make_queue(mull__store *store, mull__queue *queue)
{
    int code = mull__store_run(store, MULL__SQL_QUEUE_NEW, "t", queue->name);
    queue->queue = sqlite3_last_insert_rowid(store->db);
    return code;
}

static void put_into_bucket(mull__store *store, size_t at)
{
    size_t *bucket = bucket_of(store, store->queues[at].hash);
    store->queues[at].next = *bucket;
    *bucket = at + 1;
}

static int grow_queues(mull__store *store)
{
    size_t room = store->queue_room ? store->queue_room * 2 : 8;
    mull__queue *queues = mull__grow(&store->allocator, store->queues, room, sizeof *queues);
    if (!queues)
        return SQLITE_NOMEM;
    store->queues = queues;
    size_t *buckets = mull__zalloc(&store->allocator, room, sizeof *buckets);
    if (!buckets)
        return SQLITE_NOMEM;
    mull__free(&store->allocator, store->buckets);
    store->buckets = buckets;
    store->queue_room = room;
    for (size_t i = 0; i < store->queue_count; i++)
        put_into_bucket(store, i);
    return SQLITE_OK;
}

static int add_queue(mull__store *store, const mull__queue *queue)
{
    int code = store->queue_count == store->queue_room ? grow_queues(store) : SQLITE_OK;
    if (code != SQLITE_OK)
        return code;
    store->queues[store->queue_count] = *queue;
    put_into_bucket(store, store->queue_count++);
    return SQLITE_OK;
}

int mull__store_queue(mull__store *store, mull__queue **out, const char *name, int make)
{
    uint64_t hash = mull__hash_text(name);
    *out = known_queue(store, name, hash);
    if (*out)
        return SQLITE_OK;
    mull__queue queue = {.name = name, .hash = hash};
    int code = read_queue(store, &queue);
    if (code == SQLITE_OK && !queue.queue && make)
        code = make_queue(store, &queue);
    if (code != SQLITE_OK || !queue.queue)
        return code;
    code = add_queue(store, &queue);
    if (code == SQLITE_OK)
        *out = &store->queues[store->queue_count - 1];
    return code;
}

int mull__store_begin(mull__store *store)
{
    store->state.next = 0;
    store->state.next_used = 0;
    store->publishes = store->refused = store->ended = 0;
    forget_queues(store);
    store->before = store->state;
    int code = mull__store_run(store, MULL__SQL_BEGIN, "");
    if (code != SQLITE_OK)
        return code;
    mull__lock_transaction_began(store);
    return mull__db_files_check(store);
}

/* write_queue: a count that would be below 0 was changed by somebody else, so it is counted. */
static int write_queue(mull__store *store, mull__queue *queue, int64_t now_ms)
{
    int code = SQLITE_OK;
    if (queue->ready < 0)
        code = mull__store_ask(&queue->ready, mull__store_bind(store, MULL__SQL_QUEUE_COUNT, "ii",
                                                               queue->queue, queue->head));
    if (code == SQLITE_OK && queue->changed)
        code = mull__store_run(store, MULL__SQL_QUEUE_WRITE, "iii", queue->queue, queue->head,
                               queue->ready);
    return code == SQLITE_OK ? mull__store_run(store, MULL__SQL_MARK, "ii", queue->queue, now_ms)
                             : code;
}

/* write_rest writes what is kept in memory until the commit. */
static int write_rest(mull__store *store)
{
    int code = SQLITE_OK;
    int64_t now_ms = mull__store_now(store);
    if (store->state.next_used)
        code = mull__store_run(store, MULL__SQL_COUNTER_WRITE, "i", store->state.next);
    for (size_t i = 0; code == SQLITE_OK && i < store->queue_count; i++)
        code = write_queue(store, &store->queues[i], now_ms);
    if (code == SQLITE_OK && store->ended)
        code = mull__store_run(store, MULL__SQL_RANGES_END, "i", store->owner);
    return code;
}

int mull__store_commit(mull__store *store)
{
    int code = write_rest(store);
    if (code != SQLITE_OK)
        return code;
    store->refused = store->publishes && !mull__wal_has_room(store);
    if (store->refused)
        return SQLITE_FULL;
    code = mull__store_run(store, MULL__SQL_COMMIT, "");
    return code == SQLITE_OK ? mull__db_files_confirm(store) : code;
}

void mull__store_rollback(mull__store *store)
{
    store->state = store->before;
    /* Some errors end the transaction by themselves. */
    if (!sqlite3_get_autocommit(store->db))
        mull__store_run(store, MULL__SQL_ROLLBACK, "");
}

void mull__store_log(mull__store *store, mull_level level, const char *format, ...)
{
    char line[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    mull_port_log(store->port, level, line);
}
