/* ledger.h: messages of every fate go through an engine on sqlite:FILE, a ledger keeps what was
 * told of them, and whatever then happened to the file, it is held against the ledger:
 *
 *   life on a file ── crash, cut, copy ──> what is in the file (found) == the ledger?
 *                                          a new engine brings all of it to its end, once
 *
 * Message m<i> goes to the queue "q"; if it succeeds it sends s<i> to "next", whose handler only
 * takes it. The ledger may be read on another thread or in another process. */
#ifndef SPEC_LEDGER_H
#define SPEC_LEDGER_H

#include "sqlite_engine.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <uv.h>

enum { LEDGER_MAX = 96, BODY_MAX = 9000 };

/* What becomes of a message, by its number. */
typedef enum fate {
    SUCCEEDS,
    SUCCEEDS_LATER, /* it is published with a delay */
    RETRIED,        /* once, and then succeeds */
    REDELIVERED,    /* once, and then succeeds */
    DIES,           /* a dead letter */
    STALE,          /* discarded */
    FATES
} fate;

static inline fate fate_of(int i)
{
    return (fate)(i % FATES);
}

static inline int sends(int i)
{
    return fate_of(i) != DIES && fate_of(i) != STALE;
}

/* What the ledger says of a message: facts that somebody was told of. */
enum {
    TOLD_SAFE = 1,    /* its publish was answered well */
    TOLD_REFUSED = 2, /* ... or not */
    CALLED = 4,
    TOLD_REDELIVERED = 8,
    TOLD_DEAD = 16,
    TOLD_DISCARDED = 32,
    SENT = 64 /* what it sent was handed out */
};

typedef struct ledger {
    atomic_uchar told[LEDGER_MAX];
    atomic_int done; /* acknowledged, by mull_engine_counts */
} ledger;

static inline void ledger_copy(ledger *to, ledger *from)
{
    atomic_store(&to->done, atomic_load(&from->done));
    for (int i = 0; i < LEDGER_MAX; i++)
        atomic_store(&to->told[i], atomic_load(&from->told[i]));
}

/* ---- A life ---------------------------------------------------------------------------------- */

typedef struct life {
    uv_loop_t loop;
    mull_policy *policy; /* borrowed */
    mull_engine *engine;
    ledger *ledger;
    int count; /* of messages to publish */
    int holds; /* the last one's handler works until the engine stops */
    int next;  /* to be published */
    int answered, safe;
    int ends; /* to come: of each message that is safe, and of what it sends */
    mull_call held;
    int handed[LEDGER_MAX];          /* how often s<i> was */
    int new_calls;                   /* first ones, of hand-outs of m<i> */
    void (*turn)(struct life *life); /* now and then, on the loop's thread; NULL */
    int down, up;
    int unsettled;  /* a settle of m<i> failed ... */
    int late_calls; /* ... and another was called for the first time */
    int stopping, stopped, closed;
    char log[4096];
} life;

static mull_policy *ledger_policy(void)
{
    return test_engine_policy("local bus = require('mulligan.policy').bus()\n"
                              "bus:on('Passing'):retry(3, '1ms')\n"
                              "bus:on('Later'):redeliver(3, '1ms')\n"
                              "bus:on('Bad'):dead_letter()\n"
                              "bus:on('Stale'):discard()\n");
}

static inline int number_of(const char *id)
{
    int i = atoi(id + 1);
    assert_in_range(i, 0, LEDGER_MAX - 1);
    return i;
}

/* note adds to the ledger, and brings its count up to date. */
static inline void note(life *l, int i, int fact)
{
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(l->engine, &counts);
    atomic_store(&l->ledger->done, (int)counts.done);
    atomic_fetch_or(&l->ledger->told[i], (unsigned char)fact);
}

static inline void life_log(mull_level level, const char *text, void *data)
{
    life *l = data;
    (void)level;
    l->down += strstr(text, " is down") != NULL;
    l->up += strstr(text, " is up again") != NULL;
    l->unsettled |= strncmp(text, "C: ", 3) == 0 && strstr(text, "isn't settled");
    size_t length = strlen(l->log);
    snprintf(l->log + length, sizeof l->log - length, "%s\n", text);
}

