/* session.c: see session.h. Frames come in here; session_out.c has those that go out. */
#include "session.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "session_out.h"
#include "sound.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_HEADER = 7, SILENT_TICKS = 4 };

/* frame is one that is whole. */
typedef struct frame {
    uint8_t type;
    uint16_t channel;
    const char *payload;
    size_t size;
} frame;

static uint32_t number_at(const char *bytes, size_t count)
{
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

/* ---- What the server says that may be shown -------------------------------------------------- */

void mull__amqp_quote(char *out, size_t room, amqp_bytes_t bytes)
{
    size_t size = bytes.len < room - 1 ? bytes.len : room - 1;
    if (size > 0)
        memcpy(out, bytes.bytes, size);
    out[size] = 0;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)out[i] < ' ' || out[i] == 127)
            out[i] = '?';
    mull__utf8_repair(out, size);
}

int mull__amqp_end(mull__amqp_session *session, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (session->state != MULL__AMQP_CLOSED)
        vsnprintf(session->why, sizeof session->why, format, arguments);
    va_end(arguments);
    session->state = MULL__AMQP_CLOSED;
    return MULL_EIO;
}

/* wrong_kind: the first bytes are no frame of AMQP 0-9-1. */
static int wrong_kind(mull__amqp_session *session, const char *bytes, size_t size)
{
    char begin[24];
    if (size >= 8 && memcmp(bytes, "AMQP", 4) == 0)
        return mull__amqp_end(session,
                              "the server speaks AMQP %d-%d-%d and no AMQP 0-9-1, which is "
                              "RabbitMQ's; look at host and port",
                              bytes[5], bytes[6], bytes[7]);
    mull__amqp_quote(begin, sizeof begin, (amqp_bytes_t){size, (void *)(uintptr_t)bytes});
    return mull__amqp_end(session,
                          "the server speaks no AMQP 0-9-1 (its answer begins with \"%s\"); look "
                          "at host and port, and whether it wants TLS (amqps:)",
                          begin);
}

static int malformed(mull__amqp_session *session, const char *what)
{
    return mull__amqp_end(session, "the server sent what is no AMQP 0-9-1: %s", what);
}

/* ---- Methods of the connection --------------------------------------------------------------- */

static const amqp_field_value_t *entry_of(const amqp_table_t *table, const char *name)
{
    for (int i = 0; i < table->num_entries; i++)
        if (mull__amqp_same(table->entries[i].key, name))
            return &table->entries[i].value;
    return NULL;
}

static void read_server(mull__amqp_session *session, const amqp_table_t *properties)
{
    char product[64] = "an AMQP server", version[32] = "";
    const amqp_field_value_t *value = entry_of(properties, "product");
    if (value && value->kind == AMQP_FIELD_KIND_UTF8)
        mull__amqp_quote(product, sizeof product, value->value.bytes);
    value = entry_of(properties, "version");
    if (value && value->kind == AMQP_FIELD_KIND_UTF8)
        mull__amqp_quote(version, sizeof version, value->value.bytes);
    snprintf(session->server, sizeof session->server, "%s%s%s", product, *version ? " " : "",
             version);
    session->server_major = strcmp(product, "RabbitMQ") == 0 ? atoi(version) : 0;
}

static int has_capability(const amqp_table_t *properties, const char *name)
{
    const amqp_field_value_t *value = entry_of(properties, "capabilities");
    if (!value || value->kind != AMQP_FIELD_KIND_TABLE)
        return 0;
    value = entry_of(&value->value.table, name);
    return value && value->kind == AMQP_FIELD_KIND_BOOLEAN && value->value.boolean;
}

/* has_word says whether a list of words has this one. */
static int has_word(amqp_bytes_t list, const char *word)
{
    const char *bytes = list.bytes;
    size_t length = strlen(word);
    for (size_t at = 0; at < list.len; at++) {
        size_t end = at;
        while (end < list.len && bytes[end] != ' ')
            end++;
        if (end - at == length && memcmp(bytes + at, word, length) == 0)
            return 1;
        at = end;
    }
    return 0;
}

