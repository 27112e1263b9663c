/* evaluate.c: the order of a decision, and what an override may change of it: case by case,
 * and at random beside a straight reading of the language. */
#include <stdio.h>

#include "base/rand.h"
#include "fixtures.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* ---- A policy with an override --------------------------------------------------------------- */

enum { RULE_LINE = 7, OVERRIDE_LINE = 30, OVERRIDE = 4 };

/* setup is what a test says of its policy: one rule for "Known", one unrecoverable type. */
typedef struct setup {
    mull__tier_config retry, redeliver;
    mull_action end;
    const char *queue, *note, *default_queue;
    int64_t max_attempts, max_age_ms, deadline_ms, max_deliveries; /* MULL__OFF */
    int without_override;
} setup;

/* given is what the override does, and what came of it. */
typedef struct given {
    mull__answer answer;
    const char *raises; /* NULL: it doesn't */
    int asked, failed;
    mull_verdict seen;   /* by the override */
    mull__config config; /* likewise; its names are gone by the end */
    char names[128];     /* ... and are here */
    char why[512];
} given;

static int answer_it(void *state, uint32_t function, const mull_failure *failure,
                     const mull_verdict *verdict, const mull__config *config, mull__answer *answer,
                     char *why, size_t why_size)
{
    given *g = state;
    assert_int_equal(function, OVERRIDE);
    assert_non_null(failure->error);
    g->asked++;
    g->seen = *verdict;
    g->config = *config;
    g->names[0] = '\0';
    for (size_t i = 0; i < config->unrecoverable_count; i++) {
        size_t at = strlen(g->names);
        snprintf(g->names + at, sizeof g->names - at, "%s ", config->unrecoverable[i]);
    }
    *answer = g->answer;
    if (!g->raises)
        return 0;
    snprintf(why, why_size, "%s", g->raises);
    return MULL_EPOLICY;
}

static void has_failed(void *data, const mull_failure *failure, const mull_verdict *verdict,
                       const char *why)
{
    given *g = data;
    (void)failure;
    g->failed++;
    assert_int_equal(verdict->action, g->seen.action); /* the one that stands */
    assert_int_equal(verdict->reason, g->seen.reason);
    snprintf(g->why, sizeof g->why, "%s", why);
}

enum { POISON_LINE = 2 };

static mull__table *table_of(const setup *s)
{
    const mull__plain_rule rule = {.type = "Known",
                                   .file = "policy.lua",
                                   .line = RULE_LINE,
                                   .retry = s->retry,
                                   .redeliver = s->redeliver,
                                   .end = s->end,
                                   .queue = s->queue,
                                   .note = s->note};
    const mull__plain_unrecoverable poison = {
        .type = "Poison", .file = "policy.lua", .line = POISON_LINE};
    mull__plain_scope bus = {.kind = MULL__BUS,
                             .rules = &rule,
                             .rule_count = 1,
                             .unrecoverable = &poison,
                             .unrecoverable_count = 1};
    bus.settings = (mull__plain_settings){.dead_letter_queue = s->default_queue,
                                          .has_max_age = 1,
                                          .max_age_ms = s->max_age_ms,
                                          .has_deadline = 1,
                                          .deadline_ms = s->deadline_ms,
                                          .max_attempts = s->max_attempts,
                                          .max_deliveries = s->max_deliveries,
                                          .override = s->without_override ? 0 : OVERRIDE + 1};
    bus.settings.places[MULL__OVERRIDE] = (mull__source_pos){"policy.lua", OVERRIDE_LINE};
    return new_table(&(mull__plain){NULL, 0, &bus, 1, OVERRIDE + 1});
}

static mull_verdict judge_by(const mull__table *table, const mull_failure *failure, given *g)
{
    const mull__runner runner = {
        .state = g, .data = g, .override = answer_it, .override_failed = has_failed};
    return judge_with(table, failure, &runner);
}

