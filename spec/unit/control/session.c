/* session.c: one client of the protocol, without a socket and by a clock of the test's: the hello,
 * pings, what ends it, and when it reads no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "control/session.h"
#include "counting_allocator.h"

/* ---- A session whose methods are "echo" and "large" -------------------------------------------
 */

static int call(void *data, mull__session *session, const mull__rpc_message *request)
{
    (*(int *)data)++;
    if (mull__rpc_is(request, "large")) {
        char *text = calloc(1, MULL__SESSION_FRAME);
        mull__rpc_answer(&session->out, request->id);
        mull__msgpack_string(&session->out, text, MULL__SESSION_FRAME);
        free(text);
        return 1;
    }
    if (mull__rpc_is(request, "half")) {
        char *text = calloc(1, MULL__SESSION_FRAME / 2);
        mull__rpc_answer(&session->out, request->id);
        mull__msgpack_string(&session->out, text, MULL__SESSION_FRAME / 2);
        free(text);
        return 1;
    }
    if (!mull__rpc_is(request, "echo"))
        return 0;
    mull__rpc_answer(&session->out, request->id);
    mull__msgpack_flag(&session->out, 1);
    return 1;
}

static unsigned welcome(void *data, mull__msgpack *out)
{
    (void)data;
    mull__msgpack_string(out, "more", 4);
    mull__msgpack_integer(out, 1);
    return 1;
}

static const mull__session_ops ops = {
    .call = call, .role = "decider", .welcome = welcome, .methods = "echo and large"};

typedef struct stage {
    mull_allocator allocator;
    mull__session session;
    int calls;
} stage;

static void begin(stage *s)
{
    s->allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    s->calls = 0;
    mull__session_begin(&s->session, &ops, &s->calls, &s->allocator, 1000);
}

/* feed gives how many bytes were taken. */
static size_t feed(stage *s, const char *bytes, size_t size, int64_t now_ms)
{
    char *copy = malloc(size);
    memcpy(copy, bytes, size);
    size_t taken = mull__session_feed(&s->session, copy, size, now_ms);
    free(copy);
    return taken;
}

/* expect compares what the session said since, which goes out. */
static void expect(stage *s, const char *bytes, size_t size)
{
    assert_int_equal(s->session.out.size, size);
    assert_memory_equal(s->session.out.memory, bytes, size);
    s->session.out.size = 0;
    mull__session_sent(&s->session);
}

#define FEED(stage, bytes, now) feed(stage, bytes, sizeof(bytes) - 1, now)
#define EXPECT(stage, bytes)    expect(stage, bytes, sizeof(bytes) - 1)
#define HELLO                                                                                      \
    "\x94\x00\x00\xa5hello\x91\x82\xa7version\x01\xa4role\xa7"                                     \
    "decider"
#define ECHO                                                                                       \
    "\x94\x00\x05\xa4"                                                                             \
    "echo\x91\x80"
#define ECHOED "\x94\x01\x05\xc0\xc3"

static void open_session(stage *s)
{
    begin(s);
    assert_int_equal(FEED(s, HELLO, 1000), sizeof HELLO - 1);
    EXPECT(s, "\x94\x01\x00\xc0\xdf\x00\x00\x00\x05\xa7version\x01\xa9max_frame\xce\x00\x10\x00\x00"
              "\xa7ping_ms\xcd\x27\x10\xa7lost_ms\xcd\x75\x30\xa4more\x01");
    assert_int_equal(s->session.state, MULL__SESSION_OPENED);
}

/* ends_with looks at what the session said last, and why it ended. */
static void ended(stage *s, const char *why)
{
    assert_int_equal(s->session.state, MULL__SESSION_ENDED);
    assert_string_equal(s->session.why, why);
    assert_true(s->session.out.size > 0);
    assert_memory_equal(s->session.out.memory, "\x94\x01", 2);
    mull__session_drop(&s->session);
}

/* ---- The hello ------------------------------------------------------------------------------- */

static void a_hello_opens_it(void **state)
{
    (void)state;
    stage s;
    open_session(&s);
    FEED(&s, ECHO, 1001);
    EXPECT(&s, ECHOED);
    FEED(&s, HELLO, 1002);
    EXPECT(&s, "\x94\x01\x00\x82\xa4type\xacRequestError\xa7message\xb0hello comes once\xc0");
    mull__session_drop(&s.session);
}

static void a_hello_of_another_kind_ends_it(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    FEED(&s, "\x94\x00\x09\xa5hello\x91\x81\xa7version\x02", 1000);
    EXPECT(&s, "\x94\x01\x09\x83\xa4type\xadProtocolError\xa7message\xb8hello: version must be 1"
               "\xa8versions\x91\x01\xc0");
    assert_int_equal(s.session.state, MULL__SESSION_ENDED);
    assert_int_equal(FEED(&s, ECHO, 1000), sizeof ECHO - 1); /* nobody reads it */
    assert_int_equal(s.session.out.size, 0);
    mull__session_drop(&s.session);
    begin(&s);
    FEED(&s, "\x94\x00\x09\xa5hello\x91\x83\x01\x02\xa4role\xa6worker\xa7version\x01", 1000);
    ended(&s, "hello: role must be \"decider\" here");
    begin(&s);
    FEED(&s, "\x94\x00\x09\xa5hello\x90", 1000);
    ended(&s, "hello: version must be 1");
    begin(&s);
    FEED(&s, ECHO, 1000);
    ended(&s, "the first message must be the request hello");
    assert_int_equal(s.calls, 0);
    begin(&s);
    FEED(&s, "\x93\x02\xa5hello\x91\x80", 1000);
    ended(&s, "the first message must be the request hello");
}

