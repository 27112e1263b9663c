/* certificates.h: certificates and keys that a test makes, as files in a folder of its own. */
#ifndef SPEC_CERTIFICATES_H
#define SPEC_CERTIFICATES_H

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAY_S = 24 * 60 * 60 };

/* identity is a certificate with its key, and their files. */
typedef struct identity {
    X509 *certificate;
    EVP_PKEY *key;
    char cert_file[256], key_file[256];
} identity;

/* wanted says what to make. */
typedef struct wanted {
    const char *name;
    const char *hosts;      /* as OpenSSL has it: "DNS:a,IP:127.0.0.1"; NULL: none */
    const identity *issuer; /* NULL: itself */
    int is_authority;
    long from_s, until_s; /* from now */
} wanted;

static char folder[128];

static inline void add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    assert_non_null(extension);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

static inline void write_key(const char *path, EVP_PKEY *key, const char *passphrase)
{
    FILE *file = fopen(path, "w");
    char *phrase = passphrase ? strdup(passphrase) : NULL;
    PEM_write_PrivateKey(file, key, phrase ? EVP_aes_128_cbc() : NULL, (unsigned char *)phrase,
                         phrase ? (int)strlen(phrase) : 0, NULL, NULL);
    free(phrase);
    fclose(file);
}

static inline void write_files(identity *made, const char *name)
{
    snprintf(made->cert_file, sizeof made->cert_file, "%s/%s.pem", folder, name);
    snprintf(made->key_file, sizeof made->key_file, "%s/%s.key", folder, name);
    FILE *file = fopen(made->cert_file, "w");
    PEM_write_X509(file, made->certificate);
    fclose(file);
    write_key(made->key_file, made->key, NULL);
}

static inline identity make_identity(const wanted *w)
{
    static long serial = 1;
    identity made = {.certificate = X509_new(), .key = EVP_EC_gen("P-256")};
    X509 *issuer = w->issuer ? w->issuer->certificate : made.certificate;
    X509_NAME *name = X509_get_subject_name(made.certificate);
    X509_set_version(made.certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.certificate), w->from_s);
    X509_gmtime_adj(X509_getm_notAfter(made.certificate), w->until_s);
    X509_set_pubkey(made.certificate, made.key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)w->name, -1, -1,
                               0);
    X509_set_issuer_name(made.certificate, X509_get_subject_name(issuer));
    add_extension(made.certificate, issuer, NID_basic_constraints,
                  w->is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (w->hosts)
        add_extension(made.certificate, issuer, NID_subject_alt_name, w->hosts);
    X509_sign(made.certificate, w->issuer ? w->issuer->key : made.key, EVP_sha256());
    write_files(&made, w->name);
    return made;
}

static inline void free_identity(identity *made)
{
    X509_free(made->certificate);
    EVP_PKEY_free(made->key);
    unlink(made->cert_file);
    unlink(made->key_file);
}

/* in_folder writes a file, and gives its path, which lives until the next call. */
static inline const char *in_folder(const char *name, const char *text)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = text ? fopen(path, "w") : NULL;
    if (file) {
        fputs(text, file);
        fclose(file);
    }
    return path;
}

static inline void make_folder(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/mull-net-XXXXXX", temporary ? temporary : "/tmp");
    assert_non_null(mkdtemp(folder));
}

#endif
