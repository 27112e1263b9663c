/* misuse_engine.c: functions of the engine called when they have no place: each answers, and the
 * engine goes on as if they hadn't been. What a NULL argument does is in misuse_nulls.c. */
#include "decide_fixture.h"

#include <uv.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct note {
    mull_call call;
    int calls, ends, status;
} note;

static void keep(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    note *n = data;
    (void)engine;
    (void)message;
    n->call = call;
    n->calls++;
}

static void count_end(void *data)
{
    (*(int *)data)++;
}

static mull_message message_to(const char *queue)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = queue;
    return message;
}

static void answer_depth(int status, const mull_depth *depth, void *data)
{
    note *n = data;
    assert_non_null(depth);
    n->status = status;
    n->ends++;
}

/* plain_engine is one on a loop of its own and the real clock, with the transport "t" and a
 * consumer whose handler keeps its call. */
static mull_engine *plain_engine(mull_policy *policy, note *n, void (*stopped)(void *data))
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.problem = test_engine_problem;
    options.stopped = stopped;
    options.data = n;
    mull_engine *engine;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    assert_int_equal(mull_engine_transport(engine, "t", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(keep, n);
    assert_int_equal(mull_consumer_add(engine, &consumer), 0);
    return engine;
}

/* ---- Setting up ------------------------------------------------------------------------------ */

static void names_are_texts_and_not_taken(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "\xff", "half \xc3", NULL};
    test_engine r;
    note n = {0};
    test_engine_open(&r, "", "memory:", NULL);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(mull_engine_transport(r.engine, wrong[i], "memory:"), MULL_EINVAL);
        mull_consumer_options consumer = test_engine_consumer(keep, &n);
        consumer.name = wrong[i];
        assert_int_equal(mull_consumer_add(r.engine, &consumer), MULL_EINVAL);
        consumer = test_engine_consumer(keep, &n);
        consumer.queue = wrong[i];
        assert_int_equal(mull_consumer_add(r.engine, &consumer), MULL_EINVAL);
        consumer = test_engine_consumer(keep, &n);
        consumer.transport = wrong[i];
        assert_int_equal(mull_consumer_add(r.engine, &consumer), MULL_EINVAL);
    }
    assert_int_equal(mull_engine_transport(r.engine, "t", "memory:"), MULL_EINVAL);
    mull_consumer_options consumer = test_engine_consumer(keep, &n);
    consumer.timeout_ms = -2;
    assert_int_equal(mull_consumer_add(r.engine, &consumer), MULL_EINVAL);
    consumer = test_engine_consumer(NULL, &n);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), MULL_EINVAL);
    test_engine_close(&r);
}

/* said keeps the last problem. */
static void said(const char *file, int line, const char *text, void *data)
{
    (void)file;
    (void)line;
    snprintf(data, 256, "%s", text);
}

static void what_options_lack_is_told(void **state)
{
    (void)state;
    char told[256] = "";
    mull_policy *policy = NULL;
    mull_policy_options of_policy = MULL_INIT(mull_policy_options);
    of_policy.problem = said;
    of_policy.data = told;
    assert_int_equal(mull_policy_load(&policy, &of_policy), MULL_EINVAL);
    assert_string_equal(told, "a policy's `path` or its `text` is required");

    mull_engine *engine = NULL;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.problem = said;
    options.data = told;
    assert_int_equal(mull_engine_new(&engine, &options), MULL_EINVAL);
    assert_string_equal(told, "an engine's `policy` is required");
    options.policy = test_engine_policy("");
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    assert_int_equal(mull_engine_transport(engine, "", "memory:"), MULL_EINVAL);
    assert_non_null(strstr(told, "a transport needs a URL and a name"));
    assert_int_equal(mull_engine_transport(engine, "t", "memory:"), 0);

    note n = {0};
    mull_consumer_options consumer = test_engine_consumer(NULL, &n);
    assert_int_equal(mull_consumer_add(engine, &consumer), MULL_EINVAL);
    assert_non_null(strstr(told, "`handler` is required"));
    consumer.handler = keep;
    consumer.queue = NULL;
    assert_int_equal(mull_consumer_add(engine, &consumer), MULL_EINVAL);
    assert_non_null(strstr(told, "`queue` is required"));
    consumer.queue = "q";
    consumer.timeout_ms = -2;
    assert_int_equal(mull_consumer_add(engine, &consumer), MULL_EINVAL);
    assert_non_null(strstr(told, "`timeout_ms` is below 0"));
    consumer.timeout_ms = 0;
    consumer.size = 0;
    assert_int_equal(mull_consumer_add(engine, &consumer), MULL_EINVAL);
    assert_non_null(strstr(told, "their `size` isn't set"));
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(options.policy);
}