static void a_hello_comes_within_five_seconds(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    mull__session_tick(&s.session, 5999);
    assert_int_equal(s.session.state, MULL__SESSION_NEW);
    mull__session_tick(&s.session, 6000);
    ended(&s, "hello must come within 5 s");
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void what_is_unknown_is_answered_or_ignored(void **state)
{
    (void)state;
    stage s;
    open_session(&s);
    FEED(&s, "\x94\x00\x05\xa2no\x91\x80", 1001);
    EXPECT(&s, "\x94\x01\x05\x82\xa4type\xacRequestError\xa7message\xd9\x36there is no method "
               "\"no\" here; there are echo and large\xc0");
    FEED(&s, "\x93\x02\xa2no\x91\x80\x94\x01\x05\xc0\x01", 1001);
    assert_int_equal(s.session.out.size, 0);
    assert_int_equal(s.session.state, MULL__SESSION_OPENED);
    FEED(&s, "\x94\x00\x05\xa4ping\x91\x80", 1001);
    EXPECT(&s, "\x94\x01\x05\xc0\x80");
    FEED(&s, "\xc0", 1001);
    ended(&s, "a message must be [0, id, method, [map]], [1, id, error, result] or "
              "[2, method, [map]]");
}

static void an_answer_that_is_too_long_is_an_error(void **state)
{
    (void)state;
    stage s;
    open_session(&s);
    FEED(&s, "\x94\x00\x05\xa5large\x91\x80", 1001);
    EXPECT(&s, "\x94\x01\x05\x82\xa4type\xacRequestError\xa7message\xd9\x35the answer is longer "
               "than 1 MiB; ask for less at once\xc0");
    mull__session_drop(&s.session);
}

static void nothing_is_read_while_64_answers_are_not_out(void **state)
{
    (void)state;
    stage s;
    static char many[100 * (sizeof ECHO - 1)];
    size_t one = sizeof ECHO - 1;
    for (size_t i = 0; i < 100; i++)
        memcpy(many + i * one, ECHO, one);
    open_session(&s);
    s.calls = 0;
    assert_int_equal(feed(&s, many, sizeof many, 1001), 64 * one);
    assert_int_equal(s.calls, 64);
    assert_true(mull__session_is_full(&s.session));
    assert_int_equal(feed(&s, many, sizeof many, 1001), 0);
    mull__session_sent(&s.session);
    assert_int_equal(feed(&s, many, 36 * one, 1001), 36 * one);
    assert_int_equal(s.calls, 100);
    mull__session_drop(&s.session);
}

static void nothing_is_read_while_much_is_not_out(void **state)
{
    (void)state;
    stage s;
    static const char half[] = "\x94\x00\x05\xa4half\x91\x80\x94\x00\x05\xa4half\x91\x80\x94\x00"
                               "\x05\xa4half\x91\x80\x94\x00\x05\xa4half\x91\x80";
    open_session(&s);
    assert_int_equal(FEED(&s, half, 1001), (sizeof half - 1) / 2);
    mull__session_drop(&s.session);
}

/* ---- Time, and memory ------------------------------------------------------------------------ */

static void a_silent_client_is_pinged_and_then_lost(void **state)
{
    (void)state;
    stage s;
    open_session(&s);
    mull__session_tick(&s.session, 10999);
    assert_int_equal(s.session.out.size, 0);
    mull__session_tick(&s.session, 11000);
    EXPECT(&s, "\x94\x00\x00\xa4ping\x91\x80");
    FEED(&s, "\x94\x01\x00\xc0\x80", 12000);
    mull__session_tick(&s.session, 21999);
    assert_int_equal(s.session.out.size, 0);
    mull__session_tick(&s.session, 22000);
    EXPECT(&s, "\x94\x00\x01\xa4ping\x91\x80");
    mull__session_tick(&s.session, 31999);
    assert_int_equal(s.session.out.size, 0);
    mull__session_tick(&s.session, 32000);
    EXPECT(&s, "\x94\x00\x02\xa4ping\x91\x80");
    mull__session_tick(&s.session, 41999);
    assert_int_equal(s.session.state, MULL__SESSION_OPENED);
    mull__session_tick(&s.session, 42000);
    assert_int_equal(s.session.state, MULL__SESSION_ENDED);
    assert_string_equal(s.session.why, "nothing was heard for 30 s");
    mull__session_drop(&s.session);
}

static void a_lack_of_memory_ends_it(void **state)
{
    (void)state;
    int is_opened = 0;
    for (long n = 1; !is_opened; n++) {
        counting_allocator counting = {.fail_at = n};
        stage s;
        begin(&s);
        s.allocator = counting_allocator_ops(&counting);
        FEED(&s, HELLO, 1000);
        is_opened = s.session.state == MULL__SESSION_OPENED;
        assert_true(is_opened || s.session.state == MULL__SESSION_ENDED);
        assert_string_equal(s.session.why, is_opened ? "" : "out of memory");
        mull__session_drop(&s.session);
        assert_int_equal(counting.out, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_opens_it),
        cmocka_unit_test(a_hello_of_another_kind_ends_it),
        cmocka_unit_test(a_hello_comes_within_five_seconds),
        cmocka_unit_test(what_is_unknown_is_answered_or_ignored),
        cmocka_unit_test(an_answer_that_is_too_long_is_an_error),
        cmocka_unit_test(nothing_is_read_while_64_answers_are_not_out),
        cmocka_unit_test(nothing_is_read_while_much_is_not_out),
        cmocka_unit_test(a_silent_client_is_pinged_and_then_lost),
        cmocka_unit_test(a_lack_of_memory_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
