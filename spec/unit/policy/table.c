/* table.c: the table and its verdicts where Lua can't reach: sent lineages with holes,
 * numbers at the edge, memory that runs out, tables that differ in one byte. What a policy's
 * author sees is tested through Lua, in spec/policy/. */
#include <math.h>
#include <stdio.h>

#include "fixtures.h"
#include "policy/delay.h"

/* ---- Lineages -------------------------------------------------------------------------------- */

static const mull__type_parent family[] = {
    {"Deadlock", "Database"},
    {"Database", "Storage"},
    {"Storage", "Error"},
    {"Timeout", "Network"},
};

/* line_for is the line of the rule that decides on a type with a sent lineage; each type that has a
 * rule has it on a line of its own: 0 where none decides. */
static int line_for(const mull__table *table, const char *type, const char *const *lineage,
                    size_t count)
{
    mull_error error = error_of(type);
    error.lineage = lineage;
    error.lineage_count = count;
    mull_failure failure = failure_of(&error);
    return judge(table, &failure).rule.line;
}

#define LINE(table, type, ...)                                                                     \
    line_for(table, type, (const char *const[]){__VA_ARGS__},                                      \
             COUNT(((const char *const[]){__VA_ARGS__})))

static mull__table *family_table(int with_default)
{
    static const mull__plain_rule rules[] = {
        DEAD_LETTER_RULE("Storage", 1),
        DEAD_LETTER_RULE("Network", 2),
        DEAD_LETTER_RULE("Custom", 3),
        DEAD_LETTER_RULE("Error", 4),
    };
    mull__plain_scope bus = {.kind = MULL__BUS, .rules = rules, .rule_count = 3};
    bus.rule_count += with_default != 0;
    return new_table(&(mull__plain){family, COUNT(family), &bus, 1, 0});
}

static void lineage_without_sent_names(void **state)
{
    (void)state;
    mull__table *table = family_table(1);
    assert_int_equal(line_for(table, "Deadlock", NULL, 0), 1);
    assert_int_equal(line_for(table, "Storage", NULL, 0), 1);
    assert_int_equal(line_for(table, "Timeout", NULL, 0), 2);
    assert_int_equal(line_for(table, "Unheard", NULL, 0), 4);
    assert_int_equal(line_for(table, "Error", NULL, 0), 4);
    assert_int_equal(line_for(table, "MessageDeserializationErro", NULL, 0), 4);
    mull__table_free(table);
}

static void lineage_with_sent_names(void **state)
{
    (void)state;
    mull__table *table = family_table(1);
    /* The sent names come before the declared parents, which are those of the last sent one. */
    assert_int_equal(LINE(table, "Deadlock", "Timeout"), 2);
    assert_int_equal(LINE(table, "Deadlock", "Custom", "Timeout"), 3);
    assert_int_equal(LINE(table, "Unheard", "Deadlock"), 1);
    /* An unknown name at the end has no parents, so those of Deadlock are not looked at ... */
    assert_int_equal(LINE(table, "Deadlock", "Unheard"), 4);
    /* ... unless it only repeats; neither do Error and holes count as the last. */
    assert_int_equal(LINE(table, "Unheard", "Deadlock", "Unheard"), 1);
    assert_int_equal(LINE(table, "Deadlock", "Deadlock"), 1);
    assert_int_equal(LINE(table, "Deadlock", "Error"), 1);
    assert_int_equal(LINE(table, "Error", "Deadlock"), 1);
    assert_int_equal(LINE(table, "Deadlock", NULL, ""), 1);
    assert_int_equal(LINE(table, "Error", "Error"), 4);
    /* A parent that was sent already isn't climbed past twice, but through. */
    assert_int_equal(LINE(table, "Database", "Deadlock"), 1);
    mull__table_free(table);
}

