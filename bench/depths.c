/* depths.c: what an engine on sqlite:FILE does beside millions of messages:
 *
 *   pending        how soon it starts, what a message costs, how large it is, what a depth takes
 *   large          how large it is with bodies of 10 MB
 *   dead letters   how long the page's statement groups them
 *   delayed        what it costs to wait for them, and how late they are
 *
 * Each engine is in a process of its own. bench/README.md has the command.
 */
#include "kit/measure.h"
#include "mulligan.h"

#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FEW = 1000, ROUNDS = 5, CALLS = 100000, ASKED = 101 };
enum { DUE_A_SECOND = 2000, DUE_SECONDS = 60, QUIET_SECONDS = 10 };
enum { DUE = DUE_A_SECOND * DUE_SECONDS };
enum { LARGE = 20, LARGE_BYTES = 10000000 };

static char path[4096], few_path[4096];
static int missed;

/* tell prints a figure and its limit. */
static void tell(const char *what, double value, const char *unit, double limit)
{
    int good = value < limit;
    printf("%-52s %9.2f %s (under %g)%s\n", what, value, unit, limit, good ? "" : "  MISSED");
    fflush(stdout);
    missed |= !good;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench/depths: %s: %s\n", what, why);
    exit(2);
}

static double now_ms(void)
{
    return bench_clock_ns(CLOCK_MONOTONIC) / 1e6;
}

static double cpu_ms(void)
{
    return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

/* ---- An engine in a process of its own ------------------------------------------------------- */

/* run is what one engine did; shared with its process. Times are in milliseconds. */
typedef struct run {
    int wanted; /* calls; each sends its message on, so that as many wait as before */
    int calls, asked;
    double begin, cpu_begin, first, cpu_first, last, cpu_last, asked_at;
    double rss_mb, most_rss_mb;
    double depths[ASKED], late[DUE];
} run;

static run *now;

static mull_engine *set_up(void)
{
    char url[sizeof path + 8];
    mull_policy *policy;
    mull_engine *engine;
    mull_policy_options policy_options = MULL_INIT(mull_policy_options);
    policy_options.text = "";
    mull_engine_options options = MULL_INIT(mull_engine_options);
    snprintf(url, sizeof url, "sqlite:%s", path);
    if (mull_policy_load(&policy, &policy_options) != 0)
        die("policy", "doesn't load");
    options.policy = policy;
    if (mull_engine_new(&engine, &options) != 0 || mull_engine_transport(engine, "t", url) != 0)
        die("engine", "can't be set up");
    return engine;
}

static void consume(mull_engine *engine, const char *queue, mull_handler handler)
{
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "Job";
    consumer.transport = "t";
    consumer.queue = queue;
    consumer.handler = handler;
    consumer.concurrency = 64;
    if (mull_consumer_add(engine, &consumer) != 0)
        die("consumer", "can't be added");
}

/* in_process runs `what` in a process of its own, which begins when it does. */
static run *in_process(void (*what)(mull_engine *engine), int wanted)
{
    int status;
    memset(now, 0, sizeof *now);
    now->wanted = wanted;
    pid_t child = fork();
    if (child == 0) {
        now->begin = now_ms();
        now->cpu_begin = cpu_ms();
        mull_engine *engine = set_up();
        what(engine);
        if (mull_engine_run(engine) != 0)
            die("engine", "doesn't run");
        now->rss_mb = bench_rss_mb();
        now->most_rss_mb = bench_most_rss_mb();
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        die("engine", "failed");
    return now;
}

/* count_call notes when it is. */
static void count_call(mull_engine *engine)
{
    now->last = now_ms();
    now->cpu_last = cpu_ms();
    if (now->calls++ == 0) {
        now->first = now->last;
        now->cpu_first = now->cpu_last;
    }
    if (now->calls == now->wanted)
        mull_stop(engine);
}

static void send_on(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)data;
    count_call(engine);
    mull_message copy = MULL_INIT(mull_message);
    copy.queue = "jobs";
    copy.body = message->body;
    copy.body_size = message->body_size;
    if (mull_send(engine, call, &copy, 0) != 0)
        die("message", "can't be sent on");
    mull_done(engine, call, NULL);
}

static void work(mull_engine *engine)
{
    consume(engine, "jobs", send_on);
}

static void ask(mull_engine *engine);

static void on_depth(int status, const mull_depth *depth, void *data)
{
    (void)depth;
    if (status != 0)
        die("depth", "can't be told");
    now->depths[now->asked++] = now_ms() - now->asked_at;
    if (now->asked < ASKED)
        ask(data);
    else
        mull_stop(data);
}

static void ask(mull_engine *engine)
{
    now->asked_at = now_ms();
    if (mull_queue_depth(engine, "t", "jobs", on_depth, engine) != 0)
        die("depth", "can't be asked for");
}

/* ---- The file -------------------------------------------------------------------------------- */

static void remove_file(const char *name)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char file[sizeof path + 8];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(file, sizeof file, "%s%s", name, ends[i]);
        unlink(file);
    }
}

