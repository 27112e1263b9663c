/* link.c: links over plain TCP, with servers that do everything a server may do. */
#include "watcher.h"

/* ---- A link that is up ----------------------------------------------------------------------- */

typedef struct pair {
    server s;
    watcher w;
    int fd;
} pair;

static void connect_pair(pair *p)
{
    *p = (pair){.fd = -1};
    open_server(&p->s, "127.0.0.1");
    mull__link_options options = link_to(&p->s.address, 1);
    watch(&p->w, &options);
    p->fd = accept_client(&p->s);
    await(p->w.ups == 1);
}

static void end_pair(pair *p)
{
    close(p->fd);
    close_server(&p->s);
    end_link(&p->w, 0);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void test_bytes_in_and_out(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    char bytes[5];
    open_server(&s, "127.0.0.1");
    mull__link_options options = link_to(&s.address, 1);
    watch(&w, &options);
    assert_int_equal(mull__link_write(w.link, "early", 5), MULL_EDOWN);
    int fd = accept_client(&s);
    await(w.ups == 1);
    assert_int_equal(mull__link_write(w.link, "he", 2), 0);
    assert_int_equal(mull__link_write(w.link, "", 0), 0);
    assert_int_equal(mull__link_write(w.link, "llo", 3), 0);
    assert_int_equal(mull__link_unsent(w.link), 5);
    assert_int_equal(recv(fd, bytes, 5, 0), -1); /* nothing before the turn's end */
    assert_int_equal(read_all(fd, bytes, 5), 5);
    assert_memory_equal(bytes, "hello", 5);
    await(w.writables == 1);
    assert_int_equal(mull__link_unsent(w.link), 0);
    assert_int_equal(send(fd, "good day", 8, 0), 8);
    await(w.size == 8);
    assert_string_equal(w.got, "good day");
    assert_int_equal(w.downs, 0);
    end_link(&w, 0);
    close(fd);
    close_server(&s);
}

static void test_flush_writes_at_once_and_tells_later(void **state)
{
    (void)state;
    pair p;
    char bytes[8];
    connect_pair(&p);
    mull__link_write(p.w.link, "now", 3);
    mull__link_flush(p.w.link);
    assert_int_equal(mull__link_unsent(p.w.link), 0);
    assert_int_equal(recv(p.fd, bytes, sizeof bytes, 0), 3);
    assert_int_equal(p.w.writables, 0);
    await(p.w.writables == 1);
    send(p.fd, "x", 1, 0);
    await(p.w.size == 1);
    assert_int_equal(p.w.writables, 1); /* once */
    end_pair(&p);
}

static void write_once_more(watcher *w, const char *call)
{
    if ((strcmp(call, "writable") == 0 || strcmp(call, "read") == 0) && w->number-- > 0)
        mull__link_write(w->link, "more", 4);
}

/* Nothing else turns the loop: what is written in a call still goes out. */
static void test_writes_in_its_calls(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    p.w.on_call = write_once_more;
    p.w.number = 5;
    uv_timer_stop(&tick);
    mull__link_write(p.w.link, "more", 4);
    await(p.w.writables == 6);
    p.w.number = 1;
    send(p.fd, "x", 1, 0);
    await(p.w.writables == 7);
    uv_timer_start(&tick, on_tick, 1, 1);
    end_pair(&p);
}

enum { MUCH = 8 << 20 };

static char *much(void)
{
    char *bytes = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    return bytes;
}

static void test_a_server_that_reads_slowly(void **state)
{
    (void)state;
    pair p;
    char *sent = much(), *got = malloc(MUCH);
    connect_pair(&p);
    assert_int_equal(mull__link_write(p.w.link, sent, MUCH), 0);
    mull__link_flush(p.w.link);
    size_t unsent = mull__link_unsent(p.w.link);
    assert_in_range(unsent, 1, MUCH - 1);
    uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(p.w.writables, 0);
    assert_int_equal(mull__link_write(p.w.link, "!", 1), 0); /* behind what waits */
    assert_int_equal(read_all(p.fd, got, MUCH / 2), MUCH / 2);
    assert_true(mull__link_unsent(p.w.link) < unsent);
    assert_int_equal(read_all(p.fd, got + MUCH / 2, MUCH / 2), MUCH / 2);
    assert_memory_equal(sent, got, MUCH);
    assert_int_equal(read_all(p.fd, got, 1), 1);
    assert_int_equal(got[0], '!');
    await(p.w.writables == 1);
    assert_int_equal(mull__link_unsent(p.w.link), 0);
    free(sent);
    free(got);
    end_pair(&p);
}

static void test_much_from_the_server(void **state)
{
    (void)state;
    pair p;
    char *sent = much();
    size_t out = 0;
    connect_pair(&p);
    while (p.w.size < MUCH) {
        ssize_t size = out < MUCH ? send(p.fd, sent + out, MUCH - out, MSG_NOSIGNAL) : 0;
        out += size > 0 ? (size_t)size : 0;
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_memory_equal(p.w.got, sent, MUCH);
    free(sent);
    end_pair(&p);
}

static void stop_reading(watcher *w, const char *call)
{
    if (strcmp(call, "read") == 0)
        mull__link_reads(w->link, 0);
}

static void test_reading_stops_and_goes_on(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    p.w.on_call = stop_reading;
    send(p.fd, "one", 3, 0);
    await(p.w.size == 3);
    send(p.fd, "two", 3, 0);
    for (int turn = 0; turn < 20; turn++)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(p.w.size, 3);
    mull__link_reads(p.w.link, 1);
    assert_int_equal(p.w.size, 3);
    await(p.w.size == 6);
    close(p.fd); /* not noticed ... */
    for (int turn = 0; turn < 20; turn++)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(p.w.downs, 0);
    mull__link_reads(p.w.link, 1); /* ... before this */
    await(p.w.downs == 1);
    p.fd = accept_client(&p.s);
    await(p.w.ups == 2);
    send(p.fd, "read", 4, 0); /* a new connection begins with reading on */
    await(p.w.size == 10);
    end_pair(&p);
}

/* ---- Connections that are lost --------------------------------------------------------------- */

static void test_closed_by_the_server(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    send(p.fd, "bye", 3, 0);
    close(p.fd);
    await(p.w.downs == 1);
    assert_string_equal(p.w.got, "bye");
    assert_why(&p.w, &p.s, "the server closed the connection");
    assert_int_equal(mull__link_write(p.w.link, "x", 1), MULL_EDOWN);
    p.fd = accept_client(&p.s);
    await(p.w.ups == 2);
    assert_int_equal(p.w.downs, 1);
    end_pair(&p);
}

static void test_reset_by_the_server(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    reset(p.fd);
    await(p.w.downs == 1);
    assert_why(&p.w, &p.s, "connection reset by peer");
    p.fd = accept_client(&p.s);
    await(p.w.ups == 2);
    end_pair(&p);
}

static void test_half_closed_by_the_server(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    shutdown(p.fd, SHUT_WR);
    await(p.w.downs == 1);
    assert_why(&p.w, &p.s, "the server closed the connection");
    assert_true(at_end(p.fd));
    end_pair(&p);
}

/* The server says why it closes; our writes fail before that is read. Neither is what it said lost,
 * nor does SIGPIPE end the test. */
static void test_last_words(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    send(p.fd, "no more than 10 channels", 24, 0);
    close(p.fd);
    for (int i = 0; i < 3; i++) {
        mull__link_write(p.w.link, "data", 4);
        mull__link_flush(p.w.link);
    }
    assert_int_equal(mull__link_write(p.w.link, "data", 4), MULL_EDOWN);
    assert_int_equal(p.w.downs, 0);
    await(p.w.downs == 1);
    assert_string_equal(p.w.got, "no more than 10 channels");
    p.fd = accept_client(&p.s);
    await(p.w.ups == 2);
    end_pair(&p);
}

static void test_lost_while_not_reading(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    mull__link_reads(p.w.link, 0);
    close(p.fd);
    while (p.w.downs == 0) {
        mull__link_write(p.w.link, "data", 4);
        uv_run(&loop, UV_RUN_ONCE);
    }
    p.fd = accept_client(&p.s);
    await(p.w.ups == 2);
    end_pair(&p);
}

static void test_reset_while_not_reading_and_much_unsent(void **state)
{
    (void)state;
    pair p;
    char *bytes = much();
    connect_pair(&p);
    mull__link_reads(p.w.link, 0);
    mull__link_write(p.w.link, bytes, MUCH);
    mull__link_flush(p.w.link);
    reset(p.fd);
    await(p.w.downs == 1);
    assert_why(&p.w, &p.s, "connection reset by peer");
    assert_int_equal(mull__link_unsent(p.w.link), 0);
    free(bytes);
    p.fd = accept_client(&p.s);
    await(p.w.ups == 2);
    end_pair(&p);
}

static void test_cut(void **state)
{
    (void)state;
    pair p;
    char bytes[8];
    connect_pair(&p);
    int before = p.fd;
    mull__link_write(p.w.link, "close-ok", 8);
    mull__link_cut(p.w.link, "no heartbeat for 60 s");
    mull__link_cut(p.w.link, "not the first reason");
    assert_int_equal(p.w.downs, 0);
    assert_int_equal(mull__link_write(p.w.link, "x", 1), MULL_EDOWN);
    assert_int_equal(send(before, "late", 4, 0), 4);
    await(p.w.downs == 1);
    assert_why(&p.w, &p.s, "no heartbeat for 60 s");
    assert_int_equal(p.w.size, 0);
    assert_int_equal(read_all(before, bytes, 8), 8);
    close(before);
    p.fd = accept_client(&p.s);
    await(p.w.ups == 2);
    end_pair(&p);
}

static void cut_in_call(watcher *w, const char *call)
{
    if (strcmp(call, "read") == 0 || strcmp(call, "writable") == 0)
        mull__link_cut(w->link, call);
}

static void test_cut_in_its_calls(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    p.w.on_call = cut_in_call;
    send(p.fd, "x", 1, 0);
    await(p.w.downs == 1);
    assert_why(&p.w, &p.s, "read");
    close(p.fd);
    p.fd = accept_client(&p.s);
    await(p.w.ups == 2);
    mull__link_write(p.w.link, "x", 1);
    await(p.w.downs == 2);
    assert_why(&p.w, &p.s, "writable");
    p.w.on_call = NULL;
    end_pair(&p);
}

static void test_cut_between_connections(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    bind_server(&s, "127.0.0.1");
    mull__link_options options = link_to(&s.address, 1);
    options.first_wait_ms = options.longest_wait_ms = PLENTY_MS;
    watch(&w, &options);
    mull__link_cut(w.link, "nothing there yet");
    await(w.downs == 1);
    assert_why(&w, &s, "connection refused");
    mull__link_cut(w.link, "it waits");
    for (int turn = 0; turn < 20; turn++)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(w.downs, 1);
    end_link(&w, PLENTY_MS);
    close_server(&s);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void test_close_writes_what_is_unsent(void **state)
{
    (void)state;
    pair p;
    char *sent = much(), *got = malloc(MUCH + 1);
    connect_pair(&p);
    send(p.fd, "unread", 6, 0);
    mull__link_reads(p.w.link, 0);
    mull__link_write(p.w.link, sent, MUCH);
    mull__link_close(p.w.link, PLENTY_MS, on_closed);
    assert_int_equal(read_all(p.fd, got, MUCH + 1), MUCH); /* and its end */
    assert_memory_equal(sent, got, MUCH);
    uv_run(&loop, UV_RUN_ONCE);
    assert_false(p.w.closed); /* until the server has closed its side */
    send(p.fd, "ignored", 7, 0);
    close(p.fd);
    await(p.w.closed);
    assert_int_equal(p.w.size, 0);
    assert_int_equal(p.w.downs, 0);
    close_server(&p.s);
    free(sent);
    free(got);
}

static void test_close_has_a_limit(void **state)
{
    (void)state;
    pair p;
    char *sent = much();
    connect_pair(&p);
    mull__link_write(p.w.link, sent, MUCH);
    mull__link_close(p.w.link, 20, on_closed);
    await(p.w.closed); /* nobody reads */
    close(p.fd);
    close_server(&p.s);
    connect_pair(&p);
    mull__link_write(p.w.link, sent, MUCH);
    end_link(&p.w, 0);
    close(p.fd);
    close_server(&p.s);
    free(sent);
}

static void test_close_where_the_server_resets(void **state)
{
    (void)state;
    pair p;
    char *sent = much();
    connect_pair(&p);
    mull__link_write(p.w.link, sent, MUCH);
    mull__link_close(p.w.link, PLENTY_MS, on_closed);
    uv_run(&loop, UV_RUN_ONCE);
    reset(p.fd);
    await(p.w.closed);
    close_server(&p.s);
    free(sent);
}

static const char *closes_in;

static void close_in_call(watcher *w, const char *call)
{
    if (strcmp(call, closes_in) == 0)
        mull__link_close(w->link, 0, on_closed);
}

static void test_close_in_its_calls(void **state)
{
    (void)state;
    static const char *const calls[] = {"up", "read", "writable", "down"};
    for (size_t i = 0; i < 4; i++) {
        server s;
        watcher w = {.on_call = close_in_call};
        closes_in = calls[i];
        open_server(&s, "127.0.0.1");
        mull__link_options options = link_to(&s.address, 1);
        watch(&w, &options);
        int fd = accept_client(&s);
        send(fd, "x", 1, 0);
        if (strcmp(closes_in, "writable") == 0) {
            await(w.ups == 1);
            mull__link_write(w.link, "x", 1);
        } else if (strcmp(closes_in, "down") == 0) {
            shutdown(fd, SHUT_WR);
        }
        await(w.closed);
        close(fd);
        close_server(&s);
        free(w.got);
    }
}

static void test_close_at_once_and_while_it_waits(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    bind_server(&s, "127.0.0.1");
    mull__link_options options = link_to(&s.address, 1);
    options.first_wait_ms = options.longest_wait_ms = PLENTY_MS;
    watch(&w, &options);
    end_link(&w, PLENTY_MS);
    w = (watcher){.ups = 0};
    watch(&w, &options);
    await(w.downs == 1);
    end_link(&w, PLENTY_MS);
    close_server(&s);
}

static void test_close_after_a_cut(void **state)
{
    (void)state;
    pair p;
    connect_pair(&p);
    mull__link_cut(p.w.link, "why");
    end_link(&p.w, PLENTY_MS);
    assert_int_equal(p.w.downs, 0);
    close(p.fd);
    close_server(&p.s);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* exchange has a link do everything once. 0: it couldn't be made. */
static int exchange(server *s)
{
    watcher w = {.ups = 0};
    char bytes[4];
    mull__link_options options = link_to(&s->address, 1);
    int status = mull__link_open(&w.link, &options, &watcher_calls, &w);
    if (status) {
        assert_int_equal(status, MULL_ENOMEM);
        return 0;
    }
    int fd = accept_client(s);
    await(w.ups == 1);
    while (mull__link_write(w.link, "ping", 4) == MULL_ENOMEM)
        continue;
    assert_int_equal(read_all(fd, bytes, 4), 4);
    send(fd, "pong", 4, 0);
    await(w.size == 4);
    end_link(&w, 0);
    close(fd);
    return 1;
}

static void test_no_memory(void **state)
{
    (void)state;
    server s;
    int made = 0;
    open_server(&s, "127.0.0.1");
    assert_true(exchange(&s));
    long needed = counter.asked;
    assert_in_range(needed, 4, 100);
    for (long nth = 1; nth <= needed; nth++) {
        counter.asked = 0;
        counter.fail_at = nth;
        made += exchange(&s);
        assert_true(counter.asked >= nth);
    }
    assert_int_equal(made, needed - 2); /* the link, and its addresses */
    counter.fail_at = 0;
    close_server(&s);
}

static void test_no_memory_for_a_while(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    open_server(&s, "127.0.0.1");
    mull__link_options options = link_to(&s.address, 1);
    watch(&w, &options);
    counter.fail_at = 1;
    counter.fail_for = FOR_GOOD;
    await(w.downs == 3);
    assert_why(&w, &s, "out of memory");
    counter.fail_at = 0;
    int fd = accept_client(&s);
    await(w.ups == 1);
    end_link(&w, 0);
    close(fd);
    close_server(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_TEST(test_bytes_in_and_out),
        NET_TEST(test_flush_writes_at_once_and_tells_later),
        NET_TEST(test_writes_in_its_calls),
        NET_TEST(test_a_server_that_reads_slowly),
        NET_TEST(test_much_from_the_server),
        NET_TEST(test_reading_stops_and_goes_on),
        NET_TEST(test_closed_by_the_server),
        NET_TEST(test_reset_by_the_server),
        NET_TEST(test_half_closed_by_the_server),
        NET_TEST(test_last_words),
        NET_TEST(test_lost_while_not_reading),
        NET_TEST(test_reset_while_not_reading_and_much_unsent),
        NET_TEST(test_cut),
        NET_TEST(test_cut_in_its_calls),
        NET_TEST(test_cut_between_connections),
        NET_TEST(test_close_writes_what_is_unsent),
        NET_TEST(test_close_has_a_limit),
        NET_TEST(test_close_where_the_server_resets),
        NET_TEST(test_close_in_its_calls),
        NET_TEST(test_close_at_once_and_while_it_waits),
        NET_TEST(test_close_after_a_cut),
        NET_TEST(test_no_memory),
        NET_TEST(test_no_memory_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
