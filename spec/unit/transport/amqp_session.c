/* amqp_session.c: transport/amqp/session.c and sound.c: what a server says, cut at every byte, in
 * the wrong order, too large or too deep; and how a session that can't be ends. */
#include "amqp_peer.h"
#include "transport/amqp/sound.h"

static peer p;

/* ends_with feeds, and says why the session ended. */
static void ends_with(const char *why)
{
    assert_int_equal(feed(&p, sizeof p.in), MULL_EIO);
    assert_int_equal(p.session.state, MULL__AMQP_CLOSED);
    if (!strstr(p.session.why, why))
        fail_msg("ended with \"%s\", not with \"%s\"", p.session.why, why);
    assert_null(strstr(p.session.why, "secret"));
    peer_end_session(&p);
}

static void it_logs_in_and_opens(void **state)
{
    (void)state;
    peer_begin_session(&p);
    assert_memory_equal(p.out, "AMQP\0\0\x9\x1", 8);
    start(&p, "AMQPLAIN PLAIN", 1);
    tune(&p, 100, 8192, 10);
    open_ok(&p);
    assert_int_equal(feed(&p, 1), 0);
    assert_string_equal(p.events, "open; ");
    assert_string_equal(p.session.server, "RabbitMQ 4.1.2");
    assert_int_equal(p.session.server_major, 4);
    assert_int_equal(p.session.frame_max, 8192);
    assert_int_equal(p.session.channel_max, 100);
    assert_int_equal(p.session.heartbeat_s, 10);
    assert_int_equal(mull__amqp_channel_open(&p.session, 101), MULL_EREFUSED);
    assert_int_equal(mull__amqp_channel_open(&p.session, 0), MULL_EREFUSED);
    peer_end_session(&p);
}

static void any_cut_gives_the_same(void **state)
{
    (void)state;
    static const char body[] = "a body of more than eight bytes, in pieces";
    for (size_t step = 1; step < 200; step++) {
        start_tune_open(&p);
        deliver(&p, 1, 7);
        content(&p, 1, body, sizeof body - 1, 5);
        frame(&p, AMQP_FRAME_HEARTBEAT, 0, NULL, 0);
        deliver(&p, 1, 8);
        content(&p, 1, "", 0, 1);
        assert_int_equal(feed(&p, step), 0);
        assert_string_equal(p.events, "content 1 7 \"a body of more than eight bytes, in piec\"; "
                                      "content 1 8 \"\"; ");
        peer_end_session(&p);
    }
}

static void channels_may_alternate(void **state)
{
    (void)state;
    start_tune_open(&p);
    assert_int_equal(mull__amqp_channel_open(&p.session, 9), 0);
    deliver(&p, 1, 1);
    deliver(&p, 9, 2);
    content(&p, 9, "nine", 4, 4);
    content(&p, 1, "one", 3, 3);
    assert_int_equal(feed(&p, 3), 0);
    assert_string_equal(p.events, "content 9 2 \"nine\"; content 1 1 \"one\"; ");
    peer_end_session(&p);
}

static void a_body_without_memory_is_lost_alone(void **state)
{
    (void)state;
    start_tune_open(&p);
    p.refuse_more = 1;
    deliver(&p, 1, 1);
    content(&p, 1, "longer than eight", 17, 4);
    deliver(&p, 1, 2);
    content(&p, 1, "short", 5, 4);
    assert_int_equal(feed(&p, sizeof p.in), 0);
    assert_non_null(strstr(p.events, "lost 1 1"));
    assert_non_null(strstr(p.events, "content 1 2 \"short\""));
    peer_end_session(&p);
}

