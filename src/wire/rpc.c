/* rpc.c: see rpc.h. */
#include "rpc.h"

#include <stdio.h>
#include <string.h>

/* ---- Reading --------------------------------------------------------------------------------- */

static long refuse(char *why, const char *what)
{
    snprintf(why, MULL__MSGPACK_WHY, "%s", what);
    return MULL_EINVAL;
}

static int read_id(mull__rpc_message *message, char **at)
{
    int64_t id;
    int status = mull__msgpack_whole(at, &id);
    message->id = (uint32_t)id;
    return status == 0 && id >= 0 && id <= UINT32_MAX;
}

static int read_method(mull__rpc_message *message, char **at)
{
    return mull__msgpack_text(at, &message->method, &message->method_size) == 0 &&
           message->method_size > 0 && !memchr(message->method, 0, message->method_size);
}

/* read_params takes [], too. */
static int read_params(mull__rpc_message *message, char **at)
{
    size_t count, entries;
    if (mull__msgpack_list(at, &count) != 0 || count > 1)
        return 0;
    message->params = count > 0 ? *at : NULL;
    return count == 0 || mull__msgpack_map(at, &entries) == 0;
}

static long read_message(mull__rpc_message *message, char *at, char *why)
{
    static const size_t parts[] = {4, 4, 3};
    size_t count;
    int64_t kind;
    *message = (mull__rpc_message){.kind = MULL__RPC_REQUEST};
    if (mull__msgpack_list(&at, &count) != 0 || count == 0 ||
        mull__msgpack_whole(&at, &kind) != 0 || kind < MULL__RPC_REQUEST ||
        kind > MULL__RPC_NOTIFICATION || count != parts[kind])
        return refuse(why, "a message must be [0, id, method, [map]], [1, id, error, result] or "
                           "[2, method, [map]]");
    message->kind = (mull__rpc_kind)kind;
    if (kind != MULL__RPC_NOTIFICATION && !read_id(message, &at))
        return refuse(why, "a message's id must be a whole number of 32 bits, from 0");
    if (kind == MULL__RPC_ANSWER) {
        message->error = at;
        mull__msgpack_skip(&at);
        message->result = at;
        return 0;
    }
    if (!read_method(message, &at))
        return refuse(why, "a message's method must be a text (str), not empty");
    if (!read_params(message, &at))
        return refuse(why, "a message's params must be a list of one map");
    return 0;
}

long mull__rpc_read(mull__rpc_reader *reader, mull__rpc_message *message, char *bytes, size_t size,
                    size_t most, char why[MULL__MSGPACK_WHY])
{
    int found = mull__msgpack_scan(&reader->progress, bytes, size, most);
    if (found == 0)
        return 0;
    if (found == MULL_ETOOBIG)
        snprintf(why, MULL__MSGPACK_WHY, "a message is longer than %zu bytes", most);
    else if (found == MULL_EREFUSED)
        snprintf(why, MULL__MSGPACK_WHY, "a message is nested deeper than %d levels",
                 MULL__MSGPACK_LEVELS);
    else if (found < 0)
        refuse(why, "this isn't MessagePack: a value can't begin with the byte 0xc1");
    if (found < 0)
        return found;
    long whole = (long)reader->progress.at;
    reader->progress = (mull__msgpack_progress){0};
    long status = read_message(message, bytes, why);
    return status < 0 ? status : whole;
}

int mull__rpc_is(const mull__rpc_message *message, const char *method)
{
    return message->method_size == strlen(method) &&
           memcmp(message->method, method, message->method_size) == 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void begin(mull__msgpack *out, unsigned count, mull__rpc_kind kind)
{
    mull__msgpack_items(out, count);
    mull__msgpack_integer(out, kind);
}

static void begin_call(mull__msgpack *out, const char *method)
{
    mull__msgpack_string(out, method, strlen(method));
    mull__msgpack_items(out, 1);
}

void mull__rpc_request(mull__msgpack *out, uint32_t id, const char *method)
{
    begin(out, 4, MULL__RPC_REQUEST);
    mull__msgpack_integer(out, id);
    begin_call(out, method);
}

void mull__rpc_notification(mull__msgpack *out, const char *method)
{
    begin(out, 3, MULL__RPC_NOTIFICATION);
    begin_call(out, method);
}

void mull__rpc_answer(mull__msgpack *out, uint32_t id)
{
    mull__rpc_failure(out, id);
    mull__msgpack_nil(out);
}

void mull__rpc_failure(mull__msgpack *out, uint32_t id)
{
    begin(out, 4, MULL__RPC_ANSWER);
    mull__msgpack_integer(out, id);
}

void mull__rpc_end_failure(mull__msgpack *out)
{
    mull__msgpack_nil(out);
}
