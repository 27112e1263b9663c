/* misuse_sizes.c: structs of another release's size. Those of a later one are larger: what is
 * behind ours is neither looked at nor touched, whatever is in it. Those that lack a byte of the
 * first release's are refused. Each lies at the very end of a block of its own, so that
 * AddressSanitizer sees a look beyond it. */
#include "decide_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MORE = 64, GARBAGE = 0x5a };

/* A case is a function that takes a struct with a size, and what it answers where all is well. */
typedef struct stage {
    decide_fixture decide_fixture;
    test_engine test_engine;
    mull_call call;
} stage;

typedef struct sized {
    const char *name;
    size_t size;
    void (*fill)(stage *s, void *made);
    int (*call)(stage *s, void *given);
} sized;

static void keep_call(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine;
    (void)message;
    *(mull_call *)data = call;
}

/* ---- What is given --------------------------------------------------------------------------- */

static void fill_policy(stage *s, void *made)
{
    (void)s;
    ((mull_policy_options *)made)->text = "";
}

static int load(stage *s, void *given)
{
    (void)s;
    mull_policy *policy;
    int status = mull_policy_load(&policy, given);
    mull_policy_free(policy);
    return status;
}

static void fill_engine(stage *s, void *made)
{
    ((mull_engine_options *)made)->policy = s->test_engine.policy;
}

static int new_engine(stage *s, void *given)
{
    (void)s;
    mull_engine *engine;
    int status = mull_engine_new(&engine, given);
    mull_engine_close(engine, NULL, NULL);
    return status;
}

static void fill_consumer(stage *s, void *made)
{
    mull_consumer_options *options = made;
    *options = test_engine_consumer(keep_call, &s->call);
    options->name = "Another";
}

static int add_consumer(stage *s, void *given)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = s->test_engine.policy;
    mull_engine *engine;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    assert_int_equal(mull_engine_transport(engine, "t", "memory:"), 0);
    int status = mull_consumer_add(engine, given);
    mull_engine_close(engine, NULL, NULL);
    return status;
}

static void fill_message(stage *s, void *made)
{
    (void)s;
    ((mull_message *)made)->queue = "other";
}

static int publish(stage *s, void *given)
{
    return mull_publish(s->test_engine.engine, "t", given, 0, NULL, NULL);
}

static int send_it(stage *s, void *given)
{
    return mull_send(s->test_engine.engine, s->call, given, 0);
}

static void fill_error(stage *s, void *made)
{
    (void)s;
    ((mull_error *)made)->type = "Plain";
}

static int done(stage *s, void *given)
{
    int status = mull_done(s->test_engine.engine, s->call, given);
    test_engine_advance(&s->test_engine, 0);
    return status;
}

static int decide_with_error(stage *s, void *given)
{
    s->decide_fixture.failure.error = given;
    return decide_fixture_decide(&s->decide_fixture);
}

static int decide_with_message(stage *s, void *given)
{
    s->decide_fixture.failure.message = given;
    return decide_fixture_decide(&s->decide_fixture);
}

static void fill_failure(stage *s, void *made)
{
    ((mull_failure *)made)->error = &s->decide_fixture.error;
}

static void fill_whole_failure(stage *s, void *made)
{
    mull_failure *failure = made;
    *failure = (mull_failure){
        .error = &s->decide_fixture.error, .attempt = 1, .calls = 1, .deliveries = 1};
    failure->flags = MULL_HAS_CHANCE;
}

static void fill_failure_of_ids(stage *s, void *made)
{
    mull_failure *failure = made;
    fill_whole_failure(s, made);
    failure->error = NULL;
    assert_int_equal(mull_type_intern(&failure->type, s->decide_fixture.policy, "Plain"), 0);
    assert_int_equal(mull_site_intern(&failure->site, s->decide_fixture.policy, "C", "t"), 0);
}

static int decide_on(stage *s, void *given)
{
    return mull_decide(s->decide_fixture.decider, given, &s->decide_fixture.verdict);
}

static void fill_nothing(stage *s, void *made)
{
    (void)s;
    (void)made;
}

