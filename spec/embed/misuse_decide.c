/* misuse_decide.c: what embedders do wrong when they decide: it is answered, or taken for what it
 * can only mean, and never followed to where nothing is. What a NULL argument does is in
 * misuse_nulls.c. */
#include "decide_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- Fields ---------------------------------------------------------------------------------- */

/* assert_absent: whatever the error's field `text` is, it is as if it weren't there. */
static void assert_absent(decide_fixture *d, mull_value value)
{
    const mull_field fields[] = {{"count", {.kind = MULL_INTEGER, .as.integer = 1}},
                                 {"text", value}};
    d->error.fields = fields;
    d->error.field_count = COUNT(fields);
    assert_string_equal(decide_fixture_note_for(d, "Field"), "");
    assert_string_equal(decide_fixture_note_for(d, "Short"), "");
    assert_int_equal(d->verdict.tier, MULL_TIER_NONE);
    assert_string_equal(decide_fixture_note_for(d, "Absent"), "absent");
    assert_string_equal(decide_fixture_note_for(d, "Function"), "function");
}

static void a_value_that_is_not_what_it_says_is_absent(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    static const mull_kind unknown[] = {(mull_kind)(MULL_MAP + 1), (mull_kind)1000, (mull_kind)-1};
    for (size_t i = 0; i < COUNT(unknown); i++)
        assert_absent(&d, (mull_value){.kind = unknown[i], .as.string = (char *)8, .count = 9});
    assert_absent(&d, (mull_value){.kind = MULL_STRING});
    assert_absent(&d, (mull_value){.kind = MULL_LIST, .count = 3});
    assert_absent(&d, (mull_value){.kind = MULL_MAP, .count = 3});
    decide_fixture_close(&d);
}

static void so_it_is_within_lists_and_maps(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    const mull_value items[] = {{.kind = (mull_kind)77, .as.string = (char *)8, .count = 2},
                                {.kind = MULL_STRING},
                                {.kind = MULL_LIST, .count = SIZE_MAX},
                                {.kind = MULL_MAP, .count = SIZE_MAX}};
    const mull_field entries[] = {{NULL, {.kind = MULL_INTEGER}}, {"a", items[0]}, {"b", items[3]}};
    const mull_field fields[] = {{"list", {.kind = MULL_LIST, .as.items = items, .count = 4}},
                                 {NULL, {.kind = MULL_STRING, .as.string = "a"}},
                                 {"map", {.kind = MULL_MAP, .as.fields = entries, .count = 3}}};
    d.error.fields = fields;
    d.error.field_count = COUNT(fields);
    assert_string_equal(decide_fixture_note_for(&d, "Function"), "function");
    decide_fixture_close(&d);
}

static void a_field_without_a_name_is_none(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    const mull_field fields[] = {{NULL, {.kind = MULL_STRING, .as.string = "a"}},
                                 {"", {.kind = MULL_STRING, .as.string = "a"}},
                                 {"count", {.kind = MULL_INTEGER, .as.integer = 1}},
                                 {NULL, {.kind = MULL_INTEGER, .as.integer = 1}},
                                 {"text", {.kind = MULL_STRING, .as.string = "a"}}};
    d.error.fields = fields;
    d.error.field_count = COUNT(fields) - 1;
    assert_string_equal(decide_fixture_note_for(&d, "Absent"), "absent");
    assert_string_equal(decide_fixture_note_for(&d, "Function"), "function");
    assert_string_equal(decide_fixture_note_for(&d, "Field"), "");
    d.error.field_count++;
    assert_string_equal(decide_fixture_note_for(&d, "Field"), "field");
    assert_string_equal(decide_fixture_note_for(&d, "Short"), "");
    assert_int_equal(d.verdict.tier, MULL_TIER_RETRY);
    decide_fixture_close(&d);
}

/* assert_waits: before its retry, by the rule that takes a hint. */
static void assert_waits(decide_fixture *d, int64_t delay_ms)
{
    assert_string_equal(decide_fixture_note_for(d, "Hint"), "");
    assert_int_equal(d->verdict.tier, MULL_TIER_RETRY);
    assert_int_equal(d->verdict.delay_ms, delay_ms);
}

static void a_hint_is_looked_for_among_what_is_there(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    const mull_field fields[] = {{NULL, {.kind = MULL_INTEGER, .as.integer = 9}},
                                 {"", {.kind = MULL_INTEGER, .as.integer = 8}},
                                 {"after", {.kind = MULL_INTEGER, .as.integer = 7}},
                                 {"after", {.kind = (mull_kind)77}}};
    d.error.field_count = COUNT(fields);
    assert_waits(&d, 1000);
    d.error.fields = fields;
    assert_waits(&d, 7000);
    d.error.field_count = 2;
    assert_waits(&d, 1000);
    d.error.fields = &fields[3];
    d.error.field_count = 1;
    assert_waits(&d, 1000);
    decide_fixture_close(&d);
}

