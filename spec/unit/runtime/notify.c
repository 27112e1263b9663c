/* notify.c: what the policy's own notify hears, when, and in what order beside the event
 * functions; of generations that come and go meanwhile, and of memory that runs out. */
#include <pthread.h>
#include <unistd.h>

#include "fake_language.h"
#include "runtime/engine_control.h"
#include "test_engine.h"

/* ---- A scene --------------------------------------------------------------------------------- */

enum { LINES = 64, HELD = 8 };

/* scene is an engine by a policy of the fake guest, and all that is told, line by line. */
typedef struct scene {
    test_engine r;
    counting_allocator counting_allocator;
    fake fake;
    char lines[LINES][120];
    int line_count;
    const char *url; /* NULL: "memory:" */
    int hold;        /* handlers keep their calls */
    int tells_its_stop;
    int reloads_at_stop;
    mull_event_kind acts_on; /* the embedder acts on the first of these */
    void (*act)(struct scene *s);
    mull_call held[HELD]; /* 0: none */
    char held_type[HELD][16];
    int logged;
    atomic_int loaded; /* reloads, on any thread */
} scene;

/* add_line notes WHO NAME [ACTION] [: TEXT]. */
static void add_line(scene *s, const char *who, const mull_event *event)
{
    assert_true(s->line_count < LINES);
    snprintf(s->lines[s->line_count++], sizeof *s->lines, "%s %s%s%s%s%.60s", who,
             mull_event_name(event->kind), event->verdict ? " " : "",
             event->verdict ? mull_action_name(event->verdict->action) : "",
             event->text ? ": " : "", event->text ? event->text : "");
}

static void act_on(scene *s, const mull_event *event)
{
    void (*act)(scene * s) = s->act;
    if (!act || event->kind != s->acts_on)
        return;
    s->act = NULL;
    act(s);
}

static void on_policy(const mull_event *event, void *data)
{
    scene *s = data;
    if (event->kind == MULL_EVENT_POLICY_LOADED)
        s->loaded++; /* on any thread */
    else
        add_line(s, "policy", event);
    act_on(s, event);
}

static void on_engine(const mull_event *event, void *data)
{
    add_line(data, "event", event);
    act_on(data, event);
}

static void on_stopped(void *data)
{
    scene *s = data;
    if (s->tells_its_stop)
        snprintf(s->lines[s->line_count++], sizeof *s->lines, "stopped");
}

static void on_notify(const mull_event *event, const char *text, void *data)
{
    scene *s = data;
    char who[32];
    snprintf(who, sizeof who, "notify %s", text);
    mull_event shown = *event;
    if (event->kind == MULL_EVENT_POLICY_LOADED)
        shown.text = NULL;
    if (event->failure)
        assert_string_equal(event->failure->consumer, "C");
    if (event->verdict && event->verdict->queue)
        shown.text = event->verdict->queue;
    add_line(s, who, &shown);
}

/* handle fails with the type that the message's id begins with. */
static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    scene *s = data;
    char type[16];
    snprintf(type, sizeof type, "%s", message->id);
    type[strcspn(type, "-")] = '\0';
    if (s->hold) {
        int at = 0;
        while (s->held[at])
            at++;
        s->held[at] = call;
        memcpy(s->held_type[at], type, sizeof type);
        return;
    }
    mull_error error = error_of(type);
    int status = mull_done(engine, call, &error);
    if (status == MULL_ENOMEM) /* of which there is enough the next time */
        status = mull_done(engine, call, &error);
    assert_int_equal(status, 0);
}

static void end_held(scene *s)
{
    for (int i = 0; i < HELD; i++) {
        mull_error error = error_of(s->held_type[i]);
        if (s->held[i])
            assert_int_equal(mull_done(s->r.engine, s->held[i], &error), 0);
        s->held[i] = 0;
    }
}

static void reload(scene *s, const char *text, int expected)
{
    assert_int_equal(mull_policy_reload(s->r.policy, text, 0), expected);
}

