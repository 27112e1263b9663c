/* reload.c: reloads and engines: what an engine refuses by whatever thread it comes, engines that
 * reload by themselves when memory runs out, while another thread loads, at signals in a row, and
 * when they are closed in the middle of it. */
#include "test_engine.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include <uv.h>

#include "counting_allocator.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char WORDS[] = "local bus = require('mulligan.policy').bus()\n";

/* ---- A policy in a file, and an engine that reloads it --------------------------------------- */

typedef struct stage {
    test_engine test_engine;
    counting_allocator counting_allocator;
    uv_loop_t loop;
    char folder[32], path[48];
    int problems, loaded, refused;
    char problem[256], text[256]; /* the first problem's, the last event's */
    int warnings, again, unchanged;
    char line[512]; /* the last warning */
    void (*on_event)(struct stage *s);
    int closed;
} stage;

static void take_problem(const char *file, int line, const char *text, void *data)
{
    stage *s = data;
    if (s->problems++ == 0)
        snprintf(s->problem, sizeof s->problem, "%s:%d: %s", file ? file : "", line, text);
}

static void take_event(const mull_event *event, void *data)
{
    stage *s = data;
    s->loaded += event->kind == MULL_EVENT_POLICY_LOADED;
    s->refused += event->kind == MULL_EVENT_POLICY_REFUSED;
    snprintf(s->text, sizeof s->text, "%s", event->text);
    if (s->on_event)
        s->on_event(s);
}

static void take_line(mull_level level, const char *text, void *data)
{
    stage *s = data;
    s->again += strstr(text, "again") != NULL;
    s->unchanged += strcmp(text, "SIGHUP: the policy is unchanged") == 0;
    if (level < MULL_WARNING)
        return;
    s->warnings++;
    snprintf(s->line, sizeof s->line, "%s", text);
}

/* put writes the policy's file under another name, and renames it. */
static void put(const stage *s, const char *rules)
{
    char temporary[64];
    snprintf(temporary, sizeof temporary, "%s~", s->path);
    FILE *file = fopen(temporary, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%s%s", WORDS, rules) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(temporary, s->path), 0);
}

static int load_policy(stage *s)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.path = s->path;
    options.problem = take_problem;
    options.event = take_event;
    options.data = s;
    options.allocator = counting_allocator_ops(&s->counting_allocator);
    return mull_policy_load(&s->test_engine.policy, &options);
}

static void end_badly(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    const mull_error error = {.size = sizeof error, .type = "E"};
    (void)message;
    (void)data;
    mull_done(engine, call, &error);
}

/* start_engine makes an engine that reloads its policy, with its own allocator, and starts it. */
static int start_engine(stage *s, mull_engine **engine, const char *url)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = s->test_engine.policy;
    options.reload_on_change = 1;
    options.reload_on_sighup = 1;
    options.log = take_line;
    options.problem = take_problem;
    options.data = s;
    options.clock = &s->test_engine.clock;
    options.loop = &s->loop;
    options.seed = 1;
    options.allocator = counting_allocator_ops(&s->counting_allocator);
    int status = mull_engine_new(engine, &options);
    if (status == 0)
        status = mull_engine_transport(*engine, "t", url);
    mull_consumer_options consumer = test_engine_consumer(end_badly, NULL);
    if (status == 0)
        status = mull_consumer_add(*engine, &consumer);
    return status ? status : mull_engine_start(*engine);
}

static void stage_open(stage *s, const char *rules)
{
    memset(s, 0, sizeof *s);
    s->test_engine.clock = (mull_clock){test_engine_now, test_engine_wall, &s->test_engine};
    assert_int_equal(uv_loop_init(&s->loop), 0);
    strcpy(s->folder, "/tmp/reloadXXXXXX");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->path, sizeof s->path, "%s/policy.lua", s->folder);
    put(s, rules);
    assert_int_equal(load_policy(s), 0);
}

static void stage_start(stage *s, const char *rules, const char *url)
{
    stage_open(s, rules);
    assert_int_equal(start_engine(s, &s->test_engine.engine, url), 0);
    test_engine_advance(&s->test_engine, 0);
}

