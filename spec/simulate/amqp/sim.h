/* sim.h: what a seed of the RabbitMQ module's simulator is made of. The module is the real one; all
 * that it calls is here.
 *
 *        engine.c, port.c   asks of the module what an engine asks, and looks at its answers
 *             |
 *      src/transport/amqp   unchanged
 *             |
 *               net.c       src/net/link.h and libuv's timers, on the simulator's clock: bytes that
 *             |             come late, in pieces, and break off anywhere
 *   server.c, channel.c     speak AMQP 0-9-1 as RabbitMQ does, and bear no mistake
 *             |
 *   broker.c, delivery.c    exchanges, queues, what waits, what is out
 *
 *   ../kernel.c     chance, time, what is due, memory, what happened; the other simulator's as well
 *   main.c, sim.c   which seeds; one seed from its beginning to its end
 *   trouble.c       what goes wrong, and when
 *   ledger.c        is what happens right? an account of each message
 */
#ifndef SIM_H
#define SIM_H

#include "../kernel.h"
#include "base/list.h"
#include "mulligan/module.h"
#include "mulligan/transport.h"
#include "net/link.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <uv.h>

enum {
    READ_QUEUES = 3, /* that the engine reads */
    DEAD_QUEUES = 2, /* that it doesn't */
    CHANNELS = 16,
    FRAME_LEAST = 4096,
    QUIET =
        6 /* in each seed that is a multiple of this, nothing breaks, so nothing may come twice */
};

typedef struct wire wire;
typedef struct conn conn;
typedef struct channel channel;
typedef struct consumer consumer;
typedef struct queue queue;
typedef struct copy copy;
typedef struct handout handout;
typedef struct message message;
typedef struct post post;
typedef struct claim claim;

/* keep_bytes copies them into memory that lives as long as the seed. */
amqp_bytes_t keep_bytes(sim *s, amqp_bytes_t bytes);

/* ---- Bytes on their way (net.c) -------------------------------------------------------------- */

/* half is one direction of a connection. Bytes arrive in their order; `marks` says when, up to
 * where. */
typedef struct arrival_mark {
    struct arrival_mark *next;
    size_t to;
    int64_t due_ms;
} arrival_mark;

typedef struct half {
    wire *of;
    int is_up; /* to the broker */
    char *bytes;
    size_t at, size, room;
    uint64_t total, cut_at; /* bytes that arrived; when so many have, the connection is cut */
    arrival_mark *first, **last;
    event *arrival;
    int is_held;  /* nobody reads */
    int has_end;  /* nothing follows */
    int is_ended; /* and that was told */
} half;

/* wire is a connection. Each end notices in its own time that it is cut. */
struct wire {
    mull__link link;
    sim *sim;
    half up, down;
    mull__net_link *client; /* NULL: it has let go of it */
    conn *server;           /* as well */
    int is_cut, is_mute;
    int is_closed; /* by the module: it says nothing more */
};

void wire_write(wire *w, half *p, const void *bytes, size_t size);
void wire_end(wire *w, half *p); /* nothing follows */
void wire_hold(half *p, int on);
void wire_cut(wire *w);  /* each end will notice */
void wire_mute(wire *w); /* none will, but by the other's silence */
void wires_free(sim *s);

/* ---- What the broker keeps (broker.c) -------------------------------------------------------- */

typedef struct argument {
    char name[48], text[64]; /* text: where kind is AMQP_FIELD_KIND_UTF8 */
    int64_t number;
    int kind;
} argument;

enum { ARGUMENTS = 8 };

struct queue {
    mull__link link;
    char name[256];
    argument arguments[ARGUMENTS];
    int argument_count;
    int is_quorum, is_delay;
    int64_t ttl_ms; /* 0: none */
    const char *next_exchange;
    int was_stuck; /* no exchange took what was due, so what follows is late */
    mull__list ready, consumers;
    size_t unacked, parked; /* of these, that the engine can't settle */
    event *pump, *expiry;
};

typedef struct exchange {
    mull__link link;
    char name[64], type[16], alternate[64];
} exchange;

typedef struct binding {
    mull__link link;
    exchange *from, *to_exchange;
    queue *to;
    char key[256], header[48]; /* header "": none */
    int value;
} binding;

/* copy is a message in the broker. */
struct copy {
    mull__link link; /* of its queue's `ready`, or of none */
    queue *in;
    message *of;
    amqp_bytes_t properties, body; /* as they were published */
    const char *key;               /* the routing key */
    int64_t due_ms;                /* wall: not to be seen before; 0: at once */
    int64_t asked_ms, taken_ms;    /* when it was asked for, and arrived here */
    int64_t count;                 /* of hand-outs that ended without an acknowledgement */
    int redelivered;
    int is_safe; /* its confirm was decided on */
    const char *deaths[40];
    int death_count;
    int64_t expires_ms;
    int may_be_late;
};

