/* explain.c: why a verdict is what it is, and the timeline: what Lua can't show: an
 * override's words, what is left out of a long walk, and what happens where memory ends. */
#include "analysis/explain.h"

#include <stdio.h>

#include "fixtures.h"

enum { ASKED = 1, RAISES = 2 };

/* ---- Policies -------------------------------------------------------------------------------- */

static mull__tier_config tier_of(int64_t attempts, int64_t delay_ms, double jitter)
{
    return (mull__tier_config){.on = 1,
                               .attempts = attempts,
                               .base_ms = delay_ms,
                               .backoff = MULL__CONSTANT,
                               .factor = 1,
                               .max_delay_ms = MULL__NO_CAP,
                               .jitter = jitter};
}

/* table_of has a rule whose function raises, and one that decides; an override where asked for. */
static mull__table *table_of(mull__tier_config retry, mull__tier_config redeliver, int has_override)
{
    const mull__plain_rule rules[] = {
        {.type = "Known",
         .file = "policy.lua",
         .line = 3,
         .matcher = {.kind = MULL__MATCH_FUNCTION, .function = RAISES},
         .end = MULL_DEAD_LETTER},
        {.type = "Known",
         .file = "policy.lua",
         .line = 4,
         .retry = retry,
         .redeliver = redeliver,
         .end = MULL_DEAD_LETTER},
    };
    mull__plain_scope bus = {.kind = MULL__BUS, .rules = rules, .rule_count = 2};
    if (has_override) {
        bus.settings.override = ASKED + 1;
        bus.settings.places[MULL__OVERRIDE] = (mull__source_pos){"policy.lua", 9};
    }
    return new_table(&(mull__plain){.scopes = &bus, .scope_count = 1, .function_count = 3});
}

static int match(void *state, uint32_t function, const mull_failure *failure, int64_t *steps,
                 char *why, size_t why_size)
{
    (void)state;
    (void)failure;
    (void)steps;
    assert_int_equal(function, RAISES);
    snprintf(why, why_size, "boom");
    return MULL_EPOLICY;
}

/* scrap is a state whose words live until its next call. */
typedef struct scrap {
    char queue[24];
    int calls;
} scrap;

/* discard_late answers a dead letter from the third call on: to a queue that is named anew. */
static int discard_late(void *state, uint32_t function, const mull_failure *failure,
                        const mull_verdict *verdict, const mull__config *config,
                        mull__answer *answer, char *why, size_t why_size)
{
    scrap *s = state;
    (void)verdict;
    (void)config;
    (void)why;
    (void)why_size;
    assert_int_equal(function, ASKED);
    snprintf(s->queue, sizeof s->queue, "late-%d", ++s->calls);
    answer->given = failure->calls >= 3;
    answer->action = MULL_DEAD_LETTER;
    answer->queue = s->queue;
    return 0;
}

