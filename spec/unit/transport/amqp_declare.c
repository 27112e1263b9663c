/* amqp_declare.c: transport/amqp/declare.c: how a queue is declared, and what of one that is there
 * is learnt from the broker's refusals. The texts are RabbitMQ's. */
#include "amqp_peer.h"
#include "transport/amqp/state.h"

static peer p;
static mull__amqp t;
static mull__amqp_declaration declaration;
static char logged[2048], why[512];

/* Stands for that of amqp.c. */
void mull__amqp_log(mull__amqp *of, mull_level level, const char *format, ...)
{
    size_t length = strlen(logged);
    va_list arguments;
    assert_ptr_equal(of, &t);
    snprintf(logged + length, sizeof logged - length,
             "%s: ", level == MULL_WARNING ? "warning" : "info");
    length = strlen(logged);
    va_start(arguments, format);
    vsnprintf(logged + length, sizeof logged - length, format, arguments);
    va_end(arguments);
}

static int set_up(void **state)
{
    (void)state;
    start_tune_open(&p);
    assert_int_equal(mull__amqp_channel_open(&p.session, MULL__AMQP_ASKS), 0);
    p.out_size = 0;
    memset(&t, 0, sizeof t);
    t.options.declare = 1;
    t.login.user = "clerk";
    logged[0] = why[0] = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    peer_end_session(&p);
    return 0;
}

/* ---- What is sent ---------------------------------------------------------------------------- */

/* sent gives the declaration that was sent: "orders durable x-queue-type=quorum ...". */
static const char *sent(void)
{
    static char text[2048];
    void *decoded = NULL;
    amqp_pool_t pool;
    init_amqp_pool(&pool, 4096);
    assert_true(p.out_size > 12);
    amqp_bytes_t method = {p.out_size - 12, p.out + 11};
    assert_int_equal(amqp_decode_method(AMQP_QUEUE_DECLARE_METHOD, &pool, method, &decoded), 0);
    const amqp_queue_declare_t *declare = decoded;
    int length = snprintf(text, sizeof text, "%.*s%s%s", (int)declare->queue.len,
                          (const char *)declare->queue.bytes, declare->durable ? " durable" : "",
                          declare->passive ? " passive" : "");
    for (int i = 0; i < declare->arguments.num_entries; i++) {
        const amqp_table_entry_t *one = &declare->arguments.entries[i];
        const amqp_field_value_t *value = &one->value;
        char *at = text + length;
        size_t room = sizeof text - (size_t)length;
        int key = (int)one->key.len;
        if (value->kind == AMQP_FIELD_KIND_UTF8)
            length += snprintf(at, room, " %.*s=%.*s", key, (const char *)one->key.bytes,
                               (int)value->value.bytes.len, (const char *)value->value.bytes.bytes);
        else if (value->kind == AMQP_FIELD_KIND_BOOLEAN)
            length += snprintf(at, room, " %.*s=%s", key, (const char *)one->key.bytes,
                               value->value.boolean ? "true" : "false");
        else
            length += snprintf(at, room, " %.*s=%lld", key, (const char *)one->key.bytes,
                               (long long)value->value.i64);
    }
    empty_amqp_pool(&pool);
    p.out_size = 0;
    return text;
}

/* The session is the peer's, and what declare.c does with its own goes there. */
static const char *declared(const char *queue)
{
    t.session = p.session;
    assert_int_equal(mull__amqp_declare_send(&t, &declaration, queue), 0);
    return sent();
}

/* answered gives the broker's answer, 0 and NULL for declare-ok. */
static int answered(int code, const char *text)
{
    const mull__amqp_reply reply = {.code = code, .text = text};
    return mull__amqp_declare_answered(&t, &declaration, "orders", &reply, why, sizeof why);
}

static int differs(const char *what)
{
    char text[256];
    snprintf(text, sizeof text, "PRECONDITION_FAILED - inequivalent arg %s", what);
    return answered(406, text);
}

/* ---- Queues that are made -------------------------------------------------------------------- */

static void a_queue_is_durable_and_has_a_limit_that_is_none(void **state)
{
    (void)state;
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_string_equal(declared("orders"),
                        "orders durable x-queue-type=quorum x-delivery-limit=2147483647");
    assert_int_equal(answered(0, NULL), 1);
    assert_true(declaration.is_quorum);
    t.options.classic = 1;
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_string_equal(declared("orders"), "orders durable x-queue-type=classic");
    assert_int_equal(answered(0, NULL), 1);
    assert_false(declaration.is_quorum);
    assert_string_equal(logged, "");
}

static void undeclared_it_is_only_looked_for(void **state)
{
    (void)state;
    t.options.declare = 0;
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_string_equal(declared("orders"), "orders durable passive");
    assert_int_equal(answered(0, NULL), 1);
    assert_false(declaration.is_quorum);
    assert_int_equal(answered(404, "NOT_FOUND - no queue 'orders' in vhost '/'"), MULL_EREFUSED);
    assert_string_equal(why, "there is no such queue; make it, or leave out declare=no");
}

