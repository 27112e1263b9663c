/* tls.h: TLS of a link (OpenSSL). */
#ifndef MULL__NET_TLS_H
#define MULL__NET_TLS_H

#include <stddef.h>

#include "mulligan.h"

/* mull__tls_options: files are PEM. All zero: verified against the system's authorities. */
typedef struct mull__tls_options {
    const char *ca_file;     /* who is trusted; NULL: those whom the system trusts */
    const char *cert_file;   /* the client's certificate and those between it and its authority;
                                NULL: none */
    const char *key_file;    /* its key, not encrypted; NULL: in cert_file */
    const char *server_name; /* sent to the server, and verified; NULL: the host of the address */
    int no_verify;           /* whoever answers is believed: for tests at a desk */
} mull__tls_options;

/* mull__tls is what all connections of a link share. */
typedef struct mull__tls mull__tls;

/* mull__tls_new reads the files. MULL_ENOMEM; MULL_EINVAL: `why` says in one line which file is
 * wrong, and how. */
int mull__tls_new(mull__tls **out, const mull_allocator *allocator,
                  const mull__tls_options *options, char *why, size_t why_size);
void mull__tls_free(mull__tls *tls);

#endif
