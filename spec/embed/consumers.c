/* consumers.c: consumers while an engine runs, and its snapshot, where Lua doesn't reach: calls out
 * of handlers, what isn't there, an engine that is closed, and no memory. What they do is in
 * spec/lua/consumers_spec.lua. */
#include "counting_allocator.h"
#include "test_engine.h"

enum { SECOND_MS = 1000 };

typedef struct stage {
    test_engine test_engine;
    mull_engine *engine;
    counting_allocator memory;
    mull_call calls[64];
    int handled, removals, removed_in_call, closed;
    int removed_status;
} stage;

static void on_removed(int status, void *data)
{
    stage *s = data;
    s->removals++;
    s->removed_status = status;
}

static void keep_call(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    stage *s = data;
    (void)engine;
    (void)message;
    assert_true(s->handled < 64);
    s->calls[s->handled++] = call;
}

static void end_call(stage *s, int number)
{
    assert_int_equal(mull_done(s->engine, s->calls[number], NULL), 0);
}

static void advance(stage *s, int64_t ms)
{
    test_engine_advance(&s->test_engine, ms);
}

static void publish(stage *s, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(test_engine_publish(&s->test_engine, "q", NULL), 0);
    advance(s, 0);
}

static mull_why_not why_not(stage *s)
{
    mull_why_not why = MULL_WHY_LAST;
    assert_int_equal(mull_consumer_why_not(s->engine, "C", &why), 0);
    return why;
}

