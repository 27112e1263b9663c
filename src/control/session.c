/* session.c: see session.h. */
#include "session.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Life ------------------------------------------------------------------------------------ */

void mull__session_begin(mull__session *s, const mull__session_ops *ops, void *data,
                         const mull_allocator *allocator, int64_t now_ms)
{
    *s = (mull__session){
        .ops = ops, .data = data, .out.allocator = allocator, .most = MULL__SESSION_FRAME};
    s->since_ms = s->heard_ms = s->pinged_ms = now_ms;
}

void mull__session_drop(mull__session *s)
{
    mull__free(s->out.allocator, s->out.memory);
    s->out.memory = NULL;
}

static void end(mull__session *s, int64_t now_ms)
{
    s->state = MULL__SESSION_ENDED;
    s->since_ms = now_ms;
}

int mull__session_is_full(const mull__session *s)
{
    return s->open >= MULL__SESSION_OPEN || s->waiting > MULL__SESSION_FRAME;
}

void mull__session_sent(mull__session *s)
{
    s->open = 0;
    s->waiting = 0;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void add_text(mull__msgpack *out, const char *text)
{
    mull__msgpack_string(out, text, strlen(text));
}

static void add_error(mull__msgpack *out, unsigned entries, const char *type, const char *message)
{
    mull__msgpack_entries(out, entries);
    add_text(out, "type");
    add_text(out, type);
    add_text(out, "message");
    add_text(out, message);
}

void mull__session_fail(mull__session *s, uint32_t id, const char *message)
{
    mull__rpc_failure(&s->out, id);
    add_error(&s->out, 2, "RequestError", message);
    mull__rpc_end_failure(&s->out);
}

/* breach answers what breaks the protocol, a hello or what has no id that is known, and ends. */
__attribute__((format(printf, 4, 5))) static void
breach(mull__session *s, const mull__rpc_message *hello, int64_t now_ms, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->why, sizeof s->why, format, arguments);
    va_end(arguments);
    if (hello) {
        mull__rpc_failure(&s->out, hello->id);
    } else {
        mull__msgpack_items(&s->out, 4);
        mull__msgpack_integer(&s->out, MULL__RPC_ANSWER);
        mull__msgpack_nil(&s->out);
    }
    add_error(&s->out, 3, "ProtocolError", s->why);
    add_text(&s->out, "versions");
    mull__msgpack_items(&s->out, 1);
    mull__msgpack_integer(&s->out, MULL__SESSION_VERSION);
    mull__rpc_end_failure(&s->out);
    end(s, now_ms);
}

/* ---- The hello ------------------------------------------------------------------------------- */

/* said is what a hello says, as far as we ask. */
typedef struct said {
    int64_t version;
    const char *role;
    size_t role_size;
} said;

static said read_hello(char *at)
{
    said heard = {.role = ""};
    size_t entries = 0, size;
    if (at)
        mull__msgpack_map(&at, &entries);
    while (entries-- > 0) {
        const char *name = "";
        char *value;
        if (mull__msgpack_text(&at, &name, &size) != 0) {
            mull__msgpack_skip(&at);
            size = 0;
        }
        value = at;
        if (size == 7 && memcmp(name, "version", size) == 0)
            mull__msgpack_whole(&value, &heard.version);
        else if (size == 4 && memcmp(name, "role", size) == 0)
            mull__msgpack_text(&value, &heard.role, &heard.role_size);
        mull__msgpack_skip(&at);
    }
    return heard;
}

static void add_entry(mull__msgpack *out, const char *name, int64_t number)
{
    add_text(out, name);
    mull__msgpack_integer(out, number);
}

static void welcome(mull__session *s, const mull__rpc_message *hello, int64_t now_ms)
{
    enum { OWN = 4 };
    mull__rpc_answer(&s->out, hello->id);
    size_t begun = mull__msgpack_begin(&s->out, 1);
    add_entry(&s->out, "version", MULL__SESSION_VERSION);
    add_entry(&s->out, "max_frame", (int64_t)s->most);
    add_entry(&s->out, "ping_ms", MULL__SESSION_PING_MS);
    add_entry(&s->out, "lost_ms", MULL__SESSION_LOST_MS);
    mull__msgpack_end(&s->out, begun, OWN + s->ops->welcome(s->data, &s->out));
    s->state = MULL__SESSION_OPENED;
    s->since_ms = now_ms;
    if (s->ops->welcomed)
        s->ops->welcomed(s->data);
}

