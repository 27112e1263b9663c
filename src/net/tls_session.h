/* tls_session.h: TLS of one connection, without a socket: it never waits, and knows nothing of
 * loops. What OpenSSL allocates is malloc's.
 *
 *   socket ── feed ──> session ── read ──> protocol
 *          <── take ──         <── write ──
 */
#ifndef MULL__NET_TLS_SESSION_H
#define MULL__NET_TLS_SESSION_H

#include <stddef.h>

#include "bytes.h"
#include "tls.h"

typedef struct mull__tls_session mull__tls_session;

typedef enum mull__tls_state {
    MULL__TLS_FAILED,  /* `why` is written, words that follow "HOST:PORT: " */
    MULL__TLS_CLOSED,  /* the server said that nothing more comes */
    MULL__TLS_WAITING, /* first more has to be fed */
    MULL__TLS_READY    /* the handshake is done, or bytes were read */
} mull__tls_state;

/* mull__tls_session_new makes a session with `host`, which may outlive its context. NULL: no
 * memory. */
mull__tls_session *mull__tls_session_new(const mull__tls *tls, const mull_allocator *allocator,
                                         const char *host);
void mull__tls_session_free(mull__tls_session *session);

/* mull__tls_session_feed takes bytes of the server. MULL_ENOMEM. */
int mull__tls_session_feed(mull__tls_session *session, const char *bytes, size_t size);

/* mull__tls_session_shake goes on with the handshake. */
mull__tls_state mull__tls_session_shake(mull__tls_session *session, char *why, size_t why_size);

/* mull__tls_session_read decrypts up to `size` bytes; READY: `*got` of them. */
mull__tls_state mull__tls_session_read(mull__tls_session *session, char *bytes, size_t size,
                                       size_t *got, char *why, size_t why_size);

/* mull__tls_session_write encrypts bytes, after the handshake. MULL_EIO: the session is of no more
 * use. mull__tls_session_end says that no more will be written. */
int mull__tls_session_write(mull__tls_session *session, const char *bytes, size_t size);
void mull__tls_session_end(mull__tls_session *session);

/* mull__tls_session_take moves what is for the server behind `out`. Each of the above may have made
 * some. MULL_ENOMEM. */
int mull__tls_session_take(mull__tls_session *session, mull__bytes *out,
                           const mull_allocator *allocator);

#endif
