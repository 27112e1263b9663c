/* options.c: see options.h. */
#include "options.h"

#include "base/duration.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { HEARTBEAT_MS = MULL__AMQP_MINUTE_MS, CONNECT_MS = 10 * 1000, HEARTBEAT_MAX_MS = 65535000 };

typedef struct reading {
    mull__amqp_options *options;
    char *why;
    size_t why_size;
} reading;

__attribute__((format(printf, 2, 3))) static int wrong(const reading *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->why, r->why_size, format, arguments);
    va_end(arguments);
    return MULL_EINVAL;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* choice reads one of two words. */
static int choice(const reading *r, const mull__url_option *option, const char *no, const char *yes,
                  int *out)
{
    *out = strcmp(option->value, yes) == 0;
    if (*out || strcmp(option->value, no) == 0)
        return 0;
    return wrong(r, "%s must be %s or %s", option->name, yes, no);
}

static int span(const reading *r, const mull__url_option *option, int64_t least_ms, int64_t *out)
{
    char why[128];
    if (mull__duration_read(out, option->value, strlen(option->value), why, sizeof why) != 0)
        return wrong(r, "%s %s", option->name, why);
    return *out < least_ms
               ? wrong(r, "%s must be %lld ms or more", option->name, (long long)least_ms)
               : 0;
}

/* span_or_off reads one of a second at least, or `off`, which is 0. */
static int span_or_off(const reading *r, const mull__url_option *option, int64_t *out)
{
    *out = 0;
    if (strcmp(option->value, "off") == 0)
        return 0;
    int status = span(r, option, 1000, out);
    if (status != 0) {
        size_t length = strlen(r->why);
        snprintf(r->why + length, r->why_size - length, ", or off");
    }
    return status;
}

/* ---- Options --------------------------------------------------------------------------------- */

static int set_claim(const reading *r, const mull__url_option *option)
{
    return span_or_off(r, option, &r->options->claim_ms);
}

static int set_heartbeat(const reading *r, const mull__url_option *option)
{
    int status = span_or_off(r, option, &r->options->heartbeat_ms);
    if (status == 0 && r->options->heartbeat_ms > HEARTBEAT_MAX_MS)
        return wrong(r, "heartbeat must be 18h or less");
    return status;
}

static int set_connect(const reading *r, const mull__url_option *option)
{
    if (strcmp(option->value, "off") == 0)
        return wrong(r, "connect_timeout can't be off; give it a long time");
    return span(r, option, 1, &r->options->connect_ms);
}

static int set_type(const reading *r, const mull__url_option *option)
{
    r->options->type_is_asked = 1;
    return choice(r, option, "quorum", "classic", &r->options->classic);
}

static int set_declare(const reading *r, const mull__url_option *option)
{
    return choice(r, option, "no", "yes", &r->options->declare);
}

static int set_login(const reading *r, const mull__url_option *option)
{
    return choice(r, option, "password", "certificate", &r->options->external);
}

static int set_name(const reading *r, const mull__url_option *option)
{
    r->options->name = option->value;
    return strlen(option->value) <= 255 ? 0 : wrong(r, "name may have 255 bytes");
}

static int set_verify(const reading *r, const mull__url_option *option)
{
    return choice(r, option, "yes", "no", &r->options->tls.no_verify);
}

static int set_ca(const reading *r, const mull__url_option *option)
{
    r->options->tls.ca_file = option->value;
    return 0;
}

static int set_cert(const reading *r, const mull__url_option *option)
{
    r->options->tls.cert_file = option->value;
    return 0;
}

static int set_key(const reading *r, const mull__url_option *option)
{
    r->options->tls.key_file = option->value;
    return 0;
}

static int set_server_name(const reading *r, const mull__url_option *option)
{
    r->options->tls.server_name = option->value;
    return 0;
}