static const setup plain = {
    .retry = RETRY(2),
    .redeliver = REDELIVER(2),
    .end = MULL_DEAD_LETTER,
    .max_attempts = MULL__OFF,
    .max_age_ms = MULL__OFF,
    .deadline_ms = MULL__OFF,
    .max_deliveries = 20,
};

/* under is the verdict on a failure of "Known" where the override answers so. */
static mull_verdict under(const setup *s, const mull_failure *failure, given *g)
{
    mull__table *table = table_of(s);
    mull_verdict verdict = judge_by(table, failure, g);
    static char queue[64], note[64]; /* for the next call to overwrite; the table's are freed */
    if (verdict.queue)
        verdict.queue = memcpy(queue, verdict.queue, strlen(verdict.queue) + 1);
    if (verdict.note)
        verdict.note = memcpy(note, verdict.note, strlen(verdict.note) + 1);
    mull__table_free(table);
    return verdict;
}

static mull_failure known(int64_t attempt, int64_t redeliveries)
{
    static const mull_error error = {.size = sizeof error, .type = "Known"};
    mull_failure failure = failure_of(&error);
    failure.attempt = attempt;
    failure.redeliveries = redeliveries;
    failure.calls = attempt + redeliveries;
    return failure;
}

#define ANSWER(...) ((given){.answer = {.given = 1, __VA_ARGS__}})

/* ---- Case by case ---------------------------------------------------------------------------- */

static void an_answer_takes_the_verdicts_place(void **state)
{
    (void)state;
    const mull_failure failure = known(2, 1);
    given g = ANSWER(.action = MULL_RETRY);
    mull_verdict v = under(&plain, &failure, &g);
    assert_int_equal(v.action, MULL_RETRY);
    assert_int_equal(v.reason, MULL_REASON_OVERRIDE);
    assert_int_equal(v.tier, MULL_TIER_RETRY);
    assert_int_equal(v.delay_ms, 0);
    assert_int_equal(v.step, 2);
    assert_int_equal(v.of, 0);
    assert_int_equal(v.rule.line, RULE_LINE);
    assert_int_equal(g.seen.action, MULL_RETRY); /* the same action all the same */
    assert_int_equal(g.seen.of, 2);

    g = ANSWER(.action = MULL_REDELIVER, .delay_ms = 400 * DAY_MS);
    v = under(&plain, &failure, &g);
    assert_int_equal(v.action, MULL_REDELIVER);
    assert_int_equal(v.tier, MULL_TIER_REDELIVER);
    assert_int_equal(v.delay_ms, 365 * DAY_MS); /* the rule's max_delay has no say */
    assert_int_equal(v.step, 2);

    g = ANSWER(.action = MULL_DEAD_LETTER, .queue = "parked");
    v = under(&plain, &failure, &g);
    assert_int_equal(v.action, MULL_DEAD_LETTER);
    assert_string_equal(v.queue, "parked");
    assert_int_equal(v.tier, MULL_TIER_NONE);
    assert_int_equal(v.step + v.of + v.delay_ms, 0);

    g = ANSWER(.action = MULL_DEAD_LETTER);
    assert_string_equal(under(&plain, &failure, &g).queue, "error");

    g = ANSWER(.action = MULL_DISCARD, .note = "late");
    v = under(&plain, &failure, &g);
    assert_int_equal(v.action, MULL_DISCARD);
    assert_string_equal(v.note, "late");
    assert_null(v.queue);
    assert_int_equal(g.failed, 0);
}

static void no_answer_keeps_the_verdict(void **state)
{
    (void)state;
    const mull_failure failure = known(1, 0);
    given g = {0};
    mull_verdict v = under(&plain, &failure, &g);
    assert_int_equal(g.asked, 1);
    assert_int_equal(v.action, MULL_RETRY);
    assert_int_equal(v.reason, MULL_REASON_NONE);
    assert_int_equal(v.of, 2);
    assert_int_equal(v.delay_ms, 200);
    g = (given){.raises = "policy.lua:31: oh", .answer = {.given = 1, .action = MULL_DISCARD}};
    v = under(&plain, &failure, &g);
    assert_int_equal(v.action, MULL_RETRY);
    assert_int_equal(v.reason, MULL_REASON_NONE);
    assert_int_equal(g.failed, 1);
    assert_string_equal(g.why, "policy.lua:31: oh");
}

