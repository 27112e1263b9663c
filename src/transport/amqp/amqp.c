/* amqp.c: the transport amqp://HOST/VHOST, and amqps:, as the engine sees it: its slots, and the
 * connection. state.h says what the other files do.
 *
 *   slots ──> sources, settle, posts, questions ──> session ──> net/link ──> the broker
 *   mull_port_... <── sources, settle, posts, questions <── session <── net/link <──┘
 */
#include "base/alloc.h"
#include "base/utf8.h"
#include "mulligan/module.h"
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    BEAT_MS = 500,
    CLOSING_BEAT_MS = 20,
    FIRST_WAIT_MS = 100,
    LONGEST_WAIT_MS = 10 * 1000,
    GOODBYE_MS = 1000,              /* for the broker to say it, too */
    MAX_MESSAGE = 512 * 1024 * 1024 /* until the broker says less */
};

/* ---- Small things ---------------------------------------------------------------------------- */

void mull__amqp_log(mull__amqp *t, mull_level level, const char *format, ...)
{
    char text[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    mull_port_log(t->port, level, text);
}

int mull__amqp_is_up(const mull__amqp *t)
{
    return t->is_open && !t->blocked[0];
}

void mull__amqp_wake(mull__amqp *t)
{
    mull_port_timer_set(t->port, t->turn, 0);
}

void mull__amqp_flush(mull__amqp *t)
{
    for (mull__link *link = t->has_told ? mull__list_first(&t->sources) : NULL; link;
         link = mull__list_after(&t->sources, link)) {
        mull__amqp_source *source = MULL__ENTRY(link, mull__amqp_source, link);
        if (source->has_told)
            mull__amqp_tell(t, source);
    }
    t->has_told = 0;
    mull__link_flush(t->link);
}

/* tell_state says how we are. */
static void tell_state(mull__amqp *t)
{
    if (mull__amqp_is_up(t))
        mull_port_state(t->port, MULL_UP, NULL);
    else
        mull_port_state(t->port, MULL_DOWN, t->is_open ? t->blocked : t->down);
}

/* ---- The session ----------------------------------------------------------------------------- */

/* on_write: a connection that can't be written to any more ends by itself, and what the server said
 * last, which is still to be read, is the reason. One without memory is in the middle of a frame.
 */
static int on_write(void *data, const void *bytes, size_t size)
{
    mull__amqp *t = data;
    int status = mull__link_write(t->link, bytes, size);
    if (status == MULL_EDOWN)
        return 0;
    if (status != 0)
        mull__link_cut(t->link, "out of memory");
    return status;
}

static void on_open(void *data)
{
    mull__amqp *t = data;
    mull__amqp_channel_open(&t->session, MULL__AMQP_POSTS);
    mull__amqp_channel_open(&t->session, MULL__AMQP_ASKS);
}

/* opened: once both channels of our own are there, the transport is up. */
static void opened(mull__amqp *t)
{
    if (t->is_open || !t->posts_open || !t->asks_open)
        return;
    t->is_open = 1;
    mull__link_settled(t->link);
    tell_state(t);
    mull__amqp_sources_up(t);
    mull__amqp_posts_go(t);
}

static void on_method(void *data, uint16_t channel, amqp_method_number_t id, void *decoded)
{
    mull__amqp *t = data;
    mull__amqp_source *source = NULL;
    if (channel == MULL__AMQP_POSTS)
        mull__amqp_posts_method(t, id, decoded);
    else if (channel == MULL__AMQP_ASKS && id == AMQP_CHANNEL_OPEN_OK_METHOD)
        mull__amqp_asks_open(t);
    else if (channel == MULL__AMQP_ASKS)
        mull__amqp_asks_method(t, id, decoded);
    else if ((source = mull__amqp_source_of(t, channel)))
        mull__amqp_source_method(t, source, id, decoded);
    opened(t);
}

static void on_content_begin(void *data, mull__amqp_content *content)
{
    mull__amqp *t = data;
    mull__amqp_source *source = mull__amqp_source_of(t, content->channel);
    if (content->method == AMQP_BASIC_DELIVER_METHOD && source)
        mull__amqp_arriving(t, source, content);
}

static int on_content_more(void *data, mull__amqp_content *content, size_t wanted)
{
    mull__amqp *t = data;
    mull__amqp_source *source = mull__amqp_source_of(t, content->channel);
    return source ? mull__amqp_arriving_more(t, source, content, wanted) : MULL_EIO;
}

static void on_content_end(void *data, mull__amqp_content *content)
{
    mull__amqp *t = data;
    mull__amqp_source *source = mull__amqp_source_of(t, content->channel);
    if (content->method == AMQP_BASIC_RETURN_METHOD)
        mull__amqp_posts_returned(t, content);
    else if (source)
        mull__amqp_arrived(t, source, content);
}

static void on_blocked(void *data, const char *reason)
{
    mull__amqp *t = data;
    t->blocked[0] = 0;
    if (reason)
        snprintf(t->blocked, sizeof t->blocked,
                 "the broker takes no messages until it has more room (%s)", reason);
    if (!t->is_open)
        return;
    tell_state(t);
    mull__amqp_posts_go(t);
}

static const mull__amqp_calls session_calls = {
    .write = on_write,
    .open = on_open,
    .method = on_method,
    .content_begin = on_content_begin,
    .content_more = on_content_more,
    .content_end = on_content_end,
    .blocked = on_blocked,
};

/* ---- The end --------------------------------------------------------------------------------- */

static void on_beat_closed(uv_handle_t *handle)
{
    mull__amqp *t = handle->data;
    mull_port *port = t->port;
    mull_allocator allocator = t->allocator;
    mull__link *link;
    while ((link = mull__list_pop(&t->over))) /* nobody releases them any more */
        mull__amqp_delivery_free(t, MULL__ENTRY(link, mull__amqp_delivery, link));
    mull__amqp_sources_free(t);
    mull__amqp_forget_all(t);
    mull_port_timer_free(port, t->turn);
    mull__tls_free(t->tls);
    mull__amqp_session_free(&t->session);
    empty_amqp_pool(&t->pool);
    mull__amqp_options_free(&t->options);
    mull__free(&allocator, t);
    mull_port_closed(port);
}

static void on_link_closed(void *data)
{
    mull__amqp *t = data;
    uv_close((uv_handle_t *)&t->beat, on_beat_closed);
}

/* hang_up ends the connection; whatever is still under way is lost. */
static void hang_up(mull__amqp *t)
{
    snprintf(t->down, sizeof t->down, "it was closed before the broker had answered");
    uv_timer_stop(&t->beat);
    t->is_open = 0;
    mull__amqp_asks_lost(t);
    mull__amqp_posts_lost(t, t->down);
    mull__amqp_sources_lost(t, t->down);
    mull_port_timer_set(t->port, t->turn, MULL_NEVER); /* the link is gone before we are */
    mull__amqp_log(t, MULL_DEBUG, "%llu acknowledgements", (unsigned long long)t->acknowledgements);
    mull__link_close(t->link, GOODBYE_MS, on_link_closed);
}

/* ---- The connection -------------------------------------------------------------------------- */

static void on_up(void *data)
{
    mull__amqp *t = data;
    t->blocked[0] = 0;
    t->up_ms = mull__amqp_now(t);
    t->max_message = MAX_MESSAGE; /* it may be set anew */
    mull__amqp_session_begin(&t->session);
    mull__link_flush(t->link);
}

static void on_read(void *data, const char *bytes, size_t size)
{
    mull__amqp *t = data;
    int status = mull__amqp_session_feed(&t->session, bytes, size);
    if (status != 0 && t->closing)
        hang_up(t);
    else if (status != 0)
        mull__link_cut(t->link, t->session.why);
    else
        mull__amqp_flush(t);
}

static void on_down(void *data, const char *why)
{
    mull__amqp *t = data;
    snprintf(t->down, sizeof t->down, "%s", why);
    mull__utf8_repair(t->down, strlen(t->down));
    t->session.state = MULL__AMQP_CLOSED;
    t->is_open = 0;
    tell_state(t);
    mull__amqp_asks_lost(t);
    mull__amqp_posts_lost(t, t->down);
    mull__amqp_forget_all(t);
    t->delay_statements = 0;
    t->has_told = 0;
    mull__amqp_sources_lost(t, t->down);
}

/* What is published is bounded by its confirms, so nobody waits for the kernel. */
static void on_writable(void *data)
{
    (void)data;
}

static const mull__link_calls link_calls = {on_up, on_read, on_down, on_writable};

/* ---- Beats ---------------------------------------------------------------------------------- */

/* close_on goes on with closing: once all is answered and read, the broker is told. What was
 * acknowledged just before a connection ends may be lost on quorum queues, so it gets a while. */
static void close_on(mull__amqp *t)
{
    int is_late = mull__amqp_now(t) >= t->close_ms + (uint64_t)t->drain_ms;
    int is_done = mull__amqp_posts_left(t) == 0 && mull__amqp_sources_stopped(t);
    if (!t->is_open || t->session.state == MULL__AMQP_CLOSED) {
        hang_up(t);
    } else if (t->session.state == MULL__AMQP_OPEN && (is_done || is_late)) {
        mull__amqp_flush(t);
        if (mull__amqp_now(t) < t->told_ms + mull__amqp_read_ms(t))
            return;
        t->close_ms = mull__amqp_now(t);
        mull__amqp_session_close(&t->session);
        mull__link_flush(t->link);
    } else if (t->session.state == MULL__AMQP_CLOSING &&
               mull__amqp_now(t) >= t->close_ms + GOODBYE_MS) {
        hang_up(t);
    }
}

static void on_beat(uv_timer_t *timer)
{
    mull__amqp *t = timer->data;
    mull__amqp_posts_beat(t);
    if (t->closing) {
        close_on(t);
        return;
    }
    if (!t->is_open && t->session.state != MULL__AMQP_CLOSED &&
        t->session.state != MULL__AMQP_OFF &&
        mull__amqp_now(t) >= t->up_ms + (uint64_t)t->options.connect_ms)
        mull__link_cut(t->link, "the server doesn't answer; does it still start, or hang, or "
                                "speak something else than AMQP?");
    /* A heartbeat is looked at twice in its time. */
    if (t->session.heartbeat_s > 0 && ++t->beats >= t->session.heartbeat_s * 1000 / 2 / BEAT_MS) {
        t->beats = 0;
        if (t->is_open && mull__amqp_session_tick(&t->session) != 0)
            mull__link_cut(t->link, t->session.why);
    }
    mull__amqp_sources_up(t);
    mull__amqp_flush(t);
}

static void on_turn(void *data)
{
    mull__amqp *t = data;
    mull__amqp_sources_serve(t);
    mull__amqp_flush(t);
}

/* ---- The slots ------------------------------------------------------------------------------- */

static int amqp_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                     size_t why_size)
{
    mull__amqp_options options;
    mull_allocator allocator = mull__allocator_or_default((mull_allocator){0});
    int status = mull__amqp_options_read(&options, &allocator, url, why, why_size);
    (void)queue; /* which kind it is, only the broker knows */
    if (status != 0)
        return status;
    mull__amqp_promise(floor, &options);
    mull__amqp_options_free(&options);
    return 0;
}

