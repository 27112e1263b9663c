/* misuse_nulls.c: NULL for each pointer of each public function, one at a time. tools/api.lua holds
 * the table against the headers: a function without its row, or with other pointers, is found
 * there.
 *
 *   "engine! message! data?"   ! is required: MULL_EINVAL
 *                              ? may be NULL
 *                              - is passed over: nothing happens, and the result says nothing
 *
 * Where a NULL was refused or passed over, the same call without it has to work afterwards. */
#include "scripted_transport.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* These take a NULL for their data, which some calls leave out. */
static void count(void *data)
{
    if (data)
        (*(int *)data)++;
}

static void count_published(int status, void *data)
{
    (void)status;
    count(data);
}

static void note_depth(int status, const mull_depth *depth, void *data)
{
    stage *s = data;
    assert_non_null(depth);
    assert_int_equal(depth->ready, status == 0 ? 1 : MULL_UNKNOWN);
    if (!s)
        return;
    s->answers++;
    s->refused += status == MULL_EINVAL;
}

/* OR_NULL is an argument, but for the one that is to be NULL. */
#define OR_NULL(index, argument) (null == (index) ? NULL : (argument))

/* ---- Words ----------------------------------------------------------------------------------- */

static int words_for_numbers(stage *s, int null)
{
    (void)s;
    (void)null;
    assert_non_null(mull_version());
    for (int wild = -100; wild <= 100; wild++)
        assert_non_null(mull_strerror(wild));
    assert_null(mull_action_name((mull_action)1000));
    assert_null(mull_action_name((mull_action)-1));
    assert_null(mull_reason_name((mull_reason)1000));
    assert_null(mull_reason_name((mull_reason)-1));
    assert_null(mull_tier_name((mull_tier)1000));
    assert_null(mull_tier_name((mull_tier)-1));
    assert_null(mull_fallback_name((mull_fallback)1000));
    assert_null(mull_fallback_name((mull_fallback)-1));
    assert_null(mull_event_name((mull_event_kind)1000));
    assert_null(mull_event_name((mull_event_kind)-1));
    assert_null(mull_why_not_name(MULL_WHY_CALLED));
    assert_null(mull_why_not_name(MULL_WHY_LAST));
    assert_null(mull_why_not_name((mull_why_not)-1));
    assert_null(mull_health_name(MULL_HEALTH_LAST));
    assert_null(mull_health_name((mull_health)-1));
    return 0;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static int policy_load(stage *s, int null)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    mull_policy *policy = s->decide_fixture.policy;
    options.text = "";
    int status = mull_policy_load(OR_NULL(0, &policy), OR_NULL(1, &options));
    if (null == 1)
        assert_null(policy);
    if (status == 0)
        mull_policy_free(policy);
    return status;
}

static int policy_reload(stage *s, int null)
{
    return mull_policy_reload(OR_NULL(0, s->decide_fixture.policy),
                              OR_NULL(1, decide_fixture_policy), 0);
}

static int policy_generation(stage *s, int null)
{
    char name[33] = "untouched";
    mull_policy_generation(OR_NULL(0, s->decide_fixture.policy), OR_NULL(1, name));
    if (null == 0)
        assert_string_equal(name, "");
    else
        assert_int_equal(strlen(name), null == 1 ? strlen("untouched") : 32);
    return 0;
}

static int policy_rules(stage *s, int null)
{
    assert_int_equal(mull_policy_rules(OR_NULL(0, s->decide_fixture.policy)) > 0, null < 0);
    return 0;
}

static int policy_free(stage *s, int null)
{
    mull_policy_free(OR_NULL(0, s->decide_fixture.policy));
    if (null < 0)
        s->decide_fixture.policy = NULL;
    return 0;
}

static int decider_new(stage *s, int null)
{
    mull_decider *decider = s->decide_fixture.decider;
    int status = mull_decider_new(OR_NULL(0, &decider), OR_NULL(1, s->decide_fixture.policy));
    if (null == 1)
        assert_null(decider);
    if (status == 0)
        mull_decider_free(decider);
    return status;
}

static int decider_free(stage *s, int null)
{
    mull_decider_free(OR_NULL(0, s->decide_fixture.decider));
    if (null < 0)
        s->decide_fixture.decider = NULL;
    return 0;
}

