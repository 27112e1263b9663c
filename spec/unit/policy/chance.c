/* chance.c: a failure that comes without a chance is decided as the same one with the hash
 * of its message's id, by names and by ids: where the fast path draws by it, and where a copy gets
 * it, which functions and events then see. */
#include "base/hash.h"
#include "test_engine.h"

static const char policy_text[] =
    "local policy = require 'mulligan.policy'\n"
    "local bus = policy.bus()\n"
    "bus:on('Plain'):retry(5, '1h'):then_redeliver(20, '1h')\n"
    "bus:on('Wanted', { status = 503, region = 'eu' }):retry(5, '2h')\n"
    "bus:on('Long'):retry(20, '3h')\n"
    "bus:on('Asked', function(err) return err.status == 503 end):retry(5, '4h')\n"
    "policy.consumer('c'):on('Plain'):retry(5, '5h')\n";

static const mull_field fields[] = {
    {"status", {.kind = MULL_INTEGER, .as.integer = 503}},
    {"region", {.kind = MULL_STRING, .as.string = "eu"}},
};

/* sight is a policy with its decider, and how many of the verdicts waited. */
typedef struct sight {
    mull_policy *policy;
    mull_decider *decider;
    long waited;
} sight;

static mull_verdict decide(const sight *s, const mull_failure *failure)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(s->decider, failure, &verdict), 0);
    return verdict;
}

/* The chance that isn't given is there, and wrong: nobody may look at it. */
static void is_the_hash_of(sight *s, mull_failure failure, const char *id)
{
    failure.flags = 0;
    failure.chance = 0x5555555555555555u;
    const mull_verdict without = decide(s, &failure);
    failure.flags = MULL_HAS_CHANCE;
    failure.chance = mull__hash_text(id);
    const mull_verdict with = decide(s, &failure);
    assert_int_equal(without.action, with.action);
    assert_int_equal(without.delay_ms, with.delay_ms);
    assert_int_equal(without.step, with.step);
    assert_int_equal(without.rule.line, with.rule.line);
    s->waited += with.delay_ms > 0;
}

static void by_names_and_ids(sight *s, mull_failure failure, const char *id)
{
    is_the_hash_of(s, failure, id);
    assert_int_equal(mull_type_intern(&failure.type, s->policy, failure.error->type), 0);
    is_the_hash_of(s, failure, id);
    assert_int_equal(mull_site_intern(&failure.site, s->policy, failure.consumer, NULL), 0);
    is_the_hash_of(s, failure, id);
    failure.error = NULL;
    is_the_hash_of(s, failure, id);
}

static void with_each_message(sight *s, mull_failure failure)
{
    static const char *const ids[] = {"", "m-1", "m-2", "01J9ZQ4T7X8M2V5K3B6N0C1D2E"};
    by_names_and_ids(s, failure, "");
    mull_message message = MULL_INIT(mull_message);
    failure.message = &message;
    by_names_and_ids(s, failure, "");
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        message.id = ids[i];
        by_names_and_ids(s, failure, ids[i]);
    }
}

static void a_chance_that_is_not_given_is_the_hash_of_the_id(void **state)
{
    (void)state;
    static const char *const types[] = {"Plain", "Wanted", "Long", "Asked", "Nobody"};
    static const char *const consumers[] = {NULL, "c"};
    static const int64_t attempts[] = {0, 1, 2, 6, 12};
    sight s = {0};
    s.policy = test_engine_policy(policy_text);
    assert_int_equal(mull_decider_new(&s.decider, s.policy), 0);
    for (size_t i = 0; i < 5 * 2 * 5; i++) {
        mull_error error = {.size = sizeof error, .type = types[i % 5]};
        error.fields = fields;
        error.field_count = 2;
        mull_failure failure = MULL_INIT(mull_failure);
        failure.error = &error;
        failure.consumer = consumers[i / 5 % 2];
        failure.attempt = attempts[i / 10];
        failure.calls = failure.deliveries = failure.attempt;
        with_each_message(&s, failure);
    }
    assert_true(s.waited > 300);
    mull_decider_free(s.decider);
    mull_policy_free(s.policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chance_that_is_not_given_is_the_hash_of_the_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
