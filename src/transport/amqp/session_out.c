/* session_out.c: see session_out.h and session.h. */
#include "session_out.h"

#include <stdint.h>
#include <string.h>

enum { METHOD_AT = 7 };

amqp_bytes_t mull__amqp_text(const char *text)
{
    return text ? (amqp_bytes_t){strlen(text), (void *)(uintptr_t)text} : amqp_empty_bytes;
}

int mull__amqp_same(amqp_bytes_t bytes, const char *text)
{
    return bytes.len == strlen(text) && memcmp(bytes.bytes, text, bytes.len) == 0;
}

int mull__amqp_write(mull__amqp_session *session, const void *bytes, size_t size)
{
    if (session->state == MULL__AMQP_CLOSED)
        return MULL_EIO;
    if (session->state == MULL__AMQP_CLOSING)
        return 0; /* nothing that follows connection.close is read */
    session->written = 1;
    return session->calls->write(session->data, bytes, size) == 0
               ? 0
               : mull__amqp_end(session, "out of memory");
}

static void put_number(char *out, uint64_t number, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (char)(number >> 8 * (count - 1 - i));
}

/* write_frame sends what `payload` bytes of scratch, behind the room for a frame's head, are. */
static int write_frame(mull__amqp_session *session, uint8_t type, uint16_t channel, size_t payload)
{
    char *frame = session->scratch;
    put_number(frame, type, 1);
    put_number(frame + 1, channel, 2);
    put_number(frame + 3, payload, 4);
    frame[METHOD_AT + payload] = (char)AMQP_FRAME_END;
    return mull__amqp_write(session, frame, payload + MULL__AMQP_FRAME_OVERHEAD);
}

/* room_from is what a frame has room for, from a place on. */
static amqp_bytes_t room_from(mull__amqp_session *session, size_t at)
{
    return (amqp_bytes_t){session->frame_max - 1 - at, session->scratch + at};
}

int mull__amqp_send(mull__amqp_session *session, uint16_t channel, amqp_method_number_t id,
                    void *decoded)
{
    put_number(session->scratch + METHOD_AT, id, 4);
    int size = amqp_encode_method(id, decoded, room_from(session, METHOD_AT + 4));
    return size < 0 ? MULL_EREFUSED
                    : write_frame(session, AMQP_FRAME_METHOD, channel, 4 + (size_t)size);
}

int mull__amqp_heartbeat_send(mull__amqp_session *session)
{
    return write_frame(session, AMQP_FRAME_HEARTBEAT, 0, 0);
}

/* ---- The connection -------------------------------------------------------------------------- */

static amqp_table_entry_t named(const char *name, amqp_field_value_t value)
{
    return (amqp_table_entry_t){mull__amqp_text(name), value};
}

static amqp_table_entry_t text_entry(const char *name, const char *text)
{
    return named(name, (amqp_field_value_t){.kind = AMQP_FIELD_KIND_UTF8,
                                            .value.bytes = mull__amqp_text(text)});
}

static const amqp_field_value_t yes = {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1};

int mull__amqp_login_send(mull__amqp_session *session)
{
    const mull__amqp_login *login = session->login;
    char secret[2 + 255 + 255];
    size_t user = strlen(login->user), password = strlen(login->password);
    if (user > 255 || password > 255)
        return mull__amqp_end(session, "user and password may have 255 bytes each");
    secret[0] = secret[1 + user] = 0;
    memcpy(secret + 1, login->user, user);
    memcpy(secret + 2 + user, login->password, password);
    amqp_table_entry_t can[] = {
        named("publisher_confirms", yes),           named("basic.nack", yes),
        named("consumer_cancel_notify", yes),       named("connection.blocked", yes),
        named("authentication_failure_close", yes), named("exchange_exchange_bindings", yes)};
    amqp_field_value_t capabilities = {.kind = AMQP_FIELD_KIND_TABLE,
                                       .value.table = {sizeof can / sizeof *can, can}};
    amqp_table_entry_t we[] = {
        text_entry("product", "mulligan"), text_entry("version", MULL_VERSION),
        text_entry("connection_name", login->name), named("capabilities", capabilities)};
    amqp_connection_start_ok_t ok = {
        .client_properties = {sizeof we / sizeof *we, we},
        .mechanism = mull__amqp_text(login->external ? "EXTERNAL" : "PLAIN"),
        .response =
            login->external ? amqp_empty_bytes : (amqp_bytes_t){2 + user + password, secret},
        .locale = mull__amqp_text("en_US")};
    int status = mull__amqp_send(session, 0, AMQP_CONNECTION_START_OK_METHOD, &ok);
    memset(secret, 0, sizeof secret);
    return status;
}