static void options_out_of_range_are_refused(void **state)
{
    (void)state;
    test_engine r;
    test_engine_open(&r, "", "memory:", NULL);
    mull_engine *engine = r.engine;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    assert_int_equal(mull_engine_new(&engine, &options), MULL_EINVAL);
    assert_null(engine);
    options.policy = r.policy;
    options.grace_ms = -1;
    assert_int_equal(mull_engine_new(&engine, &options), MULL_EINVAL);
    options.grace_ms = 0;
    const mull_clock halves[] = {
        {.monotonic_ms = test_engine_now}, {.wall_ms = test_engine_wall}, {.data = &r}};
    for (size_t i = 0; i < COUNT(halves); i++) {
        options.clock = &halves[i];
        assert_int_equal(mull_engine_new(&engine, &options), MULL_EINVAL);
    }
    test_engine_close(&r);
}

static void it_starts_once_and_takes_no_consumer_once_it_stops(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, keep, &n);
    mull_consumer_options consumer = test_engine_consumer(keep, &n);
    consumer.name = "Late";
    assert_int_equal(mull_engine_start(r.engine), MULL_ESTATE);
    assert_int_equal(test_engine_publish(&r, "q", NULL), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(n.calls, 1);
    mull_done(r.engine, n.call, NULL);
    mull_stop(r.engine);
    test_engine_advance(&r, 0);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), MULL_ESTATE);
    assert_int_equal(mull_engine_start(r.engine), MULL_ESTATE);
    test_engine_close(&r);
}

/* ---- Running --------------------------------------------------------------------------------- */

static void end_and_stop(mull_engine *engine, mull_call call, const mull_message *message,
                         void *data)
{
    note *n = data;
    keep(engine, call, message, data);
    n->status = mull_engine_run(engine);
    mull_done(engine, call, NULL);
    mull_stop(engine);
}

