/* consumers_storm.c: consumers are paused, resumed, resized, removed and added at random, under
 * load, on two transports at once, while foreign threads end their calls.
 *
 *   driver    a timer on the loop, and handlers now and then: MULL_ROUNDS rounds; it publishes, too
 *   handlers  hand each call to a pool
 *   pool      four threads that end calls: well, with errors, after a short time, having sent
 *
 * Then the engine is stopped in the midst of it, with a grace that is too short for some. No claim
 * is left, and a second engine on the same file finds the rest: each message has come to exactly
 * one end. MULL_SEED repeats what the driver does, though not what the threads make of it.
 *
 * Once consumers of a queue compete, and once they share it by types of messages. */
#include "sqlite_engine.h"

#include <time.h>
#include <uv.h>

enum {
    SLOTS = 8,
    POOL = 4,
    BACKLOG = 200,
    LAST = 400, /* messages that are published before the stop, on the file */
    LEAST_ENDED = 40,
    MOST_CONCURRENCY = 8
};

enum { MEMORY, FILES, TRANSPORTS };

static const char *const transports[TRANSPORTS] = {"memory", "file"};

/* one is a message, and its ends. */
typedef struct one {
    int transport;
    atomic_int ends, sequels;
} one;

typedef enum slot_state { ABSENT, THERE, LEAVING } slot_state;

/* slot is a consumer that comes and goes. */
typedef struct slot {
    struct storm *storm;
    char name[16];
    slot_state state;
    int paused;
    int limit; /* its concurrency */
    atomic_int at_work;
} slot;

typedef struct job {
    struct job *next;
    slot *slot;
    mull_call call;
    const mull_message *message; /* is read on the thread */
} job;

/* pool has jobs until it is closed; an idle thread waits for `more`. */
typedef struct pool {
    pthread_t threads[POOL];
    pthread_mutex_t mutex;
    pthread_cond_t more;
    job *first, **end;
    int closed;
} pool;

typedef struct storm {
    uv_loop_t loop;
    uv_timer_t tick;
    mull_policy *policy;
    mull_engine *engine;
    pool pool;
    slot slots[SLOTS];
    one *all;
    int count, room, storm_count; /* messages; there is room for so many; before the last ones */
    int unanswered;               /* publishes */
    atomic_int ended, succeeded, late, unended;
    long rounds, done_rounds;
    int begun, most; /* calls; at work at once, of one consumer */
    long pauses, resizes, removals, added;
    unsigned seed;
    int stopping, stopped, closed;
    int by_type; /* of two consumers of a queue, one names types, and one takes the rest */
    _Atomic(const char *) wrong; /* NULL: nothing is */
} storm;

