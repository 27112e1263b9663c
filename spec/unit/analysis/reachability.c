/* reachability.c: which rule decides before another one is found without looking at all of them,
 * and is the same that one finds who does. MULL_SEED repeats a run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "analysis/reachability.h"
#include "analysis/satisfiability.h"
#include "analysis/scope_usage.h"
#include "base/alloc.h"
#include "base/rand.h"
#include "fixtures.h"

static const mull_allocator libc = {.resize = NULL};
static mull__rand chance;

static size_t below(size_t n)
{
    return (size_t)(mull__rand_next(&chance) % n);
}

/* ---- Random rules: few facts and values, so that they often meet ----------------------------- */

enum { MOST_RULES = 40, TABLES = 3000 };

/* brood is random rules and all that they are made of. */
typedef struct brood {
    mull__plain_rule rules[MOST_RULES];
    mull__plain_unrecoverable declared[MOST_RULES];
    mull__matcher parts[500];
    mull__field_test tests[2000];
    mull__condition values[500];
    mull_value literals[20000];
    size_t part_count, test_count, value_count, literal_count;
} brood;

static mull_value literal(void)
{
    static const char *const texts[] = {"a", "ab", "a value that is longer than others", ""};
    switch (below(4)) {
    case 0:
        return (mull_value){.kind = MULL_INTEGER, .as.integer = (int64_t)below(6)};
    case 1:
        return (mull_value){.kind = MULL_NUMBER, .as.number = (double)below(6) / 2};
    case 2:
        return (mull_value){.kind = MULL_BOOLEAN, .as.boolean = (int)below(2)};
    default:
        return (mull_value){.kind = MULL_STRING, .as.string = texts[below(COUNT(texts))]};
    }
}

static mull_value bound(void)
{
    return below(3) ? (mull_value){.kind = MULL_INTEGER, .as.integer = (int64_t)below(6)}
                    : (mull_value){.kind = MULL_NIL};
}

static mull__condition value(brood *b, int depth)
{
    static const char *const texts[] = {"a", "b", "%d"};
    mull__condition v = {.kind = (mull__value_kind)below(depth > 0 ? 7 : 6)};
    switch (v.kind) {
    case MULL__ONE_OF:
        v.literals = &b->literals[b->literal_count];
        v.literal_count = 1 + (below(4) ? below(3) : below(30));
        for (size_t i = 0; i < v.literal_count; i++)
            b->literals[b->literal_count++] = literal();
        break;
    case MULL__BETWEEN:
        v.low = bound();
        v.high = bound();
        break;
    case MULL__CONTAINS:
    case MULL__MATCHES:
        v.text = texts[below(COUNT(texts))];
        break;
    case MULL__NOT:
        b->values[b->value_count] = value(b, depth - 1);
        v.inner = &b->values[b->value_count++];
        break;
    case MULL__PRESENT:
    case MULL__ABSENT:
        break;
    }
    return v;
}

static mull__matcher matcher(brood *b, int depth)
{
    static const mull__matcher_kind nests[] = {MULL__MATCH_ALL, MULL__MATCH_ANY, MULL__MATCH_NONE};
    static const char *const names[] = {"a", "b", "message"};
    mull__matcher m = {.kind = MULL__MATCH_TESTS};
    size_t form = below(20);
    if (form == 0)
        return (mull__matcher){.kind = MULL__MATCH_ALWAYS};
    if (form == 1)
        return (mull__matcher){.kind = MULL__MATCH_FUNCTION, .function = (uint32_t)below(3)};
    if (form < 5 && depth > 0) {
        m.kind = nests[below(3)];
        m.part_count = 1 + below(2);
        mull__matcher *parts = &b->parts[b->part_count];
        b->part_count += m.part_count;
        for (size_t i = 0; i < m.part_count; i++)
            parts[i] = matcher(b, depth - 1);
        m.parts = parts;
        return m;
    }
    m.tests = &b->tests[b->test_count];
    m.test_count = 1 + below(3);
    for (size_t i = 0; i < m.test_count; i++)
        b->tests[b->test_count++] = (mull__field_test){
            .subject = below(5) ? MULL__OF_ERROR : MULL__OF_HEADER,
            .name = names[below(COUNT(names))],
            .value = value(b, 1),
        };
    return m;
}

