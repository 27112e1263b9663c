/* watcher.h: a link whose calls are written down, on a loop of the test's; and the other side, a
 * socket that the test reads and writes itself. A test turns the loop until what it waits for has
 * happened. */
#ifndef SPEC_WATCHER_H
#define SPEC_WATCHER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "counting_allocator.h"
#include "net/link.h"

enum { WATCHDOG_S = 120, PLENTY_MS = 60000 };

/* ---- The loop -------------------------------------------------------------------------------- */

static uv_loop_t loop;
static uv_timer_t tick; /* turns the loop, so that what is awaited is looked at */
static counting_allocator counter;
static mull_allocator allocator;

static inline void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static inline int set_up(void **state)
{
    (void)state;
    alarm(WATCHDOG_S);
    counter = (counting_allocator){.out = 0};
    allocator = counting_allocator_ops(&counter);
    uv_loop_init(&loop);
    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, on_tick, 1, 1);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(counter.out, 0);
    return uv_loop_close(&loop);
}

#define NET_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* await turns the loop until it is true; the watchdog ends a wait in vain. */
#define await(condition)                                                                           \
    while (!(condition))                                                                           \
    uv_run(&loop, UV_RUN_ONCE)

/* ---- A link ---------------------------------------------------------------------------------- */

typedef struct watcher {
    mull__net_link *link;
    int ups, downs, writables, closed;
    char why[1024]; /* of the last down */
    char *got;      /* all that was read, and a NUL */
    size_t size;
    void (*on_call)(struct watcher *w, const char *call); /* what a test does there */
    int64_t number;
} watcher;

static inline void call_test(watcher *w, const char *call)
{
    if (w->on_call)
        w->on_call(w, call);
}

static inline void on_up(void *data)
{
    watcher *w = data;
    w->ups++;
    call_test(w, "up");
}

static inline void on_read(void *data, const char *bytes, size_t size)
{
    watcher *w = data;
    assert_true(size > 0);
    w->got = realloc(w->got, w->size + size + 1);
    memcpy(w->got + w->size, bytes, size);
    w->size += size;
    w->got[w->size] = '\0';
    call_test(w, "read");
}

static inline void on_down(void *data, const char *why)
{
    watcher *w = data;
    w->downs++;
    snprintf(w->why, sizeof w->why, "%s", why);
    call_test(w, "down");
}

static inline void on_writable(void *data)
{
    watcher *w = data;
    w->writables++;
    call_test(w, "writable");
}

static inline void on_closed(void *data)
{
    watcher *w = data;
    assert_int_equal(w->closed, 0);
    w->closed = 1;
}

static const mull__link_calls watcher_calls = {on_up, on_read, on_down, on_writable};

static inline mull__link_options link_to(const mull__link_address *addresses, size_t count)
{
    return (mull__link_options){.loop = &loop,
                                .allocator = &allocator,
                                .addresses = addresses,
                                .address_count = count,
                                .connect_ms = PLENTY_MS,
                                .first_wait_ms = 1,
                                .longest_wait_ms = 4,
                                .seed = 1};
}

static inline void watch(watcher *w, const mull__link_options *options)
{
    assert_int_equal(mull__link_open(&w->link, options, &watcher_calls, w), 0);
}

/* end_link closes a link, and says whether that took a turn. */
static inline void end_link(watcher *w, int64_t flush_ms)
{
    mull__link_close(w->link, flush_ms, on_closed);
    assert_false(w->closed);
    await(w->closed);
    free(w->got);
    w->got = NULL;
}

/* ---- The other side -------------------------------------------------------------------------- */

typedef struct server {
    int fd, port;
    char port_text[8];
    mull__link_address address;
} server;

/* bind_server takes a free port of an address ("127.0.0.1", "::1"), at which nobody listens yet. */
static inline void bind_server(server *s, const char *host)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int is_six = strchr(host, ':') != NULL;
    struct sockaddr *address = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t size = is_six ? sizeof six : sizeof four;
    s->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, address, size), 0);
    assert_int_equal(getsockname(s->fd, address, &size), 0);
    s->port = ntohs(is_six ? six.sin6_port : four.sin_port);
    snprintf(s->port_text, sizeof s->port_text, "%d", s->port);
    s->address = (mull__link_address){host, s->port_text};
}

static inline void open_server(server *s, const char *host)
{
    bind_server(s, host);
    assert_int_equal(listen(s->fd, 16), 0);
}

static inline void close_server(server *s)
{
    close(s->fd);
}

/* accept_client turns the loop until there is one. */
static inline int accept_client(server *s)
{
    int fd;
    await((fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
    return fd;
}

/* read_all turns the loop until `size` bytes have come, or the end. */
static inline size_t read_all(int fd, char *bytes, size_t size)
{
    size_t got = 0;
    while (got < size) {
        ssize_t more = recv(fd, bytes + got, size - got, 0);
        if (more == 0 || (more < 0 && errno != EAGAIN))
            break;
        if (more < 0)
            uv_run(&loop, UV_RUN_ONCE);
        else
            got += (size_t)more;
    }
    return got;
}

/* at_end turns the loop until the link has closed its side in order. */
static inline int at_end(int fd)
{
    char byte;
    return read_all(fd, &byte, 1) == 0 && recv(fd, &byte, 1, 0) == 0;
}

/* reset closes with an RST. */
static inline void reset(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* expected_why is "HOST:PORT: what". */
static inline void assert_why(const watcher *w, const server *s, const char *what)
{
    char expected[512];
    const char *format = strchr(s->address.host, ':') ? "[%s]:%s: %s" : "%s:%s: %s";
    snprintf(expected, sizeof expected, format, s->address.host, s->port_text, what);
    assert_string_equal(w->why, expected);
}

#endif
