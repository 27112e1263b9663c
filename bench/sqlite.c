/* sqlite.c: messages per second through an engine with a C handler that succeeds at once, beside a
 * plain loop over the same schema with SQLite's own C API:
 *
 *   engine   claim, policy, handler, acknowledge, on one durable file
 *   plain    claims a group and deletes the group before in one commit, and does nothing else
 *
 * The plain loop groups its commits by the size that the engine reached, so that both wait for the
 * disk equally often. bench/README.md has the command.
 */
#include "../src/transport/sqlite/schema.h"
#include "kit/measure.h"
#include "mulligan.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BODY_SIZE = 256, HEADERS_MAX = 100, ROUNDS = 5, QUEUE = 1, OWNER = 1 };

#define MULL__STATEMENT_ENUM(name, text) SQL_##name,
enum { MULL__STATEMENTS(MULL__STATEMENT_ENUM) SQL_COUNT };
#define TEXT(name, text) text,
static const char *const texts[] = {MULL__STATEMENTS(TEXT)};

static const char *path;
static int messages;
static char headers[HEADERS_MAX * 64] = "{}"; /* of each message */

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench/sqlite: %s: %s\n", what, why);
    exit(2);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- The file: the same for both ------------------------------------------------------------- */

typedef struct plain {
    sqlite3 *db;
    sqlite3_stmt *statements[SQL_COUNT];
} plain;

static void exec(plain *f, const char *sql)
{
    if (sqlite3_exec(f->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(f->db));
}

static void run(plain *f, int statement)
{
    sqlite3_step(f->statements[statement]);
    if (sqlite3_reset(f->statements[statement]) != SQLITE_OK)
        die(texts[statement], sqlite3_errmsg(f->db));
}

static void remove_file(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char name[4096];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

static void open_file(plain *f)
{
    if (sqlite3_open(path, &f->db) != SQLITE_OK)
        die(path, sqlite3_errmsg(f->db));
    exec(f, "PRAGMA journal_mode = WAL");
    exec(f, MULL__SCHEMA_CONNECTION);
}

static void prepare(plain *f)
{
    for (int i = 0; i < SQL_COUNT; i++)
        if (sqlite3_prepare_v2(f->db, texts[i], -1, &f->statements[i], NULL) != SQLITE_OK)
            die(texts[i], sqlite3_errmsg(f->db));
}

static void close_file(plain *f)
{
    for (int i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(f->statements[i]);
    sqlite3_close(f->db);
}

static void insert(plain *f, int number, const char *body)
{
    char id[16];
    snprintf(id, sizeof id, "m-%d", number);
    sqlite3_stmt *row = f->statements[SQL_READY];
    sqlite3_bind_int(row, 1, QUEUE);
    sqlite3_bind_int(row, 2, number);
    sqlite3_bind_text(row, 3, id, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 6, headers, -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 7, (sqlite3_int64)time(NULL) * 1000);
    sqlite3_bind_blob(row, MULL__AT_BODY, body, BODY_SIZE, SQLITE_STATIC);
    run(f, SQL_READY);
}

static void write_queue(plain *f, int head, int ready)
{
    sqlite3_bind_int(f->statements[SQL_QUEUE_WRITE], 1, QUEUE);
    sqlite3_bind_int(f->statements[SQL_QUEUE_WRITE], 2, head);
    sqlite3_bind_int(f->statements[SQL_QUEUE_WRITE], 3, ready);
    run(f, SQL_QUEUE_WRITE);
}

/* fill makes the file anew, with all messages in it, and all of it checkpointed. */
static void fill(void)
{
    plain f = {0};
    char body[BODY_SIZE], pragmas[128];
    memset(body, 'x', sizeof body);
    remove_file();
    open_file(&f);
    static const char *const schema[] = {MULL__SCHEMA};
    for (size_t i = 0; i < sizeof schema / sizeof *schema; i++)
        exec(&f, schema[i]);
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             MULL__SCHEMA_APPLICATION, MULL__SCHEMA_VERSION);
    exec(&f, pragmas);
    prepare(&f);
    exec(&f, "BEGIN; INSERT INTO counter (next) VALUES (1);"
             "INSERT INTO queues (queue, name) VALUES (1, 'orders')");
    for (int number = 1; number <= messages; number++)
        insert(&f, number, body);
    sqlite3_bind_int(f.statements[SQL_COUNTER_WRITE], 1, messages + 1);
    run(&f, SQL_COUNTER_WRITE);
    write_queue(&f, 0, messages);
    exec(&f, "COMMIT");
    close_file(&f);
}

/* ---- The plain loop -------------------------------------------------------------------------- */

static int64_t bytes_seen;

/* Numbers are in order, and nobody else claims: a group is those from `done` on. */
static int claim_group(plain *f, int group, int done)
{
    sqlite3_stmt *read = f->statements[SQL_CLAIM_READY];
    sqlite3_bind_int(read, 1, QUEUE);
    sqlite3_bind_int(read, 2, group);
    sqlite3_bind_int(read, 3, done);
    int count = 0;
    while (sqlite3_step(read) == SQLITE_ROW) {
        count++;
        sqlite3_column_text(read, 2);
        sqlite3_column_text(read, 5);
        sqlite3_column_blob(read, 7);
        bytes_seen += sqlite3_column_bytes(read, 7);
    }
    sqlite3_reset(read);
    if (count == 0)
        return 0;
    sqlite3_bind_int(f->statements[SQL_RANGE], 1, QUEUE);
    sqlite3_bind_int(f->statements[SQL_RANGE], 2, OWNER);
    sqlite3_bind_int(f->statements[SQL_RANGE], 3, done + 1);
    sqlite3_bind_int(f->statements[SQL_RANGE], 4, done + count);
    run(f, SQL_RANGE);
    write_queue(f, done + count, messages - done - count);
    return count;
}

static void delete_group(plain *f, int count, int done)
{
    for (int i = 0; i < count; i++) {
        sqlite3_bind_int(f->statements[SQL_END_READY], 1, QUEUE);
        sqlite3_bind_int(f->statements[SQL_END_READY], 2, done + i + 1);
        run(f, SQL_END_READY);
        if (sqlite3_changes(f->db) != 1)
            die("plain loop", "a claim was gone");
    }
    sqlite3_bind_int(f->statements[SQL_RANGES_END], 1, OWNER);
    run(f, SQL_RANGES_END);
}

static double run_plain(int group)
{
    plain f = {0};
    fill();
    open_file(&f);
    exec(&f, "INSERT INTO owners VALUES (1, 1, 1)");
    prepare(&f);
    int count = 0, done = 0;
    double start = now();
    while (done < messages) {
        run(&f, SQL_BEGIN);
        delete_group(&f, count, done);
        done += count;
        count = claim_group(&f, group, done);
        run(&f, SQL_COMMIT);
    }
    double seconds = now() - start;
    close_file(&f);
    return messages / seconds;
}

/* ---- The engine ------------------------------------------------------------------------------ */

typedef struct engine_run {
    int done;
    double end;
    unsigned long long commits;
} engine_run;

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)data;
    bytes_seen += (int64_t)message->body_size;
    mull_done(engine, call, NULL);
}

