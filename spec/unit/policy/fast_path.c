/* fast_path.c: the fast path to a verdict beside the slow one, which leaves nothing out, and
 * what is in force for consumers on transports beside a naive reading of the scopes: random
 * policies, of few scopes and of many, and random failures. MULL_BRIEF says how many
 * policies; the seed is printed. */
#include "fixtures.h"
#include "sample.h"
#include "verdicts.h"

enum { SCOPES_MAX = 24, RULES_MAX = 6, POLICIES = 1000, FAILURES = 100 };

/* Types of every length that is looked up in its own way; those behind the first seven have no rule
 * of their own, and the third is Deadlock's parent. */
static const char *const types[] = {
    "T",   "Dead", "Database", "Deadlock", "ConnectReset01", "PaymentDeclined01",
    "Any", "Else", "Error",    "",         "ConnectReset02", "PaymentRejected01",
};
enum { RULED = 7, NAMED = 9 };

/* world is a random policy and what it is made of. */
typedef struct world {
    sample chance;
    mull__plain_scope scopes[2 + 2 * SCOPES_MAX];
    mull__plain_rule rules[2 + 2 * SCOPES_MAX][RULES_MAX];
    mull__plain_rule cause_rules[2 + 2 * SCOPES_MAX];
    mull__plain_unrecoverable unrecoverable[2 + 2 * SCOPES_MAX];
    char names[2 + 2 * SCOPES_MAX][24];
    size_t count, consumers, transports;
} world;

static size_t pick(world *w, size_t count)
{
    return (size_t)(sample_random(&w->chance) % count);
}

/* ---- Policies -------------------------------------------------------------------------------- */

static const mull_value literals[] = {
    {.kind = MULL_INTEGER, .as.integer = 503}, {.kind = MULL_NUMBER, .as.number = 503},
    {.kind = MULL_BOOLEAN, .as.boolean = 1},   {.kind = MULL_BOOLEAN, .as.boolean = 0},
    {.kind = MULL_STRING, .as.string = "eu"},  {.kind = MULL_STRING, .as.string = "europe"},
};
/* Errors carry a field `type` too, which no test looks at. */
static const char *const field_names[] = {"status", "state", "transient", "type"};
enum { LITERALS = COUNT(literals), FIELDS = COUNT(field_names) - 1 };

/* tests has each field with each literal, in the order of both. */
static const mull__field_test *test_of(size_t field, size_t literal)
{
    static mull__field_test tests[FIELDS][LITERALS][2];
    mull__field_test *pair = tests[field][literal];
    pair[0] = (mull__field_test)EQUALS(field_names[field], &literals[literal]);
    pair[1] = (mull__field_test)EQUALS("type", &literals[literal]);
    return pair;
}

static mull__matcher random_matcher(world *w)
{
    if (pick(w, 3))
        return (mull__matcher){.kind = MULL__MATCH_ALWAYS};
    /* No type is what the second test wants. */
    return (mull__matcher){.kind = MULL__MATCH_TESTS,
                           .tests = test_of(pick(w, FIELDS), pick(w, LITERALS)),
                           .test_count = pick(w, 8) ? 1 : 2};
}

static mull__tier_config random_tier(world *w)
{
    if (!pick(w, 3))
        return (mull__tier_config){0};
    mull__tier_config tier = RETRY((int64_t)pick(w, 12));
    tier.jitter = pick(w, 2) ? 0.25 : 0;
    tier.jitter_kind = pick(w, 6) ? MULL__JITTER_FRACTION : MULL__JITTER_DECORRELATED;
    tier.hint = pick(w, 6) ? NULL : "status";
    return tier;
}

static mull__plain_rule random_rule(world *w, int line)
{
    mull__plain_rule rule = DEAD_LETTER_RULE(types[pick(w, RULED)], line);
    if (!pick(w, 5))
        rule.type = "Error";
    rule.matcher = random_matcher(w);
    rule.retry = random_tier(w);
    rule.redeliver = random_tier(w);
    if (!pick(w, 4))
        rule.redeliver = (mull__tier_config)REDELIVER(MULL_UNLIMITED);
    rule.end = pick(w, 3) ? MULL_DEAD_LETTER : MULL_DISCARD;
    return rule;
}

static mull__plain_settings random_settings(world *w)
{
    static const char *const queues[] = {NULL, "", "dead", "parked"};
    static const int64_t bounds[] = {MULL__UNSET, MULL__OFF, 3, 9};
    return (mull__plain_settings){
        .dead_letter_queue = queues[pick(w, COUNT(queues))],
        .has_max_age = pick(w, 2) != 0,
        .max_age_ms = pick(w, 2) ? MULL__OFF : 8000,
        .has_deadline = !pick(w, 8),
        .deadline_ms = pick(w, 2) ? MULL__OFF : 8000,
        .max_attempts = bounds[pick(w, COUNT(bounds))],
        .max_deliveries = bounds[pick(w, COUNT(bounds))],
        .override = pick(w, 16)  ? MULL__UNSET
                    : pick(w, 2) ? MULL__OFF
                                 : 1,
    };
}

