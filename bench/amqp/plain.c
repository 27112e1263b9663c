/* plain.c: see plain.h. A connection has two channels, as the engine's: one that is read and
 * acknowledged, and one that publishes. Both are read in one loop, a frame at a time, so nothing
 * waits for what the broker says to one message. */
#include "amqp/plain.h"

#include "kit/measure.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ = 1, POST = 2, BODY_SIZE = 256, MOST_UNCONFIRMED = 1000, FRAME_MAX = 131072 };

#define DELAY_EXCHANGE "mulligan.delay.quorum.0"
#define DELAY_OUT      "mulligan.delay.quorum.out"
#define DELAY_BIT      "mulligan.delay.0"

/* plain is a connection. Deliveries and posts are counted from 1, as AMQP's tags are. */
typedef struct plain {
    amqp_connection_state_t connection;
    uint64_t posts, unconfirmed, confirmed; /* all up to that one are */
    char *is_confirmed;                     /* by post */

    const bench_plain_work *work; /* NULL: it only publishes */
    char *is_settled;             /* by delivery */
    uint64_t *copied;             /* by post: the delivery whose copy it is */
    uint64_t settled, told;       /* all up to that delivery are, and the broker knows */
    uint64_t tag;                 /* of the delivery that comes */
    amqp_basic_properties_t properties;
    int done; /* messages */
    bench_span span;
} plain;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench/amqp: %s: %s\n", what, why);
    exit(2);
}

static void must(int status, const char *what)
{
    if (status != AMQP_STATUS_OK)
        die(what, amqp_error_string2(status));
}

static void *zeros(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        die("no memory", "for a run");
    return memory;
}

/* ---- The connection -------------------------------------------------------------------------- */

/* answered looks at the broker's answer to the last method. */
static void answered(const plain *p, const char *what)
{
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(p->connection);
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
        die(what, amqp_error_string2(reply.library_error));
    if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION)
        die(what, "the broker refuses it");
}

static void open_plain(plain *p, const char *url)
{
    char text[1024];
    struct amqp_connection_info at;
    *p = (plain){0};
    snprintf(text, sizeof text, "%s", url);
    must(amqp_parse_url(text, &at), url);
    p->connection = amqp_new_connection();
    amqp_socket_t *socket = amqp_tcp_socket_new(p->connection);
    must(socket ? amqp_socket_open(socket, at.host, at.port) : AMQP_STATUS_NO_MEMORY, url);
    amqp_rpc_reply_t reply = amqp_login(p->connection, at.vhost, 0, FRAME_MAX, 0,
                                        AMQP_SASL_METHOD_PLAIN, at.user, at.password);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        die(url, "the login is refused");
    amqp_channel_open(p->connection, READ);
    answered(p, "a channel");
    amqp_channel_open(p->connection, POST);
    answered(p, "a channel");
    amqp_confirm_select(p->connection, POST);
    answered(p, "confirms");
}