static void on_log(mull_level level, const char *text, void *data)
{
    scene *s = data;
    s->logged += level >= MULL_WARNING && strstr(text, "notify") != NULL;
    if (s->reloads_at_stop && strcmp(text, "stopped") == 0)
        reload(s, "a~, as it stopped", 0);
}

/* try_open opens a scene; its status where memory runs out. */
static int try_open(scene *s, const char *policy, mull_event_fn event)
{
    s->r = (test_engine){.clock = {test_engine_now, test_engine_wall, &s->r}};
    int status = fake_load(&s->r.policy, &s->fake, &s->counting_allocator, policy, on_policy, s);
    if (status != 0)
        return status;
    s->fake.on_notify = on_notify;
    s->fake.on_notify_data = s;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = s->r.policy;
    options.problem = test_engine_problem;
    options.event = event;
    options.log = on_log;
    options.stopped = on_stopped;
    options.data = s;
    options.clock = &s->r.clock;
    options.seed = 1;
    options.allocator = counting_allocator_ops(&s->counting_allocator);
    mull_consumer_options consumer = test_engine_consumer(handle, s);
    consumer.concurrency = HELD;
    status = mull_engine_new(&s->r.engine, &options);
    if (status == 0)
        status = mull_engine_transport(s->r.engine, "t", s->url ? s->url : "memory:");
    if (status == 0)
        status = mull_consumer_add(s->r.engine, &consumer);
    if (status == 0)
        status = mull_engine_start(s->r.engine);
    return status;
}

/* open_with begins, with what is heard of the start behind it. */
static void open_with(scene *s, const char *policy, mull_event_fn event)
{
    memset(s, 0, sizeof *s);
    assert_int_equal(try_open(s, policy, event), 0);
    mull_engine_turn(s->r.engine);
    s->line_count = 0;
}

static void open_scene(scene *s, const char *policy)
{
    open_with(s, policy, on_engine);
}

static void close_scene(scene *s)
{
    if (s->r.engine)
        mull_engine_close(s->r.engine, NULL, NULL);
    mull_policy_free(s->r.policy);
    assert_int_equal(s->fake.states, 0);
    assert_int_equal(s->fake.sources, 0);
    assert_int_equal(s->counting_allocator.out, 0);
}

static void publish(scene *s, const char *id)
{
    assert_int_equal(test_engine_publish(&s->r, "q", id), 0);
}

/* publish_odd publishes a message with a header that is ignored. */
static void publish_odd(scene *s)
{
    const mull_header header = {"mulligan-calls", "many"};
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = "Ends-1";
    message.headers = &header;
    message.header_count = 1;
    assert_int_equal(mull_publish(s->r.engine, "t", &message, 0, NULL, NULL), 0);
}

/* told compares all that was told, and forgets it. */
static void told(scene *s, const char *const *lines, int count)
{
    for (int i = 0; i < s->line_count && i < count; i++)
        assert_string_equal(s->lines[i], lines[i]);
    assert_int_equal(s->line_count, count);
    s->line_count = 0;
}

#define TOLD(scene, ...)                                                                           \
    told(scene, (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))
#define TOLD_NOTHING(scene) told(scene, NULL, 0)

/* ---- About messages -------------------------------------------------------------------------- */

static void what_is_met_waits_for_the_verdict(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "f~^");
    s.fake.override_raises = 1;
    assert_int_equal(mull__engine_fault(s.r.engine, "t", "settle", 0, 1, MULL_EIO), 0);
    publish(&s, "Ends-1");
    test_engine_advance(&s.r, 0);
    TOLD(&s, "policy matcher_failed: attempt to index a nil value",
         "policy override_failed dead_letter: an override raises"); /* and no notify so far */
    test_engine_advance(&s.r, 100);
    TOLD(&s, "event decided dead_letter", "notify f~^ matcher_failed dead_letter: error",
         "notify f~^ override_failed dead_letter: error", "notify f~^ decided dead_letter: error");
    close_scene(&s);
}