/* run_one runs an engine of its own loop for one message, until that has stopped. */
static mull_engine *run_one(mull_policy *policy, mull_handler handler, note *n)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    mull_engine *engine;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    assert_int_equal(mull_engine_transport(engine, "t", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(handler, n);
    assert_int_equal(mull_consumer_add(engine, &consumer), 0);
    mull_message message = message_to("q");
    assert_int_equal(mull_publish(engine, "t", &message, 0, NULL, NULL), 0);
    assert_int_equal(mull_engine_run(engine), 0);
    return engine;
}

static void it_runs_once_and_not_within_itself(void **state)
{
    (void)state;
    note n = {0};
    mull_policy *policy = test_engine_policy("");
    mull_engine *engine = run_one(policy, end_and_stop, &n);
    assert_int_equal(n.calls, 1);
    assert_int_equal(n.status, MULL_ESTATE);
    assert_int_equal(mull_engine_run(engine), MULL_ESTATE);
    assert_int_equal(mull_engine_start(engine), MULL_ESTATE);
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(policy);
}

static void a_stop_before_the_start_ends_the_run_at_once(void **state)
{
    (void)state;
    note n = {0};
    mull_policy *policy = test_engine_policy("");
    mull_engine *engine = plain_engine(policy, &n, NULL);
    mull_stop(engine);
    mull_stop(engine);
    assert_int_equal(mull_engine_run(engine), 0);
    assert_int_equal(mull_engine_status(engine), 0);
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(policy);
}

static void count_stop(void *data)
{
    ((note *)data)->ends++;
}

/* A loop of its host's may run before the start. */
static void or_is_a_stop_without_a_start(void **state)
{
    (void)state;
    note n = {0};
    int closed = 0;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    mull_policy *policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.loop = &loop;
    options.stopped = count_stop;
    options.data = &n;
    mull_engine *engine;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    mull_stop(engine);
    assert_int_equal(n.ends, 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(n.ends, 1);
    assert_int_equal(mull_engine_start(engine), MULL_ESTATE);
    mull_engine_close(engine, count_end, &closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, 1);
    assert_int_equal(n.ends, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    mull_policy_free(policy);
}

static void only_a_tests_clock_is_turned(void **state)
{
    (void)state;
    note n = {0};
    mull_policy *policy = test_engine_policy("");
    mull_engine *engine = plain_engine(policy, &n, NULL);
    assert_int_equal(mull_engine_turn(engine), INT64_MAX);
    assert_int_equal(mull_engine_start(engine), 0);
    assert_int_equal(mull_engine_turn(engine), INT64_MAX);
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(policy);
}

static void turn_within(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    keep(engine, call, message, data);
    assert_int_equal(mull_engine_turn(engine), INT64_MAX);
    assert_int_equal(mull_engine_run(engine), MULL_ESTATE);
    mull_done(engine, call, NULL);
}

static void nor_within_a_turn(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, turn_within, &n);
    test_engine_publish(&r, "q", NULL);
    test_engine_advance(&r, 0);
    assert_int_equal(test_engine_counts(&r).done, 1);
    test_engine_close(&r);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void calls_that_are_made_up_are_done(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, keep, &n);
    test_engine_publish(&r, "q", NULL);
    test_engine_advance(&r, 0);
    const mull_call made_up[] = {
        0,          1,           n.call + 1,         n.call ^ (UINT64_C(1) << 60),
        UINT64_MAX, n.call >> 1, UINT64_C(0xffffff), n.call | 0xffffff};
    mull_message message = message_to("other");
    mull_error error = MULL_INIT(mull_error);
    error.type = "Oops";
    for (size_t i = 0; i < COUNT(made_up); i++) {
        assert_int_equal(mull_done(r.engine, made_up[i], NULL), MULL_EDONE);
        assert_int_equal(mull_done(r.engine, made_up[i], &error), MULL_EDONE);
        assert_int_equal(mull_send(r.engine, made_up[i], &message, 0), MULL_EDONE);
    }
    assert_int_equal(mull_send(r.engine, n.call, &message, -1), MULL_EINVAL);
    assert_int_equal(mull_done(r.engine, n.call, NULL), 0);
    assert_int_equal(mull_done(r.engine, n.call, &error), MULL_EDONE);
    assert_int_equal(mull_send(r.engine, n.call, &message, 0), MULL_EDONE);
    test_engine_advance(&r, 0);
    assert_int_equal(test_engine_counts(&r).done, 1);
    test_engine_close(&r);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* TO is the beginning of a message that would be taken. */
#define TO(name) .size = sizeof(mull_message), .queue = (name)

static void assert_all_answer(test_engine *r, mull_call call, const mull_message *messages,
                              size_t count, int wanted)
{
    for (size_t i = 0; i < count; i++) {
        print_message("%zu\n", i);
        assert_int_equal(mull_publish(r->engine, "t", &messages[i], 0, NULL, NULL), wanted);
        assert_int_equal(mull_send(r->engine, call, &messages[i], 0), wanted);
    }
}

static void messages_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const mull_header nameless[] = {{NULL, "a"}}, valueless[] = {{"a", NULL}},
                             empty[] = {{"", "a"}}, twice[] = {{"a", "1"}, {"a", "2"}},
                             broken[] = {{"a", "\xff"}};
    static const mull_message wrong[] = {
        {TO("other"), .headers = nameless, .header_count = 1},
        {TO("other"), .headers = valueless, .header_count = 1},
        {TO("other"), .headers = empty, .header_count = 1},
        {TO("other"), .headers = twice, .header_count = 2},
        {TO("other"), .headers = broken, .header_count = 1},
        {TO("other"), .header_count = 1},
        {TO("other"), .id = "\xc3("},
        {TO("other"), .type = "\xc3("},
        {TO("other"), .key = "\xc3("},
        {TO("\xc3(")},
        {TO("")},
        {TO(NULL)},
        {TO("other"), .body_size = 1},
    };
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, keep, &n);
    test_engine_publish(&r, "q", NULL);
    test_engine_advance(&r, 0);
    assert_all_answer(&r, n.call, wrong, COUNT(wrong), MULL_EINVAL);
    mull_message message = message_to("other");
    assert_int_equal(mull_publish(r.engine, "t", &message, -1, NULL, NULL), MULL_EINVAL);
    assert_int_equal(mull_publish(r.engine, "no", &message, 0, NULL, NULL), MULL_EINVAL);
    assert_int_equal(mull_queue_depth(r.engine, "no", "q", answer_depth, &n), MULL_EINVAL);
    assert_int_equal(mull_queue_depth(r.engine, "t", "", answer_depth, &n), MULL_EINVAL);
    mull_done(r.engine, n.call, NULL);
    test_engine_close(&r);
}

static void messages_that_are_too_big_are_refused(void **state)
{
    (void)state;
    static const mull_header one[] = {{"a", "1"}};
    char *text = decide_fixture_long_text();
    const mull_header long_name[] = {{text, "a"}}, long_value[] = {{"a", text}};
    const mull_message wrong[] = {
        {TO("other"), .id = text},
        {TO("other"), .type = text},
        {TO("other"), .key = text},
        {TO(text)},
        {TO("other"), .headers = long_name, .header_count = 1},
        {TO("other"), .headers = long_value, .header_count = 1},
        {TO("other"), .headers = one, .header_count = SIZE_MAX},
        {TO("other"), .body = "", .body_size = SIZE_MAX},
    };
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, keep, &n);
    test_engine_publish(&r, "q", NULL);
    test_engine_advance(&r, 0);
    assert_all_answer(&r, n.call, wrong, COUNT(wrong), MULL_ETOOBIG);
    mull_done(r.engine, n.call, NULL);
    test_engine_close(&r);
    free(text);
}

