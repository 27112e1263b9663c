/* url.c: URLs of servers, good ones and hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "counting_allocator.h"
#include "net/url.h"

static counting_allocator counter;
static mull_allocator allocator;

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

/* ---- Texts of what was read ------------------------------------------------------------------ */

static void say(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, size - length, format, arguments);
    va_end(arguments);
}

/* read gives "scheme user:password host port, ... path name=value ..."; "-" is what isn't there.
 * Or "!" and why. */
static const char *read(const char *url)
{
    static char text[4096];
    char why[512] = "";
    mull__url read;
    int status = mull__url_read(&read, &allocator, url, "5672", why, sizeof why);
    text[0] = '\0';
    if (status) {
        assert_int_equal(status, MULL_EINVAL);
        say(text, sizeof text, "! %s", why);
        return text;
    }
    say(text, sizeof text, "%s", read.scheme);
    say(text, sizeof text, " %s:%s", read.user ? read.user : "-",
        read.password ? read.password : "-");
    for (size_t i = 0; i < read.address_count; i++)
        say(text, sizeof text, "%s%s %s", i ? ", " : " ", read.addresses[i].host,
            read.addresses[i].port);
    say(text, sizeof text, " '%s'", read.path ? read.path : "-");
    for (size_t i = 0; i < read.option_count; i++) {
        say(text, sizeof text, " %s=%s", read.options[i].name, read.options[i].value);
        assert_string_equal(mull__url_option_of(&read, read.options[i].name),
                            read.options[i].value);
    }
    assert_null(mull__url_option_of(&read, "no such option"));
    mull__url_free(&read);
    return text;
}

static const char *shown(const char *url)
{
    static char text[512];
    char why[512];
    mull__url read;
    assert_int_equal(mull__url_read(&read, &allocator, url, "5672", why, sizeof why), 0);
    snprintf(text, sizeof text, "%s", read.shown);
    mull__url_free(&read);
    return text;
}

/* ---- Good ones ------------------------------------------------------------------------------- */

static void test_parts(void **state)
{
    (void)state;
    assert_string_equal(read("amqp://h"), "amqp -:- h 5672 '-'");
    assert_string_equal(read("AMQPS://h/"), "amqps -:- h 5672 ''");
    assert_string_equal(read("amqp://u@h"), "amqp u:- h 5672 '-'");
    assert_string_equal(read("amqp://u:p@h:1/v"), "amqp u:p h 1 'v'");
    assert_string_equal(read("amqp://u:@h"), "amqp u: h 5672 '-'");
    assert_string_equal(read("amqp://:p@h"), "amqp :p h 5672 '-'");
    assert_string_equal(read("amqp://u:p:q@h"), "amqp u:p:q h 5672 '-'");
    assert_string_equal(read("amqp://u:p@q@h"), "amqp u:p@q h 5672 '-'");
    assert_string_equal(read("a+b-c.1://h?x=1"), "a+b-c.1 -:- h 5672 '-' x=1");
    assert_string_equal(read("amqp://h/a/b?"), "amqp -:- h 5672 'a/b'");
    assert_string_equal(read("amqp://h/v?a=1&b=&c=x=y"), "amqp -:- h 5672 'v' a=1 b= c=x=y");
    assert_string_equal(read("amqp://h/v?a=b/c?d"), "amqp -:- h 5672 'v' a=b/c?d");
    assert_string_equal(read("amqp://h:65535"), "amqp -:- h 65535 '-'");
    assert_string_equal(read("amqp://h_1.example-2.:1"), "amqp -:- h_1.example-2. 1 '-'");
}

static void test_escapes(void **state)
{
    (void)state;
    assert_string_equal(read("amqp://a%3Ab:c%40%2f%3F%23%25@h/%2F"), "amqp a:b:c@/?#% h 5672 '/'");
    assert_string_equal(read("amqp://h/a%20b?n%3D=%26%3d+"), "amqp -:- h 5672 'a b' n==&=+");
    assert_string_equal(read("amqp://gr\303\274n:\303\266@h/\303\244"),
                        "amqp gr\303\274n:\303\266 h 5672 '\303\244'");
    assert_string_equal(read("amqp://h/%ff%01"), "amqp -:- h 5672 '\377\001'");
}

