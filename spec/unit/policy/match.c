/* match.c: matchers of every form, evaluated in C, by hand at the edges.
 * spec/unit/policy/match_random.c has those by the thousand. */
#include <math.h>

#include "probe.h"

/* ---- One value ------------------------------------------------------------------------------- */

/* fits: the value of a field, which is there unless `given` is NULL, is what is wanted. */
static int fits(const mull__condition *wanted, const mull_value *given)
{
    probe p = {0};
    const mull__field_test test = {.subject = MULL__OF_ERROR, .name = "field", .value = *wanted};
    const mull__matcher matcher = {MULL__MATCH_TESTS, .tests = &test, .test_count = 1};
    mull_field fields[] = {{"other", STRING("field")}, {"field", NOTHING}};
    mull_error error = error_of("Any");
    error.fields = fields;
    error.field_count = given ? 2 : 1;
    if (given)
        fields[1].value = *given;
    const mull_failure failure = failure_of(&error);
    return probe_passes(&p, &matcher, &failure);
}

/* FITS and its like: the value wanted, then the one given. */
#define GIVEN(...)         (&(const mull_value)__VA_ARGS__)
#define FITS(wanted, ...)  assert_true(fits(&(wanted), GIVEN(__VA_ARGS__)))
#define LOSES(wanted, ...) assert_false(fits(&(wanted), GIVEN(__VA_ARGS__)))

static mull__condition between(mull_value low, mull_value high)
{
    return (mull__condition){.kind = MULL__BETWEEN, .low = low, .high = high};
}

static mull__condition not(const mull__condition *inner)
{
    return (mull__condition){.kind = MULL__NOT, .inner = inner};
}

static void ranges(void **state)
{
    (void)state;
    const int64_t odd = (INT64_C(1) << 53) + 1; /* no double */
    mull__condition whole = between((mull_value)INTEGER(500), (mull_value)INTEGER(599));
    FITS(whole, INTEGER(500));
    FITS(whole, INTEGER(599));
    FITS(whole, NUMBER(599));
    FITS(whole, NUMBER(500.5));
    LOSES(whole, INTEGER(499));
    LOSES(whole, INTEGER(600));
    LOSES(whole, NUMBER(599.0000001));
    LOSES(whole, NUMBER(499.9999999));
    LOSES(whole, NUMBER((double)NAN));
    LOSES(whole, STRING("550"));
    LOSES(whole, BOOLEAN(1));
    LOSES(whole, NOTHING);
    mull__condition least = between((mull_value)INTEGER(odd), (mull_value)NOTHING);
    FITS(least, INTEGER(odd));
    FITS(least, INTEGER(INT64_MAX));
    FITS(least, NUMBER((double)INFINITY));
    FITS(least, NUMBER(0x1p63));
    LOSES(least, NUMBER(0x1p53));
    LOSES(least, INTEGER(odd - 1));
    LOSES(least, NUMBER((double)NAN));
    LOSES(least, NUMBER(-(double)INFINITY));
    mull__condition most = between((mull_value)NOTHING, (mull_value)NUMBER(-0.5));
    FITS(most, INTEGER(-1));
    FITS(most, NUMBER(-0.5));
    FITS(most, INTEGER(INT64_MIN));
    FITS(most, NUMBER(-(double)INFINITY));
    LOSES(most, INTEGER(0));
    LOSES(most, NUMBER(-0.0));
    mull__condition below = between((mull_value)NOTHING, (mull_value)NUMBER(0x1p63));
    FITS(below, INTEGER(INT64_MAX));
    FITS(below, NUMBER(0x1p63));
    mull__condition above = between((mull_value)NUMBER(0x1p63), (mull_value)NOTHING);
    LOSES(above, INTEGER(INT64_MAX));
    mull__condition lowest = between((mull_value)NUMBER(-0x1p63), (mull_value)NUMBER(-0x1p63));
    FITS(lowest, INTEGER(INT64_MIN));
    LOSES(lowest, INTEGER(INT64_MIN + 1));
}

static void texts(void **state)
{
    (void)state;
    mull__condition contains = {.kind = MULL__CONTAINS, .text = "time.out"};
    FITS(contains, STRING("time.out"));
    FITS(contains, STRING("a time.out again"));
    LOSES(contains, STRING("time_out"));
    LOSES(contains, STRING(""));
    LOSES(contains, INTEGER(1));
    mull__condition anything = {.kind = MULL__CONTAINS, .text = ""};
    FITS(anything, STRING(""));
    LOSES(anything, BOOLEAN(1));
    mull__condition digits = {.kind = MULL__CONTAINS, .text = "5"};
    LOSES(digits, INTEGER(503)); /* a number is no string */
}

