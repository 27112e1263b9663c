/* setup.c: the transports and consumers of an engine, before it starts. */
#include "setup.h"

#include "base/redact.h"
#include "base/struct_compat.h"
#include "base/system_limits.h"
#include "base/utf8.h"
#include "calls.h"
#include "port.h"
#include "settlement.h"
#include "timers.h"
#include "transitions.h"
#include "transport/transports.h"

#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MS = 30000, SCHEME_MAX = 31 };

#define REFUSE(engine, ...) mull__engine_problem(engine, MULL_EINVAL, __VA_ARGS__)

/* is_name: what policies, logs and headers can call something. */
static int is_name(const char *text)
{
    return text && text[0] && mull__utf8_valid(text);
}

/* ---- Schemes --------------------------------------------------------------------------------- */

/* scheme_for finds what the embedder brought for a URL, NULL: nothing. */
static const mull__scheme *scheme_for(mull_engine *engine, const char *url)
{
    for (mull__link *link = mull__list_first(&engine->schemes); link;
         link = mull__list_after(&engine->schemes, link)) {
        const mull__scheme *scheme = MULL__ENTRY(link, mull__scheme, link);
        if (mull__has_scheme(url, scheme->ops->scheme))
            return scheme;
    }
    return NULL;
}

/* is_scheme: as a URL's is, in small letters, since URLs are compared as they are. */
static int is_scheme(const char *text)
{
    size_t length = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") : 0;
    return length > 0 && length <= SCHEME_MAX && !text[length] && text[0] >= 'a' && text[0] <= 'z';
}

/* missing_slot names the first slot that a transport needs and hasn't, NULL: none. */
static const char *missing_slot(const mull_transport_ops *ops)
{
    return !ops->open        ? "open"
           : !ops->subscribe ? "subscribe"
           : !ops->credit    ? "credit"
           : !ops->publish   ? "publish"
           : !ops->settle    ? "settle"
           : !ops->depth     ? "depth"
           : !ops->release   ? "release"
           : !ops->close     ? "close"
                             : NULL;
}

/* refuse_ops says what is wrong with a transport. Nothing else is read before its version. */
static int refuse_ops(mull_engine *engine, const mull_transport_ops *ops)
{
    char url[SCHEME_MAX + 2];
    if (ops->version != MULL_TRANSPORT_VERSION)
        return REFUSE(engine,
                      "a transport of version %d; this library takes version %d: compile it anew, "
                      "with mulligan/transport.h of this library",
                      ops->version, MULL_TRANSPORT_VERSION);
    if (!is_scheme(ops->scheme))
        return REFUSE(engine,
                      "a transport's scheme is 1 to %d of a-z, 0-9, '+', '-' and '.', a letter "
                      "first, without the colon",
                      SCHEME_MAX);
    snprintf(url, sizeof url, "%s:", ops->scheme);
    if (mull__transport_is_ours(url))
        return REFUSE(engine,
                      "'%s' is built in, or will be; give this transport a scheme of its own", url);
    if (scheme_for(engine, url))
        return REFUSE(engine, "there is a transport for '%s' already; give this one another scheme",
                      url);
    const char *slot = missing_slot(ops);
    if (slot)
        return REFUSE(engine,
                      "the transport for '%s' has no `%s`; only `hold` and `look` may be missing",
                      url, slot);
    return 0;
}

int mull_engine_scheme(mull_engine *engine, const mull_transport_ops *ops, void *data)
{
    if (!engine || !ops)
        return MULL_EINVAL;
    if (engine->closing)
        return MULL_ESTATE;
    int status = refuse_ops(engine, ops);
    if (status != 0)
        return status;
    mull__scheme *scheme = mull__alloc(&engine->allocator, sizeof *scheme);
    if (!scheme)
        return MULL_ENOMEM;
    *scheme = (mull__scheme){.ops = ops, .data = data};
    mull__list_push(&engine->schemes, &scheme->link);
    return 0;
}

/* ---- Transports ------------------------------------------------------------------------------ */