static void take_hello(mull__session *s, const mull__rpc_message *message, int64_t now_ms)
{
    int is_hello = message->kind == MULL__RPC_REQUEST && mull__rpc_is(message, "hello");
    if (!is_hello) {
        breach(s, message->kind == MULL__RPC_REQUEST ? message : NULL, now_ms,
               "the first message must be the request hello");
        return;
    }
    const said heard = read_hello(message->params);
    size_t role_size = strlen(s->ops->role);
    char why[MULL__SESSION_WHY];
    if (heard.version != MULL__SESSION_VERSION)
        breach(s, message, now_ms, "hello: version must be %d", MULL__SESSION_VERSION);
    else if (heard.role_size != role_size || memcmp(heard.role, s->ops->role, role_size) != 0)
        breach(s, message, now_ms, "hello: role must be \"%s\" here", s->ops->role);
    else if (s->ops->greet && !s->ops->greet(s->data, message->params, why, sizeof why))
        breach(s, message, now_ms, "hello: %s", why);
    else
        welcome(s, message, now_ms);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void answer(mull__session *s, const mull__rpc_message *request)
{
    char text[MULL__SESSION_WHY];
    if (mull__rpc_is(request, "ping")) {
        mull__rpc_answer(&s->out, request->id);
        mull__msgpack_entries(&s->out, 0);
    } else if (mull__rpc_is(request, "hello")) {
        mull__session_fail(s, request->id, "hello comes once");
    } else if (!s->ops->call(s->data, s, request)) {
        snprintf(text, sizeof text, "there is no method \"%.*s\" here; there are %s",
                 request->method_size < 64 ? (int)request->method_size : 64, request->method,
                 s->ops->methods);
        mull__utf8_repair(text, strlen(text));
        mull__session_fail(s, request->id, text);
    }
}

/* take_request keeps answers to a frame's size. */
static void take_request(mull__session *s, const mull__rpc_message *request)
{
    size_t before = s->out.size;
    s->open++;
    answer(s, request);
    if (s->out.status == 0 && s->out.size - before > MULL__SESSION_FRAME) {
        s->out.size = before;
        mull__session_fail(s, request->id, "the answer is longer than 1 MiB; ask for less at once");
    }
}

static void take(mull__session *s, const mull__rpc_message *message, int64_t now_ms)
{
    size_t before = s->out.size;
    if (s->state == MULL__SESSION_NEW)
        take_hello(s, message, now_ms);
    else if (message->kind == MULL__RPC_REQUEST)
        take_request(s, message);
    else if (message->kind == MULL__RPC_ANSWER && s->ops->answered)
        s->ops->answered(s->data, message);
    else if (message->kind == MULL__RPC_NOTIFICATION && s->ops->notified)
        s->ops->notified(s->data, message);
    s->waiting += s->out.size - before;
    if (s->out.status != 0 && s->state != MULL__SESSION_ENDED) {
        snprintf(s->why, sizeof s->why, "out of memory");
        end(s, now_ms);
    }
}

size_t mull__session_feed(mull__session *s, char *bytes, size_t size, int64_t now_ms)
{
    size_t taken = 0;
    s->heard_ms = now_ms;
    while (s->state != MULL__SESSION_ENDED && taken < size && !mull__session_is_full(s)) {
        mull__rpc_message message;
        char why[MULL__MSGPACK_WHY];
        long whole =
            mull__rpc_read(&s->reader, &message, bytes + taken, size - taken, s->most, why);
        if (whole == 0)
            break;
        if (whole < 0) {
            breach(s, NULL, now_ms, "%s", why);
            break;
        }
        taken += (size_t)whole;
        take(s, &message, now_ms);
    }
    return s->state == MULL__SESSION_ENDED ? size : taken;
}

/* ---- Time ------------------------------------------------------------------------------------ */

uint32_t mull__session_request(mull__session *s, const char *method)
{
    uint32_t id = s->requests++;
    mull__rpc_request(&s->out, id, method);
    return id;
}

static void ping(mull__session *s, int64_t now_ms)
{
    s->pinged_ms = now_ms;
    mull__session_request(s, "ping");
    mull__msgpack_entries(&s->out, 0);
}

void mull__session_tick(mull__session *s, int64_t now_ms)
{
    int64_t silent_ms = now_ms - s->heard_ms;
    if (s->state == MULL__SESSION_NEW && now_ms - s->since_ms >= MULL__SESSION_HELLO_MS) {
        breach(s, NULL, now_ms, "hello must come within %d s", MULL__SESSION_HELLO_MS / 1000);
    } else if (s->state == MULL__SESSION_OPENED && silent_ms >= MULL__SESSION_LOST_MS) {
        snprintf(s->why, sizeof s->why, "nothing was heard for %d s", MULL__SESSION_LOST_MS / 1000);
        end(s, now_ms);
    } else if (s->state == MULL__SESSION_OPENED && silent_ms >= MULL__SESSION_PING_MS &&
               now_ms - s->pinged_ms >= MULL__SESSION_PING_MS) {
        ping(s, now_ms);
    }
}
