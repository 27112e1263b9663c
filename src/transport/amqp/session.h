/* session.h: AMQP 0-9-1 as a client speaks it. Bytes in, events out; methods in, bytes out. It sees
 * no socket, no clock and no engine, so that a test may feed it any bytes, cut anywhere.
 *
 *   bytes ── feed ──> frames ──> open, method, content_begin, content_end, blocked
 *   bytes <── write ── frames <── send, publish, tick
 *
 * librabbitmq is the codec: of methods, properties and tables. Frames are cut here, since its own
 * reader of them keeps memory for each channel that a server names, and trusts lengths that it
 * shouldn't. What a server says is bounded by what was agreed, or is allowed here: frames,
 * channels, depth of tables.
 */
#ifndef MULL__AMQP_SESSION_H
#define MULL__AMQP_SESSION_H

#include "mulligan.h"

#include <amqp.h>
#include <amqp_framing.h>

enum {
    MULL__AMQP_FRAME_MAX = 131072,   /* as RabbitMQ's; a server may agree on less */
    MULL__AMQP_FRAME_LEAST = 4096,   /* no server may agree on less */
    MULL__AMQP_HEADER_MAX = 1 << 20, /* a header frame of the server's, which keeps to no agreement:
                                        it adds x-death to what a sender filled */
    MULL__AMQP_CHANNEL_MAX = 2047,   /* as RabbitMQ's */
    MULL__AMQP_CHANNEL_LEAST = 3,    /* to publish, to ask, to read one queue */
    MULL__AMQP_TABLE_DEPTH = 32,     /* of a table within tables */
    MULL__AMQP_BODY_MAX = 512 << 20, /* as RabbitMQ's, for which more can't be set */
    MULL__AMQP_FRAME_OVERHEAD = 8,   /* of a frame: type, channel, size, end */
    MULL__AMQP_HEADER_OVERHEAD = 12  /* of a header frame's payload: class, weight, size of body */
};

/* mull__amqp_content is a message on its way in: of basic.deliver or basic.return. */
typedef struct mull__amqp_content {
    uint16_t channel;
    amqp_method_number_t method; /* 0: none is under way */
    uint64_t tag;                /* of basic.deliver, and the next */
    int redelivered;
    char routing_key[256]; /* of basic.return */
    uint64_t body_size;
    /* Of the encoded properties; borrowed, in content_begin. */
    const char *properties;
    size_t properties_size;
    char *body; /* where it goes, of content_begin; NULL: nowhere. Whose memory it is, knows who
                   gave it */
    size_t room;
    /* The session's own; `is_lost`: there was no room for all of the body. */
    int has_header, is_lost;
    uint64_t body_done;
} mull__amqp_content;

typedef struct mull__amqp_calls {
    /* write sends bytes, which are copied. Not 0: it can't, and the session ends. */
    int (*write)(void *data, const void *bytes, size_t size);
    /* open: logged in, channels may be opened. */
    void (*open)(void *data);
    /* method: one of a channel's, without content; borrowed. After channel.close the number is
     * free again. */
    void (*method)(void *data, uint16_t channel, amqp_method_number_t id, void *decoded);
    /* content_begin sets where the body goes: `body`, which has `room`. content_more makes room for
     * as many bytes as have come; not 0: it can't, and none of it is kept. content_end: it is
     * whole. In between the session may end, or the channel be dropped. */
    void (*content_begin)(void *data, mull__amqp_content *content);
    int (*content_more)(void *data, mull__amqp_content *content, size_t wanted);
    void (*content_end)(void *data, mull__amqp_content *content);
    /* blocked: the server takes no messages, for a reason; NULL: it does again. */
    void (*blocked)(void *data, const char *reason);
} mull__amqp_calls;

/* mull__amqp_login is what is said of us; borrowed as long as the session lives. */
typedef struct mull__amqp_login {
    const char *user, *password, *vhost;
    const char *name; /* of the connection, for people who look */
    int external;     /* by the certificate, not by a password */
    uint16_t heartbeat_s;
} mull__amqp_login;

