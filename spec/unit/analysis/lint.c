/* lint.c: findings where memory runs out, and matchers of which something is certain.
 */
#include "analysis/lint.h"
#include "analysis/satisfiability.h"
#include "fixtures.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

typedef struct heard {
    int count, by_kind[MULL__FINDING_KINDS];
} heard;

static void hear(void *data, const mull__finding *finding)
{
    heard *h = data;
    h->count++;
    h->by_kind[finding->kind]++;
}

static mull__table *suspicious_table(void)
{
    static const mull__type_parent parents[] = {{"DeadlockError", "DatabaseError"}};
    static const mull__plain_rule of_bus[] = {
        {.type = "DatabseError",
         .file = "policy.lua",
         .line = 1,
         .retry = RETRY(5),
         .redeliver = REDELIVER(5)},
        DEAD_LETTER_RULE("Error", 2),
    };
    static const mull__plain_rule of_mail[] = {DEAD_LETTER_RULE("A", 3)};
    static const mull__plain_scope scopes[] = {
        {.kind = MULL__BUS,
         .rules = of_bus,
         .rule_count = 2,
         .settings = {.has_max_age = 1, .max_age_ms = 400000, .max_attempts = 10}},
        {.kind = MULL__CONSUMER, .name = "Mail", .rules = of_mail, .rule_count = 1},
    };
    return new_table(&(mull__plain){parents, 1, scopes, 2, 0});
}

static void no_memory_is_told(void **state)
{
    (void)state;
    mull__table *table = suspicious_table();
    const mull__scope_users users = {.handler_ms = 30000};
    int status = MULL_ENOMEM, failures = -1;
    heard h;
    for (long fail_at = 1; status == MULL_ENOMEM; fail_at++, failures++) {
        counting_allocator p = {.fail_at = fail_at, .fail_for = FOR_GOOD};
        mull_allocator a = counting_allocator_ops(&p);
        h = (heard){0};
        mull__fates fates;
        status = mull__fates_of(&fates, table, NULL, &a);
        if (status == MULL_OK)
            status = mull__lint_run(&fates, &users, &a, hear, &h);
        mull__fates_free(&fates);
        assert_int_equal(atomic_load(&p.out), 0);
    }
    assert_int_equal(status, MULL_OK);
    assert_true(failures > 3);
    assert_int_equal(h.count, 4);
    assert_int_equal(h.by_kind[MULL__MISSPELT], 1);
    assert_int_equal(h.by_kind[MULL__NO_DEFAULT], 1);
    assert_int_equal(h.by_kind[MULL__TOO_LATE], 1);
    assert_int_equal(h.by_kind[MULL__TOO_MANY_CALLS], 1);
    mull__table_free(table);
}

/* ---- Matchers -------------------------------------------------------------------------------- */

#define INTEGER(n) ((mull_value){.kind = MULL_INTEGER, .as.integer = (n)})
#define TEXT(s)    ((mull_value){.kind = MULL_STRING, .as.string = (s)})

/* never: a rule with these tests, all of which must pass, is said never to. */
static int never(const mull__field_test *tests, size_t count)
{
    mull__matcher parts[4];
    for (size_t i = 0; i < count; i++)
        parts[i] = (mull__matcher){.kind = MULL__MATCH_TESTS, .tests = &tests[i], .test_count = 1};
    mull__plain_rule rule = DEAD_LETTER_RULE("A", 1);
    rule.matcher = (mull__matcher){.kind = MULL__MATCH_ALL, .parts = parts, .part_count = count};
    mull__plain_scope bus = {.kind = MULL__BUS, .rules = &rule, .rule_count = 1};
    mull__table *table = new_table(&(mull__plain){.scopes = &bus, .scope_count = 1});
    int64_t effort = INT64_C(1000000000);
    int answer = mull__never_passes(&table->bus->rules.items[0].matcher, &effort);
    mull__table_free(table);
    return answer;
}

#define NEVER(...)                                                                                 \
    never((const mull__field_test[]){__VA_ARGS__}, COUNT(((const mull__field_test[]){__VA_ARGS__})))

