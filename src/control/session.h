/* session.h: one client of the protocol of docs/serve.md. No I/O, and no clock of its own.
 *
 *   bytes in ──> mull__session_feed ──> hello, ping; the other requests go to `call`
 *                                   ──> session.out ──> bytes out, then mull__session_sent
 *
 * A request is open until its answer is out. With MULL__SESSION_OPEN of them, or with answers of a
 * frame's size that aren't out, nothing more is read. */
#ifndef MULL__SESSION_H
#define MULL__SESSION_H

#include "wire/rpc.h"

enum {
    MULL__SESSION_VERSION = 1,
    MULL__SESSION_OPEN = 64,
    MULL__SESSION_FRAME = 1024 * 1024,
    MULL__SESSION_HELLO_MS = 5000, /* for the hello to come, and for last words to get out */
    MULL__SESSION_PING_MS = 10000,
    MULL__SESSION_LOST_MS = 30000,
    MULL__SESSION_WHY = 1024
};

typedef enum mull__session_state {
    MULL__SESSION_NEW, /* the hello is to come */
    MULL__SESSION_OPENED,
    MULL__SESSION_ENDED /* what is in `out` still goes; `why` says why */
} mull__session_state;

typedef struct mull__session mull__session;

typedef struct mull__session_ops {
    /* call answers a request, by mull__rpc_answer or mull__session_fail; 0: it has no such method.
     */
    int (*call)(void *data, mull__session *session, const mull__rpc_message *request);
    /* These four may be NULL. greet looks at the params of a hello before it is welcome; 0: it
     * isn't, and `why` says why. answered is given what answers a request of ours, notified the
     * rest. welcomed: it is in. */
    int (*greet)(void *data, char *params, char *why, size_t size);
    void (*welcomed)(void *data);
    void (*answered)(void *data, const mull__rpc_message *answer);
    void (*notified)(void *data, const mull__rpc_message *notification);
    const char *role; /* of the clients, such as "decider" */
    /* welcome adds what the answer to a hello says beside the protocol's own; how many entries. */
    unsigned (*welcome)(void *data, mull__msgpack *out);
    const char *methods; /* for people: "decide, explain" */
} mull__session_ops;

struct mull__session {
    const mull__session_ops *ops;
    void *data;
    mull__msgpack out;
    mull__rpc_reader reader;
    mull__session_state state;
    int open;          /* requests */
    size_t waiting;    /* bytes that were put into `out` since all was out */
    uint32_t requests; /* of ours: the next one's id */
    size_t most; /* bytes of a message that comes; MULL__SESSION_FRAME unless its owner says */
    int64_t since_ms, heard_ms, pinged_ms; /* since_ms: of its state */
    char why[MULL__SESSION_WHY];           /* what ended it; "": the other side */
};

/* mull__session_begin: `session` is zeroed but for what it is to be given here. */
void mull__session_begin(mull__session *session, const mull__session_ops *ops, void *data,
                         const mull_allocator *allocator, int64_t now_ms);

void mull__session_drop(mull__session *session);

/* mull__session_feed takes messages off the front of what has come, and gives how many bytes they
 * had. The bytes are changed. */
size_t mull__session_feed(mull__session *session, char *bytes, size_t size, int64_t now_ms);

/* mull__session_is_full says whether nothing is to be read before more is out. */
int mull__session_is_full(const mull__session *session);

/* mull__session_sent: all that `out` ever had is out. */
void mull__session_sent(mull__session *session);

/* mull__session_tick is called about once a second. */
void mull__session_tick(mull__session *session, int64_t now_ms);

/* mull__session_request begins a request of ours, and gives its id. */
uint32_t mull__session_request(mull__session *session, const char *method);

/* mull__session_fail answers a request with a RequestError. */
void mull__session_fail(mull__session *session, uint32_t id, const char *message);

#endif
