/* server.c: a connection, as RabbitMQ speaks AMQP 0-9-1: frames, the login, heartbeats, and
 * connection.blocked. It bears no mistake: what RabbitMQ would close a connection or a channel for,
 * and what no client should do, is a violation. channel.c has what channels do. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAME_HEADER = 7,
    FRAME_OVERHEAD = 8,
    FRAME_MAX = 131072,
    CHANNEL_MAX = CHANNELS - 1,
    HANDSHAKE_MS = 10000
};

static uint64_t number_at(const char *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

static void put_number(char *out, uint64_t number, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (char)(number >> 8 * (count - 1 - i));
}

/* ---- Out ------------------------------------------------------------------------------------- */

static char scratch[FRAME_MAX + 65536];

/* send_frame sends what `size` bytes of scratch, behind the room for a frame's head, are. */
static void send_frame(conn *c, int type, uint16_t number, size_t size)
{
    put_number(scratch, (uint64_t)type, 1);
    put_number(scratch + 1, number, 2);
    put_number(scratch + 3, size, 4);
    scratch[FRAME_HEADER + size] = (char)AMQP_FRAME_END;
    wire_write(c->wire, &c->wire->down, scratch, size + FRAME_OVERHEAD);
}

void conn_send(conn *c, uint16_t number, amqp_method_number_t id, void *method)
{
    amqp_bytes_t room = {FRAME_MAX, scratch + FRAME_HEADER + 4};
    put_number(scratch + FRAME_HEADER, id, 4);
    int size = amqp_encode_method(id, method, room);
    if (size < 0)
        violation(c->broker->sim, "method %x can't be encoded", id);
    send_frame(c, AMQP_FRAME_METHOD, number, 4 + (size_t)size);
}

void conn_send_content(conn *c, uint16_t number, amqp_method_number_t id, void *method,
                       amqp_bytes_t properties, amqp_bytes_t body)
{
    char *header = scratch + FRAME_HEADER;
    size_t most = c->frame_max - FRAME_OVERHEAD;
    conn_send(c, number, id, method);
    put_number(header, AMQP_BASIC_CLASS, 2);
    put_number(header + 2, 0, 2);
    put_number(header + 4, body.len, 8);
    memcpy(header + 12, properties.bytes, properties.len);
    send_frame(c, AMQP_FRAME_HEADER, number, 12 + properties.len);
    for (size_t at = 0; at < body.len; at += most) {
        size_t size = body.len - at < most ? body.len - at : most;
        memcpy(scratch + FRAME_HEADER, (const char *)body.bytes + at, size);
        send_frame(c, AMQP_FRAME_BODY, number, size);
    }
}

/* ---- The login ------------------------------------------------------------------------------- */

static amqp_field_value_t text_value(const char *text)
{
    return (amqp_field_value_t){.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = bytes_of(text)};
}

static void send_start(conn *c)
{
    const amqp_field_value_t yes = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1};
    amqp_table_entry_t can[] = {{bytes_of("publisher_confirms"), yes},
                                {bytes_of("basic.nack"), yes},
                                {bytes_of("consumer_cancel_notify"), yes},
                                {bytes_of("connection.blocked"), yes}};
    amqp_table_entry_t we[] = {
        {bytes_of("product"), text_value("RabbitMQ")},
        {bytes_of("version"), text_value("3.10.8")},
        {bytes_of("capabilities"), {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {4, can}}}};
    amqp_connection_start_t start = {.version_minor = 9,
                                     .server_properties = {3, we},
                                     .mechanisms = bytes_of("AMQPLAIN PLAIN"),
                                     .locales = bytes_of("en_US")};
    c->state = CONN_START;
    conn_send(c, 0, AMQP_CONNECTION_START_METHOD, &start);
}

static void send_tune(conn *c)
{
    sim *s = c->broker->sim;
    amqp_connection_tune_t tune = {.channel_max = CHANNEL_MAX,
                                   .frame_max = one_in(s, 2) ? FRAME_MAX : FRAME_LEAST,
                                   .heartbeat = 60};
    c->frame_max = tune.frame_max;
    c->state = CONN_TUNE;
    conn_send(c, 0, AMQP_CONNECTION_TUNE_METHOD, &tune);
}