static mull__table *random_table(brood *b, size_t count)
{
    static const mull__type_parent parents[] = {
        {"A", "B"}, {"B", "C"}, {"D", "MessageDeserializationError"}};
    static const char *const types[] = {"A", "B", "C", "D", "Error"};
    b->part_count = b->test_count = b->value_count = b->literal_count = 0;
    for (size_t i = 0; i < count; i++) {
        b->rules[i] = (mull__plain_rule)DEAD_LETTER_RULE(types[below(COUNT(types))], (int)i);
        b->rules[i].matcher = matcher(b, 2);
        b->declared[i] =
            (mull__plain_unrecoverable){types[below(4)], "policy.lua", (int)i, matcher(b, 1)};
    }
    mull__plain_scope scopes[] = {
        {.kind = MULL__HOST, .unrecoverable = b->declared, .unrecoverable_count = count / 8},
        {.kind = MULL__BUS,
         .rules = b->rules,
         .rule_count = count - count / 4,
         .cause_rules = b->rules + (count - count / 4),
         .cause_rule_count = count / 4,
         .unrecoverable = b->declared + count / 8,
         .unrecoverable_count = count / 8},
    };
    return new_table(&(mull__plain){parents, COUNT(parents), scopes, COUNT(scopes), 3});
}

/* ---- Looked for one by one ------------------------------------------------------------------- */

static const mull__rule *first_cover(const mull__rules *rules, const mull__rule *end, uint32_t type,
                                     const mull__matcher *narrow)
{
    int64_t effort = INT64_MAX;
    for (const mull__rule *rule = rules->items; rule < rules->items + rules->count; rule++) {
        if (rule == end)
            break;
        if (rule->type == type && mull__covers(&rule->matcher, narrow, &effort))
            return rule;
    }
    return NULL;
}

/* taker gives the declaration that takes a rule's errors; `climbs` to the rule's ancestors as well.
 */
static const mull__rule *taker(const mull__table *table, const mull__rule *rule, int is_cause,
                               int climbs)
{
    static const mull__matcher always = {.kind = MULL__MATCH_ALWAYS};
    const mull__scope *const scopes[] = {table->bus, table->host};
    const mull__matcher *narrow = is_cause ? &always : &rule->matcher;
    for (size_t i = 0; i < COUNT(scopes); i++) {
        const mull__rules *declared = &scopes[i]->unrecoverable;
        const mull__rule *found = first_cover(declared, NULL, MULL__ERROR_TYPE, narrow);
        uint32_t type = is_cause ? MULL__ERROR_TYPE : rule->type;
        for (; !found && type != MULL__ERROR_TYPE;
             type = climbs ? table->types[type].parent : MULL__ERROR_TYPE)
            found = first_cover(declared, NULL, type, narrow);
        if (found)
            return found;
    }
    return NULL;
}

static int check_rule(const mull__table *table, const mull__rules *rules, const mull__rule *rule,
                      const mull__fate *fate)
{
    int is_cause = rules == &table->bus->cause_rules;
    int64_t effort = INT64_MAX;
    int never = mull__never_passes(&rule->matcher, &effort);
    const mull__rule *hidden = first_cover(rules, rule, rule->type, &rule->matcher);
    assert_ptr_equal(fate->hidden_by, hidden);
    assert_ptr_equal(fate->taken_by, taker(table, rule, is_cause, 1));
    assert_int_equal(fate->never_passes, never);
    assert_int_equal(fate->may_decide, !never && !hidden && !taker(table, rule, is_cause, 0));
    return hidden != NULL;
}

static void fates_are_those_found_one_by_one(void **state)
{
    (void)state;
    brood *b = malloc(sizeof *b);
    mull_allocator allocator = mull__allocator_or_default(libc);
    size_t hidden = 0, taken = 0;
    assert_non_null(b);
    for (int i = 0; i < TABLES; i++) {
        mull__table *table = random_table(b, 1 + below(MOST_RULES));
        mull__fates fates;
        assert_int_equal(mull__fates_of(&fates, table, i % 2 ? table->bus : NULL, &allocator), 0);
        assert_null(fates.stopped);
        const mull__fate *fate = mull__fates_in(&fates, table->bus);
        for (size_t at = 0; at < mull__scope_rules(table->bus); at++) {
            const mull__rule *rule = mull__rule_at(table->bus, at);
            const mull__rules *rules = mull__is_cause_rule(table->bus, rule)
                                           ? &table->bus->cause_rules
                                           : &table->bus->rules;
            hidden += (size_t)check_rule(table, rules, rule, &fate[at]);
            taken += fate[at].taken_by != NULL;
        }
        mull__fates_free(&fates);
        mull__table_free(table);
    }
    free(b);
    print_message("%zu rules hidden, %zu taken\n", hidden, taken);
    assert_true(hidden > TABLES && taken > TABLES);
}