static int on_start(mull__amqp_session *session, const amqp_connection_start_t *start)
{
    const char *mechanism = session->login->external ? "EXTERNAL" : "PLAIN";
    if (session->state != MULL__AMQP_STARTING)
        return malformed(session, "connection.start at the wrong time");
    if (start->version_major != 0 || start->version_minor != 9)
        return mull__amqp_end(session, "the server speaks AMQP %d-%d; mulligan needs 0-9-1",
                              start->version_major, start->version_minor);
    read_server(session, &start->server_properties);
    if (!has_word(start->mechanisms, mechanism))
        return mull__amqp_end(session, "the server takes no login by %s; allow it there",
                              mechanism);
    static const char *const needed[] = {"publisher_confirms", "basic.nack"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!has_capability(&start->server_properties, needed[i]))
            return mull__amqp_end(session, "%s has no %s, without which nothing is safe",
                                  session->server, needed[i]);
    session->state = MULL__AMQP_TUNING;
    return mull__amqp_login_send(session);
}

static uint32_t least(uint32_t own, uint32_t asked)
{
    return asked != 0 && asked < own ? asked : own;
}

static int on_tune(mull__amqp_session *session, const amqp_connection_tune_t *tune)
{
    if (session->state != MULL__AMQP_TUNING)
        return malformed(session, "connection.tune at the wrong time");
    session->frame_max = least(MULL__AMQP_FRAME_MAX, tune->frame_max);
    session->channel_max = (uint16_t)least(MULL__AMQP_CHANNEL_MAX, tune->channel_max);
    session->heartbeat_s = session->login->heartbeat_s;
    if (session->heartbeat_s > 0)
        session->heartbeat_s = (uint16_t)least(session->heartbeat_s, tune->heartbeat);
    if (session->frame_max < MULL__AMQP_FRAME_LEAST)
        return mull__amqp_end(session, "the server allows frames of %u bytes; at least %d are due",
                              session->frame_max, MULL__AMQP_FRAME_LEAST);
    if (session->channel_max < MULL__AMQP_CHANNEL_LEAST)
        return mull__amqp_end(session, "the server allows %d channels; at least %d are due",
                              session->channel_max, MULL__AMQP_CHANNEL_LEAST);
    session->state = MULL__AMQP_OPENING;
    return mull__amqp_open_send(session);
}

static int on_open(mull__amqp_session *session)
{
    if (session->state != MULL__AMQP_OPENING)
        return malformed(session, "connection.open-ok at the wrong time");
    session->state = MULL__AMQP_OPEN;
    session->calls->open(session->data);
    return session->state == MULL__AMQP_OPEN ? 0 : MULL_EIO;
}

