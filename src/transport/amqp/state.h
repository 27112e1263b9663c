/* state.h: the transport's parts, and how they hang together.
 *
 *   amqp.c       the slots, and the connection: up, down, blocked, closing
 *   sources.c    subscriptions: their channels, what came, what goes back
 *   settle.c     deliveries: acknowledged in groups, or after their copies
 *   posts.c      messages on their way to the broker, until each is confirmed
 *   questions.c  what is asked of the broker one after the other: declarations, bindings, depths
 *   declare.c    a queue as it shall be, or as it is found
 *   delays.c     the queues that delays are made of
 *   known.c      what is known of queues
 *
 * All of it is on the loop's thread, and none of it waits. */
#ifndef MULL__AMQP_STATE_H
#define MULL__AMQP_STATE_H

#include "base/list.h"
#include "message.h"
#include "net/link.h"
#include "options.h"
#include "session.h"

#include <uv.h>

enum {
    MULL__AMQP_POSTS = 1,  /* the channel of what is published */
    MULL__AMQP_ASKS = 2,   /* the channel of questions */
    MULL__AMQP_SOURCES = 3 /* the first channel of a subscription */
};

typedef struct mull__amqp mull__amqp;

/* ---- Questions ------------------------------------------------------------------------------- */

/* mull__amqp_reply answers a question. */
typedef struct mull__amqp_reply {
    int code;         /* 0: yes; AMQP's code of an error; -1: the connection is lost */
    const char *text; /* of an error */
    amqp_method_number_t method;
    const void *decoded;
} mull__amqp_reply;

/* mull__amqp_question is one of the queue of questions, of which one is asked at a time. */
typedef struct mull__amqp_question {
    mull__link link;
    /* ask sends a method that is answered. Not 0: nothing is to be asked any more, and the question
     * has left the queue: its owner may free it from inside. */
    int (*ask)(mull__amqp *t, struct mull__amqp_question *question);
    /* answered: not 0: it is through, and has left the queue as above; 0: it asks again. */
    int (*answered)(mull__amqp *t, struct mull__amqp_question *question,
                    const mull__amqp_reply *reply);
} mull__amqp_question;

void mull__amqp_ask(mull__amqp *t, mull__amqp_question *question);

/* mull__amqp_unask takes a question back. Where it was sent, its answer is dropped. */
void mull__amqp_unask(mull__amqp *t, mull__amqp_question *question);

/* The channel of questions: it is opened, has a method for us, the connection is lost. */
void mull__amqp_asks_open(mull__amqp *t);
void mull__amqp_asks_method(mull__amqp *t, amqp_method_number_t id, const void *decoded);
void mull__amqp_asks_lost(mull__amqp *t);

/* mull__amqp_depth_ask answers by mull_port_depth. MULL_ENOMEM. */
int mull__amqp_depth_ask(mull__amqp *t, const char *queue, mull_ticket ticket);

/* ---- Declarations ---------------------------------------------------------------------------- */

enum { MULL__AMQP_ARGUMENTS = 24 };

/* mull__amqp_declaration asks for a queue, and where that is there with other arguments, again with
 * these, as the broker names them one by one, until it is known what they are. */
typedef struct mull__amqp_declaration {
    struct mull__amqp_argument {
        char name[48], text[256]; /* its value, where it is a text */
        int64_t number;           /* else */
        int kind;                 /* as of the codec; 0: it isn't given */
        int is_learnt;            /* it is as the broker named it */
    } arguments[MULL__AMQP_ARGUMENTS];
    size_t count;
    int as_is;     /* passive, under declare=no */
    int is_read;   /* by us; else we only publish to it */
    int is_quorum; /* once it is declared */
    char differs[256];
} mull__amqp_declaration;

void mull__amqp_declare_begin(mull__amqp *t, mull__amqp_declaration *declaration, int is_read);
int mull__amqp_declare_send(mull__amqp *t, const mull__amqp_declaration *declaration,
                            const char *queue);

/* mull__amqp_declare_answered: 1: the queue may be used; 0: it is to be sent again; MULL_EREFUSED:
 * it can't be, `why` says so; MULL_EIO: the connection is lost. */
int mull__amqp_declare_answered(mull__amqp *t, mull__amqp_declaration *declaration,
                                const char *queue, const mull__amqp_reply *reply, char *why,
                                size_t why_size);