static void a_retry_is_told_when_it_begins_to_wait(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "a~");
    publish(&s, "Fails-1");
    test_engine_advance(&s.r, 0);
    TOLD(&s, "event decided retry", "notify a~ decided retry");
    test_engine_advance(&s.r, 200);
    TOLD(&s, "event decided retry", "notify a~ decided retry");
    close_scene(&s);
}

static void the_generation_that_decided_hears_of_it(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "f~1");
    assert_int_equal(mull__engine_fault(s.r.engine, "t", "settle", 0, 1, MULL_EIO), 0);
    publish(&s, "Ends-1");
    test_engine_advance(&s.r, 0);
    s.line_count = 0;
    reload(&s, "f~2", 0);
    reload(&s, "f~3", 0); /* which frees what no decider uses any more */
    test_engine_advance(&s.r, 50);
    TOLD(&s, "notify f~3 policy_loaded", "notify f~3 policy_loaded");
    test_engine_advance(&s.r, 50);
    TOLD(&s, "event decided dead_letter", "notify f~1 matcher_failed dead_letter: error",
         "notify f~1 decided dead_letter: error");
    publish(&s, "Fails-2");
    test_engine_advance(&s.r, 0);
    TOLD(&s, "event decided retry", "notify f~3 decided retry");
    assert_int_equal(s.fake.states, 2); /* of f~3, and the one that the next reload frees */
    close_scene(&s);
}

static void where_no_notify_is_in_force_nobody_hears(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "f");
    publish(&s, "Ends-1");
    test_engine_advance(&s.r, 0);
    reload(&s, "f, changed", 0);
    test_engine_advance(&s.r, 0);
    TOLD(&s, "policy matcher_failed: attempt to index a nil value", "event decided dead_letter");
    close_scene(&s);
}

/* A message that is given back has no verdict that is carried out; what was met on the way was met
 * all the same. */
static void what_is_given_back_is_not_decided(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "a~^");
    s.fake.override_raises = 1;
    s.hold = 1;
    publish(&s, "Fails-1");
    test_engine_advance(&s.r, 0);
    mull_stop(s.r.engine);
    test_engine_advance(&s.r, 0);
    end_held(&s);
    test_engine_advance(&s.r, 0);
    TOLD(&s, "policy override_failed retry: an override raises",
         "notify a~^ override_failed retry: an override raises");
    close_scene(&s);
}

/* What is met is told before the engine has stopped: from then on an embedder may take away what
 * its event functions need. */
static void a_lost_message_whose_handler_outlasts_the_engine(void **state)
{
    (void)state;
    scene s = {.url = "memory:?claim_timeout=31s&hold=no"};
    assert_int_equal(try_open(&s, "b~^", on_engine), 0);
    mull_engine_turn(s.r.engine);
    s.line_count = 0;
    s.fake.override_raises = s.fake.notify_raises = 1;
    s.hold = s.tells_its_stop = 1;
    publish(&s, "Fails-1");
    test_engine_advance(&s.r, 29000);
    assert_int_equal(mull__engine_fault(s.r.engine, "t", "settle", 0, 100, MULL_EIO), 0);
    test_engine_advance(&s.r, 1000);
    TOLD(&s, "policy override_failed dead_letter: an override raises"); /* it timed out */
    test_engine_advance(&s.r, 1000);
    TOLD(&s, "notify b~^ override_failed dead_letter: error",
         "event notify_failed dead_letter: a notify raises");
    mull_stop(s.r.engine); /* it was handed out again, is cut off, and can't be given back */
    test_engine_advance(&s.r, 60000);
    TOLD(&s, "stopped");
    for (int i = 0; i < 2; i++) {
        mull_error error = error_of("Fails");
        assert_int_equal(mull_done(s.r.engine, s.held[i], &error), MULL_EDONE);
    }
    test_engine_advance(&s.r, 0);
    TOLD_NOTHING(&s);
    close_scene(&s);
}