static int decide(stage *s, int null)
{
    decide_fixture *d = &s->decide_fixture;
    return mull_decide(OR_NULL(0, d->decider), OR_NULL(1, &d->failure), OR_NULL(2, &d->verdict));
}

static int type_intern(stage *s, int null)
{
    mull_type type = 4711;
    int status =
        mull_type_intern(OR_NULL(0, &type), OR_NULL(1, s->decide_fixture.policy), OR_NULL(2, "T"));
    assert_int_equal(type != 0, null < 1);
    return status;
}

static int site_intern(stage *s, int null)
{
    mull_site site = 4711;
    int status = mull_site_intern(OR_NULL(0, &site), OR_NULL(1, s->decide_fixture.policy),
                                  OR_NULL(2, "C"), OR_NULL(3, "t"));
    assert_int_equal(site != 0, null != 1);
    return status;
}

/* ---- Running --------------------------------------------------------------------------------- */

static int engine_new(stage *s, int null)
{
    const mull_engine_options options = scripted_engine_options(s);
    mull_engine *engine = s->engine;
    int status = mull_engine_new(OR_NULL(0, &engine), OR_NULL(1, &options));
    if (null == 1)
        assert_null(engine);
    if (status == 0)
        mull_engine_close(engine, NULL, NULL);
    return status;
}

static int engine_scheme(stage *s, int null)
{
    static mull_transport_ops another;
    another = scripted_ops;
    another.scheme = "another";
    return mull_engine_scheme(OR_NULL(0, s->engine), OR_NULL(1, &another), OR_NULL(2, s));
}

static int transport_ops_of(stage *s, int null)
{
    (void)s;
    const mull_transport_ops *ops = mull_transport_ops_of(OR_NULL(0, "memory:"));
    assert_true(null == 0 ? !ops : ops && strcmp(ops->scheme, "memory") == 0);
    assert_null(mull_transport_ops_of("nowhere:"));
    return 0;
}

static int engine_transport(stage *s, int null)
{
    return mull_engine_transport(OR_NULL(0, s->engine), OR_NULL(1, "u"), OR_NULL(2, "memory:"));
}

static int engine_consumer(stage *s, int null)
{
    mull_engine *fresh = scripted_engine(s);
    assert_int_equal(mull_engine_transport(fresh, "t", "memory:"), 0);
    const mull_consumer_options options = test_engine_consumer(scripted_keep_call, s);
    int status = mull_consumer_add(OR_NULL(0, fresh), OR_NULL(1, &options));
    mull_engine_close(fresh, NULL, NULL);
    return status;
}

static int consumer_remove(stage *s, int null)
{
    return mull_consumer_remove(OR_NULL(0, s->engine), OR_NULL(1, "C"), OR_NULL(2, count_published),
                                OR_NULL(3, &s->answers));
}

static int consumer_pause(stage *s, int null)
{
    return mull_consumer_pause(OR_NULL(0, s->engine), OR_NULL(1, "C"));
}

static int consumer_resume(stage *s, int null)
{
    return mull_consumer_resume(OR_NULL(0, s->engine), OR_NULL(1, "C"));
}

static int consumer_concurrency(stage *s, int null)
{
    return mull_consumer_concurrency(OR_NULL(0, s->engine), OR_NULL(1, "C"), 1);
}

static int consumer_why_not(stage *s, int null)
{
    mull_why_not why;
    return mull_consumer_why_not(OR_NULL(0, s->engine), OR_NULL(1, "C"), OR_NULL(2, &why));
}

static int engine_snapshot(stage *s, int null)
{
    mull_snapshot *snapshot = NULL;
    int status = mull_engine_snapshot(OR_NULL(0, s->engine), OR_NULL(1, &snapshot));
    assert_int_equal(snapshot != NULL, null < 0);
    mull_snapshot_free(snapshot);
    return status;
}

static int snapshot_free(stage *s, int null)
{
    mull_snapshot *snapshot;
    assert_int_equal(mull_engine_snapshot(s->engine, &snapshot), 0);
    mull_snapshot_free(OR_NULL(0, snapshot));
    if (null == 0)
        mull_snapshot_free(snapshot);
    return 0;
}