/* ---- Delays ---------------------------------------------------------------------------------- */

/* mull__amqp_delay_of says what a delay of so many milliseconds is made of. */
mull__amqp_delay mull__amqp_delay_of(int64_t delay_ms);

/* mull__amqp_delay_exchange writes the name of the exchange where a delay begins. */
void mull__amqp_delay_exchange(const mull__amqp *t, int level, char name[64]);

/* mull__amqp_delay_send sends the next declaration that delays need, up to a level. 1: none, all
 * are there. Below 0: it can't be. */
int mull__amqp_delay_send(mull__amqp *t, int level);
int mull__amqp_delay_declared(const mull__amqp *t, int level);

/* mull__amqp_bind_send binds a queue to where delays end. */
int mull__amqp_bind_send(mull__amqp *t, const char *queue);

/* ---- What is known of queues ----------------------------------------------------------------- */

/* mull__amqp_fact is what was done on this connection. */
typedef enum mull__amqp_fact {
    MULL__AMQP_BOUND = 1,  /* the queue is bound to where delays end */
    MULL__AMQP_LOOKED = 2, /* its arguments were looked at: dead letters may go there */
} mull__amqp_fact;

int mull__amqp_knows(const mull__amqp *t, const char *queue, mull__amqp_fact fact);
void mull__amqp_note(mull__amqp *t, const char *queue, mull__amqp_fact fact);
void mull__amqp_forget(mull__amqp *t, const char *queue);
void mull__amqp_forget_all(mull__amqp *t);

/* mull__amqp_unbound: none of them is bound any more, perhaps. */
void mull__amqp_unbound(mull__amqp *t);

/* ---- Posts ----------------------------------------------------------------------------------- */

typedef struct mull__amqp_delivery mull__amqp_delivery;

/* mull__amqp_post is a message on its way: it waits for its queue or for the channel, or it is sent
 * and unconfirmed. It is the copy that a settlement makes, or a message that is sent. */
typedef struct mull__amqp_post {
    mull__link link;
    mull__list *in; /* `waiting`, `unconfirmed`, `nacked`; NULL: its question is asked, say */
    mull__amqp_question question;
    int is_asking;
    uint64_t tag;
    mull__amqp_delivery *of;       /* whose settlement it belongs to; NULL: it is published */
    const mull_outgoing *outgoing; /* what is sent; NULL: a copy of `of` */
    mull_ticket ticket;            /* of what is published, whose memory follows */
    mull_outgoing own;
    mull_message message;
    int returned, declared; /* there was no queue; it was asked for, or looked at */
    int asks;               /* MULL__AMQP_POST_...: what its question is about, */
    int statement;          /* and of a level, which of t->delay_statements */
    int tries;
    char why[256];
} mull__amqp_post;

enum {
    MULL__AMQP_POST_NOTHING,
    MULL__AMQP_POST_QUEUE,
    MULL__AMQP_POST_LEVEL,
    MULL__AMQP_POST_BINDING
};

/* mull__amqp_publish_new takes a message that is published. MULL_ENOMEM. */
int mull__amqp_publish_new(mull__amqp *t, const mull_outgoing *outgoing, mull_ticket ticket);

/* mull__amqp_post_begin puts a post of a settlement on its way; it ends by mull__amqp_settle_part,
 * from inside or later. */
void mull__amqp_post_begin(mull__amqp *t, mull__amqp_post *post);

/* mull__amqp_post_drop takes a post out of all that knows it. */
void mull__amqp_post_drop(mull__amqp *t, mull__amqp_post *post);

/* mull__amqp_posts_go sends what waits. */
void mull__amqp_posts_go(mull__amqp *t);

/* mull__amqp_posts_beat sends once more what the broker didn't take a while ago. */
void mull__amqp_posts_beat(mull__amqp *t);

/* The channel of posts: it is opened, has a method for us, a message came back. */
void mull__amqp_posts_open(mull__amqp *t);
void mull__amqp_posts_method(mull__amqp *t, amqp_method_number_t id, const void *decoded);
void mull__amqp_posts_returned(mull__amqp *t, const mull__amqp_content *content);

/* mull__amqp_posts_lost ends all of them: what is published with an error, settlements as lost. */
void mull__amqp_posts_lost(mull__amqp *t, const char *why);