static void a_message_that_is_left_behind(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "f~");
    s.fake.notify_raises = s.tells_its_stop = 1;
    assert_int_equal(mull__engine_fault(s.r.engine, "t", "settle", 0, 100, MULL_EIO), 0);
    publish(&s, "Ends-1");
    test_engine_advance(&s.r, 0);
    TOLD(&s, "policy matcher_failed: attempt to index a nil value");
    mull_stop(s.r.engine);
    test_engine_advance(&s.r, 60000);
    TOLD(&s, "notify f~ matcher_failed dead_letter: error",
         "event notify_failed dead_letter: a notify raises", "stopped");
    mull_engine_close(s.r.engine, NULL, NULL);
    s.r.engine = NULL;
    TOLD_NOTHING(&s);
    close_scene(&s);
}

static void a_header_that_is_ignored(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "a~");
    s.hold = 1;
    publish_odd(&s);
    test_engine_advance(&s.r, 0);
    TOLD(&s, "event header_ignored: mulligan-calls", "notify a~ header_ignored: mulligan-calls");
    end_held(&s);
    test_engine_advance(&s.r, 0);
    TOLD(&s, "event decided dead_letter", "notify a~ decided dead_letter: queue-a");
    close_scene(&s);
}

/* Each verdict's queue is its own, though the next decision overwrites what the override said. */
static void words_of_an_override_live_until_they_are_told(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "a~^");
    s.fake.answer = (mull__answer){.given = 1, .action = MULL_DEAD_LETTER, .queue = "found"};
    s.hold = 1;
    assert_int_equal(mull__engine_fault(s.r.engine, "t", "settle", 0, 2, MULL_EIO), 0);
    publish(&s, "Ends-1");
    publish(&s, "Fails-2");
    test_engine_advance(&s.r, 0);
    end_held(&s);
    test_engine_advance(&s.r, 100);
    TOLD(&s, "event decided dead_letter", "notify a~^ decided dead_letter: found-Ends",
         "event decided dead_letter", "notify a~^ decided dead_letter: found-Fails");
    close_scene(&s);
}

/* ---- What notify fails at -------------------------------------------------------------------- */

static void what_it_fails_at_is_told_to_the_embedder_alone(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "f~");
    s.fake.notify_raises = 1;
    publish(&s, "Ends-1");
    test_engine_advance(&s.r, 0);
    reload(&s, "!", MULL_EPOLICY);
    test_engine_advance(&s.r, 0);
    TOLD(&s, "policy matcher_failed: attempt to index a nil value", "event decided dead_letter",
         "notify f~ matcher_failed dead_letter: error",
         "event notify_failed dead_letter: a notify raises", "notify f~ decided dead_letter: error",
         "event notify_failed dead_letter: a notify raises",
         "policy policy_refused: fake.lua:3: a mistake",
         "notify f~ policy_refused: fake.lua:3: a mistake", "event notify_failed: a notify raises");
    assert_int_equal(test_engine_counts(&s.r).notify_failed, 3);
    assert_int_equal(test_engine_counts(&s.r).dead_lettered, 1);
    assert_int_equal(s.logged, 0);
    close_scene(&s);
}

static void it_is_logged_where_nobody_takes_events(void **state)
{
    (void)state;
    scene s;
    open_with(&s, "a~", NULL);
    s.fake.notify_raises = 1;
    publish(&s, "Ends-1");
    test_engine_advance(&s.r, 0);
    reload(&s, "!", MULL_EPOLICY);
    test_engine_advance(&s.r, 0);
    assert_int_equal(s.logged, 2);
    assert_int_equal(test_engine_counts(&s.r).notify_failed, 2);
    close_scene(&s);
}

/* ---- What the embedder does meanwhile -------------------------------------------------------- */

static const mull_event_kind about_messages[] = {
    MULL_EVENT_HEADER_IGNORED, MULL_EVENT_MATCHER_FAILED, MULL_EVENT_OVERRIDE_FAILED,
    MULL_EVENT_DECIDED,        MULL_EVENT_NOTIFY_FAILED,
};