static void wrong_answers_leave_the_verdict(void **state)
{
    (void)state;
    mull_failure failure = known(1, 0);
    mull_message message = MULL_INIT(mull_message);
    message.queue = "orders";
    failure.message = &message;
    const given wrong[] = {
        ANSWER(.action = MULL_RETRY, .delay_ms = -1),
        ANSWER(.action = MULL_DEAD_LETTER, .queue = ""),
        ANSWER(.action = MULL_DEAD_LETTER, .queue = "orders"), /* it would come round for ever */
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        given g = wrong[i];
        mull_verdict v = under(&plain, &failure, &g);
        assert_int_equal(g.failed, 1);
        assert_memory_equal(g.why, "policy.lua:30: a ", 17);
        assert_int_equal(v.action, MULL_RETRY);
        assert_int_equal(v.of, 2);
    }
    given g = ANSWER(.action = MULL_DEAD_LETTER, .queue = "orders-error");
    assert_int_equal(under(&plain, &failure, &g).reason, MULL_REASON_OVERRIDE);
}

static void handed_out_too_often(void **state)
{
    (void)state;
    mull_failure failure = known(1, 0);
    failure.deliveries = 21;
    given g = ANSWER(.action = MULL_RETRY);
    mull_verdict v = under(&plain, &failure, &g);
    assert_int_equal(v.reason, MULL_REASON_MAX_DELIVERIES);
    assert_int_equal(g.failed, 1);
    assert_int_equal(g.seen.reason, MULL_REASON_MAX_DELIVERIES);
    assert_null(v.rule.file);
    g = ANSWER(.action = MULL_REDELIVER, .delay_ms = 1);
    assert_int_equal(under(&plain, &failure, &g).reason, MULL_REASON_MAX_DELIVERIES);
    assert_non_null(strstr(g.why, "max_deliveries"));
    g = ANSWER(.action = MULL_DISCARD);
    assert_int_equal(under(&plain, &failure, &g).action, MULL_DISCARD);
    g = ANSWER(.action = MULL_DEAD_LETTER, .queue = "killers");
    v = under(&plain, &failure, &g);
    assert_string_equal(v.queue, "killers");
    assert_int_equal(v.reason, MULL_REASON_OVERRIDE);
    assert_int_equal(g.failed, 0);
}

/* A limit of which the message is past ends in the chain's end, or by default where no rule
 * decided; what the override answers that ends the message has no limit. */
static void no_answer_passes_a_limit(void **state)
{
    (void)state;
    setup s = plain;
    s.max_attempts = 3;
    s.max_age_ms = 1000;
    s.queue = "parked";
    mull_failure failure = known(3, 0);
    given g = ANSWER(.action = MULL_RETRY);
    mull_verdict v = under(&s, &failure, &g);
    assert_int_equal(v.reason, MULL_REASON_MAX_ATTEMPTS);
    assert_string_equal(v.queue, "parked");
    assert_int_equal(v.tier, MULL_TIER_NONE);
    assert_int_equal(g.seen.reason, MULL_REASON_MAX_ATTEMPTS); /* it sees what limits made of it */
    failure = known(1, 0);
    failure.age_ms = 1001;
    v = under(&s, &failure, &g);
    assert_int_equal(v.reason, MULL_REASON_OVERRIDE); /* max_age is for redeliveries */
    g = ANSWER(.action = MULL_REDELIVER);
    v = under(&s, &failure, &g);
    assert_int_equal(v.reason, MULL_REASON_MAX_AGE);
    assert_string_equal(v.queue, "parked");
    assert_int_equal(v.rule.line, RULE_LINE);
    failure.age_ms = 1000;
    assert_int_equal(under(&s, &failure, &g).reason, MULL_REASON_OVERRIDE);
    s.end = MULL_DISCARD;
    s.queue = NULL;
    s.note = "stale";
    failure.age_ms = 1001;
    v = under(&s, &failure, &g);
    assert_int_equal(v.action, MULL_DISCARD);
    assert_string_equal(v.note, "stale");
    const mull_error poison = error_of("Poison");
    failure.error = &poison;
    v = under(&s, &failure, &g);
    assert_int_equal(g.seen.reason, MULL_REASON_UNRECOVERABLE);
    assert_int_equal(v.action, MULL_DEAD_LETTER);
    assert_int_equal(v.reason, MULL_REASON_MAX_AGE);
    assert_string_equal(v.queue, "error");
    g = ANSWER(.action = MULL_DISCARD);
    failure.calls = 9;
    assert_int_equal(under(&s, &failure, &g).reason, MULL_REASON_OVERRIDE);
}

