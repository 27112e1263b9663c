/* stream.c: see stream.h.
 *
 *   LOOKING_UP ─> CONNECTING ─> SHAKING ─> OPEN ─> FINISHING
 *                   one IP        TLS
 *                   after the other
 *
 * and from each of them to ENDED, by mull__stream_fail. Its handles are closed then, and it is gone
 * when nothing of it is left in the loop. */
#include "stream_internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

/* ---- Its end --------------------------------------------------------------------------------- */

/* one_less: a handle is closed; the last one frees the stream. */
static void one_less(mull__stream *s)
{
    if (--s->handles > 0)
        return;
    const mull__stream_calls *calls = s->calls;
    void *data = s->data;
    mull_allocator allocator = s->allocator;
    mull__tls_session_free(s->tls);
    mull__bytes_free(&s->plain, &allocator);
    mull__bytes_free(&s->out, &allocator);
    if (s->found)
        freeaddrinfo(s->found);
    mull__free(&allocator, s);
    calls->gone(data);
}

static void on_limit_closed(uv_handle_t *limit)
{
    one_less(limit->data);
}

static void on_turn_closed(uv_handle_t *turn)
{
    mull__stream *s = turn->data;
    s->calls->ended(s->data, s->why);
    one_less(s);
}

static void on_named_closed(uv_handle_t *named)
{
    one_less(named->data);
}

/* forget_lookup ends one that is under way, or done; nobody waits for it. */
static void forget_lookup(mull__stream *s)
{
    if (!s->lookup)
        return;
    mull__resolve_forget(s->lookup);
    s->lookup = NULL;
    uv_close((uv_handle_t *)&s->named, on_named_closed);
}

static void connect_next(mull__stream *s);

static void on_poll_closed(uv_handle_t *poll)
{
    mull__stream *s = poll->data;
    if (s->state == MULL__STREAM_CONNECTING)
        connect_next(s);
    one_less(s);
}

static void close_socket(mull__stream *s)
{
    uv_close((uv_handle_t *)&s->poll, on_poll_closed);
    close(s->fd);
    s->fd = -1;
    s->events = 0;
}

void mull__stream_say(mull__stream *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->why, sizeof s->why, format, arguments);
    va_end(arguments);
}

void mull__stream_say_error(mull__stream *s, int error)
{
    uv_strerror_r(uv_translate_sys_error(error), s->why, sizeof s->why);
}

void mull__stream_fail(mull__stream *s)
{
    if (s->state == MULL__STREAM_ENDED)
        return;
    s->state = MULL__STREAM_ENDED;
    forget_lookup(s);
    if (s->fd >= 0) {
        mull__stream_push(s);
        close_socket(s);
    }
    uv_close((uv_handle_t *)&s->limit, on_limit_closed);
    uv_close((uv_handle_t *)&s->turn, on_turn_closed);
}

/* ---- What is waited for ---------------------------------------------------------------------- */

static void on_limit(uv_timer_t *timer);
static void on_turn(uv_idle_t *turn);
static void on_poll(uv_poll_t *poll, int status, int events);

void mull__stream_limit(mull__stream *s, int64_t limit_ms)
{
    uv_timer_start(&s->limit, on_limit, limit_ms > 0 ? (uint64_t)limit_ms : 1, 0);
}

/* A loop with an idle handle doesn't wait, from wherever that is started. */
void mull__stream_at_turns_end(mull__stream *s)
{
    uv_idle_start(&s->turn, on_turn);
}

