/* redact.c: what is hidden of a URL, and of a text with pieces of it. */
#include "base/redact.h"

#include <string.h>

#include "fixtures.h"

static void expect(const char *url, const char *text, const char *shown)
{
    char out[256];
    mull__redact(out, sizeof out, text, url);
    assert_string_equal(out, shown);
}

static void hides_the_user_part(void **state)
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"amqp://u:secret@h:5672/v?a=b", "amqp://***@h:5672/v?a=b"},
        {"amqp:/u:secret@h", "amqp:/***@h"},
        {"amqp:u:secret@h", "amqp:***@h"},
        {"amqp:///u:secret@h", "amqp:///***@h"},
        {"u:secret@h:5672", "u:***@h:5672"},
        {"u:se//cr@et@h", "u:***@h"},
        {"am_qp:u:secret@h", "am_qp:***@h"},
        {"amqp//u:secret@h", "amqp//***@h"},
        {":secret@h", ":***@h"},
        {"sqlite://u:secret@h/x.db", "sqlite://***@h/x.db"},
        /* nothing in them is one: */
        {"sqlite:a:b@c.db", "sqlite:a:b@c.db"},
        {"sqlite:/a//b:c@d.db", "sqlite:/a//b:c@d.db"},
        {"orders@eu", "orders@eu"},
        {"a@b:c", "a@b:c"},
        {"amqp://h/v", "amqp://h/v"},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect(cases[i].url, cases[i].url, cases[i].shown);
    (void)state;
}

static void hides_it_in_a_text(void **state)
{
    expect("amqp:u:secret@h", "'amqp:u:sec' or u:secret@h, or //u:secret@h: known are memory:, x:",
           "'amqp:***' or ***@h, or //***@h: known are memory:, x:");
    expect("amqp:/u:secret@h", "no 'amqp:/u:sec", "no 'amqp:/***");
    expect("nats//u:secret@h", "there is no 'nats//u:'", "there is no 'nats//***'");
    (void)state;
}

static void keeps_to_the_size(void **state)
{
    char out[10];
    for (size_t size = 1; size < sizeof out; size++) {
        memset(out, '#', sizeof out);
        mull__redact(out, size, "a//secret@h", "a//secret@h");
        assert_int_equal(strlen(out), size - 1);
        assert_memory_equal(out, "a//***@h", size - 1);
        assert_int_equal(out[size], '#');
    }
    (void)state;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(hides_the_user_part),
        cmocka_unit_test(hides_it_in_a_text),
        cmocka_unit_test(keeps_to_the_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