static void note_closed(void *data)
{
    ((stage *)data)->closed = 1;
}

static void close_engine(stage *s, mull_engine *engine)
{
    s->closed = 0;
    mull_engine_close(engine, note_closed, s);
    while (!s->closed)
        uv_run(&s->loop, UV_RUN_ONCE);
}

/* stage_close also sees that nothing is left: no handle in the loop, no memory. */
static void stage_close(stage *s)
{
    if (s->test_engine.engine)
        close_engine(s, s->test_engine.engine);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    mull_policy_free(s->test_engine.policy);
    assert_int_equal(s->counting_allocator.out, 0);
    unlink(s->path);
    assert_int_equal(rmdir(s->folder), 0);
}

/* in_force is the number of rules of the policy that decides. */
static size_t in_force(const stage *s)
{
    return mull_policy_rules(s->test_engine.policy);
}

static int reload(stage *s, const char *rules)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s", WORDS, rules);
    s->problems = 0;
    return mull_policy_reload(s->test_engine.policy, text, 0);
}

static const char ONE[] = "bus:default():discard()",
                  TWO[] = "bus:on('A'):retry()\n"
                          "bus:default():discard()",
                  THREE[] = "bus:on('A'):retry()\nbus:on('B'):retry()\nbus:default():discard()";
static const char REDELIVERS[] = "bus:on('A'):redeliver()\nbus:default():redeliver()";

enum { LOOK_MS = 100, SOON_MS = 200, MINUTE_MS = 60000 };

/* ---- Refusals -------------------------------------------------------------------------------- */

static void what_a_running_engine_could_not_do_is_refused(void **state)
{
    (void)state;
    stage s;
    stage_start(&s, ONE, "memory:");
    mull_engine *plain = s.test_engine.engine, *other;
    assert_int_equal(reload(&s, REDELIVERS), 0); /* one that can delay has nothing against it */
    assert_string_equal(strstr(s.text, ": 2 rules"), strstr(s.text, ": "));
    s.problems = 0;
    assert_int_equal(start_engine(&s, &other, "memory:?delay=no"), MULL_EREFUSED);
    assert_int_equal(s.problems, 2);
    assert_int_equal(reload(&s, ONE), 0);
    assert_int_equal(reload(&s, REDELIVERS), 0); /* one that didn't start has no say */
    assert_int_equal(reload(&s, ONE), 0);
    assert_int_equal(mull_engine_start(other), 0);
    int refused = s.refused;
    assert_int_equal(reload(&s, REDELIVERS), MULL_EREFUSED);
    assert_int_equal(s.problems, 2);
    assert_string_equal(s.problem, "policy.lua:2: this rule redelivers, but transport 't' of "
                                   "consumer 'C' has no delayed delivery; retry or dead-letter "
                                   "instead");
    assert_int_equal(s.refused, refused + 1);
    assert_int_equal(strncmp(s.text, s.problem, strlen(s.problem)), 0);
    assert_string_equal(s.text + strlen(s.problem), " (and 1 more)");
    assert_int_equal(in_force(&s), 1);
    assert_int_equal(reload(&s, TWO), 0);
    close_engine(&s, other);
    assert_int_equal(reload(&s, REDELIVERS), 0);
    s.test_engine.engine = plain;
    stage_close(&s);
}

static void a_stopped_engine_has_no_say(void **state)
{
    (void)state;
    stage s;
    stage_start(&s, ONE, "memory:?delay=no");
    assert_int_equal(reload(&s, REDELIVERS), MULL_EREFUSED);
    mull_stop(s.test_engine.engine);
    test_engine_advance(&s.test_engine, 0);
    assert_int_equal(reload(&s, REDELIVERS), 0);
    stage_close(&s);
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { STARTS = 40 };

typedef struct race {
    stage stage;
    atomic_int stop, failed;
    atomic_long published, refused;
} race;

static void *reload_on(void *data)
{
    race *r = data;
    char good[128], bad[256];
    snprintf(good, sizeof good, "%s%s", WORDS, ONE);
    snprintf(bad, sizeof bad, "%s%s", WORDS, REDELIVERS);
    while (!r->stop) {
        int status = mull_policy_reload(r->stage.test_engine.policy, bad, 0);
        r->published += status == 0;
        r->refused += status == MULL_EREFUSED;
        r->failed += status < 0 && status != MULL_EREFUSED;
        r->failed += mull_policy_reload(r->stage.test_engine.policy, good, 0) < 0;
    }
    return NULL;
}

static mull_engine *engine_without_delay(mull_policy *policy)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    mull_consumer_options consumer = test_engine_consumer(end_badly, NULL);
    mull_engine *engine;
    options.policy = policy;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    assert_int_equal(mull_engine_transport(engine, "t", "memory:?delay=no"), 0);
    assert_int_equal(mull_consumer_add(engine, &consumer), 0);
    return engine;
}