static int decide_into(stage *s, void *given)
{
    return mull_decide(s->decide_fixture.decider, &s->decide_fixture.failure, given);
}

static int count_into(stage *s, void *given)
{
    return mull_engine_counts(s->test_engine.engine, given);
}

static const sized cases[] = {
    {"options of a policy", sizeof(mull_policy_options), fill_policy, load},
    {"options of an engine", sizeof(mull_engine_options), fill_engine, new_engine},
    {"options of a consumer", sizeof(mull_consumer_options), fill_consumer, add_consumer},
    {"a message to publish", sizeof(mull_message), fill_message, publish},
    {"a message to send", sizeof(mull_message), fill_message, send_it},
    {"a message in a failure", sizeof(mull_message), fill_message, decide_with_message},
    {"an error to end a call", sizeof(mull_error), fill_error, done},
    {"an error in a failure", sizeof(mull_error), fill_error, decide_with_error},
    {"a failure", sizeof(mull_failure), fill_failure, decide_on},
    {"a failure without defaults", sizeof(mull_failure), fill_whole_failure, decide_on},
    {"a failure of ids", sizeof(mull_failure), fill_failure_of_ids, decide_on},
    {"a verdict", sizeof(mull_verdict), fill_nothing, decide_into},
    {"counts", sizeof(mull_counts), fill_nothing, count_into},
};

/* ---- How large it is ------------------------------------------------------------------------- */

static void open_stage(stage *s)
{
    *s = (stage){.call = 0};
    decide_fixture_open(&s->decide_fixture);
    test_engine_open_plain(&s->test_engine, keep_call, &s->call);
    test_engine_publish(&s->test_engine, "q", NULL);
    test_engine_advance(&s->test_engine, 0);
    assert_true(s->call != 0);
}

static void close_stage(stage *s)
{
    mull_done(s->test_engine.engine, s->call, NULL);
    test_engine_close(&s->test_engine);
    decide_fixture_close(&s->decide_fixture);
}

/* call_with gives a case its struct, which says that it has `said` bytes and has `real` ones. */
static int call_with(const sized *c, size_t said, size_t real)
{
    stage s;
    open_stage(&s);
    char *block = malloc(real), *whole = calloc(1, c->size + MORE);
    assert_true(block && whole);
    memset(whole + c->size, GARBAGE, MORE);
    c->fill(&s, whole);
    memcpy(whole, &said, sizeof said);
    memcpy(block, whole, real);
    int status = c->call(&s, block);
    size_t says;
    memcpy(&says, block, sizeof says);
    assert_int_equal(says, said);
    for (size_t i = c->size; i < real; i++)
        assert_int_equal(block[i], GARBAGE);
    close_stage(&s);
    free(block);
    free(whole);
    return status;
}

static void one_of_this_release_is_taken(void **state)
{
    (void)state;
    for (const sized *c = cases; c < cases + COUNT(cases); c++) {
        print_message("%s\n", c->name);
        assert_int_equal(call_with(c, c->size, c->size), 0);
    }
}

static void of_a_larger_one_the_rest_is_let_be(void **state)
{
    (void)state;
    for (const sized *c = cases; c < cases + COUNT(cases); c++) {
        print_message("%s\n", c->name);
        assert_int_equal(call_with(c, c->size + MORE, c->size + MORE), 0);
        assert_int_equal(call_with(c, c->size + 1, c->size + 1), 0);
    }
}

static void one_that_lacks_a_byte_is_refused(void **state)
{
    (void)state;
    for (const sized *c = cases; c < cases + COUNT(cases); c++) {
        print_message("%s\n", c->name);
        assert_int_equal(call_with(c, c->size - 1, c->size - 1), MULL_EINVAL);
        assert_int_equal(call_with(c, sizeof(size_t), sizeof(size_t)), MULL_EINVAL);
        assert_int_equal(call_with(c, 0, c->size), MULL_EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_this_release_is_taken),
        cmocka_unit_test(of_a_larger_one_the_rest_is_let_be),
        cmocka_unit_test(one_that_lacks_a_byte_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
