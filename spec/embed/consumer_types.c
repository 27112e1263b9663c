/* consumer_types.c: consumers that share a queue by types of messages, where Lua doesn't reach:
 * what is refused and why, whose memory the types are, and no memory. What they do is in
 * spec/lua/consumer_types_spec.lua and spec/transport/conformance/types.lua. */
#include "counting_allocator.h"
#include "test_engine.h"

#include <string.h>

enum { SECOND_MS = 1000 };

typedef struct stage {
    test_engine test_engine;
    mull_engine *engine;
    counting_allocator memory;
    mull_call calls[16];
    int handled;
    char problem[512];
} stage;

static void keep_call(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    stage *s = data;
    (void)engine;
    (void)message;
    assert_true(s->handled < 16);
    s->calls[s->handled++] = call;
}

static void keep_problem(const char *file, int line, const char *text, void *data)
{
    stage *s = data;
    (void)file;
    (void)line;
    snprintf(s->problem, sizeof s->problem, "%s", text);
}

static void open_stage(stage *s, const char *url)
{
    test_engine *r = &s->test_engine;
    *s = (stage){.handled = 0};
    *r = (test_engine){.clock = {test_engine_now, test_engine_wall, r}};
    r->policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r->policy;
    options.clock = &r->clock;
    options.problem = keep_problem;
    options.data = s;
    options.seed = 1;
    options.allocator = counting_allocator_ops(&s->memory);
    assert_int_equal(mull_engine_new(&r->engine, &options), 0);
    s->engine = r->engine;
    assert_int_equal(mull_engine_transport(r->engine, "t", url), 0);
}

static void close_stage(stage *s)
{
    test_engine_close(&s->test_engine);
    assert_int_equal(s->memory.out, 0);
}

static int add(stage *s, const char *name, const char *const *types, size_t count)
{
    mull_consumer_options options = test_engine_consumer(keep_call, s);
    options.name = name;
    options.types = types;
    options.type_count = count;
    options.timeout_ms = MULL_NEVER;
    s->problem[0] = 0;
    return mull_consumer_add(s->engine, &options);
}

static void refuses(stage *s, const char *const *types, size_t count, const char *why)
{
    assert_int_equal(add(s, "X", types, count), MULL_EINVAL);
    assert_string_equal(s->problem, why);
}

static void publish(stage *s, const char *type)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.type = type;
    assert_int_equal(
        mull_publish(s->engine, "t", &message, 0, test_engine_published, &s->test_engine), 0);
}

static const char *const placed[] = {"Placed", "Cancelled"}, *const mail[] = {"Mail", "Placed"},
                         *const twice[] = {"A", "A"}, *const odd[] = {"A", NULL};

static void what_is_taken_is_refused(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, "memory:");
    assert_int_equal(add(&s, "A", placed, 2), 0);
    assert_int_equal(add(&s, "R", NULL, 0), 0);
    refuses(&s, mail, 2,
            "consumer 'X': messages of type 'Placed' on the queue 'q' are taken by consumer 'A' "
            "already; name each type once");
    refuses(&s, NULL, 0,
            "consumer 'X': where consumers of the queue 'q' name `types`, only one may take the "
            "rest, and 'R' does; give one of them types");
    refuses(&s, twice, 2, "consumer 'X': `types` names 'A' twice");
    refuses(&s, odd, 2,
            "consumer 'X': number 2 of `types` must be a text, which isn't empty, and UTF-8");
    refuses(&s, NULL, 1,
            "consumer 'X': number 1 of `types` must be a text, which isn't empty, and UTF-8");
    refuses(&s, odd, 0,
            "consumer 'X': `types` names none; leave it out to take what no other consumer of the "
            "queue names");
    assert_int_equal(add(&s, "X", mail, 1), 0);
    close_stage(&s);
}

static void where_two_compete_none_may_name_types(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, "memory:");
    assert_int_equal(add(&s, "A", NULL, 0), 0);
    assert_int_equal(add(&s, "B", NULL, 0), 0);
    refuses(&s, placed, 2,
            "consumer 'X': where consumers of the queue 'q' name `types`, only one may take the "
            "rest, and 'B' does; give one of them types");
    close_stage(&s);
}

static void types_need_delays(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, "memory:?delay=no");
    refuses(&s, placed, 2,
            "consumer 'X': transport 't' has no delayed delivery, which `types` need: a message "
            "that finds no room is put back for a second");
    close_stage(&s);
}

static void a_type_is_free_while_its_consumer_is_removed(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, "memory:");
    assert_int_equal(add(&s, "A", placed, 2), 0);
    assert_int_equal(mull_engine_start(s.engine), 0);
    publish(&s, "Placed");
    test_engine_advance(&s.test_engine, 0);
    assert_int_equal(s.handled, 1);
    assert_int_equal(mull_consumer_remove(s.engine, "A", NULL, NULL), 0);
    assert_int_equal(add(&s, "B", placed, 2), 0);
    publish(&s, "Placed");
    test_engine_advance(&s.test_engine, SECOND_MS);
    assert_int_equal(mull_done(s.engine, s.calls[0], NULL), 0);
    test_engine_advance(&s.test_engine, SECOND_MS);
    assert_int_equal(s.handled, 2);
    assert_int_equal(mull_done(s.engine, s.calls[1], NULL), 0);
    test_engine_advance(&s.test_engine, SECOND_MS);
    assert_int_equal(test_engine_counts(&s.test_engine).done, 2);
    close_stage(&s);
}