/* wait_for_more waits until the other thread has counted on. */
static void wait_for_more(atomic_long *count)
{
    long before = *count;
    while (*count == before)
        sched_yield();
}

/* While it runs, no policy that it refuses is ever in force. The engines are made beforehand, since
 * that waits for loads; each starts about when such a policy is in force, or tries to. */
static void an_engine_may_start_while_another_thread_reloads(void **state)
{
    (void)state;
    race r = {0};
    stage *s = &r.stage;
    stage_open(s, ONE);
    mull_policy *policy = s->test_engine.policy;
    mull_engine *engines[STARTS];
    for (int i = 0; i < STARTS; i++)
        engines[i] = engine_without_delay(policy);
    pthread_t thread;
    int refused = 0;
    assert_int_equal(pthread_create(&thread, NULL, reload_on, &r), 0);
    for (int i = 0; i < STARTS; i++) {
        wait_for_more(&r.published);
        int status;
        while ((status = mull_engine_start(engines[i])) == MULL_EREFUSED)
            refused++;
        assert_int_equal(status, 0);
        assert_int_equal(mull_policy_rules(policy), 1);
        wait_for_more(&r.refused);
        assert_int_equal(mull_policy_rules(policy), 1);
        mull_engine_close(engines[i], NULL, NULL);
    }
    r.stop = 1;
    pthread_join(thread, NULL);
    assert_int_equal(r.failed, 0);
    assert_true(refused > 0);
    stage_close(s);
}

/* A load on another thread that lasts until it is let go on: in what the policy prints. */
typedef struct slow_load {
    stage stage;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int waits, let_go, status;
} slow_load;

static void wait_in_log(mull_level level, const char *text, void *data)
{
    slow_load *slow = data;
    (void)level;
    if (strcmp(text, "wait") != 0)
        return;
    pthread_mutex_lock(&slow->mutex);
    slow->waits = 1;
    pthread_cond_broadcast(&slow->changed);
    while (!slow->let_go)
        pthread_cond_wait(&slow->changed, &slow->mutex);
    pthread_mutex_unlock(&slow->mutex);
}

static void *load_slowly(void *data)
{
    slow_load *slow = data;
    slow->status = mull_policy_reload(slow->stage.test_engine.policy, "print 'wait'", 0);
    return NULL;
}

static void begin_slow_load(slow_load *slow, pthread_t *thread)
{
    assert_int_equal(pthread_create(thread, NULL, load_slowly, slow), 0);
    pthread_mutex_lock(&slow->mutex);
    while (!slow->waits)
        pthread_cond_wait(&slow->changed, &slow->mutex);
    pthread_mutex_unlock(&slow->mutex);
}

static void let_go(slow_load *slow, pthread_t thread)
{
    pthread_mutex_lock(&slow->mutex);
    slow->let_go = 1;
    pthread_cond_broadcast(&slow->changed);
    pthread_mutex_unlock(&slow->mutex);
    pthread_join(thread, NULL);
}

