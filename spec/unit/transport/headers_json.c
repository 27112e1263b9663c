/* headers_json.c: headers to JSON, as jansson writes it, and back, as SQLite reads it:
 * what was written is read again, byte for byte; of any text, valid or not, what is read is what
 * jansson reads; and where memory ends, nothing else is said than that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/alloc.h"
#include "sample.h"
#include "sqlite_allocator.h"
#include "transport/sqlite/store.h"
#include "wire/headers.h"

static counting_allocator p;
static mull__store store; /* no more of it than statements */

static int open_store(void **state)
{
    (void)state;
    store.allocator = counting_allocator_ops(&p);
    assert_int_equal(sqlite3_open(":memory:", &store.db), SQLITE_OK);
    static const char *const schema[] = {MULL__SCHEMA};
    for (size_t i = 0; i < sizeof schema / sizeof *schema; i++)
        assert_int_equal(sqlite3_exec(store.db, schema[i], NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(mull__store_prepare(&store), SQLITE_OK);
    return 0;
}

static int close_store(void **state)
{
    (void)state;
    mull__store_finalize(&store);
    assert_int_equal(sqlite3_close(store.db), SQLITE_OK);
    assert_int_equal(p.out, 0);
    return 0;
}

static int pick(sample *s, int count)
{
    return (int)(sample_random(s) % (uint64_t)count);
}

/* assert_jansson_writes says that jansson would write the same. */
static void assert_jansson_writes(const char *json, const mull_header *headers, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, headers[i].name, json_string(headers[i].value));
    char *wanted = json_dumps(object, JSON_COMPACT);
    assert_string_equal(json, wanted);
    free(wanted);
    json_decref(object);
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
    mull_allocator a = counting_allocator_ops(&p);
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
        assert_jansson_writes(json, headers, count);
        assert_int_equal(mull__store_headers(&store, json, &read, &read_count), SQLITE_OK);
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

/* reads_json5: newer SQLites read what isn't quite JSON as well. */
static int reads_json5(void)
{
    return sqlite3_libversion_number() >= 3042000;
}

static void any_text_is_read_as_jansson_does(void **state)
{
    (void)state;
    mull_allocator a = counting_allocator_ops(&p);
    sample s = sample_of(2);
    int read_well = 0, refused = 0;
    for (int round = 0; round < 20000; round++) {
        char json[512];
        int twice;
        random_json(&s, json);
        json_t *reference = read_reference(json, &twice);
        mull_header *headers = NULL;
        size_t count = 0;
        int code = mull__store_headers(&store, json, &headers, &count);
        if (code != (reference ? SQLITE_OK : SQLITE_ERROR) && (reference || !reads_json5()))
            fail_msg("%d, and jansson %s it: %s", code, reference ? "reads" : "refuses", json);
        for (size_t i = 0; reference && i < count && !twice; i++)
            assert_string_equal(headers[i].value,
                                json_string_value(json_object_get(reference, headers[i].name)));
        if (reference && !twice)
            assert_int_equal(count, json_object_size(reference));
        read_well += code == SQLITE_OK;
        refused += code != SQLITE_OK;
        mull__free(&a, headers);
        json_decref(reference);
    }
    print_message("%d read, %d refused\n", read_well, refused);
    assert_true(read_well > 1000 && refused > 1000);
    assert_int_equal(p.out, 0);
}

static void what_a_header_cant_be_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"[]",
                                        "[\"a\"]",
                                        "\"a\"",
                                        "null",
                                        " ",
                                        "{\"a\":\"b\"",
                                        "{\"a\":\"b\"} {}",
                                        "{\"a\":1}",
                                        "{\"a\":true}",
                                        "{\"a\":null}",
                                        "{\"a\":{}}",
                                        "{\"a\":[\"b\"]}",
                                        "{\"a\":\"b\",\"c\":2}",
                                        "{\"a\":\"\\u0000\"}",
                                        "{\"a\":\"b\\\\\\u0000c\"}",
                                        "{\"\\u0000\":\"a\"}",
                                        "{\"a\":\"\\ud83d\"}",
                                        "{\"a\":\"\\ude00\\ud83d\"}",
                                        "{\"\\ude00\":\"a\"}",
                                        "{\"a\":\"\xff\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        mull_header *headers = &(mull_header){0};
        size_t count = 7;
        if (mull__store_headers(&store, texts[i], &headers, &count) != SQLITE_ERROR)
            fail_msg("not refused: %s", texts[i]);
        assert_null(headers);
        assert_int_equal(count, 0);
    }
}

static void what_is_written_by_hand_is_read(void **state)
{
    (void)state;
    static const char text[] =
        " {\t\"b\" : \"1\",\n\"a\":\"\\ud83d\\uDE00\" , \"b\":\"\\\\u0000\",\"\":\",,\"}\r\n";
    static const char *const wanted[][2] = {
        {"b", "1"}, {"a", "\xf0\x9f\x98\x80"}, {"b", "\\u0000"}, {"", ",,"}};
    mull_header *headers;
    size_t count;
    assert_int_equal(mull__store_headers(&store, text, &headers, &count), SQLITE_OK);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(headers[i].name, wanted[i][0]);
        assert_string_equal(headers[i].value, wanted[i][1]);
    }
    assert_int_equal(p.out, 1);
    mull__free(&store.allocator, headers);
}

/* A text that SQLite could not read for want of memory must not pass for one that was spoiled: the
 * message would be delivered without its headers. */
static void the_nth_request_for_memory_fails(void **state)
{
    (void)state;
    static const char text[] = "{\"name\":\"value\",\"escaped\":\"\\u00e9 and so on, and on, and "
                               "on, for more than a few bytes\",\"a\":\"1\",\"b\":\"2\"}";
    static const char spoiled[] = "{\"name\":\"value\",\"a\":\"\\ud83d\", \"b\":1}";
    counting_allocator *const counting_allocators[] = {&p, &sqlites};
    for (size_t whose = 0; whose < 2; whose++) {
        int refused = 0, more = 1;
        for (long nth = 1; more; nth++) {
            mull_header *headers;
            size_t count;
            *counting_allocators[whose] = (counting_allocator){.fail_at = nth};
            int good = mull__store_headers(&store, text, &headers, &count);
            more = counting_allocators[whose]->asked >= nth;
            assert_int_equal(good, more ? SQLITE_NOMEM : SQLITE_OK);
            assert_int_equal(count, more ? 0 : 4);
            assert_true(count == 4 || !headers);
            mull__free(&store.allocator, headers);
            *counting_allocators[whose] = (counting_allocator){.fail_at = nth};
            int bad = mull__store_headers(&store, spoiled, &headers, &count);
            assert_int_equal(bad, counting_allocators[whose]->asked >= nth ? SQLITE_NOMEM
                                                                           : SQLITE_ERROR);
            assert_null(headers);
            assert_int_equal(p.out, 0);
            refused += more;
        }
        *counting_allocators[whose] = (counting_allocator){0};
        print_message("%d requests refused\n", refused);
        assert_true(refused > 0);
    }
}

static void what_is_no_utf8_is_not_written(void **state)
{
    (void)state;
    mull_allocator a = counting_allocator_ops(&p);
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
        cmocka_unit_test(what_a_header_cant_be_is_refused),
        cmocka_unit_test(what_is_written_by_hand_is_read),
        cmocka_unit_test(the_nth_request_for_memory_fails),
        cmocka_unit_test(what_is_no_utf8_is_not_written),
    };
    sqlite_take_over();
    return cmocka_run_group_tests(tests, open_store, close_store);
}