static mull__field_test one_of(mull__subject subject, const char *name, const mull_value *literal)
{
    return (mull__field_test){
        .subject = subject,
        .name = name,
        .value = {.kind = MULL__ONE_OF, .literals = literal, .literal_count = 1}};
}

static mull__field_test between(mull__subject subject, const char *name, mull_value low,
                                mull_value high)
{
    return (mull__field_test){.subject = subject,
                              .name = name,
                              .value = {.kind = MULL__BETWEEN, .low = low, .high = high}};
}

static mull__field_test just(mull__subject subject, const char *name, mull__value_kind kind)
{
    return (mull__field_test){.subject = subject, .name = name, .value = {.kind = kind}};
}

static void what_can_never_pass(void **state)
{
    (void)state;
    const mull_value zero = INTEGER(0), one = INTEGER(1), text = TEXT("x"), nil = {0};
    const mull_value half = {.kind = MULL_NUMBER, .as.number = 1.5};
    const mull_value whole = {.kind = MULL_NUMBER, .as.number = 1.0};
    assert_true(NEVER(one_of(MULL__OF_CTX, "attempt", &zero)));
    assert_false(NEVER(one_of(MULL__OF_CTX, "redeliveries", &zero)));
    assert_true(NEVER(one_of(MULL__OF_CTX, "calls", &half)));
    assert_false(NEVER(one_of(MULL__OF_CTX, "calls", &whole)));
    assert_true(NEVER(one_of(MULL__OF_CTX, "attempt", &text)));
    assert_true(NEVER(one_of(MULL__OF_ERROR, "message", &one)));
    assert_true(NEVER(one_of(MULL__OF_HEADER, "n", &one)));
    assert_false(NEVER(one_of(MULL__OF_ERROR, "status", &one)));
    assert_true(NEVER(just(MULL__OF_ERROR, "cause", MULL__PRESENT)));
    assert_false(NEVER(just(MULL__OF_ERROR, "cause", MULL__ABSENT)));
    assert_true(NEVER(just(MULL__OF_ERROR, "stack", MULL__ABSENT)));
    assert_false(NEVER(just(MULL__OF_MESSAGE, "id", MULL__ABSENT)));
    assert_true(NEVER(between(MULL__OF_CTX, "attempt", nil, zero)));
    assert_false(NEVER(between(MULL__OF_CTX, "attempt", nil, one)));
    assert_true(NEVER(between(MULL__OF_CTX, "calls", half,
                              (mull_value){.kind = MULL_NUMBER, .as.number = 1.75})));
    assert_false(NEVER(between(MULL__OF_CTX, "calls", half, INTEGER(2))));
    assert_true(NEVER(between(MULL__OF_MESSAGE, "type", one, nil)));
}

static void what_contradicts_itself(void **state)
{
    (void)state;
    const mull_value one = INTEGER(1), two = INTEGER(2), nil = {0};
    assert_true(NEVER(one_of(MULL__OF_ERROR, "a", &one), one_of(MULL__OF_ERROR, "a", &two)));
    assert_false(NEVER(one_of(MULL__OF_ERROR, "a", &one), one_of(MULL__OF_ERROR, "b", &two)));
    assert_true(NEVER(one_of(MULL__OF_ERROR, "a", &one), between(MULL__OF_ERROR, "a", two, nil)));
    assert_false(NEVER(one_of(MULL__OF_ERROR, "a", &two), between(MULL__OF_ERROR, "a", two, nil)));
    assert_true(
        NEVER(between(MULL__OF_ERROR, "a", two, nil), between(MULL__OF_ERROR, "a", nil, one)));
    assert_false(
        NEVER(between(MULL__OF_ERROR, "a", one, nil), between(MULL__OF_ERROR, "a", nil, one)));
    assert_true(
        NEVER(just(MULL__OF_ERROR, "a", MULL__PRESENT), just(MULL__OF_ERROR, "a", MULL__ABSENT)));
    assert_true(NEVER(just(MULL__OF_ERROR, "a", MULL__ABSENT), one_of(MULL__OF_ERROR, "a", &one)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_is_told),
        cmocka_unit_test(what_can_never_pass),
        cmocka_unit_test(what_contradicts_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
