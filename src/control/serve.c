/* serve.c: see serve.h. */
#include "serve.h"

#include "base/alloc.h"
#include "base/list.h"
#include "net/listener.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

enum { TICK_MS = 1000 };

struct mull__server {
    mull__server_options options;
    mull__decisions decisions;
    mull__listener *listener;
    uv_timer_t timer; /* at work while there are clients */
    mull__list clients;
    uint64_t accepted; /* clients so far: each has its number */
    int handles;       /* the timer, and all of the listener's */
};

typedef struct client {
    mull__link link;
    mull__server *server;
    mull__peer *peer;
    mull__session session;
    uint64_t number;
    int finishes;
} client;

static int64_t now(const mull__server *server)
{
    return (int64_t)uv_now(server->options.loop);
}

__attribute__((format(printf, 3, 4))) static void tell(const mull__server *server, mull_level level,
                                                       const char *format, ...)
{
    char text[MULL__SESSION_WHY + 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    server->options.log(level, text, server->options.data);
}

/* ---- Clients --------------------------------------------------------------------------------- */

/* flush writes what the session says, and ends a client whose session has ended. */
static void flush(client *c)
{
    if (c->session.out.size > 0)
        mull__peer_write(c->peer, c->session.out.memory, c->session.out.size);
    c->session.out.size = 0;
    if (mull__peer_unsent(c->peer) == 0)
        mull__session_sent(&c->session);
    if (c->session.state != MULL__SESSION_ENDED || c->finishes)
        return;
    c->finishes = 1;
    tell(c->server, MULL_WARNING, "client %llu is disconnected: %s", (unsigned long long)c->number,
         c->session.why);
    mull__peer_finish(c->peer);
}

static size_t on_read(void *data, char *bytes, size_t size)
{
    client *c = data;
    size_t taken = 0, before;
    do {
        before = taken;
        taken += mull__session_feed(&c->session, bytes + taken, size - taken, now(c->server));
        flush(c);
    } while (taken > before && taken < size && !mull__session_is_full(&c->session));
    if (!c->finishes)
        mull__peer_reads(c->peer, !mull__session_is_full(&c->session));
    return taken;
}

static void on_sent(void *data)
{
    client *c = data;
    mull__session_sent(&c->session);
    mull__peer_reads(c->peer, 1);
    mull__peer_feed(c->peer);
}

static void on_gone(void *data)
{
    client *c = data;
    mull__server *server = c->server;
    mull__list_remove(&server->clients, &c->link);
    if (!mull__list_first(&server->clients))
        uv_timer_stop(&server->timer);
    mull__session_drop(&c->session);
    mull__free(&server->options.allocator, c);
}

static void on_tick(uv_timer_t *timer)
{
    mull__server *server = timer->data;
    for (mull__link *link = mull__list_first(&server->clients); link;
         link = mull__list_after(&server->clients, link)) {
        client *c = MULL__ENTRY(link, client, link);
        mull__session_tick(&c->session, now(server));
        flush(c);
        if (c->finishes && now(server) - c->session.since_ms >= MULL__SESSION_HELLO_MS)
            mull__peer_end(c->peer);
    }
}

static void *on_accepted(void *data, mull__peer *peer)
{
    mull__server *server = data;
    client *c = mull__zalloc(&server->options.allocator, 1, sizeof *c);
    if (!c)
        return NULL;
    c->server = server;
    c->peer = peer;
    c->number = ++server->accepted;
    mull__session_begin(&c->session, &mull__decisions_session, &server->decisions,
                        &server->options.allocator, now(server));
    if (!mull__list_first(&server->clients))
        uv_timer_start(&server->timer, on_tick, TICK_MS, TICK_MS);
    mull__list_push(&server->clients, &c->link);
    return c;
}

static void on_refused(void *data, const char *why)
{
    tell(data, MULL_WARNING, "%s", why);
}

/* ---- The server ------------------------------------------------------------------------------ */

static void on_listener_closed(void *data)
{
    mull__server *server = data;
    server->handles--;
}

static void on_timer_closed(uv_handle_t *handle)
{
    mull__server *server = handle->data;
    server->handles--;
}

static const mull__listener_calls calls = {on_accepted, on_read,    on_sent,
                                           on_gone,     on_refused, on_listener_closed};

int mull__server_open(mull__server **out, const mull__server_options *options,
                      char why[MULL__SERVER_WHY])
{
    mull__server *server = mull__zalloc(&options->allocator, 1, sizeof *server);
    int status = server ? 0 : MULL_ENOMEM;
    why[0] = 0;
    if (server) {
        server->options = *options;
        server->decisions = (mull__decisions){.policy = options->policy,
                                              .allocator = options->allocator,
                                              .arena.allocator = options->allocator,
                                              .ask = options->ask,
                                              .data = options->data};
        mull__list_init(&server->clients);
        status = mull_decider_new(&server->decisions.decider, options->policy);
    }
    if (status == 0)
        status = mull__listener_open(&server->listener, options->loop, &options->allocator,
                                     options->path, &calls, server, why);
    if (status != 0) {
        if (!*why)
            snprintf(why, MULL__SERVER_WHY, "%s", mull_strerror(status));
        if (server)
            mull_decider_free(server->decisions.decider);
        mull__free(&options->allocator, server);
        return status;
    }
    uv_timer_init(options->loop, &server->timer);
    server->timer.data = server;
    server->handles = 2;
    *out = server;
    return 0;
}

void mull__server_changed(mull__server *server)
{
    char generation[33];
    mull_policy_generation(server->options.policy, generation);
    for (mull__link *link = mull__list_first(&server->clients); link;
         link = mull__list_after(&server->clients, link)) {
        client *c = MULL__ENTRY(link, client, link);
        if (c->session.state != MULL__SESSION_OPENED)
            continue;
        mull__rpc_notification(&c->session.out, "policy_changed");
        mull__msgpack_entries(&c->session.out, 1);
        mull__msgpack_string(&c->session.out, "generation", sizeof "generation" - 1);
        mull__msgpack_string(&c->session.out, generation, strlen(generation));
        flush(c);
    }
}

void mull__server_close(mull__server *server)
{
    uv_close((uv_handle_t *)&server->timer, on_timer_closed);
    mull__listener_close(server->listener);
    while (server->handles > 0)
        uv_run(server->options.loop, UV_RUN_ONCE);
    mull_allocator allocator = server->options.allocator;
    mull_decider_free(server->decisions.decider);
    mull__arena_free(&server->decisions.arena);
    mull__free(&allocator, server);
}