/* beat looks twice in a heartbeat whether the other side was heard, and is heard itself. */
static void beat(sim *s, void *data)
{
    conn *c = data;
    int64_t silent_ms = s->k.now_ms - c->heard_ms;
    c->beat = at_time(s, c->heartbeat_s * 500, beat, c);
    if (c->is_blocked)
        c->heard_ms = s->k.now_ms;
    else if (silent_ms > c->heartbeat_s * 2000 + 1000 && !c->wire->is_mute && !c->wire->is_cut)
        violation(s, "the module was silent for %lld ms", (long long)silent_ms);
    send_frame(c, AMQP_FRAME_HEARTBEAT, 0, 0);
}

static void on_tune_ok(conn *c, const amqp_connection_tune_ok_t *ok)
{
    sim *s = c->broker->sim;
    if (ok->frame_max > c->frame_max || ok->channel_max > CHANNEL_MAX || ok->heartbeat > 60)
        violation(s, "the module agrees on more than was offered");
    c->frame_max = ok->frame_max;
    c->heartbeat_s = ok->heartbeat;
    c->state = CONN_OPENING;
    c->heard_ms = s->k.now_ms;
    if (c->heartbeat_s > 0)
        c->beat = at_time(s, c->heartbeat_s * 500, beat, c);
}

/* ---- The end --------------------------------------------------------------------------------- */

void conn_gone(conn *c)
{
    if (c->state == CONN_GONE)
        return;
    note(c->broker->sim, "the broker hears that the connection is gone", 0, 0, 0, 0);
    c->state = CONN_GONE;
    for (int i = 0; i < CHANNELS; i++)
        channel_end(&c->channels[i], 1);
    call_off(&c->beat);
    mull__list_remove(&c->broker->conns, &c->link);
    c->wire->server = NULL;
    wire_end(c->wire, &c->wire->down);
}

void conn_close(conn *c, uint16_t code, const char *why)
{
    amqp_connection_close_t close = {.reply_code = code, .reply_text = bytes_of(why)};
    if (c->state != CONN_OPEN)
        return;
    conn_send(c, 0, AMQP_CONNECTION_CLOSE_METHOD, &close);
    c->state = CONN_CLOSING;
}