static void fail_oddly(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message;
    assert_int_equal(mull_done(engine, call, data), 0);
}

/* note_fields counts the errors that carry what has a name, and no more. */
static void note_fields(const mull_event *event, void *data)
{
    const mull_error *error = event->failure->error;
    assert_int_equal(event->kind, MULL_EVENT_DECIDED);
    assert_int_equal(error->lineage_count, 0);
    assert_int_equal(error->field_count, 4);
    for (size_t i = 0; i < error->field_count; i++)
        assert_non_null(error->fields[i].name);
    assert_int_equal(error->fields[1].value.kind, MULL_NIL);
    assert_int_equal(error->fields[2].value.count, 2);
    (*(int *)data)++;
}

/* The copy that an engine makes of an error leaves out what mull_decide would take for absent. */
static void errors_are_copied_with_care(void **state)
{
    (void)state;
    const mull_value items[] = {{.kind = (mull_kind)77, .as.string = (char *)8, .count = 2},
                                {.kind = MULL_STRING},
                                {.kind = MULL_LIST, .count = SIZE_MAX},
                                {.kind = MULL_MAP, .count = SIZE_MAX}};
    const mull_field entries[] = {{NULL, {.kind = MULL_INTEGER}}, {"a", items[0]}, {"b", items[3]}};
    const mull_field fields[] = {{"list", {.kind = MULL_LIST, .as.items = items, .count = 4}},
                                 {NULL, {.kind = MULL_STRING, .as.string = "a"}},
                                 {"odd", items[0]},
                                 {"map", {.kind = MULL_MAP, .as.fields = entries, .count = 3}},
                                 {"code", {.kind = MULL_INTEGER, .as.integer = 7}}};
    mull_error error = MULL_INIT(mull_error), cause = MULL_INIT(mull_error), small = cause;
    error.type = "Odd";
    error.fields = fields;
    error.field_count = COUNT(fields);
    error.lineage_count = 3;
    error.cause = &cause;
    cause.type = "Cause";
    cause.field_count = 3;
    cause.cause = &error;
    test_engine r = {.clock = {test_engine_now, test_engine_wall, &r}};
    int seen = 0;
    r.policy = test_engine_policy("local policy = require 'mulligan.policy'\n"
                                  "policy.bus():on('Odd', function(err)\n"
                                  "    local n = 0\n"
                                  "    for _ in pairs(err.list) do n = n + 1 end\n"
                                  "    for _ in pairs(err.map) do n = n + 1 end\n"
                                  "    return n == 0 and err.odd == nil and err.code == 7\n"
                                  "end):discard()\n");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r.policy;
    options.clock = &r.clock;
    options.event = note_fields;
    options.data = &seen;
    assert_int_equal(mull_engine_new(&r.engine, &options), 0);
    assert_int_equal(mull_engine_transport(r.engine, "t", "memory:"), 0);
    const mull_consumer_options consumer = test_engine_consumer(fail_oddly, &error);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    assert_int_equal(mull_engine_start(r.engine), 0);
    test_engine_publish(&r, "q", NULL);
    test_engine_advance(&r, 0);
    small.size = 8;
    error.cause = &small;
    test_engine_publish(&r, "q", NULL);
    test_engine_advance(&r, 0);
    assert_int_equal(test_engine_counts(&r).discarded, 2);
    assert_int_equal(seen, 2);
    test_engine_close(&r);
}

