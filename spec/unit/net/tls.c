/* tls.c: links over TLS, with a server of OpenSSL's and certificates of all kinds. */
#include "watcher.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "certificates.h"

/* ---- Certificates, once for all tests -------------------------------------------------------- */

static identity authority, stranger, good, by_stranger, expired, early, for_rabbit, self_signed;
static identity client;

static int make_all(void **state)
{
    (void)state;
    make_folder();
    static const char both[] = "DNS:localhost,IP:127.0.0.1";
    authority = make_identity(&(wanted){"authority", NULL, NULL, 1, -DAY_S, DAY_S});
    stranger = make_identity(&(wanted){"stranger", NULL, NULL, 1, -DAY_S, DAY_S});
    good = make_identity(&(wanted){"good", both, &authority, 0, -DAY_S, DAY_S});
    by_stranger = make_identity(&(wanted){"by_stranger", both, &stranger, 0, -DAY_S, DAY_S});
    expired = make_identity(&(wanted){"expired", both, &authority, 0, -2 * DAY_S, -DAY_S});
    early = make_identity(&(wanted){"early", both, &authority, 0, DAY_S, 2 * DAY_S});
    for_rabbit =
        make_identity(&(wanted){"rabbit", "DNS:rabbit.example", &authority, 0, -DAY_S, DAY_S});
    self_signed = make_identity(&(wanted){"self_signed", both, NULL, 0, -DAY_S, DAY_S});
    client = make_identity(&(wanted){"client", NULL, &authority, 0, -DAY_S, DAY_S});
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    identity *all[] = {&authority, &stranger,   &good,        &by_stranger, &expired,
                       &early,     &for_rabbit, &self_signed, &client};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free_identity(all[i]);
    return rmdir(folder);
}

/* ---- The server ------------------------------------------------------------------------------ */

/* tls_server is the server's side of one connection. */
typedef struct tls_server {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out;
    int fd;
    int one_by_one; /* bytes go out so, one a turn */
    char sni[64];
} tls_server;

/* what is said of a server; zero: TLS as new as may be, whoever the client is. */
typedef struct manner {
    const identity *shows;
    int newest; /* TLS1_2_VERSION, ...; 0: any */
    int wants_client;
    int one_by_one;
} manner;

static int note_sni(SSL *ssl, int *alert, void *data)
{
    tls_server *t = data;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert;
    snprintf(t->sni, sizeof t->sni, "%s", name ? name : "none");
    return SSL_TLSEXT_ERR_OK;
}

static void begin_tls(tls_server *t, int fd, const manner *m)
{
    *t = (tls_server){.fd = fd, .one_by_one = m->one_by_one};
    t->context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_tlsext_servername_callback(t->context, note_sni);
    SSL_CTX_set_tlsext_servername_arg(t->context, t);
    SSL_CTX_use_certificate(t->context, m->shows->certificate);
    SSL_CTX_use_PrivateKey(t->context, m->shows->key);
    if (m->newest && m->newest < TLS1_2_VERSION)
        SSL_CTX_set_security_level(t->context, 0);
    SSL_CTX_set_max_proto_version(t->context, m->newest);
    if (m->wants_client)
        SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_load_verify_locations(t->context, authority.cert_file, NULL);
    t->ssl = SSL_new(t->context);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_accept_state(t->ssl);
}

static void end_tls(tls_server *t)
{
    SSL_free(t->ssl);
    SSL_CTX_free(t->context);
    close(t->fd);
    ERR_clear_error();
}

