/* check.c: what an engine refuses to start with, and to reload, of policies as plain data:
 * what is refused of policies that Lua writes is tested in spec/lua/. */
#include "fixtures.h"
#include "test_engine.h"

#include "base/alloc.h"
#include "decide/decide.h"

/* ---- A guest that compiles what the test says ------------------------------------------------ */

typedef struct scene {
    test_engine r;
    counting_allocator counting_allocator;
    mull_allocator allocator;
    const mull__plain *plain;
    int problems, line;
    char file[32], text[256]; /* the first one's */
} scene;

static int compile(void *data, mull__load *load)
{
    scene *s = data;
    snprintf(load->name, sizeof load->name, "%032x", (unsigned)*load->text);
    return mull__table_new(&load->table, &s->allocator, s->plain);
}

static void nothing_kept(void *data, void *source)
{
    (void)data, (void)source;
}

static void data_free(void *data)
{
    (void)data;
}

static const mull__language_ops guest = {
    .compile = compile, .source_free = nothing_kept, .data_free = data_free};

static void on_problem(const char *file, int line, const char *text, void *data)
{
    scene *s = data;
    if (s->problems++ > 0)
        return;
    s->line = line;
    snprintf(s->file, sizeof s->file, "%s", file ? file : "-");
    snprintf(s->text, sizeof s->text, "%s", text);
}

static void never_called(mull_engine *engine, mull_call call, const mull_message *message,
                         void *data)
{
    (void)engine, (void)call, (void)message, (void)data;
    fail();
}

/* start starts an engine with the consumers C and D by a policy of these scopes: its status. */
static int start(scene *s, const char *url, const mull__plain_scope *scopes, size_t count)
{
    const mull__plain plain = {.scopes = scopes, .scope_count = count};
    *s = (scene){.r.clock = {test_engine_now, test_engine_wall, &s->r}, .plain = &plain};
    s->allocator = counting_allocator_ops(&s->counting_allocator);
    mull_policy_options policy = MULL_INIT(mull_policy_options);
    policy.allocator = s->allocator;
    policy.text = "a";
    assert_int_equal(mull__policy_new(&s->r.policy, &policy, &guest, s), 0);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = s->r.policy;
    options.problem = on_problem;
    options.data = s;
    options.clock = &s->r.clock;
    options.seed = 1;
    options.allocator = s->allocator;
    assert_int_equal(mull_engine_new(&s->r.engine, &options), 0);
    assert_int_equal(mull_engine_transport(s->r.engine, "t", url), 0);
    mull_consumer_options consumer = test_engine_consumer(never_called, NULL);
    consumer.timeout_ms = 1000;
    assert_int_equal(mull_consumer_add(s->r.engine, &consumer), 0);
    consumer.name = "D";
    consumer.queue = "other";
    assert_int_equal(mull_consumer_add(s->r.engine, &consumer), 0);
    int status = mull_engine_start(s->r.engine);
    s->plain = NULL;
    return status;
}

static void finish(scene *s)
{
    test_engine_close(&s->r);
    assert_int_equal(s->counting_allocator.out, 0);
}

/* by_rule starts by one default rule of the bus. */
static int by_rule(const char *url, const mull__plain_rule *rule, int cause, scene *s)
{
    mull__plain_scope bus = {.kind = MULL__BUS};
    if (cause) {
        bus.cause_rules = rule;
        bus.cause_rule_count = 1;
    } else {
        bus.rules = rule;
        bus.rule_count = 1;
    }
    int status = start(s, url, &bus, 1);
    finish(s);
    return status;
}

/* ---- Retries and claims ---------------------------------------------------------------------- */

#define CLAIMS "memory:?claim_timeout=30s&hold=no"

static void the_longest_round_knows_every_jitter_and_hints(void **state)
{
    (void)state;
    scene s;
    mull__plain_rule rule = DEAD_LETTER_RULE("Error", 3);
    rule.retry = (mull__tier_config){.on = 1,
                                     .attempts = 3,
                                     .base_ms = 1000,
                                     .max_delay_ms = MULL__NO_CAP,
                                     .jitter_kind = MULL__JITTER_DECORRELATED};
    assert_int_equal(by_rule(CLAIMS, &rule, 0, &s), MULL_EREFUSED);
    assert_int_equal(s.line, 3);
    assert_non_null(strstr(s.text, "delays 39000 ms")); /* 3, 9 and 27 seconds */
    rule.retry.max_delay_ms = 8666; /* 3000 and twice the cap, with four calls: 24.332 s */
    assert_int_equal(by_rule(CLAIMS, &rule, 0, &s), 0);
    rule.retry.jitter_kind = MULL__JITTER_FULL;
    assert_int_equal(by_rule(CLAIMS, &rule, 0, &s), 0);
    rule.retry.hint = "retry_after"; /* three times the cap: 26 s is all there is */
    assert_int_equal(by_rule(CLAIMS, &rule, 0, &s), 0);
    rule.retry.max_delay_ms = 8667;
    assert_int_equal(by_rule(CLAIMS, &rule, 0, &s), MULL_EREFUSED);
    rule.retry.hint = NULL;
    assert_int_equal(by_rule(CLAIMS, &rule, 0, &s), 0);
}

/* ---- Rules that never work ------------------------------------------------------------------- */

static void cause_rules_are_looked_at_too(void **state)
{
    (void)state;
    scene s;
    mull__plain_rule rule = DEAD_LETTER_RULE("Timeout", 8);
    rule.queue = "other";
    assert_int_equal(by_rule("memory:", &rule, 1, &s), MULL_EREFUSED);
    assert_string_equal(s.file, "policy.lua");
    assert_int_equal(s.line, 8);
    assert_non_null(strstr(s.text, "consumer 'D' reads the queue 'other'"));
    rule.queue = "parked";
    assert_int_equal(by_rule("memory:", &rule, 1, &s), 0);
    rule.retry = (mull__tier_config)RETRY(3);
    assert_int_equal(by_rule("memory:?retry=no", &rule, 1, &s), MULL_EREFUSED);
    assert_int_equal(s.line, 8);
}

static void redeliveries_without_end_need_a_delay_as_well(void **state)
{
    (void)state;
    scene s;
    mull__plain_rule rule = DEAD_LETTER_RULE("Error", 3);
    rule.redeliver = (mull__tier_config)REDELIVER(MULL_UNLIMITED);
    assert_int_equal(by_rule("memory:?delay=no", &rule, 0, &s), MULL_EREFUSED);
    assert_non_null(strstr(s.text, "no delayed delivery"));
    assert_int_equal(by_rule("memory:", &rule, 0, &s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_round_knows_every_jitter_and_hints),
        cmocka_unit_test(cause_rules_are_looked_at_too),
        cmocka_unit_test(redeliveries_without_end_need_a_delay_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