static int random_below(storm *s, int limit)
{
    return rand_r(&s->seed) % limit;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static const char policy_text[] = "local bus = require('mulligan.policy').bus()\n"
                                  "bus:on('Passing'):retry(3, '1ms')\n"
                                  "bus:on('Later'):redeliver(3, '1ms')\n"
                                  "bus:on('Bad'):dead_letter()\n"
                                  "bus:on('Stale'):discard()\n"
                                  "bus:on('NoConsumerError'):redeliver(1000, '20ms', 'constant')\n";

enum { SENDS = 7, DIES = 8, STALE = 9, FATES = 10 };

/* The types that are named; every third message has another one, or none. */
static const char *const types[] = {"Placed", "Cancelled"}, *const other_types[] = {"Mail", NULL};

static int number_of(const char *id)
{
    return atoi(id + 1);
}

static const char *type_of(int number)
{
    return number % 3 ? types[number % 2] : other_types[number % 2];
}

static int fate_of(int number)
{
    return number / TRANSPORTS % FATES;
}

static const char *why_it_fails(const mull_message *message)
{
    switch (fate_of(number_of(message->id))) {
    case 5:
        return message->calls == 0 ? "Passing" : NULL;
    case 6:
        return message->redeliveries == 0 ? "Later" : NULL;
    case DIES:
        return "Bad";
    case STALE:
        return "Stale";
    default:
        return NULL;
    }
}

/* end_of counts an end, which comes but once, of a message or of what its handler sent. With the
 * last one nothing of the message is left. Any thread. */
static void end_of(storm *s, int number, int is_sequel)
{
    one *of = &s->all[number];
    if (atomic_fetch_add(is_sequel ? &of->sequels : &of->ends, 1) > 0)
        s->wrong = "a message came to two ends";
    s->ended += is_sequel == (fate_of(number) == SENDS);
}

static void storm_published(int status, void *data)
{
    storm *s = data;
    s->unanswered--;
    if (status != 0)
        s->wrong = "a message is refused";
}

static void publish_to(storm *s, int transport, int queue)
{
    char id[16];
    if (s->count == s->room)
        return;
    snprintf(id, sizeof id, "m%d", s->count);
    s->all[s->count++].transport = transport;
    mull_message message = MULL_INIT(mull_message);
    message.queue = queue ? "b" : "a";
    message.id = id;
    message.type = type_of(s->count - 1);
    message.body = id;
    message.body_size = strlen(id);
    s->unanswered++;
    assert_int_equal(
        mull_publish(s->engine, transports[transport], &message, 0, storm_published, s), 0);
}

static void publish_some(storm *s)
{
    for (int i = 0; i < 8 && s->count - s->ended < BACKLOG; i++)
        publish_to(s, s->count % TRANSPORTS, random_below(s, 2));
}

/* ---- The pool -------------------------------------------------------------------------------- */

static void send_sequel(storm *s, const job *j)
{
    char id[16];
    mull_message out = MULL_INIT(mull_message);
    snprintf(id, sizeof id, "s%d", number_of(j->message->id));
    out.queue = "next";
    out.id = id;
    int status = mull_send(s->engine, j->call, &out, 0);
    if (status != 0 && status != MULL_EDONE)
        s->wrong = "mull_send failed";
}

/* work ends a call. */
static void work(job *j, unsigned *seed)
{
    storm *s = j->slot->storm;
    int number = number_of(j->message->id);
    mull_error error = MULL_INIT(mull_error);
    error.type = why_it_fails(j->message);
    if (j->message->body_size != strlen(j->message->id) ||
        memcmp(j->message->body, j->message->id, j->message->body_size) != 0)
        s->wrong = "a body isn't its own";
    if (rand_r(seed) % 8 == 0)
        usleep((useconds_t)(rand_r(seed) % 16000));
    if (fate_of(number) == SENDS)
        send_sequel(s, j);
    j->slot->at_work--;
    int status = mull_done(s->engine, j->call, error.type ? &error : NULL);
    if (status == 0 && !error.type) {
        s->succeeded++;
        end_of(s, number, 0);
    }
    s->late += status == MULL_EDONE;
    if (status != 0 && status != MULL_EDONE)
        s->wrong = "mull_done failed";
    free(j);
    s->unended--;
}

static job *pool_take(pool *p)
{
    pthread_mutex_lock(&p->mutex);
    while (!p->first && !p->closed)
        pthread_cond_wait(&p->more, &p->mutex);
    job *j = p->first;
    if (j && !(p->first = j->next))
        p->end = &p->first;
    pthread_mutex_unlock(&p->mutex);
    return j;
}

static void *be_worker(void *data)
{
    storm *s = data;
    unsigned seed = (unsigned)(uintptr_t)&seed;
    for (job *j; (j = pool_take(&s->pool));)
        work(j, &seed);
    return NULL;
}

static void pool_give(pool *p, job *j)
{
    pthread_mutex_lock(&p->mutex);
    *p->end = j;
    p->end = &j->next;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->mutex);
}

static void pool_open(storm *s)
{
    pool *p = &s->pool;
    p->end = &p->first;
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->more, NULL);
    for (int i = 0; i < POOL; i++)
        assert_int_equal(pthread_create(&p->threads[i], NULL, be_worker, s), 0);
}

