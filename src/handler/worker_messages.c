/* worker_messages.c: what is said to a worker, and what it says; docs/workers.md has the protocol.
 */
#include "workers_internal.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "wire/failure_value.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SLOTS = 65535, CAUSES = 28 };

/* ---- Writing --------------------------------------------------------------------------------- */

static void add_name(mull__msgpack *out, const char *name)
{
    mull__msgpack_string(out, name, strlen(name));
}

static void add_number(mull__msgpack *out, const char *name, int64_t number)
{
    add_name(out, name);
    mull__msgpack_integer(out, number);
}

/* add_mended adds a text, which another program may have written: what is no UTF-8 becomes `?`. */
static void add_mended(mull__msgpack *out, const char *text)
{
    size_t size = strlen(text);
    mull__msgpack_string(out, text, size);
    if (out->status == 0)
        mull__utf8_repair(out->memory + out->size - size, size);
}

static void add_text(mull__msgpack *out, const char *name, const char *text)
{
    add_name(out, name);
    if (text)
        add_mended(out, text);
    else
        mull__msgpack_nil(out);
}

static void add_message(mull__msgpack *out, const mull_message *message)
{
    add_name(out, "message");
    mull__msgpack_entries(out, 6);
    add_text(out, "id", message->id);
    add_text(out, "type", message->type);
    add_text(out, "key", message->key);
    add_text(out, "queue", message->queue);
    add_name(out, "headers");
    size_t begun = mull__msgpack_begin(out, 1);
    for (size_t i = 0; i < message->header_count; i++) {
        add_mended(out, message->headers[i].name);
        add_mended(out, message->headers[i].value);
    }
    mull__msgpack_end(out, begun, (uint32_t)message->header_count);
    add_name(out, "body");
    mull__msgpack_bytes(out, message->body, message->body_size);
}

uint32_t mull__worker_say_handle(mull__worker *w, const mull__worker_consumer *consumer,
                                 const mull_message *message)
{
    mull__msgpack *out = &w->session.out;
    uint32_t id = mull__session_request(&w->session, "handle");
    mull__msgpack_entries(out, 7);
    add_text(out, "consumer", consumer->name);
    add_message(out, message);
    add_number(out, "attempt", message->attempt);
    add_number(out, "redeliveries", message->redeliveries);
    add_number(out, "calls", message->calls);
    add_number(out, "deliveries", message->deliveries);
    add_name(out, "time_left_ms");
    if (consumer->timeout_ms == MULL_NEVER)
        mull__msgpack_nil(out);
    else
        mull__msgpack_integer(out, consumer->timeout_ms);
    mull__worker_touched(w);
    return id;
}

void mull__worker_say_cancel(mull__worker *w, uint32_t id, const char *reason)
{
    mull__rpc_notification(&w->session.out, "cancel");
    mull__msgpack_entries(&w->session.out, 2);
    add_number(&w->session.out, "call", id);
    add_text(&w->session.out, "reason", reason);
    mull__worker_touched(w);
}

