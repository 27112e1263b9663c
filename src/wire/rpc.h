/* rpc.h: MessagePack-RPC: messages out of bytes, and into bytes. No I/O.
 *
 *   request        [0, id, method, [map]]
 *   answer         [1, id, error, result]
 *   notification   [2, method, [map]]
 *
 * docs/serve.md has the protocol that speaks it. */
#ifndef MULL__RPC_H
#define MULL__RPC_H

#include "msgpack_read.h"
#include "msgpack_write.h"

typedef enum mull__rpc_kind {
    MULL__RPC_REQUEST,
    MULL__RPC_ANSWER,
    MULL__RPC_NOTIFICATION
} mull__rpc_kind;

/* mull__rpc_message points into the bytes that it was read from. */
typedef struct mull__rpc_message {
    mull__rpc_kind kind;
    uint32_t id;        /* of a request, or of the one that is answered */
    const char *method; /* of a request or notification; not empty, `method_size` bytes, no NUL */
    size_t method_size;
    char *params; /* theirs: a map; NULL: there is none */
    char *error;  /* of an answer: any value */
    char *result; /* the same */
} mull__rpc_message;

/* mull__rpc_reader is how far the message at the front of the bytes has been looked at; zeroed at
 * the beginning. */
typedef struct mull__rpc_reader {
    mull__msgpack_progress progress;
} mull__rpc_reader;

/* mull__rpc_read looks for a message at the front of the bytes that have come, which may have
 * `most`. Its size, and the reader is ready for the next one; 0: there is more to come; below 0:
 * what comes isn't the protocol, and nothing more can be read; `why` says what is wrong. */
long mull__rpc_read(mull__rpc_reader *reader, mull__rpc_message *message, char *bytes, size_t size,
                    size_t most, char why[MULL__MSGPACK_WHY]);

/* mull__rpc_is says whether a message is of this method. */
int mull__rpc_is(const mull__rpc_message *message, const char *method);

/* Each begins a message. What has to follow: of a request or notification, its map; of an answer,
 * the result; of a failure, the error, which mull__rpc_end_failure ends. */
void mull__rpc_request(mull__msgpack *out, uint32_t id, const char *method);
void mull__rpc_notification(mull__msgpack *out, const char *method);
void mull__rpc_answer(mull__msgpack *out, uint32_t id);
void mull__rpc_failure(mull__msgpack *out, uint32_t id);
void mull__rpc_end_failure(mull__msgpack *out);

#endif
