/* causes.c: rules for causes, and what is unrecoverable: who is asked, about what, in
 * which order. probe.h says how that is written down. */
#include "probe.h"

/* ---- Causes ---------------------------------------------------------------------------------- */

/* chain_of links errors of these types: each is the cause of the one before it. */
static mull_error *chain_of(mull_error *errors, const char *const *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        errors[i] = error_of(types[i]);
        errors[i].cause = i + 1 < count ? &errors[i + 1] : NULL;
    }
    return errors;
}

static const mull__type_parent family[] = {{"Timeout", "Network"}, {"Http", "Network"}};

static const mull__plain_rule on_rules[] = {
    DEAD_LETTER_RULE("Known", 1),
    DEAD_LETTER_RULE("Error", 2),
};

static mull__plain_rule cause_rules[] = {
    DEAD_LETTER_RULE("Error", 11),
    DEAD_LETTER_RULE("Network", 12),
    DEAD_LETTER_RULE("Timeout", 13),
    DEAD_LETTER_RULE("Deep", 14),
};

/* cause_table leaves out the first `without` of the cause rules. */
static mull__table *cause_table(size_t without)
{
    const mull__plain_scope bus = {
        .kind = MULL__BUS,
        .rules = on_rules,
        .rule_count = COUNT(on_rules),
        .cause_rules = cause_rules + without,
        .cause_rule_count = COUNT(cause_rules) - without,
    };
    return new_table(&(mull__plain){family, COUNT(family), &bus, 1, FUNCTIONS});
}

static int line_for(probe *p, size_t without, const char *const *types, size_t count)
{
    mull_error errors[8];
    const mull_failure failure = failure_of(chain_of(errors, types, count));
    mull__table *table = cause_table(without);
    int line = probe_judge(p, table, &failure).rule.line;
    mull__table_free(table);
    return line;
}

#define LINE(p, without, ...)                                                                      \
    line_for((p), (without), (const char *const[]){__VA_ARGS__},                                   \
             COUNT(((const char *const[]){__VA_ARGS__})))

static void causes_come_after_types_and_before_the_default(void **state)
{
    (void)state;
    probe p = {.trials = 1};
    /* An error's own types are asked first, its cause not at all. */
    assert_int_equal(LINE(&p, 1, "Known", "Timeout"), 1);
    assert_string_equal(p.said, "r1=");
    assert_int_equal(LINE(&p, 1, "Unheard", "Timeout"), 13);
    assert_int_equal(LINE(&p, 1, "Unheard", "Http"), 12); /* by the cause's own lineage */
    assert_int_equal(LINE(&p, 1, "Unheard", "Unheard", "Http"), 12);
    assert_string_equal(p.said, "212=");
    assert_int_equal(LINE(&p, 1, "Unheard", "Unheard", "Unheard"), 2);
    assert_string_equal(p.said, "r2=");
    assert_int_equal(LINE(&p, 1, "Unheard"), 2);
    /* The rules are for causes, not for the error. */
    assert_int_equal(LINE(&p, 1, "Timeout", "Unheard"), 2);
    /* Nearest first, whatever the order of the rules. */
    assert_int_equal(LINE(&p, 1, "Unheard", "Http", "Timeout"), 12);
    /* Error is last for each cause, and so before the next one. */
    assert_int_equal(LINE(&p, 0, "Unheard", "Unheard", "Timeout"), 11);
    assert_int_equal(LINE(&p, 0, "Unheard", "Timeout", "Unheard"), 13);
    assert_int_equal(LINE(&p, 0, "Unheard"), 2);
}

static void a_cause_with_a_sent_lineage_has_its_own(void **state)
{
    (void)state;
    static const char *const sent[] = {"Deep"};
    mull_error cause = error_of("Unheard"), error = error_of("Mine");
    cause.lineage = sent;
    cause.lineage_count = 1;
    error.cause = &cause;
    const mull_failure failure = failure_of(&error);
    probe p = {0};
    mull__table *table = cause_table(1);
    assert_int_equal(probe_judge(&p, table, &failure).rule.line, 14);
    error.lineage = sent;
    error.lineage_count = 1;
    cause.lineage = NULL;
    cause.lineage_count = 0;
    assert_int_equal(probe_judge(&p, table, &failure).rule.line, 2);
    /* A cause without a type is of no type that has rules, but it is an error. */
    cause.type = NULL;
    assert_int_equal(probe_judge(&p, table, &failure).rule.line, 2);
    mull__table_free(table);
    table = cause_table(0);
    assert_int_equal(probe_judge(&p, table, &failure).rule.line, 11);
    mull__table_free(table);
}