static inline void life_problem(const char *file, int line, const char *text, void *data)
{
    (void)file, (void)line;
    life_log(MULL_ERROR_LEVEL, text, data);
}

static inline void life_event(const mull_event *event, void *data)
{
    life *l = data;
    if (event->kind != MULL_EVENT_DECIDED)
        return;
    int i = number_of(event->failure->message->id);
    if (event->verdict->action == MULL_REDELIVER)
        note(l, i, TOLD_REDELIVERED);
    else if (event->verdict->action == MULL_DEAD_LETTER)
        note(l, i, TOLD_DEAD);
    else if (event->verdict->action == MULL_DISCARD)
        note(l, i, TOLD_DISCARDED);
}

/* ---- Its messages ---------------------------------------------------------------------------- */

/* fill_body: of many sizes, so that some fill pages of their own. */
static inline size_t fill_body(int i, char body[BODY_MAX])
{
    size_t size = (size_t)(i * 977) % BODY_MAX;
    memset(body, 'a' + i % 26, size);
    return size;
}

static inline void publish_next(life *l);

static inline int is_held(const life *l, int i)
{
    return l->holds && i == l->count - 1;
}

typedef struct asked {
    life *life;
    int i;
} asked;

static inline void life_published(int status, void *data)
{
    asked a = *(asked *)data;
    free(data);
    a.life->answered++;
    if (status == 0 && !is_held(a.life, a.i))
        a.life->ends += sends(a.i) ? 2 : 1;
    a.life->safe += status == 0;
    note(a.life, a.i, status == 0 ? TOLD_SAFE : TOLD_REFUSED);
    publish_next(a.life);
}

static inline void publish_one(life *l)
{
    char body[BODY_MAX], id[16];
    asked *a = malloc(sizeof *a);
    *a = (asked){l, l->next++};
    snprintf(id, sizeof id, "m%d", a->i);
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = id;
    message.body = body;
    message.body_size = fill_body(a->i, body);
    int64_t delay_ms = fate_of(a->i) == SUCCEEDS_LATER ? 3 : 0;
    assert_int_equal(mull_publish(l->engine, "t", &message, delay_ms, life_published, a), 0);
}

static inline void publish_next(life *l)
{
    if (l->next < l->count && !is_held(l, l->next) && !l->stopping)
        publish_one(l);
}

static inline const char *why_it_fails(int i, const mull_message *message)
{
    switch (fate_of(i)) {
    case RETRIED:
        return message->attempt == 1 ? "Passing" : NULL;
    case REDELIVERED:
        return message->redeliveries == 0 ? "Later" : NULL;
    case DIES:
        return "Bad";
    case STALE:
        return "Stale";
    default:
        return NULL;
    }
}

static inline void end_call(life *l, mull_call call, int i, const mull_message *message)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = why_it_fails(i, message);
    char id[16];
    snprintf(id, sizeof id, "s%d", i);
    mull_message out = MULL_INIT(mull_message);
    out.queue = "next";
    out.id = id;
    out.body = message->body;
    out.body_size = message->body_size;
    assert_int_equal(mull_send(l->engine, call, &out, i % 2 ? 2 : 0), 0);
    mull_done(l->engine, call, error.type ? &error : NULL);
}

static inline void check_body(int i, const mull_message *message)
{
    char body[BODY_MAX];
    assert_int_equal(message->body_size, fill_body(i, body));
    assert_memory_equal(message->body, body, message->body_size);
}

static inline void work(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    (void)engine;
    life *l = data;
    int i = number_of(message->id);
    check_body(i, message);
    note(l, i, CALLED);
    l->new_calls += message->attempt == 1;
    l->late_calls += message->attempt == 1 && l->unsettled;
    if (is_held(l, i))
        l->held = call;
    else
        end_call(l, call, i, message);
    if (l->turn)
        l->turn(l);
}

/* let_go ends the call of the one that is held, when the engine stops; no one hears it. */
static inline void let_go(mull_engine *engine, mull_call call, void *data)
{
    (void)data;
    mull_done(engine, call, NULL);
}

static inline void take(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    life *l = data;
    int i = number_of(message->id);
    assert_int_equal(message->id[0], 's');
    check_body(i, message);
    l->handed[i]++;
    note(l, i, SENT);
    mull_done(engine, call, NULL);
}