static void test_several_hosts(void **state)
{
    (void)state;
    assert_string_equal(read("amqp://u:p@a,b:2,10.0.0.1,[::1],[fe80::1]:3/v"),
                        "amqp u:p a 5672, b 2, 10.0.0.1 5672, ::1 5672, fe80::1 3 'v'");
    char many[1024] = "amqp://h";
    for (int i = 1; i < 64; i++)
        strcat(many, ",h");
    assert_int_equal(strncmp(read(many), "amqp ", 5), 0);
    strcat(many, ",h");
    assert_string_equal(read(many), "! there are 65 hosts; 64 are allowed");
}

static void test_shown_without_password(void **state)
{
    (void)state;
    assert_string_equal(shown("amqp://u:secret@h:1/v?a=b"), "amqp://u:***@h:1/v?a=b");
    assert_string_equal(shown("amqp://u:@h"), "amqp://u:***@h");
    assert_string_equal(shown("amqp://:secret@h"), "amqp://:***@h");
    assert_string_equal(shown("amqp://u:se:cr@et@h"), "amqp://u:***@h");
    assert_string_equal(shown("amqp://u%3A@h:1"), "amqp://u%3A@h:1");
    assert_string_equal(shown("amqp://h:1/a:b?c=d:e"), "amqp://h:1/a:b?c=d:e");
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void test_mistakes(void **state)
{
    (void)state;
    static const char *const mistakes[][2] = {
        {"", "a URL begins with its scheme and ://"},
        {"://h", "a URL begins with its scheme and ://"},
        {"amqp:h", "a URL begins with its scheme and ://"},
        {"amqp:/h", "a URL begins with its scheme and ://"},
        {"am qp://h", "a URL begins with its scheme and ://"},
        {"amqp://", "a host is missing"},
        {"amqp:///v", "a host is missing"},
        {"amqp://?a=b", "a host is missing"},
        {"amqp://:5672", "a host is missing"},
        {"amqp://a,,b", "a host is missing"},
        {"amqp://a,", "a host is missing"},
        {"amqp://u:p@", "a host is missing"},
        {"amqp://[]", "a host is missing"},
        {"amqp://[1.2.3.4]", "[1.2.3.4] is no IPv6 address"},
        {"amqp://[::1", "the bracket of '[::1' isn't closed"},
        {"amqp://[::1]5672", "only :PORT may follow the bracket of '[::1]5672'"},
        {"amqp://fe80::1:5672", "the port of the host 'fe80' isn't a number from 1 to 65535; an "
                                "IPv6 address stands in brackets"},
        {"amqp://h%41", "the host 'h%41' has a character that none can have"},
        {"amqp://h\303\244", "the host 'h\303\244' has a character that none can have"},
        {"amqp://h]", "the host 'h]' has a character that none can have"},
        {"amqp://h:", "the port of the host 'h' isn't a number from 1 to 65535"},
        {"amqp://[::1]:", "the port of the host '::1' isn't a number from 1 to 65535"},
        {"amqp://h:0", "the port of the host 'h' isn't a number from 1 to 65535"},
        {"amqp://h:65536", "the port of the host 'h' isn't a number from 1 to 65535"},
        {"amqp://h:-1", "the port of the host 'h' isn't a number from 1 to 65535"},
        {"amqp://h:+1", "the port of the host 'h' isn't a number from 1 to 65535"},
        {"amqp://h:1x", "the port of the host 'h' isn't a number from 1 to 65535"},
        {"amqp://h:99999999999999999999",
         "the port of the host 'h' isn't a number from 1 to 65535"},
        {"amqp://h/%", "the path has a '%' without two hex digits; write %25 for a '%'"},
        {"amqp://h/%4", "the path has a '%' without two hex digits; write %25 for a '%'"},
        {"amqp://h/%g1", "the path has a '%' without two hex digits; write %25 for a '%'"},
        {"amqp://h/%00", "the path has %00, which can't be in it"},
        {"amqp://h/v#x", "a '#' is written %23"},
        {"amqp://h#x", "a '#' is written %23"},
        {"amqp://h/a b", "a space or control character is written %20"},
        {"amqp://h/\n", "a space or control character is written %0A"},
        {"amqp://h/\177", "a space or control character is written %7F"},
        {"amqp://h?=1", "an option has no name; they are NAME=VALUE, with an '&' between them"},
        {"amqp://h?&", "an option has no name; they are NAME=VALUE, with an '&' between them"},
        {"amqp://h?a=1&", "an option has no name; they are NAME=VALUE, with an '&' between them"},
        {"amqp://h?a", "the option 'a' has no value; write a=VALUE"},
        {"amqp://h?a=1&b=2&a=3", "the option 'a' stands there twice"},
        {"amqp://h?a=1&%61=3", "the option '%61' stands there twice"},
        {"amqp://h?a=%", "the value of an option has a '%' without two hex digits; write %25 for "
                         "a '%'"},
        {"amqp://h?%=a",
         "the name of an option has a '%' without two hex digits; write %25 for a '%'"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const char *found = read(mistakes[i][0]);
        assert_memory_equal(found, "! ", 2);
        assert_string_equal(found + 2, mistakes[i][1]);
    }
}

/* A password that should have been written with %XX ends where nobody expects it. */
static void test_mistakes_show_no_password(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "amqp://u:se/cret@h", "amqp://u:12/secret@h",    "amqp://u:se?cret@h",
        "amqp://u:se#cret@h", "amqp://u:se%cret@h",      "amqp://u:se%00cret@h",
        "amqp://u:se cret@h", "amqp://u:s\\et:1/cret@h", "amqp://se:secret@h:x",
        "amqp://u:secret@",   "amqp://u:se:1/cr@h"};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        const char *found = read(urls[i]);
        assert_int_equal(found[0], '!');
        assert_null(strstr(found, "se:"));
        assert_null(strstr(found, "cret"));
        assert_null(strstr(found, "12"));
        assert_null(strstr(found, "'se"));
    }
    assert_string_equal(read("amqp://u:se/cret@h"),
                        "! there is an '@' behind the hosts; in user and password '/', '?' and '#' "
                        "are written %2F, %3F and %23, and elsewhere an '@' is written %40");
}