static void a_matcher_of_a_cause_rule_gets_the_cause(void **state)
{
    (void)state;
    const mull_value code = {.kind = MULL_INTEGER, .as.integer = 7};
    const mull__field_test tests[] = {
        EQUALS("code", &code),
        {.subject = MULL__OF_CTX, .name = "consumer", .value = {.kind = MULL__PRESENT}},
    };
    mull__plain_rule rules[] = {DEAD_LETTER_RULE("Error", 1), DEAD_LETTER_RULE("Error", 2),
                                DEAD_LETTER_RULE("Error", 3)};
    rules[0].matcher = (mull__matcher)FUNCTION(FUNCTION_NO);
    rules[1].matcher = (mull__matcher)FUNCTION(FUNCTION_RAISES);
    rules[2].matcher = (mull__matcher){MULL__MATCH_TESTS, .tests = tests, .test_count = 2};
    const mull__plain_scope bus = {.kind = MULL__BUS, .cause_rules = rules, .cause_rule_count = 3};
    static const char *const types[] = {"One", "Two", "Three"};
    const mull_field field = {"code", code};
    mull_error errors[3];
    chain_of(errors, types, 3);
    errors[2].fields = &field;
    errors[2].field_count = 1;
    mull_failure failure = failure_of(errors);
    failure.consumer = "Payments";
    failure.attempt = 3;
    probe p = {.trials = 1};
    mull_verdict verdict = probe_bus(&p, &bus, &failure);
    assert_int_equal(verdict.rule.line, 3);
    assert_int_equal(verdict.reason, MULL_REASON_RULE);
    assert_string_equal(p.said, "f0:Two 11- f2:Two x2 12!boom 13-code "
                                "f0:Three 21- f2:Three x2 22!boom 23=");
    errors[2].field_count = 0;
    verdict = probe_bus(&p, &bus, &failure);
    assert_int_equal(verdict.reason, MULL_REASON_NO_RULE);
}

/* found: of `count` causes that go on from each other, the last one has a rule, and it is found,
 * with no trial before it. */
static int found(size_t count)
{
    enum { MOST = 40 };
    mull_error errors[MOST + 1];
    for (size_t i = 0; i <= count; i++) {
        errors[i] = error_of("Unheard");
        errors[i].cause = i < count ? &errors[i + 1] : NULL;
    }
    errors[count].type = "Deep";
    const mull_failure failure = failure_of(errors);
    mull__table *table = cause_table(1);
    probe p = {.trials = 1};
    int line = probe_judge(&p, table, &failure).rule.line;
    mull__table_free(table);
    char expected[32] = "r2=";
    if (line == 14)
        snprintf(expected, sizeof expected, "%zu14=", count);
    assert_string_equal(p.said, expected);
    return line == 14;
}

static void sixteen_causes_are_looked_at(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 16; count++)
        assert_true(found(count));
    assert_false(found(17));
    assert_false(found(40));
}

/* Of a circle each error is looked at once, the error itself not as its own cause. */
static void circles_are_cut(void **state)
{
    (void)state;
    mull__plain_rule rule = DEAD_LETTER_RULE("Error", 5);
    rule.matcher = (mull__matcher)FUNCTION(FUNCTION_NO);
    const mull__plain_scope bus = {.kind = MULL__BUS, .cause_rules = &rule, .cause_rule_count = 1};
    static const char *const types[] = {"One", "Two", "Three"};
    for (size_t back = 0; back < COUNT(types); back++) {
        mull_error errors[3];
        chain_of(errors, types, 3);
        errors[2].cause = &errors[back];
        const mull_failure failure = failure_of(errors);
        probe p = {0};
        assert_int_equal(probe_bus(&p, &bus, &failure).reason, MULL_REASON_NO_RULE);
        assert_string_equal(p.said, "f0:Two f0:Three");
    }
    mull_error alone = error_of("One");
    alone.cause = &alone;
    const mull_failure failure = failure_of(&alone);
    probe p = {0};
    probe_bus(&p, &bus, &failure);
    assert_string_equal(p.said, "");
}

/* ---- What is unrecoverable ------------------------------------------------------------------- */

