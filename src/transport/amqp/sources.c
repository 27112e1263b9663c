/* sources.c: subscriptions, see state.h. Each has a channel of its own, so that what goes wrong
 * with one queue is nothing to the others.
 *
 *   DOWN ── question ──> DECLARING ── channel ──> OPENING ──> IDLE <── credit ──> READING
 *     ^                                                        ^── CANCELLING <────┘ none
 *     └── connection or channel lost, for now or until a person acts
 *
 * What comes beyond the credit waits in stock. Without credit reading is cancelled first, and then
 * the stock goes back: else the broker would send it again at once. */
#include "base/alloc.h"
#include "sound.h"
#include "state.h"

#include <stdio.h>
#include <string.h>

enum { AGAIN_MS = 1000, PERSON_MS = 5000, BODY_BEGIN = 256 << 10 };

static void say(mull__amqp *t, mull__amqp_source *s, mull_source_state state, const char *why)
{
    mull_port_source(t->port, s->consumer, state, NULL, why);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void send_qos(mull__amqp *t, mull__amqp_source *s)
{
    uint32_t wanted = s->credit > s->most ? s->credit : s->most;
    uint16_t most = (uint16_t)(wanted < UINT16_MAX ? wanted : UINT16_MAX); /* 0 would be all */
    amqp_basic_qos_t qos = {.prefetch_count = most};
    s->prefetch = wanted;
    mull__amqp_send(&t->session, s->channel, AMQP_BASIC_QOS_METHOD, &qos);
}

static void consume(mull__amqp *t, mull__amqp_source *s)
{
    /* A new name each time: a quorum queue takes what an old one of that name still has for lost.
     */
    snprintf(s->tag, sizeof s->tag, "mulligan-%u", ++s->readings);
    amqp_basic_consume_t consume = {.queue = mull__amqp_text(s->queue),
                                    .consumer_tag = mull__amqp_text(s->tag)};
    if (s->credit > s->prefetch)
        send_qos(t, s);
    s->state = MULL__AMQP_SOURCE_READING;
    s->is_consuming = 0;
    mull__amqp_send(&t->session, s->channel, AMQP_BASIC_CONSUME_METHOD, &consume);
}

static void cancel(mull__amqp *t, mull__amqp_source *s)
{
    amqp_basic_cancel_t cancel = {.consumer_tag = mull__amqp_text(s->tag)};
    s->state = MULL__AMQP_SOURCE_CANCELLING;
    mull__amqp_send(&t->session, s->channel, AMQP_BASIC_CANCEL_METHOD, &cancel);
}

/* act does what the credit asks for. A consumer is cancelled once the broker has confirmed it: on a
 * quorum queue its channel crashes (541) where the cancel comes first. */
static void act(mull__amqp *t, mull__amqp_source *s)
{
    int wanted = s->credit > 0 && !s->is_ending && !t->closing;
    if (s->state == MULL__AMQP_SOURCE_IDLE && wanted)
        consume(t, s);
    else if (s->state == MULL__AMQP_SOURCE_READING && s->is_consuming &&
             (!wanted || s->credit > s->prefetch))
        cancel(t, s);
}

static void clear_stock(mull__amqp_source *s)
{
    s->stock = NULL;
    s->in_stock = 0;
}

/* return_stock gives back what the engine was never handed. */
static void return_stock(mull__amqp *t, mull__amqp_source *s)
{
    for (mull__link *link = s->stock ? &s->stock->link : NULL; link;
         link = mull__list_after(&s->deliveries, link)) {
        mull__amqp_delivery *d = MULL__ENTRY(link, mull__amqp_delivery, link);
        d->told = MULL__AMQP_NACK;
        d->is_released = 1;
        s->has_told = t->has_told = 1;
    }
    clear_stock(s);
}

/* ---- What comes ------------------------------------------------------------------------------ */

/* lay_out lays out what is behind a delivery; without memory it counts. Why the message can't be
 * understood; NULL: it is. */
static const char *lay_out(mull__block *block, mull__amqp_delivery *d, amqp_bytes_t raw,
                           const amqp_basic_properties_t *properties)
{
    char *copy = mull__block_take(block, raw.len + 1);
    if (copy && raw.len > 0)
        memcpy(copy, raw.bytes, raw.len);
    d->properties = (amqp_bytes_t){raw.len, copy};
    return properties ? mull__amqp_message_read(block, &d->message, properties)
                      : "its properties can't be read";
}

/* decode gives the properties of a message, which live in the transport's pool. NULL: they can't be
 * read. */
static amqp_basic_properties_t *decode(mull__amqp *t, amqp_bytes_t raw)
{
    void *decoded = NULL;
    int good = mull__amqp_properties_sound(raw.bytes, raw.len) &&
               amqp_decode_properties(AMQP_BASIC_CLASS, &t->pool, raw, &decoded) == AMQP_STATUS_OK;
    return good ? decoded : NULL;
}

void mull__amqp_arriving(mull__amqp *t, mull__amqp_source *s, mull__amqp_content *content)
{
    if (s->is_closing)
        return;
    amqp_bytes_t raw = {content->properties_size, (void *)(uintptr_t)content->properties};
    amqp_basic_properties_t *properties = decode(t, raw);
    mull__amqp_delivery counted = {0};
    mull__block block = {0};
    lay_out(&block, &counted, raw, properties);
    mull__amqp_delivery *d = mull__zalloc(&t->allocator, 1, sizeof *d + block.used);
    content->room = content->body_size < BODY_BEGIN ? (size_t)content->body_size : BODY_BEGIN;
    char *body = d ? mull__alloc(&t->allocator, content->room + 1) : NULL;
    if (body) {
        block = (mull__block){(char *)(d + 1), 0};
        d->message = (mull_message){.size = sizeof d->message, .queue = s->queue};
        d->delivery.size = sizeof d->delivery;
        d->delivery.message = &d->message;
        d->delivery.unreadable = lay_out(&block, d, raw, properties);
        d->unreadable = !properties;
        d->message.deliveries =
            properties ? mull__amqp_deliveries(properties, content->redelivered) : 1;
        d->source = s;
        d->tag = content->tag;
        s->arriving = d;
        content->body = d->body = body;
    } else {
        mull__free(&t->allocator, d);
    }
    recycle_amqp_pool(&t->pool);
}

int mull__amqp_arriving_more(mull__amqp *t, mull__amqp_source *s, mull__amqp_content *content,
                             size_t wanted)
{
    size_t room = content->room * 2 > wanted ? content->room * 2 : wanted;
    if (room > content->body_size)
        room = (size_t)content->body_size;
    char *body = mull__grow(&t->allocator, content->body, room + 1, 1);
    if (!body || !s->arriving)
        return MULL_ENOMEM;
    content->body = s->arriving->body = body;
    content->room = room;
    return 0;
}

/* hand_out gives the engine the first delivery in stock; it may have been settled when this
 * returns. */
static void hand_out(mull__amqp *t, mull__amqp_source *s)
{
    mull__amqp_delivery *d = s->stock;
    mull__link *next = mull__list_after(&s->deliveries, &d->link);
    s->stock = next ? MULL__ENTRY(next, mull__amqp_delivery, link) : NULL;
    s->in_stock--;
    d->is_out = 1;
    s->out++;
    mull_port_delivered(t->port, s->consumer, &d->delivery);
}

/* serve hands out as far as there is credit. */
static void serve(mull__amqp *t, mull__amqp_source *s)
{
    while (s->in_stock > 0 && s->state == MULL__AMQP_SOURCE_READING && s->credit > s->out)
        hand_out(t, s);
}

void mull__amqp_sources_serve(mull__amqp *t)
{
    for (mull__link *link = mull__list_first(&t->sources); link;
         link = mull__list_after(&t->sources, link))
        serve(t, MULL__ENTRY(link, mull__amqp_source, link));
}

void mull__amqp_arrived(mull__amqp *t, mull__amqp_source *s, const mull__amqp_content *content)
{
    mull__amqp_delivery *d = s->arriving;
    s->arriving = NULL;
    if (s->is_closing) {
        if (d)
            mull__amqp_delivery_free(t, d);
        return;
    }
    if (!d || content->is_lost) { /* there was no memory for it */
        amqp_basic_nack_t nack = {.delivery_tag = content->tag, .requeue = 1};
        mull__amqp_send(&t->session, s->channel, AMQP_BASIC_NACK_METHOD, &nack);
        if (d)
            mull__amqp_delivery_free(t, d);
        return;
    }
    d->body[content->body_size] = 0;
    d->message.body = d->body;
    d->message.body_size = (size_t)content->body_size;
    mull__list_push(&s->deliveries, &d->link);
    if (s->in_stock++ == 0)
        s->stock = d;
    serve(t, s);
}

/* ---- What is lost ---------------------------------------------------------------------------- */

/* lose tells that all claims of a subscription are gone. One that is LEAVING has ended, and leaves
 * on. */
static void lose(mull__amqp *t, mull__amqp_source *s, const char *why)
{
    mull__link *link;
    const mull__amqp_delivery *stock = s->stock;
    int is_in_stock = 0;
    if (s->arriving)
        mull__amqp_delivery_free(t, s->arriving);
    s->arriving = NULL;
    clear_stock(s);
    if (s->state != MULL__AMQP_SOURCE_LEAVING)
        s->state = MULL__AMQP_SOURCE_DOWN;
    while ((link = mull__list_first(&s->deliveries))) {
        mull__amqp_delivery *d = MULL__ENTRY(link, mull__amqp_delivery, link);
        int is_out = d->is_out;
        is_in_stock |= d == stock;
        d->is_lost = 1;
        d->is_released |= is_in_stock;
        mull__amqp_delivery_over(t, d);
        if (is_out && d->settlement)
            mull__amqp_settle_lost(t, d, why);
        else if (is_out)
            mull_port_lost(t->port, d->delivery.ticket, why);
    }
}

static void free_source(mull__amqp *t, mull__amqp_source *s)
{
    mull__link *link;
    mull__amqp_unask(t, &s->question);
    while ((link = mull__list_pop(&s->deliveries)))
        mull__amqp_delivery_free(t, MULL__ENTRY(link, mull__amqp_delivery, link));
    if (s->arriving)
        mull__amqp_delivery_free(t, s->arriving);
    mull__list_remove(&t->sources, &s->link);
    mull__free(&t->allocator, s);
}

/* ended: nothing more comes for it. It stays until its acknowledgements are surely read. */
static void ended(mull__amqp *t, mull__amqp_source *s)
{
    s->state = MULL__AMQP_SOURCE_LEAVING;
    s->again_ms = mull__amqp_now(t) + mull__amqp_read_ms(t);
    mull_port_source(t->port, s->consumer, MULL_SOURCE_ENDED, NULL, NULL);
}

/* later waits for better times, and says why. */
static void later(mull__amqp *t, mull__amqp_source *s, mull_source_state state, const char *why)
{
    if (s->state == MULL__AMQP_SOURCE_LEAVING)
        return;
    s->state = MULL__AMQP_SOURCE_DOWN;
    s->again_ms = mull__amqp_now(t) + (state == MULL_SOURCE_REFUSED ? PERSON_MS : AGAIN_MS);
    if (s->is_ending)
        ended(t, s);
    else
        say(t, s, state, why);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static int source_ask(mull__amqp *t, mull__amqp_question *question)
{
    mull__amqp_source *s = MULL__ENTRY(question, mull__amqp_source, question);
    if (mull__amqp_declare_send(t, &s->declaration, s->queue) == 0)
        return 0;
    later(t, s, MULL_SOURCE_REFUSED, "a queue's name has 255 bytes at most");
    return 1;
}

static void open_channel(mull__amqp *t, mull__amqp_source *s)
{
    char why[128];
    int status = mull__amqp_channel_open(&t->session, s->channel);
    s->state = MULL__AMQP_SOURCE_OPENING;
    if (status == 0)
        return;
    snprintf(why, sizeof why, "the broker allows no more than %u channels to a connection",
             t->session.channel_max);
    later(t, s, MULL_SOURCE_REFUSED, status == MULL_EREFUSED ? why : mull_strerror(status));
}

static int source_answered(mull__amqp *t, mull__amqp_question *question,
                           const mull__amqp_reply *reply)
{
    mull__amqp_source *s = MULL__ENTRY(question, mull__amqp_source, question);
    char why[512];
    int status = mull__amqp_declare_answered(t, &s->declaration, s->queue, reply, why, sizeof why);
    if (status == 1)
        open_channel(t, s);
    else if (status == MULL_EREFUSED)
        later(t, s, MULL_SOURCE_REFUSED, why);
    return status != 0;
}

static void begin(mull__amqp *t, mull__amqp_source *s)
{
    s->state = MULL__AMQP_SOURCE_DECLARING;
    mull__amqp_declare_begin(t, &s->declaration, 1);
    mull__amqp_ask(t, &s->question);
}

/* ready: its channel is open. A quorum queue counts what it hands out. */
static void ready(mull__amqp *t, mull__amqp_source *s)
{
    mull_abilities found = MULL_INIT(mull_abilities);
    mull__amqp_promise(&found, &t->options);
    if (s->declaration.is_quorum)
        found.deliveries = MULL_COUNTS_HANDOUTS;
    s->state = MULL__AMQP_SOURCE_IDLE;
    if (s->is_ending) {
        ended(t, s);
        return;
    }
    mull_port_source(t->port, s->consumer, MULL_SOURCE_READY, &found, NULL);
    act(t, s);
}

/* closed: the broker closed its channel, and so took back what was out. */
static void closed(mull__amqp *t, mull__amqp_source *s, const amqp_channel_close_t *close)
{
    char text[256], why[400];
    mull__amqp_quote(text, sizeof text, close->reply_text);
    int person =
        close->reply_code == AMQP_ACCESS_REFUSED || close->reply_code == AMQP_RESOURCE_LOCKED;
    snprintf(why, sizeof why, "the broker closed its channel (%u): %s", close->reply_code, text);
    lose(t, s, why);
    later(t, s, person ? MULL_SOURCE_REFUSED : MULL_SOURCE_WAITING, why);
}

/* cancelled: by the broker, as a rule since the queue was deleted. */
static void cancelled(mull__amqp *t, mull__amqp_source *s)
{
    mull__amqp_forget(t, s->queue);
    lose(t, s, "the queue was deleted");
    s->is_closing = 1;
    mull__amqp_channel_close(&t->session, s->channel);
    later(t, s, MULL_SOURCE_WAITING, "it was deleted, or its node failed");
}

void mull__amqp_source_method(mull__amqp *t, mull__amqp_source *s, amqp_method_number_t id,
                              const void *decoded)
{
    if (id == AMQP_CHANNEL_CLOSE_OK_METHOD || id == AMQP_CHANNEL_CLOSE_METHOD) {
        int asked = s->is_closing;
        s->is_closing = 0;
        if (!asked && id == AMQP_CHANNEL_CLOSE_METHOD)
            closed(t, s, decoded);
    } else if (s->is_closing) {
        return; /* what was on its way */
    } else if (id == AMQP_CHANNEL_OPEN_OK_METHOD) {
        send_qos(t, s);
    } else if (id == AMQP_BASIC_QOS_OK_METHOD && s->state == MULL__AMQP_SOURCE_OPENING) {
        ready(t, s);
    } else if (id == AMQP_BASIC_CONSUME_OK_METHOD) {
        s->is_consuming = 1;
        act(t, s);
    } else if (id == AMQP_BASIC_CANCEL_METHOD) {
        cancelled(t, s);
    } else if (id == AMQP_BASIC_CANCEL_OK_METHOD && s->state == MULL__AMQP_SOURCE_CANCELLING) {
        return_stock(t, s);
        s->state = MULL__AMQP_SOURCE_IDLE;
        if (s->is_ending)
            ended(t, s);
        else
            act(t, s);
    }
}

/* ---- From above ------------------------------------------------------------------------------ */

/* free_channel is the least number that no subscription has. */
static uint16_t free_channel(mull__amqp *t)
{
    uint16_t channel = MULL__AMQP_SOURCES;
    while (channel < UINT16_MAX && mull__amqp_source_of(t, channel))
        channel++;
    return channel;
}

int mull__amqp_source_new(mull__amqp *t, mull_ticket consumer, const mull_source *source,
                          mull__amqp_source **out)
{
    size_t length = strlen(source->queue) + 1;
    mull__amqp_source *s = mull__zalloc(&t->allocator, 1, sizeof *s + length);
    *out = s;
    if (!s)
        return MULL_ENOMEM;
    s->consumer = consumer;
    s->most = source->most;
    s->queue = memcpy(s + 1, source->queue, length);
    s->channel = free_channel(t);
    s->question.ask = source_ask;
    s->question.answered = source_answered;
    mull__list_init(&s->deliveries);
    mull__list_push(&t->sources, &s->link);
    if (t->is_open)
        begin(t, s);
    return 0;
}

void mull__amqp_source_credit(mull__amqp *t, mull__amqp_source *s, uint32_t credit)
{
    s->credit = credit;
    act(t, s);
    if (s->in_stock > 0 && credit > s->out)
        mull__amqp_wake(t);
}

void mull__amqp_source_end(mull__amqp *t, mull__amqp_source *s)
{
    s->is_ending = 1;
    mull__amqp_unask(t, &s->question);
    if (s->state == MULL__AMQP_SOURCE_READING)
        act(t, s);
    else if (s->state != MULL__AMQP_SOURCE_CANCELLING && s->state != MULL__AMQP_SOURCE_OPENING)
        ended(t, s);
}

mull__amqp_source *mull__amqp_source_of(mull__amqp *t, uint16_t channel)
{
    for (mull__link *link = mull__list_first(&t->sources); link;
         link = mull__list_after(&t->sources, link)) {
        mull__amqp_source *s = MULL__ENTRY(link, mull__amqp_source, link);
        if (s->channel == channel)
            return s;
    }
    return NULL;
}

/* leave closes the channel of one that has ended, and frees it when that is done. */
static void leave(mull__amqp *t, mull__amqp_source *s)
{
    if (mull__amqp_channel_is_open(&t->session, s->channel) && !s->is_closing) {
        mull__amqp_tell(t, s);
        mull__amqp_channel_close(&t->session, s->channel);
        s->is_closing = 1;
    } else if (!s->is_closing) {
        free_source(t, s);
    }
}

void mull__amqp_sources_up(mull__amqp *t)
{
    mull__link *after;
    for (mull__link *link = mull__list_first(&t->sources); link; link = after) {
        mull__amqp_source *s = MULL__ENTRY(link, mull__amqp_source, link);
        after = mull__list_after(&t->sources, link);
        if (mull__amqp_now(t) < s->again_ms || s->is_closing)
            continue;
        if (s->state == MULL__AMQP_SOURCE_LEAVING)
            leave(t, s);
        else if (s->state == MULL__AMQP_SOURCE_DOWN && t->is_open && !t->closing)
            begin(t, s);
    }
}

void mull__amqp_sources_lost(mull__amqp *t, const char *why)
{
    for (mull__link *link = mull__list_first(&t->sources); link;
         link = mull__list_after(&t->sources, link)) {
        mull__amqp_source *s = MULL__ENTRY(link, mull__amqp_source, link);
        lose(t, s, why);
        s->is_closing = 0;
        s->again_ms = 0;
        if (s->state == MULL__AMQP_SOURCE_LEAVING)
            continue;
        if (s->is_ending)
            ended(t, s);
        else
            say(t, s, MULL_SOURCE_WAITING, NULL);
    }
}

void mull__amqp_sources_stop(mull__amqp *t)
{
    for (mull__link *link = mull__list_first(&t->sources); link;
         link = mull__list_after(&t->sources, link)) {
        mull__amqp_source *s = MULL__ENTRY(link, mull__amqp_source, link);
        mull__amqp_unask(t, &s->question);
        act(t, s);
    }
}

int mull__amqp_sources_stopped(mull__amqp *t)
{
    for (mull__link *link = mull__list_first(&t->sources); link;
         link = mull__list_after(&t->sources, link)) {
        mull__amqp_source *s = MULL__ENTRY(link, mull__amqp_source, link);
        if (s->state == MULL__AMQP_SOURCE_READING || s->state == MULL__AMQP_SOURCE_CANCELLING)
            return 0;
    }
    return 1;
}

void mull__amqp_sources_free(mull__amqp *t)
{
    mull__link *link;
    while ((link = mull__list_first(&t->sources)))
        free_source(t, MULL__ENTRY(link, mull__amqp_source, link));
}