/* mull__amqp_posts_left is how many there are, those whose question is asked among them. */
size_t mull__amqp_posts_left(const mull__amqp *t);

/* ---- Deliveries ------------------------------------------------------------------------------ */

typedef struct mull__amqp_source mull__amqp_source;

struct mull__amqp_delivery {
    mull_delivery delivery; /* first */
    mull_message message;
    mull__link link; /* of its source's, until the broker was told what becomes of it */
    mull__amqp_source *source;
    uint64_t tag;
    int is_out;                        /* the engine has it, and it counts */
    int is_lost;                       /* its channel is gone */
    int is_over;                       /* it is in the transport's list instead */
    int is_released;                   /* by the engine; the broker may still count it as ours */
    int told;                          /* the broker is to be told: MULL__AMQP_ACK or _NACK */
    const mull_settlement *settlement; /* under way */
    mull_ticket ticket;
    mull__amqp_post *posts; /* of it; `left` of them are on their way */
    size_t post_count, left;
    int status; /* the worst of them */
    char why[256];
    char *body; /* in memory of its own, `room` bytes */
    size_t room;
    amqp_bytes_t properties; /* as they came; in the memory behind, as all that follows */
    int unreadable;          /* not even the codec could read them */
};

enum { MULL__AMQP_ACK = 1, MULL__AMQP_NACK };

void mull__amqp_settle(mull__amqp *t, mull__amqp_delivery *d, const mull_settlement *settlement,
                       mull_ticket ticket);

/* mull__amqp_settle_part: one of its posts has ended. */
void mull__amqp_settle_part(mull__amqp *t, mull__amqp_delivery *d, int status, const char *why);

/* mull__amqp_settle_lost answers a settlement that is under way: its claim is gone. */
void mull__amqp_settle_lost(mull__amqp *t, mull__amqp_delivery *d, const char *why);

/* mull__amqp_tell writes what the broker is to be told of a source's deliveries. */
void mull__amqp_tell(mull__amqp *t, mull__amqp_source *source);

/* mull__amqp_read_ms is how long after the last acknowledgement a channel may close: a quorum queue
 * loses those that it hasn't taken by then, and takes so many at a time. */
uint64_t mull__amqp_read_ms(const mull__amqp *t);

void mull__amqp_delivery_free(mull__amqp *t, mull__amqp_delivery *d);

/* mull__amqp_delivery_over: the broker was told, or has taken it back. It is freed, if the engine
 * has released it; else that may be at it still, until it does, or all ends. */
void mull__amqp_delivery_over(mull__amqp *t, mull__amqp_delivery *d);

/* ---- Subscriptions --------------------------------------------------------------------------- */

typedef enum mull__amqp_source_state {
    MULL__AMQP_SOURCE_DOWN,      /* no connection, or until `again_ms` */
    MULL__AMQP_SOURCE_DECLARING, /* its question is asked */
    MULL__AMQP_SOURCE_OPENING,   /* its channel is, and how many it may have */
    MULL__AMQP_SOURCE_IDLE,      /* nothing is read */
    MULL__AMQP_SOURCE_READING,
    MULL__AMQP_SOURCE_CANCELLING, /* then IDLE, and what is in stock has gone back */
    MULL__AMQP_SOURCE_LEAVING     /* it ends, its channel closes */
} mull__amqp_source_state;

struct mull__amqp_source {
    mull__link link;
    mull__amqp_question question;
    mull__amqp_declaration declaration;
    mull_ticket consumer;
    mull__amqp_source_state state;
    uint16_t channel;
    uint32_t most, credit, out, prefetch;
    uint32_t readings; /* so far */
    int is_consuming;  /* the broker has said so of the last one */
    char tag[24];      /* of the last one */
    int is_ending;
    int is_closing;             /* its channel; what comes from there means nothing */
    int has_told;               /* deliveries of which the broker is to be told */
    uint64_t again_ms;          /* when it is tried again, of uv_now */
    mull__list deliveries;      /* in the order of their tags */
    size_t in_stock;            /* of these, the last ones, which the engine hasn't, */
    mull__amqp_delivery *stock; /* and the first of them; NULL: there is none */
    mull__amqp_delivery *arriving;
    char *queue;
};

int mull__amqp_source_new(mull__amqp *t, mull_ticket consumer, const mull_source *source,
                          mull__amqp_source **out);
