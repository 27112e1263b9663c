/* stream.h: one connection to one address, from the look-up of its name to its last byte. link.h
 * makes one after the other of them.
 *
 * Sockets are read and written here, and libuv says when (uv_poll): libuv's own streams write in a
 * way that ends a process by SIGPIPE where its embedder doesn't ignore that. */
#ifndef MULL__NET_STREAM_H
#define MULL__NET_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "link.h"
#include "mulligan.h"
#include "tls.h"

struct uv_loop_s;

typedef struct mull__stream mull__stream;

/* The strings of the address live until `gone`. */
typedef struct mull__stream_options {
    struct uv_loop_s *loop;
    const mull_allocator *allocator;
    mull__link_address address;
    const mull__tls *tls; /* NULL: plain TCP */
    int64_t connect_ms;   /* until it is open; a name's addresses share it */
} mull__stream_options;

/* All of these come out of the loop, never out of a call of this header. */
typedef struct mull__stream_calls {
    void (*open)(void *data);
    void (*read)(void *data, const char *bytes, size_t size);
    void (*writable)(void *data);
    /* ended: never opened, or was open; comes once, and nothing but `gone` after it. */
    void (*ended)(void *data, const char *why);
    void (*gone)(void *data); /* the loop has nothing of it any more, and its memory is free */
} mull__stream_calls;

/* mull__stream_open begins to connect. MULL_ENOMEM. */
int mull__stream_open(mull__stream **out, const mull__stream_options *options,
                      const mull__stream_calls *calls, void *data);

/* mull__stream_write, _flush, _unsent, _reads: as mull__link_write and so on. */
int mull__stream_write(mull__stream *stream, const void *bytes, size_t size);
void mull__stream_flush(mull__stream *stream);
size_t mull__stream_unsent(const mull__stream *stream);
void mull__stream_reads(mull__stream *stream, int on);

/* mull__stream_end ends it in any state; what the kernel takes now still goes out. */
void mull__stream_end(mull__stream *stream, const char *why);

/* mull__stream_finish writes all, tells the server that nothing more comes, and ends when the
 * server closes its side or the time is over. Nothing is read any more. */
void mull__stream_finish(mull__stream *stream, int64_t limit_ms);

#endif
