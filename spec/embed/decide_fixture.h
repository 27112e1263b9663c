/* decide_fixture.h: what the tests of wrong use share that decide: a policy with a rule for each
 * way to look at an error, a decider, and all that a decision takes. */
#ifndef DECIDE_FIXTURE_H
#define DECIDE_FIXTURE_H

#include "counting_allocator.h"
#include "test_engine.h"

/* A rule for each way to look at an error: plainly, by fields, by a hint, by a function, by its
 * causes. */
static const char decide_fixture_policy[] =
    "local policy = require 'mulligan.policy'\n"
    "local bus = policy.bus()\n"
    "bus:on('Plain'):discard('plain')\n"
    "bus:on('Short', { text = 'a', count = 1 }):retry(3, '1s')\n"
    "bus:on('Field', policy.any({ text = policy.contains('a') },\n"
    "                           policy.ctx { message = { headers = { h = 'a' } } "
    "})):discard('field')\n"
    "bus:on('Hint'):retry { attempts = 3, delay = '1s', jitter = 0, hint = 'after' }\n"
    "bus:on('Absent', { text = policy.absent }):discard('absent')\n"
    "local function count(t) local n = 0 for _ in pairs(t) do n = n + 1 end return n end\n"
    "bus:on('Function', function(err, ctx)\n"
    "    local depth, at = 0, err\n"
    "    while at.cause do depth, at = depth + 1, at.cause end\n"
    "    count(err) count(ctx) count(ctx.message.headers)\n"
    "    if type(err.list) == 'table' then count(err.list) end\n"
    "    if type(err.map) == 'table' then count(err.map) end\n"
    "    return err.text == nil and not err:is('Nothing') and depth <= 16\n"
    "       and ctx.message.headers.h == nil\n"
    "end):discard('function')\n"
    "bus:on_cause('Deep'):discard('cause')\n"
    "bus:default():dead_letter('rest')\n";

typedef struct decide_fixture {
    mull_policy *policy;
    mull_decider *decider;
    mull_error error;
    mull_message message;
    mull_failure failure;
    mull_verdict verdict;
    int matchers_failed;
    char why[256];
} decide_fixture;

static inline void decide_fixture_on_event(const mull_event *event, void *data)
{
    decide_fixture *d = data;
    d->matchers_failed += event->kind == MULL_EVENT_MATCHER_FAILED;
    snprintf(d->why, sizeof d->why, "%s", event->text);
}

static inline void decide_fixture_open_with(decide_fixture *d, const char *text,
                                            mull_allocator allocator)
{
    *d = (decide_fixture){.error = MULL_INIT(mull_error),
                          .message = MULL_INIT(mull_message),
                          .failure = MULL_INIT(mull_failure),
                          .verdict = MULL_INIT(mull_verdict)};
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.problem = test_engine_problem;
    options.event = decide_fixture_on_event;
    options.data = d;
    options.allocator = allocator;
    assert_int_equal(mull_policy_load(&d->policy, &options), 0);
    assert_int_equal(mull_decider_new(&d->decider, d->policy), 0);
    d->error.type = "Plain";
    d->failure.error = &d->error;
    d->failure.message = &d->message;
}

static inline void decide_fixture_open(decide_fixture *d)
{
    decide_fixture_open_with(d, decide_fixture_policy, (mull_allocator){0});
}

static inline void decide_fixture_close(decide_fixture *d)
{
    mull_decider_free(d->decider);
    mull_policy_free(d->policy);
}

static inline int decide_fixture_decide(decide_fixture *d)
{
    return mull_decide(d->decider, &d->failure, &d->verdict);
}

/* note_for gives the note of the discard by which a rule shows that it decided; "": none did. */
static inline const char *decide_fixture_note_for(decide_fixture *d, const char *type)
{
    d->error.type = type;
    assert_int_equal(decide_fixture_decide(d), 0);
    if (d->matchers_failed > 0)
        print_message("%s\n", d->why);
    assert_int_equal(d->matchers_failed, 0);
    return d->verdict.action == MULL_DISCARD ? d->verdict.note : "";
}

/* decide_fixture_long_text is a MiB of text, to be freed. */
static inline char *decide_fixture_long_text(void)
{
    enum { LONG = 1024 * 1024 };
    char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, 'x', LONG);
    text[LONG] = '\0';
    return text;
}

#endif