/* connect makes what talks to the broker. */
static int connect_to(mull__amqp *t, char *why, size_t why_size)
{
    const mull__amqp_options *o = &t->options;
    t->login = (mull__amqp_login){.user = o->user,
                                  .password = o->password,
                                  .vhost = o->vhost,
                                  .name = o->name,
                                  .external = o->external,
                                  .heartbeat_s = (uint16_t)((o->heartbeat_ms + 999) / 1000)};
    int status = o->uses_tls ? mull__tls_new(&t->tls, &t->allocator, &o->tls, why, why_size) : 0;
    if (status == 0)
        status = mull__amqp_session_init(&t->session, &t->allocator, &session_calls, t, &t->login);
    if (status != 0)
        return status;
    const mull__link_options link = {.loop = mull_port_loop(t->port),
                                     .allocator = &t->allocator,
                                     .addresses = o->url.addresses,
                                     .address_count = o->url.address_count,
                                     .tls = t->tls,
                                     .connect_ms = o->connect_ms,
                                     .first_wait_ms = FIRST_WAIT_MS,
                                     .longest_wait_ms = LONGEST_WAIT_MS};
    status = mull__link_open(&t->link, &link, &link_calls, t);
    if (status != 0)
        mull__amqp_session_free(&t->session);
    return status;
}