/* Each change costs two calls of the kernel. */
void mull__stream_watch(mull__stream *s)
{
    if (s->fd < 0)
        return;
    int events = mull__stream_wants_bytes(s) ? UV_READABLE : 0;
    if (s->blocked || s->state == MULL__STREAM_CONNECTING)
        events |= UV_WRITABLE;
    if (events == s->events)
        return;
    s->events = events;
    uv_poll_start(&s->poll, events, on_poll);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static void set_options(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* connect_to begins to connect to one IP address, and gives the error. */
static int connect_to(mull__stream *s, const struct addrinfo *ip)
{
    int fd = socket(ip->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    set_options(fd);
    int error = connect(fd, ip->ai_addr, ip->ai_addrlen) == 0 || errno == EINPROGRESS ? 0 : errno;
    if (!error)
        error = -uv_poll_init(s->loop, &s->poll, fd);
    if (error) {
        close(fd);
        return error;
    }
    s->poll.data = s;
    s->handles++;
    s->fd = fd;
    return 0;
}

/* connect_next goes on with the next IP address. What is left of the time is for all that are left,
 * so that one that doesn't answer leaves some to the others. */
static void connect_next(mull__stream *s)
{
    while (s->next) {
        const struct addrinfo *ip = s->next;
        int64_t remaining = (int64_t)(s->deadline - uv_now(s->loop));
        mull__stream_limit(s, remaining / (int64_t)s->left);
        s->next = ip->ai_next;
        s->left--;
        int error = connect_to(s, ip);
        if (!error) {
            mull__stream_watch(s);
            return;
        }
        mull__stream_say_error(s, error);
    }
    mull__stream_fail(s);
}

/* is_itself: a connection to a port of this machine that nobody listens at can get this very port
 * as its own, and then talks to itself. */
static int is_itself(int fd)
{
    struct sockaddr_storage own, other;
    socklen_t own_size = sizeof own, other_size = sizeof other;
    return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&other, &other_size) == 0 && own_size == other_size &&
           memcmp(&own, &other, own_size) == 0;
}

static void connected(mull__stream *s)
{
    int error = mull__stream_pending_error(s->fd);
    if (!error && is_itself(s->fd))
        error = ECONNREFUSED;
    if (error) {
        mull__stream_say_error(s, error);
        close_socket(s); /* and on to the next */
    } else if (s->tls) {
        s->state = MULL__STREAM_SHAKING;
        mull__stream_limit(s, (int64_t)(s->deadline - uv_now(s->loop)));
        mull__stream_shake(s);
    } else {
        mull__stream_opened(s);
    }
}

/* ---- The name -------------------------------------------------------------------------------- */

/* looked_up goes on with what was found; nothing: `why` is written. */
static void looked_up(mull__stream *s)
{
    for (const struct addrinfo *ip = s->found; ip; ip = ip->ai_next)
        s->left++;
    s->next = s->found;
    s->state = MULL__STREAM_CONNECTING;
    connect_next(s);
}

static void on_named(uv_async_t *named)
{
    mull__stream *s = named->data;
    int status = mull__resolve_end(s->lookup, &s->found);
    if (status == EAI_INPROGRESS)
        return;
    s->lookup = NULL;
    uv_close((uv_handle_t *)named, on_named_closed);
    if (status != 0)
        mull__stream_say(s, "its name can't be looked up: %s", gai_strerror(status));
    looked_up(s);
}

/* look_up leaves a name to a thread; what is a number already needs none. */
static void look_up(mull__stream *s)
{
    mull__stream_say_error(s, ENOMEM);
    s->found = mull__resolve_number(s->address.host, s->address.port);
    if (!s->found && uv_async_init(s->loop, &s->named, on_named) == 0) {
        s->named.data = s;
        s->handles++;
        s->lookup = mull__resolve_begin(s->address.host, s->address.port, &s->named);
        if (!s->lookup)
            uv_close((uv_handle_t *)&s->named, on_named_closed);
    }
    if (!s->lookup)
        mull__stream_at_turns_end(s);
}

/* ---- Calls of the loop ----------------------------------------------------------------------- */

static void on_limit(uv_timer_t *timer)
{
    mull__stream *s = timer->data;
    long long connect_ms = s->connect_ms;
    if (s->state == MULL__STREAM_CONNECTING) {
        mull__stream_say(s, "no connection within %lld ms", connect_ms);
        close_socket(s); /* and on to the next */
        return;
    }
    if (s->state == MULL__STREAM_LOOKING_UP)
        mull__stream_say(s, "its name wasn't looked up within %lld ms", connect_ms);
    else if (s->state == MULL__STREAM_SHAKING)
        mull__stream_say(s, "no TLS handshake within %lld ms", connect_ms);
    mull__stream_fail(s);
}

static void on_turn(uv_idle_t *turn)
{
    mull__stream *s = turn->data;
    uv_idle_stop(turn);
    if (s->state == MULL__STREAM_LOOKING_UP)
        looked_up(s);
    else
        mull__stream_io_turn(s);
}

/* on_poll: where the connection is broken libuv says so by a status, and waits no more. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    mull__stream *s = poll->data;
    if (status < 0)
        s->events = 0;
    if (s->state == MULL__STREAM_CONNECTING)
        connected(s);
    else
        mull__stream_io_event(s, events, status < 0);
    mull__stream_watch(s);
}

/* ---- What stream.h has besides --------------------------------------------------------------- */

int mull__stream_open(mull__stream **out, const mull__stream_options *options,
                      const mull__stream_calls *calls, void *data)
{
    mull__stream *s = mull__zalloc(options->allocator, 1, sizeof *s);
    if (!s)
        return MULL_ENOMEM;
    s->allocator = *options->allocator;
    s->loop = options->loop;
    s->address = options->address;
    s->calls = calls;
    s->data = data;
    s->fd = -1;
    if (options->tls) {
        s->tls = mull__tls_session_new(options->tls, options->allocator, options->address.host);
        if (!s->tls) {
            mull__free(options->allocator, s);
            return MULL_ENOMEM;
        }
    }
    uv_timer_init(s->loop, &s->limit);
    uv_idle_init(s->loop, &s->turn);
    s->limit.data = s->turn.data = s;
    s->handles = 2;
    uv_update_time(s->loop);
    s->connect_ms = options->connect_ms;
    s->deadline = uv_now(s->loop) + (uint64_t)options->connect_ms;
    mull__stream_limit(s, options->connect_ms);
    look_up(s);
    *out = s;
    return 0;
}

void mull__stream_end(mull__stream *s, const char *why)
{
    if (s->state == MULL__STREAM_ENDED)
        return;
    mull__stream_say(s, "%s", why);
    mull__stream_fail(s);
}

void mull__stream_finish(mull__stream *s, int64_t limit_ms)
{
    if (s->state != MULL__STREAM_OPEN || s->broken || limit_ms <= 0) {
        mull__stream_fail(s);
        return;
    }
    s->state = MULL__STREAM_FINISHING;
    mull__stream_limit(s, limit_ms);
    if (!s->blocked)
        mull__stream_write_out(s);
    mull__stream_watch(s);
}