/* ---- Lists that are NULL --------------------------------------------------------------------- */

static void lists_that_are_null_have_nothing_in_them(void **state)
{
    (void)state;
    static const char *const types[] = {"Plain", "Field", "Short", "Absent", "Function", "Other"};
    static const char *const notes[] = {"plain", "", "", "absent", "function", ""};
    decide_fixture d;
    decide_fixture_open(&d);
    d.error.field_count = d.error.lineage_count = d.message.header_count = 3;
    d.message.body_size = SIZE_MAX;
    for (size_t i = 0; i < COUNT(types); i++)
        assert_string_equal(decide_fixture_note_for(&d, types[i]), notes[i]);
    decide_fixture_close(&d);
}

static void holes_in_lists_are_passed_over(void **state)
{
    (void)state;
    const char *const lineage[] = {NULL, "", "Unknown", "Plain"};
    const mull_header headers[] = {{NULL, "a"}, {"h", NULL}, {NULL, NULL}};
    decide_fixture d;
    decide_fixture_open(&d);
    d.error.lineage = lineage;
    d.error.lineage_count = COUNT(lineage);
    d.message.headers = headers;
    d.message.header_count = COUNT(headers);
    assert_string_equal(decide_fixture_note_for(&d, "Other"), "plain");
    assert_string_equal(decide_fixture_note_for(&d, "Function"), "function");
    d.error.lineage_count = 0;
    assert_string_equal(decide_fixture_note_for(&d, "Field"), "");
    decide_fixture_close(&d);
}

/* ---- Causes ---------------------------------------------------------------------------------- */

enum { CHAIN = 40 };

static void chain_of(mull_error chain[CHAIN], decide_fixture *d)
{
    for (int i = 0; i < CHAIN; i++) {
        chain[i] = MULL_INIT(mull_error);
        chain[i].type = "Link";
        chain[i].cause = i + 1 < CHAIN ? &chain[i + 1] : NULL;
    }
    d->error.cause = &chain[0];
}

static void causes_may_go_round_in_a_circle(void **state)
{
    (void)state;
    decide_fixture d;
    mull_error chain[CHAIN];
    decide_fixture_open(&d);
    for (int back = 0; back < CHAIN; back += 3) {
        chain_of(chain, &d);
        chain[CHAIN / 4].cause = &chain[back];
        assert_string_equal(decide_fixture_note_for(&d, "Function"), "function");
        assert_string_equal(decide_fixture_note_for(&d, "Other"), "");
        chain[CHAIN / 4].type = "Deep";
        assert_string_equal(decide_fixture_note_for(&d, "Other"), "cause");
    }
    d.error.cause = &d.error;
    assert_string_equal(decide_fixture_note_for(&d, "Function"), "function");
    assert_string_equal(decide_fixture_note_for(&d, "Other"), "");
    decide_fixture_close(&d);
}

/* A cause that is no error of ours ends the chain; what lies behind it isn't looked at. */
static void a_cause_that_is_too_small_is_none(void **state)
{
    (void)state;
    decide_fixture d;
    mull_error chain[CHAIN];
    decide_fixture_open(&d);
    for (size_t i = 0; i < 3; i++) {
        chain_of(chain, &d);
        chain[i + 1].type = "Deep";
        assert_string_equal(decide_fixture_note_for(&d, "Other"), "cause");
        chain[i].size = i == 0 ? 0 : sizeof chain[i] - 1;
        chain[i].fields = (const mull_field *)8;
        chain[i].field_count = 1;
        assert_string_equal(decide_fixture_note_for(&d, "Other"), "");
        assert_string_equal(decide_fixture_note_for(&d, "Function"), "function");
    }
    decide_fixture_close(&d);
}

static void a_cause_may_lack_its_type(void **state)
{
    (void)state;
    decide_fixture d;
    mull_error chain[CHAIN];
    decide_fixture_open(&d);
    chain_of(chain, &d);
    chain[0].type = NULL;
    chain[1].type = "";
    chain[2].type = "Deep";
    assert_string_equal(decide_fixture_note_for(&d, "Other"), "cause");
    assert_string_equal(decide_fixture_note_for(&d, "Function"), "function");
    decide_fixture_close(&d);
}

/* ---- Numbers and flags ----------------------------------------------------------------------- */

/* assert_refused, and that nothing of the verdict was written. */
static void assert_refused(decide_fixture *d)
{
    mull_verdict before;
    memset(&before, 0x5a, sizeof before);
    before.size = sizeof before;
    d->verdict = before;
    assert_int_equal(decide_fixture_decide(d), MULL_EINVAL);
    assert_memory_equal(&d->verdict, &before, sizeof before);
}