static int amqp_open(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    const mull_allocator *allocator = mull_port_allocator(port);
    mull__amqp *t = mull__zalloc(allocator, 1, sizeof *t);
    *self = NULL;
    if (!t)
        return MULL_ENOMEM;
    t->port = port;
    t->allocator = *allocator;
    mull__list_init(&t->questions);
    mull__list_init(&t->waiting);
    mull__list_init(&t->unconfirmed);
    mull__list_init(&t->nacked);
    mull__list_init(&t->sources);
    mull__list_init(&t->over);
    init_amqp_pool(&t->pool, 4096);
    int status = mull__amqp_options_read(&t->options, allocator, url, why, why_size);
    if (status == 0 && !(t->turn = mull_port_timer_new(port, on_turn, t)))
        status = MULL_ENOMEM;
    if (status == 0)
        status = connect_to(t, why, why_size);
    if (status == 0) {
        uv_timer_init(mull_port_loop(port), &t->beat);
        t->beat.data = t;
        uv_timer_start(&t->beat, on_beat, BEAT_MS, BEAT_MS);
        *self = t;
        return 0;
    }
    mull__tls_free(t->tls);
    mull_port_timer_free(port, t->turn);
    mull__amqp_options_free(&t->options);
    mull__free(allocator, t);
    return status;
}