static void close_plain(plain *p)
{
    amqp_connection_close(p->connection, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(p->connection);
    free(p->is_confirmed);
    free(p->is_settled);
    free(p->copied);
}

/* ---- Publishing, acknowledging --------------------------------------------------------------- */

static void post(plain *p, const char *exchange, const char *queue,
                 const amqp_basic_properties_t *properties, amqp_bytes_t body)
{
    must(amqp_basic_publish(p->connection, POST, amqp_cstring_bytes(exchange),
                            amqp_cstring_bytes(queue), 1, 0, properties, body),
         "publishing");
    p->posts++;
    p->unconfirmed++;
}

/* settle acknowledges with each full group, and with the last message. */
static void settle(plain *p, uint64_t tag)
{
    p->is_settled[tag] = 1;
    while (p->is_settled[p->settled + 1])
        p->settled++;
    if (p->settled - p->told < (uint64_t)p->work->group && p->done < p->work->messages)
        return;
    must(amqp_basic_ack(p->connection, READ, p->settled, 1), "an acknowledgement");
    p->told = p->settled;
}

static void confirm(plain *p, uint64_t number)
{
    if (p->is_confirmed[number])
        return;
    p->is_confirmed[number] = 1;
    p->unconfirmed--;
    if (p->work)
        settle(p, p->copied[number]);
}

/* take_confirm takes a frame of the channel that publishes. */
static void take_confirm(plain *p, const amqp_frame_t *frame)
{
    if (frame->frame_type != AMQP_FRAME_METHOD || frame->payload.method.id != AMQP_BASIC_ACK_METHOD)
        die("publishing", "a message isn't confirmed");
    const amqp_basic_ack_t *ack = frame->payload.method.decoded;
    uint64_t last = ack->delivery_tag;
    for (uint64_t number = ack->multiple ? p->confirmed + 1 : last; number <= last; number++)
        confirm(p, number);
    if (ack->multiple && last > p->confirmed)
        p->confirmed = last;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

static amqp_table_entry_t entry(const char *name, amqp_field_value_t value)
{
    return (amqp_table_entry_t){amqp_cstring_bytes(name), value};
}

static void declare(const plain *p, const char *queue)
{
    amqp_table_entry_t arguments[] = {
        entry("x-queue-type", (amqp_field_value_t){.kind = AMQP_FIELD_KIND_UTF8,
                                                   .value.bytes = amqp_cstring_bytes("quorum")}),
        entry("x-delivery-limit",
              (amqp_field_value_t){.kind = AMQP_FIELD_KIND_I64, .value.i64 = INT32_MAX})};
    amqp_queue_declare(p->connection, READ, amqp_cstring_bytes(queue), 0, 1, 0, 0,
                       (amqp_table_t){2, arguments});
    answered(p, queue);
}

static void await_confirms(plain *p, uint64_t most_unconfirmed)
{
    amqp_frame_t frame;
    while (p->unconfirmed > most_unconfirmed) {
        must(amqp_simple_wait_frame(p->connection, &frame), "waiting for a confirm");
        take_confirm(p, &frame);
        amqp_maybe_release_buffers(p->connection);
    }
}

void bench_plain_fill(const char *url, const char *queue, int messages)
{
    plain p;
    char body[BODY_SIZE], id[16];
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG |
                                                    AMQP_BASIC_MESSAGE_ID_FLAG,
                                          .delivery_mode = AMQP_DELIVERY_PERSISTENT};
    open_plain(&p, url);
    p.is_confirmed = zeros((size_t)messages + 1, 1);
    declare(&p, queue);
    memset(body, 'x', sizeof body);
    for (int i = 0; i < messages; i++) {
        snprintf(id, sizeof id, "m-%d", i);
        properties.message_id = amqp_cstring_bytes(id);
        post(&p, "", queue, &properties, (amqp_bytes_t){sizeof body, body});
        await_confirms(&p, MOST_UNCONFIRMED);
    }
    await_confirms(&p, 0);
    close_plain(&p);
}

uint32_t bench_plain_remove(const char *url, const char *queue)
{
    plain p;
    open_plain(&p, url);
    amqp_queue_delete_ok_t *ok =
        amqp_queue_delete(p.connection, READ, amqp_cstring_bytes(queue), 0, 0);
    answered(&p, queue);
    uint32_t count = ok->message_count;
    close_plain(&p);
    return count;
}

uint32_t bench_plain_purge(const char *url, const char *queue)
{
    plain p;
    open_plain(&p, url);
    amqp_queue_purge_ok_t *ok = amqp_queue_purge(p.connection, READ, amqp_cstring_bytes(queue));
    answered(&p, queue);
    uint32_t count = ok->message_count;
    close_plain(&p);
    return count;
}

/* ---- The loop -------------------------------------------------------------------------------- */

void bench_span_note(bench_span *span)
{
    span->last = bench_clock_ns(CLOCK_MONOTONIC);
    span->last_cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (span->first > 0)
        return;
    span->first = span->last;
    span->first_cpu = span->last_cpu;
}

static int was_delayed(const amqp_basic_properties_t *properties)
{
    if (!(properties->_flags & AMQP_BASIC_HEADERS_FLAG))
        return 0;
    for (int i = 0; i < properties->headers.num_entries; i++) {
        amqp_bytes_t name = properties->headers.entries[i].key;
        if (name.len == sizeof DELAY_BIT - 1 && memcmp(name.bytes, DELAY_BIT, name.len) == 0)
            return 1;
    }
    return 0;
}

static void delay(plain *p, amqp_bytes_t body)
{
    amqp_table_entry_t bit =
        entry(DELAY_BIT, (amqp_field_value_t){.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1});
    p->properties.headers = (amqp_table_t){1, &bit};
    p->properties._flags |= AMQP_BASIC_HEADERS_FLAG;
    post(p, DELAY_EXCHANGE, p->work->queue, &p->properties, body);
    p->copied[p->posts] = p->tag;
}

static void take_message(plain *p, amqp_bytes_t body)
{
    bench_span_note(&p->span);
    if (p->work->fails && !was_delayed(&p->properties)) {
        delay(p, body);
    } else {
        p->done++;
        settle(p, p->tag);
    }
}

/* take takes a frame; each body is in one. */
static void take(plain *p, const amqp_frame_t *frame)
{
    if (frame->channel == POST) {
        take_confirm(p, frame);
    } else if (frame->frame_type == AMQP_FRAME_METHOD) {
        if (frame->payload.method.id != AMQP_BASIC_DELIVER_METHOD)
            die("reading", "the broker ends it");
        p->tag = ((const amqp_basic_deliver_t *)frame->payload.method.decoded)->delivery_tag;
    } else if (frame->frame_type == AMQP_FRAME_HEADER) {
        p->properties = *(const amqp_basic_properties_t *)frame->payload.properties.decoded;
    } else {
        take_message(p, frame->payload.body_fragment);
        amqp_maybe_release_buffers(p->connection);
    }
}

static void consume(const plain *p)
{
    amqp_bytes_t queue = amqp_cstring_bytes(p->work->queue);
    if (p->work->fails) {
        amqp_queue_bind(p->connection, READ, queue, amqp_cstring_bytes(DELAY_OUT), queue,
                        amqp_empty_table);
        answered(p, DELAY_OUT);
    }
    amqp_basic_qos(p->connection, READ, 0, (uint16_t)p->work->prefetch, 0);
    answered(p, "the prefetch");
    amqp_basic_consume(p->connection, READ, queue, amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
    answered(p, p->work->queue);
}

bench_span bench_plain_run(const char *url, const bench_plain_work *work)
{
    plain p;
    amqp_frame_t frame;
    size_t posts = (size_t)work->messages + 1, deliveries = 2 * (size_t)work->messages + 2;
    open_plain(&p, url);
    p.work = work;
    p.is_confirmed = zeros(posts, 1);
    p.copied = zeros(posts, sizeof *p.copied);
    p.is_settled = zeros(deliveries, 1);
    consume(&p);
    while (p.done < work->messages) {
        must(amqp_simple_wait_frame(p.connection, &frame), "reading");
        take(&p, &frame);
    }
    close_plain(&p);
    return p.span;
}