/* ---- Its course ------------------------------------------------------------------------------ */

static inline void life_stopped(void *data)
{
    ((life *)data)->stopped = 1;
}

static inline void life_closed(void *data)
{
    ((life *)data)->closed = 1;
}

static inline void life_add(life *l, const char *name, const char *queue, mull_handler handler)
{
    mull_consumer_options consumer = test_engine_consumer(handler, l);
    consumer.name = name;
    consumer.queue = queue;
    consumer.cancel = let_go;
    consumer.concurrency = 4;
    consumer.prefetch = 2;
    assert_int_equal(mull_consumer_add(l->engine, &consumer), 0);
}

/* life_open makes an engine without a transport. */
static inline void life_open(life *l, mull_policy *policy, ledger *told)
{
    *l = (life){.policy = policy, .ledger = told};
    uv_loop_init(&l->loop);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.loop = &l->loop;
    options.grace_ms = 1;
    options.log = life_log;
    options.event = life_event;
    options.problem = life_problem;
    options.stopped = life_stopped;
    options.data = l;
    assert_int_equal(mull_engine_new(&l->engine, &options), 0);
}

static inline void life_start(life *l)
{
    life_add(l, "C", "q", work);
    life_add(l, "D", "next", take);
    assert_int_equal(mull_engine_start(l->engine), 0);
}

/* are_ended: each message that is safe has come to its end, but for the one that is held. */
static inline int are_ended(const life *l)
{
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(l->engine, &counts);
    int ended = (int)(counts.done + counts.dead_lettered + counts.discarded);
    return l->answered == l->next && ended >= l->ends;
}

/* is_all_done: and a transport that was down is up again. */
static inline int is_all_done(const life *l)
{
    int held = l->holds && (l->ledger->told[l->count - 1] & TOLD_SAFE);
    return l->next == l->count && are_ended(l) && (!held || l->held) && l->up == l->down;
}

/* life_run publishes four at a time, the one that is held at last, and goes on until `enough` or
 * all is done. */
static inline void life_run(life *l, int (*enough)(const life *l))
{
    for (int i = 0; i < 4; i++)
        publish_next(l);
    while (!l->stopped) {
        if (!l->stopping && (is_all_done(l) || (enough && enough(l)))) {
            l->stopping = 1;
            mull_stop(l->engine);
        } else if (is_held(l, l->next) && are_ended(l)) {
            publish_one(l);
        }
        uv_run(&l->loop, UV_RUN_ONCE);
    }
}

static inline void life_close(life *l)
{
    mull_engine_close(l->engine, life_closed, l);
    while (!l->closed)
        uv_run(&l->loop, UV_RUN_ONCE);
    assert_int_equal(uv_run(&l->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&l->loop), 0);
}

/* ---- What is in the file, against the ledger ------------------------------------------------- */

/* found is how often m<i> and s<i> are in the file, and where. */
typedef struct found {
    int ready[LEDGER_MAX], dead[LEDGER_MAX], redelivered[LEDGER_MAX], sent[LEDGER_MAX];
} found;

static inline void find_all(sqlite3 *db, found *f)
{
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT id, queue, headers ->> 'mulligan-redeliveries'"
                                        " FROM messages",
                                        -1, &row, NULL),
                     SQLITE_OK);
    *f = (found){0};
    while (sqlite3_step(row) == SQLITE_ROW) {
        const char *id = (const char *)sqlite3_column_text(row, 0);
        const char *queue = (const char *)sqlite3_column_text(row, 1);
        int i = number_of(id);
        if (id[0] == 's') {
            assert_string_equal(queue, "next");
            f->sent[i]++;
        } else {
            f->ready[i] += strcmp(queue, "q") == 0;
            f->dead[i] += strcmp(queue, "error") == 0;
            f->redelivered[i] += sqlite3_column_int(row, 2) > 0;
        }
    }
    assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
}

static inline void hold(int condition, const char *what, int i, int told, const found *f)
{
    if (!condition)
        fail_msg("m%d: %s (told %02x; in the file: %d ready, %d dead, %d redelivered, %d sent)", i,
                 what, (unsigned)told, f->ready[i], f->dead[i], f->redelivered[i], f->sent[i]);
}

