/* amqp_peer.h: what tests of transport/amqp/session.c share: the other end of it, whose frames are
 * put together byte by byte, and a session whose events are noted as text.
 *
 *   start_tune_open(&p)             a session that is open
 *   method(&p, channel, id, &m)     a frame of the server's
 *   feed(&p, step)                  all of it, `step` bytes at a time
 *   p.events                        "open; method 1 0x14000b; content 1 "x"; "
 */
#ifndef SPEC_AMQP_PEER_H
#define SPEC_AMQP_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "transport/amqp/session.h"

typedef struct peer {
    mull__amqp_session session;
    mull__amqp_login login;
    char in[400000], out[400000]; /* of the server, to the server */
    size_t in_size, out_size;
    char events[4096];
    char *body;
    int refuse_more; /* content_more has no memory */
} peer;

__attribute__((format(printf, 2, 3))) static void note(peer *p, const char *format, ...)
{
    size_t length = strlen(p->events);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(p->events + length, sizeof p->events - length, format, arguments);
    va_end(arguments);
}

/* ---- What the session calls ------------------------------------------------------------------ */

static int peer_write(void *data, const void *bytes, size_t size)
{
    peer *p = data;
    if (p->out_size + size > sizeof p->out)
        return MULL_ENOMEM;
    memcpy(p->out + p->out_size, bytes, size);
    p->out_size += size;
    return 0;
}

static void peer_open(void *data)
{
    note(data, "open; ");
}

static void peer_method(void *data, uint16_t channel, amqp_method_number_t id, void *decoded)
{
    (void)decoded;
    note(data, "method %u 0x%x; ", channel, id);
}

static void peer_begin(void *data, mull__amqp_content *content)
{
    peer *p = data;
    content->room = content->body_size < 8 ? (size_t)content->body_size : 8;
    content->body = p->body = realloc(p->body, content->room + 1);
}

static int peer_more(void *data, mull__amqp_content *content, size_t wanted)
{
    peer *p = data;
    if (p->refuse_more)
        return MULL_ENOMEM;
    content->body = p->body = realloc(p->body, wanted + 1);
    content->room = wanted;
    return 0;
}

static void peer_end(void *data, mull__amqp_content *content)
{
    int shown = content->body_size < 40 ? (int)content->body_size : 40;
    note(data, "%s %u %llu \"%.*s\"; ",
         content->is_lost                               ? "lost"
         : content->method == AMQP_BASIC_DELIVER_METHOD ? "content"
                                                        : "return",
         content->channel, (unsigned long long)content->tag, shown, content->body);
}

static void peer_blocked(void *data, const char *reason)
{
    note(data, "blocked %s; ", reason ? reason : "no more");
}

static const mull__amqp_calls peer_calls = {peer_write, peer_open, peer_method, peer_begin,
                                            peer_more,  peer_end,  peer_blocked};

/* ---- What the server says -------------------------------------------------------------------- */

static void put_be(char *out, uint64_t number, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (char)(number >> 8 * (count - 1 - i));
}

static void frame(peer *p, uint8_t type, uint16_t channel, const void *payload, size_t size)
{
    char *at = p->in + p->in_size;
    put_be(at, type, 1);
    put_be(at + 1, channel, 2);
    put_be(at + 3, size, 4);
    if (size > 0)
        memmove(at + 7, payload, size);
    at[7 + size] = (char)AMQP_FRAME_END;
    p->in_size += size + 8;
}

static void method(peer *p, uint16_t channel, amqp_method_number_t id, void *decoded)
{
    char payload[4096];
    put_be(payload, id, 4);
    int size = amqp_encode_method(id, decoded, (amqp_bytes_t){sizeof payload - 4, payload + 4});
    assert_true(size >= 0);
    frame(p, AMQP_FRAME_METHOD, channel, payload, 4 + (size_t)size);
}

/* content is a header and a body of so many pieces. */
static inline void content(peer *p, uint16_t channel, const char *body, size_t size, size_t piece)
{
    char header[14] = {0};
    put_be(header, AMQP_BASIC_CLASS, 2);
    put_be(header + 4, size, 8);
    frame(p, AMQP_FRAME_HEADER, channel, header, sizeof header);
    for (size_t at = 0; at < size; at += piece)
        frame(p, AMQP_FRAME_BODY, channel, body + at, size - at < piece ? size - at : piece);
}