static void what_answers_may_be_no_broker(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *why;
        size_t size;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n", "begins with \"HTTP/1.1 400 Bad Reque", 26},
        {"SSH-2.0-OpenSSH_9.2\r\n", "begins with \"SSH-2.0", 21},
        {"\x15\x03\x01\x00\x02\x02\x46", "wants TLS (amqps:)", 7},
        {"AMQP\x00\x01\x00\x00", "speaks AMQP 1-0-0", 8},
        {"\x01\x00\x00\x7f\xff\xff\xff", "a frame that is larger than agreed", 7},
        {"-ERR unknown command\r\n", "speaks no AMQP 0-9-1", 22},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        peer_begin_session(&p);
        memcpy(p.in, cases[i].bytes, cases[i].size);
        p.in_size = cases[i].size;
        ends_with(cases[i].why);
    }
    peer_begin_session(&p);
    start(&p, "PLAIN", 0);
    ends_with("RabbitMQ 4.1.2 has no publisher_confirms");
    peer_begin_session(&p);
    start(&p, "EXTERNAL PLAINER", 1);
    ends_with("takes no login by PLAIN");
    peer_begin_session(&p);
    start(&p, "PLAIN", 1);
    tune(&p, 0, 2048, 0);
    ends_with("frames of 2048 bytes");
    peer_begin_session(&p);
    start(&p, "PLAIN", 1);
    tune(&p, 2, 0, 0);
    ends_with("the server allows 2 channels; at least 3 are due");
}