static void nobody_waits_for_another_threads_load(void **state)
{
    (void)state;
    slow_load slow = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    stage *s = &slow.stage;
    stage_open(s, ONE);
    mull_policy_free(s->test_engine.policy);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.path = s->path;
    options.log = wait_in_log;
    options.data = &slow;
    options.allocator = counting_allocator_ops(&s->counting_allocator);
    assert_int_equal(mull_policy_load(&s->test_engine.policy, &options), 0);
    mull_engine *other;
    assert_int_equal(start_engine(s, &other, "memory:"), 0);
    assert_int_equal(start_engine(s, &s->test_engine.engine, "memory:"), 0);
    test_engine_advance(&s->test_engine, 0);
    pthread_t thread;
    begin_slow_load(&slow, &thread);
    /* What hangs here would hang for ever: the load goes on only after it. */
    put(s, TWO);
    test_engine_advance(&s->test_engine, SOON_MS);
    assert_int_equal(in_force(s), 1);
    close_engine(s, other);
    let_go(&slow, thread);
    assert_int_equal(slow.status, 0);
    test_engine_advance(&s->test_engine, SOON_MS);
    assert_int_equal(in_force(s), 2);
    stage_close(s);
}

/* ---- Signals --------------------------------------------------------------------------------- */

enum { REST_MS = 100 }; /* between two loads */

static void hang_up(stage *s)
{
    assert_int_equal(raise(SIGHUP), 0);
    test_engine_advance(&s->test_engine, 0);
}

static void signals_in_a_row_are_one(void **state)
{
    (void)state;
    stage s;
    stage_start(&s, ONE, "memory:");
    test_engine_advance(&s.test_engine, REST_MS);
    for (int i = 0; i < 100; i++)
        hang_up(&s);
    assert_int_equal(s.unchanged, 1); /* the first, at once */
    test_engine_advance(&s.test_engine, REST_MS - 1);
    hang_up(&s);
    assert_int_equal(s.unchanged, 1);
    test_engine_advance(&s.test_engine, 1);
    assert_int_equal(s.unchanged, 2); /* all the others */
    test_engine_advance(&s.test_engine, MINUTE_MS);
    assert_int_equal(s.unchanged, 2);
    put(&s, TWO);
    hang_up(&s);
    assert_int_equal(in_force(&s), 2);
    stage_close(&s);
}

static void a_signal_does_not_wait_for_a_burst_to_end(void **state)
{
    (void)state;
    stage s;
    stage_start(&s, ONE, "memory:");
    test_engine_advance(&s.test_engine, REST_MS);
    put(&s, TWO);
    mull_engine_turn(s.test_engine.engine);
    hang_up(&s);
    assert_int_equal(in_force(&s), 2);
    hang_up(&s);
    test_engine_advance(&s.test_engine, REST_MS - 1);
    put(&s, THREE);
    test_engine_advance(&s.test_engine, 1);
    assert_int_equal(in_force(&s), 3);
    stage_close(&s);
}

/* A load that takes long by the engine's clock leaves the loop as long to itself. */
static void move_clock(stage *s)
{
    s->test_engine.now_ms += 3000;
}

static void after_a_long_load_comes_a_long_rest(void **state)
{
    (void)state;
    stage s;
    stage_start(&s, ONE, "memory:");
    test_engine_advance(&s.test_engine, REST_MS);
    s.on_event = move_clock;
    put(&s, TWO);
    assert_int_equal(raise(SIGHUP), 0);
    mull_engine_turn(s.test_engine.engine); /* test_engine_advance would set the clock back */
    s.on_event = NULL;
    assert_int_equal(in_force(&s), 2);
    put(&s, THREE);
    hang_up(&s);
    test_engine_advance(&s.test_engine, 2999);
    assert_int_equal(in_force(&s), 2);
    test_engine_advance(&s.test_engine, 1);
    assert_int_equal(in_force(&s), 3);
    stage_close(&s);
}

/* ---- In the middle of it --------------------------------------------------------------------- */

static void close_in_event(stage *s)
{
    mull_engine_close(s->test_engine.engine, note_closed, s);
    s->test_engine.engine = NULL;
}

static void an_engine_may_be_closed_by_what_a_reload_tells(void **state)
{
    (void)state;
    stage s;
    stage_start(&s, ONE, "memory:");
    mull_engine *engine = s.test_engine.engine;
    s.on_event = close_in_event;
    put(&s, TWO);
    test_engine_advance(&s.test_engine, LOOK_MS);
    s.test_engine.now_ms += LOOK_MS;
    assert_int_equal(mull_engine_turn(engine), INT64_MAX);
    assert_int_equal(s.loaded, 1);
    while (!s.closed)
        uv_run(&s.loop, UV_RUN_ONCE);
    stage_close(&s);
}