static inline void deliver(peer *p, uint16_t channel, uint64_t tag)
{
    amqp_basic_deliver_t deliver = {.consumer_tag = mull__amqp_text("c"),
                                    .delivery_tag = tag,
                                    .exchange = mull__amqp_text(""),
                                    .routing_key = mull__amqp_text("q")};
    method(p, channel, AMQP_BASIC_DELIVER_METHOD, &deliver);
}

static void start(peer *p, const char *mechanisms, int has_confirms)
{
    amqp_field_value_t yes = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1};
    amqp_table_entry_t can[] = {{mull__amqp_text("basic.nack"), yes},
                                {mull__amqp_text("publisher_confirms"), yes}};
    amqp_field_value_t capabilities = {.kind = AMQP_FIELD_KIND_TABLE,
                                       .value.table = {has_confirms ? 2 : 1, can}};
    amqp_table_entry_t properties[] = {
        {mull__amqp_text("capabilities"), capabilities},
        {mull__amqp_text("product"),
         {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = mull__amqp_text("RabbitMQ")}},
        {mull__amqp_text("version"),
         {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = mull__amqp_text("4.1.2")}}};
    amqp_connection_start_t start = {.version_major = 0,
                                     .version_minor = 9,
                                     .server_properties = {3, properties},
                                     .mechanisms = mull__amqp_text(mechanisms),
                                     .locales = mull__amqp_text("en_US")};
    method(p, 0, AMQP_CONNECTION_START_METHOD, &start);
}

static void tune(peer *p, uint16_t channels, uint32_t frame_max, uint16_t heartbeat)
{
    amqp_connection_tune_t tune = {channels, frame_max, heartbeat};
    method(p, 0, AMQP_CONNECTION_TUNE_METHOD, &tune);
}

static void open_ok(peer *p)
{
    amqp_connection_open_ok_t ok = {.known_hosts = amqp_empty_bytes};
    method(p, 0, AMQP_CONNECTION_OPEN_OK_METHOD, &ok);
}

static void channel_open_ok(peer *p, uint16_t channel)
{
    amqp_channel_open_ok_t ok = {.channel_id = amqp_empty_bytes};
    method(p, channel, AMQP_CHANNEL_OPEN_OK_METHOD, &ok);
}

/* ---- Its life -------------------------------------------------------------------------------- */

/* feed gives the session all that the server said, in pieces. */
static int feed(peer *p, size_t step)
{
    int status = 0;
    for (size_t at = 0; at < p->in_size && status == 0; at += step) {
        size_t size = p->in_size - at < step ? p->in_size - at : step;
        char *exact = malloc(size); /* so that a sanitizer sees who reads on */
        memcpy(exact, p->in + at, size);
        status = mull__amqp_session_feed(&p->session, exact, size);
        free(exact);
    }
    p->in_size = 0;
    return status;
}

static void peer_begin_session(peer *p)
{
    mull_allocator allocator = mull__allocator_or_default((mull_allocator){0});
    memset(p, 0, sizeof *p);
    p->login = (mull__amqp_login){
        .user = "guest", .password = "top secret", .vhost = "/", .name = "test", .heartbeat_s = 60};
    assert_int_equal(mull__amqp_session_init(&p->session, &allocator, &peer_calls, p, &p->login),
                     0);
    mull__amqp_session_begin(&p->session);
}

static void peer_end_session(peer *p)
{
    mull__amqp_session_free(&p->session);
    free(p->body);
}

/* start_tune_open gives a session that is open, with a channel. */
static void start_tune_open(peer *p)
{
    peer_begin_session(p);
    start(p, "PLAIN AMQPLAIN", 1);
    tune(p, 2047, 131072, 60);
    open_ok(p);
    assert_int_equal(feed(p, sizeof p->in), 0);
    assert_int_equal(mull__amqp_channel_open(&p->session, 1), 0);
    channel_open_ok(p, 1);
    assert_int_equal(feed(p, sizeof p->in), 0);
    assert_string_equal(p->events, "open; method 1 0x14000b; ");
    p->events[0] = 0;
    p->out_size = 0;
}

#endif