static void lists_of_literals(void **state)
{
    (void)state;
    const mull_value literals[] = {INTEGER(429), STRING("busy"), BOOLEAN(0), NUMBER(1.5)};
    mull__condition list = {.kind = MULL__ONE_OF, .literals = literals, .literal_count = 4};
    FITS(list, NUMBER(429));
    FITS(list, STRING("busy"));
    FITS(list, BOOLEAN(0));
    FITS(list, NUMBER(1.5));
    LOSES(list, INTEGER(1));
    LOSES(list, STRING("429"));
    LOSES(list, BOOLEAN(1));
    LOSES(list, NOTHING);
    assert_false(fits(&list, NULL));
}

static void what_is_there_and_what_is_not(void **state)
{
    (void)state;
    mull__condition present = {.kind = MULL__PRESENT}, absent = {.kind = MULL__ABSENT};
    const mull_value given[] = {BOOLEAN(0), STRING(""), INTEGER(0), NUMBER((double)NAN)};
    for (size_t i = 0; i < COUNT(given); i++) {
        assert_true(fits(&present, &given[i]));
        assert_false(fits(&absent, &given[i]));
    }
    const mull_value none[] = {NOTHING, {.kind = MULL_LIST}, {.kind = MULL_MAP}};
    for (size_t i = 0; i < COUNT(none); i++) {
        assert_false(fits(&present, &none[i]));
        assert_true(fits(&absent, &none[i]));
    }
    assert_false(fits(&present, NULL));
    assert_true(fits(&absent, NULL));
}

static void what_is_not(void **state)
{
    (void)state;
    const mull_value status = INTEGER(503);
    mull__condition is = {.kind = MULL__ONE_OF, .literals = &status, .literal_count = 1};
    mull__condition present = {.kind = MULL__PRESENT}, absent = {.kind = MULL__ABSENT};
    mull__condition once = not(&is), twice = not(&once), thrice = not(&twice);
    FITS(once, INTEGER(504));
    FITS(once, STRING("503"));
    FITS(once, NOTHING);
    LOSES(once, NUMBER(503));
    assert_true(fits(&once, NULL));
    assert_false(fits(&twice, NULL));
    FITS(twice, INTEGER(503));
    LOSES(twice, INTEGER(504));
    assert_true(fits(&thrice, NULL));
    mull__condition missing = not(&present), there = not(&absent);
    assert_true(fits(&missing, NULL));
    assert_false(fits(&there, NULL));
    FITS(there, INTEGER(1));
    LOSES(missing, INTEGER(1));
}

/* ---- What a test looks at -------------------------------------------------------------------- */

static const mull_header headers[] = {
    {"tenant", "acme"}, {"Tenant", "other"}, {"tenant", "late"}, {"empty", ""}};

static mull_message message_of(void)
{
    mull_message message = MULL_INIT(mull_message);
    message.id = "id-1";
    message.type = "OrderPlaced";
    message.body_size = 77;
    message.headers = headers;
    message.header_count = COUNT(headers);
    return message;
}

/* full_failure has another value in each of its inputs. */
static mull_failure full_failure(const mull_error *error, const mull_message *message)
{
    mull_failure failure = failure_of(error);
    failure.message = message;
    failure.consumer = "Payments";
    failure.attempt = 2;
    failure.redeliveries = 3;
    failure.deliveries = 4;
    failure.calls = 5;
    failure.age_ms = 6;
    return failure;
}

static int is(const mull_failure *failure, mull__subject subject, const char *name,
              mull_value literal)
{
    probe p = {0};
    const mull__field_test test = {
        .subject = subject,
        .name = name,
        .value = {.kind = MULL__ONE_OF, .literals = &literal, .literal_count = 1},
    };
    const mull__matcher matcher = {MULL__MATCH_TESTS, .tests = &test, .test_count = 1};
    return probe_passes(&p, &matcher, failure);
}

static int is_absent(const mull_failure *failure, mull__subject subject, const char *name)
{
    probe p = {0};
    const mull__field_test test = {
        .subject = subject, .name = name, .value = {.kind = MULL__ABSENT}};
    const mull__matcher matcher = {MULL__MATCH_TESTS, .tests = &test, .test_count = 1};
    return probe_passes(&p, &matcher, failure);
}

