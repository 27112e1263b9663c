/* functions.c: what a call of a policy's function asks of memory, and what becomes of it
 * where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "counting_allocator.h"
#include "decide/decide.h"
#include "policy/resolve.h"

/* ---- A policy -------------------------------------------------------------------------------- */

static const char text[] =
    "local policy = require 'mulligan.policy'\n"
    "local bus = policy.bus()\n"
    "bus:on('Known', function(err) return err.status == 429 and err.region == 'north' "
    "end):retry()\n"
    "bus:on('Counted', function(err, ctx) return err.status == 429 and ctx.attempt == 1 "
    "end):retry()\n"
    "bus:on('Told', function(err) return err.type == 'Told' and err:is 'Error' and err.region "
    "end)\n"
    "    :retry()\n"
    "bus:on('Deep', function(err, ctx)\n"
    "    return err.cause.type == 'Cause' and ctx.message.headers.tenant == 'acme'\n"
    "        and err.cause == err.cause and #ctx.message.headers == 0\n"
    "end):retry()\n"
    "bus:on('Strange', function(err)\n"
    "    local level, list = 0, err.circle\n"
    "    while list do\n"
    "        assert(#list == (level < 15 and 1 or 0) and list[2] == nil and list.x == nil and list "
    "== list)\n"
    "        level, list = level + 1, list[1]\n"
    "    end\n"
    "    local map, deep = err.map, 0\n"
    "    while map do map, deep = map.map, deep + 1 end\n"
    "    local keys = 0\n"
    "    for key, value in pairs(err) do keys = keys + 1 assert(value == err[key], key) end\n"
    "    assert(keys == 8 and next(err.circle) == 1 and next(err.circle, 1) == nil)\n"
    "    assert(level == 16 and deep == 16 and err.twice == 'first' and err['twice\\0'] == nil)\n"
    "    assert(err[1] == nil and err['1'] == 'one' and err[true] == nil and #err == 0)\n"
    "    assert(err.nothing == nil and err.is ~= 'field' and err.type == 'Strange' and err.cause "
    "== nil)\n"
    "    return true\n"
    "end):retry()\n"
    "bus:on('Long', function(err)\n"
    "    local depth = 0\n"
    "    while err.cause do depth, err = depth + 1, err.cause end\n"
    "    return depth == 16 and err.type == 'C16' and err:is 'C16' and not err:is 'Long'\n"
    "end):retry()\n"
    "local answering = policy.consumer('Answering')\n"
    "answering:default():discard('by the rule')\n"
    "answering:override(function(failure, verdict, config)\n"
    "    local note = ''\n"
    "    for key, value in pairs(config.retry) do note = note .. key .. value end\n"
    "    note = note .. failure.error.cause.type .. failure.message.headers.tenant\n"
    "    return policy.discard(note .. verdict.rule.type .. #config.unrecoverable .. "
    "verdict.note)\n"
    "end)\n"
    "local heard = policy.consumer('Heard')\n"
    "heard:notify(function(event)\n"
    "    local found = {}\n"
    "    for key in pairs(event.failure.message.headers) do found[#found + 1] = key end\n"
    "    for key in pairs(event.verdict) do found[#found + 1] = key end\n"
    "    assert(#found > 5 and event.failure.error.cause.type == 'Cause')\n"
    "end)\n";

typedef struct scene {
    counting_allocator counting_allocator;
    mull_policy *policy;
    mull_decider *decider;
    int failed; /* events that say so */
} scene;

static void on_event(const mull_event *event, void *data)
{
    scene *s = data;
    s->failed++;
    assert_string_equal(event->text, mull_strerror(MULL_ENOMEM));
}

static void on_problem(const char *file, int line, const char *why, void *data)
{
    (void)data;
    fail_msg("%s:%d: %s", file, line, why);
}

static void open_scene(scene *s)
{
    memset(s, 0, sizeof *s);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.problem = on_problem;
    options.event = on_event;
    options.data = s;
    options.allocator = counting_allocator_ops(&s->counting_allocator);
    assert_int_equal(mull_policy_load(&s->policy, &options), 0);
    assert_int_equal(mull_decider_new(&s->decider, s->policy), 0);
}

static void close_scene(scene *s)
{
    mull_decider_free(s->decider);
    mull_policy_free(s->policy);
    assert_int_equal(s->counting_allocator.out, 0);
}

/* ---- A failure ------------------------------------------------------------------------------- */