/* A call may begin when the deadline is, and no later; what was held counts as age does. */
static void no_call_begins_behind_the_deadline(void **state)
{
    (void)state;
    setup s = plain;
    s.deadline_ms = 1000;
    s.queue = "parked";
    given g = {0};
    mull_failure failure = known(1, 0);
    failure.age_ms = 800;
    assert_int_equal(under(&s, &failure, &g).action, MULL_RETRY); /* after 200 ms */
    failure.held_ms = 1;
    mull_verdict v = under(&s, &failure, &g);
    assert_int_equal(v.action, MULL_DEAD_LETTER);
    assert_int_equal(v.reason, MULL_REASON_DEADLINE);
    assert_string_equal(v.queue, "parked");
    assert_int_equal(v.tier, MULL_TIER_NONE);
    assert_int_equal(v.step + v.of + v.delay_ms, 0);
    assert_int_equal(v.rule.line, RULE_LINE);
    failure.held_ms = -5000; /* is none */
    assert_int_equal(under(&s, &failure, &g).action, MULL_RETRY);
    failure.age_ms = 801;
    assert_int_equal(under(&s, &failure, &g).reason, MULL_REASON_DEADLINE);
    failure.age_ms = failure.held_ms = INT64_MAX;
    assert_int_equal(under(&s, &failure, &g).reason, MULL_REASON_DEADLINE);
    s.deadline_ms = MULL__OFF;
    assert_int_equal(under(&s, &failure, &g).action, MULL_RETRY);
    failure = known(3, 0);
    s.deadline_ms = 299999;
    assert_int_equal(under(&s, &failure, &g).reason, MULL_REASON_DEADLINE); /* redelivered in 5m */
    s.max_age_ms = 0;
    failure.age_ms = 1;
    assert_int_equal(under(&s, &failure, &g).reason, MULL_REASON_MAX_AGE);
    failure = known(1, 0);
    g = ANSWER(.action = MULL_RETRY, .delay_ms = 300000);
    assert_int_equal(under(&s, &failure, &g).reason, MULL_REASON_DEADLINE);
    g.answer.delay_ms = 299999;
    assert_int_equal(under(&s, &failure, &g).reason, MULL_REASON_OVERRIDE);
}