static void of_a_sent_lineage_256_names_count(void **state)
{
    (void)state;
    static const char *names[100000];
    mull__table *table = family_table(1);
    for (size_t i = 0; i < COUNT(names); i++)
        names[i] = "Unheard";
    names[255] = "Network";
    assert_int_equal(line_for(table, "Mine", names, COUNT(names)), 2);
    names[255] = "Unheard";
    names[256] = "Network";
    assert_int_equal(line_for(table, "Mine", names, COUNT(names)), 4);
    mull__table_free(table);
}

static void no_rule_at_all(void **state)
{
    (void)state;
    mull__table *table = family_table(0);
    mull_error error = error_of("Unheard");
    mull_failure failure = failure_of(&error);
    mull_verdict verdict = judge(table, &failure);
    assert_int_equal(verdict.action, MULL_DEAD_LETTER);
    assert_int_equal(verdict.reason, MULL_REASON_NO_RULE);
    assert_string_equal(verdict.queue, "error");
    assert_null(verdict.rule.file);
    mull__table_free(table);
}

static void many_types(void **state)
{
    (void)state;
    enum { TYPES = 300 };
    static char names[TYPES + 1][16];
    static mull__type_parent parents[TYPES];
    snprintf(names[0], sizeof names[0], "Error");
    for (int i = 0; i < TYPES; i++) {
        snprintf(names[i + 1], sizeof names[0], "T%d", i + 1);
        parents[i] = (mull__type_parent){names[i + 1], names[i]};
    }
    mull__plain_rule rule = DEAD_LETTER_RULE("T1", 9);
    mull__plain_scope bus = {.kind = MULL__BUS, .rules = &rule, .rule_count = 1};
    mull__table *table = new_table(&(mull__plain){parents, TYPES, &bus, 1, 0});
    assert_int_equal(line_for(table, "T300", NULL, 0), 9);
    assert_int_equal(LINE(table, "T299", "T300"), 9); /* every type seen, none twice */
    assert_int_equal(LINE(table, "Unheard", "T1"), 9);
    assert_int_equal(LINE(table, "T300", "Unheard"), 0);
    mull__table_free(table);
}

/* ---- Literals -------------------------------------------------------------------------------- */

#define INTEGER_VALUE(x) ((mull_value){.kind = MULL_INTEGER, .as.integer = (x)})
#define NUMBER_VALUE(x)  ((mull_value){.kind = MULL_NUMBER, .as.number = (x)})
#define STRING_VALUE(x)  ((mull_value){.kind = MULL_STRING, .as.string = (x)})
#define BOOLEAN_VALUE(x) ((mull_value){.kind = MULL_BOOLEAN, .as.boolean = (x)})

/* matches: a rule for { field = literal } passes for an error that carries `actual` there. */
static int matches(const char *field, mull_value literal, mull_value actual)
{
    mull__field_test named = EQUALS(field, &literal);
    mull__plain_rule rule = DEAD_LETTER_RULE("Error", 1);
    rule.matcher = (mull__matcher){MULL__MATCH_TESTS, .tests = &named, .test_count = 1};
    mull__plain_scope bus = {.kind = MULL__BUS, .rules = &rule, .rule_count = 1};
    mull__table *table = new_table(&(mull__plain){NULL, 0, &bus, 1, 0});
    mull_field carried[] = {{"other", INTEGER_VALUE(1)}, {field, actual}, {field, literal}};
    mull_error error = error_of("Any");
    error.message = "full";
    error.fields = carried;
    error.field_count = COUNT(carried);
    mull_failure failure = failure_of(&error);
    int line = judge(table, &failure).rule.line;
    mull__table_free(table);
    return line == 1;
}