static void pool_close(pool *p)
{
    pthread_mutex_lock(&p->mutex);
    p->closed = 1;
    pthread_cond_broadcast(&p->more);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 0; i < POOL; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->more);
    pthread_mutex_destroy(&p->mutex);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void one_round(storm *s);

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine;
    slot *c = data;
    storm *s = c->storm;
    int now = ++c->at_work;
    s->begun++;
    s->most = now > s->most ? now : s->most;
    if (s->by_type && c - s->slots < SLOTS / 2 && number_of(message->id) % 3 == 0)
        s->wrong = "a message came to a consumer that doesn't name its type";
    if (now > c->limit)
        s->wrong = "more handlers are at work than its concurrency";
    if (c->paused || c->state != THERE)
        s->wrong = "a call begins where it was paused, or is being removed";
    if (s->stopping)
        s->wrong = "a call begins after the stop";
    s->unended++;
    job *j = malloc(sizeof *j);
    *j = (job){.slot = c, .call = call, .message = message};
    pool_give(&s->pool, j);
    if (random_below(s, 8) == 0)
        one_round(s);
}

static void take_sequel(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    end_of(data, number_of(message->id), 1);
    assert_int_equal(mull_done(engine, call, NULL), 0);
}

static void storm_event(const mull_event *event, void *data)
{
    if (event->kind == MULL_EVENT_DECIDED &&
        (event->verdict->action == MULL_DEAD_LETTER || event->verdict->action == MULL_DISCARD))
        end_of(data, number_of(event->failure->message->id), 0);
}

/* storm_log: only a stop may warn, of calls that are cut off. */
static void storm_log(mull_level level, const char *text, void *data)
{
    storm *s = data;
    if (level < MULL_WARNING)
        return;
    print_message("# %s\n", text);
    if (!s->stopping || !strstr(text, "cut off"))
        s->wrong = "the engine warns";
}

/* ---- The driver ------------------------------------------------------------------------------ */

static void slot_removed(int status, void *data)
{
    slot *c = data;
    if (status != (c->storm->stopping ? MULL_ESTATE : 0) && status != 0)
        c->storm->wrong = "a removal failed";
    if (status == 0 && c->at_work != 0)
        c->storm->wrong = "a consumer is gone, and its handlers are at work";
    c->state = ABSENT;
}

static int transport_of(const storm *s, const slot *c)
{
    return (int)(c - s->slots) % TRANSPORTS;
}

static void slot_add(storm *s, slot *c, int limit, int prefetch, int paused)
{
    mull_consumer_options options = test_engine_consumer(handle, c);
    options.name = c->name;
    options.transport = transports[transport_of(s, c)];
    options.queue = (c - s->slots) / TRANSPORTS % 2 ? "b" : "a";
    options.timeout_ms = MULL_NEVER;
    options.concurrency = (uint32_t)limit;
    options.prefetch = (uint32_t)prefetch;
    options.paused = paused;
    if (s->by_type && c - s->slots < SLOTS / 2) {
        options.types = types;
        options.type_count = sizeof types / sizeof *types;
    }
    assert_int_equal(mull_consumer_add(s->engine, &options), 0);
    c->state = THERE;
    c->limit = limit;
    c->paused = paused;
}

static void slot_pause(storm *s, slot *c)
{
    c->paused = !c->paused;
    assert_int_equal(c->paused ? mull_consumer_pause(s->engine, c->name)
                               : mull_consumer_resume(s->engine, c->name),
                     0);
    s->pauses++;
}

static void slot_resize(storm *s, slot *c)
{
    c->limit = 1 + random_below(s, MOST_CONCURRENCY);
    assert_int_equal(mull_consumer_concurrency(s->engine, c->name, (uint32_t)c->limit), 0);
    s->resizes++;
}

static void slot_remove(storm *s, slot *c)
{
    c->state = LEAVING;
    assert_int_equal(mull_consumer_remove(s->engine, c->name, slot_removed, c), 0);
    s->removals++;
}