typedef struct broker {
    sim *sim;
    mull__list queues, exchanges, bindings;
    int is_off;      /* refuses connections */
    int alarm;       /* blocks those who publish */
    size_t max_body; /* bytes of a message; 0: any */
    mull__list conns;
    amqp_pool_t pool; /* of what is decoded for one step */
    uint64_t handouts;
} broker;

queue *queue_find(broker *b, amqp_bytes_t name);
queue *queue_make(broker *b, amqp_bytes_t name, const argument *arguments, int count);
void queue_delete(broker *b, queue *q);
exchange *exchange_find(broker *b, amqp_bytes_t name);
exchange *exchange_make(broker *b, const amqp_exchange_declare_t *declare);
void binding_make(broker *b, exchange *from, exchange *to_exchange, queue *to, amqp_bytes_t key,
                  const amqp_table_t *arguments);

/* broker_route finds the queues that a message goes to: none, or some of `out`. */
enum { ROUTES = 8 };
int broker_route(broker *b, const char *exchange, const char *key, const amqp_table_t *headers,
                 queue *out[ROUTES]);

/* copy_new is in no queue; copy_put puts it to the end of one, or to its beginning. */
copy *copy_new(broker *b, message *of, amqp_bytes_t properties, amqp_bytes_t body, const char *key);
void copy_put(broker *b, queue *q, copy *c, int to_front);
void copy_drop(broker *b, copy *c); /* somebody has deleted a queue that it needs */

/* broker_restart: it is down for a while; what isn't safe may be gone. */
void broker_restart(broker *b, int64_t down_ms);
void broker_begin(broker *b, sim *s);
void broker_end(broker *b);

/* ---- What is out (delivery.c) ---------------------------------------------------------------- */

struct consumer {
    mull__link link; /* of its queue */
    channel *on;
    queue *of;
    char tag[64];
    uint32_t prefetch, out;
    int is_told; /* consume-ok is out */
};

typedef enum handout_state {
    HANDOUT_OUT,
    HANDOUT_ENDING, /* acknowledged, and the queue hasn't taken that yet */
    HANDOUT_ENDED,
    HANDOUT_BACK,
    HANDOUT_STALE /* the queue has it no more, the channel still knows the tag */
} handout_state;

struct handout {
    mull__link link; /* of its channel, while that knows it */
    uint64_t serial, tag;
    int64_t count; /* of its copy's, then */
    channel *on;
    uint32_t on_life; /* of the channel */
    consumer *by;
    copy *of;
    queue *from;
    handout_state state;
    int64_t out_ms, seen_ms; /* seen: by the engine; 0: not yet */
    claim *claim;
    event *ending;
};

void queue_pump(sim *s, queue *q); /* hands out, soon */
void handout_ack(handout *h);
void handout_back(handout *h); /* to its queue */
consumer *consumer_find(channel *c, amqp_bytes_t tag);
void consumer_tell(consumer *c);                 /* consume-ok, once */
void consumer_end(consumer *c);                  /* by the broker */
void handouts_forget(broker *b, const queue *q); /* it is deleted */
void consumers_away(sim *s, queue *q);           /* its leader fails, and it lives on */
handout *handout_at(broker *b, uint64_t serial);

/* ---- AMQP, as the broker speaks it (server.c, channel.c) ------------------------------------- */

/* command is a method, with its content. */
typedef struct command {
    struct command *next;
    amqp_method_number_t id;
    amqp_bytes_t method, properties, body;
} command;

/* unconfirmed is a message that was published, whose confirm is due. */
typedef struct unconfirmed {
    mull__link link;
    uint64_t tag;
    channel *on;
    uint32_t life;
    int verdict; /* 0: not yet; 1: ack; -1: nack */
    int was_returned;
    post *of;
    copy *copies[ROUTES];
    int copy_count;
    event *decision; /* NULL: it is withheld, or made */
} unconfirmed;

typedef enum channel_state { CHANNEL_NONE, CHANNEL_OPEN, CHANNEL_CLOSING } channel_state;

struct channel {
    conn *conn;
    uint16_t number;
    channel_state state;
    uint32_t life; /* how often it was opened */
    command *first, **last, *arriving;
    size_t body_at, body_size;
    event *next, *flush;
    int confirms;
    uint64_t publish_tag, delivery_tag;
    uint32_t prefetch;
    mull__list unconfirmed, handouts;
};

typedef enum conn_state {
    CONN_NEW,
    CONN_START,
    CONN_TUNE,
    CONN_OPENING,
    CONN_OPEN,
    CONN_CLOSING,
    CONN_GONE
} conn_state;