static void facts_of_the_error(void **state)
{
    (void)state;
    const mull_error cause = error_of("Cause");
    const mull_field fields[] = {
        {"message", INTEGER(7)}, {"type", STRING("Wrong")}, {"cause", STRING("text")},
        {"twice", NOTHING},      {"twice", INTEGER(2)},     {"first", INTEGER(1)},
        {"first", INTEGER(2)},   {"statu", INTEGER(9)},     {"status", INTEGER(503)}};
    mull_error error = error_of("Any");
    error.fields = fields;
    error.field_count = COUNT(fields);
    error.cause = &cause;
    const mull_failure failure = failure_of(&error);
    assert_true(is(&failure, MULL__OF_ERROR, "message", (mull_value)STRING("")));
    assert_true(is(&failure, MULL__OF_ERROR, "stack", (mull_value)STRING("")));
    assert_true(is(&failure, MULL__OF_ERROR, "type", (mull_value)STRING("Any")));
    assert_false(is(&failure, MULL__OF_ERROR, "message", (mull_value)INTEGER(7)));
    assert_true(is_absent(&failure, MULL__OF_ERROR, "cause"));
    assert_true(is_absent(&failure, MULL__OF_ERROR, "twice"));
    assert_true(is(&failure, MULL__OF_ERROR, "first", (mull_value)INTEGER(1)));
    assert_true(is(&failure, MULL__OF_ERROR, "status", (mull_value)INTEGER(503)));
    assert_true(is_absent(&failure, MULL__OF_ERROR, "Status"));
    assert_true(is_absent(&failure, MULL__OF_ERROR, "attempt")); /* that is ctx's */
    error.message = "full";
    error.stack = "at line 3";
    assert_true(is(&failure, MULL__OF_ERROR, "message", (mull_value)STRING("full")));
    assert_true(is(&failure, MULL__OF_ERROR, "stack", (mull_value)STRING("at line 3")));
}

static void facts_of_ctx(void **state)
{
    (void)state;
    static const char *const counters[] = {"attempt", "redeliveries", "deliveries", "calls",
                                           "age_ms"};
    const mull_error error = error_of("Any");
    mull_failure failure = full_failure(&error, NULL);
    for (size_t i = 0; i < COUNT(counters); i++) {
        assert_true(is(&failure, MULL__OF_CTX, counters[i], (mull_value)INTEGER((int64_t)i + 2)));
        assert_false(is(&failure, MULL__OF_CTX, counters[i], (mull_value)INTEGER((int64_t)i + 3)));
    }
    assert_true(is(&failure, MULL__OF_CTX, "consumer", (mull_value)STRING("Payments")));
    assert_true(is_absent(&failure, MULL__OF_CTX, "transport"));
    failure.transport = "orders";
    failure.consumer = NULL;
    assert_true(is(&failure, MULL__OF_CTX, "transport", (mull_value)STRING("orders")));
    assert_true(is_absent(&failure, MULL__OF_CTX, "consumer"));
}

