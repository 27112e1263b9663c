/* engine_lives.h: the life of an engine on memory:, from its making to its close, while the n-th
 * request for memory is refused.
 *
 * Nothing crashes, nothing is left in memory; what was published comes to exactly one end once
 * there is memory, what its handler sent is there exactly once where it succeeded; and where there
 * never is any, a stop and a close end all the same. */
#ifndef SPEC_ENGINE_LIVES_H
#define SPEC_ENGINE_LIVES_H

#include "policy_folder.h"
#include "sample.h"
#include "workload.h"

/* plan is what an engine works by. Where there is a second policy, it is reloaded in the middle, by
 * a call or, from a file, by the engine itself. */
typedef struct plan {
    const char *policy, *later;
    int is_file;
    int owns_policy; /* what the first policy asks for counts */
    int set_up;      /* requests count once the engine is set up */
} plan;

#define RULES(passing, slow, dropped)                                                              \
    "local policy = require 'mulligan.policy'\n"                                                   \
    "policy.bus():on('Passing'" passing "):retry(3, '1s')\n"                                       \
    "policy.bus():on('Slow'" slow "):redeliver(1, '1m')\n"                                         \
    "policy.bus():on('Dropped'" dropped "):discard()\n"                                            \
    "policy.bus():on('HandlerTimeoutError'):retry(100, '1s', 'constant'):then_redeliver(100)\n"    \
    "policy.consumer('Dead'):dead_letter_queue('nowhere')\n"

#define FUNCTIONS                                                                                  \
    RULES(", function(err, ctx) return err.code == 7 and ctx.message.headers.tenant end",          \
          ", function(err) return err.text .. ('x'):rep(600) ~= err.stack:rep(9) end",             \
          ", function(err, ctx) return ctx.message.key .. err.text == 'keyvalue' end")             \
    "policy.bus():override(function(failure, verdict, config)\n"                                   \
    "    if verdict.action == 'discard' then return policy.discard(failure.error.text) end\n"      \
    "end)\n"                                                                                       \
    "policy.bus():notify(function(event)\n"                                                        \
    "    local found = {}\n"                                                                       \
    "    for key in pairs(event.verdict or {}) do found[#found + 1] = key end\n"                   \
    "end)\n"

/* LIMITS are in force for a while, then those of `PER` alone. They keep no failure, since each
 * fails by its attempt. */
#define LIMITS(PER, WHOLE)                                                                         \
    RULES("", "", "")                                                                              \
    "local c = policy.consumer('C')\n"                                                             \
    "c:max_attempts(50)\n"                                                                         \
    "c:deadline('1d')\n"                                                                           \
    "c:rate_limit { after = 2, messages = 2, within = '1m', per = " PER                            \
    ", hint = 'code', ramp = '10s', keep = true, only = 'Dropped' }\n"                             \
    "c:rate_limit { ratio = 0.1, least = 2, messages = 2, per = 'type', wait = '2s' }\n"           \
    "c:limit { rate = '60/m', per = policy.header('tenant') }\n" WHOLE

typedef struct life {
    const plan *plan;
    test_engine test_engine;
    workload book;
    folder folder;
    char first[33]; /* generation */
} life;

static inline int set_up(life *l, counting_allocator *p)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->test_engine.policy;
    options.clock = &l->test_engine.clock;
    options.allocator = counting_allocator_ops(p);
    options.reload_on_change = l->plan->is_file;
    int made = workload_set_up(&l->book, &options, "memory:", 30000);
    l->test_engine.engine = l->book.engine;
    return made;
}

/* pass lets time pass, and handlers go on with what they could not do before. */
static inline void pass(life *l, int64_t ms)
{
    enum { STEP_MS = 5000 };
    for (int64_t passed = 0; passed < ms; passed += STEP_MS) {
        workload_go_on(&l->book);
        test_engine_advance(&l->test_engine, STEP_MS);
    }
}

static inline void on_depth(int status, const mull_depth *depth, void *data)
{
    assert_int_equal(status, 0);
    *(mull_depth *)data = *depth;
}

/* stop_with_one stops while a handler just stands, whose message is given back. */
static inline void stop_with_one(life *l, counting_allocator *p)
{
    one *kept = &l->book.all[KEPT];
    workload_publish(&l->book, kept);
    pass(l, 5000);
    mull_stop(l->test_engine.engine);
    pass(l, 30000);
    assert_int_equal(l->book.stopped, 1);
    int was_short = p->fail_at && p->asked >= p->fail_at;
    p->fail_at = 0;
    mull_depth depth = {0};
    assert_int_equal(mull_queue_depth(l->test_engine.engine, "t", "q", on_depth, &depth), 0);
    mull_engine_turn(l->test_engine.engine);
    assert_int_equal(depth.ready + depth.claimed, kept->safe);
    if (!was_short)
        assert_int_equal(depth.ready, kept->safe);
}

