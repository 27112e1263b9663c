/* name_index.c: names to numbers, which every decision looks up: of every length, in great
 * number, and made to collide. */
#include <stdio.h>

#include "fixtures.h"
#include "policy/name_index.h"

static mull__name_index room_for(size_t count)
{
    static counting_allocator plenty;
    const mull_allocator a = counting_allocator_ops(&plenty);
    mull__arena arena = {.allocator = a};
    mull__name_index names;
    assert_int_equal(mull__name_index_init(&names, &arena, count), 0);
    return names;
}

static void drop(mull__name_index *names)
{
    static counting_allocator plenty;
    const mull_allocator a = counting_allocator_ops(&plenty);
    a.resize(names->slots, 0, a.data);
}

static uint32_t find(const mull__name_index *names, const char *text)
{
    uint64_t hash;
    return mull__name_index_find(names, text, &hash);
}

static void add(mull__name_index *names, const char *text, uint32_t number)
{
    mull__name_index_add(names, text, number);
}

static void nothing_is_in_an_empty_table(void **state)
{
    (void)state;
    mull__name_index names = room_for(0);
    assert_int_equal(find(&names, ""), MULL__NONE);
    assert_int_equal(find(&names, "Error"), MULL__NONE);
    drop(&names);
}

/* Each text is in memory of its own size, so that AddressSanitizer sees a read beyond its end. */
static char *text_of(size_t length, size_t at, char other)
{
    char *text = malloc(length + 1);
    memset(text, 'x', length);
    text[length] = '\0';
    if (at < length)
        text[at] = other;
    return text;
}

static void each_byte_of_a_name_counts(void **state)
{
    (void)state;
    enum { LONGEST = 41 };
    for (size_t length = 0; length <= LONGEST; length++) {
        mull__name_index names = room_for(1);
        char *name = text_of(length, length, 0);
        assert_int_equal(find(&names, name), MULL__NONE);
        add(&names, name, 7);
        assert_int_equal(find(&names, name), 7);
        for (size_t at = 0; at < length; at++) {
            char *other = text_of(length, at, 'y');
            assert_int_equal(find(&names, other), MULL__NONE);
            free(other);
        }
        for (size_t near = length ? length - 1 : 1; near <= length + 1; near += 2) {
            char *other = text_of(near, near, 0);
            assert_int_equal(find(&names, other), MULL__NONE);
            free(other);
        }
        drop(&names);
        free(name);
    }
}

/* collider writes a name of 16 bytes with the hash of "AAAAAAAABBBBBBBB": what its first 8 bytes
 * add to the hash, the last ones take away. 0: that would need a NUL. */
static int collider(char name[17], uint64_t first)
{
    static const char *const model = "AAAAAAAABBBBBBBB";
    uint64_t behind = (mull__load_8(model) - first) * MULL__NAME_FACTOR + mull__load_8(model + 8);
    for (int i = 0; i < 8; i++) {
        name[i] = (char)(first >> (8 * i));
        name[8 + i] = (char)(behind >> (8 * i));
    }
    name[16] = '\0';
    return strlen(name) == 16;
}

static void names_that_collide_are_told_apart(void **state)
{
    (void)state;
    enum { COUNTED = 500 };
    static char colliders[COUNTED][17];
    uint64_t first = UINT64_C(0x3031323334353637);
    uint32_t count = 0;
    while (count < COUNTED)
        count += (uint32_t)collider(colliders[count], first++);
    mull__name_index names = room_for(COUNTED);
    const uint64_t hash = mull__name_of(colliders[0]).hash;
    for (uint32_t i = 0; i < COUNTED; i += 2)
        add(&names, colliders[i], i);
    for (uint32_t i = 0; i < COUNTED; i++) {
        assert_true(mull__name_of(colliders[i]).hash == hash);
        assert_int_equal(find(&names, colliders[i]), i % 2 ? MULL__NONE : i);
    }
    assert_int_equal(find(&names, "AAAAAAAABBBBBBBB"), MULL__NONE);
    drop(&names);
}