static void a_name_that_is_too_long_is_refused(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'n', sizeof name);
    name[256] = 0;
    mull__amqp_declare_begin(&t, &declaration, 1);
    t.session = p.session;
    assert_int_equal(mull__amqp_declare_send(&t, &declaration, name), MULL_EREFUSED);
    assert_int_equal(p.out_size, 0);
}

/* ---- Queues that are there ------------------------------------------------------------------- */

static void what_differs_is_learnt_one_by_one(void **state)
{
    (void)state;
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(
        differs("'x-queue-type' for queue 'orders' in vhost '/': received 'quorum' but "
                "current is 'classic'"),
        0);
    assert_int_equal(
        differs("'x-delivery-limit' for queue 'orders' in vhost '/': received the value "
                "'2147483647' of type 'signedint' but current is none"),
        0);
    assert_int_equal(differs("'x-max-length' for queue 'orders' in vhost '/': received none but "
                             "current is the value '5' of type 'byte'"),
                     0);
    assert_int_equal(differs("'x-single-active-consumer' for queue 'orders' in vhost '/': received "
                             "none but current is the value 'true' of type 'bool'"),
                     0);
    assert_int_equal(
        differs("'x-dead-letter-exchange' for queue 'orders' in vhost '/': received none "
                "but current is the value '' of type 'longstr'"),
        0);
    assert_string_equal(declared("orders"),
                        "orders durable x-queue-type=classic x-max-length=5 "
                        "x-single-active-consumer=true x-dead-letter-exchange=");
    assert_int_equal(answered(0, NULL), 1);
    assert_false(declaration.is_quorum);
    assert_string_equal(logged, "info: the queue 'orders' is there already, and used as it is: "
                                "x-queue-type classic, x-delivery-limit none, x-max-length 5, "
                                "x-single-active-consumer true, x-dead-letter-exchange ''"
                                "warning: the queue 'orders' has x-max-length 5: the broker "
                                "dead-letters messages there, whatever the policy says");
}

static void a_delivery_limit_is_warned_of(void **state)
{
    (void)state;
    static const char none[] = "'x-delivery-limit' for queue 'orders' in vhost '/': received the "
                               "value '2147483647' of type 'signedint' but current is none";
    t.session.server_major = 3;
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(differs("'x-delivery-limit' for queue 'orders' in vhost '/': received "
                             "'2147483647' but current is '7'"),
                     0);
    assert_int_equal(answered(0, NULL), 1);
    assert_true(declaration.is_quorum);
    assert_non_null(strstr(logged, "warning: the queue 'orders' has an x-delivery-limit"));
    logged[0] = 0;
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(differs(none), 0);
    assert_int_equal(answered(0, NULL), 1);
    assert_null(strstr(logged, "warning"));
    t.session.server_major = 4; /* which has one by default */
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(differs(none), 0);
    assert_int_equal(answered(0, NULL), 1);
    assert_non_null(strstr(logged, "warning"));
}

/* given has an argument of the queue that is there, of which nothing is sent. */
static void given(const char *name, const char *value, const char *type)
{
    char text[200];
    snprintf(text, sizeof text,
             "'%s' for queue 'orders' in vhost '/': received none but current is the value '%s' of "
             "type '%s'",
             name, value, type);
    assert_int_equal(differs(text), 0);
}

static void what_drops_messages_is_warned_of(void **state)
{
    (void)state;
    static const struct {
        const char *name, *overflow, *warning;
    } cases[] = {
        {"x-message-ttl", "reject-publish", "has x-message-ttl 60000: the broker drops messages"},
        {"x-expires", NULL, "has x-expires 60000: the broker drops messages"},
        {"x-max-length", NULL, "has x-max-length 60000: the broker drops messages"},
        {"x-max-length-bytes", "drop-head", "has x-max-length-bytes 60000: the broker drops"},
        {"x-max-age", NULL, "has x-max-age 60000: the broker drops"},
        {"x-max-length", "reject-publish", NULL},
        {"x-max-length-bytes", "reject-publish-dlx", NULL},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        logged[0] = 0;
        mull__amqp_declare_begin(&t, &declaration, i % 2);
        given(cases[i / 2].name, "60000", "signedint");
        if (cases[i / 2].overflow)
            given("x-overflow", cases[i / 2].overflow, "longstr");
        assert_int_equal(answered(0, NULL), 1);
        if (cases[i / 2].warning)
            assert_non_null(strstr(logged, cases[i / 2].warning));
        else
            assert_null(strstr(logged, "warning"));
    }
}

static void one_that_is_only_published_to_may_be_of_any_type(void **state)
{
    (void)state;
    t.options.type_is_asked = 1;
    mull__amqp_declare_begin(&t, &declaration, 0);
    assert_int_equal(
        differs("'x-queue-type' for queue 'orders' in vhost '/': received 'quorum' but "
                "current is 'stream'"),
        0);
    assert_int_equal(answered(0, NULL), 1);
    assert_string_equal(logged, "");
    mull__amqp_declare_begin(&t, &declaration, 0);
    assert_int_equal(differs("'x-queue-type' for queue 'a very long name"), 0);
    assert_true(declaration.as_is);
    mull__amqp_declare_begin(&t, &declaration, 0);
    assert_int_equal(
        differs(
            "'durable' for queue 'orders' in vhost '/': received 'true' but current is 'false'"),
        MULL_EREFUSED);
}