static void the_fallback_comes_last(void **state)
{
    (void)state;
    setup s = plain;
    s.end = MULL_DISCARD;
    mull_failure failure = known(1, 0);
    failure.flags |= MULL_CANNOT_RETRY;
    given g = {0};
    mull_verdict v = under(&s, &failure, &g);
    assert_int_equal(g.seen.action, MULL_RETRY); /* the override hears what the policy says */
    assert_int_equal(v.action, MULL_DEAD_LETTER);
    assert_int_equal(v.reason, MULL_REASON_FALLBACK);
    assert_int_equal(v.fallback, MULL_NO_RETRY);
    assert_int_equal(v.tier, MULL_TIER_NONE);
    assert_int_equal(v.step + v.of + v.delay_ms, 0);
    g = ANSWER(.action = MULL_REDELIVER);
    assert_int_equal(under(&s, &failure, &g).action, MULL_REDELIVER);
    failure.flags |= MULL_CANNOT_DELAY;
    v = under(&s, &failure, &g);
    assert_int_equal(v.reason, MULL_REASON_FALLBACK); /* a delay of 0 is a redelivery, too */
    assert_int_equal(v.fallback, MULL_NO_DELAY);
    assert_string_equal(v.queue, "error");
    assert_int_equal(v.rule.line, RULE_LINE);
    s.max_attempts = 1;
    v = under(&s, &failure, &g);
    assert_int_equal(v.reason, MULL_REASON_MAX_ATTEMPTS);
    assert_int_equal(v.fallback, MULL_FALLBACK_NONE);
}

static void what_an_override_may_look_at(void **state)
{
    (void)state;
    static const int64_t list[] = {5000, 60000};
    setup s = plain;
    s.default_queue = "failed";
    s.max_attempts = 50;
    s.redeliver = (mull__tier_config){
        .on = 1, .attempts = 2, .delays = list, .delay_count = 2, .max_delay_ms = MULL__NO_CAP};
    mull_failure failure = known(1, 0);
    given g = {0};
    under(&s, &failure, &g);
    assert_int_equal(g.config.max_attempts, 50);
    assert_int_equal(g.config.max_age_ms, MULL__OFF);
    assert_string_equal(g.names, "Poison MessageDeserializationError ");
    assert_true(g.config.has_rule);
    assert_int_equal(g.config.rule_retry.attempts, 2);
    assert_int_equal(g.config.rule_retry.delay_ms, 200);
    assert_int_equal(g.config.rule_retry.max_delay_ms, 30000);
    assert_int_equal(g.config.rule_retry.backoff, MULL__EXPONENTIAL);
    assert_false(g.config.rule_retry.has_list);
    assert_int_equal(g.config.rule_redeliver.attempts, 2);
    assert_int_equal(g.config.rule_redeliver.delay_ms, 5000);
    assert_int_equal(g.config.rule_redeliver.max_delay_ms, MULL__NO_CAP);
    assert_true(g.config.rule_redeliver.has_list);
    assert_int_equal(g.config.retry.attempts, 0); /* there is no default() */
    assert_int_equal(g.config.redeliver.attempts, 0);
    failure.flags |= MULL_CANNOT_DELAY;
    under(&s, &failure, &g);
    assert_int_equal(g.config.rule_retry.attempts, 2);
    assert_int_equal(g.config.rule_redeliver.attempts, 0);
    failure.flags |= MULL_CANNOT_RETRY;
    under(&s, &failure, &g);
    assert_int_equal(g.config.rule_retry.attempts, 0);
    const mull_error unheard = error_of("Unheard");
    failure = failure_of(&unheard);
    under(&s, &failure, &g);
    assert_int_equal(g.seen.reason, MULL_REASON_NO_RULE);
    assert_false(g.config.has_rule);
}