/* Names of a MiB are cut where they are written into a record, and nowhere else. */
static void names_may_be_long(void **state)
{
    (void)state;
    char *text = decide_fixture_long_text();
    mull_error error = MULL_INIT(mull_error);
    error.type = error.message = error.stack = text;
    test_engine r;
    test_engine_open(&r, "", "memory:", NULL);
    mull_consumer_options consumer = test_engine_consumer(fail_oddly, &error);
    assert_int_equal(mull_engine_transport(r.engine, text, "memory:"), 0);
    assert_int_equal(mull_engine_transport(r.engine, text, "memory:"), MULL_EINVAL);
    assert_int_equal(mull_engine_transport(r.engine, "u", text), MULL_EINVAL);
    consumer.name = consumer.transport = text;
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), MULL_EINVAL);
    consumer.name = "Unfit";
    consumer.transport = text + 1;
    assert_int_equal(mull_consumer_add(r.engine, &consumer), MULL_EINVAL);
    assert_int_equal(mull_engine_start(r.engine), 0);
    mull_message message = message_to("q");
    assert_int_equal(mull_publish(r.engine, text, &message, 0, test_engine_published, &r), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(test_engine_counts(&r).dead_lettered, 1);
    test_engine_close(&r);
    free(text);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* try_all calls everything that a closing engine answers. */
static void try_all(mull_engine *engine)
{
    note n = {0};
    mull_message message = message_to("q");
    mull_consumer_options consumer = test_engine_consumer(keep, &n);
    consumer.name = "Late";
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_publish(engine, "t", &message, 0, NULL, NULL), MULL_ESTATE);
    assert_int_equal(mull_queue_depth(engine, "t", "q", answer_depth, &n), MULL_ESTATE);
    assert_int_equal(mull_engine_transport(engine, "u", "memory:"), MULL_ESTATE);
    assert_int_equal(mull_consumer_add(engine, &consumer), MULL_ESTATE);
    assert_int_equal(mull_engine_start(engine), MULL_ESTATE);
    assert_int_equal(mull_done(engine, 4711, NULL), MULL_EDONE);
    assert_int_equal(mull_send(engine, 4711, &message, 0), MULL_EDONE);
    assert_int_equal(mull_engine_counts(engine, &counts), 0);
    assert_int_equal(mull_engine_status(engine), 0);
    mull_stop(engine);
    mull_stop_when_empty(engine);
    mull_engine_close(engine, NULL, NULL);
}