/* on_close: the server ends the connection, and says why. */
static int on_close(mull__amqp_session *session, const amqp_connection_close_t *close)
{
    char text[256];
    const mull__amqp_login *login = session->login;
    mull__amqp_state state = session->state;
    mull__amqp_quote(text, sizeof text, close->reply_text);
    amqp_connection_close_ok_t ok = {0};
    mull__amqp_send(session, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
    if (close->reply_code == AMQP_ACCESS_REFUSED && state <= MULL__AMQP_TUNING && login->external)
        return mull__amqp_end(session, "the login by certificate is refused (403): its user must "
                                       "be known to the server");
    if (close->reply_code == AMQP_ACCESS_REFUSED && state <= MULL__AMQP_TUNING)
        return mull__amqp_end(session,
                              "the login of user '%s' is refused (403); look at user and "
                              "password",
                              login->user);
    if (state == MULL__AMQP_OPENING && close->reply_code == AMQP_NOT_ALLOWED)
        return mull__amqp_end(session,
                              "the virtual host '%s' is refused to user '%s' (530): %s; it must be "
                              "there, and the user needs permissions in it",
                              login->vhost, login->user, text);
    return mull__amqp_end(session, "the server closed the connection (%u): %s", close->reply_code,
                          text);
}

/* on_blocked: NULL: it is no more. */
static int on_blocked(mull__amqp_session *session, const amqp_connection_blocked_t *blocked)
{
    char reason[128] = "";
    if (session->state < MULL__AMQP_OPEN)
        return malformed(session, "connection.blocked at the wrong time");
    if (blocked)
        mull__amqp_quote(reason, sizeof reason, blocked->reason);
    session->calls->blocked(session->data, blocked ? reason : NULL);
    return session->state == MULL__AMQP_CLOSED ? MULL_EIO : 0;
}

static int connection_method(mull__amqp_session *session, amqp_method_number_t id, void *decoded)
{
    switch (id) {
    case AMQP_CONNECTION_START_METHOD:
        return on_start(session, decoded);
    case AMQP_CONNECTION_TUNE_METHOD:
        return on_tune(session, decoded);
    case AMQP_CONNECTION_OPEN_OK_METHOD:
        return on_open(session);
    case AMQP_CONNECTION_CLOSE_METHOD:
        return on_close(session, decoded);
    case AMQP_CONNECTION_CLOSE_OK_METHOD:
        return mull__amqp_end(session, "closed");
    case AMQP_CONNECTION_BLOCKED_METHOD:
        return on_blocked(session, decoded);
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
        return on_blocked(session, NULL);
    default:
        return malformed(session, "a method that a client isn't sent");
    }
}

/* ---- Methods and content of channels --------------------------------------------------------- */

static mull__amqp_channel *channel_of(const mull__amqp_session *session, uint16_t number)
{
    mull__amqp_channel *channel =
        number > 0 && number < session->channel_count ? session->channels[number] : NULL;
    return channel && channel->is_open ? channel : NULL;
}

static void begin_content(mull__amqp_content *content, uint16_t number, amqp_method_number_t id,
                          const void *decoded)
{
    *content = (mull__amqp_content){.channel = number, .method = id};
    if (id == AMQP_BASIC_DELIVER_METHOD) {
        const amqp_basic_deliver_t *deliver = decoded;
        content->tag = deliver->delivery_tag;
        content->redelivered = deliver->redelivered;
    } else {
        const amqp_basic_return_t *returned = decoded;
        size_t length = returned->routing_key.len;
        if (length > 0)
            memcpy(content->routing_key, returned->routing_key.bytes, length);
        content->routing_key[length] = 0;
    }
}

static int channel_method(mull__amqp_session *session, uint16_t number, amqp_method_number_t id,
                          void *decoded)
{
    mull__amqp_channel *channel = channel_of(session, number);
    if (!channel)
        return malformed(session, "a method on a channel that isn't open");
    if (channel->content.method)
        return malformed(session, "a method where content was due");
    if (id == AMQP_BASIC_DELIVER_METHOD || id == AMQP_BASIC_RETURN_METHOD) {
        begin_content(&channel->content, number, id, decoded);
        return 0;
    }
    if (id == AMQP_CHANNEL_CLOSE_METHOD) {
        amqp_channel_close_ok_t ok = {0};
        mull__amqp_send(session, number, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
        if (channel->is_closing) /* both close it: the answer to ours follows */
            return session->state == MULL__AMQP_CLOSED ? MULL_EIO : 0;
    }
    if (id == AMQP_CHANNEL_CLOSE_METHOD || id == AMQP_CHANNEL_CLOSE_OK_METHOD)
        channel->is_open = 0;
    session->calls->method(session->data, number, id, decoded);
    return session->state == MULL__AMQP_CLOSED ? MULL_EIO : 0;
}

/* is_for_clients: the codec decodes a client's own methods, too, and follows the tables in them as
 * deep as they go. Of those that a client is sent, connection.start alone has one. */
static int is_for_clients(amqp_method_number_t id)
{
    static const amqp_method_number_t sent[] = {
        AMQP_CONNECTION_START_METHOD,     AMQP_CONNECTION_TUNE_METHOD,
        AMQP_CONNECTION_OPEN_OK_METHOD,   AMQP_CONNECTION_CLOSE_METHOD,
        AMQP_CONNECTION_CLOSE_OK_METHOD,  AMQP_CONNECTION_BLOCKED_METHOD,
        AMQP_CONNECTION_UNBLOCKED_METHOD, AMQP_CHANNEL_OPEN_OK_METHOD,
        AMQP_CHANNEL_FLOW_METHOD,         AMQP_CHANNEL_CLOSE_METHOD,
        AMQP_CHANNEL_CLOSE_OK_METHOD,     AMQP_EXCHANGE_DECLARE_OK_METHOD,
        AMQP_EXCHANGE_BIND_OK_METHOD,     AMQP_QUEUE_DECLARE_OK_METHOD,
        AMQP_QUEUE_BIND_OK_METHOD,        AMQP_BASIC_QOS_OK_METHOD,
        AMQP_BASIC_CONSUME_OK_METHOD,     AMQP_BASIC_CANCEL_METHOD,
        AMQP_BASIC_CANCEL_OK_METHOD,      AMQP_BASIC_DELIVER_METHOD,
        AMQP_BASIC_RETURN_METHOD,         AMQP_BASIC_ACK_METHOD,
        AMQP_BASIC_NACK_METHOD,           AMQP_CONFIRM_SELECT_OK_METHOD};
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
        if (sent[i] == id)
            return 1;
    return 0;
}

static int on_method(mull__amqp_session *session, const frame *f)
{
    void *decoded = NULL;
    if (f->size < 4)
        return malformed(session, "a method without a name");
    amqp_method_number_t id = number_at(f->payload, 4);
    size_t table = 4 + 2;
    if (!is_for_clients(id))
        return malformed(session, "a method that is unknown, or that no client is sent");
    if (id == AMQP_CONNECTION_START_METHOD &&
        (f->size < table || !mull__amqp_table_sound(f->payload, f->size, &table)))
        return malformed(session, "a table that isn't whole, or is too deep");
    amqp_bytes_t encoded = {f->size - 4, (void *)(uintptr_t)(f->payload + 4)};
    int status = amqp_decode_method(id, &session->pool, encoded, &decoded);
    if (status == AMQP_STATUS_NO_MEMORY)
        return mull__amqp_end(session, "out of memory");
    if (status < 0)
        return malformed(session, "a method that isn't whole");
    status = f->channel == 0 ? connection_method(session, id, decoded)
                             : channel_method(session, f->channel, id, decoded);
    recycle_amqp_pool(&session->pool);
    return status;
}

/* end_content tells of a message that is whole. The channel may begin the next one then. */
static int end_content(mull__amqp_session *session, mull__amqp_channel *channel)
{
    mull__amqp_content content = channel->content;
    channel->content.method = 0;
    session->calls->content_end(session->data, &content);
    return session->state == MULL__AMQP_CLOSED ? MULL_EIO : 0;
}

static int on_header(mull__amqp_session *session, const frame *f)
{
    mull__amqp_channel *channel = channel_of(session, f->channel);
    mull__amqp_content *content = channel ? &channel->content : NULL;
    if (!content || !content->method || content->has_header)
        return malformed(session, "a header where none was due");
    if (f->size < MULL__AMQP_HEADER_OVERHEAD + 2 || number_at(f->payload, 2) != AMQP_BASIC_CLASS)
        return malformed(session, "a header that isn't whole");
    content->has_header = 1;
    content->body_size =
        (uint64_t)number_at(f->payload + 4, 4) << 32 | number_at(f->payload + 8, 4);
    content->properties = f->payload + MULL__AMQP_HEADER_OVERHEAD;
    content->properties_size = f->size - MULL__AMQP_HEADER_OVERHEAD;
    if (content->body_size > MULL__AMQP_BODY_MAX)
        return malformed(session, "a body of more than 512 MiB");
    session->calls->content_begin(session->data, content);
    content->properties = NULL;
    if (session->state == MULL__AMQP_CLOSED)
        return MULL_EIO;
    return content->body_size == 0 ? end_content(session, channel) : 0;
}

static int on_body(mull__amqp_session *session, const frame *f)
{
    mull__amqp_channel *channel = channel_of(session, f->channel);
    mull__amqp_content *content = channel ? &channel->content : NULL;
    if (!content || !content->has_header || f->size > content->body_size - content->body_done)
        return malformed(session, "a body where none was due, or one that is too long");
    size_t wanted = (size_t)content->body_done + f->size;
    if (content->body && wanted > content->room &&
        session->calls->content_more(session->data, content, wanted) != 0)
        content->is_lost = 1;
    if (content->body && !content->is_lost && f->size > 0)
        memcpy(content->body + content->body_done, f->payload, f->size);
    content->body_done += f->size;
    return content->body_done == content->body_size ? end_content(session, channel) : 0;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static int on_frame(mull__amqp_session *session, const frame *f)
{
    switch (f->type) {
    case AMQP_FRAME_METHOD:
        return on_method(session, f);
    case AMQP_FRAME_HEADER:
        return on_header(session, f);
    case AMQP_FRAME_BODY:
        return on_body(session, f);
    default: /* a heartbeat */
        return 0;
    }
}

/* frame_size is the size of the frame that begins at `bytes`, of which `size` are there: 0: more of
 * it is needed; below 0: it is none, and the session has ended. */
static int frame_size(mull__amqp_session *session, const char *bytes, size_t size)
{
    int known = bytes[0] == AMQP_FRAME_METHOD || bytes[0] == AMQP_FRAME_HEADER ||
                bytes[0] == AMQP_FRAME_BODY || bytes[0] == AMQP_FRAME_HEARTBEAT;
    if (session->state == MULL__AMQP_STARTING && bytes[0] != AMQP_FRAME_METHOD) {
        if (bytes[0] == 'A' && size < 8 && memcmp(bytes, "AMQP", size < 4 ? size : 4) == 0)
            return 0;
        return wrong_kind(session, bytes, size);
    }
    if (!known)
        return malformed(session, "a frame of an unknown kind");
    if (size < FRAME_HEADER)
        return 0;
    uint32_t payload = number_at(bytes + 3, 4);
    uint32_t most = bytes[0] == AMQP_FRAME_HEADER ? MULL__AMQP_HEADER_MAX : session->frame_max;
    if (payload > most - MULL__AMQP_FRAME_OVERHEAD)
        return malformed(session, "a frame that is larger than agreed");
    return (int)payload + MULL__AMQP_FRAME_OVERHEAD;
}

/* take_frame takes a whole one. */
static int take_frame(mull__amqp_session *session, const char *bytes, size_t size)
{
    const frame f = {(uint8_t)bytes[0], (uint16_t)number_at(bytes + 1, 2), bytes + FRAME_HEADER,
                     size - MULL__AMQP_FRAME_OVERHEAD};
    if ((unsigned char)bytes[size - 1] != AMQP_FRAME_END)
        return malformed(session, "a frame without its end");
    return on_frame(session, &f);
}

/* fill moves bytes to the frame that isn't whole, as many as it lacks, and gives how many. */
static size_t fill(mull__amqp_session *session, size_t wanted, const char *bytes, size_t size)
{
    size_t lacking = wanted - session->in_size;
    size_t taken = size < lacking ? size : lacking;
    memcpy(session->in + session->in_size, bytes, taken);
    session->in_size += taken;
    return taken;
}

/* make_room makes some for a frame. */
static int make_room(mull__amqp_session *session, size_t size)
{
    if (size <= session->in_room)
        return 0;
    char *in = mull__grow(&session->allocator, session->in, size, 1);
    if (!in)
        return mull__amqp_end(session, "out of memory");
    session->in = in;
    session->in_room = size;
    return 0;
}

/* feed_kept goes on with a frame that isn't whole. It gives how many bytes it took; below 0: the
 * session has ended. */
static int feed_kept(mull__amqp_session *session, const char *bytes, size_t size)
{
    size_t taken = 0;
    if (session->in_size < FRAME_HEADER + 1)
        taken = fill(session, FRAME_HEADER + 1, bytes, size);
    int whole = frame_size(session, session->in, session->in_size);
    if (whole <= 0)
        return whole < 0 ? whole : (int)taken;
    if (make_room(session, (size_t)whole) != 0)
        return MULL_EIO;
    taken += fill(session, (size_t)whole, bytes + taken, size - taken);
    if (session->in_size < (size_t)whole)
        return (int)taken;
    session->in_size = 0;
    return take_frame(session, session->in, (size_t)whole) == 0 ? (int)taken : MULL_EIO;
}

int mull__amqp_session_feed(mull__amqp_session *session, const char *bytes, size_t size)
{
    session->silent = 0;
    while (size > 0 && session->state != MULL__AMQP_CLOSED) {
        int taken = session->in_size > 0 ? 0 : frame_size(session, bytes, size);
        if (taken > 0 && (size_t)taken <= size) {
            if (take_frame(session, bytes, (size_t)taken) != 0)
                break;
        } else if (taken >= 0) {
            taken = feed_kept(session, bytes, size < INT32_MAX ? size : INT32_MAX);
        }
        if (taken < 0)
            break;
        bytes += taken;
        size -= (size_t)taken;
    }
    return session->state == MULL__AMQP_CLOSED ? MULL_EIO : 0;
}

int mull__amqp_session_tick(mull__amqp_session *session)
{
    if (session->state != MULL__AMQP_OPEN || session->heartbeat_s == 0)
        return session->state == MULL__AMQP_CLOSED ? MULL_EIO : 0;
    if (++session->silent > SILENT_TICKS)
        return mull__amqp_end(session, "the server was silent for two heartbeats (%u s each)",
                              session->heartbeat_s);
    return session->written ? (session->written = 0) : mull__amqp_heartbeat_send(session);
}

/* ---- Its life -------------------------------------------------------------------------------- */

static void free_channels(mull__amqp_session *session)
{
    for (size_t i = 0; i < session->channel_count; i++)
        mull__free(&session->allocator, session->channels[i]);
    mull__free(&session->allocator, session->channels);
    session->channels = NULL;
    session->channel_count = 0;
}

int mull__amqp_session_init(mull__amqp_session *session, const mull_allocator *allocator,
                            const mull__amqp_calls *calls, void *data,
                            const mull__amqp_login *login)
{
    *session =
        (mull__amqp_session){.allocator = *allocator, .calls = calls, .data = data, .login = login};
    init_amqp_pool(&session->pool, 4096);
    session->in = mull__alloc(allocator, MULL__AMQP_FRAME_MAX);
    session->in_room = MULL__AMQP_FRAME_MAX;
    session->scratch = mull__alloc(allocator, MULL__AMQP_FRAME_MAX);
    if (session->in && session->scratch)
        return 0;
    mull__amqp_session_free(session);
    return MULL_ENOMEM;
}

void mull__amqp_session_free(mull__amqp_session *session)
{
    free_channels(session);
    empty_amqp_pool(&session->pool);
    mull__free(&session->allocator, session->in);
    mull__free(&session->allocator, session->scratch);
    session->in = session->scratch = NULL;
}

void mull__amqp_session_begin(mull__amqp_session *session)
{
    free_channels(session);
    session->in_size = 0;
    session->silent = session->written = 0;
    session->frame_max = MULL__AMQP_FRAME_MAX;
    session->why[0] = session->server[0] = 0;
    session->server_major = 0;
    session->state = MULL__AMQP_STARTING;
    mull__amqp_write(session, "AMQP\0\0\x9\x1", 8);
}

/* grow_channels makes room for a number. */
static int grow_channels(mull__amqp_session *session, size_t count)
{
    mull__amqp_channel **channels =
        mull__grow(&session->allocator, session->channels, count, sizeof *channels);
    if (!channels)
        return MULL_ENOMEM;
    memset(channels + session->channel_count, 0,
           (count - session->channel_count) * sizeof *channels);
    session->channels = channels;
    session->channel_count = count;
    return 0;
}

int mull__amqp_channel_is_open(const mull__amqp_session *session, uint16_t number)
{
    return channel_of(session, number) != NULL;
}

int mull__amqp_channel_open(mull__amqp_session *session, uint16_t number)
{
    if (number == 0 || number > session->channel_max)
        return MULL_EREFUSED;
    if (number >= session->channel_count && grow_channels(session, number + 1u) != 0)
        return MULL_ENOMEM;
    mull__amqp_channel **channel = &session->channels[number];
    if (!*channel && !(*channel = mull__alloc(&session->allocator, sizeof **channel)))
        return MULL_ENOMEM;
    **channel = (mull__amqp_channel){.is_open = 1};
    amqp_channel_open_t open = {.out_of_band = amqp_empty_bytes};
    return mull__amqp_send(session, number, AMQP_CHANNEL_OPEN_METHOD, &open);
}

void mull__amqp_channel_close(mull__amqp_session *session, uint16_t number)
{
    amqp_channel_close_t close = {.reply_code = AMQP_REPLY_SUCCESS, .reply_text = amqp_empty_bytes};
    mull__amqp_channel *channel = channel_of(session, number);
    if (!channel || channel->is_closing)
        return;
    channel->is_closing = 1;
    mull__amqp_send(session, number, AMQP_CHANNEL_CLOSE_METHOD, &close);
}