/* The rest stays with the reader when nobody names types any more, and others may compete again. */
static void the_rest_stays_when_types_leave(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, "memory:");
    assert_int_equal(add(&s, "A", placed, 2), 0);
    assert_int_equal(add(&s, "R", NULL, 0), 0);
    assert_int_equal(mull_engine_start(s.engine), 0);
    test_engine_advance(&s.test_engine, 0);
    assert_int_equal(mull_consumer_remove(s.engine, "A", NULL, NULL), 0);
    test_engine_advance(&s.test_engine, 0);
    assert_int_equal(add(&s, "B", NULL, 0), 0);
    test_engine_advance(&s.test_engine, 0);
    assert_int_equal(mull_consumer_pause(s.engine, "B"), 0);
    publish(&s, "Placed");
    test_engine_advance(&s.test_engine, 0);
    assert_int_equal(s.handled, 1);
    assert_int_equal(mull_done(s.engine, s.calls[0], NULL), 0);
    test_engine_advance(&s.test_engine, 0);
    close_stage(&s);
}

static void types_are_copied(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, "memory:");
    char text[] = "Placed";
    const char *types[] = {text};
    assert_int_equal(add(&s, "A", types, 1), 0);
    types[0] = NULL;
    memcpy(text, "Plants", sizeof text);
    assert_int_equal(mull_engine_start(s.engine), 0);
    publish(&s, "Placed");
    publish(&s, "Plants");
    test_engine_advance(&s.test_engine, 0);
    assert_int_equal(s.handled, 1);
    assert_int_equal(test_engine_counts(&s.test_engine).dead_lettered, 1);
    assert_int_equal(mull_done(s.engine, s.calls[0], NULL), 0);
    close_stage(&s);
}

/* Beside a consumer that reads its queue alone: a reader is made, which the other one joins. */
static void without_memory_none_is_added(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, "memory:");
    assert_int_equal(add(&s, "R", NULL, 0), 0);
    assert_int_equal(mull_engine_start(s.engine), 0);
    test_engine_advance(&s.test_engine, 0);
    int status = MULL_ENOMEM;
    for (int nth = 1; status == MULL_ENOMEM; nth++) {
        long out = s.memory.out;
        s.memory.fail_for = 1;
        s.memory.fail_at = s.memory.asked + nth;
        status = add(&s, "A", placed, 2);
        if (status != 0)
            assert_int_equal(s.memory.out, out);
        assert_true(nth < 30);
    }
    assert_int_equal(status, 0);
    s.memory.fail_at = 0;
    publish(&s, "Placed");
    publish(&s, "Other");
    test_engine_advance(&s.test_engine, 2 * SECOND_MS);
    assert_int_equal(s.handled, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mull_done(s.engine, s.calls[i], NULL), 0);
    test_engine_advance(&s.test_engine, 0);
    close_stage(&s);
}

static void without_memory_for_a_while_nothing_is_lost(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, "memory:");
    assert_int_equal(add(&s, "A", placed, 2), 0);
    assert_int_equal(add(&s, "R", NULL, 0), 0);
    assert_int_equal(mull_engine_start(s.engine), 0);
    test_engine_advance(&s.test_engine, 0);
    for (int i = 0; i < 4; i++)
        publish(&s, i % 2 ? "Placed" : "Other");
    s.memory.fail_for = FOR_GOOD;
    s.memory.fail_at = s.memory.asked + 1;
    assert_int_equal(mull_consumer_concurrency(s.engine, "A", 8), 0);
    test_engine_advance(&s.test_engine, SECOND_MS);
    assert_int_equal(s.handled, 0);
    s.memory.fail_at = 0;
    test_engine_advance(&s.test_engine, SECOND_MS);
    for (int ended = 0; ended < 4; ended++) {
        assert_true(ended < s.handled);
        assert_int_equal(mull_done(s.engine, s.calls[ended], NULL), 0);
        test_engine_advance(&s.test_engine, 2 * SECOND_MS);
    }
    assert_int_equal(test_engine_counts(&s.test_engine).done, 4);
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_is_refused),
        cmocka_unit_test(where_two_compete_none_may_name_types),
        cmocka_unit_test(types_need_delays),
        cmocka_unit_test(a_type_is_free_while_its_consumer_is_removed),
        cmocka_unit_test(the_rest_stays_when_types_leave),
        cmocka_unit_test(types_are_copied),
        cmocka_unit_test(without_memory_none_is_added),
        cmocka_unit_test(without_memory_for_a_while_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
