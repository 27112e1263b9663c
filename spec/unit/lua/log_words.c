/* log_words.c: how a line of `run`'s log says what became of a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <lauxlib.h>

#include "lua/binding/callbacks.h"

/* says compares the words for a failure, which changes with the test, and a verdict. */
static void says(const char *expected, mull_error error, mull_verdict verdict)
{
    const mull_message message = {.size = sizeof message, .id = "m"};
    error.size = sizeof error;
    const mull_failure failure = {.size = sizeof failure,
                                  .error = &error,
                                  .message = &message,
                                  .consumer = "C",
                                  .attempt = 5,
                                  .redeliveries = 3,
                                  .calls = 8};
    const mull_event event = {.kind = MULL_EVENT_DECIDED, .failure = &failure, .verdict = &verdict};
    lua_State *L = luaL_newstate();
    mull__push_decided_words(L, &event);
    assert_string_equal(lua_tostring(L, -1), expected);
    assert_int_equal(lua_gettop(L), 1);
    lua_close(L);
}

#define E    ((mull_error){.type = "E", .message = ""})
#define RULE .rule = {.file = "policy.lua", .line = 7}
#define SAYS(middle, ...)                                                                          \
    says(middle "; policy.lua:7", E,                                                               \
         (mull_verdict){.size = sizeof(mull_verdict), RULE, __VA_ARGS__})

static void the_steps_of_a_chain_are_counted(void **state)
{
    (void)state;
    SAYS("retry: message m, consumer C: E; attempt 5 of 6, again in 1s", .action = MULL_RETRY,
         .delay_ms = 1000, .step = 5, .of = 5);
    SAYS("retry: message m, consumer C: E; attempt 5 of 5, again in 1d1h1m1s1ms",
         .action = MULL_RETRY, .delay_ms = 90061001, .step = 1, .of = 1);
    SAYS("redelivery: message m, consumer C: E; attempt 5 of 5, redelivery 4 of 9 in 1m",
         .action = MULL_REDELIVER, .delay_ms = 60000, .step = 4, .of = 9);
    SAYS("redelivery: message m, consumer C: E; attempt 5 of 5, redelivery 4 of unlimited at once",
         .action = MULL_REDELIVER, .step = 4, .of = MULL_UNLIMITED);
}

static void of_an_override_no_number_is_invented(void **state)
{
    (void)state;
    SAYS("retry: message m, consumer C: E; attempt 5, again in 1s: override", .action = MULL_RETRY,
         .delay_ms = 1000, .step = 5, .reason = MULL_REASON_OVERRIDE);
    SAYS("redelivery: message m, consumer C: E; attempt 5 of 5, redelivery 4 in 1m: override",
         .action = MULL_REDELIVER, .delay_ms = 60000, .step = 4, .reason = MULL_REASON_OVERRIDE);
    SAYS("dead letter: message m, consumer C: E; attempt 5 of 5, to parked after 8 calls and 3 "
         "redeliveries: override",
         .action = MULL_DEAD_LETTER, .queue = "parked", .reason = MULL_REASON_OVERRIDE);
}

static void an_end_says_why(void **state)
{
    (void)state;
    SAYS("dead letter: message m, consumer C: E; attempt 5 of 5, to error after 8 calls and 3 "
         "redeliveries: exhausted (no_retry)",
         .action = MULL_DEAD_LETTER, .queue = "error", .reason = MULL_REASON_EXHAUSTED,
         .fallback = MULL_NO_RETRY);
    SAYS("discard: message m, consumer C: E; attempt 5 of 5, discarded after 8 calls and 3 "
         "redeliveries: seen before",
         .action = MULL_DISCARD, .note = "seen before", .reason = MULL_REASON_RULE);
    says("discard: message m, consumer C: E; attempt 5 of 5, discarded after 8 calls and 3 "
         "redeliveries: rule; no rule",
         E,
         (mull_verdict){
             .size = sizeof(mull_verdict), .action = MULL_DISCARD, .reason = MULL_REASON_RULE});
}

static const char before[] = "dead letter: message m, consumer C: ",
                  after[] = "; attempt 5 of 5, to error after 8 calls and 3 redeliveries: rule; "
                            "no rule";

static void shows(const char *type, const char *message, const char *shown)
{
    char expected[1024];
    snprintf(expected, sizeof expected, "%s%s%s", before, shown, after);
    says(expected, (mull_error){.type = type, .message = message},
         (mull_verdict){.size = sizeof(mull_verdict),
                        .action = MULL_DEAD_LETTER,
                        .queue = "error",
                        .reason = MULL_REASON_RULE});
}

static void an_error_is_one_line_of_utf8(void **state)
{
    (void)state;
    shows("E", NULL, "E");
    shows("E", "one\ntwo\tthree\x7f.", "E: one two three .");
    shows("E", "Z\xc3\xbcrich", "E: Z\xc3\xbcrich");
    shows("E", "\xff\xed\xa0\x80\xc3", "E: ?????");
}

/* Of 500 bytes all are shown; of more none of half a character. */
static void a_long_error_is_cut(void **state)
{
    (void)state;
    char message[600], shown[620];
    memset(message, 'x', sizeof message);
    message[497] = 0;
    snprintf(shown, sizeof shown, "E: %s", message);
    shows("E", message, shown);
    message[497] = 'x';
    message[599] = 0;
    snprintf(shown, sizeof shown, "E: %.497s...", message);
    shows("E", message, shown);
    memcpy(message + 495, "\xe2\x82\xac", 3); /* ends behind the 500 */
    snprintf(shown, sizeof shown, "E: %.495s...", message);
    shows("E", message, shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_steps_of_a_chain_are_counted),
        cmocka_unit_test(of_an_override_no_number_is_invented),
        cmocka_unit_test(an_end_says_why),
        cmocka_unit_test(an_error_is_one_line_of_utf8),
        cmocka_unit_test(a_long_error_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