static void add_scope(world *w, mull__scope_kind kind, size_t number)
{
    size_t at = w->count++;
    if (kind == MULL__CONSUMER || kind == MULL__TRANSPORT)
        snprintf(w->names[at], sizeof w->names[at], "%s%zu",
                 kind == MULL__CONSUMER ? "PaymentHandler" : "warehouse-", number);
    w->scopes[at] = (mull__plain_scope){
        .kind = kind,
        .name = *w->names[at] ? w->names[at] : NULL,
        .rules = w->rules[at],
        .rule_count = pick(w, 3) ? RULES_MAX - pick(w, 3) : 0,
        .settings = random_settings(w),
        .unrecoverable = &w->unrecoverable[at],
        .unrecoverable_count = !pick(w, 16),
        .cause_rules = &w->cause_rules[at],
        .cause_rule_count = !pick(w, 4),
    };
    w->cause_rules[at] = random_rule(w, (int)(1000 + at));
    w->unrecoverable[at] = (mull__plain_unrecoverable){.type = types[pick(w, NAMED)]};
    for (size_t i = 0; i < w->scopes[at].rule_count; i++)
        w->rules[at][i] = random_rule(w, (int)(at * RULES_MAX + i + 1));
}

static mull__table *random_table(world *w)
{
    static const mull__type_parent parents[] = {{"Deadlock", "Database"}};
    memset(w->names, 0, sizeof w->names);
    w->count = 0;
    w->consumers = pick(w, SCOPES_MAX + 1);
    w->transports = pick(w, SCOPES_MAX + 1);
    for (size_t i = 0; i < w->consumers; i++)
        add_scope(w, MULL__CONSUMER, i);
    if (pick(w, 4))
        add_scope(w, MULL__BUS, 0);
    for (size_t i = 0; i < w->transports; i++)
        add_scope(w, MULL__TRANSPORT, i);
    if (pick(w, 4))
        add_scope(w, MULL__HOST, 0);
    return new_table(&(mull__plain){parents, pick(w, 2), w->scopes, w->count, 1});
}

/* ---- What holds where ------------------------------------------------------------------------ */

/* scope_of finds a scope as a reader would; NULL: the policy says nothing to it. */
static const mull__plain_scope *scope_of(const world *w, mull__scope_kind kind, const char *name)
{
    int named = kind == MULL__CONSUMER || kind == MULL__TRANSPORT;
    for (size_t i = 0; i < w->count; i++)
        if (w->scopes[i].kind == kind && (!named || (name && strcmp(w->scopes[i].name, name) == 0)))
            return &w->scopes[i];
    return NULL;
}

/* naively is what is in force by the nearest scope that sets each. */
static mull__settings naively(const world *w, const char *consumer, const char *transport,
                              size_t *rule_count)
{
    *rule_count = 0;
    mull__settings f = {.dead_letter_queue = "error",
                        .max_age_ms = MULL__OFF,
                        .deadline_ms = MULL__OFF,
                        .max_attempts = MULL__OFF,
                        .max_deliveries = 20,
                        .override = MULL__OFF};
    for (int kind = MULL__SCOPE_KINDS - 1; kind >= 0; kind--) {
        const mull__plain_scope *scope =
            scope_of(w, (mull__scope_kind)kind, kind == MULL__CONSUMER ? consumer : transport);
        if (!scope)
            continue;
        const mull__plain_settings *s = &scope->settings;
        if (s->dead_letter_queue)
            f.dead_letter_queue = *s->dead_letter_queue ? s->dead_letter_queue : "error";
        if (s->has_max_age)
            f.max_age_ms = s->max_age_ms;
        if (s->has_deadline)
            f.deadline_ms = s->deadline_ms;
        if (s->max_attempts != MULL__UNSET)
            f.max_attempts = s->max_attempts;
        if (s->max_deliveries != MULL__UNSET)
            f.max_deliveries = s->max_deliveries;
        if (s->override != MULL__UNSET)
            f.override = s->override;
        if (scope->rule_count + scope->cause_rule_count)
            *rule_count = scope->rule_count + scope->cause_rule_count;
    }
    return f;
}