/* refuse_url tells what is wrong with a URL, without its credentials. */
static int refuse_url(mull_engine *engine, int status, const char *name, const char *url,
                      const char *why)
{
    char masked[512];
    mull__redact(masked, sizeof masked, why, url);
    return mull__engine_problem(engine, status, "transport '%s': %s", name, masked);
}

static int refuse_scheme(mull_engine *engine, const char *name, const char *url)
{
    char why[512], more[128] = "";
    size_t length = 0;
    for (mull__link *link = mull__list_first(&engine->schemes); link && length < sizeof more;
         link = mull__list_after(&engine->schemes, link))
        length += (size_t)snprintf(more + length, sizeof more - length,
                                   ", %s:", MULL__ENTRY(link, mull__scheme, link)->ops->scheme);
    mull__transport_unknown(url, more, why, sizeof why);
    return refuse_url(engine, MULL_EINVAL, name, url, why);
}

static int attach(mull_engine *engine, const char *name, const mull_transport_ops *ops, void *data,
                  const char *url)
{
    size_t size = strlen(name) + 1;
    mull_port *port = mull__zalloc(&engine->allocator, 1, sizeof *port + size);
    if (!port)
        return MULL_ENOMEM;
    *port = (mull_port){
        .calls = &mull__port_calls, .engine = engine, .health = MULL_UP, .ops = ops, .data = data};
    memcpy(port->name, name, size);
    char why[512] = "";
    int status =
        mull__refusal(port->ops->open(&port->self, port, url, &port->abilities, why, sizeof why));
    if (status == 0) {
        mull__list_push(&engine->ports, &port->link);
        return 0;
    }
    mull__free(&engine->allocator, port);
    enum { DESCRIPTORS = 8 }; /* that a transport takes */
    char lack[256] = "", text[1024];
    mull__descriptors_missing(DESCRIPTORS, lack, sizeof lack);
    snprintf(text, sizeof text, "%s%s%s", why[0] ? why : mull_strerror(status), lack[0] ? "; " : "",
             lack);
    return refuse_url(engine, status, name, url, text);
}

int mull_engine_transport(mull_engine *engine, const char *name, const char *url)
{
    if (!engine)
        return MULL_EINVAL;
    if (!is_name(name) || !url)
        return REFUSE(engine, "a transport needs a URL and a name, which isn't empty, and UTF-8");
    if (engine->closing)
        return MULL_ESTATE;
    if (mull__port_named(engine, name))
        return REFUSE(engine, "there is a transport '%s' already; give this one another name",
                      name);
    const mull__scheme *scheme = scheme_for(engine, url);
    const mull_transport_ops *ops = scheme ? scheme->ops : mull__transport_for(url);
    return ops ? attach(engine, name, ops, scheme ? scheme->data : NULL, url)
               : refuse_scheme(engine, name, url);
}

/* ---- Consumers ------------------------------------------------------------------------------- */

/* has_consumer says whether there is one of this name, of this transport and of its queue. NULL:
 * any. */
static int has_consumer(mull_engine *engine, const char *name, const mull_port *port,
                        const char *queue)
{
    for (mull_subscription *c = NULL; (c = mull__next_consumer(engine, c));)
        if ((!name || strcmp(c->name, name) == 0) && (!port || c->port == port) &&
            (!queue || strcmp(c->queue, queue) == 0))
            return 1;
    return 0;
}

static void take_options(mull_subscription *c, const mull_consumer_options *options)
{
    c->options = *options;
    if (c->options.concurrency == 0)
        c->options.concurrency = 1;
    if (c->options.prefetch == 0)
        c->options.prefetch =
            c->options.concurrency > UINT32_MAX / 2 ? UINT32_MAX : 2 * c->options.concurrency;
    if (c->options.timeout_ms == 0)
        c->options.timeout_ms = TIMEOUT_MS;
    if (c->options.max_body == 0)
        c->options.max_body = MULL__BODY_MAX;
}