static void what_loses_messages_or_cannot_be_read_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *differs, *why;
    } cases[] = {
        {"'durable' for queue 'orders' in vhost '/': received 'true' but current is 'false'",
         "it isn't durable"},
        {"'auto_delete' for queue 'orders' in vhost '/': received 'false' but current is 'true'",
         "it is deleted with its last consumer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mull__amqp_declare_begin(&t, &declaration, 1);
        assert_int_equal(differs(cases[i].differs), MULL_EREFUSED);
        assert_non_null(strstr(why, cases[i].why));
        assert_non_null(strstr(why, "or take it as it is by declare=no"));
    }
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(
        differs("'x-queue-type' for queue 'orders' in vhost '/': received 'quorum' but "
                "current is 'stream'"),
        0);
    assert_int_equal(answered(0, NULL), MULL_EREFUSED);
    assert_string_equal(why,
                        "it is there already, and it is a stream, from which no message can be "
                        "taken; use another");
    assert_int_equal(answered(403, "ACCESS_REFUSED"), MULL_EREFUSED);
    assert_string_equal(why, "user 'clerk' may not declare it (403); allow that, or make the queue "
                             "and use declare=no");
    assert_int_equal(answered(405, "RESOURCE_LOCKED - exclusive"), MULL_EREFUSED);
    assert_string_equal(why, "it can't be declared (405): RESOURCE_LOCKED - exclusive");
    assert_int_equal(answered(-1, "the connection is lost"), MULL_EIO);
}

static void the_other_type_is_refused_where_one_is_asked_for(void **state)
{
    (void)state;
    t.options.type_is_asked = 1;
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(
        differs("'x-queue-type' for queue 'orders' in vhost '/': received 'quorum' but "
                "current is 'classic'"),
        0);
    assert_int_equal(answered(0, NULL), MULL_EREFUSED);
    assert_string_equal(why, "it is there already, and it is a classic queue, but the URL says "
                             "queue_type=quorum; use another, or take it as it is by declare=no");
}

/* A text of the broker's ends after 255 bytes, wherever that is. */
static void what_cannot_be_told_is_read_without_counts(void **state)
{
    (void)state;
    static const char cut_off[] = "'x-queue-type' for queue 'a very long name";
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(differs(cut_off), 0);
    assert_string_equal(strstr(declared("orders"), " passive") ? "passive" : "", "passive");
    assert_int_equal(answered(0, NULL), 1);
    assert_false(declaration.is_quorum);
    t.options.type_is_asked = 1;
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(differs(cut_off), MULL_EREFUSED);
    assert_non_null(strstr(why, "it can't be declared (406): PRECONDITION_FAILED"));
}

/* What the broker names may not be what it has: bytes that are no UTF-8 are shown as others. */
static void what_differs_again_is_not_asked_for_ever(void **state)
{
    (void)state;
    static const char odd[] = "'x-dead-letter-exchange' for queue 'orders' in vhost '/': received "
                              "none but current is the value 'f?r' of type 'longstr'";
    mull__amqp_declare_begin(&t, &declaration, 1);
    assert_int_equal(differs(odd), 0);
    assert_false(declaration.as_is);
    assert_int_equal(differs(odd), 0);
    assert_true(declaration.as_is);
}

static void there_are_no_more_arguments_than_fit(void **state)
{
    (void)state;
    char text[200];
    mull__amqp_declare_begin(&t, &declaration, 1);
    for (int i = 0; i < MULL__AMQP_ARGUMENTS - 2; i++) {
        snprintf(
            text, sizeof text,
            "'x-%d' for queue 'orders': received none but current is the value '1' of type 'byte'",
            i);
        assert_int_equal(differs(text), 0);
        assert_false(declaration.as_is);
    }
    assert_int_equal(differs("'x-more' for queue 'orders': received none but current is the value "
                             "'1' of type 'byte'"),
                     0);
    assert_true(declaration.as_is);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_queue_is_durable_and_has_a_limit_that_is_none),
        TEST(undeclared_it_is_only_looked_for),
        TEST(a_name_that_is_too_long_is_refused),
        TEST(what_differs_is_learnt_one_by_one),
        TEST(a_delivery_limit_is_warned_of),
        TEST(what_drops_messages_is_warned_of),
        TEST(one_that_is_only_published_to_may_be_of_any_type),
        TEST(what_loses_messages_or_cannot_be_read_is_refused),
        TEST(the_other_type_is_refused_where_one_is_asked_for),
        TEST(what_cannot_be_told_is_read_without_counts),
        TEST(what_differs_again_is_not_asked_for_ever),
        TEST(there_are_no_more_arguments_than_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