/* The tiers of the rule for Error without a matcher are shown, whatever decided. */
static void the_default_is_shown_for_every_failure(void **state)
{
    (void)state;
    const mull__field_test never = {
        .subject = MULL__OF_ERROR, .name = "x", .value = {.kind = MULL__PRESENT}};
    const mull__plain_rule rules[] = {
        {.type = "Error",
         .matcher = {MULL__MATCH_TESTS, .tests = &never, .test_count = 1},
         .retry = RETRY(9)},
        {.type = "Error", .retry = RETRY(4), .redeliver = REDELIVER(5)},
        {.type = "Known", .retry = RETRY(2)},
    };
    const mull__plain_unrecoverable poison = {.type = "Poison"};
    mull__plain_scope bus = {.kind = MULL__BUS,
                             .rules = rules,
                             .rule_count = COUNT(rules),
                             .unrecoverable = &poison,
                             .unrecoverable_count = 1};
    bus.settings.override = OVERRIDE + 1;
    mull__table *table = new_table(&(mull__plain){NULL, 0, &bus, 1, OVERRIDE + 1});
    static const char *const types[] = {"Known", "Unheard", "Poison"};
    static const int64_t of_rule[] = {2, 4, 0};
    for (size_t i = 0; i < COUNT(types); i++) {
        const mull_error error = error_of(types[i]);
        mull_failure failure = failure_of(&error);
        given g = {0};
        judge_by(table, &failure, &g);
        assert_int_equal(g.config.retry.attempts, 4);
        assert_int_equal(g.config.redeliver.attempts, 5);
        assert_int_equal(g.config.has_rule, of_rule[i] != 0);
        if (g.config.has_rule)
            assert_int_equal(g.config.rule_retry.attempts, of_rule[i]);
        failure.flags |= MULL_CANNOT_RETRY;
        judge_by(table, &failure, &g);
        assert_int_equal(g.config.retry.attempts, 0);
    }
    mull__table_free(table);
}

static void where_none_is_asked(void **state)
{
    (void)state;
    const mull_failure failure = known(1, 0);
    mull__table *table = table_of(&plain);
    given g = {.seen = {.action = MULL_RETRY}};
    const mull__runner runner = {.data = &g, .override_failed = has_failed};
    assert_int_equal(judge_with(table, &failure, &runner).action, MULL_RETRY);
    assert_int_equal(g.failed, 0);
    mull__table_free(table);
}

/* ---- At random ------------------------------------------------------------------------------- */

/* expected is the order of the language, read aloud; delays are constant and without jitter. */
typedef struct expected {
    mull_verdict verdict;
    int ruled, line;
} expected;

static void ends(expected *e, mull_action action, mull_reason reason, const char *queue,
                 const char *note)
{
    e->verdict = (mull_verdict){.action = action,
                                .reason = reason,
                                .queue = action == MULL_DEAD_LETTER ? queue : NULL,
                                .note = action == MULL_DISCARD ? note : NULL};
}

static void chain_ends(expected *e, const setup *s, mull_reason reason)
{
    if (!e->ruled)
        ends(e, MULL_DEAD_LETTER, reason, s->default_queue, NULL);
    else
        ends(e, s->end, reason, s->queue ? s->queue : s->default_queue, s->note);
}

static int goes_on(const expected *e)
{
    return e->verdict.action == MULL_RETRY || e->verdict.action == MULL_REDELIVER;
}

static void naive_limits(expected *e, const setup *s, const mull_failure *f)
{
    if (goes_on(e) && s->max_attempts != MULL__OFF && f->calls >= s->max_attempts)
        chain_ends(e, s, MULL_REASON_MAX_ATTEMPTS);
    else if (e->verdict.action == MULL_REDELIVER && s->max_age_ms != MULL__OFF &&
             f->age_ms > s->max_age_ms)
        chain_ends(e, s, MULL_REASON_MAX_AGE);
    else if (goes_on(e) && s->deadline_ms != MULL__OFF &&
             f->age_ms + f->held_ms + e->verdict.delay_ms > s->deadline_ms)
        chain_ends(e, s, MULL_REASON_DEADLINE);
}

static void naive_rules(expected *e, const setup *s, const mull_failure *f)
{
    e->ruled = e->line = 0;
    if (f->deliveries > s->max_deliveries) {
        chain_ends(e, s, MULL_REASON_MAX_DELIVERIES);
    } else if (strcmp(f->error->type, "Poison") == 0) {
        e->line = POISON_LINE;
        chain_ends(e, s, MULL_REASON_UNRECOVERABLE);
    } else if (strcmp(f->error->type, "Known") != 0) {
        chain_ends(e, s, MULL_REASON_NO_RULE);
    } else {
        e->ruled = 1;
        e->line = RULE_LINE;
        if (f->attempt <= s->retry.attempts)
            e->verdict = (mull_verdict){.action = MULL_RETRY,
                                        .delay_ms = 200,
                                        .tier = MULL_TIER_RETRY,
                                        .step = f->attempt,
                                        .of = s->retry.attempts};
        else if (f->redeliveries < s->redeliver.attempts)
            e->verdict = (mull_verdict){.action = MULL_REDELIVER,
                                        .delay_ms = 300000,
                                        .tier = MULL_TIER_REDELIVER,
                                        .step = f->redeliveries + 1,
                                        .of = s->redeliver.attempts};
        else
            chain_ends(e, s,
                       s->retry.on || s->redeliver.on ? MULL_REASON_EXHAUSTED : MULL_REASON_RULE);
        naive_limits(e, s, f);
    }
}