static void agrees_with_a_naive_reading(const world *w, const mull__table *table,
                                        const char *consumer, const char *transport)
{
    size_t rule_count;
    const mull__settings wanted = naively(w, consumer, transport, &rule_count);
    const mull__effective_settings effective =
        mull__effective_settings_of(table, consumer, transport);
    const mull__settings given = effective.settings;
    assert_string_equal(given.dead_letter_queue, wanted.dead_letter_queue);
    assert_int_equal(given.max_age_ms, wanted.max_age_ms);
    assert_int_equal(given.deadline_ms, wanted.deadline_ms);
    assert_int_equal(given.max_attempts, wanted.max_attempts);
    assert_int_equal(given.max_deliveries, wanted.max_deliveries);
    assert_int_equal(given.override, wanted.override);
    assert_int_equal(effective.rules ? mull__scope_rules(effective.rules) : 0, rule_count);
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* name_of a consumer or a transport: mostly one that has a scope. NULL: none. */
static const char *name_of(world *w, mull__scope_kind kind)
{
    size_t at = pick(w, w->count + 2);
    if (at >= w->count)
        return at == w->count ? NULL : "Nobody";
    return w->scopes[at].kind == kind ? w->scopes[at].name : name_of(w, kind);
}

static mull_failure random_failure(world *w, const mull_error *error)
{
    static const uint32_t flags[] = {MULL_CANNOT_RETRY, MULL_CANNOT_DELAY, MULL_NO_JITTER,
                                     MULL__JITTER_LOW, MULL__JITTER_HIGH};
    mull_failure failure = failure_of(error);
    failure.consumer = name_of(w, MULL__CONSUMER);
    failure.transport = name_of(w, MULL__TRANSPORT);
    failure.attempt = 1 + (int64_t)pick(w, 12);
    failure.redeliveries = pick(w, 2) ? 0 : (int64_t)pick(w, 12);
    failure.calls = pick(w, 8) ? failure.attempt : INT64_MAX;
    failure.deliveries = pick(w, 6) ? 1 : (int64_t)pick(w, 30) + 1;
    failure.age_ms = (int64_t)pick(w, 10000);
    failure.held_ms = pick(w, 2) ? 0 : (int64_t)pick(w, 5000);
    failure.chance = sample_random(&w->chance) << 33 ^ sample_random(&w->chance);
    failure.seed = pick(w, 3);
    if (!pick(w, 4))
        failure.flags |= flags[pick(w, COUNT(flags))];
    return failure;
}

/* overrule answers what no rule here does. */
static int overrule(void *state, uint32_t function, const mull_failure *failure,
                    const mull_verdict *verdict, const mull__config *config, mull__answer *answer,
                    char *why, size_t why_size)
{
    (void)state, (void)function, (void)failure, (void)verdict, (void)config, (void)why;
    (void)why_size;
    *answer = (mull__answer){.given = 1, .action = MULL_DISCARD, .note = "overruled"};
    return 0;
}

static void tried(void *data, const mull__match_attempt *trial)
{
    (void)trial;
    ++*(size_t *)data;
}

/* decides_the_same fills what the ways leave alone, so that what neither writes would show. */
static void decides_the_same(const mull__table *table, const mull_failure *failure,
                             size_t actions[4])
{
    size_t trials = 0;
    const mull__runner briefly = {.override = overrule};
    const mull__runner at_length = {.override = overrule, .tried = tried, .data = &trials};
    uint64_t *seen = malloc(mull__table_scratch_words(table) * sizeof *seen + 1);
    mull_verdict brief, full;
    memset(&brief, 0xaa, sizeof brief);
    memset(&full, 0x55, sizeof full);
    mull__evaluate(table, failure, &briefly, seen, &brief);
    mull__evaluate(table, failure, &at_length, seen, &full);
    free(seen);
    brief.generation = full.generation = NULL; /* a decider's to write */
    assert_same(&brief, &full);
    actions[brief.action]++;
}

static void fail_at_random(world *w, const mull__table *table, size_t actions[4])
{
    for (int i = 0; i < FAILURES; i++) {
        const char *const lineage[] = {types[pick(w, NAMED)]};
        const mull_error cause = error_of(types[pick(w, NAMED)]);
        mull_field fields[FIELDS];
        for (size_t j = 0; j < FIELDS; j++)
            fields[j] = (mull_field){field_names[pick(w, FIELDS + 1)], literals[pick(w, LITERALS)]};
        mull_error error = error_of(types[pick(w, COUNT(types))]);
        error.fields = fields;
        error.field_count = pick(w, FIELDS + 1);
        error.lineage = lineage;
        error.lineage_count = !pick(w, 4);
        error.cause = pick(w, 2) ? &cause : NULL;
        const mull_failure failure = random_failure(w, &error);
        decides_the_same(table, &failure, actions);
        agrees_with_a_naive_reading(w, table, failure.consumer, failure.transport);
    }
}

static void both_ways_decide_the_same(void **state)
{
    (void)state;
    static world w;
    w.chance = sample_of(1);
    const char *given = getenv("MULL_BRIEF");
    long policies = given ? atol(given) : POLICIES;
    size_t actions[4] = {0};
    for (long i = 0; i < policies; i++) {
        mull__table *table = random_table(&w);
        fail_at_random(&w, table, actions);
        mull__table_free(table);
    }
    print_message("%zu retries, %zu redeliveries, %zu dead letters, %zu discards\n",
                  actions[MULL_RETRY], actions[MULL_REDELIVER], actions[MULL_DEAD_LETTER],
                  actions[MULL_DISCARD]);
    for (int i = 0; i < 4; i++)
        assert_true(actions[i] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_ways_decide_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