/* one_round does something to a consumer. */
static void one_round(storm *s)
{
    slot *c = &s->slots[random_below(s, SLOTS)];
    if (s->done_rounds == s->rounds || s->stopping)
        return;
    s->done_rounds++;
    int what = random_below(s, 8);
    if (c->state == LEAVING) {
        assert_int_equal(mull_consumer_pause(s->engine, c->name), MULL_ESTATE);
    } else if (c->state == ABSENT) {
        s->added++;
        slot_add(s, c, 1 + random_below(s, MOST_CONCURRENCY), random_below(s, 4), what == 0);
    } else if (what < 4) {
        slot_pause(s, c);
    } else if (what < 7) {
        slot_resize(s, c);
    } else {
        slot_remove(s, c);
    }
}

/* restore has all consumers there, and at work. */
static void restore(storm *s)
{
    for (slot *c = s->slots; c < s->slots + SLOTS; c++) {
        if (c->state == ABSENT)
            slot_add(s, c, MOST_CONCURRENCY, 0, 0);
        else if (c->state == THERE && c->paused)
            slot_pause(s, c);
    }
}

/* begin_last: all that was published has ended; what comes now the stop finds at work. */
static void begin_last(storm *s)
{
    s->storm_count = s->count;
    s->room += LAST;
    for (int i = 0; i < LAST; i++)
        publish_to(s, FILES, i % 2);
    s->rounds += LAST;
}

static void on_tick(uv_timer_t *timer)
{
    storm *s = timer->data;
    int is_last = s->storm_count < s->room;
    if (s->done_rounds < s->rounds) {
        for (int i = random_below(s, 4); i > 0; i--)
            one_round(s);
        if (!is_last)
            publish_some(s);
    } else {
        restore(s);
        if (!is_last && s->ended == s->count && s->unanswered == 0)
            begin_last(s);
    }
    if (is_last && s->unanswered == 0 && s->ended - s->storm_count >= LEAST_ENDED) {
        s->stopping = 1;
        mull_stop(s->engine);
        uv_timer_stop(timer);
    }
}

/* ---- The course of it ------------------------------------------------------------------------ */

static void storm_stopped(void *data)
{
    ((storm *)data)->stopped = 1;
}

static void storm_closed(void *data)
{
    ((storm *)data)->closed = 1;
}

static long wanted(const char *name, long otherwise)
{
    const char *given = getenv(name);
    return given ? atol(given) : otherwise;
}

static void engine_open(storm *s)
{
    s->stopping = s->stopped = s->closed = 0;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = s->policy;
    options.loop = &s->loop;
    options.grace_ms = 1;
    options.log = storm_log;
    options.event = storm_event;
    options.problem = test_engine_problem;
    options.stopped = storm_stopped;
    options.data = s;
    assert_int_equal(mull_engine_new(&s->engine, &options), 0);
    assert_int_equal(mull_engine_transport(s->engine, "memory", "memory:"), 0);
    assert_int_equal(mull_engine_transport(s->engine, "file", url), 0);
    static const char *const names[TRANSPORTS] = {"NextOfMemory", "NextOfFile"};
    for (int i = 0; i < TRANSPORTS; i++) {
        mull_consumer_options next = test_engine_consumer(take_sequel, s);
        next.name = names[i];
        next.transport = transports[i];
        next.queue = "next";
        next.concurrency = 4;
        assert_int_equal(mull_consumer_add(s->engine, &next), 0);
    }
    for (slot *c = s->slots; c < s->slots + SLOTS; c++)
        slot_add(s, c, 1 + random_below(s, MOST_CONCURRENCY), 0, 0);
    assert_int_equal(mull_engine_start(s->engine), 0);
}

static void until(storm *s, const int *flag)
{
    while (!*flag && !s->wrong)
        uv_run(&s->loop, UV_RUN_ONCE);
    if (s->wrong)
        fail_msg("%s", s->wrong);
}

static mull_counts engine_close(storm *s)
{
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(s->engine, &counts), 0);
    mull_engine_close(s->engine, storm_closed, s);
    until(s, &s->closed);
    return counts;
}

static void assert_no_claims(storm *s, sqlite3 *db)
{
    mull_snapshot *snapshot;
    assert_int_equal(mull_engine_snapshot(s->engine, &snapshot), 0);
    for (size_t i = 0; i < snapshot->transport_count; i++) {
        assert_int_equal(snapshot->transports[i]->claimed, 0);
        assert_int_equal(snapshot->transports[i]->abandoned, 0);
    }
    mull_snapshot_free(snapshot);
    assert_int_equal(count(db, "owner IS NOT NULL"), 0);
}