static int amqp_subscribe(void *self, mull_ticket consumer, const mull_source *source,
                          void **subscription)
{
    mull__amqp_source *made;
    int status = mull__amqp_source_new(self, consumer, source, &made);
    *subscription = made;
    return status;
}

static void amqp_credit(void *self, void *subscription, uint32_t deliveries)
{
    mull__amqp_source_credit(self, subscription, deliveries);
}

static void amqp_unsubscribe(void *self, void *subscription)
{
    mull__amqp_source_end(self, subscription);
}

static int amqp_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    return mull__amqp_is_up(self) ? mull__amqp_publish_new(self, outgoing, ticket) : MULL_EDOWN;
}

static void amqp_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                        mull_ticket ticket)
{
    mull__amqp_settle(self, (mull__amqp_delivery *)delivery, settlement, ticket);
}

static int amqp_depth(void *self, const char *queue, mull_ticket ticket)
{
    mull__amqp *t = self;
    return t->is_open ? mull__amqp_depth_ask(t, queue, ticket) : MULL_EDOWN;
}

static void amqp_release(void *self, mull_delivery *delivery)
{
    mull__amqp *t = self;
    mull__amqp_delivery *d = (mull__amqp_delivery *)delivery;
    if (d->is_out)
        d->source->out--; /* it was lost, or is left claimed */
    if (d->is_out && d->source->in_stock > 0)
        mull__amqp_wake(t);
    d->is_out = 0;
    d->is_released = 1;
    if (d->is_over) {
        mull__list_remove(&t->over, &d->link);
        mull__amqp_delivery_free(t, d);
    }
}

static void amqp_close(void *self, int64_t drain_ms)
{
    mull__amqp *t = self;
    t->closing = 1;
    t->drain_ms = drain_ms > 0 ? drain_ms : 0;
    t->close_ms = mull__amqp_now(t);
    if (t->is_open)
        mull__amqp_sources_stop(t);
    mull__amqp_flush(t);
    uv_timer_start(&t->beat, on_beat, 0, CLOSING_BEAT_MS);
}

static void amqp_flush(void *self)
{
    mull__amqp_flush(self);
}

static const mull_transport_ops mull__amqp_ops = {
    MULL_TRANSPORT_OPS(amqp),
    .depth = amqp_depth,
    .flush = amqp_flush,
};

MULL_MODULE(amqp, &mull__amqp_ops);