static int engine_start(stage *s, int null)
{
    mull_engine *fresh = scripted_engine(s);
    assert_int_equal(mull_engine_transport(fresh, "t", "memory:"), 0);
    int status = mull_engine_start(OR_NULL(0, fresh));
    mull_engine_close(fresh, NULL, NULL);
    return status;
}

static int engine_run(stage *s, int null)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = s->decide_fixture.policy;
    mull_engine *fresh;
    assert_int_equal(mull_engine_new(&fresh, &options), 0);
    assert_int_equal(mull_engine_transport(fresh, "t", "memory:"), 0);
    mull_stop(fresh);
    int status = mull_engine_run(OR_NULL(0, fresh));
    mull_engine_close(fresh, NULL, NULL);
    return status;
}

static int engine_status(stage *s, int null)
{
    return mull_engine_status(OR_NULL(0, s->engine));
}

static int publish(stage *s, int null)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    return mull_publish(OR_NULL(0, s->engine), OR_NULL(1, "t"), OR_NULL(2, &message), 0,
                        OR_NULL(3, count_published), OR_NULL(4, &s->answers));
}

static int send_it(stage *s, int null)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    scripted_begin_call(s);
    return mull_send(OR_NULL(0, s->engine), s->call, OR_NULL(1, &message), 0);
}

static int done(stage *s, int null)
{
    scripted_begin_call(s);
    return mull_done(OR_NULL(0, s->engine), s->call, OR_NULL(1, &s->decide_fixture.error));
}

static int stop(stage *s, int null)
{
    mull_stop(OR_NULL(0, s->engine));
    return 0;
}

static int stop_when_empty(stage *s, int null)
{
    return mull_stop_when_empty(OR_NULL(0, s->engine));
}

static int engine_counts(stage *s, int null)
{
    mull_counts counts = MULL_INIT(mull_counts);
    return mull_engine_counts(OR_NULL(0, s->engine), OR_NULL(1, &counts));
}

static int queue_depth(stage *s, int null)
{
    return mull_queue_depth(OR_NULL(0, s->engine), OR_NULL(1, "t"), OR_NULL(2, "q"),
                            OR_NULL(3, note_depth), OR_NULL(4, s));
}

static int engine_turn(stage *s, int null)
{
    assert_int_equal(mull_engine_turn(OR_NULL(0, s->engine)), INT64_MAX);
    return 0;
}

static int engine_close(stage *s, int null)
{
    mull_engine *fresh = scripted_engine(s);
    s->closed = 0;
    mull_engine_close(OR_NULL(0, fresh), OR_NULL(1, count), OR_NULL(2, &s->closed));
    assert_int_equal(s->closed, null < 0);
    if (null == 0)
        mull_engine_close(fresh, NULL, NULL);
    return 0;
}

/* ---- Transports ------------------------------------------------------------------------------ */

static int is_own_header(stage *s, int null)
{
    (void)s;
    assert_int_equal(mull_is_own_header(OR_NULL(0, "mulligan-calls")), null < 0);
    assert_int_equal(mull_is_own_header("mull"), 0);
    return 0;
}

static int settled_headers(stage *s, int null)
{
    static const mull_header own = {"mulligan-calls", "1"},
                             came[] = {{"a", "b"}, {"mulligan-calls", "0"}};
    const mull_settlement settlement = {.size = sizeof settlement, .ours = &own, .our_count = 1};
    mull_message message = MULL_INIT(mull_message);
    mull_header out[3] = {{"untouched", NULL}};
    (void)s;
    message.headers = came;
    message.header_count = 2;
    size_t count =
        mull_settled_headers(OR_NULL(0, out), OR_NULL(1, &message), OR_NULL(2, &settlement));
    assert_int_equal(count, null < 0 ? 2 : 0);
    assert_string_equal(out[0].name, null < 0 ? "a" : "untouched");
    if (null < 0)
        assert_ptr_equal(out[1].value, own.value);
    return 0;
}

static int message_size(stage *s, int null)
{
    mull_message message = MULL_INIT(mull_message);
    mull_settlement settlement = {.size = sizeof settlement, .queue = "q"};
    (void)s;
    size_t size = mull_message_size(OR_NULL(0, &message), OR_NULL(1, &settlement));
    assert_int_equal(size, null == 0 ? 0 : null == 1 ? 1 : 3);
    return 0;
}