/* storm_blow goes through all rounds, and stops in the midst of the last messages. */
static mull_counts storm_blow(storm *s, sqlite3 **db)
{
    engine_open(s);
    *db = look_in();
    uv_timer_init(&s->loop, &s->tick);
    s->tick.data = s;
    uv_timer_start(&s->tick, on_tick, 1, 1);
    until(s, &s->stopped);
    uv_close((uv_handle_t *)&s->tick, NULL);
    assert_no_claims(s, *db);
    int there = count(*db, "queue <> 'error'");
    int begun = s->begun;
    mull_counts counts = engine_close(s);
    assert_int_equal(s->begun, begun);
    while (s->unended > 0) /* a thread has ended a call, and not yet counted that */
        usleep(100);
    assert_int_equal(count(*db, "queue <> 'error'"), there);
    assert_int_equal(there, s->count - s->ended);
    return counts;
}

/* storm_calm has a second engine bring the rest to its end. */
static mull_counts storm_calm(storm *s, sqlite3 *db)
{
    s->rounds = s->done_rounds;
    engine_open(s);
    assert_int_equal(mull_stop_when_empty(s->engine), 0);
    until(s, &s->stopped);
    assert_int_equal(mull_engine_status(s->engine), 0);
    assert_no_claims(s, db);
    return engine_close(s);
}

static void assert_ends(storm *s, sqlite3 *db, int done)
{
    int sequels = 0, dead = 0;
    for (int i = 0; i < s->count; i++) {
        if (s->all[i].ends != 1 || s->all[i].sequels != (fate_of(i) == SENDS))
            fail_msg("m%d has %d ends, and %d were sent", i, s->all[i].ends, s->all[i].sequels);
        sequels += s->all[i].sequels;
        dead += s->all[i].transport == FILES && fate_of(i) == DIES;
    }
    assert_int_equal(done, s->succeeded + sequels);
    assert_int_equal(count(db, "queue = 'error'"), dead);
    assert_int_equal(count(db, "queue <> 'error'"), 0);
}

static void blow(int by_type)
{
    storm s = {.rounds = wanted("MULL_ROUNDS", 500),
               .policy = test_engine_policy(policy_text),
               .by_type = by_type};
    sqlite3 *db;
    s.seed = (unsigned)wanted("MULL_SEED", time(NULL));
    print_message("# MULL_SEED=%u MULL_ROUNDS=%ld\n", s.seed, s.rounds);
    alarm((unsigned)(60 + s.rounds / 20)); /* a watchdog */
    s.room = s.storm_count = (int)s.rounds * 4;
    s.all = calloc((size_t)s.room + LAST, sizeof *s.all);
    for (int i = 0; i < SLOTS; i++) {
        s.slots[i].storm = &s;
        snprintf(s.slots[i].name, sizeof s.slots[i].name, "C%d", i);
    }
    uv_loop_init(&s.loop);
    pool_open(&s);
    mull_counts blown = storm_blow(&s, &db), calm = storm_calm(&s, db);
    pool_close(&s.pool);
    assert_ends(&s, db, (int)(blown.done + calm.done));
    print_message("# %d messages, %d calls, %ld pauses and resumes, %ld resizes, %ld removals, %ld "
                  "added, at most %d at work, %d left for the second engine, %d ended late\n",
                  s.count, s.begun, s.pauses, s.resizes, s.removals, s.added, s.most,
                  (int)calm.done, s.late);
    sqlite3_close(db);
    assert_int_equal(uv_run(&s.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&s.loop), 0);
    mull_policy_free(s.policy);
    free(s.all);
}

static void nothing_is_lost_in_a_storm(void **state)
{
    (void)state;
    blow(0);
}

static void nothing_is_lost_where_consumers_share_by_type(void **state)
{
    (void)state;
    blow(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(nothing_is_lost_in_a_storm),
                                       TEST(nothing_is_lost_where_consumers_share_by_type)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