struct conn {
    mull__link link;
    broker *broker;
    wire *wire;
    conn_state state;
    char *in; /* a frame that isn't whole */
    size_t in_size, in_room;
    uint32_t frame_max;
    uint16_t heartbeat_s;
    channel channels[CHANNELS];
    int is_blocked;
    int was_slow; /* acknowledgements may be read late, so that its end may lose them */
    int64_t heard_ms;
    event *beat;
};

conn *conn_new(broker *b, wire *w);
void conn_read(conn *c, const char *bytes, size_t size);
void conn_gone(conn *c); /* what was out on it goes back */
void conn_close(conn *c, uint16_t code, const char *why);
void conn_block(broker *b, int on);
void conn_send(conn *c, uint16_t channel, amqp_method_number_t id, void *method);
void conn_send_content(conn *c, uint16_t channel, amqp_method_number_t id, void *method,
                       amqp_bytes_t properties, amqp_bytes_t body);

void channel_take(channel *c, command *what);
__attribute__((format(printf, 3, 4))) void channel_close(channel *c, uint16_t code,
                                                         const char *format, ...);
void channel_end(channel *c, int is_fault); /* its claims go back */
void channels_calm(conn *c);                /* what was withheld is told */

int same(amqp_bytes_t bytes, const char *text);
amqp_bytes_t bytes_of(const char *text);

/* ---- The account (ledger.c) ------------------------------------------------------------------ */

/* message is one that somebody put into the broker, or wanted to. Copies of it are one with it. */
struct message {
    uint64_t number;
    size_t body_size;
    int is_accepted; /* it was safe once, so it can't vanish */
    int is_excused;  /* a fault struck while it was under way: it may be there twice */
    int is_deleted;  /* with its queue, or dropped as it may be */
    int is_parked;
    int live;      /* copies in the broker */
    int ends;      /* acknowledgements that ended one for good */
    post *as_post; /* that put it there; NULL: somebody else did */
};

/* post is a message, or a copy, that the module was asked to publish. */
struct post {
    message *of;
    const char *queue;
    int64_t due_ms, asked_ms; /* wall; this clock */
    int is_confirmed;         /* and not returned, so it is safe */
    uint64_t settled;         /* the number that its header mulligan-settled has; 0: none */
    handout *from;            /* a copy of this one; NULL: none */
    int is_answered;
};

message *message_new(sim *s, size_t body_size);
message *message_of(sim *s, const amqp_table_t *headers);
void message_body(const message *m, char *out);
void message_check_body(sim *s, const message *m, const void *body, size_t size);

/* A message was published: which post is it? NULL: not one of ours. */
post *ledger_published(sim *s, const amqp_table_t *headers, message **of);
void ledger_confirmed(sim *s, post *p);
void ledger_visible(sim *s, copy *c);
void ledger_acked(sim *s, handout *h);       /* the broker reads an acknowledgement */
void ledger_nacked(sim *s, handout *h);      /* as well */
void ledger_ended(sim *s, handout *h);       /* and its copy is gone */
void ledger_holds(sim *s, const message *m); /* it hasn't vanished */
void ledger_excuse(handout *h);
void ledger_end(sim *s);

/* ---- The engine's side (engine.c, port.c) ---------------------------------------------------- */

typedef struct subscription {
    mull_ticket consumer; /* 0: none */
    int queue;
    void *handle;
    uint32_t most, credit, out, parked, peak; /* peak: the largest credit so far */
    size_t claims;
    int64_t zero_ms; /* since when its credit is 0, and nothing went wrong; -1: it isn't so */
    mull_source_state state;
    int is_leaving; /* and is ended when all of its claims are released */
    int is_ended;   /* it was; what comes is wrong */
} subscription;

enum { SENDS = 2 };

/* settling is a settlement with all that it points to, which is spoilt once it is answered. */
typedef struct settling {
    mull_settlement settlement;
    mull_header ours[1];
    char settled[24], id[24], queue[320];
    mull_outgoing sends[SENDS];
    struct sending {
        mull_message message;
        mull_header headers[2];
        char number[24], id[24], queue[32];
    } messages[SENDS];
} settling;

/* claim is a delivery that the module handed over, and what shall become of it. */
struct claim {
    mull__link link;
    mull_delivery *delivery;
    subscription *sub;
    handout *handout;
    message *of;
    mull_settle_kind kind;
    int as_it_came;
    post *copy; /* that is to be safe before it is acknowledged; NULL: none */
    post *sends[SENDS];
    size_t send_count;
    settling *settling; /* under way */
    int is_counted;     /* among those that are out */
    int is_heard;       /* its settlement is answered, from inside a slot */
    int is_lost, is_settled, is_parked;
    int may_ack, may_nack; /* what the broker may be told of it */
    int refusals;
};

