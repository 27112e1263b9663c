/* internal_equals.c: matchers that are made of equalities, whose texts are compared by their
 * bytes where they are short: beside strcmp, with random texts of few letters in blocks of their
 * very size, so that AddressSanitizer sees a byte too many. MULL_EQUALS says how many; the seed is
 * printed. */
#include "base/alloc.h"
#include "fixtures.h"
#include "policy/shape.h"
#include "policy/value.h"
#include "sample.h"

enum { TRIES = 100000 / SLOWNESS, LENGTH_MAX = 40, FIELDS_MAX = 4, WANTED_MAX = 3 };

static size_t pick(sample *chance, size_t count)
{
    return (size_t)(sample_random(chance) % count);
}

/* random_text is mostly like `model`, but for a letter or its end. */
static char *random_text(sample *chance, const char *model)
{
    size_t length = model && pick(chance, 4) ? strlen(model) : pick(chance, LENGTH_MAX + 1);
    char *text = malloc(length + 1);
    assert_non_null(text);
    for (size_t i = 0; i < length; i++)
        text[i] = model && i < strlen(model) ? model[i] : (char)('a' + pick(chance, 2));
    if (length > 0 && pick(chance, 3) == 0)
        text[pick(chance, length)] = (char)('a' + pick(chance, 2));
    text[length] = '\0';
    return text;
}

static mull_value random_value(sample *chance, const mull_value *model)
{
    static const double numbers[] = {0, 1, 2.5, 9007199254740992.0};
    static const mull_kind kinds[] = {MULL_STRING,  MULL_STRING, MULL_INTEGER, MULL_NUMBER,
                                      MULL_BOOLEAN, MULL_NIL,    MULL_LIST};
    mull_value value = {.kind = kinds[pick(chance, model ? 7 : 5)]};
    if (model && pick(chance, 4))
        value.kind = model->kind;
    if (value.kind == MULL_STRING)
        value.as.string =
            random_text(chance, model && model->kind == MULL_STRING ? model->as.string : NULL);
    else if (value.kind == MULL_INTEGER)
        value.as.integer = (int64_t)numbers[pick(chance, 4)];
    else if (value.kind == MULL_NUMBER)
        value.as.number = numbers[pick(chance, 4)];
    else if (value.kind == MULL_BOOLEAN)
        value.as.boolean = (int)pick(chance, 3);
    return value;
}

static void free_value(const mull_value *value)
{
    if (value->kind == MULL_STRING)
        free((void *)(uintptr_t)value->as.string);
}

static void free_fields(const mull_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)fields[i].name);
        free_value(&fields[i].value);
    }
}

/* naively: the first field of each name is there, and equals. */
static int naively(const mull_field *wanted, size_t wanted_count, const mull_field *fields,
                   size_t count)
{
    for (size_t i = 0; i < wanted_count; i++) {
        size_t at = 0;
        while (at < count && strcmp(fields[at].name, wanted[i].name) != 0)
            at++;
        if (at == count || fields[at].value.kind == MULL_LIST ||
            !mull__value_equals(&wanted[i].value, &fields[at].value))
            return 0;
    }
    return 1;
}

/* table_of gives a table with one rule, of a matcher that wants the fields. */
static mull__table *table_of(const mull_field *wanted, size_t count)
{
    mull__plain_test tests[WANTED_MAX];
    for (size_t i = 0; i < count; i++)
        tests[i] = (mull__plain_test)EQUALS(wanted[i].name, &wanted[i].value);
    mull__plain_rule rule = {
        .type = "T",
        .file = "f.lua",
        .line = 1,
        .matcher = {.kind = MULL__MATCH_TESTS, .tests = tests, .test_count = count},
        .retry = RETRY(3),
        .end = MULL_DEAD_LETTER,
    };
    mull__plain_scope scope = {.kind = MULL__BUS, .rules = &rule, .rule_count = 1};
    mull__plain plain = {.scopes = &scope, .scope_count = 1};
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){0});
    mull__table *table;
    assert_int_equal(mull__table_new(&table, &allocator, &plain), 0);
    return table;
}

static const mull__equality *equality_of(const mull__table *table)
{
    return table->bus->rules.items[0].matcher.equals;
}

/* field_like is one of that name and value, or mostly one that differs in little. */
static mull_field field_like(sample *chance, const mull_field *model)
{
    if (pick(chance, 2))
        return (mull_field){random_text(chance, model->name), random_value(chance, &model->value)};
    mull_field same = {strdup(model->name), model->value};
    if (same.value.kind == MULL_STRING)
        same.value.as.string = strdup(model->value.as.string);
    return same;
}

/* try_one is true where all was equal. */
static int try_one(sample *chance)
{
    mull_field wanted[WANTED_MAX], fields[FIELDS_MAX];
    size_t wanted_count = 1 + pick(chance, WANTED_MAX), count = pick(chance, FIELDS_MAX + 1);
    for (size_t i = 0; i < wanted_count; i++)
        wanted[i] = (mull_field){random_text(chance, NULL), random_value(chance, NULL)};
    for (size_t i = 0; i < count; i++)
        fields[i] = field_like(chance, &wanted[i % wanted_count]);
    mull__table *table = table_of(wanted, wanted_count);
    mull_error error = error_of("T");
    error.fields = fields;
    error.field_count = count;
    int expected = naively(wanted, wanted_count, fields, count);
    assert_int_equal(mull__equals_all(equality_of(table), &error), expected);
    mull__table_free(table);
    free_fields(wanted, wanted_count);
    free_fields(fields, count);
    return expected;
}

static void texts_are_equal_as_strcmp_says(void **state)
{
    (void)state;
    sample chance = sample_of(1);
    const char *given = getenv("MULL_EQUALS");
    long tries = given ? atol(given) : TRIES, passed = 0;
    for (long i = 0; i < tries; i++)
        passed += try_one(&chance);
    print_message("%ld of %ld passed\n", passed, tries);
    assert_true(tries < TRIES || passed > tries / 50);
}

/* Fields without an array are none, whatever their number. */
static void fields_may_be_nowhere(void **state)
{
    (void)state;
    mull_field wanted = {"status", {.kind = MULL_INTEGER, .as.integer = 503}};
    mull__table *table = table_of(&wanted, 1);
    mull_error error = error_of("T");
    error.field_count = 3;
    assert_int_equal(mull__equals_all(equality_of(table), &error), 0);
    mull__table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_equal_as_strcmp_says),
        cmocka_unit_test(fields_may_be_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
