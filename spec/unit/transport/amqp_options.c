/* amqp_options.c: transport/amqp/options.c: what a URL of AMQP says, and what it can't say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "transport/amqp/options.h"

static counting_allocator counter;
static mull_allocator allocator;
static mull__amqp_options options;
static char why[512];

static int set_up(void **state)
{
    (void)state;
    counter = (counting_allocator){.out = 0};
    allocator = counting_allocator_ops(&counter);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return counter.out != 0;
}

static void read(const char *url)
{
    why[0] = 0;
    if (mull__amqp_options_read(&options, &allocator, url, why, sizeof why) != 0)
        fail_msg("%s: %s", url, why);
}

static void defaults_are_those_of_the_page(void **state)
{
    (void)state;
    read("amqp://localhost");
    assert_string_equal(options.user, "guest");
    assert_string_equal(options.password, "guest");
    assert_string_equal(options.vhost, "/");
    assert_string_equal(options.name, "mulligan");
    assert_string_equal(options.url.addresses[0].port, "5672");
    assert_int_equal(options.claim_ms, 30 * 60 * 1000);
    assert_int_equal(options.heartbeat_ms, 60 * 1000);
    assert_int_equal(options.connect_ms, 10 * 1000);
    assert_true(options.declare);
    assert_false(options.classic || options.type_is_asked || options.external || options.uses_tls);
    mull__amqp_options_free(&options);
    read("amqps://ann@localhost/");
    assert_string_equal(options.user, "ann");
    assert_string_equal(options.password, ""); /* not that of guest */
    assert_string_equal(options.vhost, "/");
    assert_string_equal(options.url.addresses[0].port, "5671");
    assert_true(options.uses_tls);
    assert_false(options.tls.no_verify);
    assert_null(options.tls.ca_file);
    mull__amqp_options_free(&options);
}

static void each_option_is_obeyed(void **state)
{
    (void)state;
    read("amqps://u:p%40%2F@[::1]:1,b:2/%2Fshop?queue_type=classic&declare=no&claim_timeout=off&"
         "heartbeat=off&connect_timeout=1500ms&name=till%207&ca=/ca&cert=/cert&key=/key&"
         "login=certificate&server_name=broker&verify=no");
    assert_string_equal(options.password, "p@/");
    assert_string_equal(options.vhost, "/shop");
    assert_int_equal(options.url.address_count, 2);
    assert_true(options.classic && options.type_is_asked && !options.declare);
    assert_int_equal(options.claim_ms, 0);
    assert_int_equal(options.heartbeat_ms, 0);
    assert_int_equal(options.connect_ms, 1500);
    assert_string_equal(options.name, "till 7");
    assert_string_equal(options.tls.ca_file, "/ca");
    assert_string_equal(options.tls.cert_file, "/cert");
    assert_string_equal(options.tls.key_file, "/key");
    assert_string_equal(options.tls.server_name, "broker");
    assert_true(options.tls.no_verify && options.external);
    assert_string_not_equal(options.user, "u"); /* no message may name that one */
    mull__amqp_options_free(&options);
    read("amqp://"
         "h?queue_type=quorum&declare=yes&claim_timeout=1s&heartbeat=18h&connect_timeout=1ms");
    assert_true(!options.classic && options.type_is_asked && options.declare);
    assert_int_equal(options.claim_ms, 1000);
    assert_int_equal(options.heartbeat_ms, 18 * 60 * 60 * 1000);
    assert_int_equal(options.connect_ms, 1);
    mull__amqp_options_free(&options);
}