/* Four scopes with a declaration each, two of them with matchers, and rules in the bus alone. */
static const mull__plain_unrecoverable of_host[] = {{"Fatal", "policy.lua", 1, {0}}};
static const mull__plain_unrecoverable of_bus[] = {
    {"Picky", "policy.lua", 2, FUNCTION(FUNCTION_RAISES)},
    {"Picky", "policy.lua", 3, FUNCTION(FUNCTION_YES)},
};
static const mull__plain_unrecoverable of_transport[] = {{"Network", "policy.lua", 4, {0}}};
static const mull__plain_unrecoverable of_consumer[] = {
    {"Network", "policy.lua", 5, FUNCTION(FUNCTION_NO)}};
static const mull__plain_rule bus_rules[] = {DEAD_LETTER_RULE("Fatal", 20),
                                             DEAD_LETTER_RULE("Error", 21)};

static const mull__plain_scope scopes[] = {
    {.kind = MULL__HOST, .unrecoverable = of_host, .unrecoverable_count = COUNT(of_host)},
    {.kind = MULL__BUS,
     .rules = bus_rules,
     .rule_count = COUNT(bus_rules),
     .unrecoverable = of_bus,
     .unrecoverable_count = COUNT(of_bus)},
    {.kind = MULL__TRANSPORT,
     .name = "orders",
     .unrecoverable = of_transport,
     .unrecoverable_count = COUNT(of_transport)},
    {.kind = MULL__CONSUMER,
     .name = "Payments",
     .unrecoverable = of_consumer,
     .unrecoverable_count = COUNT(of_consumer)},
};

/* reason_for decides on a type for a consumer and a transport. */
static mull_reason reason_for(probe *p, const char *type, const char *consumer,
                              const char *transport)
{
    mull__table *table =
        new_table(&(mull__plain){family, COUNT(family), scopes, COUNT(scopes), FUNCTIONS});
    const mull_error error = error_of(type);
    mull_failure failure = failure_of(&error);
    failure.consumer = consumer;
    failure.transport = transport;
    mull_verdict verdict = probe_judge(p, table, &failure);
    if (verdict.reason == MULL_REASON_UNRECOVERABLE) {
        assert_int_equal(verdict.action, MULL_DEAD_LETTER);
        assert_string_equal(verdict.queue, "error");
        assert_string_equal(verdict.rule.file, "policy.lua");
        char passed[16]; /* the declaration that was looked at last */
        int length = snprintf(passed, sizeof passed, "u%d=", verdict.rule.line);
        if (p->trials)
            assert_string_equal(p->said + strlen(p->said) - (size_t)length, passed);
    }
    mull__table_free(table);
    return verdict.reason;
}

static void declarations_of_all_scopes_add_up(void **state)
{
    (void)state;
    probe p = {.trials = 1};
    /* That of the host holds, though the bus has rules for the type and the host none. */
    assert_int_equal(reason_for(&p, "Fatal", NULL, NULL), MULL_REASON_UNRECOVERABLE);
    assert_string_equal(p.said, "u1=");
    assert_int_equal(reason_for(&p, "Fatal", "Payments", "orders"), MULL_REASON_UNRECOVERABLE);
    /* By lineage, and of the scopes at hand only. */
    assert_int_equal(reason_for(&p, "Timeout", NULL, "orders"), MULL_REASON_UNRECOVERABLE);
    assert_string_equal(p.said, "u4=");
    assert_int_equal(reason_for(&p, "Timeout", NULL, "others"), MULL_REASON_RULE);
    assert_int_equal(reason_for(&p, "Network", "Payments", "others"), MULL_REASON_RULE);
    assert_string_equal(p.said, "f0:Network u5- r21=");
    assert_int_equal(reason_for(&p, "Http", "Payments", "orders"), MULL_REASON_UNRECOVERABLE);
    assert_string_equal(p.said, "f0:Http u5- u4=");
    /* One that raises doesn't hold, and the next is asked. */
    assert_int_equal(reason_for(&p, "Picky", NULL, NULL), MULL_REASON_UNRECOVERABLE);
    assert_string_equal(p.said, "f2:Picky x2 u2!boom f1:Picky u3=");
    assert_int_equal(reason_for(&p, "Unheard", NULL, NULL), MULL_REASON_RULE);
    assert_string_equal(p.said, "r21=");
}