/* refuse_options says what a consumer's options lack, if anything. */
static int refuse_options(mull_engine *engine, const mull_consumer_options *options)
{
    const char *name = is_name(options->name) ? options->name : "?";
    const char *missing = !is_name(options->name)    ? "name"
                          : !options->transport      ? "transport"
                          : !is_name(options->queue) ? "queue"
                          : !options->handler        ? "handler"
                                                     : NULL;
    if (missing)
        return REFUSE(engine, "consumer '%s': `%s` is required; a text isn't empty, and UTF-8",
                      name, missing);
    if (options->timeout_ms < MULL_NEVER)
        return REFUSE(engine, "consumer '%s': `timeout_ms` is below 0; no limit is MULL_NEVER",
                      name);
    return 0;
}

static int add_consumer(mull_engine *engine, const mull_consumer_options *options)
{
    mull_port *port = mull__port_named(engine, options->transport);
    if (!port) {
        char transport[256]; /* somebody may have given the URL for its name */
        mull__redact(transport, sizeof transport, options->transport, options->transport);
        return REFUSE(engine, "consumer '%s': there is no transport '%s'", options->name,
                      transport);
    }
    if (has_consumer(engine, options->name, NULL, NULL))
        return REFUSE(engine, "there is a consumer '%s' already; give this one another name",
                      options->name);
    size_t name_size = strlen(options->name) + 1, queue_size = strlen(options->queue) + 1;
    mull_subscription *c = mull__zalloc(&engine->allocator, 1, sizeof *c + name_size + queue_size);
    if (!c)
        return MULL_ENOMEM;
    *c = (mull_subscription){.engine = engine, .port = port};
    c->name = memcpy(c->texts, options->name, name_size);
    c->queue = memcpy(c->texts + name_size, options->queue, queue_size);
    mull__list_init(&c->waiting);
    mull__list_init(&c->candidates);
    mull__list_init(&c->retries);
    take_options(c, options);
    c->shares = has_consumer(engine, NULL, port, c->queue);
    if (!c->shares && !(port->abilities.counts_at_once && has_consumer(engine, NULL, port, NULL)))
        engine->depths.moments++;
    mull__list_push(&engine->consumers, &c->link);
    return 0;
}

int mull_engine_consumer(mull_engine *engine, const mull_consumer_options *given)
{
    mull_consumer_options options;
    if (!engine)
        return MULL_EINVAL;
    if (!mull__struct_copy_in(&options, sizeof options, MULL__CONSUMER_OPTIONS_LEAST, given))
        return REFUSE(
            engine,
            "there are no options of a consumer, or their `size` isn't set, as MULL_INIT does");
    int status = refuse_options(engine, &options);
    if (status != 0)
        return status;
    if (engine->state != MULL__NEW || engine->closing)
        return MULL_ESTATE;
    return add_consumer(engine, &options);
}

/* ---- Taking them down ------------------------------------------------------------------------ */

/* all_through: no handler is at work, and what is still here was abandoned. */
static int all_through(mull_engine *engine)
{
    for (mull__delivery *d = NULL; (d = mull__next_delivery(engine, d));)
        if (d->state != MULL__ABANDONED || d->call != 0)
            return 0;
    return 1;
}

static void close_ports(mull_engine *engine)
{
    engine->closing = MULL__CLOSE_PORTS;
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));) {
        mull__engine_cancel(engine, &port->hold_timer);
        mull__engine_cancel(engine, &port->deferred_timer); /* the last of them was lost */
        port->state = MULL__PORT_CLOSING;
        port->ops->close(port->self);
        mull__deferred_release(port);
    }
    for (mull__delivery *d; (d = mull__next_delivery(engine, NULL));) {
        mull__message_becomes(d, MULL__LOST);
        mull__delivery_release(d);
    }
}

int mull__setup_teardown(mull_engine *engine)
{
    if (engine->closing == MULL__CLOSE_ASKED && engine->state == MULL__STOPPED &&
        all_through(engine))
        close_ports(engine);
    if (engine->closing != MULL__CLOSE_PORTS)
        return 0;
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (port->state != MULL__PORT_CLOSED)
            return 0;
    for (mull__link *link; (link = mull__list_pop(&engine->ports));)
        mull__free(&engine->allocator, MULL__ENTRY(link, mull_port, link));
    mull__list *const lists[] = {&engine->consumers, &engine->schemes};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (mull__link *link; (link = mull__list_pop(lists[i]));)
            mull__free(&engine->allocator, link); /* it comes first in each */
    return 1;
}
