/* own_scheme.c: an engine takes a transport that its embedder brings: which it refuses and what it
 * says then, which URLs it finds it by, how long it needs it, and whose data it gets. What such a
 * transport can do to messages is shown by transport/board_spec.lua. */
#include "counting_allocator.h"
#include "test_engine.h"

#include "mulligan/transport.h"

#include <uv.h>

/* bare is a transport without messages: it opens, answers and closes. What it was opened with is
 * written down in its engine's `log`. */
typedef struct log {
    char url[64];
    int opened, closed, subscribed;
    int refuse; /* what the next open answers, or, of the queue "later", subscribe */
} log;

typedef struct bare {
    mull_port *port;
    uv_async_t async; /* a handle, which is closed before it is */
} bare;

static void on_async(uv_async_t *async)
{
    (void)async;
}

static void on_closed(uv_handle_t *handle)
{
    bare *self = handle->data;
    mull_port *port = self->port;
    ((log *)mull_port_data(port))->closed++;
    free(self);
    mull_port_working(port, -1);
    mull_port_closed(port);
}

static int bare_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                     size_t why_size)
{
    (void)url;
    (void)queue;
    (void)why;
    (void)why_size;
    floor->can_retry = 1;
    return 0;
}

static int bare_open(void **out, mull_port *port, const char *url, char *why, size_t why_size)
{
    log *l = mull_port_data(port);
    snprintf(l->url, sizeof l->url, "%s", url);
    *out = NULL;
    if (l->refuse) {
        snprintf(why, why_size, "it is closed on Sundays");
        return l->refuse;
    }
    bare *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->port = port;
    self->async.data = self;
    assert_int_equal(uv_async_init(mull_port_loop(port), &self->async, on_async), 0);
    mull_port_state(port, MULL_UP, NULL);
    l->opened++;
    *out = self;
    return 0;
}

static int bare_subscribe(void *self, mull_ticket consumer, const mull_source *source,
                          void **subscription)
{
    mull_port *port = ((bare *)self)->port;
    log *l = mull_port_data(port);
    if (strcmp(source->queue, "later") == 0 && l->refuse)
        return l->refuse;
    l->subscribed++;
    *subscription = l;
    mull_port_source(port, consumer, MULL_SOURCE_READY, NULL, NULL);
    return 0;
}

static void bare_credit(void *self, void *subscription, uint32_t deliveries)
{
    (void)self;
    (void)deliveries;
    assert_non_null(subscription); /* none is asked of one that was refused */
}

static void bare_unsubscribe(void *self, void *subscription)
{
    (void)self;
    (void)subscription;
    fail_msg("no test unsubscribes");
}

static int bare_publish(void *data, const mull_outgoing *outgoing, mull_ticket ticket)
{
    (void)outgoing;
    mull_port_answer(((bare *)data)->port, ticket, 0, NULL);
    return 0;
}

static void bare_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                        mull_ticket ticket)
{
    (void)ticket;
    (void)self;
    (void)delivery;
    (void)settlement;
    fail_msg("nothing was delivered");
}

static int bare_depth(void *data, const char *queue, mull_ticket ticket)
{
    static const mull_depth none = {.next_due_ms = INT64_MAX};
    (void)queue;
    mull_port_depth(((bare *)data)->port, ticket, 0, &none, NULL);
    return 0;
}

static void bare_release(void *self, mull_delivery *delivery)
{
    (void)self;
    (void)delivery;
    fail_msg("nothing was delivered");
}

static void bare_close(void *data, int64_t drain_ms)
{
    assert_true(drain_ms >= 0);
    bare *self = data;
    mull_port_working(self->port, 1);
    uv_close((uv_handle_t *)&self->async, on_closed);
}

static const mull_transport_ops bare_ops = {
    MULL_TRANSPORT_OPS(bare),
    .depth = bare_depth,
};

/* ---- An engine that remembers what it complained of ------------------------------------------ */

typedef struct bench {
    test_engine r;
    char problem[256], said[256]; /* the last of each */
    int lines;                    /* of its log */
} bench;

static void keep_problem(const char *file, int line, const char *text, void *data)
{
    (void)file;
    (void)line;
    bench *b = data;
    snprintf(b->problem, sizeof b->problem, "%s", text);
}

static void keep_line(mull_level level, const char *text, void *data)
{
    (void)level;
    bench *b = data;
    b->lines++;
    snprintf(b->said, sizeof b->said, "%s", text);
}