/* turn moves bytes between socket and SSL, and turns the loop. 0: the client has closed. */
static int turn(tls_server *t)
{
    static char bytes[1 << 18];
    int waiting = BIO_pending(t->out), most = t->one_by_one ? 1 : (int)sizeof bytes;
    while (waiting > 0) {
        char *from;
        BIO_get_mem_data(t->out, &from);
        int size = waiting < most ? waiting : most;
        ssize_t sent = send(t->fd, from, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            BIO_read(t->out, bytes, (int)sent);
        waiting = sent == size && !t->one_by_one ? BIO_pending(t->out) : 0;
    }
    ssize_t got = recv(t->fd, bytes, sizeof bytes, 0);
    if (got > 0)
        BIO_write(t->in, bytes, (int)got);
    uv_run(&loop, UV_RUN_ONCE);
    return got != 0;
}

/* shake_hands until that is done (1), or failed (0). */
static int shake_hands(tls_server *t)
{
    for (;;) {
        ERR_clear_error();
        int answer = SSL_do_handshake(t->ssl);
        if (answer == 1)
            return 1;
        if (SSL_get_error(t->ssl, answer) != SSL_ERROR_WANT_READ) {
            for (int i = 0; i < 3; i++)
                turn(t); /* the alert */
            return 0;
        }
        if (!turn(t))
            return 0;
    }
}

static void tls_write(tls_server *t, const char *bytes, size_t size)
{
    size_t written;
    assert_int_equal(SSL_write_ex(t->ssl, bytes, size, &written), 1);
    assert_int_equal(written, size);
}

/* tls_read until `size` bytes have come, or the end. */
static size_t tls_read(tls_server *t, char *bytes, size_t size)
{
    size_t got = 0, more;
    while (got < size) {
        ERR_clear_error();
        if (SSL_read_ex(t->ssl, bytes + got, size - got, &more) == 1)
            got += more;
        else if (SSL_get_error(t->ssl, 0) != SSL_ERROR_WANT_READ || !turn(t))
            break;
    }
    return got;
}

/* ---- A link to it ---------------------------------------------------------------------------- */

static mull__tls *make_context(const mull__tls_options *options)
{
    char why[512] = "";
    mull__tls *tls = NULL;
    int status = mull__tls_new(&tls, &allocator, options, why, sizeof why);
    if (status)
        print_message("%s\n", why);
    assert_int_equal(status, 0);
    return tls;
}

typedef struct pair {
    server s;
    watcher w;
    mull__tls *tls;
    tls_server t;
} pair;

static void open_pair(pair *p, const char *host, const mull__tls_options *options, const manner *m)
{
    *p = (pair){.tls = make_context(options)};
    open_server(&p->s, "127.0.0.1");
    p->s.address.host = host;
    mull__link_options link = link_to(&p->s.address, 1);
    link.first_wait_ms = link.longest_wait_ms = PLENTY_MS;
    link.tls = p->tls;
    watch(&p->w, &link);
    begin_tls(&p->t, accept_client(&p->s), m);
}

static void end_pair(pair *p)
{
    end_link(&p->w, 0);
    end_tls(&p->t);
    close_server(&p->s);
    mull__tls_free(p->tls);
}

/* connect_pair has the link up. */
static void connect_pair(pair *p, const char *host, const mull__tls_options *options,
                         const manner *m)
{
    open_pair(p, host, options, m);
    assert_true(shake_hands(&p->t));
    while (p->w.ups == 0)
        turn(&p->t);
}

/* assert_refused: a connection that never is up ends with these words. */
static void assert_refused(const char *host, const mull__tls_options *options, const manner *m,
                           const char *why)
{
    pair p;
    open_pair(&p, host, options, m);
    shake_hands(&p.t);
    await(p.w.downs == 1);
    assert_why(&p.w, &p.s, why);
    assert_int_equal(p.w.ups, 0);
    end_pair(&p);
}

/* trusting trusts the authority; a function, since its path is made anew each time. */
static mull__tls_options trusting(void)
{
    return (mull__tls_options){.ca_file = authority.cert_file};
}

/* ---- Good ones ------------------------------------------------------------------------------- */

static void exchange(pair *p)
{
    char bytes[8];
    mull__link_write(p->w.link, "pi", 2);
    mull__link_write(p->w.link, "ng", 2);
    assert_int_equal(mull__link_unsent(p->w.link), 4);
    assert_int_equal(tls_read(&p->t, bytes, 4), 4);
    assert_memory_equal(bytes, "ping", 4);
    while (p->w.writables == 0)
        turn(&p->t);
    assert_int_equal(mull__link_unsent(p->w.link), 0);
    size_t before = p->w.size;
    tls_write(&p->t, "pong", 4);
    while (p->w.size < before + 4)
        turn(&p->t);
    assert_memory_equal(p->w.got + before, "pong", 4);
    assert_int_equal(p->w.downs, 0);
}

static void test_each_version(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    mull__tls_options options = trusting();
    for (int i = 0; i < 2; i++) {
        pair p;
        connect_pair(&p, "localhost", &options, &(manner){&good, versions[i], 0, 0});
        assert_int_equal(SSL_version(p.t.ssl), versions[i]);
        assert_string_equal(p.t.sni, "localhost");
        exchange(&p);
        end_pair(&p);
    }
}

static void test_an_address_has_no_server_name(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    connect_pair(&p, "127.0.0.1", &options, &(manner){.shows = &good});
    assert_string_equal(p.t.sni, "none");
    exchange(&p);
    end_pair(&p);
}

static void test_a_server_name_of_ones_own(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    options.server_name = "rabbit.example";
    connect_pair(&p, "127.0.0.1", &options, &(manner){.shows = &for_rabbit});
    assert_string_equal(p.t.sni, "rabbit.example");
    exchange(&p);
    end_pair(&p);
}

static void test_bytes_one_by_one(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    mull__tls_options options = trusting();
    for (int i = 0; i < 2; i++) {
        pair p;
        connect_pair(&p, "127.0.0.1", &options, &(manner){&good, versions[i], 0, 1});
        exchange(&p);
        end_pair(&p);
    }
}

enum { MUCH = 8 << 20 };

static void test_much_both_ways(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    char *sent = malloc(MUCH), *got = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++)
        sent[i] = (char)(i * 7 + i / 251);
    connect_pair(&p, "127.0.0.1", &options, &(manner){.shows = &good});
    mull__link_write(p.w.link, sent, MUCH);
    mull__link_flush(p.w.link);
    assert_in_range(mull__link_unsent(p.w.link), 1, MUCH + MUCH / 64);
    assert_int_equal(p.w.writables, 0);
    assert_int_equal(tls_read(&p.t, got, MUCH), MUCH);
    assert_memory_equal(got, sent, MUCH);
    while (p.w.writables == 0)
        turn(&p.t);
    tls_write(&p.t, sent, MUCH);
    while (p.w.size < MUCH)
        turn(&p.t);
    assert_memory_equal(p.w.got, sent, MUCH);
    free(sent);
    free(got);
    end_pair(&p);
}