static int explain(mull__explanation *out, counting_allocator *p, const mull__table *table,
                   scrap *s)
{
    const mull_error error = {.size = sizeof error, .type = "Known"};
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    failure.attempt = failure.calls = failure.deliveries = 1;
    failure.flags = MULL_HAS_CHANCE;
    const mull__runner runner = {.match = match, .override = discard_late, .state = s};
    const mull_allocator allocator = counting_allocator_ops(p);
    uint64_t *seen = malloc(mull__table_scratch_words(table) * sizeof *seen + 1);
    int status = mull__explain(out, &allocator, table, &failure, &runner, seen);
    free(seen);
    return status;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void an_overrides_words_are_kept(void **state)
{
    (void)state;
    mull__table *table = table_of(tier_of(5, 100, 0.5), (mull__tier_config){0}, 1);
    counting_allocator p = {0};
    scrap s = {0};
    mull__explanation found;
    assert_int_equal(explain(&found, &p, table, &s), MULL_OK);
    memset(s.queue, 'x', sizeof s.queue - 1);
    assert_int_equal(found.verdict.action, MULL_RETRY);
    assert_int_equal(found.candidate_count, 2);
    assert_string_equal(found.candidates[0].trial.why, "boom");
    assert_int_equal(found.candidates[1].trial.end, MULL__ATTEMPT_PASSED);
    /* Two ways, each with a name of its own: they part at the end. */
    assert_int_equal(found.both.count, 2);
    for (int end = 0; end < MULL__ENDS; end++) {
        const mull__timeline_part *strip = &found.alone[end];
        assert_int_equal(strip->count, 1);
        assert_int_equal(strip->first[0].verdict.reason, MULL_REASON_OVERRIDE);
        assert_int_equal(strip->first[0].at_ms[0], end == MULL__LOW ? 100 : 300);
        assert_memory_equal(strip->first[0].verdict.queue, "late-", 5);
    }
    assert_string_not_equal(found.alone[0].first[0].verdict.queue,
                            found.alone[1].first[0].verdict.queue);
    mull__explanation_drop(&found);
    assert_int_equal(p.out, 0);
    mull__table_free(table);
}

/* check_strip: the steps that it keeps are the first and the last ones, in order. */
static void check_strip(const mull__timeline_part *strip, int64_t first, int64_t count)
{
    assert_int_equal(strip->count, count);
    for (size_t i = 0; i < strip->first_count; i++)
        assert_int_equal(strip->first[i].calls, first + (int64_t)i);
    for (size_t i = 0; i < strip->last_count; i++)
        assert_int_equal(strip->last[i].calls,
                         first + count - (int64_t)strip->last_count + (int64_t)i);
    int64_t behind = count - MULL__TIMELINE_FIRST;
    int64_t last = behind < 0 ? 0 : behind < MULL__TIMELINE_LAST ? behind : MULL__TIMELINE_LAST;
    assert_int_equal(strip->last_count, last);
    assert_int_equal(strip->first_count, behind < 0 ? count : MULL__TIMELINE_FIRST);
}

/* walk_of explains a rule with so many redeliveries, and gives whether the walk is cut. */
static int walk_of(int64_t redeliveries, int64_t calls)
{
    mull__table *table = table_of((mull__tier_config){0}, tier_of(redeliveries, 10, 0), 0);
    counting_allocator p = {0};
    mull__explanation found;
    assert_int_equal(explain(&found, &p, table, NULL), MULL_OK);
    check_strip(&found.both, 1, calls);
    assert_int_equal(found.alone[0].count + found.alone[1].count, 0);
    int is_cut = found.is_cut;
    mull__explanation_drop(&found);
    assert_int_equal(p.out, 0);
    mull__table_free(table);
    return is_cut;
}

static void the_middle_is_left_out(void **state)
{
    (void)state;
    static const int64_t calls[] = {1,    2,    999,  1000, 1001, 1099,
                                    1100, 1101, 1199, 1200, 1201, 2345};
    for (size_t i = 0; i < COUNT(calls); i++)
        assert_false(walk_of(calls[i] - 1, calls[i]));
}

/* Each call asks the function on both walks. */
static void a_walk_without_an_end_is_cut(void **state)
{
    (void)state;
    assert_true(walk_of(MULL_UNLIMITED, MULL__FUNCTION_CALLS_MAX / 2));
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    mull__table *table = table_of(tier_of(5, 100, 0.5), (mull__tier_config){0}, 1);
    long failed = 0;
    for (long nth = 1;; nth++) {
        counting_allocator p = {.fail_at = nth};
        scrap s = {0};
        mull__explanation found;
        int status = explain(&found, &p, table, &s);
        mull__explanation_drop(&found);
        assert_int_equal(p.out, 0);
        if (p.asked < nth)
            break;
        assert_int_equal(status, MULL_ENOMEM);
        failed++;
    }
    assert_true(failed >= 4);
    mull__table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overrides_words_are_kept),
        cmocka_unit_test(the_middle_is_left_out),
        cmocka_unit_test(a_walk_without_an_end_is_cut),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