/* open_eventful opens a scene in which each of these is told, and does `act` in the first. */
static void open_eventful(scene *s, mull_event_kind kind, void (*act)(scene *s))
{
    open_scene(s, "f~^");
    s->fake.override_raises = s->fake.notify_raises = 1;
    s->acts_on = kind;
    s->act = act;
    publish_odd(s);
}

static void on_closed(void *data)
{
    ((scene *)data)->r.engine = NULL;
}

static void close_now(scene *s)
{
    mull_engine_close(s->r.engine, on_closed, s);
}

static void an_engine_is_closed_out_of_any_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(about_messages); i++) {
        scene s;
        open_eventful(&s, about_messages[i], close_now);
        test_engine_advance(&s.r, 60000);
        assert_null(s.act);
        assert_null(s.r.engine);
        close_scene(&s);
    }
}

static void stop_now(scene *s)
{
    s->tells_its_stop = 1;
    mull_stop(s->r.engine);
}

static void an_engine_is_stopped_out_of_any_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(about_messages); i++) {
        scene s;
        open_eventful(&s, about_messages[i], stop_now);
        test_engine_advance(&s.r, 60000);
        assert_null(s.act);
        assert_string_equal(s.lines[s.line_count - 1], "stopped");
        close_scene(&s);
    }
}

static void load_another(scene *s)
{
    reload(s, "b~", 0);
    reload(s, "b~, again", 0); /* which frees what no decider uses any more */
}

static void a_policy_is_loaded_out_of_any_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(about_messages); i++) {
        scene s;
        int before = about_messages[i] == MULL_EVENT_HEADER_IGNORED ||
                     about_messages[i] == MULL_EVENT_NOTIFY_FAILED; /* of the header */
        open_eventful(&s, about_messages[i], load_another);
        test_engine_advance(&s.r, 0);
        assert_null(s.act);
        int by_old = 0, by_new = 0;
        for (int k = 0; k < s.line_count; k++) {
            by_old += strcmp(s.lines[k], "notify f~^ decided dead_letter: error") == 0;
            by_new += strncmp(s.lines[k], "notify b~, again decided discard", 32) == 0;
        }
        assert_int_equal(by_old, !before);
        assert_int_equal(by_new, before);
        assert_int_equal(test_engine_counts(&s.r).dead_lettered, !before);
        assert_int_equal(test_engine_counts(&s.r).discarded, before);
        close_scene(&s);
    }
}

/* ---- About what is in force ------------------------------------------------------------------ */

/* The embedder knows what it loaded. */
static void what_is_in_force_at_the_start_is_told(void **state)
{
    (void)state;
    scene s;
    memset(&s, 0, sizeof s);
    assert_int_equal(try_open(&s, "a~", on_engine), 0);
    publish(&s, "Ends-1");
    test_engine_advance(&s.r, 0);
    TOLD(&s, "notify a~ policy_loaded", "event decided dead_letter",
         "notify a~ decided dead_letter: queue-a");
    assert_int_equal(s.loaded, 0);
    close_scene(&s);
}

enum { RELOADS = 50 };

static void *reload_often(void *data)
{
    scene *s = data;
    for (int i = 0; i < RELOADS; i++)
        mull_policy_reload(s->r.policy, i % 2 ? "a~1" : "a~2", 0);
    return NULL;
}

static void reloads_on_another_thread_are_heard_of_on_the_loops(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "a~1");
    pthread_t thread;
    int heard = 0, messages = 0;
    assert_int_equal(pthread_create(&thread, NULL, reload_often, &s), 0);
    while (s.loaded < RELOADS) {
        if (test_engine_publish(&s.r, "q", "Ends-1") == 0)
            messages++;
        test_engine_advance(&s.r, 0);
        for (int i = 0; i < s.line_count; i++)
            heard += strstr(s.lines[i], "policy_loaded") != NULL;
        s.line_count = 0;
    }
    pthread_join(thread, NULL);
    test_engine_advance(&s.r, 0);
    for (int i = 0; i < s.line_count; i++)
        heard += strstr(s.lines[i], "policy_loaded") != NULL;
    assert_int_equal(heard, RELOADS);
    assert_int_equal(test_engine_counts(&s.r).dead_lettered, messages);
    close_scene(&s);
}

