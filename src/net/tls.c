/* tls.c: see tls.h and tls_session.h. */
#include "tls_session.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* ---- Context --------------------------------------------------------------------------------- */

struct mull__tls {
    mull_allocator allocator;
    SSL_CTX *context;
    char *server_name;
};

/* making is a context in the making, and where its failure is told. */
typedef struct making {
    SSL_CTX *context;
    const mull__tls_options *options;
    char *why;
    size_t why_size;
} making;

/* check_readable tells a file that isn't there from one that holds something else. */
static int check_readable(const making *m, const char *what, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file) {
        fclose(file);
        return 0;
    }
    char room[128];
    snprintf(m->why, m->why_size, "the %s '%s' can't be read: %s", what, path,
             strerror_r(errno, room, sizeof room));
    return MULL_EINVAL;
}

static int use_ca(const making *m)
{
    const char *path = m->options->ca_file;
    if (!path && m->options->no_verify)
        return 0; /* those of the system are many */
    if (!path)
        return SSL_CTX_set_default_verify_paths(m->context) == 1 ? 0 : MULL_ENOMEM;
    if (check_readable(m, "CA file", path) != 0)
        return MULL_EINVAL;
    if (SSL_CTX_load_verify_file(m->context, path) == 1)
        return 0;
    snprintf(m->why, m->why_size, "the CA file '%s' holds no certificate in PEM form", path);
    return MULL_EINVAL;
}

/* refuse_passphrase is asked for that of an encrypted key; OpenSSL's own would ask the terminal. */
static int refuse_passphrase(char *out, int size, int writing, void *asked)
{
    (void)out;
    (void)size;
    (void)writing;
    *(int *)asked = 1;
    return -1;
}

