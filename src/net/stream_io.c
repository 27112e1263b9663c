/* stream_io.c: bytes in and out of a stream, see stream_internal.h. */
#include "stream_internal.h"

#include <errno.h>
#include <sys/socket.h>

enum {
    READS_A_TURN = 8,          /* then others of the loop have theirs */
    ENCRYPTED_AHEAD = 1 << 18, /* so that what waits isn't in memory twice */
    LAST_WORDS_MS = 1000       /* how long what a server said last may take, once writing fails */
};

/* ---- Errors and readiness ----------------------------------------------------------------------
 */

int mull__stream_pending_error(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

int mull__stream_wants_bytes(const mull__stream *s)
{
    return s->state == MULL__STREAM_SHAKING || s->state == MULL__STREAM_FINISHING ||
           (s->state == MULL__STREAM_OPEN && s->reading);
}

/* ---- Writing --------------------------------------------------------------------------------- */

size_t mull__stream_unsent(const mull__stream *s)
{
    return mull__bytes_size(&s->plain) + mull__bytes_size(&s->out);
}

/* encrypt puts what TLS has to say, and some of what is to be written, into `out`. */
static int encrypt(mull__stream *s)
{
    size_t size = mull__bytes_size(&s->plain);
    if (size > ENCRYPTED_AHEAD)
        size = ENCRYPTED_AHEAD;
    if (size > 0) {
        if (mull__tls_session_write(s->tls, s->plain.start + s->plain.first, size) != 0)
            return EPROTO;
        mull__bytes_drop(&s->plain, &s->allocator, size);
    }
    return mull__tls_session_take(s->tls, &s->out, &s->allocator) != 0 ? ENOMEM : 0;
}

/* push writes until all is out, which leaves `unsent` at 0, or the kernel takes no more, which sets
 * `blocked`; else it gives the error. */
int mull__stream_push(mull__stream *s)
{
    s->blocked = 0;
    for (;;) {
        int error = s->tls && mull__bytes_size(&s->out) == 0 ? encrypt(s) : 0;
        size_t size = mull__bytes_size(&s->out);
        if (error || size == 0)
            return error;
        ssize_t sent = send(s->fd, s->out.start + s->out.first, size, MSG_NOSIGNAL);
        if (sent >= 0) {
            mull__bytes_drop(&s->out, &s->allocator, (size_t)sent);
        } else if (errno == EAGAIN) {
            s->blocked = 1;
            return 0;
        } else if (errno != EINTR) {
            return errno;
        }
    }
}

/* write_failed: what the server said before it closed is still to be read; it is the reason. */
static void write_failed(mull__stream *s, int error)
{
    mull__stream_say_error(s, error);
    if (s->state != MULL__STREAM_OPEN || !s->reading) {
        mull__stream_fail(s);
        return;
    }
    s->broken = 1;
    mull__bytes_free(&s->plain, &s->allocator);
    mull__bytes_free(&s->out, &s->allocator);
    mull__stream_limit(s, LAST_WORDS_MS);
}

/* finish_step closes our side once all is out. */
static void finish_step(mull__stream *s)
{
    if (mull__stream_unsent(s) > 0 || s->shut_down)
        return;
    if (s->tls && !s->said_end) {
        s->said_end = 1;
        mull__tls_session_end(s->tls);
        int error = mull__stream_push(s);
        if (error)
            write_failed(s, error);
        if (s->state == MULL__STREAM_ENDED || s->blocked)
            return;
    }
    shutdown(s->fd, SHUT_WR);
    s->shut_down = 1;
}

void mull__stream_write_out(mull__stream *s)
{
    int error = s->broken ? 0 : mull__stream_push(s);
    if (error)
        write_failed(s, error);
    if (s->state == MULL__STREAM_FINISHING)
        finish_step(s);
    mull__stream_watch(s);
}

/* tell_writable may call back. */
static void tell_writable(mull__stream *s)
{
    if (s->state != MULL__STREAM_OPEN || s->broken || !s->to_tell || mull__stream_unsent(s) > 0)
        return;
    s->to_tell = 0;
    s->calls->writable(s->data);
}

int mull__stream_write(mull__stream *s, const void *bytes, size_t size)
{
    if (s->state != MULL__STREAM_OPEN || s->broken)
        return MULL_EDOWN;
    if (size == 0)
        return 0;
    if (mull__bytes_add(s->tls ? &s->plain : &s->out, &s->allocator, bytes, size) != 0)
        return MULL_ENOMEM;
    s->to_tell = 1;
    if (!s->blocked)
        mull__stream_at_turns_end(s);
    return 0;
}

/* Not called back from here: on_turn comes and tells. */
void mull__stream_flush(mull__stream *s)
{
    if (s->state == MULL__STREAM_OPEN && !s->blocked && mull__stream_unsent(s) > 0)
        mull__stream_write_out(s);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* decrypt hands over what has come; it stops where it may not. */
static void decrypt(mull__stream *s)
{
    while (s->state == MULL__STREAM_OPEN && s->reading) {
        size_t got;
        mull__tls_state answer = mull__tls_session_read(s->tls, s->buffer, sizeof s->buffer, &got,
                                                        s->why, sizeof s->why);
        if (answer == MULL__TLS_CLOSED)
            mull__stream_say(s, "the server closed the connection");
        if (answer == MULL__TLS_CLOSED || answer == MULL__TLS_FAILED)
            mull__stream_fail(s);
        if (answer != MULL__TLS_READY)
            break;
        s->calls->read(s->data, s->buffer, got);
    }
}

void mull__stream_opened(mull__stream *s)
{
    s->state = MULL__STREAM_OPEN;
    s->reading = 1;
    uv_timer_stop(&s->limit);
    s->calls->open(s->data);
}

void mull__stream_shake(mull__stream *s)
{
    mull__tls_state answer = mull__tls_session_shake(s->tls, s->why, sizeof s->why);
    if (answer == MULL__TLS_FAILED) {
        mull__stream_fail(s);
        return;
    }
    mull__stream_write_out(s);
    if (s->state == MULL__STREAM_SHAKING && answer == MULL__TLS_READY)
        mull__stream_opened(s);
}

/* take_in handles bytes that were read into `buffer`. */
static void take_in(mull__stream *s, size_t size)
{
    if (s->state == MULL__STREAM_FINISHING)
        return;
    if (!s->tls) {
        s->calls->read(s->data, s->buffer, size);
        return;
    }
    if (mull__tls_session_feed(s->tls, s->buffer, size) != 0) {
        mull__stream_say_error(s, ENOMEM);
        mull__stream_fail(s);
        return;
    }
    if (s->state == MULL__STREAM_SHAKING)
        mull__stream_shake(s);
    decrypt(s);
    if (s->state == MULL__STREAM_OPEN)
        mull__stream_at_turns_end(s); /* TLS may have something to answer by itself */
}

static void read_failed(mull__stream *s, int error)
{
    if (error)
        mull__stream_say_error(s, error);
    else
        mull__stream_say(s, "the server closed the connection%s",
                         s->state == MULL__STREAM_SHAKING ? " during the TLS handshake" : "");
    mull__stream_fail(s);
}

static void read_in(mull__stream *s)
{
    for (int reads = 0; reads < READS_A_TURN && mull__stream_wants_bytes(s); reads++) {
        ssize_t size = recv(s->fd, s->buffer, sizeof s->buffer, 0);
        if (size > 0)
            take_in(s, (size_t)size);
        else if (size == 0 || (errno != EAGAIN && errno != EINTR))
            read_failed(s, size == 0 ? 0 : errno);
        if (size < MULL__STREAM_READ_SIZE)
            return;
    }
}

void mull__stream_reads(mull__stream *s, int on)
{
    if (s->state != MULL__STREAM_OPEN)
        return;
    s->reading = on;
    mull__stream_watch(s);
    if (on && s->tls)
        mull__stream_at_turns_end(s); /* bytes that were read already */
}

/* ---- What the loop says ---------------------------------------------------------------------- */

void mull__stream_io_turn(mull__stream *s)
{
    if (s->tls)
        decrypt(s);
    if (s->state == MULL__STREAM_OPEN && !s->blocked)
        mull__stream_write_out(s);
    tell_writable(s);
}

/* Of a connection that is broken, reading or writing says why. */
void mull__stream_io_event(mull__stream *s, int events, int broken)
{
    if (broken || events & UV_READABLE)
        read_in(s);
    if (s->state != MULL__STREAM_ENDED && (broken || events & UV_WRITABLE))
        mull__stream_write_out(s);
    if (broken && s->state == MULL__STREAM_OPEN && !s->reading) {
        mull__stream_say_error(s, mull__stream_pending_error(s->fd));
        mull__stream_fail(s);
    }
    tell_writable(s);
}