static int message_copy(stage *s, int null)
{
    mull_message message = MULL_INIT(mull_message), copy = MULL_INIT(mull_message);
    mull_settlement settlement = {.size = sizeof settlement, .queue = "q"};
    mull_header memory[2];
    (void)s;
    mull_message_copy(OR_NULL(0, &copy), OR_NULL(1, &message), OR_NULL(2, &settlement),
                      OR_NULL(3, memory));
    assert_int_equal(copy.body != NULL, null < 0 || null == 2);
    assert_int_equal(copy.queue != NULL, null < 0);
    return 0;
}

static int port_delivered(stage *s, int null)
{
    scripted_transport *q = &s->scripted_transport;
    q->delivery = (mull_delivery){.size = sizeof q->delivery, .message = &q->message};
    mull_port_delivered(OR_NULL(0, q->port), q->consumer, OR_NULL(1, &q->delivery));
    mull_engine_turn(s->engine);
    assert_int_equal(s->call != 0, null < 0);
    return 0;
}

static int port_answer(stage *s, int null)
{
    scripted_transport *q = &s->scripted_transport;
    scripted_begin_call(s);
    mull_done(s->engine, s->call, NULL);
    if (!q->publishing)
        assert_int_equal(publish(s, -1), 0);
    mull_engine_turn(s->engine);
    assert_true(q->settling != 0);
    mull_port_answer(OR_NULL(0, q->port), q->publishing, 0, OR_NULL(1, "safe"));
    mull_port_answer(OR_NULL(0, q->port), q->settling, 0, OR_NULL(1, "safe"));
    mull_engine_turn(s->engine);
    assert_int_equal(s->answers, null != 0);
    assert_int_equal(q->releases, null != 0);
    if (null != 0)
        q->settling = q->publishing = 0;
    return 0;
}

static int port_depth(stage *s, int null)
{
    const mull_depth depth = {.ready = 1};
    scripted_transport *q = &s->scripted_transport;
    if (!q->asking)
        assert_int_equal(queue_depth(s, -1), 0);
    mull_port_depth(OR_NULL(0, q->port), q->asking, 0, OR_NULL(1, &depth), OR_NULL(2, "why"));
    assert_int_equal(s->answers, null != 0);
    assert_int_equal(s->refused, null == 1);
    if (s->answers)
        q->asking = 0;
    return 0;
}

static int port_lost(stage *s, int null)
{
    scripted_transport *q = &s->scripted_transport;
    scripted_begin_call(s);
    mull_port_lost(OR_NULL(0, q->port), q->delivery.ticket, OR_NULL(1, "too slow"));
    if (null == 0)
        return 0;
    assert_string_equal(s->said, null == 1
                                     ? "C: the claim on message m is gone; it will be handed out "
                                       "again"
                                     : "C: the claim on message m is gone: too slow; it will be "
                                       "handed out again");
    assert_int_equal(mull_done(s->engine, s->call, NULL), MULL_EDONE);
    mull_engine_turn(s->engine);
    assert_int_equal(q->releases, 1);
    return 0;
}

static int port_source(stage *s, int null)
{
    const mull_abilities found = MULL_INIT(mull_abilities);
    mull_port_source(OR_NULL(0, s->scripted_transport.port), s->scripted_transport.consumer,
                     MULL_SOURCE_WAITING, OR_NULL(1, &found), OR_NULL(2, "fog"));
    assert_string_equal(s->said,
                        null == 0 || null == 2 ? "" : "consumer 'C' waits for its queue 'q': fog");
    return 0;
}

static int port_state(stage *s, int null)
{
    mull_port_state(OR_NULL(0, s->scripted_transport.port), MULL_DOWN, OR_NULL(1, "fog"));
    assert_string_equal(s->said, null == 0   ? ""
                                 : null == 1 ? "transport t is down"
                                             : "transport t is down: fog");
    return 0;
}

static int port_closed(stage *s, int null)
{
    mull_port_closed(OR_NULL(0, s->scripted_transport.port));
    mull_engine_turn(s->engine);
    assert_string_equal(s->said, null == 0 ? "" : "transport t: it closed without being asked to");
    return 0;
}