static int skipped, kept_old; /* calls of functions, and reloads, that found no memory */

static inline void on_policy_event(const mull_event *event, void *data)
{
    (void)data;
    if (event->kind == MULL_EVENT_POLICY_LOADED)
        return;
    assert_string_equal(event->text, mull_strerror(MULL_ENOMEM));
    if (event->kind == MULL_EVENT_POLICY_REFUSED)
        kept_old++;
    else
        skipped++;
}

/* is_reloaded: the second policy is in force. */
static inline int is_reloaded(life *l)
{
    char now[33];
    mull_policy_generation(l->test_engine.policy, now);
    return strcmp(now, l->first) != 0;
}

/* reload takes the second policy; where there is no memory, the first one stays. */
static inline void reload(life *l)
{
    if (l->plan->is_file) {
        folder_write(&l->folder, "policy.lua", l->plan->later);
        return;
    }
    int status = mull_policy_reload(l->test_engine.policy, l->plan->later, 0);
    assert_true(status == 0 || status == MULL_ENOMEM);
    assert_int_equal(is_reloaded(l), status == 0);
}

/* end is how a life ends: with memory again, or without by a stop and a close, or a close alone. */
typedef enum end { HEALED, STOPPED, CLOSED } end;

static inline void live(life *l, counting_allocator *p, end how)
{
    int plenty = p->fail_at == 0;
    workload_publish_most(&l->book);
    pass(l, 30000);
    if (l->plan->later)
        reload(l);
    pass(l, 270000);
    if (how == HEALED && p->fail_for == FOR_GOOD && p->asked >= p->fail_at)
        p->fail_at = 0;
    if (how == HEALED && l->plan->later && !is_reloaded(l))
        reload(l);
    pass(l, 900000);
    if (plenty)
        workload_assert_planned(&l->book);
    if (how == HEALED) {
        assert_int_equal(is_reloaded(l), l->plan->later != NULL);
        workload_assert_ended(&l->book);
        stop_with_one(l, p);
    } else if (how == STOPPED) {
        mull_stop(l->test_engine.engine);
        pass(l, 30000);
        assert_int_equal(l->book.stopped, 1);
    }
}

/* open_policy loads the first policy, with memory enough. */
static inline void open_policy(life *l, counting_allocator *p)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    if (l->plan->is_file) {
        folder_open(&l->folder);
        folder_write(&l->folder, "policy.lua", l->plan->policy);
        options.path = l->folder.main;
    } else {
        options.text = l->plan->policy;
    }
    options.problem = test_engine_problem;
    options.event = on_policy_event;
    options.allocator = counting_allocator_ops(p);
    assert_int_equal(mull_policy_load(&l->test_engine.policy, &options), 0);
    mull_policy_generation(l->test_engine.policy, l->first);
}

static inline void close_policy(life *l)
{
    mull_policy_free(l->test_engine.policy);
    if (l->plan->is_file)
        folder_close(&l->folder);
}

static inline void begin_to_refuse(counting_allocator *p, long at, long length)
{
    p->asked = 0;
    p->fail_for = length;
    p->fail_at = at;
}

/* live_through runs the engine's whole life. 0: it could not be set up. `at` and `length` say which
 * requests are refused. */
static inline int live_through(counting_allocator *p, const plan *by, long at, long length, end how)
{
    life l = {.plan = by,
              .test_engine = {.clock = {test_engine_now, test_engine_wall, &l.test_engine}}};
    static counting_allocator plenty;
    *p = (counting_allocator){0};
    open_policy(&l, by->owns_policy ? p : &plenty);
    workload_open(&l.book);
    if (!by->set_up)
        begin_to_refuse(p, at, length);
    int made = set_up(&l, p);
    if (by->set_up)
        begin_to_refuse(p, at, length);
    if (made)
        live(&l, p, how);
    if (l.test_engine.engine) {
        mull_engine_close(l.test_engine.engine, workload_on_closed, &l.book);
        assert_int_equal(l.book.closed, 1);
    }
    close_policy(&l);
    workload_assert_once(&l.book);
    assert_int_equal(p->out, 0);
    return made;
}

/* fail_some lets every n-th request fail, or one in `step` of them, and for each run a life. How
 * many engines could be set up. */
static inline int fail_some(const plan *by, long step, long length, end how)
{
    counting_allocator p;
    int lives = 0;
    skipped = kept_old = 0;
    assert_true(live_through(&p, by, 0, 0, how));
    sample s = sample_of(step);
    for (long at = sample_after(&s, 0);; at = sample_after(&s, at)) {
        lives += live_through(&p, by, at, length, how);
        if (p.asked < at)
            break; /* nothing was refused */
    }
    print_message("%d lives, %d calls of functions and %d reloads failed\n", lives, skipped,
                  kept_old);
    assert_true(lives > 0);
    return lives;
}

#endif