static void facts_of_the_message(void **state)
{
    (void)state;
    const mull_error error = error_of("Any");
    const mull_message message = message_of();
    mull_failure failure = full_failure(&error, &message);
    assert_true(is(&failure, MULL__OF_MESSAGE, "id", (mull_value)STRING("id-1")));
    assert_true(is(&failure, MULL__OF_MESSAGE, "type", (mull_value)STRING("OrderPlaced")));
    assert_true(is_absent(&failure, MULL__OF_MESSAGE, "key"));
    assert_true(is(&failure, MULL__OF_MESSAGE, "size", (mull_value)INTEGER(77)));
    assert_true(is(&failure, MULL__OF_HEADER, "tenant", (mull_value)STRING("acme")));
    assert_true(is(&failure, MULL__OF_HEADER, "Tenant", (mull_value)STRING("other")));
    assert_true(is(&failure, MULL__OF_HEADER, "empty", (mull_value)STRING("")));
    assert_true(is_absent(&failure, MULL__OF_HEADER, "id"));
    failure.message = NULL;
    static const char *const names[] = {"id", "type", "key"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_true(is_absent(&failure, MULL__OF_MESSAGE, names[i]));
    assert_true(is(&failure, MULL__OF_MESSAGE, "size", (mull_value)INTEGER(0)));
    assert_true(is_absent(&failure, MULL__OF_HEADER, "tenant"));
}

/* ---- How far is looked ----------------------------------------------------------------------- */

#define PARTS(which, list)                                                                         \
    {                                                                                              \
        (which), .parts = (list), .part_count = COUNT(list)                                        \
    }

static const mull__matcher no_yes_raises[] = {FUNCTION(FUNCTION_NO), FUNCTION(FUNCTION_YES),
                                              FUNCTION(FUNCTION_RAISES)};
static const mull__matcher yes_no_raises[] = {FUNCTION(FUNCTION_YES), FUNCTION(FUNCTION_NO),
                                              FUNCTION(FUNCTION_RAISES)};
static const mull__matcher no_raises_yes[] = {FUNCTION(FUNCTION_NO), FUNCTION(FUNCTION_RAISES),
                                              FUNCTION(FUNCTION_YES)};
static const mull__matcher yes_yes[] = {FUNCTION(FUNCTION_YES), FUNCTION(FUNCTION_YES)};
static const mull__matcher no_no[] = {FUNCTION(FUNCTION_NO), FUNCTION(FUNCTION_NO)};

static void parts_are_looked_at_in_order_and_no_further_than_needed(void **state)
{
    (void)state;
    const struct {
        mull__matcher matcher;
        const char *said;
        int passes;
    } cases[] = {
        {PARTS(MULL__MATCH_ALL, yes_no_raises), "f1:Any f0:Any", 0},
        {PARTS(MULL__MATCH_ALL, yes_yes), "f1:Any f1:Any", 1},
        {PARTS(MULL__MATCH_ALL, no_raises_yes), "f0:Any", 0},
        {PARTS(MULL__MATCH_ANY, no_yes_raises), "f0:Any f1:Any", 1},
        {PARTS(MULL__MATCH_ANY, no_no), "f0:Any f0:Any", 0},
        {PARTS(MULL__MATCH_ANY, no_raises_yes), "f0:Any f2:Any x7", 0},
        {PARTS(MULL__MATCH_NONE, no_yes_raises), "f0:Any f1:Any", 0},
        {PARTS(MULL__MATCH_NONE, no_no), "f0:Any f0:Any", 1},
        {PARTS(MULL__MATCH_NONE, no_raises_yes), "f0:Any f2:Any x7", 0},
    };
    const mull_error error = error_of("Any");
    const mull_failure failure = failure_of(&error);
    for (size_t i = 0; i < COUNT(cases); i++) {
        probe p = {0};
        assert_int_equal(probe_passes(&p, &cases[i].matcher, &failure), cases[i].passes);
        assert_string_equal(p.said, cases[i].said);
    }
}

/* A matcher in which something raises fails as a whole, however deep in it, and whatever it is
 * turned into by what stands around it. */
static void what_raises_fails_the_matcher_as_a_whole(void **state)
{
    (void)state;
    const mull__matcher inner[] = {PARTS(MULL__MATCH_NONE, no_raises_yes)};
    const mull__matcher middle[] = {PARTS(MULL__MATCH_NONE, inner), FUNCTION(FUNCTION_YES)};
    const mull__matcher outer = PARTS(MULL__MATCH_ANY, middle);
    const mull_error error = error_of("Any");
    const mull_failure failure = failure_of(&error);
    probe p = {.trials = 1};
    assert_false(probe_passes(&p, &outer, &failure));
    assert_string_equal(p.said, "f0:Any f2:Any x7 r7!boom");
}

static void each_candidate_is_told(void **state)
{
    (void)state;
    const mull_value status = INTEGER(503), host = STRING("db");
    const mull__field_test tests[] = {EQUALS("host", &host), EQUALS("status", &status)};
    const mull__matcher fields = {MULL__MATCH_TESTS, .tests = tests, .test_count = 2};
    const mull__matcher parts[] = {FUNCTION(FUNCTION_YES), fields};
    mull__plain_rule rules[] = {
        DEAD_LETTER_RULE("Http", 1),  DEAD_LETTER_RULE("Http", 2),  DEAD_LETTER_RULE("Http", 3),
        DEAD_LETTER_RULE("Http", 4),  DEAD_LETTER_RULE("Other", 5), DEAD_LETTER_RULE("Error", 6),
        DEAD_LETTER_RULE("Error", 7),
    };
    rules[0].matcher = fields;
    rules[1].matcher = (mull__matcher)PARTS(MULL__MATCH_ALL, parts);
    rules[2].matcher = (mull__matcher)PARTS(MULL__MATCH_ANY, no_no);
    rules[3].matcher = (mull__matcher)FUNCTION(FUNCTION_RAISES);
    rules[5].matcher = (mull__matcher)FUNCTION(FUNCTION_NO);
    const mull__plain_scope bus = {.kind = MULL__BUS, .rules = rules, .rule_count = COUNT(rules)};
    const mull_field carried[] = {{"host", STRING("db")}, {"status", INTEGER(500)}};
    mull_error error = error_of("Http");
    error.fields = carried;
    error.field_count = COUNT(carried);
    const mull_failure failure = failure_of(&error);
    probe p = {.trials = 1};
    assert_int_equal(probe_bus(&p, &bus, &failure).rule.line, 7);
    assert_string_equal(p.said,
                        "r1-status f1:Http r2-status f0:Http f0:Http r3- f2:Http x4 r4!boom "
                        "f0:Http r6- r7=");
    /* Nobody is told, and the verdict is the same. */
    probe quiet = {0};
    assert_int_equal(probe_bus(&quiet, &bus, &failure).rule.line, 7);
    assert_string_equal(quiet.said, "f1:Http f0:Http f0:Http f2:Http x4 f0:Http");
}

/* ---- Patterns -----------------------------------------------------------------------------------
 */

/* A pattern that would look for ages is stopped, and so is the matcher; the steps are for all of
 * its tests together, and each matcher has its own. */
static void a_pattern_that_takes_too_long_raises(void **state)
{
    (void)state;
    static char text[20001];
    memset(text, 'a', sizeof text - 1);
    mull__field_test tests[] = {
        {.subject = MULL__OF_ERROR,
         .name = "message",
         .value = {.kind = MULL__MATCHES, .text = ".-.-.-.-b"}},
    };
    mull__plain_rule rules[] = {DEAD_LETTER_RULE("Any", 1), DEAD_LETTER_RULE("Any", 2),
                                DEAD_LETTER_RULE("Any", 3)};
    rules[0].matcher = (mull__matcher){MULL__MATCH_TESTS, .tests = tests, .test_count = 1};
    const mull__field_test half = {.subject = MULL__OF_ERROR,
                                   .name = "message",
                                   .value = {.kind = MULL__MATCHES, .text = "^a*$"}};
    const mull__field_test halves[] = {half, half, half, half, half, half, half};
    rules[1].matcher =
        (mull__matcher){MULL__MATCH_TESTS, .tests = halves, .test_count = COUNT(halves)};
    rules[2].matcher = (mull__matcher){MULL__MATCH_TESTS, .tests = halves, .test_count = 2};
    const mull__plain_scope bus = {.kind = MULL__BUS, .rules = rules, .rule_count = COUNT(rules)};
    mull_error error = error_of("Any");
    error.message = text;
    const mull_failure failure = failure_of(&error);
    probe p = {.trials = 1};
    assert_int_equal(probe_bus(&p, &bus, &failure).rule.line, 3);
    assert_string_equal(p.said, "x1 r1!more than 100000 steps in the pattern for message "
                                "x2 r2!more than 100000 steps in the pattern for message r3=");
}

static void a_pattern_that_is_nested_too_deep_raises(void **state)
{
    (void)state;
    static char pattern[1001], text[501];
    for (size_t i = 0; i < sizeof pattern - 1; i += 2)
        memcpy(pattern + i, "a?", 2);
    memset(text, 'a', sizeof text - 1);
    const mull__field_test test = {.subject = MULL__OF_ERROR,
                                   .name = "stack",
                                   .value = {.kind = MULL__MATCHES, .text = pattern}};
    const mull__matcher matcher = {MULL__MATCH_TESTS, .tests = &test, .test_count = 1};
    mull_error error = error_of("Any");
    error.stack = text;
    const mull_failure failure = failure_of(&error);
    probe p = {.trials = 1};
    assert_false(probe_passes(&p, &matcher, &failure));
    assert_string_equal(p.said, "x7 r7!the pattern for stack is too complex");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),
        cmocka_unit_test(texts),
        cmocka_unit_test(lists_of_literals),
        cmocka_unit_test(what_is_there_and_what_is_not),
        cmocka_unit_test(what_is_not),
        cmocka_unit_test(facts_of_the_error),
        cmocka_unit_test(facts_of_ctx),
        cmocka_unit_test(facts_of_the_message),
        cmocka_unit_test(parts_are_looked_at_in_order_and_no_further_than_needed),
        cmocka_unit_test(what_raises_fails_the_matcher_as_a_whole),
        cmocka_unit_test(each_candidate_is_told),
        cmocka_unit_test(a_pattern_that_takes_too_long_raises),
        cmocka_unit_test(a_pattern_that_is_nested_too_deep_raises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