/* ---- Effort ---------------------------------------------------------------------------------- */

enum { MANY = 20000 };

/* many_rules is a bus with rules for one type, each with one test of one field. */
static mull__table *many_rules(mull__condition (*of)(size_t index, mull_value *room))
{
    mull__plain_rule *rules = calloc(MANY, sizeof *rules);
    mull__field_test *tests = calloc(MANY, sizeof *tests);
    mull_value *room = calloc(MANY, sizeof *room);
    assert_true(rules && tests && room);
    for (size_t i = 0; i < MANY; i++) {
        tests[i] = (mull__field_test){MULL__OF_ERROR, "status", of(i, &room[i]), 0};
        rules[i] = (mull__plain_rule)DEAD_LETTER_RULE("A", (int)i + 1);
        rules[i].matcher =
            (mull__matcher){.kind = MULL__MATCH_TESTS, .tests = &tests[i], .test_count = 1};
    }
    const mull__plain_scope bus = {.kind = MULL__BUS, .rules = rules, .rule_count = MANY};
    mull__table *table = new_table(&(mull__plain){.scopes = &bus, .scope_count = 1});
    free(rules);
    free(tests);
    free(room);
    return table;
}

static mull__condition one(size_t index, mull_value *room)
{
    *room = (mull_value){.kind = MULL_INTEGER, .as.integer = (int64_t)index / 2};
    return (mull__condition){.kind = MULL__ONE_OF, .literals = room, .literal_count = 1};
}

static mull__condition range(size_t index, mull_value *room)
{
    *room = (mull_value){.kind = MULL_INTEGER, .as.integer = (int64_t)index};
    return (mull__condition){.kind = MULL__BETWEEN,
                             .low = *room,
                             .high = {.kind = MULL_INTEGER, .as.integer = (int64_t)index + MANY}};
}

static void equalities_are_told_apart_by_their_values(void **state)
{
    (void)state;
    mull_allocator allocator = mull__allocator_or_default(libc);
    mull__table *table = many_rules(one);
    mull__fates fates;
    assert_int_equal(mull__fates_of(&fates, table, NULL, &allocator), MULL_OK);
    assert_null(fates.stopped);
    const mull__fate *fate = mull__fates_in(&fates, table->bus);
    for (size_t i = 0; i < MANY; i++)
        assert_ptr_equal(fate[i].hidden_by, i % 2 ? &table->bus->rules.items[i - 1] : NULL);
    mull__fates_free(&fates);
    mull__table_free(table);
}

/* Of what wasn't looked at nothing is certain, from the rule on that is named. */
static void the_search_among_ranges_stops(void **state)
{
    (void)state;
    mull_allocator allocator = mull__allocator_or_default(libc);
    mull__table *table = many_rules(range);
    mull__fates fates;
    assert_int_equal(mull__fates_of(&fates, table, NULL, &allocator), MULL_OK);
    assert_non_null(fates.stopped);
    const mull__fate *fate = mull__fates_in(&fates, table->bus);
    for (const mull__rule *rule = fates.stopped; rule < table->bus->rules.items + MANY; rule++) {
        size_t at = (size_t)(rule - table->bus->rules.items);
        assert_true(at > 1000 && fate[at].may_decide && !fate[at].hidden_by);
    }
    mull__fates_free(&fates);
    mull__table_free(table);
}

static void no_memory_is_told(void **state)
{
    (void)state;
    brood *b = malloc(sizeof *b);
    assert_non_null(b);
    mull__table *table = random_table(b, MOST_RULES);
    int status = MULL_ENOMEM;
    for (long fail_at = 1; status == MULL_ENOMEM; fail_at++) {
        counting_allocator p = {.fail_at = fail_at, .fail_for = FOR_GOOD};
        mull_allocator allocator = counting_allocator_ops(&p);
        mull__fates fates;
        status = mull__fates_of(&fates, table, NULL, &allocator);
        mull__fates_free(&fates);
        assert_int_equal(atomic_load(&p.out), 0);
    }
    assert_int_equal(status, MULL_OK);
    mull__table_free(table);
    free(b);
}

int main(void)
{
    const char *given = getenv("MULL_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("MULL_SEED=%" PRIu64 "\n", seed);
    mull__rand_init(&chance, seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fates_are_those_found_one_by_one),
        cmocka_unit_test(equalities_are_told_apart_by_their_values),
        cmocka_unit_test(the_search_among_ranges_stops),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