static int use_key(const making *m, const char *certificate, const char *key)
{
    int asked = 0;
    SSL_CTX_set_default_passwd_cb(m->context, refuse_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(m->context, &asked);
    int used = SSL_CTX_use_PrivateKey_file(m->context, key, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(m->context, NULL);
    if (used)
        return 0;
    if (asked)
        snprintf(m->why, m->why_size, "the key file '%s' is encrypted; give one without passphrase",
                 key);
    else if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
             ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH)
        snprintf(m->why, m->why_size, "the key file '%s' doesn't fit the certificate file '%s'",
                 key, certificate);
    else
        snprintf(m->why, m->why_size, "the key file '%s' holds no private key in PEM form", key);
    return MULL_EINVAL;
}

static int use_certificate(const making *m)
{
    const char *certificate = m->options->cert_file, *key = m->options->key_file;
    if (!certificate && !key)
        return 0;
    if (!certificate) {
        snprintf(m->why, m->why_size, "the key file '%s' needs a certificate file", key);
        return MULL_EINVAL;
    }
    if (!key)
        key = certificate;
    if (check_readable(m, "certificate file", certificate) != 0 ||
        check_readable(m, "key file", key) != 0)
        return MULL_EINVAL;
    if (SSL_CTX_use_certificate_chain_file(m->context, certificate) == 1)
        return use_key(m, certificate, key);
    snprintf(m->why, m->why_size, "the certificate file '%s' holds no certificate in PEM form",
             certificate);
    return MULL_EINVAL;
}

static int configure(const making *m)
{
    SSL_CTX_set_mode(m->context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(m->context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_verify(m->context, m->options->no_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_min_proto_version(m->context, TLS1_2_VERSION) != 1)
        return MULL_ENOMEM;
    int status = use_certificate(m);
    return status ? status : use_ca(m);
}

int mull__tls_new(mull__tls **out, const mull_allocator *allocator,
                  const mull__tls_options *options, char *why, size_t why_size)
{
    snprintf(why, why_size, "out of memory");
    mull__tls *tls = mull__zalloc(allocator, 1, sizeof *tls);
    if (!tls)
        return MULL_ENOMEM;
    ERR_clear_error();
    tls->allocator = *allocator;
    tls->context = SSL_CTX_new(TLS_client_method());
    tls->server_name = mull__strdup(allocator, options->server_name);
    making m = {tls->context, options, why, why_size};
    int status = MULL_ENOMEM;
    if (tls->context && (tls->server_name || !options->server_name))
        status = configure(&m);
    ERR_clear_error();
    if (status) {
        mull__tls_free(tls);
        return status;
    }
    *out = tls;
    return 0;
}

void mull__tls_free(mull__tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->context);
    mull__free(&tls->allocator, tls->server_name);
    mull__free(&tls->allocator, tls);
}

/* ---- Session --------------------------------------------------------------------------------- */

struct mull__tls_session {
    mull_allocator allocator;
    SSL *ssl;
    BIO *in, *out; /* the SSL's */
    char *name;    /* whose certificate is wanted */
};

/* expect sets whose certificate is wanted. Addresses have no SNI. */
static int expect(SSL *ssl, char *name)
{
    X509_VERIFY_PARAM *verify = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(verify, name) == 1)
        return 1;
    X509_VERIFY_PARAM_set_hostflags(verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/* give_memory has the SSL read from one memory and write to another. */
static int give_memory(mull__tls_session *session)
{
    session->in = BIO_new(BIO_s_mem());
    session->out = BIO_new(BIO_s_mem());
    if (!session->in || !session->out) {
        BIO_free(session->in);
        BIO_free(session->out);
        return 0;
    }
    SSL_set_bio(session->ssl, session->in, session->out);
    return 1;
}

mull__tls_session *mull__tls_session_new(const mull__tls *tls, const mull_allocator *allocator,
                                         const char *host)
{
    mull__tls_session *session = mull__zalloc(allocator, 1, sizeof *session);
    if (!session)
        return NULL;
    session->allocator = *allocator;
    session->name = mull__strdup(allocator, tls->server_name ? tls->server_name : host);
    session->ssl = SSL_new(tls->context);
    if (!session->name || !session->ssl || !give_memory(session) ||
        !expect(session->ssl, session->name)) {
        mull__tls_session_free(session);
        session = NULL;
    } else {
        SSL_set_connect_state(session->ssl);
    }
    ERR_clear_error();
    return session;
}

void mull__tls_session_free(mull__tls_session *session)
{
    if (!session)
        return;
    SSL_free(session->ssl);
    mull__free(&session->allocator, session->name);
    mull__free(&session->allocator, session);
}

int mull__tls_session_feed(mull__tls_session *session, const char *bytes, size_t size)
{
    size_t written = 0;
    return BIO_write_ex(session->in, bytes, size, &written) == 1 && written == size ? 0
                                                                                    : MULL_ENOMEM;
}

/* say_untrusted says what is wrong with the server's certificate; 0: nothing. */
static int say_untrusted(const mull__tls_session *session, char *why, size_t why_size)
{
    long verdict = SSL_get_verify_result(session->ssl);
    if (verdict == X509_V_OK || SSL_get_verify_mode(session->ssl) == SSL_VERIFY_NONE)
        return 0;
    if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH)
        snprintf(why, why_size, "its certificate isn't for '%s'", session->name);
    else
        snprintf(why, why_size, "its certificate isn't trusted: %s",
                 X509_verify_cert_error_string(verdict));
    return 1;
}

/* refusal_of says what the server's alert is about, where that is the client's certificate. NULL:
 * it isn't. */
static const char *refusal_of(unsigned long error)
{
    switch (ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "wants a certificate of the client";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        return "doesn't take the client's certificate";
    default:
        return NULL;
    }
}

static mull__tls_state failed(const mull__tls_session *session, char *why, size_t why_size)
{
    unsigned long error = ERR_peek_error();
    const char *reason = ERR_reason_error_string(error), *refusal = refusal_of(error);
    if (say_untrusted(session, why, why_size))
        return MULL__TLS_FAILED;
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER)
        snprintf(why, why_size, "it doesn't speak TLS at this port");
    else if (refusal)
        snprintf(why, why_size, "the server %s (%s)", refusal, reason ? reason : "no reason given");
    else
        snprintf(why, why_size, "TLS failed: %s", reason ? reason : "no reason given");
    return MULL__TLS_FAILED;
}

/* state_of is what an answer of OpenSSL means that is no success. */
static mull__tls_state state_of(mull__tls_session *session, int answer, char *why, size_t why_size)
{
    switch (SSL_get_error(session->ssl, answer)) {
    case SSL_ERROR_WANT_READ:
        return MULL__TLS_WAITING;
    case SSL_ERROR_ZERO_RETURN:
        return MULL__TLS_CLOSED;
    default:
        return failed(session, why, why_size);
    }
}

mull__tls_state mull__tls_session_shake(mull__tls_session *session, char *why, size_t why_size)
{
    ERR_clear_error();
    int answer = SSL_do_handshake(session->ssl);
    return answer == 1 ? MULL__TLS_READY : state_of(session, answer, why, why_size);
}

mull__tls_state mull__tls_session_read(mull__tls_session *session, char *bytes, size_t size,
                                       size_t *got, char *why, size_t why_size)
{
    ERR_clear_error();
    int answer = SSL_read_ex(session->ssl, bytes, size, got);
    return answer == 1 ? MULL__TLS_READY : state_of(session, answer, why, why_size);
}

int mull__tls_session_write(mull__tls_session *session, const char *bytes, size_t size)
{
    size_t written = 0;
    ERR_clear_error();
    return SSL_write_ex(session->ssl, bytes, size, &written) == 1 && written == size ? 0 : MULL_EIO;
}

void mull__tls_session_end(mull__tls_session *session)
{
    ERR_clear_error();
    SSL_shutdown(session->ssl);
}

int mull__tls_session_take(mull__tls_session *session, mull__bytes *out,
                           const mull_allocator *allocator)
{
    size_t size = BIO_ctrl_pending(session->out), taken = 0;
    if (size == 0)
        return 0;
    char *room = mull__bytes_room(out, allocator, size);
    if (!room || BIO_read_ex(session->out, room, size, &taken) != 1)
        return MULL_ENOMEM;
    out->end += taken;
    return 0;
}