static void on_log(mull_level level, const char *text, void *data)
{
    engine_run *r = data;
    if (level >= MULL_WARNING)
        fprintf(stderr, "%s\n", text);
    bench_count_before(text, " transactions", &r->commits);
}

static void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)file, (void)line, (void)data;
    fprintf(stderr, "%s\n", text);
}

static void on_stopped(void *data)
{
    ((engine_run *)data)->end = now();
}

static double run_engine(uint32_t concurrency, double *group)
{
    engine_run r = {0};
    char url[4096];
    fill();
    mull_policy_options policy_options = MULL_INIT(mull_policy_options);
    policy_options.text = "require('mulligan.policy').bus():default():retry(3)";
    mull_policy *policy;
    if (mull_policy_load(&policy, &policy_options) != 0)
        die("policy", "doesn't load");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.log = on_log;
    options.problem = on_problem;
    options.stopped = on_stopped;
    options.data = &r;
    mull_engine *engine;
    snprintf(url, sizeof url, "sqlite:%s", path);
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "Orders";
    consumer.transport = "orders";
    consumer.queue = "orders";
    consumer.handler = handle;
    consumer.concurrency = concurrency;
    if (mull_engine_new(&engine, &options) != 0 ||
        mull_engine_transport(engine, "orders", url) != 0 ||
        mull_consumer_add(engine, &consumer) != 0)
        die("engine", "can't be set up");
    double start = now();
    if (mull_engine_start(engine) != 0 || mull_stop_when_empty(engine) != 0 ||
        mull_engine_run(engine) != 0)
        die("engine", "doesn't run");
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(engine, &counts);
    if (counts.done != (uint64_t)messages)
        die("engine", "messages are missing");
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(policy);
    *group = r.commits ? (double)messages / (double)r.commits : 1;
    return messages / (r.end - start);
}

/* ---- Both, in turns -------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

static double compare(uint32_t concurrency)
{
    double engine[ROUNDS], loop[ROUNDS], ratio[ROUNDS], group = 1;
    for (int round = 0; round < ROUNDS; round++) {
        engine[round] = run_engine(concurrency, &group);
        loop[round] = run_plain(group < 1 ? 1 : (int)(group + 0.5));
        ratio[round] = engine[round] / loop[round];
    }
    double middle = median(ratio);
    printf("%11u %10.1f %14.0f %14.0f %8.2f\n", concurrency, group, median(engine), median(loop),
           middle);
    fflush(stdout);
    return middle;
}

static void write_headers(int count)
{
    size_t end = 0;
    for (int i = 0; i < count; i++)
        end += (size_t)snprintf(headers + end, sizeof headers - end,
                                "%s\"header-%02d\":\"01J9ZQ4T7X8M2V5K3B6N0C1D%02d\"", i ? "," : "{",
                                i, i);
    if (count > 0)
        snprintf(headers + end, sizeof headers - end, "}");
}

int main(int argc, char **argv)
{
    static const uint32_t concurrencies[] = {16, 64, 256};
    path = argc > 1 ? argv[1] : "bench.db";
    messages = argc > 2 ? atoi(argv[2]) : 50000;
    int header_count = argc > 3 ? atoi(argv[3]) : 0;
    if (messages < 1 || header_count < 0 || header_count > HEADERS_MAX)
        die("usage", "sqlite [FILE] [MESSAGES] [HEADERS]");
    write_headers(header_count);
    int low = 0;
    printf("%11s %10s %14s %14s %8s\n", "concurrency", "per commit", "engine, msg/s",
           "plain, msg/s", "ratio");
    for (size_t i = 0; i < sizeof concurrencies / sizeof concurrencies[0]; i++)
        low |= compare(concurrencies[i]) < 0.5;
    remove_file();
    return low;
}
