/* setup.c: the transports and consumers of an engine, before it starts. */
#include "setup.h"

#include "base/redact.h"
#include "base/struct_compat.h"
#include "base/system_limits.h"
#include "base/utf8.h"
#include "companions.h"
#include "consumers.h"
#include "port.h"
#include "settlement.h"
#include "timers.h"
#include "transitions.h"
#include "transport/transports.h"

#include <stdio.h>
#include <string.h>

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

/* refuse_ops says what is wrong with a transport. Nothing else is read before its version. */
static int refuse_ops(mull_engine *engine, const mull_transport_ops *ops)
{
    char url[MULL__SCHEME_MAX + 2];
    if (ops->size < sizeof *ops || ops->version != MULL_TRANSPORT_VERSION)
        return MULL__REFUSE(
            engine,
            "a transport of version %d; this library takes version %d: compile it anew, "
            "with mulligan/transport.h of this library",
            ops->version, MULL_TRANSPORT_VERSION);
    if (!mull__is_scheme(ops->scheme))
        return MULL__REFUSE(
            engine,
            "a transport's scheme is 1 to %d of a-z, 0-9, '+', '-' and '.', a letter "
            "first, without the colon",
            MULL__SCHEME_MAX);
    snprintf(url, sizeof url, "%s:", ops->scheme);
    if (mull__transport_is_ours(url))
        return MULL__REFUSE(
            engine, "'%s' is built in, or will be; give this transport a scheme of its own", url);
    if (scheme_for(engine, url))
        return MULL__REFUSE(
            engine, "there is a transport for '%s' already; give this one another scheme", url);
    const char *slot = mull__missing_slot(ops);
    if (slot)
        return MULL__REFUSE(
            engine,
            "the transport for '%s' has no `%s`; only `depth`, `hold` and `flush` may be "
            "missing",
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

static int refuse_scheme(mull_engine *engine, const char *name, const char *url)
{
    char why[512], more[128] = "";
    size_t length = 0;
    for (mull__link *link = mull__list_first(&engine->schemes); link && length < sizeof more;
         link = mull__list_after(&engine->schemes, link))
        length += (size_t)snprintf(more + length, sizeof more - length,
                                   ", %s:", MULL__ENTRY(link, mull__scheme, link)->ops->scheme);
    mull__transport_unknown(url, more, why, sizeof why);
    return mull__refuse_url(engine, MULL_EINVAL, name, url, why);
}

static int attach(mull_engine *engine, const char *name, const mull_transport_ops *ops, void *data,
                  const char *url)
{
    size_t name_size = strlen(name) + 1, url_size = strlen(url) + 1;
    mull_port *port = mull__zalloc(&engine->allocator, 1, sizeof *port + name_size + url_size);
    if (!port)
        return MULL_ENOMEM;
    *port = (mull_port){.calls = &mull__port_calls,
                        .engine = engine,
                        .health = MULL_DOWN,
                        .ops = ops,
                        .data = data};
    port->since_ms = mull__engine_now(engine);
    port->name = memcpy(port->texts, name, name_size);
    port->url = memcpy(port->texts + name_size, url, url_size);
    char why[512] = "";
    int status = mull__refusal(port->ops->open(&port->self, port, url, why, sizeof why));
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
    return mull__refuse_url(engine, status, name, url, text);
}

int mull_engine_transport(mull_engine *engine, const char *name, const char *url)
{
    if (!engine)
        return MULL_EINVAL;
    if (!mull__is_name(name) || !url)
        return MULL__REFUSE(engine,
                            "a transport needs a URL and a name, which isn't empty, and UTF-8");
    if (engine->closing)
        return MULL_ESTATE;
    if (mull__port_named(engine, name))
        return MULL__REFUSE(engine, "there is a transport '%s' already; give this one another name",
                            name);
    const mull__scheme *scheme = scheme_for(engine, url);
    const mull_transport_ops *ops = scheme ? scheme->ops : mull__transport_for(url);
    return ops ? attach(engine, name, ops, scheme ? scheme->data : NULL, url)
               : refuse_scheme(engine, name, url);
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

/* release_left releases what was abandoned. A settlement that was never answered is still the
 * transport's to read, until it has closed. */
static void release_left(mull_engine *engine, int closed)
{
    mull__delivery *d = mull__next_delivery(engine, NULL);
    while (d) {
        mull__delivery *next = mull__next_delivery(engine, d);
        if (closed || !d->unanswered) {
            mull__message_becomes(d, MULL__LOST);
            mull__delivery_release(d);
        }
        d = next;
    }
}

static void close_ports(mull_engine *engine)
{
    engine->closing = MULL__CLOSE_PORTS;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        mull__engine_cancel(engine, &c->hold_timer);
        mull__engine_cancel(engine, &c->end_timer);
    }
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));) {
        mull__engine_cancel(engine, &port->deferred_timer); /* the last of them was lost */
        port->state = MULL__PORT_CLOSING;
        port->ops->close(port->self, MULL__DRAIN_MS);
        mull__deferred_release(port);
    }
    release_left(engine, 0);
}

int mull__setup_teardown(mull_engine *engine)
{
    if (engine->closing == MULL__CLOSE_ASKED && engine->state == MULL__STOPPED &&
        all_through(engine) && mull__companions_end(engine))
        close_ports(engine);
    if (engine->closing != MULL__CLOSE_PORTS || engine->answers.count > 0)
        return 0;
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (port->state != MULL__PORT_CLOSED)
            return 0;
    release_left(engine, 1);
    mull__questions_fail(engine);
    for (mull__consumer *c; (c = mull__next_consumer(engine, NULL));)
        mull__consumer_free(c, MULL_ESTATE);
    for (mull__link *link; (link = mull__list_pop(&engine->gone));)
        mull__free(&engine->allocator, MULL__ENTRY(link, mull__consumer, link));
    for (mull__link *link; (link = mull__list_pop(&engine->ports));)
        mull__free(&engine->allocator, MULL__ENTRY(link, mull_port, link));
    for (mull__link *link; (link = mull__list_pop(&engine->schemes));)
        mull__free(&engine->allocator, MULL__ENTRY(link, mull__scheme, link));
    return 1;
}