static void close_by(uint16_t code, const char *text)
{
    amqp_connection_close_t close = {.reply_code = code, .reply_text = mull__amqp_text(text)};
    method(&p, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
}

static void a_refused_login_says_what_to_look_at(void **state)
{
    (void)state;
    peer_begin_session(&p);
    start(&p, "PLAIN", 1);
    close_by(403, "ACCESS_REFUSED");
    ends_with("the login of user 'guest' is refused (403); look at user and password");
    peer_begin_session(&p);
    start(&p, "PLAIN", 1);
    tune(&p, 0, 0, 0);
    close_by(530, "NOT_ALLOWED - vhost / not found");
    ends_with(
        "the virtual host '/' is refused to user 'guest' (530): NOT_ALLOWED - vhost / not found; "
        "it must be there");
    start_tune_open(&p);
    close_by(320, "CONNECTION_FORCED - shut\ndown");
    ends_with("the server closed the connection (320): CONNECTION_FORCED - shut?down");
}

static void blocked_is_told(void **state)
{
    (void)state;
    amqp_connection_blocked_t blocked = {.reason = mull__amqp_text("low on memory")};
    amqp_connection_unblocked_t unblocked = {0};
    start_tune_open(&p);
    method(&p, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
    method(&p, 0, AMQP_CONNECTION_UNBLOCKED_METHOD, &unblocked);
    assert_int_equal(feed(&p, sizeof p.in), 0);
    assert_string_equal(p.events, "blocked low on memory; blocked no more; ");
    peer_end_session(&p);
}

static void what_has_no_place_ends_it(void **state)
{
    (void)state;
    char large[9] = {1, 0, 1, 0, 3, 0, 0, 0, 0};
    start_tune_open(&p);
    content(&p, 1, "x", 1, 1);
    ends_with("a header where none was due");
    start_tune_open(&p);
    frame(&p, AMQP_FRAME_BODY, 1, "x", 1);
    ends_with("a body where none was due");
    start_tune_open(&p);
    deliver(&p, 1, 1);
    deliver(&p, 1, 2);
    ends_with("a method where content was due");
    start_tune_open(&p);
    deliver(&p, 2, 1);
    ends_with("a method on a channel that isn't open");
    start_tune_open(&p);
    channel_open_ok(&p, 65535);
    ends_with("a method on a channel that isn't open");
    start_tune_open(&p);
    open_ok(&p);
    ends_with("connection.open-ok at the wrong time");
    start_tune_open(&p);
    frame(&p, AMQP_FRAME_METHOD, 1, "\0\0", 2);
    ends_with("a method without a name");
    start_tune_open(&p);
    frame(&p, AMQP_FRAME_METHOD, 1, "\x7f\0\0\x1", 4);
    ends_with("a method that is unknown");
    start_tune_open(&p);
    deliver(&p, 1, 1);
    frame(&p, AMQP_FRAME_HEADER, 1, "\0\x3c", 2);
    ends_with("a header that isn't whole");
    start_tune_open(&p);
    frame(&p, 7, 0, "", 0);
    ends_with("a frame of an unknown kind");
    start_tune_open(&p);
    frame(&p, AMQP_FRAME_HEARTBEAT, 0, "", 0);
    p.in[p.in_size - 1] = 0;
    ends_with("a frame without its end");
    start_tune_open(&p);
    memcpy(p.in, large, sizeof large);
    p.in_size = sizeof large;
    ends_with("a frame that is larger than agreed");
}

/* The broker adds to headers what it did with a message, whatever size was agreed for frames. */
static void headers_may_be_larger_than_agreed(void **state)
{
    (void)state;
    static char header[MULL__AMQP_HEADER_MAX] = {0, 60};
    for (size_t step = 1000; step <= sizeof p.in; step *= 400) {
        start_tune_open(&p);
        deliver(&p, 1, 1);
        frame(&p, AMQP_FRAME_HEADER, 1, header, 300000);
        deliver(&p, 1, 2);
        content(&p, 1, "next", 4, 4);
        assert_int_equal(feed(&p, step), 0);
        assert_string_equal(p.events, "content 1 1 \"\"; content 1 2 \"next\"; ");
        peer_end_session(&p);
    }
    start_tune_open(&p);
    deliver(&p, 1, 1);
    put_be(p.in + p.in_size, AMQP_FRAME_HEADER, 1);
    put_be(p.in + p.in_size + 1, 1, 2);
    put_be(p.in + p.in_size + 3, sizeof header, 4);
    p.in_size += 8;
    ends_with("a frame that is larger than agreed");
}

static void a_body_may_not_be_longer_than_said(void **state)
{
    (void)state;
    start_tune_open(&p);
    deliver(&p, 1, 1);
    content(&p, 1, "12345", 5, 5);
    p.in_size -= 13; /* its body, for a longer one */
    frame(&p, AMQP_FRAME_BODY, 1, "123456", 6);
    ends_with("one that is too long");
    start_tune_open(&p);
    deliver(&p, 1, 1);
    char header[14] = {0, 60, 0, 0, 127};
    frame(&p, AMQP_FRAME_HEADER, 1, header, sizeof header);
    ends_with("a body of more than 512 MiB");
}

static void a_silent_server_is_left(void **state)
{
    (void)state;
    start_tune_open(&p);
    for (int i = 0; i < 4; i++)
        assert_int_equal(mull__amqp_session_tick(&p.session), 0);
    assert_int_equal(p.out_size, 8 * 2); /* one in each heartbeat, that is in two ticks */
    frame(&p, AMQP_FRAME_HEARTBEAT, 0, NULL, 0);
    assert_int_equal(feed(&p, 1), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(mull__amqp_session_tick(&p.session), 0);
    assert_int_equal(mull__amqp_session_tick(&p.session), MULL_EIO);
    assert_non_null(strstr(p.session.why, "silent for two heartbeats (60 s each)"));
    peer_end_session(&p);
}

/* ---- Messages out ---------------------------------------------------------------------------- */

static void headers_are_measured_before_a_byte_is_written(void **state)
{
    (void)state;
    static char value[131072];
    memset(value, 'x', sizeof value);
    amqp_basic_publish_t publish = {.exchange = amqp_empty_bytes,
                                    .routing_key = mull__amqp_text("q")};
    amqp_table_entry_t entry = {
        mull__amqp_text("h"),
        {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = {131072 - 8 - 12 - 2 - 4 - 7, value}}};
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_HEADERS_FLAG,
                                          .headers = {1, &entry}};
    start_tune_open(&p);
    assert_int_equal(mull__amqp_publish(&p.session, 1, &publish, &properties, amqp_empty_bytes,
                                        amqp_empty_bytes),
                     0);
    assert_true(p.out_size > 131072);
    p.out_size = 0;
    entry.value.value.bytes.len++;
    assert_int_equal(mull__amqp_publish(&p.session, 1, &publish, &properties, amqp_empty_bytes,
                                        amqp_empty_bytes),
                     MULL_EREFUSED);
    assert_int_equal(p.out_size, 0);
    assert_int_equal(p.session.state, MULL__AMQP_OPEN);
    peer_end_session(&p);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* nest writes so many tables within each other, and gives their size. */
static size_t nest(char *out, int depth)
{
    size_t size = 4;
    if (depth > 1) {
        out[4] = 1;
        out[5] = 'k';
        out[6] = 'F';
        size += 3 + nest(out + 7, depth - 1);
    }
    put_be(out, size - 4, 4);
    return size;
}

static void tables_within_tables_are_bounded(void **state)
{
    (void)state;
    static char bytes[8000];
    size_t at = 0, size = nest(bytes, MULL__AMQP_TABLE_DEPTH);
    assert_true(mull__amqp_table_sound(bytes, size, &at));
    assert_int_equal(at, size);
    for (size_t cut = 0; cut < size; cut++) {
        char *exact = malloc(cut + 1);
        memcpy(exact, bytes, cut);
        at = 0;
        assert_false(mull__amqp_table_sound(exact, cut, &at));
        free(exact);
    }
    size = nest(bytes, MULL__AMQP_TABLE_DEPTH + 1);
    at = 0;
    assert_false(mull__amqp_table_sound(bytes, size, &at));
}

static void a_table_too_deep_ends_the_login(void **state)
{
    (void)state;
    static char payload[2000];
    peer_begin_session(&p);
    put_be(payload, AMQP_CONNECTION_START_METHOD, 4);
    payload[4] = 0;
    payload[5] = 9;
    size_t size = 6 + nest(payload + 6, 100);
    frame(&p, AMQP_FRAME_METHOD, 0, payload, size + 8);
    ends_with("a table that isn't whole, or is too deep");
}

/* A client's own methods have tables, too, and nobody sends them to a client. */
static void a_method_that_no_client_is_sent_is_not_decoded(void **state)
{
    (void)state;
    static char payload[131000];
    enum { PER_LEVEL = 7, LEVELS = (sizeof payload - 20) / PER_LEVEL };
    start_tune_open(&p);
    put_be(payload, AMQP_QUEUE_DECLARE_METHOD, 4);
    size_t size = 4 + 2 + 1 + 1; /* no ticket, no name, no flags */
    size += nest(payload + size, LEVELS);
    frame(&p, AMQP_FRAME_METHOD, 1, payload, size);
    ends_with("a method that is unknown, or that no client is sent");
    peer_begin_session(&p);
    put_be(payload, AMQP_CONNECTION_START_OK_METHOD, 4);
    size = 4 + nest(payload + 4, LEVELS);
    frame(&p, AMQP_FRAME_METHOD, 0, payload, size);
    ends_with("a method that is unknown, or that no client is sent");
}

/* Both may close a channel at once: then each answers the other. */
static void a_channel_that_both_close_is_closed_once(void **state)
{
    (void)state;
    amqp_channel_close_t close = {.reply_code = 406, .reply_text = mull__amqp_text("too late")};
    amqp_channel_close_ok_t ok = {0};
    start_tune_open(&p);
    mull__amqp_channel_close(&p.session, 1);
    p.out_size = 0;
    method(&p, 1, AMQP_CHANNEL_CLOSE_METHOD, &close);
    assert_int_equal(feed(&p, 5), 0);
    assert_int_equal(p.out_size, 8 + 4); /* close-ok */
    assert_true(mull__amqp_channel_is_open(&p.session, 1));
    method(&p, 1, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
    assert_int_equal(feed(&p, 5), 0);
    assert_false(mull__amqp_channel_is_open(&p.session, 1));
    assert_string_equal(p.events, "method 1 0x140029; ");
    peer_end_session(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_method_that_no_client_is_sent_is_not_decoded),
        cmocka_unit_test(a_channel_that_both_close_is_closed_once),
        cmocka_unit_test(it_logs_in_and_opens),
        cmocka_unit_test(any_cut_gives_the_same),
        cmocka_unit_test(channels_may_alternate),
        cmocka_unit_test(a_body_without_memory_is_lost_alone),
        cmocka_unit_test(what_answers_may_be_no_broker),
        cmocka_unit_test(a_refused_login_says_what_to_look_at),
        cmocka_unit_test(blocked_is_told),
        cmocka_unit_test(what_has_no_place_ends_it),
        cmocka_unit_test(headers_may_be_larger_than_agreed),
        cmocka_unit_test(a_body_may_not_be_longer_than_said),
        cmocka_unit_test(a_silent_server_is_left),
        cmocka_unit_test(headers_are_measured_before_a_byte_is_written),
        cmocka_unit_test(tables_within_tables_are_bounded),
        cmocka_unit_test(a_table_too_deep_ends_the_login),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