__attribute__((format(printf, 2, 3))) static void sql(sqlite3 *db, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *text = sqlite3_vmprintf(format, values);
    va_end(values);
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        die(text, sqlite3_errmsg(db));
    sqlite3_free(text);
}

static sqlite3 *look_in(void)
{
    sqlite3 *db;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die(path, sqlite3_errmsg(db));
    return db;
}

/* begin_file makes the file anew, with an engine, and opens it to be filled. */
static sqlite3 *begin_file(void)
{
    remove_file(path);
    in_process(mull_stop, 0);
    sqlite3 *db = look_in();
    sql(db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;"
            "BEGIN; INSERT INTO queues (name) VALUES ('jobs')");
    return db;
}

static void end_file(sqlite3 *db, int rows)
{
    sql(db, "UPDATE counter SET next = %d; COMMIT", rows + 1);
    sqlite3_close(db);
}

#define NUMBERS "WITH RECURSIVE n (i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)"

static void fill_pending(int rows)
{
    sqlite3 *db = begin_file();
    sql(db,
        NUMBERS " INSERT INTO ready (queue, number, published_ms, body)"
                " SELECT 1, i, 1, zeroblob(100) FROM n",
        1, rows);
    sql(db, "UPDATE queues SET ready = %d", rows);
    end_file(db, rows);
}

static void fill_large(void)
{
    sqlite3 *db = begin_file();
    sql(db,
        NUMBERS " INSERT INTO ready (queue, number, published_ms, large)"
                " SELECT 1, i, 1, i FROM n",
        1, LARGE);
    sql(db, NUMBERS " INSERT INTO bodies SELECT i, zeroblob(%d) FROM n", 1, LARGE, LARGE_BYTES);
    sql(db, "UPDATE queues SET ready = %d", LARGE);
    end_file(db, LARGE);
}

static void fill_dead(int rows)
{
    sqlite3 *db = begin_file();
    sql(db,
        NUMBERS " INSERT INTO waiting (number, queue, due_ms, published_ms, body, dead_ms,"
                " dead_from, consumer, error_type, reason, rule) SELECT i, 1, 0, 1, zeroblob(100),"
                " i, 'q' || (i %% 3), 'C' || (i %% 5), 'Error' || (i * 7919 %% 11), 'exhausted',"
                " 'policy.lua:' || (i * 7 %% 13) FROM n",
        1, rows);
    end_file(db, rows);
}

/* fill_delayed puts off most for hours, and then some for soon. Each says when it is due. */
static void fill_delayed(int rows)
{
    static const char insert[] =
        NUMBERS " INSERT INTO waiting (number, queue, due_ms, published_ms, body)"
                " SELECT i, 1, due, 1, CAST(CAST(due AS TEXT) AS BLOB)"
                " FROM (SELECT i, unixepoch() * 1000 + %d + (i - %d) * 1000 / %d AS due FROM n)";
    sqlite3 *db = begin_file();
    sql(db, insert, DUE + 1, rows, 4 * 3600 * 1000, 0, 100);
    sql(db, insert, 1, DUE, QUIET_SECONDS * 1000, 1, DUE_A_SECOND);
    end_file(db, rows);
}

/* ---- Pending --------------------------------------------------------------------------------- */

typedef struct costs {
    double start, cpu, wall, rss;
} costs;

static costs cost_of(const char *name)
{
    snprintf(path, sizeof path, "%s", name);
    const run *r = in_process(work, CALLS);
    double calls = r->calls - 1;
    return (costs){r->first - r->begin, (r->cpu_last - r->cpu_first) / calls * 1e3,
                   (r->last - r->first) / calls * 1e3, r->rss_mb};
}

static double depth_ms(void)
{
    return bench_median(in_process(ask, 0)->depths, ASKED);
}