static void literals(void **state)
{
    (void)state;
    assert_true(matches("f", INTEGER_VALUE(503), INTEGER_VALUE(503)));
    assert_true(matches("f", INTEGER_VALUE(503), NUMBER_VALUE(503.0)));
    assert_true(matches("f", NUMBER_VALUE(503.0), INTEGER_VALUE(503)));
    assert_true(matches("f", NUMBER_VALUE(0.5), NUMBER_VALUE(0.5)));
    assert_true(matches("f", NUMBER_VALUE(-0.0), INTEGER_VALUE(0)));
    assert_true(matches("f", STRING_VALUE("x"), STRING_VALUE("x")));
    assert_true(matches("f", STRING_VALUE(""), STRING_VALUE("")));
    assert_true(matches("f", BOOLEAN_VALUE(1), BOOLEAN_VALUE(2)));
    assert_true(matches("f", INTEGER_VALUE(INT64_MIN), NUMBER_VALUE(-0x1p63)));
    assert_false(matches("f", INTEGER_VALUE(503), INTEGER_VALUE(504)));
    assert_false(matches("f", INTEGER_VALUE(503), NUMBER_VALUE(503.5)));
    assert_false(matches("f", INTEGER_VALUE(INT64_MAX), NUMBER_VALUE(0x1p63)));
    assert_false(matches("f", INTEGER_VALUE((INT64_C(1) << 53) + 1), NUMBER_VALUE(0x1p53)));
    assert_false(matches("f", INTEGER_VALUE(1), BOOLEAN_VALUE(1)));
    assert_false(matches("f", INTEGER_VALUE(503), STRING_VALUE("503")));
    assert_false(matches("f", STRING_VALUE("x"), STRING_VALUE("X")));
    assert_false(matches("f", BOOLEAN_VALUE(0), BOOLEAN_VALUE(1)));
    assert_false(matches("f", BOOLEAN_VALUE(0), (mull_value){.kind = MULL_NIL}));
    assert_false(matches("f", INTEGER_VALUE(1), (mull_value){.kind = MULL_LIST}));
    assert_false(matches("f", NUMBER_VALUE((double)NAN), NUMBER_VALUE((double)NAN)));
    assert_false(matches("f", INTEGER_VALUE(1), NUMBER_VALUE((double)INFINITY)));
}