static inline void check_message(int i, int told, const found *f)
{
    int there = f->ready[i] + f->dead[i];
    int was_called = (told & CALLED) != 0;
    int gone = sends(i) ? (told & SENT) != 0 : fate_of(i) == STALE && was_called;
    hold(there + f->sent[i] <= 1, "is twice", i, told, f);
    if (told & TOLD_SAFE)
        hold(there + f->sent[i] == 1 || gone, "was safe and is lost", i, told, f);
    if (told & TOLD_REDELIVERED)
        hold(f->ready[i] == 0 || f->redelivered[i], "was redelivered and is as before", i, told, f);
    if (told & TOLD_DEAD)
        hold(f->dead[i] == 1, "was a dead letter and is none", i, told, f);
    if (told & (TOLD_DISCARDED | SENT))
        hold(there == 0, "had ended and is back", i, told, f);
    hold(!f->dead[i] || fate_of(i) == DIES, "is a dead letter", i, told, f);
    hold(!f->sent[i] || (sends(i) && was_called), "was sent", i, told, f);
}

/* check_file holds what is in the file against what was told before. */
static inline void check_file(sqlite3 *db, ledger *told, found *f)
{
    assert_string_equal(ask(db, "PRAGMA integrity_check"), "ok");
    check_shape(db);
    check_ranges(db);
    find_all(db, f);
    int ended = 0;
    for (int i = 0; i < LEDGER_MAX; i++) {
        int facts = atomic_load(&told->told[i]);
        check_message(i, facts, f);
        ended += sends(i) && (facts & TOLD_SAFE) && !f->ready[i];
        ended += (facts & SENT) && !f->sent[i];
    }
    if (ended < atomic_load(&told->done))
        fail_msg("%d were acknowledged, and %d are", atomic_load(&told->done), ended);
}

/* check_end: a new engine brought each message that was found to its end, once. */
static inline void check_end(sqlite3 *db, const life *l, const found *before)
{
    found f;
    find_all(db, &f);
    for (int i = 0; i < LEDGER_MAX; i++) {
        int left = before->ready[i] + before->sent[i];
        hold(l->handed[i] == (sends(i) ? left : 0), "wasn't sent once", i, l->handed[i], &f);
        int dies = fate_of(i) == DIES ? before->ready[i] + before->dead[i] : 0;
        hold(f.dead[i] == dies, "isn't one dead letter", i, before->dead[i], &f);
        hold(f.ready[i] + f.sent[i] == 0, "has no end", i, 0, &f);
    }
}

/* mark_lock puts a lock file beside a database that was put somewhere else, as if it had been there
 * all the time, for all owners so far (see lock.c). By one that is new, nobody would be taken for
 * dead at first. */
static inline void mark_lock(void)
{
    char name[96];
    snprintf(name, sizeof name, "%s-lock", path);
    FILE *file = fopen(name, "w");
    struct stat status;
    if (!file || fstat(fileno(file), &status) != 0)
        fail_msg("%s can't be made", name);
    fprintf(file, "%llu %lld\n", (unsigned long long)status.st_ino, (long long)INT64_MAX);
    fclose(file);
}

/* ledger_close opens the file of `path` with a new engine, holds what is in it against the ledger,
 * and has the engine bring all of it to its end. */
static inline void ledger_close(ledger *told, mull_policy *policy)
{
    ledger later = {0};
    found f;
    life l;
    mark_lock();
    life_open(&l, policy, &later);
    if (mull_engine_transport(l.engine, "t", url) != 0)
        fail_msg("%s", l.log);
    sqlite3 *db = look_in();
    check_file(db, told, &f);
    /* Who claims nothing buries nobody: where nothing was left, those that died may stay. */
    int nothing_left = count(db, "queue <> 'error'") == 0;
    int dead = atoi(ask(db, "SELECT count(*) FROM owners"));
    life_start(&l);
    assert_int_equal(mull_stop_when_empty(l.engine), 0);
    while (!l.stopped)
        uv_run(&l.loop, UV_RUN_ONCE);
    check_end(db, &l, &f);
    if (l.down)
        fail_msg("%s", l.log);
    life_close(&l);
    int owners = atoi(ask(db, "SELECT count(*) FROM owners"));
    assert_true(owners == 0 || (nothing_left && owners == dead));
    sqlite3_close(db);
}

#endif