static void open_bench(bench *b)
{
    *b = (bench){
        .r = {.clock = {test_engine_now, test_engine_wall, b}}}; /* `r` is its first member */
    b->r.policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = b->r.policy;
    options.problem = keep_problem;
    options.log = keep_line;
    options.data = b;
    options.clock = &b->r.clock;
    assert_int_equal(mull_engine_new(&b->r.engine, &options), 0);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refuses(bench *b, const mull_transport_ops *ops, const char *why)
{
    b->problem[0] = 0;
    assert_int_equal(mull_engine_scheme(b->r.engine, ops, NULL), MULL_EINVAL);
    assert_non_null(strstr(b->problem, why));
}

static void another_version_is_refused_unread(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    for (int version = MULL_TRANSPORT_VERSION - 1; version <= MULL_TRANSPORT_VERSION + 1;
         version += 2) {
        /* It ends behind its version: ASan sees who reads on. */
        struct {
            size_t size;
            int version;
        } *ops = malloc(sizeof *ops);
        assert_non_null(ops);
        ops->size = sizeof(mull_transport_ops);
        ops->version = version;
        char why[40];
        snprintf(why, sizeof why, "a transport of version %d;", version);
        refuses(&b, (const mull_transport_ops *)(const void *)ops, why);
        free(ops);
    }
    test_engine_close(&b.r);
}

static void each_slot_but_depth_hold_and_flush_is_needed(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    mull_transport_ops ops = bare_ops;
#define WITHOUT(slot)                                                                              \
    ops.slot = NULL;                                                                               \
    refuses(&b, &ops, "has no `" #slot "`");                                                       \
    ops.slot = bare_ops.slot
    WITHOUT(look);
    WITHOUT(open);
    WITHOUT(subscribe);
    WITHOUT(credit);
    WITHOUT(unsubscribe);
    WITHOUT(publish);
    WITHOUT(settle);
    WITHOUT(release);
    WITHOUT(close);
#undef WITHOUT
    assert_int_equal(mull_engine_scheme(b.r.engine, &ops, NULL), 0);
    test_engine_close(&b.r);
}

static void a_scheme_is_a_word_of_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *scheme, *why;
    } wrong[] = {
        {NULL, "a letter first"},
        {"", "a letter first"},
        {"9p", "a letter first"},
        {"Bare", "a letter first"},
        {"bare:", "without the colon"},
        {"b\xc3\xa4r", "a-z"},
        {"abcdefghijklmnopqrstuvwxyz012345", "1 to 31"},
        {"memory", "'memory:' is built in"},
        {"sqlite", "'sqlite:' is built in"},
        {"amqp", "'amqp:' is built in, or will be"},
    };
    bench b;
    open_bench(&b);
    mull_transport_ops ops = bare_ops;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ops.scheme = wrong[i].scheme;
        refuses(&b, &ops, wrong[i].why);
    }
    static const char *const right[] = {"b", "x-amqp", "bare+tls", "v1.bare",
                                        "abcdefghijklmnopqrstuvwxyz01234"};
    mull_transport_ops many[sizeof right / sizeof *right];
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        many[i] = bare_ops;
        many[i].scheme = right[i];
        assert_int_equal(mull_engine_scheme(b.r.engine, &many[i], NULL), 0);
    }
    refuses(&b, &many[0], "there is a transport for 'b:' already");
    test_engine_close(&b.r);
}

static void wrong_calls_are_answered(void **state)
{
    (void)state;
    bench b;
    open_bench(&b);
    assert_int_equal(mull_engine_scheme(NULL, &bare_ops, NULL), MULL_EINVAL);
    assert_int_equal(mull_engine_scheme(b.r.engine, NULL, NULL), MULL_EINVAL);
    assert_null(mull_port_data(NULL));
    test_engine_close(&b.r);
}

/* ---- How it is found ------------------------------------------------------------------------- */