void mull__amqp_source_credit(mull__amqp *t, mull__amqp_source *source, uint32_t credit);
void mull__amqp_source_end(mull__amqp *t, mull__amqp_source *source);
void mull__amqp_sources_free(mull__amqp *t);

/* mull__amqp_sources_up begins with each that isn't read and is due, once we are connected. */
void mull__amqp_sources_up(mull__amqp *t);

/* mull__amqp_sources_lost: the connection is. What each had is told to be lost. */
void mull__amqp_sources_lost(mull__amqp *t, const char *why);

/* mull__amqp_sources_stop takes no more of any, and gives back what is in stock. */
void mull__amqp_sources_stop(mull__amqp *t);

/* mull__amqp_sources_stopped says whether that is done. */
int mull__amqp_sources_stopped(mull__amqp *t);

/* mull__amqp_sources_serve hands out what is in stock; outside of slots. */
void mull__amqp_sources_serve(mull__amqp *t);

mull__amqp_source *mull__amqp_source_of(mull__amqp *t, uint16_t channel);
void mull__amqp_source_method(mull__amqp *t, mull__amqp_source *source, amqp_method_number_t id,
                              const void *decoded);
void mull__amqp_arriving(mull__amqp *t, mull__amqp_source *source, mull__amqp_content *content);
int mull__amqp_arriving_more(mull__amqp *t, mull__amqp_source *source, mull__amqp_content *content,
                             size_t wanted);
void mull__amqp_arrived(mull__amqp *t, mull__amqp_source *source,
                        const mull__amqp_content *content);

/* ---- The transport --------------------------------------------------------------------------- */

struct mull__amqp {
    mull_port *port;
    mull_allocator allocator;
    mull__amqp_options options;
    mull__amqp_login login;
    mull__amqp_session session;
    mull__net_link *link;
    mull__tls *tls;  /* NULL: plain */
    uv_timer_t beat; /* once in a while: heartbeats, what is tried again, the end */
    int beats;
    mull_timer *turn; /* a later turn, outside of slots */
    amqp_pool_t pool; /* of properties that are written */

    int is_open;    /* the session is, and so are both channels below */
    uint64_t up_ms; /* of uv_now: when the connection was */
    int posts_open, asks_open;
    char blocked[160]; /* why the broker takes nothing; "": it does */
    char down[400];    /* why it is down */

    mull__list questions;       /* that wait */
    mull__amqp_question *asked; /* NULL: none, or it was taken back */
    int is_asking;              /* an answer is due, or is being looked at */

    uint64_t next_tag;
    uint64_t max_message; /* bytes of a body that the broker takes */
    mull__list waiting, unconfirmed, nacked;
    uint64_t nacked_ms;  /* of uv_now: when those were last sent again */
    size_t asking_posts; /* whose question is asked */
    size_t suspects;     /* posts to be sent alone, since one of them closed the channel */

    int delay_statements; /* that were made on this connection */
    struct mull__amqp_queue *known;
    mull__amqp_declaration look; /* of the post whose question is asked */

    mull__list sources;
    int has_told;                     /* a source has */
    mull__list over;                  /* deliveries that are over, and not released */
    uint64_t told_since_ms;           /* of uv_now: a second begins */
    uint32_t told_count, told_before; /* what was told in it, and in the one before */
    uint64_t acknowledgements;        /* methods by which all was told so far */

    int closing;
    int64_t drain_ms;
    uint64_t close_ms, told_ms; /* of uv_now: when closing began, when the broker was last told */
};

/* mull__amqp_is_up: connected, and it takes what is published. */
int mull__amqp_is_up(const mull__amqp *t);

/* mull__amqp_flush writes what is to be told, and sends all. */
void mull__amqp_flush(mull__amqp *t);

/* mull__amqp_wake asks for a turn. */
void mull__amqp_wake(mull__amqp *t);

/* mull__amqp_now is the loop's time, in milliseconds. */
static inline uint64_t mull__amqp_now(const mull__amqp *t)
{
    return uv_now(mull_port_loop(t->port));
}

/* mull__amqp_log writes a line of log. */
__attribute__((format(printf, 3, 4))) void mull__amqp_log(mull__amqp *t, mull_level level,
                                                          const char *format, ...);

#endif