/* ---- Anything -------------------------------------------------------------------------------- */

/* What is read of any text, and what is shown of it, has no bytes of a password in clear. */
static void test_random_texts(void **state)
{
    (void)state;
    static const char *const pieces[] = {"amqp", "://", ":",   "@", "/",     "?", "#",   "=",
                                         "&",    ",",   "[",   "]", "%2",    "%", "u",   "h",
                                         "::",   "%41", "%00", "1", "65535", ".", "\377"};
    mull__rand chance;
    int good = 0;
    mull__rand_init(&chance, 20);
    for (int times = 0; times < 200000; times++) {
        char url[128] = "", why[256] = "";
        mull__url read;
        if (mull__rand_next(&chance) % 8)
            strcpy(url, "amqp://");
        for (uint64_t left = mull__rand_next(&chance) % 12; left > 0; left--)
            strcat(url, pieces[mull__rand_next(&chance) % (sizeof pieces / sizeof *pieces)]);
        if (mull__url_read(&read, &allocator, url, "1", why, sizeof why) != 0) {
            assert_true(why[0] != '\0' && !strchr(why, '\n'));
            assert_int_equal(counter.out, 0);
            continue;
        }
        good++;
        assert_in_range(read.address_count, 1, 64);
        if (read.password) {
            const char *at = strrchr(url, '@');
            assert_non_null(at);
            assert_int_equal(strlen(read.shown),
                             strlen("***") + strlen(at) + (size_t)(strchr(url + 7, ':') + 1 - url));
        } else {
            assert_string_equal(read.shown, url);
        }
        mull__url_free(&read);
    }
    assert_true(good > 5000);
}

static void test_no_memory(void **state)
{
    (void)state;
    static const char url[] = "amqp://u:p@a,b:2/v?c=d";
    char why[256];
    mull__url read;
    assert_int_equal(mull__url_read(&read, &allocator, url, "1", why, sizeof why), 0);
    mull__url_free(&read);
    long needed = counter.asked;
    assert_true(needed > 0);
    for (long nth = 1; nth <= needed; nth++) {
        counter.asked = 0;
        counter.fail_at = nth;
        assert_int_equal(mull__url_read(&read, &allocator, url, "1", why, sizeof why), MULL_ENOMEM);
        assert_string_equal(why, "out of memory");
        assert_int_equal(counter.out, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_parts),         TEST(test_escapes),
        TEST(test_several_hosts), TEST(test_shown_without_password),
        TEST(test_mistakes),      TEST(test_mistakes_show_no_password),
        TEST(test_random_texts),  TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