typedef struct facts {
    mull_error cause, error;
    mull_field fields[2];
    mull_header header;
    mull_message message;
    mull_failure failure;
} facts;

static void facts_init(facts *f, const char *type, const char *region)
{
    *f = (facts){.cause = MULL_INIT(mull_error),
                 .error = MULL_INIT(mull_error),
                 .header = {"tenant", "acme"},
                 .message = MULL_INIT(mull_message),
                 .failure = MULL_INIT(mull_failure)};
    f->fields[0] = (mull_field){"status", {.kind = MULL_INTEGER, .as.integer = 429}};
    f->fields[1] = (mull_field){"region", {.kind = MULL_STRING, .as.string = region}};
    f->cause.type = "Cause";
    f->error.type = type;
    f->error.cause = &f->cause;
    f->error.fields = f->fields;
    f->error.field_count = 2;
    f->message.id = "m-1";
    f->message.headers = &f->header;
    f->message.header_count = 1;
    f->failure.error = &f->error;
    f->failure.message = &f->message;
}

static mull_verdict decide(scene *s, const facts *f)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(s->decider, &f->failure, &verdict), 0);
    return verdict;
}

/* ---- What a decision asks for ---------------------------------------------------------------- */

enum { ROUNDS = 10000, LONG = 600 };

/* asked_by gives how often decisions asked for memory; each has a long region of its own where that
 * is said. */
static long asked_by(scene *s, const char *type, int own_region)
{
    facts f;
    char region[LONG + 1] = "north";
    facts_init(&f, type, region);
    assert_int_equal(decide(s, &f).action, MULL_RETRY); /* what is made once is there */
    long before = s->counting_allocator.asked;
    for (int i = 0; i < ROUNDS; i++) {
        if (own_region)
            snprintf(region, sizeof region, "%0*d", LONG, i);
        assert_int_equal(decide(s, &f).action, MULL_RETRY);
    }
    return s->counting_allocator.asked - before;
}

static void known_fields_cost_no_memory(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    assert_int_equal(asked_by(&s, "Known", 0), 0);
    assert_int_equal(asked_by(&s, "Counted", 0), 0);
    assert_int_equal(asked_by(&s, "Told", 0), 0);
    close_scene(&s);
}

static void a_new_text_costs_one_string(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    long asked = asked_by(&s, "Told", 1);
    assert_in_range(asked, ROUNDS, ROUNDS + 3); /* the state may grow a little besides */
    close_scene(&s);
}

/* What is made for a call is garbage after it, and collected: it doesn't grow. */
static void what_is_made_for_a_call_is_collected(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    assert_true(asked_by(&s, "Deep", 0) > 0); /* a cause, a message, its headers */
    long before = s.counting_allocator.bytes;
    asked_by(&s, "Deep", 0);
    print_message("%ld bytes, later %ld\n", before, (long)s.counting_allocator.bytes);
    assert_true(s.counting_allocator.bytes < 2 * before + 100000);
    close_scene(&s);
}

/* ---- What an embedder alone can say ---------------------------------------------------------- */

/* A list and a map that are in themselves, fields of one name, names that are an error's own, a
 * cause that is the error itself. */
static void strange_failures_are_read(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    facts f;
    facts_init(&f, "Strange", "north");
    mull_value circle[] = {{.kind = MULL_LIST, .count = 3}, {0}, {0}};
    circle[0].as.items = circle;
    mull_field around[] = {{"map", {.kind = MULL_MAP, .count = 1}}};
    around[0].value.as.fields = around;
    const mull_field fields[] = {
        {"circle", circle[0]},
        {"map", around[0].value},
        {"twice", {.kind = MULL_STRING, .as.string = "first"}},
        {"twice", {.kind = MULL_STRING, .as.string = "second"}},
        {"1", {.kind = MULL_STRING, .as.string = "one"}},
        {"nothing", {.kind = MULL_NIL}},
        {"is", {.kind = MULL_STRING, .as.string = "field"}},
        {"type", {.kind = MULL_STRING, .as.string = "field"}},
        {"cause", {.kind = MULL_STRING, .as.string = "field"}},
    };
    f.error.fields = fields;
    f.error.field_count = sizeof fields / sizeof *fields;
    f.error.cause = &f.error;
    assert_int_equal(decide(&s, &f).action, MULL_RETRY);
    close_scene(&s);
}