static void stop_reading(watcher *w, const char *call)
{
    if (strcmp(call, "read") == 0)
        mull__link_reads(w->link, 0);
}

/* What was received and decrypted already waits as well. */
static void test_reading_stops_and_goes_on(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    connect_pair(&p, "127.0.0.1", &options, &(manner){.shows = &good});
    p.w.on_call = stop_reading;
    tls_write(&p.t, "one", 3);
    tls_write(&p.t, "two", 3);
    tls_write(&p.t, "three", 5);
    while (p.w.size == 0)
        turn(&p.t);
    for (int i = 0; i < 20; i++)
        turn(&p.t);
    assert_string_equal(p.w.got, "one");
    mull__link_reads(p.w.link, 1);
    assert_string_equal(p.w.got, "one");
    while (p.w.size < 6)
        turn(&p.t);
    for (int i = 0; i < 20; i++)
        turn(&p.t);
    assert_string_equal(p.w.got, "onetwo");
    mull__link_reads(p.w.link, 1);
    while (p.w.size < 11)
        turn(&p.t);
    end_pair(&p);
}

static void test_close_says_its_end(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    char *bytes = calloc(1, MUCH);
    connect_pair(&p, "127.0.0.1", &options, &(manner){.shows = &good});
    mull__link_write(p.w.link, bytes, MUCH);
    mull__link_close(p.w.link, PLENTY_MS, on_closed);
    assert_int_equal(tls_read(&p.t, bytes, MUCH), MUCH);
    assert_int_equal(tls_read(&p.t, bytes, 1), 0);
    assert_true(SSL_get_shutdown(p.t.ssl) & SSL_RECEIVED_SHUTDOWN);
    assert_true(at_end(p.t.fd));
    end_tls(&p.t);
    await(p.w.closed);
    close_server(&p.s);
    mull__tls_free(p.tls);
    free(bytes);
}

