/* listener.h: a Unix socket for programs of the same user, and the connections to it.
 *
 * The socket has the mode 0600, and who connects must be of the same user, or root. Its folder is
 * made with the mode 0700 where there is none; one that others may write to is refused, since they
 * could put a socket of their own in its place. A socket that nobody listens on is replaced.
 *
 * Sockets are read and written here, and libuv says when, as in stream.h. */
#ifndef MULL__NET_LISTENER_H
#define MULL__NET_LISTENER_H

#include <stddef.h>

#include "mulligan.h"

struct uv_loop_s;

typedef struct mull__listener mull__listener;
typedef struct mull__peer mull__peer; /* a connection */

/* All of these come out of the loop, but for `read` and `gone`, which mull__peer_feed and
 * mull__listener_close call. */
typedef struct mull__listener_calls {
    /* accepted gives what the calls of this peer are given; NULL: there is no memory for it. */
    void *(*accepted)(void *data, mull__peer *peer);
    /* read is given all bytes that wait, may change them, and gives how many it is done with. It
     * may end the peer. */
    size_t (*read)(void *peer, char *bytes, size_t size);
    void (*sent)(void *peer); /* all that was written is out */
    void (*gone)(void *peer); /* the last of these: its connection is closed */
    /* refused tells of somebody who can't be let in, and why. */
    void (*refused)(void *data, const char *why);
    /* after mull__listener_close, which may call it: the loop has nothing of it any more */
    void (*closed)(void *data);
} mull__listener_calls;

enum { MULL__LISTENER_WHY = 320 };

/* mull__listener_open listens on a path; NULL: on none, for peers of mull__listener_adopt alone.
 * MULL_EINVAL: it can't be a socket's; MULL_EREFUSED: something that stays is there, or others may
 * write to its folder; MULL_EIO; MULL_ENOMEM. `why` says it in words. */
int mull__listener_open(mull__listener **out, struct uv_loop_s *loop,
                        const mull_allocator *allocator, const char *path,
                        const mull__listener_calls *calls, void *data,
                        char why[MULL__LISTENER_WHY]);

/* mull__listener_adopt makes a peer of a socket that is connected, and owns it from now on.
 * `accepted` is called meanwhile. MULL_ENOMEM: the socket is closed. */
int mull__listener_adopt(mull__listener *listener, int fd);

/* mull__listener_close ends all peers, and takes the socket away if it is still there. */
void mull__listener_close(mull__listener *listener);

/* mull__peer_write sends bytes, and keeps what the kernel doesn't take yet. A peer that can't be
 * written to ends on a later turn. */
void mull__peer_write(mull__peer *peer, const void *bytes, size_t size);

/* mull__peer_unsent is how many bytes are kept so. */
size_t mull__peer_unsent(const mull__peer *peer);

/* mull__peer_reads says whether more is read. It is at first. */
void mull__peer_reads(mull__peer *peer, int on);

/* mull__peer_feed gives what waits to `read` again. */
void mull__peer_feed(mull__peer *peer);

/* mull__peer_finish reads no more, and ends the peer once all is out; mull__peer_end ends it now:
 * `gone` comes on a later turn. */
void mull__peer_finish(mull__peer *peer);
void mull__peer_end(mull__peer *peer);

#endif