static int port_timer_new(stage *s, int null)
{
    mull_timer *timer = mull_port_timer_new(OR_NULL(0, s->scripted_transport.port),
                                            OR_NULL(1, count), OR_NULL(2, &s->fired));
    assert_int_equal(timer != NULL, null < 0 || null == 2);
    if (timer)
        mull_port_timer_set(s->scripted_transport.port, timer, 0);
    mull_engine_turn(s->engine);
    assert_int_equal(s->fired, null < 0);
    mull_port_timer_free(s->scripted_transport.port, timer);
    return 0;
}

static int port_timer_set(stage *s, int null)
{
    mull_timer *timer = mull_port_timer_new(s->scripted_transport.port, count, &s->fired);
    assert_non_null(timer);
    mull_port_timer_set(OR_NULL(0, s->scripted_transport.port), OR_NULL(1, timer), 0);
    mull_engine_turn(s->engine);
    assert_int_equal(s->fired, null < 0);
    mull_port_timer_free(s->scripted_transport.port, timer);
    return 0;
}

static int port_timer_free(stage *s, int null)
{
    mull_timer *timer = mull_port_timer_new(s->scripted_transport.port, count, &s->fired);
    assert_non_null(timer);
    mull_port_timer_free(OR_NULL(0, s->scripted_transport.port), OR_NULL(1, timer));
    if (null >= 0)
        mull_port_timer_free(s->scripted_transport.port, timer);
    return 0;
}

static int port_working(stage *s, int null)
{
    mull_port_working(OR_NULL(0, s->scripted_transport.port), 1);
    mull_port_working(OR_NULL(0, s->scripted_transport.port), -1);
    assert_string_equal(s->said, "");
    if (null < 0)
        mull_port_working(s->scripted_transport.port, -1);
    assert_string_equal(s->said, null < 0 ? "transport t: it ended more work than it began" : "");
    return 0;
}

static int port_now(stage *s, int null)
{
    assert_int_equal(mull_port_now(OR_NULL(0, s->scripted_transport.port)),
                     null < 0 ? s->now_ms : 0);
    return 0;
}

static int port_wall(stage *s, int null)
{
    assert_int_equal(mull_port_wall(OR_NULL(0, s->scripted_transport.port)),
                     null < 0 ? s->now_ms : 0);
    return 0;
}

static int port_data(stage *s, int null)
{
    assert_ptr_equal(mull_port_data(OR_NULL(0, s->scripted_transport.port)),
                     null < 0 ? &s->scripted_transport : NULL);
    return 0;
}

static int port_loop(stage *s, int null)
{
    assert_int_equal(mull_port_loop(OR_NULL(0, s->scripted_transport.port)) != NULL, null < 0);
    return 0;
}

static int port_allocator(stage *s, int null)
{
    assert_int_equal(mull_port_allocator(OR_NULL(0, s->scripted_transport.port)) != NULL, null < 0);
    return 0;
}

static int port_log(stage *s, int null)
{
    mull_port_log(OR_NULL(0, s->scripted_transport.port), MULL_INFO, OR_NULL(1, "ahoy"));
    assert_string_equal(s->said, null < 0 ? "transport t: ahoy" : "");
    return 0;
}

/* ---- The table ------------------------------------------------------------------------------- */

typedef struct row {
    const char *function, *pointers;
    int (*call)(stage *s, int null); /* -1: none is NULL */
} row;