/* A link may be closed and its context freed while the server still reads. */
static void test_closed_by_the_server(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    connect_pair(&p, "127.0.0.1", &options, &(manner){.shows = &good});
    tls_write(&p.t, "bye", 3);
    SSL_shutdown(p.t.ssl);
    while (p.w.downs == 0)
        turn(&p.t);
    assert_string_equal(p.w.got, "bye");
    assert_why(&p.w, &p.s, "the server closed the connection");
    end_pair(&p);
}

static void test_key_update(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    connect_pair(&p, "127.0.0.1", &options, &(manner){&good, TLS1_3_VERSION, 0, 0});
    assert_int_equal(SSL_key_update(p.t.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    exchange(&p);
    end_pair(&p);
}

/* ---- Servers that aren't trusted ------------------------------------------------------------- */

static void test_untrusted(void **state)
{
    (void)state;
    mull__tls_options options = trusting();
    assert_refused("127.0.0.1", &options, &(manner){.shows = &self_signed},
                   "its certificate isn't trusted: self-signed certificate");
    assert_refused("127.0.0.1", &options, &(manner){.shows = &by_stranger},
                   "its certificate isn't trusted: unable to get local issuer certificate");
    assert_refused("127.0.0.1", &options, &(manner){.shows = &expired},
                   "its certificate isn't trusted: certificate has expired");
    assert_refused("127.0.0.1", &options, &(manner){.shows = &early},
                   "its certificate isn't trusted: certificate is not yet valid");
}

static void test_trust_is_the_systems_by_default(void **state)
{
    (void)state;
    assert_refused("127.0.0.1", &(mull__tls_options){.ca_file = NULL}, &(manner){.shows = &good},
                   "its certificate isn't trusted: self-signed certificate in certificate chain");
}

static void test_another_host(void **state)
{
    (void)state;
    mull__tls_options options = trusting();
    assert_refused("localhost", &options, &(manner){.shows = &for_rabbit},
                   "its certificate isn't for 'localhost'");
    assert_refused("127.0.0.1", &options, &(manner){.shows = &for_rabbit},
                   "its certificate isn't for '127.0.0.1'");
    options.server_name = "rabbit.example.org";
    assert_refused("localhost", &options, &(manner){.shows = &for_rabbit},
                   "its certificate isn't for 'rabbit.example.org'");
}

static void test_unverified(void **state)
{
    (void)state;
    static const identity *const all[] = {&self_signed, &by_stranger, &expired, &for_rabbit};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pair p;
        connect_pair(&p, "localhost", &(mull__tls_options){.no_verify = 1},
                     &(manner){.shows = all[i]});
        exchange(&p);
        end_pair(&p);
    }
}

/* ---- Who we are ------------------------------------------------------------------------------ */

static void test_with_a_certificate_of_ours(void **state)
{
    (void)state;
    mull__tls_options options = trusting();
    options.cert_file = client.cert_file;
    options.key_file = client.key_file;
    for (int i = 0; i < 2; i++) {
        pair p;
        connect_pair(&p, "127.0.0.1", &options,
                     &(manner){&good, i ? TLS1_2_VERSION : TLS1_3_VERSION, 1, 0});
        X509 *shown = SSL_get1_peer_certificate(p.t.ssl);
        assert_int_equal(X509_cmp(shown, client.certificate), 0);
        X509_free(shown);
        exchange(&p);
        end_pair(&p);
    }
}

/* With TLS 1.3 the client is through before the server has looked at its certificate. */
static void test_without_the_certificate_that_is_wanted(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    assert_refused("127.0.0.1", &options, &(manner){&good, TLS1_2_VERSION, 1, 0},
                   "TLS failed: sslv3 alert handshake failure");
    open_pair(&p, "127.0.0.1", &options, &(manner){&good, TLS1_3_VERSION, 1, 0});
    assert_false(shake_hands(&p.t));
    await(p.w.downs == 1);
    assert_int_equal(p.w.ups, 1);
    assert_why(&p.w, &p.s,
               "the server wants a certificate of the client (tlsv13 alert certificate required)");
    end_pair(&p);
}

/* ---- Servers that don't speak it ------------------------------------------------------------- */

static void test_too_old(void **state)
{
    (void)state;
    mull__tls_options options = trusting();
    assert_refused("127.0.0.1", &options, &(manner){&good, TLS1_1_VERSION, 0, 0},
                   "TLS failed: tlsv1 alert protocol version");
}

/* answer_plainly is a server without TLS: it writes, and then closes or not. */
static void answer_plainly(const char *bytes, int closes, int64_t connect_ms, const char *why)
{
    server s;
    watcher w = {.ups = 0};
    mull__tls_options options = trusting();
    mull__tls *tls = make_context(&options);
    open_server(&s, "127.0.0.1");
    mull__link_options link = link_to(&s.address, 1);
    link.first_wait_ms = link.longest_wait_ms = PLENTY_MS;
    link.connect_ms = connect_ms;
    link.tls = tls;
    watch(&w, &link);
    int fd = accept_client(&s);
    send(fd, bytes, strlen(bytes), 0);
    if (closes)
        shutdown(fd, SHUT_WR);
    await(w.downs == 1);
    assert_why(&w, &s, why);
    end_link(&w, 0);
    close(fd);
    close_server(&s);
    mull__tls_free(tls);
}

static void test_no_tls_there(void **state)
{
    (void)state;
    answer_plainly("AMQP\1\1\0\11, and more", 0, PLENTY_MS, "it doesn't speak TLS at this port");
    answer_plainly("-ERR Protocol error\r\n", 1, PLENTY_MS, "it doesn't speak TLS at this port");
    answer_plainly("", 1, PLENTY_MS, "the server closed the connection during the TLS handshake");
    answer_plainly("", 0, 30, "no TLS handshake within 30 ms");
}

static void test_bytes_that_are_no_tls_any_more(void **state)
{
    (void)state;
    pair p;
    mull__tls_options options = trusting();
    connect_pair(&p, "127.0.0.1", &options, &(manner){.shows = &good});
    exchange(&p);
    static const char record[] = "\27\3\3\0\40a record that nobody encrypted, ";
    send(p.t.fd, record, sizeof record - 1, 0);
    while (p.w.downs == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_why(&p.w, &p.s, "TLS failed: decryption failed or bad record mac");
    end_pair(&p);
}

/* ---- Files that are wrong -------------------------------------------------------------------- */

static void assert_no_context(const mull__tls_options *options, const char *format,
                              const char *path)
{
    char why[512], expected[512];
    mull__tls *tls;
    assert_int_equal(mull__tls_new(&tls, &allocator, options, why, sizeof why), MULL_EINVAL);
    snprintf(expected, sizeof expected, format, path);
    assert_string_equal(why, expected);
    assert_int_equal(ERR_peek_error(), 0);
}

static void test_files_that_are_not_there(void **state)
{
    (void)state;
    const char *gone = in_folder("gone.pem", NULL);
    assert_no_context(&(mull__tls_options){.ca_file = gone},
                      "the CA file '%s' can't be read: No such file or directory", gone);
    assert_no_context(&(mull__tls_options){.cert_file = gone},
                      "the certificate file '%s' can't be read: No such file or directory", gone);
    assert_no_context(&(mull__tls_options){.cert_file = client.cert_file, .key_file = gone},
                      "the key file '%s' can't be read: No such file or directory", gone);
    assert_no_context(&(mull__tls_options){.key_file = client.key_file},
                      "the key file '%s' needs a certificate file", client.key_file);
}

static void test_files_with_something_else(void **state)
{
    (void)state;
    const char *empty = in_folder("empty.pem", "no PEM\n");
    assert_no_context(&(mull__tls_options){.ca_file = empty},
                      "the CA file '%s' holds no certificate in PEM form", empty);
    assert_no_context(&(mull__tls_options){.ca_file = client.key_file},
                      "the CA file '%s' holds no certificate in PEM form", client.key_file);
    assert_no_context(&(mull__tls_options){.ca_file = folder},
                      "the CA file '%s' holds no certificate in PEM form", folder);
    assert_no_context(&(mull__tls_options){.cert_file = empty},
                      "the certificate file '%s' holds no certificate in PEM form", empty);
    assert_no_context(&(mull__tls_options){.cert_file = client.cert_file, .key_file = empty},
                      "the key file '%s' holds no private key in PEM form", empty);
    assert_no_context(&(mull__tls_options){.cert_file = client.cert_file},
                      "the key file '%s' holds no private key in PEM form", client.cert_file);
    unlink(empty);
}

static void test_keys_that_do_not_do(void **state)
{
    (void)state;
    char expected[512];
    snprintf(expected, sizeof expected, "the key file '%%s' doesn't fit the certificate file '%s'",
             client.cert_file);
    assert_no_context(
        &(mull__tls_options){.cert_file = client.cert_file, .key_file = good.key_file}, expected,
        good.key_file);
    const char *locked = in_folder("locked.key", NULL);
    write_key(locked, client.key, "open sesame");
    assert_no_context(&(mull__tls_options){.cert_file = client.cert_file, .key_file = locked},
                      "the key file '%s' is encrypted; give one without passphrase", locked);
    unlink(locked);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* try_connection goes as far as it can. 0: it was lost before all was exchanged. */
static int try_connection(pair *p)
{
    char bytes[4];
    int ups = p->w.ups, downs = p->w.downs;
    size_t size = p->w.size;
    if (!shake_hands(&p->t))
        return 0;
    while (p->w.ups == ups && p->w.downs == downs)
        turn(&p->t);
    while (p->w.downs == downs && mull__link_write(p->w.link, "ping", 4) != 0)
        continue;
    if (tls_read(&p->t, bytes, 4) != 4)
        return 0;
    tls_write(&p->t, "pong", 4);
    while (p->w.size == size && p->w.downs == downs)
        turn(&p->t);
    return p->w.size > size;
}

/* try_all connects until all was exchanged, however often memory fails. 0: there was no context. */
static int try_all(void)
{
    pair p = {.tls = NULL};
    char why[512];
    mull__tls_options options = trusting();
    options.server_name = "localhost";
    if (mull__tls_new(&p.tls, &allocator, &options, why, sizeof why) != 0) {
        assert_string_equal(why, "out of memory");
        return 0;
    }
    open_server(&p.s, "127.0.0.1");
    mull__link_options link = link_to(&p.s.address, 1);
    link.tls = p.tls;
    if (mull__link_open(&p.w.link, &link, &watcher_calls, &p.w) == 0) {
        for (int through = 0; !through; end_tls(&p.t)) {
            begin_tls(&p.t, accept_client(&p.s), &(manner){.shows = &good});
            through = try_connection(&p);
        }
        end_link(&p.w, 0);
    }
    close_server(&p.s);
    mull__tls_free(p.tls);
    return 1;
}

static void test_no_memory(void **state)
{
    (void)state;
    assert_true(try_all());
    long needed = counter.asked;
    assert_in_range(needed, 8, 100);
    for (long nth = 1; nth <= needed; nth++) {
        counter.asked = 0;
        counter.fail_at = nth;
        assert_int_equal(try_all(), nth > 2); /* the context, and its name */
        assert_true(counter.asked >= nth);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_TEST(test_each_version),
        NET_TEST(test_an_address_has_no_server_name),
        NET_TEST(test_a_server_name_of_ones_own),
        NET_TEST(test_bytes_one_by_one),
        NET_TEST(test_much_both_ways),
        NET_TEST(test_reading_stops_and_goes_on),
        NET_TEST(test_close_says_its_end),
        NET_TEST(test_closed_by_the_server),
        NET_TEST(test_key_update),
        NET_TEST(test_untrusted),
        NET_TEST(test_trust_is_the_systems_by_default),
        NET_TEST(test_another_host),
        NET_TEST(test_unverified),
        NET_TEST(test_with_a_certificate_of_ours),
        NET_TEST(test_without_the_certificate_that_is_wanted),
        NET_TEST(test_too_old),
        NET_TEST(test_no_tls_there),
        NET_TEST(test_bytes_that_are_no_tls_any_more),
        NET_TEST(test_files_that_are_not_there),
        NET_TEST(test_files_with_something_else),
        NET_TEST(test_keys_that_do_not_do),
        NET_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