int mull__amqp_open_send(mull__amqp_session *session)
{
    amqp_connection_tune_ok_t tuned = {session->channel_max, session->frame_max,
                                       session->heartbeat_s};
    amqp_connection_open_t open = {.virtual_host = mull__amqp_text(session->login->vhost),
                                   .capabilities = amqp_empty_bytes,
                                   .insist = 0};
    int status = mull__amqp_send(session, 0, AMQP_CONNECTION_TUNE_OK_METHOD, &tuned);
    return status ? status : mull__amqp_send(session, 0, AMQP_CONNECTION_OPEN_METHOD, &open);
}

void mull__amqp_session_close(mull__amqp_session *session)
{
    amqp_connection_close_t close = {.reply_code = AMQP_REPLY_SUCCESS,
                                     .reply_text = mull__amqp_text("closed by mulligan")};
    if (session->state == MULL__AMQP_OPEN &&
        mull__amqp_send(session, 0, AMQP_CONNECTION_CLOSE_METHOD, &close) == 0)
        session->state = MULL__AMQP_CLOSING;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* encode_properties writes them to scratch, where a header frame has them. Below 0: they don't fit.
 */
static int encode_properties(mull__amqp_session *session, amqp_basic_properties_t *properties,
                             amqp_bytes_t raw)
{
    amqp_bytes_t room = room_from(session, METHOD_AT + MULL__AMQP_HEADER_OVERHEAD);
    if (properties)
        return amqp_encode_properties(AMQP_BASIC_CLASS, properties, room);
    if (raw.len > room.len)
        return -1;
    memcpy(room.bytes, raw.bytes, raw.len);
    return (int)raw.len;
}

static int write_body(mull__amqp_session *session, uint16_t channel, amqp_bytes_t body)
{
    size_t most = session->frame_max - MULL__AMQP_FRAME_OVERHEAD;
    int status = 0;
    for (size_t at = 0; at < body.len && status == 0;) {
        size_t size = body.len - at < most ? body.len - at : most;
        memcpy(session->scratch + METHOD_AT, (const char *)body.bytes + at, size);
        status = write_frame(session, AMQP_FRAME_BODY, channel, size);
        at += size;
    }
    return status;
}

int mull__amqp_publish(mull__amqp_session *session, uint16_t channel, amqp_basic_publish_t *publish,
                       amqp_basic_properties_t *properties, amqp_bytes_t raw, amqp_bytes_t body)
{
    /* Both are measured before the first is written: a channel in the middle of a message can't go
     * back. */
    if (publish->exchange.len > 255 || publish->routing_key.len > 255 ||
        encode_properties(session, properties, raw) < 0)
        return MULL_EREFUSED;
    int status = mull__amqp_send(session, channel, AMQP_BASIC_PUBLISH_METHOD, publish);
    if (status != 0)
        return status;
    char *header = session->scratch + METHOD_AT;
    int size = encode_properties(session, properties, raw);
    put_number(header, AMQP_BASIC_CLASS, 2);
    put_number(header + 2, 0, 2);
    put_number(header + 4, body.len, 8);
    status =
        write_frame(session, AMQP_FRAME_HEADER, channel, MULL__AMQP_HEADER_OVERHEAD + (size_t)size);
    return status ? status : write_body(session, channel, body);
}