static void literals_for_what_every_error_has(void **state)
{
    (void)state;
    mull_value unlike = INTEGER_VALUE(7);
    assert_true(matches("message", STRING_VALUE("full"), unlike));
    assert_true(matches("stack", STRING_VALUE(""), unlike));
    assert_true(matches("type", STRING_VALUE("Any"), unlike));
    assert_false(matches("message", STRING_VALUE("ful"), unlike));
    assert_false(matches("message", INTEGER_VALUE(7), unlike));
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* sample has something of everything. */
typedef struct sample {
    mull__type_parent parents[1];
    mull_value literals[2];
    mull__field_test tests[2];
    int64_t delays[2];
    mull__plain_rule rules[3], causes[1];
    mull__condition inner;
    mull__field_test deep[4];
    mull__matcher parts[2];
    mull__plain_unrecoverable unrecoverable[1];
    mull_rule includes[1];
    mull__replaced_rule replaced[1];
    const char *only[1];
    mull__rate_limit rate;
    mull__call_limit calls;
    mull__plain_scope scopes[3];
    mull__plain plain;
    char text[1024];
    size_t text_used;
} sample;

/* T copies a text into the sample, so that nothing of it outlives it. */
#define T(string) sample_text(s, (string))

static const char *sample_text(sample *s, const char *text)
{
    size_t bytes = strlen(text) + 1;
    assert_true(s->text_used + bytes <= sizeof s->text);
    char *copy = memcpy(s->text + s->text_used, text, bytes);
    s->text_used += bytes;
    return copy;
}

static void limits_init(sample *s, mull__plain_settings *settings)
{
    s->only[0] = T("Parent");
    s->rate = (mull__rate_limit){.per = {MULL__PER_HEADER, T("tenant")},
                                 .place = {T("policy.lua"), 11},
                                 .after = 10,
                                 .messages = 2,
                                 .within_ms = 60000,
                                 .only = {.names = s->only, .count = 1},
                                 .wait_ms = 5000,
                                 .max_wait_ms = 5000,
                                 .hint = T("retry_after"),
                                 .successes = 1,
                                 .keep = 1};
    s->calls = (mull__call_limit){.per = {.kind = MULL__PER_KEY},
                                  .place = {T("policy.lua"), 12},
                                  .count = 100,
                                  .unit_ms = 1000,
                                  .burst = 20};
    settings->has_deadline = 1;
    settings->deadline_ms = 86400000;
    settings->rate_limits_set = settings->limits_set = 1;
    settings->rate_limit = (mull__setting_rate_limits){&s->rate, 1};
    settings->limit = (mull__setting_call_limits){&s->calls, 1};
}

/* sample_rest: the rest of the language, in the consumer's scope. */
static void sample_rest(sample *s, mull__plain_scope *scope)
{
    s->inner = (mull__condition){.kind = MULL__CONTAINS, .text = T("time")};
    s->deep[0] = (mull__field_test){.subject = MULL__OF_ERROR,
                                    .name = T("message"),
                                    .value = {.kind = MULL__NOT, .inner = &s->inner}};
    s->deep[1] = (mull__field_test){
        .subject = MULL__OF_HEADER,
        .name = T("tenant"),
        .value = {.kind = MULL__BETWEEN, .low = INTEGER_VALUE(5), .high = NUMBER_VALUE(6)}};
    s->deep[2] = (mull__field_test){.subject = MULL__OF_CTX,
                                    .name = T("consumer"),
                                    .value = {.kind = MULL__MATCHES, .text = T("^P")}};
    s->deep[3] = (mull__field_test){
        .subject = MULL__OF_MESSAGE, .name = T("key"), .value = {.kind = MULL__PRESENT}};
    s->parts[0] = (mull__matcher){MULL__MATCH_TESTS, .tests = s->deep, .test_count = 4};
    s->parts[1] = (mull__matcher){MULL__MATCH_FUNCTION, .function = 0};
    s->causes[0] =
        (mull__plain_rule){.type = T("Cause"),
                           .file = T("more.lua"),
                           .line = 6,
                           .matcher = {MULL__MATCH_ANY, .parts = s->parts, .part_count = 2},
                           .redeliver = {.on = 1,
                                         .attempts = 4,
                                         .base_ms = 1000,
                                         .max_delay_ms = 60000,
                                         .jitter_kind = MULL__JITTER_FULL,
                                         .hint = T("retry_after")},
                           .end = MULL_DEAD_LETTER,
                           .scope = T("bus")};
    s->unrecoverable[0] = (mull__plain_unrecoverable){
        T("Fatal"), T("policy.lua"), 7, {MULL__MATCH_TESTS, .tests = s->deep, .test_count = 1}};
    s->includes[0] = (mull_rule){.file = T("policy.lua"), .line = 8, .scope = T("bus")};
    s->replaced[0] =
        (mull__replaced_rule){T("Child"), T("bus"), T("old.lua"), 9, T("policy.lua"), 10, 0};
    scope->cause_rules = s->causes;
    scope->cause_rule_count = 1;
    scope->unrecoverable = s->unrecoverable;
    scope->unrecoverable_count = 1;
    scope->includes = s->includes;
    scope->include_count = 1;
    scope->replaced = s->replaced;
    scope->replaced_count = 1;
    limits_init(s, &scope->settings);
    scope->settings.override = 1;
    scope->settings.notify = 2;
    scope->settings.places[MULL__RATE_LIMIT] = (mull__source_pos){T("policy.lua"), 11};
}

static void sample_init(sample *s)
{
    memset(s, 0, sizeof *s);
    s->parents[0] = (mull__type_parent){T("Child"), T("Parent")};
    s->literals[0] = STRING_VALUE(T("40P01"));
    s->literals[1] = INTEGER_VALUE(503);
    s->tests[0] = (mull__field_test)EQUALS(T("code"), &s->literals[0]);
    s->tests[1] = (mull__field_test)EQUALS(T("status"), &s->literals[1]);
    s->delays[0] = 1000;
    s->delays[1] = 60000;
    s->rules[0] =
        (mull__plain_rule){.type = T("Child"),
                           .file = T("policy.lua"),
                           .line = 3,
                           .matcher = {MULL__MATCH_TESTS, .tests = s->tests, .test_count = 2},
                           .retry = RETRY(3),
                           .end = MULL_DISCARD,
                           .note = T("stale")};
    s->rules[1] = (mull__plain_rule){.type = T("Parent"),
                                     .file = T("more.lua"),
                                     .line = 4,
                                     .matcher = {MULL__MATCH_FUNCTION, .function = 1},
                                     .redeliver = {.on = 1,
                                                   .attempts = 2,
                                                   .delays = s->delays,
                                                   .delay_count = 2,
                                                   .max_delay_ms = MULL__NO_CAP},
                                     .end = MULL_DEAD_LETTER,
                                     .queue = T("parked")};
    s->rules[2] = (mull__plain_rule)DEAD_LETTER_RULE(T("Error"), 5);
    s->rules[2].file = T("policy.lua");
    s->scopes[0] = (mull__plain_scope){.kind = MULL__BUS, .rules = s->rules, .rule_count = 3};
    s->scopes[1] = (mull__plain_scope){.kind = MULL__TRANSPORT, .name = T("orders")};
    s->scopes[1].settings.dead_letter_queue = T("dead");
    s->scopes[2] = (mull__plain_scope){
        .kind = MULL__CONSUMER, .name = T("Payments"), .rules = s->rules, .rule_count = 1};
    s->scopes[2].settings.max_attempts = 7;
    sample_rest(s, &s->scopes[2]);
    s->plain = (mull__plain){s->parents, 1, s->scopes, 3, 2};
}

static void digest_of(const sample *s, char hex[33])
{
    mull__table *table = new_table(&s->plain);
    mull__table_digest(table, hex);
    mull__table_free(table);
}

static void equal_tables_have_equal_digests(void **state)
{
    (void)state;
    sample one, other;
    char a[33], b[33];
    sample_init(&one);
    sample_init(&other);
    digest_of(&one, a);
    digest_of(&other, b);
    assert_string_equal(a, b);
    assert_int_equal(strlen(a), 32);
    /* What isn't looked at isn't part of it. */
    other.rules[0].redeliver.attempts = 5;
    other.rules[2].matcher.function = 3;
    digest_of(&other, b);
    assert_string_equal(a, b);
}

#define DIFFERS(change)                                                                            \
    do {                                                                                           \
        sample s;                                                                                  \
        char a[33], b[33];                                                                         \
        sample_init(&s);                                                                           \
        digest_of(&s, a);                                                                          \
        change;                                                                                    \
        digest_of(&s, b);                                                                          \
        assert_string_not_equal(a, b);                                                             \
    } while (0)

static void digests_differ_with_each_part(void **state)
{
    (void)state;
    DIFFERS(s.parents[0].parent = "Error");
    DIFFERS(s.parents[0].child = "Kid");
    DIFFERS(s.tests[0].name = "kode");
    DIFFERS(s.literals[0] = STRING_VALUE("40P02"));
    DIFFERS(s.literals[1] = NUMBER_VALUE(503.0));
    DIFFERS(s.literals[1] = INTEGER_VALUE(504));
    DIFFERS(s.literals[1] = BOOLEAN_VALUE(1));
    DIFFERS(s.delays[1]++);
    DIFFERS(s.rules[1].redeliver.delay_count = 1);
    DIFFERS(s.rules[0].type = "Parent");
    DIFFERS(s.rules[0].file = "policy2.lua");
    DIFFERS(s.rules[0].line++);
    DIFFERS(s.rules[0].matcher.test_count = 1);
    DIFFERS(s.rules[0].matcher.kind = MULL__MATCH_ALWAYS);
    DIFFERS(s.rules[1].matcher.function = 0);
    DIFFERS(s.rules[0].retry.attempts++);
    DIFFERS(s.rules[0].retry.base_ms++);
    DIFFERS(s.rules[0].retry.backoff = MULL__LINEAR);
    DIFFERS(s.rules[0].retry.factor = 2.5);
    DIFFERS(s.rules[0].retry.max_delay_ms++);
    DIFFERS(s.rules[0].retry.jitter = 0.1);
    DIFFERS(s.rules[0].retry.on = 0);
    DIFFERS(s.rules[0].end = MULL_DEAD_LETTER);
    DIFFERS(s.rules[0].note = NULL);
    DIFFERS(s.rules[0].note = "");
    DIFFERS(s.rules[1].queue = "park");
    DIFFERS(s.scopes[0].kind = MULL__HOST);
    DIFFERS(s.scopes[1].name = "others");
    DIFFERS(s.scopes[1].settings.dead_letter_queue = "deaf");
    DIFFERS(s.scopes[1].settings.max_deliveries = 3);
    DIFFERS(s.scopes[1].settings.has_max_age = 1);
    DIFFERS(s.scopes[2].settings.max_attempts = MULL__OFF);
    DIFFERS(s.scopes[0].rule_count = 2);
    DIFFERS(s.plain.scope_count = 2);
    DIFFERS(s.tests[0].subject = MULL__OF_HEADER);
    DIFFERS(s.tests[0].value.kind = MULL__PRESENT);
    DIFFERS(s.inner.text = "tim");
    DIFFERS(s.inner.kind = MULL__MATCHES);
    DIFFERS(s.deep[1].value.low = INTEGER_VALUE(4));
    DIFFERS(s.deep[1].value.high = INTEGER_VALUE(6));
    DIFFERS(s.deep[1].value.high = (mull_value){.kind = MULL_NIL});
    DIFFERS(s.deep[2].value.text = "^p");
    DIFFERS(s.deep[3].value.kind = MULL__ABSENT);
    DIFFERS(s.parts[1].function = 1);
    DIFFERS(s.causes[0].matcher.kind = MULL__MATCH_ALL);
    DIFFERS(s.causes[0].matcher.part_count = 1);
    DIFFERS(s.causes[0].type = "Child");
    DIFFERS(s.causes[0].scope = NULL);
    DIFFERS(s.causes[0].redeliver.jitter_kind = MULL__JITTER_DECORRELATED);
    DIFFERS(s.causes[0].redeliver.hint = NULL);
    DIFFERS(s.causes[0].redeliver.attempts = MULL_UNLIMITED);
    DIFFERS(s.unrecoverable[0].type = "Child");
    DIFFERS(s.unrecoverable[0].line++);
    DIFFERS(s.unrecoverable[0].matcher.test_count = 0);
    DIFFERS(s.includes[0].line++);
    DIFFERS(s.includes[0].scope = "host");
    DIFFERS(s.replaced[0].type = "Parent");
    DIFFERS(s.replaced[0].scope = NULL);
    DIFFERS(s.replaced[0].line++);
    DIFFERS(s.replaced[0].by_line++);
    DIFFERS(s.replaced[0].by_file = "old.lua");
    DIFFERS(s.replaced[0].by_cause = 1);
    DIFFERS(s.scopes[2].cause_rule_count = 0);
    DIFFERS(s.scopes[2].unrecoverable_count = 0);
    DIFFERS(s.scopes[2].include_count = 0);
    DIFFERS(s.scopes[2].replaced_count = 0);
    DIFFERS(s.scopes[2].settings.override = 2);
    DIFFERS(s.scopes[2].settings.notify = MULL__UNSET);
    DIFFERS(s.scopes[2].settings.places[MULL__RATE_LIMIT].line++);
    DIFFERS(s.scopes[2].settings.places[MULL__NOTIFY].file = "policy.lua");
    DIFFERS(s.scopes[1].settings.dead_letter_queue = "error"); /* the default, but set */
    DIFFERS(s.plain.function_count = 3);
}

static void digests_differ_with_each_limit(void **state)
{
    (void)state;
    DIFFERS(s.scopes[2].settings.has_deadline = 0);
    DIFFERS(s.scopes[2].settings.deadline_ms++);
    DIFFERS(s.scopes[2].settings.rate_limit.count = 0);
    DIFFERS(s.scopes[2].settings.limit.count = 0);
    DIFFERS(s.scopes[2].settings.limits_set = 0);
    DIFFERS(s.rate.per.kind = MULL__PER_KEY);
    DIFFERS(s.rate.per.header = "region");
    DIFFERS(s.rate.place.line++);
    DIFFERS(s.rate.after++);
    DIFFERS(s.rate.ratio = 0.5);
    DIFFERS(s.rate.window_ms++);
    DIFFERS(s.rate.least++);
    DIFFERS(s.rate.messages++);
    DIFFERS(s.rate.within_ms++);
    DIFFERS(s.rate.only.count = 0);
    DIFFERS(s.only[0] = "Child");
    DIFFERS(s.rate.except = s.rate.only);
    DIFFERS(s.rate.wait_ms++);
    DIFFERS(s.rate.max_wait_ms++);
    DIFFERS(s.rate.hint = NULL);
    DIFFERS(s.rate.successes++);
    DIFFERS(s.rate.keep = 0);
    DIFFERS(s.rate.ramp_ms++);
    DIFFERS(s.calls.per.kind = MULL__PER_TYPE);
    DIFFERS(s.calls.place.file = "more.lua");
    DIFFERS(s.calls.count++);
    DIFFERS(s.calls.unit_ms++);
    DIFFERS(s.calls.burst++);
}

static void a_table_keeps_nothing_of_the_plain_policy(void **state)
{
    (void)state;
    sample *s = malloc(sizeof *s);
    char before[33], after[33];
    sample_init(s);
    mull__table *table = new_table(&s->plain);
    mull__table_digest(table, before);
    memset(s, 0xa5, sizeof *s);
    free(s);
    mull__table_digest(table, after);
    assert_string_equal(before, after);
    mull_field fields[] = {{"code", STRING_VALUE("40P01")}, {"status", NUMBER_VALUE(503)}};
    mull_error error = error_of("Child");
    error.fields = fields;
    error.field_count = 2;
    mull_failure failure = failure_of(&error);
    failure.consumer = "Payments";
    failure.attempt = 4;
    mull_verdict verdict = judge(table, &failure);
    assert_int_equal(verdict.action, MULL_DISCARD);
    assert_int_equal(verdict.reason, MULL_REASON_EXHAUSTED);
    assert_string_equal(verdict.note, "stale");
    assert_null(verdict.queue);
    assert_string_equal(verdict.rule.type, "Child");
    assert_string_equal(verdict.rule.scope, "consumer:Payments");
    assert_int_equal(table->rule_count, 5);
    assert_int_equal(table->function_count, 2);
    mull__table_free(table);
}

static void fail_each_allocation(const sample *s)
{
    for (long n = 1;; n++) {
        counting_allocator p = {.fail_at = n};
        mull_allocator a = counting_allocator_ops(&p);
        mull__table *table;
        int status = mull__table_new(&table, &a, &s->plain);
        if (status == 0) {
            assert_true(n > 2);
            mull__table_free(table);
            assert_int_equal(p.out, 0);
            return;
        }
        assert_int_equal(status, MULL_ENOMEM);
        assert_null(table);
        assert_int_equal(p.out, 0);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    sample s;
    sample_init(&s);
    for (plain_padding = 0; plain_padding < 8192; plain_padding += 16)
        fail_each_allocation(&s);
    plain_padding = 0;
}

/* ---- What is in force ------------------------------------------------------------------------ */

static void effective(void **state)
{
    (void)state;
    sample s;
    sample_init(&s);
    s.scopes[0].settings = (mull__plain_settings){.dead_letter_queue = "bus-dead",
                                                  .has_max_age = 1,
                                                  .max_age_ms = 5000,
                                                  .max_attempts = 9,
                                                  .max_deliveries = MULL__OFF};
    s.scopes[1].settings.max_attempts = MULL__OFF;
    s.scopes[2].settings.dead_letter_queue = "";
    s.scopes[2].settings.has_max_age = 1;
    s.scopes[2].settings.max_age_ms = MULL__OFF;
    mull__table *table = new_table(&s.plain);
    mull__settings f = mull__effective_settings_of(table, NULL, NULL).settings;
    assert_string_equal(f.dead_letter_queue, "bus-dead");
    assert_int_equal(f.max_age_ms, 5000);
    assert_int_equal(f.max_attempts, 9);
    assert_int_equal(f.max_deliveries, MULL__OFF);
    assert_int_equal(mull__scope_rules(mull__effective_settings_of(table, NULL, NULL).rules), 3);
    f = mull__effective_settings_of(table, "Nobody", "orders").settings;
    assert_string_equal(f.dead_letter_queue, "dead");
    assert_int_equal(f.max_age_ms, 5000);
    assert_int_equal(f.max_attempts, MULL__OFF);
    assert_int_equal(
        mull__scope_rules(mull__effective_settings_of(table, "Nobody", "orders").rules), 3);
    f = mull__effective_settings_of(table, "Payments", "orders").settings;
    assert_string_equal(f.dead_letter_queue, "error");
    assert_int_equal(f.max_age_ms, MULL__OFF);
    assert_int_equal(f.max_attempts, 7);
    assert_int_equal(f.max_deliveries, MULL__OFF);
    assert_int_equal(
        mull__scope_rules(mull__effective_settings_of(table, "Payments", "orders").rules), 2);
    assert_int_equal(f.rate_limit.count, 1);
    assert_int_equal(f.rate_limit.items[0].after, 10);
    assert_string_equal(table->types[f.rate_limit.items[0].only.types[0]].name, "Parent");
    assert_int_equal(f.limit.count, 1);
    assert_int_equal(f.limit.items[0].count, 100);
    assert_int_equal(f.deadline_ms, 86400000);
    assert_int_equal(f.override, 1);
    assert_int_equal(f.notify, 2);
    mull__table_free(table);
}

static void rules_in_force(void **state)
{
    (void)state;
    sample s;
    sample_init(&s);
    s.rules[0].retry.jitter = 0.25;
    mull__table *table = new_table(&s.plain);
    const mull__rule *rule =
        mull__rule_at(mull__effective_settings_of(table, NULL, "orders").rules, 0);
    assert_int_equal(rule->retry.attempts, 3);
    assert_int_equal(rule->redeliver.attempts, 0);
    assert_int_equal(mull__longest_retry_round(&rule->retry), 250 + 500 + 1000);
    assert_int_equal(rule->end, MULL_DISCARD);
    assert_int_equal(rule->source.line, 3);
    rule = mull__rule_at(mull__effective_settings_of(table, NULL, NULL).rules, 1);
    assert_int_equal(rule->retry.attempts, 0);
    assert_int_not_equal(rule->redeliver.attempts, 0);
    assert_int_equal(mull__longest_retry_round(&rule->retry), 0);
    assert_string_equal(rule->queue, "parked");
    rule = mull__rule_at(mull__effective_settings_of(table, "Payments", NULL).rules, 0);
    assert_string_equal(rule->source.scope, "consumer:Payments");
    mull__table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lineage_without_sent_names),
        cmocka_unit_test(lineage_with_sent_names),
        cmocka_unit_test(of_a_sent_lineage_256_names_count),
        cmocka_unit_test(no_rule_at_all),
        cmocka_unit_test(many_types),
        cmocka_unit_test(literals),
        cmocka_unit_test(literals_for_what_every_error_has),
        cmocka_unit_test(equal_tables_have_equal_digests),
        cmocka_unit_test(digests_differ_with_each_part),
        cmocka_unit_test(digests_differ_with_each_limit),
        cmocka_unit_test(a_table_keeps_nothing_of_the_plain_policy),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(effective),
        cmocka_unit_test(rules_in_force),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