void mull__worker_say_stop(mull__worker *w, int64_t grace_ms)
{
    mull__rpc_notification(&w->session.out, "stop");
    mull__msgpack_entries(&w->session.out, 1);
    add_number(&w->session.out, "grace_ms", grace_ms);
    mull__worker_touched(w);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* next_name reads the name of a map's next entry; one that isn't a text is like one that nobody
 * knows. */
static const char *next_name(char **at, size_t *size)
{
    const char *name = "";
    *size = 0;
    if (mull__msgpack_text(at, &name, size) != 0)
        mull__msgpack_skip(at);
    return name;
}

static int is(const char *name, size_t size, const char *other)
{
    return size == strlen(other) && memcmp(name, other, size) == 0;
}

/* ---- hello, slots ---------------------------------------------------------------------------- */

static int set_slots(mull__worker *w, mull__worker_consumer *consumer, uint32_t slots)
{
    mull__worker_offer *offer = mull__worker_offer_of(w, consumer);
    if (!offer && w->offer_count == w->offer_room) {
        size_t room = w->offer_room + 4;
        mull__worker_offer *offers =
            mull__grow(&w->workers->allocator, w->offers, room, sizeof *offers);
        if (!offers)
            return MULL_ENOMEM;
        w->offers = offers;
        w->offer_room = room;
    }
    if (!offer) {
        offer = &w->offers[w->offer_count++];
        *offer = (mull__worker_offer){.consumer = consumer};
    }
    offer->slots = slots;
    return 0;
}

/* read_offer reads {name, slots}, where `key` is the name's name; 0: `why` says what is wrong. */
static int read_offer(mull__worker *w, char **at, const char *key, char *why, size_t most)
{
    const char *consumer = "";
    size_t entries, size, length = 0;
    int64_t slots = 1;
    if (mull__msgpack_map(at, &entries) != 0) {
        snprintf(why, most, "a consumer must be a map of name and slots");
        return 0;
    }
    while (entries-- > 0) {
        const char *name = next_name(at, &size);
        char *value = *at;
        int status = 0;
        if (is(name, size, key))
            status = mull__msgpack_text(&value, &consumer, &length);
        else if (is(name, size, "slots"))
            status = mull__msgpack_whole(&value, &slots);
        if (status != 0)
            slots = -1;
        mull__msgpack_skip(at);
    }
    mull__worker_consumer *found = mull__workers_consumer_named(w->workers, consumer, length);
    if (slots < 0 || slots > MOST_SLOTS)
        snprintf(why, most, "slots must be a whole number from 0 to %d", MOST_SLOTS);
    else if (!found)
        snprintf(why, most, "there is no consumer \"%.*s\" whose handler is this worker",
                 length < 64 ? (int)length : 64, consumer);
    else if (set_slots(w, found, (uint32_t)slots) != 0)
        snprintf(why, most, "out of memory");
    else
        return 1;
    mull__utf8_repair(why, strlen(why));
    return 0;
}

static int read_offers(mull__worker *w, char *at, char *why, size_t most)
{
    size_t count;
    if (mull__msgpack_list(&at, &count) != 0) {
        snprintf(why, most, "consumers must be a list of {name, slots}");
        return 0;
    }
    while (count-- > 0)
        if (!read_offer(w, &at, "name", why, most))
            return 0;
    return 1;
}

static int greet(void *data, char *at, char *why, size_t most)
{
    mull__worker *w = data;
    size_t entries = 0, size;
    if (at)
        mull__msgpack_map(&at, &entries);
    while (entries-- > 0) {
        const char *name = next_name(&at, &size);
        if (is(name, size, "consumers") && !read_offers(w, at, why, most))
            return 0;
        mull__msgpack_skip(&at);
    }
    if (w->offer_count == 0)
        snprintf(why, most, "consumers must name one at least, as in [{name, slots}]");
    return w->offer_count > 0;
}

/* welcome: from now on it has calls, on a later turn of the loop. */
static unsigned welcome(void *data, mull__msgpack *out)
{
    mull__worker *w = data;
    char generation[33];
    add_name(out, "consumers");
    size_t begun = mull__msgpack_begin(out, 0);
    for (size_t i = 0; i < w->offer_count; i++) {
        mull__msgpack_entries(out, 2);
        add_text(out, "name", w->offers[i].consumer->name);
        add_name(out, "timeout_ms");
        if (w->offers[i].consumer->timeout_ms == MULL_NEVER)
            mull__msgpack_nil(out);
        else
            mull__msgpack_integer(out, w->offers[i].consumer->timeout_ms);
    }
    mull__msgpack_end(out, begun, (uint32_t)w->offer_count);
    w->workers->calls->generation(w->workers->data, generation);
    add_text(out, "generation", generation);
    return 2;
}

static void welcomed(void *data)
{
    mull__worker *w = data;
    mull__worker_program_welcome(w->program);
    for (size_t i = 0; i < w->offer_count; i++)
        mull__workers_tell_room(w->offers[i].consumer);
    if (w->workers->state != MULL__WORKERS_STARTED)
        mull__worker_say_stop(w, 0);
}

static void on_slots(mull__worker *w, char *at)
{
    char why[MULL__SESSION_WHY];
    if (!read_offer(w, &at, "consumer", why, sizeof why)) {
        mull__workers_log(w->workers, MULL_WARNING, "a worker's slots are ignored: %s", why);
        return;
    }
    for (size_t i = 0; i < w->offer_count; i++)
        mull__workers_tell_room(w->offers[i].consumer);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static mull__worker_call *call_with(const mull__worker *w, int64_t id)
{
    for (size_t i = 0; i < w->call_count; i++)
        if (w->calls[i].id == id)
            return &w->calls[i];
    return NULL;
}

/* error_of gives the error that an answer says; one that can't be read is an Error about that. */
static const mull_error *error_of(mull__arena *arena, char *at, mull_error *other)
{
    char why[MULL__MSGPACK_WHY], *text = NULL;
    mull__msgpack_extent extent;
    mull_value value;
    const mull_error *error = NULL;
    int status = mull__msgpack_value(&value, arena, &at, &extent, why);
    if (status == 0 && value.kind == MULL_MAP &&
        mull__error_of_value(&error, arena, &value, CAUSES) == 0)
        return error;
    *other = (mull_error){.size = sizeof *other, .type = "Error"};
    if (status == 0 && value.kind == MULL_STRING) {
        other->message = value.as.string;
        return other;
    }
    enum { ROOM = MULL__MSGPACK_WHY + 64 };
    text = mull__arena_alloc(arena, 1, ROOM);
    if (text)
        snprintf(text, ROOM, "the worker's error can't be read: %s",
                 *why ? why : "it must be a map with a type");
    other->message = text;
    return other;
}

static int end_call(const mull__worker *w, const mull__worker_call *call, char *said)
{
    static const char nil = (char)0xc0;
    mull__arena arena = {.allocator = w->workers->allocator};
    mull_error other = {.size = sizeof other, .type = "Error", .message = call->wrong};
    const mull_error *error = call->wrong ? &other : NULL;
    if (*said != nil)
        error = error_of(&arena, said, &other);
    int status = mull_done(w->workers->engine, call->call, error);
    if (status == MULL_ENOMEM)
        w->workers->calls->no_memory(w->workers->data, call->call);
    mull__arena_free(&arena);
    return status;
}

static void answered(void *data, const mull__rpc_message *answer)
{
    mull__worker *w = data;
    mull__worker_call *call = call_with(w, answer->id);
    if (!call)
        return; /* it is a ping's */
    if (end_call(w, call, answer->error) == MULL_EDONE && call->cancelled_ms)
        mull__workers_log(w->workers, MULL_INFO,
                          "consumer %s: a worker's answer came after its call was cancelled; it is "
                          "dropped, %llu so far",
                          call->consumer->name, (unsigned long long)++w->workers->late);
    mull__worker_drop_call(w, call);
}

/* ---- send ------------------------------------------------------------------------------------ */

typedef struct sending {
    int64_t call, delay_ms;
    mull_message message;
    const char *wrong; /* NULL: nothing */
} sending;

static const char *read_headers(sending *s, mull__arena *arena, const mull_value *map)
{
    if (map->kind != MULL_MAP)
        return "headers must be a map of texts";
    mull_header *headers = mull__arena_alloc(arena, map->count + 1, sizeof *headers);
    if (!headers)
        return "out of memory";
    for (size_t i = 0; i < map->count; i++) {
        if (map->as.fields[i].value.kind != MULL_STRING)
            return "headers must be a map of texts";
        headers[i] = (mull_header){map->as.fields[i].name, map->as.fields[i].value.as.string};
    }
    s->message.headers = headers;
    s->message.header_count = map->count;
    return NULL;
}

/* read_part reads an entry other than the body; what is wrong with it, or NULL. */
static const char *read_part(sending *s, mull__arena *arena, const char *name, size_t size,
                             const mull_value *value)
{
    const struct {
        const char *name, **to;
    } texts[] = {{"queue", &s->message.queue},
                 {"id", &s->message.id},
                 {"type", &s->message.type},
                 {"key", &s->message.key}};
    if (value->kind == MULL_NIL)
        return NULL;
    if (is(name, size, "headers"))
        return read_headers(s, arena, value);
    if (is(name, size, "delay_ms")) {
        s->delay_ms = value->as.integer;
        return value->kind == MULL_INTEGER && s->delay_ms >= 0
                   ? NULL
                   : "delay_ms must be a whole number from 0";
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (is(name, size, texts[i].name)) {
            *texts[i].to = value->as.string;
            return value->kind == MULL_STRING ? NULL : "queue, id, type and key must be texts";
        }
    return NULL;
}

static sending read_sending(char *at, mull__arena *arena)
{
    sending s = {.call = -1, .message = MULL_INIT(mull_message)};
    char why[MULL__MSGPACK_WHY];
    size_t entries = 0, size;
    if (at)
        mull__msgpack_map(&at, &entries);
    while (entries-- > 0) {
        const char *name = next_name(&at, &size), *body = NULL, *wrong = NULL;
        mull__msgpack_extent extent;
        mull_value value;
        if (is(name, size, "call")) {
            if (mull__msgpack_whole(&at, &s.call) != 0)
                mull__msgpack_skip(&at);
        } else if (is(name, size, "body")) {
            if (mull__msgpack_bytes_or_text(&at, &body, &s.message.body_size) != 0) {
                mull__msgpack_skip(&at);
                wrong = "body must be bytes (bin) or a text";
            }
            s.message.body = body;
        } else if (mull__msgpack_value(&value, arena, &at, &extent, why) != 0) {
            wrong = "its texts must be UTF-8 without a NUL";
        } else {
            wrong = read_part(&s, arena, name, size, &value);
        }
        s.wrong = s.wrong ? s.wrong : wrong;
    }
    return s;
}

static const char *why_not_sent(int status)
{
    return status == MULL_ETOOBIG ? "the message is larger than allowed, or all that the call "
                                    "sends is, together"
                                  : mull_strerror(status);
}

static void on_send(mull__worker *w, char *at)
{
    mull__arena arena = {.allocator = w->workers->allocator};
    sending s = read_sending(at, &arena);
    mull__worker_call *call = call_with(w, s.call);
    if (call && !call->wrong && !call->cancelled_ms) {
        int status =
            s.wrong ? 0 : mull_send(w->workers->engine, call->call, &s.message, s.delay_ms);
        const char *wrong = s.wrong ? s.wrong : status != 0 ? why_not_sent(status) : NULL;
        char text[256];
        if (wrong) {
            snprintf(text, sizeof text, "send: %s", wrong);
            call->wrong = mull__strdup(&w->workers->allocator, text);
        }
    }
    mull__arena_free(&arena);
}

/* ---- The session ----------------------------------------------------------------------------- */

static void notified(void *data, const mull__rpc_message *message)
{
    if (mull__rpc_is(message, "send"))
        on_send(data, message->params);
    else if (mull__rpc_is(message, "slots") && message->params)
        on_slots(data, message->params);
}

static int no_method(void *data, mull__session *session, const mull__rpc_message *request)
{
    (void)data;
    (void)session;
    (void)request;
    return 0;
}

const mull__session_ops mull__worker_session = {.call = no_method,
                                                .greet = greet,
                                                .welcomed = welcomed,
                                                .answered = answered,
                                                .notified = notified,
                                                .role = "worker",
                                                .welcome = welcome,
                                                .methods = "ping; send and slots are "
                                                           "notifications"};