typedef enum ask_kind { ASK_NOTHING, ASK_SETTLE, ASK_PUBLISH, ASK_DEPTH } ask_kind;

typedef struct ask {
    ask_kind kind;
    claim *claim;
    post *post;
    int64_t asked_ms;
    int status;
} ask;

enum { SUBSCRIPTIONS = 3, ASKS = 4096, FIRST_TICKET = 1000 };

/* mull_port is the engine, as the module sees it. */
struct mull_port {
    const mull_port_calls *calls; /* first */
    sim *sim;
    void *transport; /* NULL: none is open */
    uv_loop_t loop;
    counting_allocator memory;
    mull_allocator allocator;
    size_t timers;
    mull_health health;
    subscription subs[SUBSCRIPTIONS];
    mull__list claims;
    ask asks[ASKS]; /* by the number of their tickets, from FIRST_TICKET on */
    mull_ticket next_ticket;
    size_t asked; /* of these, without an answer */
    int in_slot, is_closing, is_touched;
    int64_t late_ms; /* when it has closed, whatever is under way */
};

/* SLOT calls a slot of the module, from inside which it may say less. */
#define SLOT(s, call) ((s)->port.in_slot++, (call), (s)->port.in_slot--)

void port_begin(mull_port *p, sim *s);
void engine_begin(sim *s);
void engine_calm(sim *s);
int engine_is_done(sim *s); /* all that was asked is answered, nothing is claimed */
void engine_close(sim *s, int64_t drain_ms);

/* What the module says; port.c looks whether it may. */
void engine_delivered(sim *s, subscription *sub, mull_delivery *d);
void engine_lost(sim *s, claim *c);
void engine_answer(sim *s, ask *a, int status);
void engine_closed(sim *s);
void engine_excuse(sim *s); /* all that is under way */
void engine_cut(sim *s);    /* the module was told that its connection is gone */
subscription *engine_sub(sim *s, const char *queue_name);

/* port_ask gives the ticket of a question; port_answered says that it won't be answered. */
mull_ticket port_ask(sim *s, ask_kind kind, claim *c, post *p);
void port_answered(sim *s, mull_ticket ticket);

/* ---- A seed (sim.c, trouble.c) --------------------------------------------------------------- */

typedef struct faults { /* chances in a thousand */
    uint32_t slow, cut, cut_at, mute, slices, nack, kept_nack, late_confirm, no_memory, refuses;
    uint32_t restart, alarm, channel_close, cancel, delete_queue, reopen, big, delay, withheld;
} faults;

/* COUNTED is what there is to happen, and is to happen in a test. */
#define COUNTED(X)                                                                                 \
    X(connections)                                                                                 \
    X(handed_out)                                                                                  \
    X(acknowledged)                                                                                \
    X(acknowledged_together)                                                                       \
    X(given_back)                                                                                  \
    X(published)                                                                                   \
    X(confirmed)                                                                                   \
    X(confirmed_together)                                                                          \
    X(nacked)                                                                                      \
    X(returned)                                                                                    \
    X(without_declarations)                                                                        \
    X(taken_away)                                                                                  \
    X(put_off)                                                                                     \
    X(come_due)                                                                                    \
    X(gone_astray)                                                                                 \
    X(cuts)                                                                                        \
    X(cut_at_a_byte)                                                                               \
    X(mutes)                                                                                       \
    X(restarts)                                                                                    \
    X(unsafe_lost)                                                                                 \
    X(alarms)                                                                                      \
    X(blocked)                                                                                     \
    X(channels_closed)                                                                             \
    X(cancelled)                                                                                   \
    X(queues_deleted)                                                                              \
    X(acks_lost)                                                                                   \
    X(lost)                                                                                        \
    X(refused)                                                                                     \
    X(failed)                                                                                      \
    X(too_big)                                                                                     \
    X(learnt)                                                                                      \
    X(no_memory)                                                                                   \
    X(closes)                                                                                      \
    X(duplicates)

typedef struct totals {
#define FIELD(name) uint64_t name;
    COUNTED(FIELD)
#undef FIELD
} totals;

struct sim {
    kernel k; /* first */
    int over; /* the engine has closed for good */
    faults faults;
    broker broker;
    mull_port port;
    mull__list wires;
    mull__net_link *link; /* the module's */
    message **messages;
    size_t message_count, message_room;
    handout **handouts; /* by their serial */
    size_t handout_room;
    uint64_t settlements;
    int declares;        /* the module may make queues */
    int64_t returned_ms; /* when a message last came back */
    int publishes_left;
    queue *deleted[16]; /* of those of delays */
    int deleted_count;
    totals *totals;
};

void trouble_begin(sim *s);
void trouble_calm(sim *s);

/* simulate runs one seed to its end. */
void simulate(sim *s, uint64_t seed, totals *sums, int tell);

#endif
