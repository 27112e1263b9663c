/* one_generation.c: a message that died with its owners too often is judged by one generation, at
 * whatever moment another takes its place. The first policy ends such a message before its handler,
 * the second calls that: what ends it by the rules of the second, uncalled, is of both. */
#include "sqlite_engine.h"

static const char MANY[] = "local bus = require('mulligan.policy').bus()\n"
                           "bus:max_deliveries(20)\n"
                           "bus:default():discard('by many')\n";
static const char FEW[] = "local bus = require('mulligan.policy').bus()\n"
                          "bus:max_deliveries(1)\n"
                          "bus:default():discard('by few')\n";

typedef struct stage {
    test_engine test_engine;
    pthread_t loop;
    int moments; /* until the policy is reloaded; 0: it isn't */
    int calls, verdicts;
    mull_action action;
    mull_reason reason;
    char generation[33];
} stage;

/* The engine's loop asks the clock at many moments (and so does the store's worker, which counts
 * for none). At one of them the policy changes, as if another thread had reloaded it. */
static int64_t wall(void *data)
{
    stage *s = data;
    if (pthread_equal(pthread_self(), s->loop) && s->moments > 0 && --s->moments == 0)
        assert_int_equal(mull_policy_reload(s->test_engine.policy, MANY, 0), 0);
    return test_engine_wall(&s->test_engine);
}

static int64_t now(void *data)
{
    return test_engine_now(&((stage *)data)->test_engine);
}

static void take_event(const mull_event *event, void *data)
{
    stage *s = data;
    if (event->kind != MULL_EVENT_DECIDED)
        return;
    s->verdicts++;
    s->action = event->verdict->action;
    s->reason = event->verdict->reason;
    snprintf(s->generation, sizeof s->generation, "%s", event->generation);
}

static void end_badly(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    const mull_error error = {.size = sizeof error, .type = "E"};
    (void)message;
    ((stage *)data)->calls++;
    assert_int_equal(mull_done(engine, call, &error), 0);
}

static void stage_open(stage *s)
{
    *s = (stage){.test_engine.clock = {now, wall, s}, .loop = pthread_self()};
    s->test_engine.policy = test_engine_policy(FEW);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = s->test_engine.policy;
    options.problem = test_engine_problem;
    options.event = take_event;
    options.data = s;
    options.clock = &s->test_engine.clock;
    options.seed = 1;
    assert_int_equal(mull_engine_new(&s->test_engine.engine, &options), 0);
    assert_int_equal(mull_engine_transport(s->test_engine.engine, "t", url), 0);
    mull_consumer_options consumer = test_engine_consumer(end_badly, s);
    assert_int_equal(mull_consumer_add(s->test_engine.engine, &consumer), 0);
}

/* publish_dead leaves a message in the file that died with its owner once. */
static void publish_dead(stage *s)
{
    assert_int_equal(test_engine_publish(&s->test_engine, "q", NULL), 0);
    test_engine_advance(&s->test_engine, 0);
    assert_int_equal(s->test_engine.published, 1);
    sqlite3 *db = look_in();
    sql(db, "UPDATE messages SET deliveries = 1");
    sqlite3_close(db);
}

/* judge has the policy change at the n-th moment, and counts the calls of the handler. 0: that
 * moment never came. */
static int judge(int moment, int *calls)
{
    stage s;
    char first[33], second[33];
    stage_open(&s);
    publish_dead(&s);
    mull_policy_generation(s.test_engine.policy, first);
    s.moments = moment;
    assert_int_equal(mull_engine_start(s.test_engine.engine), 0);
    test_engine_advance(&s.test_engine, 0);
    mull_policy_generation(s.test_engine.policy, second);
    assert_int_equal(strcmp(first, second) == 0, s.moments > 0);
    assert_int_equal(s.verdicts, 1);
    if (s.calls == 0) {
        assert_int_equal(s.reason, MULL_REASON_MAX_DELIVERIES);
        assert_int_equal(s.action, MULL_DEAD_LETTER);
        assert_string_equal(s.generation, first);
    } else {
        assert_int_equal(s.calls, 1);
        assert_int_equal(s.action, MULL_DISCARD);
        assert_string_equal(s.generation, second);
    }
    *calls += s.calls;
    test_engine_close(&s.test_engine);
    return s.moments == 0;
}

static void at_every_moment_one_generation_judges(void **state)
{
    int calls = 0, moment = 1;
    for (; judge(moment, &calls); moment++) {
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
    assert_in_range(calls, 1, moment - 2); /* the moments are on both sides */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_every_moment_one_generation_judges, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