/* The numbers at the end of names, of whatever length, spread them: looking one up takes few
 * steps. */
static void a_hundred_thousand_names(void **state)
{
    (void)state;
    enum { NAMES = 100000 };
    static const char *const forms[] = {"%u", "T%u", "Type%05u", "PaymentHandler%05u",
                                        "%05u.warehouse.example.PaymentHandler"};
    for (size_t form = 0; form < COUNT(forms); form++) {
        char(*texts)[64] = malloc(sizeof *texts * NAMES);
        mull__name_index names = room_for(NAMES);
        for (uint32_t i = 0; i < NAMES; i++) {
            snprintf(texts[i], sizeof *texts, forms[form], i);
            add(&names, texts[i], i);
        }
        uint64_t steps = 0;
        for (uint32_t i = 0; i < NAMES; i++) {
            assert_int_equal(find(&names, texts[i]), i);
            uint64_t at = mull__name_of(texts[i]).hash >> names.shift;
            for (; names.slots[at].number != i || !names.slots[at].text; steps++)
                at = (at + 1) & names.mask;
        }
        print_message("%s: %llu steps beyond the first\n", forms[form], (unsigned long long)steps);
        assert_true(steps < 3 * NAMES);
        assert_int_equal(find(&names, "PaymentHandler"), MULL__NONE);
        drop(&names);
        free(texts);
    }
}

static void a_table_of_a_hundred_thousand_names(void **state)
{
    (void)state;
    enum { NAMES = 100000 };
    static char consumers[NAMES][24], types[NAMES][24];
    mull__plain_scope *scopes = calloc(NAMES, sizeof *scopes);
    mull__plain_rule *rules = calloc(NAMES, sizeof *rules);
    for (int i = 0; i < NAMES; i++) {
        snprintf(consumers[i], sizeof consumers[i], "Consumer%d", i);
        snprintf(types[i], sizeof types[i], "Type%d", i);
        rules[i] = (mull__plain_rule)DEAD_LETTER_RULE(types[i], i + 1);
        scopes[i] = (mull__plain_scope){
            .kind = MULL__CONSUMER, .name = consumers[i], .rules = &rules[i], .rule_count = 1};
    }
    mull__table *table = new_table(&(mull__plain){NULL, 0, scopes, NAMES, 0});
    for (int i = 0; i < NAMES; i += 37) {
        const mull_error error = error_of(types[i]);
        mull_failure failure = failure_of(&error);
        failure.consumer = consumers[i];
        assert_int_equal(judge(table, &failure).rule.line, i + 1);
        failure.consumer = consumers[(i + 1) % NAMES];
        assert_int_equal(judge(table, &failure).reason, MULL_REASON_NO_RULE);
    }
    mull__table_free(table);
    free(rules);
    free(scopes);
}

static void an_empty_policy(void **state)
{
    (void)state;
    mull__table *table = new_table(&(mull__plain){0});
    static const char *const names[] = {"", "Error", "Any", "MessageDeserializationError"};
    for (size_t i = 0; i < COUNT(names); i++) {
        const mull_error error = error_of(names[i]);
        mull_failure failure = failure_of(&error);
        failure.consumer = names[COUNT(names) - 1 - i];
        failure.transport = names[i];
        const mull_verdict verdict = judge(table, &failure);
        assert_int_equal(verdict.action, MULL_DEAD_LETTER);
        assert_int_equal(verdict.reason, i == 3 ? MULL_REASON_UNRECOVERABLE : MULL_REASON_NO_RULE);
        assert_string_equal(verdict.queue, "error");
    }
    mull__table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_in_an_empty_table),
        cmocka_unit_test(each_byte_of_a_name_counts),
        cmocka_unit_test(names_that_collide_are_told_apart),
        cmocka_unit_test(a_hundred_thousand_names),
        cmocka_unit_test(a_table_of_a_hundred_thousand_names),
        cmocka_unit_test(an_empty_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