static void an_engine_that_has_stopped_hears_nothing(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "a~");
    s.tells_its_stop = s.reloads_at_stop = 1;
    mull_stop(s.r.engine);
    test_engine_advance(&s.r, 0);
    reload(&s, "a~, changed", 0);
    test_engine_advance(&s.r, 0);
    TOLD(&s, "stopped");
    close_scene(&s);
}

static void two_in_a_row_are_both_heard_of(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, "a");
    reload(&s, "b", 0);
    reload(&s, "a~", 0);
    test_engine_advance(&s.r, 0);
    TOLD(&s, "notify a~ policy_loaded", "notify a~ policy_loaded");
    close_scene(&s);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* life takes one message to its end by a policy that needs all of it, while the n-th request for
 * memory fails. The message isn't lost: it is where the override wants it, or in the default queue.
 */
static int life(long n, int *defaulted)
{
    scene s;
    memset(&s, 0, sizeof s);
    s.counting_allocator.fail_at = n;
    if (try_open(&s, "f~^", on_engine) == 0) {
        s.fake.answer = (mull__answer){.given = 1, .action = MULL_DEAD_LETTER, .queue = "found"};
        int published = test_engine_publish(&s.r, "q", "Ends-1") == 0;
        test_engine_advance(&s.r, 0);
        mull_policy_reload(s.r.policy, "f~^2", 0);
        test_engine_advance(&s.r, 20000);
        if (published && s.r.published) {
            int wanted = 0, by_default = 0;
            for (int i = 0; i < s.line_count; i++) {
                wanted += strstr(s.lines[i], " decided dead_letter: found-Ends") != NULL;
                by_default += strstr(s.lines[i], " decided dead_letter: error") != NULL;
            }
            assert_int_equal(test_engine_counts(&s.r).dead_lettered, 1);
            assert_int_equal(wanted + by_default, 1);
            *defaulted += by_default;
        }
    }
    int failed = s.counting_allocator.asked >= n;
    close_scene(&s);
    return failed;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long n = 1;
    int defaulted = 0;
    while (life(n, &defaulted))
        n++;
    assert_true(n > 40);            /* there were as many to fail */
    assert_int_equal(defaulted, 1); /* by the one that the queue's name takes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_met_waits_for_the_verdict),
        cmocka_unit_test(a_retry_is_told_when_it_begins_to_wait),
        cmocka_unit_test(the_generation_that_decided_hears_of_it),
        cmocka_unit_test(where_no_notify_is_in_force_nobody_hears),
        cmocka_unit_test(what_is_given_back_is_not_decided),
        cmocka_unit_test(a_lost_message_whose_handler_outlasts_the_engine),
        cmocka_unit_test(a_message_that_is_left_behind),
        cmocka_unit_test(a_header_that_is_ignored),
        cmocka_unit_test(words_of_an_override_live_until_they_are_told),
        cmocka_unit_test(what_it_fails_at_is_told_to_the_embedder_alone),
        cmocka_unit_test(it_is_logged_where_nobody_takes_events),
        cmocka_unit_test(an_engine_is_closed_out_of_any_event),
        cmocka_unit_test(an_engine_is_stopped_out_of_any_event),
        cmocka_unit_test(a_policy_is_loaded_out_of_any_event),
        cmocka_unit_test(what_is_in_force_at_the_start_is_told),
        cmocka_unit_test(reloads_on_another_thread_are_heard_of_on_the_loops),
        cmocka_unit_test(two_in_a_row_are_both_heard_of),
        cmocka_unit_test(an_engine_that_has_stopped_hears_nothing),
        cmocka_unit_test(every_allocation_may_fail),
    };
    alarm(240); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