/* naive_override gives 1 where its failure is told. */
static int naive_override(expected *e, const setup *s, const mull_failure *f, const given *g)
{
    int again = g->answer.action == MULL_RETRY || g->answer.action == MULL_REDELIVER;
    if (s->without_override)
        return 0;
    if (g->raises)
        return 1;
    if (!g->answer.given)
        return 0;
    if (e->verdict.reason == MULL_REASON_MAX_DELIVERIES && again)
        return 1;
    ends(e, g->answer.action, MULL_REASON_OVERRIDE,
         g->answer.queue ? g->answer.queue : s->default_queue, g->answer.note);
    if (again) {
        int retry = g->answer.action == MULL_RETRY;
        e->verdict.delay_ms = g->answer.delay_ms;
        e->verdict.tier = retry ? MULL_TIER_RETRY : MULL_TIER_REDELIVER;
        e->verdict.step = retry ? f->attempt : f->redeliveries + 1;
    }
    naive_limits(e, s, f);
    return 0;
}

static void naive_fallback(expected *e, const setup *s, const mull_failure *f)
{
    mull_fallback fallback = MULL_FALLBACK_NONE;
    if (e->verdict.action == MULL_RETRY && (f->flags & MULL_CANNOT_RETRY))
        fallback = MULL_NO_RETRY;
    if (e->verdict.action == MULL_REDELIVER && (f->flags & MULL_CANNOT_DELAY))
        fallback = MULL_NO_DELAY;
    if (fallback == MULL_FALLBACK_NONE)
        return;
    ends(e, MULL_DEAD_LETTER, MULL_REASON_FALLBACK, s->default_queue, NULL);
    e->verdict.fallback = fallback;
}

static void same_text(const char *a, const char *b)
{
    assert_int_equal(a != NULL, b != NULL);
    if (a)
        assert_string_equal(a, b);
}

static uint64_t below(mull__rand *rand, uint64_t n)
{
    return mull__rand_next(rand) % n;
}

static int64_t or_off(mull__rand *rand, int64_t value)
{
    return below(rand, 2) ? MULL__OFF : value;
}

static setup random_setup(mull__rand *rand)
{
    setup s = {.end = below(rand, 2) ? MULL_DISCARD : MULL_DEAD_LETTER,
               .default_queue = below(rand, 2) ? "error" : "failed",
               .max_attempts = or_off(rand, 1 + (int64_t)below(rand, 5)),
               .max_age_ms = or_off(rand, (int64_t)below(rand, 3)),
               .deadline_ms = or_off(rand, (int64_t)below(rand, 3) * 1000 + 2),
               .max_deliveries = 1 + (int64_t)below(rand, 3),
               .without_override = below(rand, 4) == 0};
    if (below(rand, 2))
        s.retry = (mull__tier_config){
            .on = 1, .attempts = (int64_t)below(rand, 3), .base_ms = 200, .max_delay_ms = 30000};
    if (below(rand, 2))
        s.redeliver = (mull__tier_config){.on = 1,
                                          .attempts = (int64_t)below(rand, 3),
                                          .base_ms = 300000,
                                          .max_delay_ms = 3600000};
    if (s.end == MULL_DEAD_LETTER && below(rand, 2))
        s.queue = "parked";
    if (s.end == MULL_DISCARD && below(rand, 2))
        s.note = "stale";
    return s;
}

