/* sqlite_engine.h: what the C tests of sqlite:FILE share: a file for each test, a connection of its
 * own that looks into it, and an engine on the file by the real clocks. */
#ifndef SQLITE_ENGINE_H
#define SQLITE_ENGINE_H

#include "test_engine.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- A folder for each test ------------------------------------------------------------------ */

static char folder[64], path[80], url[96];

/* in_folder makes it the folder that `path` and `url` are in. */
static inline void in_folder(const char *name)
{
    snprintf(folder, sizeof folder, "%.63s", name);
    snprintf(path, sizeof path, "%.63s/a.db", folder);
    snprintf(url, sizeof url, "sqlite:%s", path);
}

static inline int set_up(void **state)
{
    (void)state;
    char name[] = "/tmp/mulligan-XXXXXX";
    if (!mkdtemp(name))
        return -1;
    in_folder(name);
    alarm(60); /* a watchdog */
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    static const char *const ends[] = {"",         "-wal",  "-shm",     "-lock",
                                       "-journal", "-kept", "-kept-wal"};
    char name[96];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        remove(name);
    }
    alarm(0);
    return remove(folder);
}

/* ---- Looking into the file ------------------------------------------------------------------- */

static inline sqlite3 *look_in(void)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    return db;
}

static inline void sql(sqlite3 *db, const char *text)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
}

/* ask gives the first column of the first row, as text; "" where there is none. */
static const char *ask(sqlite3 *db, const char *text)
{
    static char answer[256];
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, text, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    const unsigned char *value =
        sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
    snprintf(answer, sizeof answer, "%s", value ? (const char *)value : "");
    sqlite3_finalize(statement);
    return answer;
}

static inline int count(sqlite3 *db, const char *condition)
{
    char text[160];
    snprintf(text, sizeof text, "SELECT count(*) FROM messages WHERE %s", condition);
    return atoi(ask(db, text));
}

/* put_row puts a message into the queue "q", as a publish would. */
static inline void put_row(sqlite3 *db, const char *id)
{
    char text[512];
    snprintf(text, sizeof text,
             "INSERT OR IGNORE INTO queues (name) VALUES ('q');"
             "INSERT INTO ready (queue, number, id, published_ms, body)"
             " SELECT queue, next, '%s', 1, x'' FROM queues, counter WHERE name = 'q';"
             "UPDATE queues SET ready = ready + 1 WHERE name = 'q';"
             "UPDATE counter SET next = next + 1",
             id);
    sql(db, text);
}

/* check_shape holds a file against docs/decisions/0021-schema-2.md: each of these finds nothing. */
static inline void check_shape(sqlite3 *db)
{
    static const char *const broken[] = {
        "queues AS q WHERE ready <>"
        " (SELECT count(*) FROM ready AS r WHERE r.queue = q.queue AND number > head)",
        "queues AS q WHERE due <> (SELECT count(*) FROM waiting AS w WHERE w.queue = q.queue"
        " AND owner IS NULL AND due_ms <= mark_ms)",
        "queues AS q WHERE delayed <> (SELECT count(*) FROM waiting AS w WHERE w.queue = q.queue"
        " AND owner IS NULL AND due_ms > mark_ms)",
        "ranges AS a JOIN ranges AS b ON a.queue = b.queue AND a.first < b.first"
        " AND a.last >= b.first",
        "ranges JOIN queues USING (queue) WHERE last > head",
        "ready AS r JOIN queues USING (queue) WHERE number <= head AND NOT EXISTS"
        " (SELECT 1 FROM ranges AS g WHERE g.queue = r.queue AND number BETWEEN first AND last)",
        "(SELECT owner FROM ranges UNION SELECT owner FROM waiting) WHERE owner IS NOT NULL"
        " AND owner NOT IN (SELECT owner FROM owners)",
        "(SELECT large FROM ready UNION ALL SELECT large FROM waiting) AS m"
        " LEFT JOIN bodies ON body = large WHERE large IS NOT NULL AND body IS NULL",
        "bodies WHERE 1 <> (SELECT count(*) FROM (SELECT large FROM ready UNION ALL"
        " SELECT large FROM waiting) WHERE large = bodies.body)",
        "messages, counter WHERE number >= next",
        "(SELECT number FROM messages GROUP BY number HAVING count(*) > 1)",
    };
    char text[512];
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        snprintf(text, sizeof text, "SELECT count(*) FROM %s", broken[i]);
        if (atoi(ask(db, text)) != 0)
            fail_msg("%s: %s", ask(db, text), text);
    }
}

/* check_ranges: each has a message, where nobody has taken any away. */
static inline void check_ranges(sqlite3 *db)
{
    assert_string_equal(ask(db, "SELECT count(*) FROM ranges AS g WHERE NOT EXISTS (SELECT 1 FROM"
                                " ready AS r WHERE r.queue = g.queue AND number BETWEEN first"
                                " AND last)"),
                        "0");
}