static void what_is_wrong_is_said_without_the_password(void **state)
{
    (void)state;
    static const struct {
        const char *url, *why;
    } cases[] = {
        {"amqp://u:hunter2@h?hartbeat=1s",
         "hartbeat is no option; there are queue_type, declare, "},
        {"amqp://u:hunter2@h?queue_type=stream", "queue_type must be classic or quorum"},
        {"amqp://u:hunter2@h?declare=maybe", "declare must be yes or no"},
        {"amqp://u:hunter2@h?claim_timeout=999ms", "claim_timeout must be 1000 ms or more, or off"},
        {"amqp://u:hunter2@h?heartbeat=0s", "heartbeat must be 1000 ms or more, or off"},
        {"amqp://u:hunter2@h?heartbeat=0", "ms, s, m, h or d, or off"},
        {"amqp://u:hunter2@h?claim_timeout=30", "claim_timeout needs a unit"},
        {"amqp://u:hunter2@h?heartbeat=19h", "heartbeat must be 18h or less"},
        {"amqp://u:hunter2@h?connect_timeout=off", "connect_timeout can't be off"},
        {"amqp://u:hunter2@h?connect_timeout=0s", "connect_timeout must be 1 ms or more"},
        {"amqp://u:hunter2@h?name=", "name needs a value"},
        {"amqp://u:hunter2@h?ca=/ca", "ca is for TLS; begin the URL with amqps:"},
        {"amqp://u:hunter2@h?verify=no", "verify is for TLS"},
        {"amqp://u:hunter2@h?login=certificate", "login is for TLS"},
        {"amqps://u:hunter2@h?server_name=", "server_name needs a value"},
        {"amqps://u:hunter2@h?verify=off", "verify must be no or yes"},
        {"amqps://u:hunter2@h?key=/key", "key needs cert"},
        {"amqps://u:hunter2@h?login=certificate", "login=certificate needs cert"},
        {"amqps://u:hunter2@h?login=token", "login must be certificate or password"},
        {"amqp://u:hunter2/@h", "there is an '@' behind the hosts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = mull__amqp_options_read(&options, &allocator, cases[i].url, why, sizeof why);
        assert_int_equal(status, MULL_EINVAL);
        if (!strstr(why, cases[i].why))
            fail_msg("%s: \"%s\", not \"%s\"", cases[i].url, why, cases[i].why);
        assert_null(strstr(why, "hunter2"));
        assert_int_equal(counter.out, 0);
    }
}

static void texts_that_amqp_cannot_have_are_refused(void **state)
{
    (void)state;
    static const char *const forms[] = {"amqp://%s@h", "amqp://u:%s@h", "amqp://h/%s",
                                        "amqp://h?name=%s"};
    char text[257], url[400];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (size_t length = 255; length <= 256; length++) {
            int at = (int)(strchr(forms[i], '%') - forms[i]);
            snprintf(url, sizeof url, "%.*s%.*s%s", at, forms[i], (int)length, text,
                     forms[i] + at + 2);
            int status = mull__amqp_options_read(&options, &allocator, url, why, sizeof why);
            assert_int_equal(status, length == 255 ? 0 : MULL_EINVAL);
            if (status == 0)
                mull__amqp_options_free(&options);
            else
                assert_non_null(strstr(why, "255 bytes"));
        }
    }
}

/* promise gives what always holds of queues of a URL. */
static mull_abilities promise(const char *url)
{
    mull_abilities floor = MULL_INIT(mull_abilities);
    read(url);
    mull__amqp_promise(&floor, &options);
    mull__amqp_options_free(&options);
    return floor;
}

static void no_more_is_promised_than_a_url_can_keep(void **state)
{
    (void)state;
    mull_abilities floor = promise("amqp://h");
    assert_true(floor.can_retry && floor.can_delay);
    assert_false(floor.can_hold || floor.can_note || floor.settles_whole);
    assert_int_equal(floor.deliveries, MULL_COUNTS_NOTHING);
    assert_int_equal(floor.depth, MULL_DEPTH_ROUGH);
    assert_int_equal(floor.delay_step_ms, 50);
    assert_int_equal(floor.longest_delay_ms, INT64_C(365) * 24 * 60 * 60 * 1000);
    assert_int_equal(floor.claim_timeout_ms, 30 * 60 * 1000);
    assert_false(promise("amqp://h?declare=no").can_delay);
    assert_int_equal(promise("amqp://h?claim_timeout=off").claim_timeout_ms, 0);
    assert_int_equal(promise("amqp://h?queue_type=quorum").deliveries, MULL_COUNTS_HANDOUTS);
    assert_int_equal(promise("amqp://h?queue_type=classic").deliveries, MULL_COUNTS_NOTHING);
    assert_int_equal(promise("amqp://h?queue_type=quorum&declare=no").deliveries,
                     MULL_COUNTS_NOTHING);
}

static void without_memory_nothing_is_left(void **state)
{
    (void)state;
    int status = MULL_ENOMEM;
    long at = 0;
    while (status == MULL_ENOMEM) {
        counter.asked = 0;
        counter.fail_at = ++at;
        status = mull__amqp_options_read(&options, &allocator, "amqp://u:p@a,b/v?name=x", why,
                                         sizeof why);
        if (status == 0)
            mull__amqp_options_free(&options);
        else
            assert_int_equal(status, MULL_ENOMEM);
        assert_int_equal(counter.out, 0);
    }
    assert_true(at > 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(defaults_are_those_of_the_page),
        TEST(each_option_is_obeyed),
        TEST(what_is_wrong_is_said_without_the_password),
        TEST(texts_that_amqp_cannot_have_are_refused),
        TEST(no_more_is_promised_than_a_url_can_keep),
        TEST(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