static double pending(const char *name, int rows)
{
    double start[ROUNDS], cpu[ROUNDS], wall[ROUNDS], rss[ROUNDS];
    snprintf(path, sizeof path, "%s", few_path);
    fill_pending(0);
    double empty = in_process(mull_stop, 0)->rss_mb;
    fill_pending(FEW);
    snprintf(path, sizeof path, "%s", name);
    fill_pending(rows);
    printf("%d pending, beside %d:\n", rows, FEW);
    for (int i = 0; i < ROUNDS; i++) {
        costs few = cost_of(few_path), many = cost_of(name);
        start[i] = many.start;
        cpu[i] = many.cpu / few.cpu;
        wall[i] = many.wall / few.wall;
        rss[i] = many.rss;
        printf("  a message %.1f us of CPU, %.1f us in all, beside %.1f and %.1f\n", many.cpu,
               many.wall, few.cpu, few.wall);
    }
    tell("  from the start to the first message", bench_median(start, ROUNDS), "ms", 50);
    tell("  a message's CPU time, times that of few", bench_median(cpu, ROUNDS), "", 1.3);
    tell("  a message's time, times that of few", bench_median(wall, ROUNDS), "", 1.3);
    tell("  RSS, beyond that of an empty file's", bench_median(rss, ROUNDS) - empty, "MB", 10);
    tell("  a depth", depth_ms(), "ms", 5);
    remove_file(few_path);
    return empty;
}

/* ---- Large bodies ---------------------------------------------------------------------------- */

static void end_at_once(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    (void)message, (void)data;
    count_call(engine);
    mull_done(engine, call, NULL);
}

static void consume_large(mull_engine *engine)
{
    consume(engine, "jobs", end_at_once);
}

/* large: up to 64 MiB of bodies and one, and one that SQLite has as well while it is read. */
static void large(double empty)
{
    fill_large();
    const run *r = in_process(consume_large, LARGE);
    printf("%d bodies of %d MB:\n", LARGE, LARGE_BYTES / 1000000);
    tell("  RSS at most, beyond that of an empty file's", r->most_rss_mb - empty, "MB", 120);
    printf("  (%.0f ms of CPU, %.0f ms in all)\n", r->cpu_last - r->cpu_begin, r->last - r->begin);
}

/* ---- Dead letters ---------------------------------------------------------------------------- */

static int count_row(void *rows, int columns, char **values, char **names)
{
    (void)columns, (void)values, (void)names;
    ++*(int *)rows;
    return 0;
}

static void dead(int rows)
{
    double took[ROUNDS];
    int groups = 0;
    fill_dead(rows);
    for (int i = 0; i < ROUNDS; i++) {
        sqlite3 *db = look_in();
        double begin = now_ms();
        groups = 0;
        if (sqlite3_exec(db,
                         "SELECT dead_from, consumer, error_type, reason, rule, count(*)"
                         " FROM dead_letters GROUP BY 1, 2, 3, 4, 5 ORDER BY count(*) DESC",
                         count_row, &groups, NULL) != SQLITE_OK)
            die("dead letters", sqlite3_errmsg(db));
        took[i] = now_ms() - begin;
        sqlite3_close(db);
    }
    printf("%d dead letters, %d groups:\n", rows, groups);
    tell("  to group them", bench_median(took, ROUNDS) / 1000, "s", 2);
}

/* ---- Delayed --------------------------------------------------------------------------------- */

static void take(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)data;
    char due[32] = "";
    memcpy(due, message->body, message->body_size < 31 ? message->body_size : 31);
    now->late[now->calls] = bench_clock_ns(CLOCK_REALTIME) / 1e6 - strtod(due, NULL);
    count_call(engine);
    mull_done(engine, call, NULL);
}

static void wait_and_take(mull_engine *engine)
{
    consume(engine, "jobs", take);
}

static void delayed(int rows)
{
    fill_delayed(rows);
    printf("%d delayed, %d of them by %d a second:\n", rows, DUE, DUE_A_SECOND);
    tell("  a depth", depth_ms(), "ms", 5);
    run *r = in_process(wait_and_take, DUE);
    if (r->first - r->begin < 3000)
        die("delayed", "the first one was due before it could be waited for");
    tell("  waiting takes of a core", (r->cpu_first - r->cpu_begin) / (r->first - r->begin) * 100,
         "%", 1);
    bench_sort(r->late, DUE);
    tell("  late, median", r->late[DUE / 2], "ms", 10);
    tell("  late, 99th of 100", r->late[DUE / 100 * 99], "ms", 50);
    printf("  (the latest %.0f ms)\n", r->late[DUE - 1]);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "depths.db";
    int rows = argc > 2 ? atoi(argv[2]) : 5000000;
    now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (now == MAP_FAILED || rows / 5 < 2 * DUE || strlen(name) > sizeof path - 16)
        die("usage", "depths [FILE] [PENDING, at least 1200000]");
    snprintf(few_path, sizeof few_path, "%s-few", name);
    double empty = pending(name, rows);
    large(empty);
    dead(rows / 5);
    delayed(rows / 5);
    remove_file(name);
    return missed;
}
