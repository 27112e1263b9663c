/* failure_json.c: a failure's JSON as a failure in C, and a verdict as JSON: what is taken, what is
 * left to Lua, and where memory ends. That both paths come to the same is
 * spec/lua/decide_json_spec.lua's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "counting_allocator.h"
#include "wire/failure_value.h"
#include "wire/json_value.h"
#include "wire/verdict_json.h"

static const char whole[] =
    "{\"error\": {\"type\": \"PgError\", \"lineage\": [\"DatabaseError\"], \"message\": "
    "\"dead\\u006c"
    "ock \\ud83d\\ude00\\n\", \"code\": 40, \"tags\": [\"a\", {\"b\": true}], \"none\": null,"
    " \"cause\": {\"type\": \"TimeoutError\"}}, \"consumer\": \"C\", \"transport\": \"t\","
    " \"attempt\": 2, \"redeliveries\": 1, \"calls\": 3, \"deliveries\": 4, \"age_ms\": 5,"
    " \"message\": {\"id\": \"m\", \"size\": 300, \"headers\": {\"tenant\": \"acme\"}},"
    " \"can\": {\"retry\": true, \"delay\": false}}";

static int read_failure(mull__arena *arena, mull_failure *failure, const char *text)
{
    mull_value value;
    int status = mull__json_value(&value, arena, text, strlen(text));
    return status != 0 ? status : mull__failure_of_value(failure, arena, &value);
}

static void a_plain_failure_is_read_whole(void **state)
{
    (void)state;
    counting_allocator counting = {0};
    mull__arena arena = {.allocator = counting_allocator_ops(&counting)};
    mull_failure failure;
    assert_int_equal(read_failure(&arena, &failure, whole), 0);
    const mull_error *error = failure.error;
    assert_string_equal(error->type, "PgError");
    assert_string_equal(error->message, "deadlock \xf0\x9f\x98\x80\n");
    assert_int_equal(error->lineage_count, 1);
    assert_string_equal(error->lineage[0], "DatabaseError");
    assert_int_equal(error->field_count, 2);
    assert_string_equal(error->fields[0].name, "code");
    assert_int_equal(error->fields[0].value.as.integer, 40);
    assert_int_equal(error->fields[1].value.kind, MULL_LIST);
    assert_int_equal(error->fields[1].value.count, 2);
    assert_string_equal(error->cause->type, "TimeoutError");
    assert_string_equal(failure.consumer, "C");
    assert_string_equal(failure.transport, "t");
    assert_int_equal(failure.attempt, 2);
    assert_int_equal(failure.redeliveries, 1);
    assert_int_equal(failure.calls, 3);
    assert_int_equal(failure.deliveries, 4);
    assert_int_equal(failure.age_ms, 5);
    assert_int_equal(failure.flags, MULL_CANNOT_DELAY);
    assert_string_equal(failure.message->id, "m");
    assert_null(failure.message->key);
    assert_int_equal(failure.message->body_size, 300);
    assert_string_equal(failure.message->headers[0].value, "acme");
    mull__arena_free(&arena);
    assert_int_equal(counting.out, 0);
}

static void what_is_wrong_or_unusual_is_left_to_lua(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"error\": {}}",
        "{\"error\": {\"type\": \"\"}}",
        "{\"error\": {\"type\": \"A\"}} x",
        "{\"error\": {\"type\": \"A\"}, \"atempt\": 1}",
        "{\"error\": {\"type\": \"A\"}, \"attempt\": 0}",
        "{\"error\": {\"type\": \"A\"}, \"consumer\": \"\"}",
        "{\"error\": {\"type\": \"A\"}, \"can\": {\"retry\": 1}}",
        "{\"error\": {\"type\": \"A\"}, \"message\": {\"headers\": {\"\": \"x\"}}}",
        "{\"error\": {\"type\": \"A\", \"x\": 1.5}}",
        "{\"error\": {\"type\": \"A\", \"x\": 1234567890123456789}}",
        "{\"error\": {\"type\": \"A\", \"x\": \"\\u0000\"}}",
        "{\"error\": {\"type\": \"A\", \"x\": 1, \"x\": 2}}",
        "{\"error\": {\"type\": \"A\", \"x\": null, \"x\": 2}}",
        "{\"error\": {\"type\": \"A\", \"x\": [[[[[[[[[[[[[]]]]]]]]]]]]]}}",
    };
    mull_allocator libc = mull__allocator_or_default((mull_allocator){NULL, NULL});
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mull__arena arena = {.allocator = libc};
        mull_failure failure;
        if (read_failure(&arena, &failure, texts[i]) != MULL_EINVAL)
            fail_msg("%s was taken", texts[i]);
        mull__arena_free(&arena);
    }
}

static void a_lack_of_memory_is_told(void **state)
{
    (void)state;
    int status = MULL_ENOMEM;
    for (long n = 1; status != 0; n++) {
        counting_allocator counting = {.fail_at = n};
        mull__arena arena = {.allocator = counting_allocator_ops(&counting)};
        mull_failure failure;
        status = read_failure(&arena, &failure, whole);
        assert_true(status == 0 || status == MULL_ENOMEM);
        mull__arena_free(&arena);
        assert_int_equal(counting.out, 0);
    }
}

static void a_verdict_has_every_key(void **state)
{
    (void)state;
    counting_allocator counting = {0};
    mull_allocator allocator = counting_allocator_ops(&counting);
    mull__json_text text = {.allocator = &allocator};
    mull_verdict verdict = MULL_INIT(mull_verdict);
    verdict.action = MULL_RETRY;
    verdict.tier = MULL_TIER_RETRY;
    verdict.delay_ms = 200;
    verdict.step = 1;
    verdict.of = MULL_UNLIMITED;
    verdict.rule = (mull_rule){.file = "p.lua", .line = 7, .scope = "bus", .type = "A\"B"};
    verdict.generation = "3f";
    assert_int_equal(mull__verdict_to_json(&text, &verdict), 0);
    assert_string_equal(
        text.memory,
        "{\"action\": \"retry\", \"delay_ms\": 200, \"queue\": null, \"reason\": null, \"note\": "
        "null, \"tier\": \"retry\", \"step\": 1, \"of\": null, \"rule\": {\"file\": \"p.lua\", "
        "\"line\": 7, \"scope\": \"bus\", \"type\": \"A\\\"B\"}, \"fallback\": null, "
        "\"generation\": \"3f\"}");
    mull__free(&allocator, text.memory);
    text = (mull__json_text){.allocator = &allocator};
    verdict.rule.file = "\xff";
    assert_int_equal(mull__verdict_to_json(&text, &verdict), MULL_EINVAL);
    mull__free(&allocator, text.memory);
    assert_int_equal(counting.out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_failure_is_read_whole),
        cmocka_unit_test(what_is_wrong_or_unusual_is_left_to_lua),
        cmocka_unit_test(a_lack_of_memory_is_told),
        cmocka_unit_test(a_verdict_has_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
