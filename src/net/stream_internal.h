/* stream_internal.h: what the files of a stream share.
 *
 *   stream.c      its life: name, TCP, time limits, the end
 *   stream_io.c   bytes in and out, TLS among them
 *
 * A function that may call back is the last thing that its caller does with a stream, or the state
 * is looked at again. */
#ifndef MULL__NET_STREAM_INTERNAL_H
#define MULL__NET_STREAM_INTERNAL_H

#include <uv.h>

#include "bytes.h"
#include "resolve.h"
#include "stream.h"
#include "tls_session.h"

enum { MULL__STREAM_READ_SIZE = 1 << 16 };

typedef enum mull__stream_state {
    MULL__STREAM_LOOKING_UP,
    MULL__STREAM_CONNECTING, /* to one IP address after the other */
    MULL__STREAM_SHAKING,    /* TLS */
    MULL__STREAM_OPEN,
    MULL__STREAM_FINISHING,
    MULL__STREAM_ENDED
} mull__stream_state;

struct mull__stream {
    mull_allocator allocator;
    uv_loop_t *loop;
    mull__link_address address;
    const mull__stream_calls *calls;
    void *data;
    mull__stream_state state;

    int handles; /* that the loop still has */
    uv_timer_t limit;
    uv_idle_t turn; /* started: on_turn comes, and the loop doesn't wait before */
    uv_poll_t poll;
    uv_async_t named; /* the look-up is done */

    int64_t connect_ms;
    uint64_t deadline;
    mull__resolve *lookup; /* NULL: none under way */
    struct addrinfo *found, *next;
    size_t left; /* of what was found, from `next` on */

    int fd;     /* -1: none */
    int events; /* what `poll` waits for */
    int reading;
    int blocked;   /* the kernel takes no more until it says so */
    int broken;    /* writing has failed; reading goes on for the last words */
    int to_tell;   /* written since the last `writable` */
    int said_end;  /* when finishing: TLS has said its end */
    int shut_down; /* when finishing: TCP has */
    mull__tls_session *tls;
    mull__bytes plain, out; /* without TLS, all is in `out` */
    char why[256];
    char buffer[MULL__STREAM_READ_SIZE];
};

/* ---- stream.c -------------------------------------------------------------------------------- */

/* mull__stream_say writes why it fails, mull__stream_say_error from an errno. */
void mull__stream_say(mull__stream *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void mull__stream_say_error(mull__stream *s, int error);

/* mull__stream_fail ends it for the reason that was said. `ended` comes on a later turn. */
void mull__stream_fail(mull__stream *s);

/* mull__stream_limit is how long the state may last. */
void mull__stream_limit(mull__stream *s, int64_t limit_ms);

/* mull__stream_at_turns_end has on_turn called before the loop waits. */
void mull__stream_at_turns_end(mull__stream *s);

/* mull__stream_watch has the loop wait for what is wanted now. */
void mull__stream_watch(mull__stream *s);

/* ---- stream_io.c ----------------------------------------------------------------------------- */

int mull__stream_wants_bytes(const mull__stream *s);

/* mull__stream_pending_error is why a socket is broken, an errno; 0: it isn't. */
int mull__stream_pending_error(int fd);

/* mull__stream_push writes until all is out, or the kernel takes no more, which sets `blocked`;
 * else it gives the error. It ends nothing. */
int mull__stream_push(mull__stream *s);

/* mull__stream_write_out pushes, and acts on what comes of it. */
void mull__stream_write_out(mull__stream *s);

/* These may call back; mull__stream_shake goes on with the handshake. */
void mull__stream_opened(mull__stream *s);
void mull__stream_shake(mull__stream *s);

/* mull__stream_io_turn does what is left to do at the end of a turn; may call back. */
void mull__stream_io_turn(mull__stream *s);

/* mull__stream_io_event: the socket can be read or written, or is `broken`; may call back. */
void mull__stream_io_event(mull__stream *s, int events, int broken);

#endif