typedef enum mull__amqp_state {
    MULL__AMQP_OFF,
    MULL__AMQP_STARTING, /* the protocol header is out */
    MULL__AMQP_TUNING,   /* the login is out */
    MULL__AMQP_OPENING,  /* the virtual host is asked for */
    MULL__AMQP_OPEN,
    MULL__AMQP_CLOSING, /* by us: what is sent goes nowhere */
    MULL__AMQP_CLOSED
} mull__amqp_state;

typedef struct mull__amqp_channel {
    int is_open;                /* or was asked for, or is asked to close */
    int is_closing;             /* by us */
    mull__amqp_content content; /* under way */
} mull__amqp_channel;

typedef struct mull__amqp_session {
    mull_allocator allocator;
    const mull__amqp_calls *calls;
    void *data;
    const mull__amqp_login *login;
    mull__amqp_state state;
    uint32_t frame_max;
    uint16_t channel_max, heartbeat_s;
    char server[128];    /* product and version, as it says */
    int server_major;    /* of its version; 0: unknown */
    char why[512];       /* why it ended, without secrets */
    int written, silent; /* since the last tick; ticks without a byte from the server */
    char *in, *scratch;  /* a frame that isn't whole; one that is written */
    size_t in_size, in_room;
    mull__amqp_channel **channels; /* from 0 on; NULL: never opened */
    size_t channel_count;
    amqp_pool_t pool; /* of the method that is looked at */
} mull__amqp_session;

/* mull__amqp_session_init: MULL_ENOMEM. */
int mull__amqp_session_init(mull__amqp_session *session, const mull_allocator *allocator,
                            const mull__amqp_calls *calls, void *data,
                            const mull__amqp_login *login);
void mull__amqp_session_free(mull__amqp_session *session);

/* mull__amqp_session_begin speaks first, on a new connection; all of an earlier one is forgotten.
 */
void mull__amqp_session_begin(mull__amqp_session *session);

/* mull__amqp_session_feed takes what came. Not 0: the session has ended, `why` says how, and the
 * connection is of no more use. */
int mull__amqp_session_feed(mull__amqp_session *session, const char *bytes, size_t size);

/* mull__amqp_session_tick is to be called twice in a heartbeat. Not 0: the server is silent, and
 * the session has ended. */
int mull__amqp_session_tick(mull__amqp_session *session);

/* mull__amqp_channel_open asks for a channel, whose number is free; channel.open-ok follows.
 * MULL_EREFUSED: the server allows no more. MULL_ENOMEM. */
int mull__amqp_channel_open(mull__amqp_session *session, uint16_t channel);

/* mull__amqp_channel_close asks for the end of one; channel.close-ok follows. */
void mull__amqp_channel_close(mull__amqp_session *session, uint16_t channel);

int mull__amqp_channel_is_open(const mull__amqp_session *session, uint16_t channel);

/* mull__amqp_send sends a method. MULL_EREFUSED: it can't be encoded, since a text is too long. */
int mull__amqp_send(mull__amqp_session *session, uint16_t channel, amqp_method_number_t id,
                    void *decoded);

/* mull__amqp_publish sends a message. Its properties are `encoded`, or what `raw` has of them.
 * MULL_EREFUSED: they don't fit into a frame; nothing was sent. */
int mull__amqp_publish(mull__amqp_session *session, uint16_t channel, amqp_basic_publish_t *publish,
                       amqp_basic_properties_t *properties, amqp_bytes_t raw, amqp_bytes_t body);

/* mull__amqp_session_close asks the server to end; the session is CLOSED when it has. */
void mull__amqp_session_close(mull__amqp_session *session);

/* mull__amqp_text is a text as the codec has it; the bytes aren't written to. */
amqp_bytes_t mull__amqp_text(const char *text);

/* mull__amqp_quote copies what a server said as a text that can be shown, cut off where it is too
 * long. */
void mull__amqp_quote(char *out, size_t room, amqp_bytes_t bytes);

/* mull__amqp_same says whether bytes are this text. */
int mull__amqp_same(amqp_bytes_t bytes, const char *text);

#endif
