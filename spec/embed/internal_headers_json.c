/* internal_headers_json.c: headers to JSON and back: what was written is read again, byte for byte;
 * and of any text, valid or not, what is read is what jansson reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "purse.h"
#include "sample.h"
#include "wire/json.h"

static purse p;

static int pick(sample *s, int count)
{
    return (int)(sample_random(s) % (uint64_t)count);
}

/* random_text writes up to `most` pieces, of which every kind of character is one. */
static void random_text(sample *s, char text[256], int most)
{
    static const char *const pieces[] = {"a",
                                         "key",
                                         "\"",
                                         "\\",
                                         "/",
                                         "\b",
                                         "\x01",
                                         "\n",
                                         "\x7f",
                                         "\xc3\xbc",
                                         "\xe2\x82\xac",
                                         "\xef\xbf\xbf",
                                         "\xf0\x9f\x98\x80",
                                         "\xf4\x8f\xbf\xbf",
                                         " ",
                                         "{",
                                         "}",
                                         ",",
                                         ":",
                                         "u00e9"};
    *text = 0;
    for (int count = pick(s, most + 1); count > 0; count--)
        strcat(text, pieces[pick(s, sizeof pieces / sizeof pieces[0])]);
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    mull_allocator a = purse_allocator(&p);
    sample s = sample_of(2);
    for (int round = 0; round < 2000; round++) {
        char texts[10][256];
        mull_header headers[5];
        size_t count = (size_t)pick(&s, 6);
        for (size_t i = 0; i < count; i++) {
            random_text(&s, texts[2 * i], 10);
            texts[2 * i][strlen(texts[2 * i]) + 1] = 0;
            texts[2 * i][strlen(texts[2 * i])] = (char)('0' + i); /* no two names are the same */
            random_text(&s, texts[2 * i + 1], 40);
            headers[i] = (mull_header){texts[2 * i], texts[2 * i + 1]};
        }
        char *json;
        mull_header *read;
        size_t read_count;
        assert_int_equal(mull__headers_to_json(&json, &a, headers, count), 0);
        assert_int_equal(mull__headers_from_json(&read, &read_count, &a, json), 0);
        assert_int_equal(read_count, count);
        for (size_t i = 0; i < count; i++) {
            assert_string_equal(read[i].name, headers[i].name);
            assert_string_equal(read[i].value, headers[i].value);
        }
        mull__free(&a, json);
        mull__free(&a, read);
    }
    assert_int_equal(p.out, 0);
}

/* random_json strings pieces of JSON together, most often such that it is an object of strings. */
static void random_json(sample *s, char json[512])
{
    static const char *const pieces[] = {"{",
                                         "}",
                                         ":",
                                         ",",
                                         "\"",
                                         "\"\"",
                                         "\"x\"",
                                         " ",
                                         "\t",
                                         "\n",
                                         "1",
                                         "null",
                                         "[",
                                         "]",
                                         "\\u",
                                         "\\u00e9",
                                         "\\u0000",
                                         "\\uD83D",
                                         "\\ude00",
                                         "\\ud83d\\uDE00",
                                         "\\n",
                                         "\\/",
                                         "\\x",
                                         "\\",
                                         "\x01",
                                         "\xff",
                                         "\xed\xa0\x80",
                                         "\xc3\xbc",
                                         "\xf0\x9f\x98\x80",
                                         "\\u12g4",
                                         "\\u1",
                                         "d800"};
    enum { PIECES = sizeof pieces / sizeof pieces[0] };
    strcpy(json, "{");
    for (int pairs = pick(s, 4), i = 0; i < pairs; i++) {
        char name[2] = {(char)('a' + i), 0};
        strcat(strcat(strcat(json, i ? ",\"" : " \""), name), "\":\"");
        for (int count = pick(s, 5); count > 0; count--)
            strcat(json, pieces[14 + pick(s, PIECES - 14)]);
        strcat(json, "\"");
    }
    strcat(json, "}");
    if (pick(s, 3) == 0) {
        size_t at = (size_t)pick(s, (int)strlen(json) + 1);
        char rest[512];
        strcpy(rest, json + at + (json[at] && pick(s, 2)));
        strcpy(json + at, pieces[pick(s, PIECES)]);
        strcat(json, rest);
    }
}

/* read_reference is what jansson reads, where that is an object of strings; `twice`: a name stands
 * twice. */
static json_t *read_reference(const char *json, int *twice)
{
    json_t *strict = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    json_t *root = json_loads(json, 0, NULL);
    *twice = root && !strict;
    json_decref(strict);
    const char *name;
    json_t *value;
    int good = json_is_object(root);
    json_object_foreach(root, name, value) good &= json_is_string(value);
    if (good)
        return root;
    json_decref(root);
    return NULL;
}

static void any_text_is_read_as_jansson_does(void **state)
{
    (void)state;
    mull_allocator a = purse_allocator(&p);
    sample s = sample_of(2);
    int read_well = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        char json[512];
        int twice;
        random_json(&s, json);
        json_t *reference = read_reference(json, &twice);
        mull_header *headers = NULL;
        size_t count = 0;
        int status = mull__headers_from_json(&headers, &count, &a, json);
        if ((status == 0) != (reference != NULL))
            fail_msg("%d, and jansson %s it: %s", status, reference ? "reads" : "refuses", json);
        for (size_t i = 0; i < count && !twice; i++)
            assert_string_equal(headers[i].value,
                                json_string_value(json_object_get(reference, headers[i].name)));
        if (reference && !twice)
            assert_int_equal(count, json_object_size(reference));
        read_well += status == 0;
        refused += status != 0;
        mull__free(&a, headers);
        json_decref(reference);
    }
    print_message("%d read, %d refused\n", read_well, refused);
    assert_true(read_well > 1000 && refused > 1000);
    assert_int_equal(p.out, 0);
}

static void what_is_no_utf8_is_not_written(void **state)
{
    (void)state;
    mull_allocator a = purse_allocator(&p);
    const mull_header bad[] = {{"good", "value"}, {"name", "\xff"}};
    static char before[] = "before";
    char *json = before;
    assert_int_equal(mull__headers_to_json(&json, &a, bad, 2), MULL_EINVAL);
    assert_null(json);
    assert_int_equal(p.out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(any_text_is_read_as_jansson_does),
        cmocka_unit_test(what_is_no_utf8_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