static given random_given(mull__rand *rand)
{
    given g = {.answer = {.given = below(rand, 4) > 0, .action = (mull_action)below(rand, 4)}};
    if (g.answer.action == MULL_RETRY || g.answer.action == MULL_REDELIVER)
        g.answer.delay_ms = (int64_t)below(rand, 3) * 1000;
    else if (g.answer.action == MULL_DEAD_LETTER && below(rand, 2))
        g.answer.queue = "elsewhere";
    else if (g.answer.action == MULL_DISCARD && below(rand, 2))
        g.answer.note = "not worth it";
    if (below(rand, 6) == 0)
        g.raises = "oh";
    return g;
}

static mull_failure random_failure(mull__rand *rand, mull_error *error)
{
    static const char *const types[] = {"Known", "Known", "Known", "Poison", "Unheard"};
    *error = error_of(types[below(rand, COUNT(types))]);
    mull_failure f = failure_of(error);
    f.attempt = 1 + (int64_t)below(rand, 3);
    f.redeliveries = (int64_t)below(rand, 3);
    f.calls = f.attempt + f.redeliveries;
    f.deliveries = 1 + (int64_t)below(rand, 3);
    f.age_ms = (int64_t)below(rand, 4);
    f.held_ms = (int64_t)below(rand, 3);
    if (below(rand, 3) == 0)
        f.flags |= MULL_CANNOT_RETRY;
    if (below(rand, 3) == 0)
        f.flags |= MULL_CANNOT_DELAY;
    return f;
}

static void compare(const mull_verdict *v, const expected *e)
{
    assert_int_equal(v->action, e->verdict.action);
    assert_int_equal(v->reason, e->verdict.reason);
    assert_int_equal(v->fallback, e->verdict.fallback);
    assert_int_equal(v->tier, e->verdict.tier);
    assert_int_equal(v->step, e->verdict.step);
    assert_int_equal(v->of, e->verdict.of);
    assert_int_equal(v->delay_ms, e->verdict.delay_ms);
    same_text(v->queue, e->verdict.queue);
    same_text(v->note, e->verdict.note);
    assert_int_equal(v->rule.line, e->line);
}

/* Every reason comes up, with and without an answer; the seeds are always the same. */
static void as_a_straight_reading(void **state)
{
    (void)state;
    int reasons[MULL_REASON_LAST] = {0}, failed = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        mull__rand rand;
        mull__rand_init(&rand, seed);
        setup s = random_setup(&rand);
        mull__table *table = table_of(&s);
        for (int i = 0; i < 10; i++) {
            mull_error error;
            const mull_failure f = random_failure(&rand, &error);
            given g = random_given(&rand);
            expected e;
            naive_rules(&e, &s, &f);
            int told = naive_override(&e, &s, &f, &g);
            naive_fallback(&e, &s, &f);
            mull_verdict v = judge_by(table, &f, &g);
            compare(&v, &e);
            assert_int_equal(g.failed, told);
            assert_int_equal(g.asked, !s.without_override);
            reasons[v.reason]++;
            failed += told;
        }
        mull__table_free(table);
    }
    for (int reason = 0; reason < MULL_REASON_LAST; reason++)
        assert_true(reasons[reason] > 100);
    assert_true(failed > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_takes_the_verdicts_place),
        cmocka_unit_test(no_answer_keeps_the_verdict),
        cmocka_unit_test(wrong_answers_leave_the_verdict),
        cmocka_unit_test(handed_out_too_often),
        cmocka_unit_test(no_answer_passes_a_limit),
        cmocka_unit_test(no_call_begins_behind_the_deadline),
        cmocka_unit_test(the_fallback_comes_last),
        cmocka_unit_test(what_an_override_may_look_at),
        cmocka_unit_test(the_default_is_shown_for_every_failure),
        cmocka_unit_test(where_none_is_asked),
        cmocka_unit_test(as_a_straight_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