static const struct {
    const char *name;
    int (*set)(const reading *r, const mull__url_option *option);
    int of_tls;
} known[] = {
    {"queue_type", set_type, 0},
    {"declare", set_declare, 0},
    {"claim_timeout", set_claim, 0},
    {"heartbeat", set_heartbeat, 0},
    {"connect_timeout", set_connect, 0},
    {"name", set_name, 0},
    {"login", set_login, 1},
    {"ca", set_ca, 1},
    {"cert", set_cert, 1},
    {"key", set_key, 1},
    {"server_name", set_server_name, 1},
    {"verify", set_verify, 1},
};

enum { KNOWN = sizeof known / sizeof *known };

static int set(const reading *r, const mull__url_option *option)
{
    for (size_t i = 0; i < KNOWN; i++) {
        if (strcmp(known[i].name, option->name) != 0)
            continue;
        if (known[i].of_tls && !r->options->uses_tls)
            return wrong(r, "%s is for TLS; begin the URL with amqps:", option->name);
        if (!*option->value)
            return wrong(r, "%s needs a value", option->name);
        return known[i].set(r, option);
    }
    char list[256] = "";
    size_t length = 0;
    for (size_t i = 0; i < KNOWN; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
                                   i == 0           ? ""
                                   : i + 1 == KNOWN ? " and "
                                                    : ", ",
                                   known[i].name);
    return wrong(r, "%s is no option; there are %s", option->name, list);
}

/* ---- The URL --------------------------------------------------------------------------------- */

/* complete checks what fits to what, and says what wasn't said. */
static int complete(const reading *r)
{
    mull__amqp_options *o = r->options;
    o->user = o->url.user ? o->url.user : "guest";
    if (o->external)
        o->user = "(of the certificate)"; /* which only the server knows */
    o->password = o->url.password ? o->url.password : o->url.user ? "" : "guest";
    o->vhost = o->url.path && *o->url.path ? o->url.path : "/";
    if (strlen(o->user) > 255 || strlen(o->password) > 255 || strlen(o->vhost) > 255)
        return wrong(r, "user, password and virtual host may have 255 bytes each");
    if (o->external && !o->tls.cert_file)
        return wrong(r, "login=certificate needs cert, the file of the certificate");
    if (o->tls.key_file && !o->tls.cert_file)
        return wrong(r, "key needs cert, the file of the certificate that it belongs to");
    return 0;
}

int mull__amqp_options_read(mull__amqp_options *options, const mull_allocator *allocator,
                            const char *url, char *why, size_t why_size)
{
    const reading r = {options, why, why_size};
    int uses_tls = strncmp(url, "amqps:", 6) == 0;
    *options = (mull__amqp_options){.uses_tls = uses_tls,
                                    .name = "mulligan",
                                    .declare = 1,
                                    .claim_ms = MULL__AMQP_CLAIM_MS,
                                    .heartbeat_ms = HEARTBEAT_MS,
                                    .connect_ms = CONNECT_MS};
    int status =
        mull__url_read(&options->url, allocator, url, uses_tls ? "5671" : "5672", why, why_size);
    if (status != 0)
        return status;
    for (size_t i = 0; status == 0 && i < options->url.option_count; i++)
        status = set(&r, &options->url.options[i]);
    if (status == 0)
        status = complete(&r);
    if (status != 0)
        mull__url_free(&options->url);
    return status;
}

void mull__amqp_options_free(mull__amqp_options *options)
{
    mull__url_free(&options->url);
}

void mull__amqp_promise(mull_abilities *floor, const mull__amqp_options *options)
{
    floor->can_retry = 1;
    floor->can_delay = options->declare;
    floor->deliveries = MULL_COUNTS_NOTHING;
    floor->depth = MULL_DEPTH_ROUGH;
    floor->delay_step_ms = MULL__AMQP_DELAY_STEP_MS;
    floor->longest_delay_ms = MULL__AMQP_LONGEST_MS;
    floor->claim_timeout_ms = options->claim_ms;
    /* Asked for in the URL, quorum queues are all that is read. */
    if (options->type_is_asked && !options->classic && options->declare)
        floor->deliveries = MULL_COUNTS_HANDOUTS;
}