/* assert_refused: the file doesn't admit it. */
static inline void assert_refused(sqlite3 *db, const char *text, const char *why)
{
    if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_CONSTRAINT)
        fail_msg("%s: is admitted", text);
    if (!strstr(sqlite3_errmsg(db), why))
        fail_msg("%s: %s, not %s", text, sqlite3_errmsg(db), why);
}

/* ---- An engine on the file, by the real clocks ----------------------------------------------- */

/* live is an engine that runs, what its handler does, and what came of it. */
typedef struct live {
    mull_policy *policy;
    mull_engine *engine;
    sqlite3 *db;
    int seen, wanted; /* after so many messages it stops */
    int published, refused;
    int most_suspects;
    mull_call held; /* until the next publish is answered */
    int64_t deliveries[64];
    char last_id[64];
    size_t last_headers;
    atomic_int down, up, broken, warnings; /* lines of log */
    int stopped;
    char log[4096];
} live;

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards `log` of all */

static inline void on_log(mull_level level, const char *text, void *data)
{
    live *l = data;
    l->warnings += level == MULL_WARNING;
    l->down += strstr(text, "is down") != NULL;
    l->up += strstr(text, "is up") != NULL;
    l->broken += strstr(text, "is broken") != NULL;
    pthread_mutex_lock(&log_mutex);
    size_t length = strlen(l->log);
    snprintf(l->log + length, sizeof l->log - length, "%s\n", text);
    pthread_mutex_unlock(&log_mutex);
}

static inline void assert_logged(live *l, const char *words)
{
    pthread_mutex_lock(&log_mutex);
    int there = strstr(l->log, words) != NULL;
    pthread_mutex_unlock(&log_mutex);
    if (!there)
        fail_msg("no '%s' in: %s", words, l->log);
}

static inline void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)file, (void)line;
    on_log(MULL_ERROR_LEVEL, text, data);
}

static inline void new_engine(live *l)
{
    l->policy = test_engine_policy("local bus = require('mulligan.policy').bus()\n"
                                   "bus:on('Bad'):dead_letter()\n"
                                   "bus:default():redeliver(20, 0)\n");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->policy;
    options.log = on_log;
    options.problem = on_problem;
    options.data = l;
    options.grace_ms = 1;
    assert_int_equal(mull_engine_new(&l->engine, &options), 0);
}

static inline void open_live(live *l, mull_handler handler, uint32_t concurrency)
{
    *l = (live){0};
    new_engine(l);
    assert_int_equal(mull_engine_transport(l->engine, "t", url), 0);
    l->db = look_in();
    if (!handler)
        return;
    mull_consumer_options consumer = test_engine_consumer(handler, l);
    consumer.concurrency = concurrency;
    assert_int_equal(mull_consumer_add(l->engine, &consumer), 0);
}

static inline void run_live(live *l)
{
    assert_int_equal(mull_engine_run(l->engine), 0);
}

static inline void close_live(live *l)
{
    mull_engine_close(l->engine, NULL, NULL);
    mull_policy_free(l->policy);
    sqlite3_close(l->db);
}

static inline void note_poison_candidates(live *l)
{
    int poison_candidates = count(l->db, "owner IS NOT NULL AND deliveries > 1");
    if (poison_candidates > l->most_suspects)
        l->most_suspects = poison_candidates;
}

static inline void on_published(int status, void *data)
{
    live *l = data;
    if (status == 0)
        l->published++;
    else
        l->refused++;
    if (!l->held)
        return;
    note_poison_candidates(l);
    mull_done(l->engine, l->held, NULL);
    l->held = 0;
}

static inline void publish(live *l, const char *id, const char *body)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = id;
    message.body = body;
    message.body_size = strlen(body);
    assert_int_equal(mull_publish(l->engine, "t", &message, 0, on_published, l), 0);
}

static inline void note_message(live *l, const mull_message *message)
{
    note_poison_candidates(l);
    if (l->seen < 64)
        l->deliveries[l->seen] = message->deliveries;
    l->seen++;
    snprintf(l->last_id, sizeof l->last_id, "%s", message->id);
    l->last_headers = message->header_count;
    if (l->seen == l->wanted)
        mull_stop(l->engine);
}

static inline void succeed(mull_engine *engine, mull_call call, const mull_message *message,
                           void *data)
{
    note_message(data, message);
    mull_done(engine, call, NULL);
}

static inline void put_five(void)
{
    live l;
    open_live(&l, NULL, 0);
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    for (int i = 0; i < 5; i++)
        publish(&l, ids[i], "body");
    mull_stop(l.engine);
    run_live(&l);
    close_live(&l); /* carries out what was taken */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