static void error_itself_may_be_unrecoverable(void **state)
{
    (void)state;
    mull__plain_unrecoverable declared = {"Error", "policy.lua", 1, {0}};
    const mull__plain_rule rule = DEAD_LETTER_RULE("Known", 2);
    mull__plain_scope bus = {.kind = MULL__BUS,
                             .rules = &rule,
                             .rule_count = 1,
                             .unrecoverable = &declared,
                             .unrecoverable_count = 1};
    static const char *const types[] = {"Known", "Unheard", "Error"};
    for (size_t i = 0; i < COUNT(types); i++) {
        const mull_error error = error_of(types[i]);
        const mull_failure failure = failure_of(&error);
        probe p = {0};
        declared.matcher = (mull__matcher){0};
        assert_int_equal(probe_bus(&p, &bus, &failure).reason, MULL_REASON_UNRECOVERABLE);
        declared.matcher = (mull__matcher)FUNCTION(FUNCTION_NO);
        assert_int_equal(probe_bus(&p, &bus, &failure).reason,
                         i == 0 ? MULL_REASON_RULE : MULL_REASON_NO_RULE);
    }
}

static void a_cause_is_never_unrecoverable(void **state)
{
    (void)state;
    const mull__plain_unrecoverable declared[] = {{"Fatal", "policy.lua", 1, {0}}};
    const mull__plain_scope bus = {
        .kind = MULL__BUS, .unrecoverable = declared, .unrecoverable_count = 1};
    static const char *const types[] = {"Unheard", "Fatal", "MessageDeserializationError"};
    mull_error errors[3];
    const mull_failure failure = failure_of(chain_of(errors, types, 3));
    probe p = {0};
    assert_int_equal(probe_bus(&p, &bus, &failure).reason, MULL_REASON_NO_RULE);
}

/* The built-in declaration gives way to an `on` for the type itself, of the rules in force, whether
 * its matcher passes or not; to nothing else. */
static void the_built_in_declaration(void **state)
{
    (void)state;
    static const char *const unreadable = "MessageDeserializationError";
    static const mull__type_parent parents[] = {{"Mine", "MessageDeserializationError"},
                                                {"MessageDeserializationError", "Up"}};
    mull__plain_rule rule = DEAD_LETTER_RULE("Up", 1);
    mull__plain_scope bus = {.kind = MULL__BUS, .rules = &rule, .rule_count = 1};
    const struct {
        const char *type, *rule_for;
        int by_cause, no_match;
        mull_reason reason;
        const char *said;
    } cases[] = {
        {unreadable, "Up", 0, 0, MULL_REASON_UNRECOVERABLE, "u0="},
        {unreadable, "Error", 0, 0, MULL_REASON_UNRECOVERABLE, "u0="},
        {unreadable, "Mine", 0, 0, MULL_REASON_UNRECOVERABLE, "u0="},
        {"Mine", "Up", 0, 0, MULL_REASON_UNRECOVERABLE, "u0="},
        {"Up", "Up", 0, 0, MULL_REASON_RULE, "r1="},
        {unreadable, unreadable, 0, 0, MULL_REASON_RULE, "r1="},
        {unreadable, unreadable, 0, 1, MULL_REASON_NO_RULE, "f0:MessageDeserializationError r1-"},
        {"Mine", unreadable, 0, 0, MULL_REASON_RULE, "r1="},
        {unreadable, unreadable, 1, 0, MULL_REASON_UNRECOVERABLE, "u0="},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        rule.type = cases[i].rule_for;
        rule.matcher = (mull__matcher){0};
        if (cases[i].no_match)
            rule.matcher = (mull__matcher)FUNCTION(FUNCTION_NO);
        bus.rules = bus.cause_rules = &rule;
        bus.rule_count = !cases[i].by_cause;
        bus.cause_rule_count = (size_t)cases[i].by_cause;
        mull__table *table = new_table(&(mull__plain){parents, COUNT(parents), &bus, 1, FUNCTIONS});
        const mull_error error = error_of(cases[i].type);
        const mull_failure failure = failure_of(&error);
        probe p = {.trials = 1};
        assert_int_equal(probe_judge(&p, table, &failure).reason, cases[i].reason);
        assert_string_equal(p.said, cases[i].said);
        mull__table_free(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_come_after_types_and_before_the_default),
        cmocka_unit_test(a_cause_with_a_sent_lineage_has_its_own),
        cmocka_unit_test(a_matcher_of_a_cause_rule_gets_the_cause),
        cmocka_unit_test(sixteen_causes_are_looked_at),
        cmocka_unit_test(circles_are_cut),
        cmocka_unit_test(declarations_of_all_scopes_add_up),
        cmocka_unit_test(error_itself_may_be_unrecoverable),
        cmocka_unit_test(a_cause_is_never_unrecoverable),
        cmocka_unit_test(the_built_in_declaration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