static const row rows[] = {
    {"mull_version", "", words_for_numbers},
    {"mull_strerror", "", words_for_numbers},
    {"mull_action_name", "", words_for_numbers},
    {"mull_reason_name", "", words_for_numbers},
    {"mull_tier_name", "", words_for_numbers},
    {"mull_fallback_name", "", words_for_numbers},
    {"mull_event_name", "", words_for_numbers},
    {"mull_health_name", "", words_for_numbers},
    {"mull_why_not_name", "", words_for_numbers},
    {"mull_policy_load", "out! options!", policy_load},
    {"mull_policy_reload", "policy! text?", policy_reload},
    {"mull_policy_generation", "policy- name-", policy_generation},
    {"mull_policy_rules", "policy-", policy_rules},
    {"mull_policy_free", "policy-", policy_free},
    {"mull_decider_new", "out! policy!", decider_new},
    {"mull_decider_free", "decider-", decider_free},
    {"mull_type_intern", "out! policy! name!", type_intern},
    {"mull_site_intern", "out! policy! consumer? transport?", site_intern},
    {"mull_decide", "decider! failure! verdict!", decide},
    {"mull_engine_new", "out! options!", engine_new},
    {"mull_engine_scheme", "engine! ops! data?", engine_scheme},
    {"mull_transport_ops_of", "url-", transport_ops_of},
    {"mull_engine_transport", "engine! name! url!", engine_transport},
    {"mull_consumer_add", "engine! options!", engine_consumer},
    {"mull_consumer_remove", "engine! name! removed? data?", consumer_remove},
    {"mull_consumer_pause", "engine! name!", consumer_pause},
    {"mull_consumer_resume", "engine! name!", consumer_resume},
    {"mull_consumer_concurrency", "engine! name!", consumer_concurrency},
    {"mull_consumer_why_not", "engine! name! why!", consumer_why_not},
    {"mull_engine_start", "engine!", engine_start},
    {"mull_engine_run", "engine!", engine_run},
    {"mull_engine_status", "engine!", engine_status},
    {"mull_publish", "engine! transport! message! published? data?", publish},
    {"mull_send", "engine! message!", send_it},
    {"mull_done", "engine! error?", done},
    {"mull_stop", "engine-", stop},
    {"mull_stop_when_empty", "engine!", stop_when_empty},
    {"mull_engine_counts", "engine! counts!", engine_counts},
    {"mull_engine_snapshot", "engine! snapshot!", engine_snapshot},
    {"mull_snapshot_free", "snapshot-", snapshot_free},
    {"mull_queue_depth", "engine! transport! queue! answer! data?", queue_depth},
    {"mull_engine_turn", "engine-", engine_turn},
    {"mull_engine_close", "engine- closed? data?", engine_close},
    {"mull_is_own_header", "name-", is_own_header},
    {"mull_settled_headers", "out- message- settlement-", settled_headers},
    {"mull_message_size", "message- settlement?", message_size},
    {"mull_message_copy", "copy- message- settlement? memory-", message_copy},
    {"mull_port_state", "port- why?", port_state},
    {"mull_port_source", "port- found? why?", port_source},
    {"mull_port_delivered", "port- delivery-", port_delivered},
    {"mull_port_lost", "port- why?", port_lost},
    {"mull_port_answer", "port- why?", port_answer},
    {"mull_port_depth", "port- depth? why?", port_depth},
    {"mull_port_closed", "port-", port_closed},
    {"mull_port_timer_new", "port- fire- data?", port_timer_new},
    {"mull_port_timer_set", "port- timer-", port_timer_set},
    {"mull_port_timer_free", "port- timer-", port_timer_free},
    {"mull_port_working", "port-", port_working},
    {"mull_port_now", "port-", port_now},
    {"mull_port_wall", "port-", port_wall},
    {"mull_port_data", "port-", port_data},
    {"mull_port_loop", "port-", port_loop},
    {"mull_port_allocator", "port-", port_allocator},
    {"mull_port_log", "port- text-", port_log},
};

/* try_null gives the `null`-th pointer of a row as NULL, whose mark says what is to come of it. */
static void try_null(const row *r, int null, char mark)
{
    stage s;
    scripted_stage_open(&s);
    int status = r->call(&s, null);
    if (mark == '!')
        assert_int_equal(status, MULL_EINVAL);
    else
        assert_true(status >= 0);
    if (mark != '?')
        assert_true(r->call(&s, -1) >= 0);
    scripted_stage_close(&s);
}

static void each_function_works(void **state)
{
    (void)state;
    for (const row *r = rows; r < rows + COUNT(rows); r++) {
        print_message("%s\n", r->function);
        stage s;
        scripted_stage_open(&s);
        assert_true(r->call(&s, -1) >= 0);
        scripted_stage_close(&s);
    }
}

static void each_answers_each_null(void **state)
{
    (void)state;
    for (const row *r = rows; r < rows + COUNT(rows); r++) {
        int null = 0;
        for (const char *at = r->pointers; (at = strpbrk(at, "!?-")); at++, null++) {
            print_message("%s: pointer %d of %s\n", r->function, null + 1, r->pointers);
            try_null(r, null, *at);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_function_works),
        cmocka_unit_test(each_answers_each_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
