/* limits.c: which failures count for a rate_limit, by `only` and `except`: case by case, and at
 * random beside the lineage that rules go by. */
#include "base/rand.h"
#include "fixtures.h"

enum { LISTS_MAX = 2, SENT_MAX = 5 };

static const mull__type_parent family[] = {
    {"Deadlock", "Database"}, {"Database", "Storage"}, {"Timeout", "Network"}};

/* limits is a table of one scope with one rate_limit. */
typedef struct limits {
    const char *only[LISTS_MAX], *except[LISTS_MAX];
    mull__rate_limit rate;
    mull__table *table;
} limits;

static void limits_open(limits *l)
{
    l->rate.only.names = l->only;
    l->rate.except.names = l->except;
    l->rate.after = 1;
    const mull__plain_scope bus = {
        .kind = MULL__BUS,
        .settings = {.rate_limits_set = 1, .rate_limit = {&l->rate, 1}},
    };
    l->table = new_table(&(mull__plain){family, COUNT(family), &bus, 1, 0});
}

static const mull__rate_limit *in_force(const limits *l)
{
    const mull__settings settings = mull__effective_settings_of(l->table, NULL, NULL).settings;
    assert_int_equal(settings.rate_limit.count, 1);
    return &settings.rate_limit.items[0];
}

static int counts(const limits *l, const char *type, const char *sent)
{
    mull_error error = error_of(type);
    error.lineage = &sent;
    error.lineage_count = sent != NULL;
    return mull__rate_limit_counts(l->table, in_force(l), &error);
}

static void all_failures_count_unless_told(void **state)
{
    (void)state;
    limits l = {0};
    limits_open(&l);
    assert_true(counts(&l, "Deadlock", NULL));
    assert_true(counts(&l, "Unheard", NULL));
    assert_true(counts(&l, "Error", NULL));
    mull__table_free(l.table);
}

static void descendants_count_too(void **state)
{
    (void)state;
    limits l = {.only = {"Storage", "Foreign"}, .rate.only.count = 2};
    limits_open(&l);
    assert_true(counts(&l, "Storage", NULL));
    assert_true(counts(&l, "Deadlock", NULL));
    assert_true(counts(&l, "Foreign", NULL));
    assert_true(counts(&l, "Unheard", "Database")); /* by what was sent */
    assert_true(counts(&l, "Unheard", "Foreign"));
    assert_false(counts(&l, "Unheard", NULL));
    assert_false(counts(&l, "Timeout", NULL));
    assert_false(counts(&l, "Error", NULL));
    assert_false(counts(&l, "Deadlock", "Timeout")); /* the last one's parents go on */
    mull__table_free(l.table);
}

static void both_lists_hold(void **state)
{
    (void)state;
    limits l = {.only = {"Storage"}, .except = {"Database"}, .rate.only.count = 1};
    l.rate.except.count = 1;
    limits_open(&l);
    assert_true(counts(&l, "Storage", NULL));
    assert_false(counts(&l, "Deadlock", NULL));
    assert_false(counts(&l, "Timeout", NULL));
    mull__table_free(l.table);
    l = (limits){.only = {"Error"}, .except = {"Network"}, .rate.only.count = 1};
    l.rate.except.count = 1;
    limits_open(&l);
    assert_true(counts(&l, "Unheard", NULL));
    assert_false(counts(&l, "Timeout", NULL));
    mull__table_free(l.table);
}

/* ---- At random ------------------------------------------------------------------------------- */

static const char *const names[] = {"Deadlock", "Database", "Storage", "Timeout", "Network",
                                    "Unheard",  "Error",    "Foreign", "",        NULL};

static const char *some_name(mull__rand *rand, size_t count)
{
    return names[mull__rand_next(rand) % count];
}

static int is_in(const mull__table *table, const mull__lineage *lineage, const char *name)
{
    if (strcmp(name, "Error") == 0)
        return 1;
    for (size_t i = 0; i < lineage->count; i++)
        if (strcmp(table->types[lineage->types[i]].name, name) == 0)
            return 1;
    return 0;
}

static void as_the_lineage_says(void **state)
{
    (void)state;
    mull__rand rand;
    int counted[2] = {0};
    mull__rand_init(&rand, 1);
    for (int round = 0; round < 20000; round++) {
        limits l = {.only = {some_name(&rand, 8)}, .rate.only.count = 1};
        limits_open(&l);
        const char *sent[SENT_MAX];
        for (size_t i = 0; i < SENT_MAX; i++)
            sent[i] = some_name(&rand, COUNT(names));
        mull_error error = error_of(some_name(&rand, 8));
        error.lineage = sent;
        error.lineage_count = mull__rand_next(&rand) % (SENT_MAX + 1);
        uint64_t scratch[64];
        assert_true(mull__table_scratch_words(l.table) <= COUNT(scratch));
        const mull__lineage lineage = mull__lineage_sent(l.table, &error, scratch);
        int expected = is_in(l.table, &lineage, l.only[0]);
        assert_int_equal(mull__rate_limit_counts(l.table, in_force(&l), &error), expected);
        counted[expected]++;
        mull__table_free(l.table);
    }
    assert_true(counted[0] > 1000 && counted[1] > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_failures_count_unless_told),
        cmocka_unit_test(descendants_count_too),
        cmocka_unit_test(both_lists_hold),
        cmocka_unit_test(as_the_lineage_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