static void it_is_found_by_the_whole_scheme(void **state)
{
    (void)state;
    bench b;
    log l = {.url = ""};
    open_bench(&b);
    assert_int_equal(mull_engine_scheme(b.r.engine, &bare_ops, &l), 0);
    static const char *const others[] = {"bar:x", "barefoot:x", "bare", "BARE:x", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(mull_engine_transport(b.r.engine, "t", others[i]), MULL_EINVAL);
    assert_int_equal(l.opened, 0);
    assert_string_equal(
        b.problem, "transport 't': '' begins with no scheme; known are memory:, sqlite:, amqp:, "
                   "amqps:, bare:");
    assert_int_equal(mull_engine_transport(b.r.engine, "t", "bare:one?x=y"), 0);
    assert_string_equal(l.url, "bare:one?x=y");
    assert_int_equal(mull_engine_transport(b.r.engine, "u", "bare:"), 0);
    assert_int_equal(mull_engine_transport(b.r.engine, "m", "memory:"), 0);
    assert_int_equal(l.opened, 2);
    test_engine_close(&b.r);
    assert_int_equal(l.closed, 2);
}

static void what_it_says_against_a_url_is_told(void **state)
{
    (void)state;
    bench b;
    log l = {.refuse = MULL_EIO};
    open_bench(&b);
    assert_int_equal(mull_engine_scheme(b.r.engine, &bare_ops, &l), 0);
    assert_int_equal(mull_engine_transport(b.r.engine, "t", "bare:x"), MULL_EIO);
    assert_string_equal(b.problem, "transport 't': it is closed on Sundays");
    l.refuse = 5; /* no code of ours */
    assert_int_equal(mull_engine_transport(b.r.engine, "t", "bare:x"), MULL_EIO);
    l.refuse = 0;
    assert_int_equal(mull_engine_transport(b.r.engine, "t", "bare:x"), 0); /* the name is free */
    test_engine_close(&b.r);
    assert_int_equal(l.closed, 1);
}

static void no_handler(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine;
    (void)call;
    (void)message;
    (void)data;
    fail_msg("nothing was delivered");
}

/* open_with_two_queues adds a consumer of the queue "q", and one of "later". */
static void open_with_two_queues(bench *b, log *l)
{
    open_bench(b);
    assert_int_equal(mull_engine_scheme(b->r.engine, &bare_ops, l), 0);
    assert_int_equal(mull_engine_transport(b->r.engine, "t", "bare:"), 0);
    mull_consumer_options consumer = test_engine_consumer(no_handler, NULL);
    assert_int_equal(mull_consumer_add(b->r.engine, &consumer), 0);
    consumer.name = "D";
    consumer.queue = "later";
    assert_int_equal(mull_consumer_add(b->r.engine, &consumer), 0);
}

static void a_queue_that_cannot_be_read_stops_its_consumer_alone(void **state)
{
    (void)state;
    static const int answers[] = {MULL_EIO, 5 /* no code of ours */};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        bench b;
        log l = {.url = ""};
        open_with_two_queues(&b, &l);
        l.refuse = answers[i];
        assert_int_equal(mull_engine_start(b.r.engine), 0);
        assert_string_equal(b.said, "consumer 'D' can't read the queue 'later': the transport "
                                    "could not carry it out");
        assert_int_equal(b.lines, 1);
        assert_string_equal(b.problem, "");
        assert_int_equal(l.subscribed, 1);
        test_engine_advance(&b.r, 1000);
        assert_int_equal(mull_engine_status(b.r.engine), 0);
        assert_int_equal(test_engine_publish(&b.r, "later", "a"), 0);
        test_engine_advance(&b.r, 0);
        assert_int_equal(b.r.published, 1);
        assert_int_equal(b.lines, 1);
        test_engine_close(&b.r);
    }
}

/* A start that has no memory for one queue has read from others; the next one doesn't ask for these
 * again. */
static void a_queue_is_subscribed_to_once(void **state)
{
    (void)state;
    bench b;
    log l = {.url = ""};
    open_with_two_queues(&b, &l);
    for (int i = 0; i < 2; i++) {
        l.refuse = MULL_ENOMEM;
        assert_int_equal(mull_engine_start(b.r.engine), MULL_ENOMEM);
        assert_string_equal(b.problem, "consumer 'D' can't read the queue 'later': out of memory");
        assert_int_equal(l.subscribed, 1);
    }
    l.refuse = 0;
    assert_int_equal(mull_engine_start(b.r.engine), 0);
    assert_int_equal(l.subscribed, 2);
    test_engine_close(&b.r);
}

static int not_opened(void **out, mull_port *port, const char *url, char *why, size_t why_size)
{
    (void)url;
    *out = NULL;
    ++*(int *)mull_port_data(port);
    snprintf(why, why_size, "the other one");
    return MULL_EIO;
}