static void nothing_is_loaded_once_a_stop_is_asked_for(void **state)
{
    (void)state;
    stage s;
    stage_start(&s, ONE, "memory:");
    put(&s, TWO);
    test_engine_advance(&s.test_engine,
                        LOOK_MS); /* it knows of the change, and waits for the burst to end */
    s.test_engine.now_ms += LOOK_MS;
    mull_stop(s.test_engine.engine);
    test_engine_advance(&s.test_engine, MINUTE_MS);
    assert_int_equal(in_force(&s), 1);
    stage_close(&s);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* failing_reload changes the file while the n-th request for memory from then on fails, and those
 * after it, `times` of them; whatever that hits, the old policy stays in force or the new one comes
 * to be, and the new one is within two minutes after memory is there again. The requests made. */
static long failing_reload(long nth, long times)
{
    stage s;
    stage_start(&s, ONE, "memory:");
    put(&s, THREE);
    s.counting_allocator.asked = 0;
    s.counting_allocator.fail_for = times;
    s.counting_allocator.fail_at = nth;
    test_engine_advance(&s.test_engine, SOON_MS);
    long asked = s.counting_allocator.asked;
    assert_true(in_force(&s) == 1 || in_force(&s) == 3);
    assert_int_equal(s.loaded, in_force(&s) == 3);
    if (s.refused)
        assert_string_equal(s.text, s.loaded ? s.text : mull_strerror(MULL_ENOMEM));
    s.counting_allocator.fail_at = 0;
    test_engine_advance(&s.test_engine, 2 * MINUTE_MS);
    assert_int_equal(in_force(&s), 3);
    assert_int_equal(s.loaded, 1);
    int warnings = s.warnings;
    test_engine_advance(&s.test_engine, 2 * MINUTE_MS);
    assert_int_equal(s.warnings, warnings); /* the files are what runs */
    put(&s, TWO);
    test_engine_advance(&s.test_engine, SOON_MS);
    assert_int_equal(in_force(&s), 2); /* it still sees changes */
    stage_close(&s);
    return asked;
}

static void a_reload_outlives_a_lack_of_memory(void **state)
{
    (void)state;
    long all = failing_reload(0, 0), step = all / 12 + 1;
    assert_true(all > 40);
    /* The first and the last requests are decide's; those between are Lua's. */
    for (long nth = 1; nth <= all; nth += nth < 16 || all - nth < 16 ? 1 : step)
        failing_reload(nth, 1);
    for (long nth = 1; nth <= all; nth += step)
        failing_reload(nth, 1000000);
}

/* Whatever fails between new and start: an error says so, and nothing is left. */
static void an_engine_that_reloads_is_there_or_not(void **state)
{
    (void)state;
    int status = MULL_ENOMEM;
    long nth = 0;
    while (status) {
        stage s;
        stage_open(&s, ONE);
        s.counting_allocator.asked = 0;
        s.counting_allocator.fail_at = ++nth;
        status = start_engine(&s, &s.test_engine.engine, "memory:");
        assert_true(status == 0 || status == MULL_ENOMEM);
        s.counting_allocator.fail_at = 0;
        stage_close(&s);
    }
    assert_true(nth > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_running_engine_could_not_do_is_refused),
        cmocka_unit_test(a_stopped_engine_has_no_say),
        cmocka_unit_test(an_engine_may_start_while_another_thread_reloads),
        cmocka_unit_test(nobody_waits_for_another_threads_load),
        cmocka_unit_test(signals_in_a_row_are_one),
        cmocka_unit_test(a_signal_does_not_wait_for_a_burst_to_end),
        cmocka_unit_test(after_a_long_load_comes_a_long_rest),
        cmocka_unit_test(an_engine_may_be_closed_by_what_a_reload_tells),
        cmocka_unit_test(nothing_is_loaded_once_a_stop_is_asked_for),
        cmocka_unit_test(a_reload_outlives_a_lack_of_memory),
        cmocka_unit_test(an_engine_that_reloads_is_there_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