/* open_with starts an engine on memory, which it has from the stage, with the consumer "C". */
static void open_with(stage *s, mull_handler handler, uint32_t concurrency)
{
    test_engine *r = &s->test_engine;
    *s = (stage){.removed_status = 1};
    *r = (test_engine){.clock = {test_engine_now, test_engine_wall, r}};
    r->policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r->policy;
    options.clock = &r->clock;
    options.seed = 1;
    options.allocator = counting_allocator_ops(&s->memory);
    assert_int_equal(mull_engine_new(&r->engine, &options), 0);
    s->engine = r->engine;
    assert_int_equal(mull_engine_transport(r->engine, "t", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(handler, s);
    consumer.concurrency = concurrency;
    consumer.timeout_ms = MULL_NEVER;
    assert_int_equal(mull_consumer_add(r->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(r->engine), 0);
    advance(s, 0);
}

static void close_stage(stage *s)
{
    test_engine_close(&s->test_engine);
    assert_int_equal(s->memory.out, 0);
}

/* ---- Out of handlers ------------------------------------------------------------------------- */

static void pause_in_call(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    keep_call(engine, call, message, data);
    assert_int_equal(mull_consumer_pause(engine, "C"), 0);
    assert_int_equal(mull_done(engine, call, NULL), 0);
}

static void a_handler_may_pause_its_consumer(void **state)
{
    (void)state;
    stage s;
    open_with(&s, pause_in_call, 4);
    publish(&s, 8);
    assert_int_equal(s.handled, 1); /* those that could have begun on the same turn, too */
    assert_int_equal(why_not(&s), MULL_WHY_PAUSED);
    assert_int_equal(mull_consumer_resume(s.engine, "C"), 0);
    advance(&s, 0);
    assert_int_equal(s.handled, 2);
    assert_int_equal(test_engine_counts(&s.test_engine).done, 2);
    close_stage(&s);
}

static void grow_in_call(mull_engine *engine, mull_call call, const mull_message *message,
                         void *data)
{
    keep_call(engine, call, message, data);
    if (((stage *)data)->handled > 1)
        return;
    assert_int_equal(mull_consumer_concurrency(engine, "C", 6), 0);
    assert_int_equal(mull_consumer_concurrency(engine, "C", 3), 0);
}

static void a_handler_may_change_its_concurrency(void **state)
{
    (void)state;
    stage s;
    open_with(&s, grow_in_call, 1);
    publish(&s, 8);
    assert_int_equal(s.handled, 1); /* a new subscription waits for it */
    assert_int_equal(why_not(&s), MULL_WHY_QUEUE_WAITING);
    end_call(&s, 0);
    advance(&s, SECOND_MS);
    assert_int_equal(s.handled, 4);
    assert_int_equal(why_not(&s), MULL_WHY_CONCURRENCY);
    for (int i = 1; i < s.handled; i++)
        end_call(&s, i);
    advance(&s, SECOND_MS);
    assert_int_equal(s.handled, 7);
    for (int i = 4; i < s.handled; i++)
        end_call(&s, i);
    advance(&s, SECOND_MS);
    end_call(&s, 7);
    advance(&s, SECOND_MS);
    assert_int_equal(test_engine_counts(&s.test_engine).done, 8);
    close_stage(&s);
}

static void remove_in_call(mull_engine *engine, mull_call call, const mull_message *message,
                           void *data)
{
    stage *s = data;
    keep_call(engine, call, message, data);
    assert_int_equal(mull_consumer_remove(engine, "C", on_removed, s), 0);
    assert_int_equal(mull_consumer_remove(engine, "C", on_removed, s), MULL_ESTATE);
    assert_int_equal(mull_done(engine, call, NULL), 0);
    s->removed_in_call = s->removals;
}

static void a_handler_may_remove_its_consumer(void **state)
{
    (void)state;
    stage s;
    open_with(&s, remove_in_call, 4);
    publish(&s, 8);
    advance(&s, SECOND_MS);
    assert_int_equal(s.removed_in_call, 0);
    assert_int_equal(s.removals, 1);
    assert_int_equal(s.removed_status, 0);
    assert_int_equal(s.handled, 1);
    mull_why_not why = MULL_WHY_LAST;
    assert_int_equal(mull_consumer_why_not(s.engine, "C", &why), MULL_EINVAL);
    assert_int_equal(why, MULL_WHY_LAST);
    close_stage(&s);
}

/* ---- Its transport, about to deliver ----------------------------------------------------------
 */

/* pause_once_safe is told in the turn in which its transport delivers the message, too. */
static void pause_once_safe(int status, void *data)
{
    stage *s = data;
    assert_int_equal(status, 0);
    assert_int_equal(mull_consumer_pause(s->engine, "C"), 0);
}

static void remove_once_safe(int status, void *data)
{
    stage *s = data;
    assert_int_equal(status, 0);
    assert_int_equal(mull_consumer_remove(s->engine, "C", on_removed, s), 0);
}

static void publish_then(stage *s, mull_published_fn published)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    assert_int_equal(mull_publish(s->engine, "t", &message, 0, published, s), 0);
    advance(s, SECOND_MS);
}

/* With credit left, what is given back would be handed out again in the same turn, for ever. */
static void one_that_begins_no_more_has_no_credit_at_once(void **state)
{
    (void)state;
    stage s;
    open_with(&s, keep_call, 2);
    publish_then(&s, pause_once_safe);
    assert_int_equal(s.handled, 0);
    assert_int_equal(mull_consumer_resume(s.engine, "C"), 0);
    advance(&s, SECOND_MS);
    assert_int_equal(s.handled, 1);
    end_call(&s, 0);
    publish_then(&s, remove_once_safe);
    assert_int_equal(s.handled, 1);
    assert_int_equal(s.removals, 1);
    close_stage(&s);
}

/* ---- What isn't there, what is closed -------------------------------------------------------- */

static void on_closed(void *data)
{
    ((stage *)data)->closed++;
}

/* assert_all asks all that there is of a consumer. */
static void assert_all(stage *s, const char *name, int answer)
{
    mull_why_not why;
    assert_int_equal(mull_consumer_pause(s->engine, name), answer);
    assert_int_equal(mull_consumer_resume(s->engine, name), answer);
    assert_int_equal(mull_consumer_concurrency(s->engine, name, 1), answer);
    assert_int_equal(mull_consumer_why_not(s->engine, name, &why), answer);
    assert_int_equal(mull_consumer_remove(s->engine, name, on_removed, s), answer);
}

static void a_name_that_is_not_there_is_refused(void **state)
{
    (void)state;
    stage s;
    open_with(&s, keep_call, 1);
    assert_all(&s, "c", MULL_EINVAL);
    assert_all(&s, "", MULL_EINVAL);
    assert_int_equal(mull_consumer_concurrency(s.engine, "C", 0), MULL_EINVAL);
    close_stage(&s);
    assert_int_equal(s.removals, 0);
}

static void close_in_call(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    stage *s = data;
    keep_call(engine, call, message, data);
    mull_snapshot *snapshot;
    mull_engine_close(engine, on_closed, s);
    const mull_consumer_options options = test_engine_consumer(keep_call, s);
    assert_int_equal(mull_consumer_add(engine, &options), MULL_ESTATE);
    assert_all(s, "C", MULL_ESTATE);
    assert_int_equal(mull_engine_snapshot(engine, &snapshot), 0);
    assert_int_equal(snapshot->consumers[0]->in_flight, 1);
    assert_int_equal(mull_done(engine, call, NULL), 0);
    mull_snapshot_free(snapshot);
}

static void one_that_is_closed_says_so(void **state)
{
    (void)state;
    stage s;
    open_with(&s, close_in_call, 1);
    assert_int_equal(test_engine_publish(&s.test_engine, "q", NULL), 0);
    mull_engine_turn(s.engine);
    assert_int_equal(s.closed, 1);
    mull_policy_free(s.test_engine.policy);
    assert_int_equal(s.memory.out, 0);
}

static void a_close_ends_a_removal(void **state)
{
    (void)state;
    stage s;
    open_with(&s, keep_call, 1);
    publish(&s, 2);
    assert_int_equal(mull_consumer_remove(s.engine, "C", on_removed, &s), 0);
    mull_stop(s.engine);
    advance(&s, 0);
    assert_int_equal(s.removals, 0);
    end_call(&s, 0);
    advance(&s, SECOND_MS);
    close_stage(&s);
    assert_int_equal(s.removals, 1);
    assert_int_equal(s.removed_status, MULL_ESTATE);
}

static void one_may_be_changed_before_the_start(void **state)
{
    (void)state;
    stage s = {.removed_status = 1};
    test_engine *r = &s.test_engine;
    test_engine_open(r, "", "memory:", NULL);
    s.engine = r->engine;
    const mull_consumer_options consumer = test_engine_consumer(keep_call, &s);
    assert_int_equal(mull_consumer_add(r->engine, &consumer), 0);
    assert_int_equal(why_not(&s), MULL_WHY_STOPPING);
    assert_int_equal(mull_consumer_concurrency(r->engine, "C", 3), 0);
    assert_int_equal(mull_consumer_pause(r->engine, "C"), 0);
    assert_int_equal(mull_consumer_remove(r->engine, "C", on_removed, &s), 0);
    advance(&s, 0);
    assert_int_equal(s.removals, 1);
    assert_int_equal(mull_consumer_add(r->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(r->engine), 0);
    publish(&s, 2);
    assert_int_equal(s.handled, 1);
    end_call(&s, 0);
    test_engine_close(r);
}

/* Its own queue is that of its dead letters: no engine starts with such a one. */
static void one_that_was_removed_before_the_start_keeps_no_name_and_refuses_none(void **state)
{
    (void)state;
    stage s = {.removed_status = 1};
    test_engine *r = &s.test_engine;
    test_engine_open(r, "", "memory:", NULL);
    s.engine = r->engine;
    mull_consumer_options consumer = test_engine_consumer(keep_call, &s);
    consumer.queue = "error";
    assert_int_equal(mull_consumer_add(r->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(r->engine), MULL_EREFUSED);
    assert_int_equal(mull_consumer_remove(r->engine, "C", on_removed, &s), 0);
    assert_int_equal(mull_consumer_remove(r->engine, "C", NULL, NULL), MULL_ESTATE);
    consumer.queue = "q";
    assert_int_equal(mull_consumer_add(r->engine, &consumer), 0);
    assert_int_equal(mull_consumer_add(r->engine, &consumer), MULL_EINVAL);
    assert_int_equal(mull_engine_start(r->engine), 0);
    assert_int_equal(s.removals, 0);
    publish(&s, 2);
    assert_int_equal(s.removals, 1);
    assert_int_equal(s.removed_status, 0);
    assert_int_equal(s.handled, 1);
    end_call(&s, 0);
    test_engine_close(r);
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static void calls_are_counted_by_how_long_they_lasted(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        int bucket;
    } lasted[] = {{0, 0},    {1, 0},        {2, 1},        {4, 1},
                  {5, 2},    {16, 2},       {17, 3},       {1024, 5},
                  {1025, 6}, {1048576, 10}, {1048577, 11}, {INT64_C(1) << 40, 11}};
    stage s;
    uint64_t expected[MULL_TIME_BUCKETS] = {0};
    open_with(&s, keep_call, 1);
    for (int i = 0; i < (int)(sizeof lasted / sizeof *lasted); i++) {
        mull_snapshot *snapshot;
        publish(&s, 1);
        s.test_engine.now_ms += lasted[i].ms;
        end_call(&s, i);
        advance(&s, 0);
        expected[lasted[i].bucket]++;
        assert_int_equal(mull_engine_snapshot(s.engine, &snapshot), 0);
        assert_memory_equal(snapshot->consumers[0]->times, expected, sizeof expected);
        mull_snapshot_free(snapshot);
    }
    close_stage(&s);
}

#define FACE       "\xf0\x9f\x98\x80"
#define FACES      FACE FACE FACE FACE FACE FACE FACE FACE
#define MANY_FACES FACES FACES FACES FACES FACES

/* A text is cut at a character, whatever it ends in; what is no character is a question mark. */
static void errors_are_cut_at_a_character(void **state)
{
    (void)state;
    static const char *const types[] = {MANY_FACES, "a" MANY_FACES, "ab" MANY_FACES,
                                        "abc" MANY_FACES, "abcd" MANY_FACES};
    static const size_t sizes[] = {124, 125, 126, 127, 124};
    stage s;
    open_with(&s, keep_call, 1);
    for (int i = 0; i < 5; i++) {
        mull_snapshot *snapshot;
        const mull_error error = {.size = sizeof error, .type = types[i], .message = "a\xff\x80z"};
        publish(&s, 1);
        assert_int_equal(mull_done(s.engine, s.calls[i], &error), 0);
        advance(&s, 0);
        assert_int_equal(mull_engine_snapshot(s.engine, &snapshot), 0);
        const mull_consumer_snapshot *c = snapshot->consumers[0];
        assert_int_equal(strlen(c->error_type), sizes[i]);
        assert_memory_equal(c->error_type, types[i], sizes[i]);
        assert_string_equal(c->error_text, "a??z");
        assert_int_equal(c->reasons[MULL_REASON_NO_RULE], i + 1);
        mull_snapshot_free(snapshot);
    }
    close_stage(&s);
}

/* ---- No memory ------------------------------------------------------------------------------- */

static void fail_from_now(stage *s, long requests)
{
    s->memory.fail_for = requests;
    s->memory.fail_at = s->memory.asked + 1;
}

static void without_memory_none_is_added(void **state)
{
    (void)state;
    stage s;
    open_with(&s, keep_call, 1);
    mull_consumer_options options = test_engine_consumer(keep_call, &s);
    options.name = "D";
    int status = MULL_ENOMEM;
    for (int nth = 1; status == MULL_ENOMEM; nth++) {
        long out = s.memory.out;
        s.memory.fail_for = 1;
        s.memory.fail_at = s.memory.asked + nth;
        status = mull_consumer_add(s.engine, &options);
        if (status != 0)
            assert_int_equal(s.memory.out, out);
        assert_true(nth < 20);
    }
    assert_int_equal(status, 0);
    s.memory.fail_at = 0;
    close_stage(&s);
}

static void without_memory_there_is_no_snapshot(void **state)
{
    (void)state;
    stage s;
    mull_snapshot *snapshot = (void *)&s;
    open_with(&s, keep_call, 1);
    fail_from_now(&s, 1);
    assert_int_equal(mull_engine_snapshot(s.engine, &snapshot), MULL_ENOMEM);
    assert_null(snapshot);
    assert_int_equal(mull_engine_snapshot(s.engine, &snapshot), 0);
    assert_non_null(snapshot);
    test_engine_close(&s.test_engine);
    assert_int_equal(s.memory.out, 1); /* it outlives its engine */
    assert_string_equal(snapshot->consumers[0]->queue, "q");
    mull_snapshot_free(snapshot);
    assert_int_equal(s.memory.out, 0);
}

static void without_memory_a_subscription_is_had_later(void **state)
{
    (void)state;
    stage s;
    open_with(&s, keep_call, 1);
    fail_from_now(&s, FOR_GOOD);
    assert_int_equal(mull_consumer_concurrency(s.engine, "C", 8), 0);
    advance(&s, SECOND_MS);
    assert_int_equal(why_not(&s), MULL_WHY_QUEUE_WAITING);
    s.memory.fail_at = 0;
    advance(&s, SECOND_MS);
    assert_int_equal(why_not(&s), MULL_WHY_NOTHING_THERE);
    publish(&s, 8);
    assert_int_equal(s.handled, 8);
    for (int i = 0; i < 8; i++)
        end_call(&s, i);
    advance(&s, 0);
    close_stage(&s);
}

static void fail_in_call(mull_engine *engine, mull_call call, const mull_message *message,
                         void *data)
{
    const mull_error error = {.size = sizeof error, .type = "Odd"};
    stage *s = data;
    (void)message;
    s->handled++;
    while (mull_done(engine, call, &error) == MULL_ENOMEM)
        continue;
}

/* A rule's first verdict takes memory: where that is refused, the rest is as always. */
static void without_memory_a_rule_is_not_counted(void **state)
{
    (void)state;
    int counted = 0, uncounted = 0;
    for (int nth = 1; nth <= 40; nth++) {
        stage s;
        mull_snapshot *snapshot;
        open_with(&s, fail_in_call, 1);
        assert_int_equal(mull_policy_reload(s.test_engine.policy,
                                            "require('mulligan.policy').bus():default():discard()",
                                            0),
                         0);
        publish(&s, 1); /* its claim and handlers have had their memory */
        assert_int_equal(s.handled, 1);
        mull_engine_snapshot(s.engine, &snapshot);
        assert_int_equal(snapshot->rule_count, 1);
        assert_int_equal(snapshot->rules[0]->discarded, 1);
        mull_snapshot_free(snapshot);
        assert_int_equal(
            mull_policy_reload(s.test_engine.policy,
                               "\nrequire('mulligan.policy').bus():default():discard()", 0),
            0);
        s.memory.fail_for = 1;
        s.memory.fail_at = s.memory.asked + nth;
        test_engine_publish(&s.test_engine, "q", NULL);
        advance(&s, SECOND_MS);
        s.memory.fail_at = 0;
        assert_int_equal(mull_engine_snapshot(s.engine, &snapshot), 0);
        uint64_t discarded = snapshot->consumers[0]->discarded;
        counted += discarded == 2 && snapshot->rule_count == 2;
        uncounted += discarded == 2 && snapshot->rule_count == 1;
        mull_snapshot_free(snapshot);
        close_stage(&s);
    }
    assert_true(counted > 0);
    assert_int_equal(uncounted, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handler_may_pause_its_consumer),
        cmocka_unit_test(a_handler_may_change_its_concurrency),
        cmocka_unit_test(a_handler_may_remove_its_consumer),
        cmocka_unit_test(one_that_begins_no_more_has_no_credit_at_once),
        cmocka_unit_test(a_name_that_is_not_there_is_refused),
        cmocka_unit_test(one_that_is_closed_says_so),
        cmocka_unit_test(a_close_ends_a_removal),
        cmocka_unit_test(one_may_be_changed_before_the_start),
        cmocka_unit_test(one_that_was_removed_before_the_start_keeps_no_name_and_refuses_none),
        cmocka_unit_test(calls_are_counted_by_how_long_they_lasted),
        cmocka_unit_test(errors_are_cut_at_a_character),
        cmocka_unit_test(without_memory_none_is_added),
        cmocka_unit_test(without_memory_there_is_no_snapshot),
        cmocka_unit_test(without_memory_a_subscription_is_had_later),
        cmocka_unit_test(without_memory_a_rule_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
