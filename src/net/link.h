/* link.h: keeps one connection to a server: bytes in, bytes out. Who speaks the protocol never sees
 * a socket, so that it can be fuzzed and simulated. On the loop's thread.
 *
 *   open ──> an attempt at each address ──> up, read ..., down ──> a wait ──> attempts ...
 *                    └── all failed: down ──> a wait that doubles, with jitter ──> attempts ...
 *
 * After mull__link_open nothing ends this but mull__link_close. The calls come from the loop, never
 * from inside a function of this header; each function may be called inside each call.
 */
#ifndef MULL__NET_LINK_H
#define MULL__NET_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "mulligan.h"
#include "tls.h"

struct uv_loop_s;

/* mull__net_link is one, up or not. (base/list.h has a mull__link.) */
typedef struct mull__net_link mull__net_link;

/* mull__link_address is a server's: an IPv4 or IPv6 address without brackets, or a name; a number
 * from 1 to 65535. A name that has several addresses is tried at each. */
typedef struct mull__link_address {
    const char *host, *port;
} mull__link_address;

/* mull__link_options are copied, but for `loop` and `tls`, which outlive the link. */
typedef struct mull__link_options {
    struct uv_loop_s *loop;
    const mull_allocator *allocator;
    const mull__link_address *addresses; /* tried in turn, the first one by chance */
    size_t address_count;                /* at least 1 */
    mull__tls *tls;                      /* NULL: plain */
    int64_t connect_ms;                  /* for one address: name, TCP, TLS; then the next */
    int64_t first_wait_ms;               /* before the attempts that follow a down ... */
    int64_t longest_wait_ms;             /* ... doubled up to this. Each is cut by up to a half, by
                                            chance */
    uint64_t seed;                       /* of that chance; 0: the system's */
} mull__link_options;

/* mull__link_calls: none comes after mull__link_close. */
typedef struct mull__link_calls {
    /* up: connected, TLS done. The protocol begins anew, and reads are on. */
    void (*up)(void *data);
    void (*read)(void *data, const char *bytes, size_t size);
    /* down: the connection is gone, or an attempt at each address failed: "HOST:PORT: what", one
     * line, never a secret. What was not out is dropped. The link tries again by itself. */
    void (*down)(void *data, const char *why);
    /* writable: all that was written is out. */
    void (*writable)(void *data);
} mull__link_calls;

/* mull__link_open begins its first attempt on a later turn, at once. MULL_EINVAL: no address, or
 * more than 64, or without host or port. MULL_ENOMEM; MULL_EIO: the loop has no descriptor left. */
int mull__link_open(mull__net_link **out, const mull__link_options *options,
                    const mull__link_calls *calls, void *data);

/* mull__link_write copies the bytes. One write takes all of a turn, at mull__link_flush or by
 * itself on the loop's next turn. MULL_EDOWN: there is no connection. MULL_ENOMEM: nothing of it
 * was taken; what was written before goes out. */
int mull__link_write(mull__net_link *link, const void *bytes, size_t size);
void mull__link_flush(mull__net_link *link);

/* mull__link_unsent is how many bytes the system hasn't taken yet; with TLS, roughly. */
size_t mull__link_unsent(const mull__net_link *link);

/* mull__link_settled: the protocol is up, so the next wait is the first again. */
void mull__link_settled(mull__net_link *link);

/* mull__link_cut ends this connection, or this attempt: `down` follows on a later turn with "HOST:
 * PORT: " and `why`, then a wait. Nothing while there is neither. Nothing is read or written in
 * between. */
void mull__link_cut(mull__net_link *link, const char *why);

/* mull__link_reads stops reading (0) and goes on with it. While it has stopped, an end of the
 * connection is seen only by what is written. */
void mull__link_reads(mull__net_link *link, int on);

/* mull__link_close frees the link, and says `closed` on a later turn. What was written goes out
 * first: the link waits for at most `flush_ms` until the server has ended the connection as well,
 * which shows that it has read all. */
void mull__link_close(mull__net_link *link, int64_t flush_ms, void (*closed)(void *data));

#endif