/* Causes end at the sixteenth. */
static void long_chains_are_cut(void **state)
{
    (void)state;
    enum { CHAIN = 40 };
    scene s;
    open_scene(&s);
    facts f;
    facts_init(&f, "Long", "north");
    mull_error chain[CHAIN];
    char types[CHAIN][16];
    for (int i = 0; i < CHAIN; i++) {
        snprintf(types[i], sizeof types[i], "C%d", i + 1);
        chain[i] = MULL_INIT(mull_error);
        chain[i].type = types[i];
        chain[i].cause = i + 1 < CHAIN ? &chain[i + 1] : NULL;
    }
    f.error.cause = chain;
    assert_int_equal(decide(&s, &f).action, MULL_RETRY);
    close_scene(&s);
}

/* ---- Where there is none --------------------------------------------------------------------- */

static const long lengths[] = {1, 2, FOR_GOOD};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static const char answer[] = "attempts0CauseacmeError1by the rule";

/* decide_with_override: the override's answer, or the rule's where there is no memory. */
static int decide_with_override(scene *s, const facts *f)
{
    s->failed = 0;
    mull_verdict verdict = decide(s, f);
    assert_int_equal(verdict.action, MULL_DISCARD);
    assert_string_equal(verdict.note, s->failed ? "by the rule" : answer);
    return s->failed;
}

static void an_override_without_memory_changes_nothing(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    facts f;
    facts_init(&f, "Any", "north");
    f.failure.consumer = "Answering";
    assert_int_equal(decide_with_override(&s, &f), 0);
    long before = s.counting_allocator.asked, failed = 0;
    assert_int_equal(decide_with_override(&s, &f), 0);
    long all = s.counting_allocator.asked - before;
    for (size_t i = 0; i < LENGTHS; i++)
        for (long at = 1; at <= all; at++) {
            s.counting_allocator.fail_for = lengths[i];
            s.counting_allocator.fail_at = s.counting_allocator.asked + at;
            failed += decide_with_override(&s, &f);
            s.counting_allocator.fail_at = 0;
            assert_int_equal(decide_with_override(&s, &f), 0); /* there is memory again */
        }
    print_message("%ld requests, %ld times without an answer\n", all, failed);
    assert_true(failed >= all);
    close_scene(&s);
}

static int notify(scene *s, const facts *f)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(s->decider, &f->failure, &verdict), 0);
    const mull_event event = {.kind = MULL_EVENT_DECIDED,
                              .failure = &f->failure,
                              .verdict = &verdict,
                              .rule = &verdict.rule,
                              .generation = verdict.generation};
    mull__decider_state *seat = mull__decider_state_ref(s->decider);
    const mull__settings in_force =
        mull__effective_settings_of(mull__generation_table(mull__decider_generation(s->decider)),
                                    "Heard", NULL)
            .settings;
    char why[200] = "";
    int64_t steps = MULL__DECISION_STEPS;
    int status = mull__decider_state_notify(seat, (uint32_t)(in_force.notify - 1), &event, &steps,
                                            why, sizeof why);
    mull__decider_state_unref(seat);
    if (status != 0) {
        assert_int_equal(status, MULL_ENOMEM);
        assert_string_equal(why, mull_strerror(MULL_ENOMEM));
    }
    return status != 0;
}

static void a_notify_without_memory_says_so(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    facts f;
    facts_init(&f, "Any", "north");
    f.failure.consumer = "Heard";
    assert_int_equal(notify(&s, &f), 0);
    long before = s.counting_allocator.asked, failed = 0;
    assert_int_equal(notify(&s, &f), 0);
    long all = s.counting_allocator.asked - before;
    for (size_t i = 0; i < LENGTHS; i++)
        for (long at = 1; at <= all; at++) {
            s.counting_allocator.fail_for = lengths[i];
            s.counting_allocator.fail_at = s.counting_allocator.asked + at;
            failed += notify(&s, &f);
            s.counting_allocator.fail_at = 0;
            assert_int_equal(notify(&s, &f), 0);
        }
    print_message("%ld requests, %ld times in vain\n", all, failed);
    assert_true(failed >= all);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_fields_cost_no_memory),
        cmocka_unit_test(a_new_text_costs_one_string),
        cmocka_unit_test(what_is_made_for_a_call_is_collected),
        cmocka_unit_test(strange_failures_are_read),
        cmocka_unit_test(long_chains_are_cut),
        cmocka_unit_test(an_override_without_memory_changes_nothing),
        cmocka_unit_test(a_notify_without_memory_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