static void numbers_begin_at_their_defaults(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    int64_t *const numbers[] = {&d.failure.attempt, &d.failure.redeliveries, &d.failure.calls,
                                &d.failure.deliveries, &d.failure.age_ms};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        *numbers[i] = -1;
        assert_refused(&d);
        *numbers[i] = INT64_MIN;
        assert_refused(&d);
        *numbers[i] = INT64_MAX;
        assert_int_equal(decide_fixture_decide(&d), 0);
        *numbers[i] = 0;
        assert_int_equal(decide_fixture_decide(&d), 0);
    }
    for (size_t i = 0; i < COUNT(numbers); i++)
        *numbers[i] = INT64_MAX;
    assert_int_equal(decide_fixture_decide(&d), 0);
    decide_fixture_close(&d);
}

static void unknown_flags_are_refused(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    const uint32_t known = MULL_HAS_CHANCE | MULL_CANNOT_RETRY | MULL_CANNOT_DELAY | MULL_NO_JITTER;
    d.failure.flags = known;
    assert_int_equal(decide_fixture_decide(&d), 0);
    for (uint32_t flag = 1; flag != 0; flag <<= 1) {
        d.failure.flags = MULL_HAS_CHANCE | flag;
        if (flag & known)
            assert_int_equal(decide_fixture_decide(&d), 0);
        else
            assert_refused(&d);
    }
    decide_fixture_close(&d);
}

/* Ids of another policy may be ids here; those that nobody was given never are. */
static void ids_that_nobody_was_given_are_refused(void **state)
{
    (void)state;
    static const uint32_t wild[] = {0, 1, 2, 100, 65535, 65536, 1u << 31, UINT32_MAX - 100};
    decide_fixture d;
    mull_type type;
    mull_site site;
    decide_fixture_open(&d);
    assert_int_equal(mull_type_intern(&type, d.policy, "Plain"), 0);
    assert_int_equal(mull_site_intern(&site, d.policy, "C", NULL), 0);
    for (size_t i = 0; i < COUNT(wild); i++) {
        d.failure.type = type + 1 + wild[i];
        assert_refused(&d);
        d.failure.error = NULL;
        assert_refused(&d);
        d.failure.error = &d.error;
        d.failure.type = 0;
        d.failure.site = site + 1 + wild[i];
        assert_refused(&d);
        d.failure.type = type;
        assert_refused(&d);
        d.failure.type = d.failure.site = 0;
    }
    d.failure.type = type;
    d.failure.site = site;
    assert_int_equal(decide_fixture_decide(&d), 0);
    assert_string_equal(d.verdict.note, "plain");
    decide_fixture_close(&d);
}

static void an_error_has_a_type(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    d.error.type = NULL;
    assert_refused(&d);
    d.error.type = "";
    assert_refused(&d);
    d.failure.error = NULL;
    assert_refused(&d);
    decide_fixture_close(&d);
}

/* ---- Long texts ------------------------------------------------------------------------------ */

static void texts_may_be_as_long_as_they_like(void **state)
{
    (void)state;
    decide_fixture d;
    char *text = decide_fixture_long_text();
    const mull_field fields[] = {{text, {.kind = MULL_STRING, .as.string = text}},
                                 {"text", {.kind = MULL_STRING, .as.string = text}}};
    const mull_header headers[] = {{text, text}};
    const char *const lineage[] = {text, "Plain"};
    decide_fixture_open(&d);
    d.error.fields = fields;
    d.error.field_count = COUNT(fields);
    d.error.message = d.error.stack = text;
    d.error.lineage = lineage;
    d.message.id = d.message.type = d.message.key = d.message.queue = text;
    d.message.headers = headers;
    d.message.header_count = COUNT(headers);
    d.failure.consumer = d.failure.transport = text;
    assert_string_equal(decide_fixture_note_for(&d, text), "");
    assert_string_equal(decide_fixture_note_for(&d, "Short"), "");
    assert_string_equal(decide_fixture_note_for(&d, "Field"), "");
    d.error.lineage_count = COUNT(lineage);
    assert_string_equal(decide_fixture_note_for(&d, text), "plain");
    d.error.type = "Function"; /* which looks at all of it, and has its budget */
    assert_int_equal(decide_fixture_decide(&d), 0);
    decide_fixture_close(&d);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_is_not_what_it_says_is_absent),
        cmocka_unit_test(so_it_is_within_lists_and_maps),
        cmocka_unit_test(a_field_without_a_name_is_none),
        cmocka_unit_test(a_hint_is_looked_for_among_what_is_there),
        cmocka_unit_test(lists_that_are_null_have_nothing_in_them),
        cmocka_unit_test(holes_in_lists_are_passed_over),
        cmocka_unit_test(causes_may_go_round_in_a_circle),
        cmocka_unit_test(a_cause_that_is_too_small_is_none),
        cmocka_unit_test(a_cause_may_lack_its_type),
        cmocka_unit_test(numbers_begin_at_their_defaults),
        cmocka_unit_test(unknown_flags_are_refused),
        cmocka_unit_test(ids_that_nobody_was_given_are_refused),
        cmocka_unit_test(an_error_has_a_type),
        cmocka_unit_test(texts_may_be_as_long_as_they_like),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