/* on_close: channels are ended, whatever they haven't done yet. */
static void on_close(conn *c)
{
    amqp_connection_close_ok_t ok = {0};
    for (int i = 0; i < CHANNELS; i++)
        channel_end(&c->channels[i], c->was_slow);
    conn_send(c, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
    c->wire->is_closed = 1;
    conn_gone(c);
}

/* ---- Blocked --------------------------------------------------------------------------------- */

static void block(conn *c)
{
    amqp_connection_blocked_t blocked = {.reason = bytes_of("low on memory")};
    note(c->broker->sim, "the connection is blocked", 0, 0, 0, 0);
    c->broker->sim->totals->blocked++;
    c->is_blocked = 1;
    c->was_slow = 1;
    conn_send(c, 0, AMQP_CONNECTION_BLOCKED_METHOD, &blocked);
    wire_hold(&c->wire->up, 1);
}

static void read_on(sim *s, void *data)
{
    conn *c = data;
    (void)s;
    if (c->state == CONN_GONE || c->is_blocked)
        return;
    wire_hold(&c->wire->up, 0);
    conn_read(c, "", 0);
}

static void unblock(conn *c)
{
    amqp_connection_unblocked_t unblocked = {0};
    c->is_blocked = 0;
    conn_send(c, 0, AMQP_CONNECTION_UNBLOCKED_METHOD, &unblocked);
    at_time(c->broker->sim, 0, read_on, c);
}

void conn_block(broker *b, int on)
{
    b->alarm = on;
    for (mull__link *at = mull__list_first(&b->conns); at && !on;
         at = mull__list_after(&b->conns, at))
        if (MULL__ENTRY(at, conn, link)->is_blocked)
            unblock(MULL__ENTRY(at, conn, link));
}

/* ---- In -------------------------------------------------------------------------------------- */

static void connection_method(conn *c, amqp_method_number_t id, const void *method)
{
    sim *s = c->broker->sim;
    if (id == AMQP_CONNECTION_CLOSE_OK_METHOD && c->state == CONN_CLOSING) {
        conn_gone(c);
    } else if (c->state == CONN_CLOSING) {
        return;
    } else if (id == AMQP_CONNECTION_START_OK_METHOD && c->state == CONN_START) {
        send_tune(c);
    } else if (id == AMQP_CONNECTION_TUNE_OK_METHOD && c->state == CONN_TUNE) {
        on_tune_ok(c, method);
    } else if (id == AMQP_CONNECTION_OPEN_METHOD && c->state == CONN_OPENING) {
        amqp_connection_open_ok_t ok = {0};
        c->state = CONN_OPEN;
        conn_send(c, 0, AMQP_CONNECTION_OPEN_OK_METHOD, &ok);
    } else if (id == AMQP_CONNECTION_CLOSE_METHOD && c->state == CONN_OPEN) {
        on_close(c);
    } else {
        violation(s, "method %x comes at the wrong time", id);
    }
}

static void method_frame(conn *c, uint16_t number, amqp_bytes_t payload)
{
    sim *s = c->broker->sim;
    void *method = NULL;
    if (payload.len < 4)
        violation(s, "a method without a name");
    amqp_method_number_t id = (amqp_method_number_t)number_at(payload.bytes, 4);
    amqp_bytes_t encoded = {payload.len - 4, (char *)payload.bytes + 4};
    if (number == 0) {
        if (amqp_decode_method(id, &c->broker->pool, encoded, &method) < 0)
            violation(s, "method %x can't be read", id);
        connection_method(c, id, method);
        return;
    }
    if (c->state == CONN_CLOSING)
        return;
    if (number > CHANNEL_MAX || c->state < CONN_OPEN)
        violation(s, "a method on channel %d, which there can't be", number);
    command *what = keep(s, sizeof *what);
    what->id = id;
    what->method = keep_bytes(s, encoded);
    channel *on = &c->channels[number];
    if (on->arriving)
        violation(s, "a method on channel %d where content was due", number);
    if (id == AMQP_BASIC_PUBLISH_METHOD && c->broker->alarm && !c->is_blocked)
        block(c);
    if (id == AMQP_BASIC_PUBLISH_METHOD) {
        on->arriving = what;
        on->body_size = SIZE_MAX;
    } else {
        channel_take(on, what);
    }
}

static void content_frame(conn *c, int type, uint16_t number, amqp_bytes_t payload)
{
    sim *s = c->broker->sim;
    if (c->state == CONN_CLOSING)
        return;
    channel *on = number > 0 && number < CHANNELS ? &c->channels[number] : NULL;
    command *what = on ? on->arriving : NULL;
    if (!what || (type == AMQP_FRAME_HEADER) != (on->body_size == SIZE_MAX))
        violation(s, "a frame of content on channel %d, where none was due", number);
    if (type == AMQP_FRAME_HEADER) {
        on->body_size = (size_t)number_at((char *)payload.bytes + 4, 8);
        on->body_at = 0;
        amqp_bytes_t properties = {payload.len - 12, (char *)payload.bytes + 12};
        what->properties = keep_bytes(s, properties);
        what->body = (amqp_bytes_t){on->body_size, keep(s, on->body_size + 1)};
    } else {
        if (payload.len > on->body_size - on->body_at)
            violation(s, "a body that is longer than was said");
        memcpy((char *)what->body.bytes + on->body_at, payload.bytes, payload.len);
        on->body_at += payload.len;
    }
    if (on->body_at == on->body_size) {
        on->arriving = NULL;
        channel_take(on, what);
    }
}

static void frame(conn *c, const char *bytes, size_t payload)
{
    sim *s = c->broker->sim;
    int type = bytes[0];
    uint16_t number = (uint16_t)number_at(bytes + 1, 2);
    amqp_bytes_t content = {payload, (void *)(uintptr_t)(bytes + FRAME_HEADER)};
    if ((unsigned char)bytes[FRAME_HEADER + payload] != AMQP_FRAME_END)
        violation(s, "a frame without its end");
    if (type == AMQP_FRAME_METHOD)
        method_frame(c, number, content);
    else if (type == AMQP_FRAME_HEADER || type == AMQP_FRAME_BODY)
        content_frame(c, type, number, content);
    else if (type != AMQP_FRAME_HEARTBEAT || number != 0 || payload != 0)
        violation(s, "a frame of kind %d", type);
    recycle_amqp_pool(&c->broker->pool);
}

/* whole is how many bytes the first thing that came has; 0: it isn't whole. */
static size_t whole(conn *c, const char *bytes, size_t size)
{
    sim *s = c->broker->sim;
    if (c->state == CONN_NEW)
        return size >= 8 ? 8 : 0;
    if (size < FRAME_HEADER)
        return 0;
    uint64_t payload = number_at(bytes + 3, 4);
    uint64_t most = (c->frame_max ? c->frame_max : FRAME_LEAST) - FRAME_OVERHEAD;
    if (payload > most)
        violation(s, "a frame of %llu bytes, %llu are allowed", (unsigned long long)payload,
                  (unsigned long long)most);
    return size >= payload + FRAME_OVERHEAD ? (size_t)payload + FRAME_OVERHEAD : 0;
}

static void first_bytes(conn *c, const char *bytes)
{
    if (memcmp(bytes, "AMQP\0\0\x9\x1", 8) != 0)
        violation(c->broker->sim, "the module doesn't begin with the header of AMQP 0-9-1");
    send_start(c);
}

static void keep_in(conn *c, const char *bytes, size_t size)
{
    if (c->in_size + size > c->in_room) {
        char *old = c->in;
        c->in_room = 2 * (c->in_size + size) + 1024;
        c->in = keep(c->broker->sim, c->in_room);
        if (c->in_size > 0)
            memcpy(c->in, old, c->in_size);
    }
    if (size > 0)
        memcpy(c->in + c->in_size, bytes, size);
    c->in_size += size;
}

void conn_read(conn *c, const char *bytes, size_t size)
{
    size_t at = 0, length;
    c->heard_ms = c->broker->sim->k.now_ms;
    keep_in(c, bytes, size);
    while (c->state != CONN_GONE && !c->is_blocked &&
           (length = whole(c, c->in + at, c->in_size - at)) > 0) {
        if (c->state == CONN_NEW)
            first_bytes(c, c->in + at);
        else
            frame(c, c->in + at, length - FRAME_OVERHEAD);
        at += length;
    }
    if (at > 0)
        memmove(c->in, c->in + at, c->in_size - at);
    c->in_size -= at;
    if (c->wire->is_closed && c->in_size > 0)
        violation(c->broker->sim, "the module speaks on after connection.close");
}

/* hurry: who hasn't logged in after a while is sent away. */
static void hurry(sim *s, void *data)
{
    conn *c = data;
    (void)s;
    if (c->state < CONN_OPEN)
        conn_gone(c);
}

conn *conn_new(broker *b, wire *w)
{
    conn *c = keep(b->sim, sizeof *c);
    c->broker = b;
    c->wire = w;
    c->heard_ms = b->sim->k.now_ms;
    for (uint16_t i = 0; i < CHANNELS; i++) {
        channel *on = &c->channels[i];
        on->conn = c;
        on->number = i;
        on->last = &on->first;
        mull__list_init(&on->unconfirmed);
        mull__list_init(&on->handouts);
    }
    mull__list_push(&b->conns, &c->link);
    at_time(b->sim, HANDSHAKE_MS, hurry, c);
    return c;
}