/* Each engine has its own: what one of them knows, the other doesn't. */
static void two_engines_may_have_different_ones_for_one_scheme(void **state)
{
    (void)state;
    bench a, b;
    log l = {.url = ""};
    int asked = 0;
    open_bench(&a);
    open_bench(&b);
    mull_transport_ops other = bare_ops;
    other.open = not_opened;
    assert_int_equal(mull_engine_scheme(a.r.engine, &bare_ops, &l), 0);
    assert_int_equal(mull_engine_transport(b.r.engine, "t", "bare:x"), MULL_EINVAL);
    assert_int_equal(mull_engine_scheme(b.r.engine, &other, &asked), 0);
    assert_int_equal(mull_engine_transport(a.r.engine, "t", "bare:x"), 0);
    assert_int_equal(mull_engine_transport(b.r.engine, "t", "bare:x"), MULL_EIO);
    assert_string_equal(b.problem, "transport 't': the other one");
    assert_int_equal(asked, 1);
    assert_int_equal(l.opened, 1);
    test_engine_close(&a.r);
    test_engine_close(&b.r);
    assert_int_equal(l.closed, 1);
}

/* ---- How long it lives ----------------------------------------------------------------------- */

static void count_answer(int status, const mull_depth *depth, void *data)
{
    assert_int_equal(status, 0);
    assert_int_equal(depth->ready, 0);
    ++*(int *)data;
}

/* It may be taken down once the engine is closed: on the heap, so that ASan sees who reads on. */
static void it_is_borrowed_until_the_engine_is_closed(void **state)
{
    (void)state;
    bench b;
    log l = {.url = ""};
    int answers = 0;
    open_bench(&b);
    mull_transport_ops *ops = malloc(sizeof *ops);
    char *scheme = strdup("bare");
    assert_non_null(ops);
    assert_non_null(scheme);
    *ops = bare_ops;
    ops->scheme = scheme;
    assert_int_equal(mull_engine_scheme(b.r.engine, ops, &l), 0);
    assert_int_equal(mull_engine_transport(b.r.engine, "t", "bare:x"), 0);
    assert_int_equal(test_engine_publish(&b.r, "q", "a"), 0);
    assert_int_equal(mull_queue_depth(b.r.engine, "t", "q", count_answer, &answers), 0);
    test_engine_advance(&b.r, 0);
    assert_int_equal(b.r.published, 1);
    assert_int_equal(answers, 1);
    test_engine_close(&b.r);
    free(scheme);
    free(ops);
    assert_int_equal(l.closed, 1);
}

static void set_flag(void *data)
{
    *(int *)data = 1;
}

static void a_closing_engine_takes_none(void **state)
{
    (void)state;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    mull_policy *policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.loop = &loop;
    mull_engine *engine = NULL;
    int closed = 0;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    mull_engine_close(engine, set_flag, &closed);
    assert_int_equal(mull_engine_scheme(engine, &bare_ops, NULL), MULL_ESTATE);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(closed, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    mull_policy_free(policy);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void without_memory_it_is_not_known(void **state)
{
    (void)state;
    counting_allocator p = {0};
    mull_policy *policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.allocator = counting_allocator_ops(&p);
    mull_engine *engine = NULL;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    p.fail_at = p.asked + 1;
    assert_int_equal(mull_engine_scheme(engine, &bare_ops, NULL), MULL_ENOMEM);
    assert_int_equal(mull_engine_transport(engine, "t", "bare:x"), MULL_EINVAL);
    assert_int_equal(mull_engine_scheme(engine, &bare_ops, NULL), 0);
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(policy);
    assert_int_equal(p.out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_version_is_refused_unread),
        cmocka_unit_test(each_slot_but_depth_hold_and_flush_is_needed),
        cmocka_unit_test(a_scheme_is_a_word_of_its_own),
        cmocka_unit_test(wrong_calls_are_answered),
        cmocka_unit_test(it_is_found_by_the_whole_scheme),
        cmocka_unit_test(what_it_says_against_a_url_is_told),
        cmocka_unit_test(a_queue_that_cannot_be_read_stops_its_consumer_alone),
        cmocka_unit_test(a_queue_is_subscribed_to_once),
        cmocka_unit_test(two_engines_may_have_different_ones_for_one_scheme),
        cmocka_unit_test(it_is_borrowed_until_the_engine_is_closed),
        cmocka_unit_test(a_closing_engine_takes_none),
        cmocka_unit_test(without_memory_it_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