static void on_a_loop_of_its_hosts_a_closing_engine_answers(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    mull_policy *policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.loop = &loop;
    mull_engine *engine;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    assert_int_equal(mull_engine_transport(engine, "t", "memory:"), 0);
    assert_int_equal(mull_engine_run(engine), MULL_ESTATE);
    assert_int_equal(mull_engine_start(engine), 0);
    int closed = 0;
    mull_engine_close(engine, count_end, &closed);
    assert_int_equal(closed, 0);
    assert_int_equal(mull_engine_run(engine), MULL_ESTATE);
    try_all(engine);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    mull_policy_free(policy);
}

static void close_within(mull_engine *engine, mull_call call, const mull_message *message,
                         void *data)
{
    note *n = data;
    keep(engine, call, message, data);
    mull_engine_close(engine, count_end, &n->ends);
    assert_int_equal(n->ends, 0);
    try_all(engine);
    mull_message out = message_to("other");
    assert_int_equal(mull_send(engine, call, &out, 0), 0);
    assert_int_equal(mull_done(engine, call, NULL), 0);
    assert_int_equal(n->ends, 0);
}

static void closed_by_its_own_handler_it_is_gone_when_it_returns(void **state)
{
    (void)state;
    note n = {0};
    mull_policy *policy = test_engine_policy("");
    run_one(policy, close_within, &n);
    assert_int_equal(n.calls, 1);
    assert_int_equal(n.ends, 1);
    mull_policy_free(policy);
}

typedef struct closing {
    mull_engine *engine;
    int stops, ends;
} closing;

static void close_when_stopped(void *data)
{
    closing *c = data;
    c->stops++;
    mull_engine_close(c->engine, count_end, &c->ends);
    mull_engine_close(c->engine, count_end, &c->ends);
    assert_int_equal(c->ends, 0);
}

static void closed_twice_it_closes_once(void **state)
{
    (void)state;
    closing c = {0};
    mull_policy *policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.stopped = close_when_stopped;
    options.data = &c;
    assert_int_equal(mull_engine_new(&c.engine, &options), 0);
    assert_int_equal(mull_engine_transport(c.engine, "t", "memory:"), 0);
    mull_stop(c.engine);
    assert_int_equal(mull_engine_run(c.engine), 0);
    assert_int_equal(c.stops, 1);
    assert_int_equal(c.ends, 1);
    mull_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_texts_and_not_taken),
        cmocka_unit_test(what_options_lack_is_told),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(it_starts_once_and_takes_no_consumer_once_it_stops),
        cmocka_unit_test(it_runs_once_and_not_within_itself),
        cmocka_unit_test(a_stop_before_the_start_ends_the_run_at_once),
        cmocka_unit_test(or_is_a_stop_without_a_start),
        cmocka_unit_test(only_a_tests_clock_is_turned),
        cmocka_unit_test(nor_within_a_turn),
        cmocka_unit_test(calls_that_are_made_up_are_done),
        cmocka_unit_test(messages_that_cannot_be_are_refused),
        cmocka_unit_test(messages_that_are_too_big_are_refused),
        cmocka_unit_test(errors_are_copied_with_care),
        cmocka_unit_test(names_may_be_long),
        cmocka_unit_test(on_a_loop_of_its_hosts_a_closing_engine_answers),
        cmocka_unit_test(closed_by_its_own_handler_it_is_gone_when_it_returns),
        cmocka_unit_test(closed_twice_it_closes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
