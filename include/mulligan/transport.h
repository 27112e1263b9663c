/* mulligan/transport.h: what the writer of a transport needs, besides mulligan.h.
 *
 *        engine                        port                       transport
 *   ops->subscribe, credit  ---------------------------------->  takes from the broker
 *                           <--  mull_port_delivered  ---------  a message was handed out
 *   ops->settle             ---------------------------------->  ends it at the broker
 *                           <--  mull_port_settled  -----------  it is safe, or it is not
 *   ops->release            ---------------------------------->  frees its memory
 *
 * All of it happens on the thread of the engine's loop. A transport may have threads of its own,
 * but calls mull_port_... from the loop's thread only, never from inside a call of its ops, except
 * mull_port_log, _now, _wall, _allocator, _loop, _after, _cancel and _working, which may be called
 * there as well. A transport copies `mulligan-` headers and understands none of them.
 *
 * To write one:
 *
 * 1. Fill in a mull_transport_ops, all but `hold` and `look`, and give it to mull_engine_scheme.
 *    From then on mull_engine_transport knows its URLs.
 * 2. Say in `open` no more than is true. What a transport can't do, the policy's fallback sees to;
 *    what it wrongly says it can, loses messages.
 * 3. Answer on a later turn: keep what is to be answered in a list, wake the loop (uv_async_send,
 *    the broker's socket), and call mull_port_... from there. Around that, mull_port_working +1
 *    and -1, so that a test's clock waits for it.
 * 4. Of two copies rather one too many than one too few: in `settle`, what takes a message's place
 *    (a redelivery, a dead letter, what its handler sent) is safe before the message is gone. Where
 *    any of it fails, answer an error with nothing changed; the engine tries again.
 * 5. A delivery is yours. Settled, its message must still be readable, until `release`: a handler
 *    that was cut off may be at it.
 *
 * examples/board/board.c is one in full, and docs/embedding.md leads through it.
 */
#ifndef MULLIGAN_TRANSPORT_H
#define MULLIGAN_TRANSPORT_H

#include "mulligan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* mull_port is the engine, as a transport sees it; one for each transport. */
typedef struct mull_port mull_port;

/* mull_subscription is the engine's: one for each consumer. */
typedef struct mull_subscription mull_subscription;

/* MULL_BODY_MISSING, as the `body_size` of a message that is handed out: its body is lost. No
 * handler sees the message; it becomes a dead letter that says so. */
#define MULL_BODY_MISSING ((size_t)-1)

/* mull_delivery is the transport's memory, a message handed out. Usually the first member of a
 * larger struct. All of it stays as it is until `release`. */
typedef struct mull_delivery {
    mull_message message; /* its `deliveries` set; headers as they came, `mulligan-` ones too */
    mull_subscription *subscription; /* as `subscribe` got it */
    void *runtime;                   /* the engine's; NULL at first */
} mull_delivery;

/* mull_abilities is what a transport can do; the policy's fallback reads it. */
typedef struct mull_abilities {
    int can_retry;            /* a message may be held while its handler runs again */
    int can_delay;            /* delayed delivery */
    int counts_deliveries;    /* more than one hand-out of a copy means that an owner died */
    int64_t longest_delay_ms; /* 0: any; a longer one is made of several */
    int64_t claim_timeout_ms; /* the broker takes a message back after this; 0: never */
    int can_hold;             /* ... unless `hold` is called within it */
    int counts_at_once;       /* all depths that are asked for in one turn are of one moment */
} mull_abilities;

/* mull_settle_kind is how a delivery ends. */
typedef enum mull_settle_kind {
    MULL_SETTLE_ACK,         /* the handler succeeded: gone, and `sends` are out */
    MULL_SETTLE_REDELIVER,   /* back to its own queue, due at `due_ms`, with `headers` */
    MULL_SETTLE_DEAD_LETTER, /* a copy with `headers` to `queue`, then acknowledged */
    MULL_SETTLE_DISCARD,     /* gone */
    MULL_SETTLE_GIVE_BACK    /* to its queue as it was, at its old place, ready at once, with
                                `headers`; this hand-out isn't counted */
} mull_settle_kind;

/* mull_outgoing is a message to be published: due at a moment of the wall clock (`due_ms`), 0 at
 * once. */
typedef struct mull_outgoing {
    mull_message message;
    int64_t due_ms;
} mull_outgoing;

/* mull_settlement says how a delivery ends at the broker, by its `kind`. All it points to is the
 * engine's and lives until mull_port_settled. */
typedef struct mull_settlement {
    mull_settle_kind kind;
    int64_t due_ms;             /* wall clock; 0: at once */
    const char *queue;          /* where it goes; its own for redeliver and give back */
    const mull_header *headers; /* `header_count`, all, finished: they replace the message's */
    size_t header_count;
    const mull_outgoing *sends; /* what the handler sent; with ACK only */
    size_t send_count;          /* of these */
    const char *id;             /* the message's id, given by the engine where it had none */
    const char *error_type;     /* of a dead letter, for people who look: else NULL */
    const char *reason;         /* the word for the verdict's; as error_type */
    const char *rule;           /* "policy.lua:12"; as error_type */
} mull_settlement;

/* The version of mull_transport_ops, and of all structs here, that this header has. */
enum { MULL_TRANSPORT_VERSION = 1 };

/* mull_transport_ops is a transport: one of these and nothing else global. `self` is what open
 * gave. Every slot is called on the loop's thread. */
typedef struct mull_transport_ops {
    int version;        /* MULL_TRANSPORT_VERSION */
    const char *scheme; /* of its URLs, without the colon: a letter of a-z, then these, 0-9, '+',
                           '-' and '.'; at most 31 in all */

    /* open makes ready what `url` names (scheme and all) and says what it can, in `abilities`, all
     * of which are 0 at first. On failure: a negative code, nothing left behind, and in `why` what
     * is wrong and what would be right. What was given to mull_engine_scheme is mull_port_data. */
    int (*open)(void **self, mull_port *port, const char *url, mull_abilities *abilities, char *why,
                size_t why_size);

    /* subscribe begins to read a queue, with a credit of 0. A queue that isn't there is made. */
    int (*subscribe)(void *self, mull_subscription *subscription, const char *queue);

    /* credit: how many deliveries of a subscription may be out, those settled not counted. It is
     * absolute; 0 takes nothing more. What is on its way already may still be delivered. */
    void (*credit)(void *self, mull_subscription *subscription, uint32_t deliveries);

    /* publish puts a message on message->queue and answers mull_port_published with `ticket` once
     * it is safe. The message is copied before this returns. Non-zero: refused, no answer. */
    int (*publish)(void *self, const mull_outgoing *message, void *ticket);

    /* settle ends a delivery at the broker and answers mull_port_settled, always and once: 0 when
     * safe; MULL_ELOST where the claim is gone, nothing changed; else an error, nothing changed,
     * and it may be settled again. */
    void (*settle)(void *self, mull_delivery *delivery, const mull_settlement *settlement);

    /* hold keeps a claim alive; called well within claim_timeout_ms where can_hold says so. NULL:
     * it can't or needn't. */
    void (*hold)(void *self, mull_delivery *delivery);

    /* depth answers mull_port_depth with `ticket`. Non-zero: refused, no answer. Where it can't be
     * had for a minute, mull_stop_when_empty ends with an error, but while the transport is down.
     */
    int (*depth)(void *self, const char *queue, void *ticket);

    /* release frees a delivery's memory. Called once, after it was settled or lost, or after close
     * began; never while a settle of it is unanswered. */
    void (*release)(void *self, mull_delivery *delivery);

    /* close ends what is under way (settles and publishes that were taken are carried out and
     * answered), delivers nothing more, gives back nothing (the engine did), and answers
     * mull_port_closed on a later turn; `self` is gone then. Deliveries not released by then are
     * not touched again by the engine. */
    void (*close)(void *self);

    /* look says what open of this URL would say of abilities, and of the URL, but opens nothing and
     * touches nothing. NULL: that isn't known beforehand. */
    int (*look)(const char *url, mull_abilities *abilities, char *why, size_t why_size);
} mull_transport_ops;

/* mull_engine_scheme makes a transport of yours known to an engine: mull_engine_transport then
 * takes URLs that begin with its scheme and a colon. `ops` and the scheme's text are borrowed until
 * the engine is closed; `data` is yours, mull_port_data gives it to each transport of that scheme.
 * It goes before a module of that scheme. Several engines may have the same ops, or different ones
 * for one scheme. On the loop's thread.
 * MULL_EINVAL: another version, no scheme, one that is built in (or will be: amqp, redis, nats) or
 * taken, or a slot is missing; `problem` says which. MULL_ENOMEM; MULL_ESTATE: it is closing. */
MULL_API int mull_engine_scheme(mull_engine *engine, const mull_transport_ops *ops, void *data);

/* ---- What a transport calls ------------------------------------------------------------------ */

/* mull_port_delivered hands a delivery to the engine, which settles and releases it. Here and
 * below: what a transport may not do (deliver what isn't new, answer what it wasn't asked, close
 * unasked) is told to the log, as an error, where it can be seen, and nothing else comes of it. */
MULL_API void mull_port_delivered(mull_port *port, mull_delivery *delivery);

/* mull_port_settled answers settle. */
MULL_API void mull_port_settled(mull_port *port, mull_delivery *delivery, int status);

/* mull_port_published answers publish. A ticket, that of a depth as well, is freed by its answer: a
 * second one, or one of the other kind, is not found out. */
MULL_API void mull_port_published(mull_port *port, void *ticket, int status);

/* mull_port_depth answers depth. */
MULL_API void mull_port_depth(mull_port *port, void *ticket, int status, const mull_depth *depth);

/* mull_port_lost says that the claim on a delivery is gone: the engine settles it no more (a settle
 * under way answers MULL_ELOST) and releases it when its handler has ended. */
MULL_API void mull_port_lost(mull_port *port, mull_delivery *delivery);

/* mull_health is how a transport is. */
typedef enum mull_health {
    MULL_DOWN,  /* it doesn't work now, and tries again by itself */
    MULL_UP,    /* it works, as one that was just opened does */
    MULL_BROKEN /* nothing will help until a person acts */
} mull_health;

/* mull_port_state says how the transport is and, where it isn't up, why: what happened and what
 * would be right. BROKEN is for good: the engine stops by itself. What it still asks of this
 * transport is answered all the same, with an error, and not asked again; and close ends it. */
MULL_API void mull_port_state(mull_port *port, mull_health health, const char *why);

/* mull_port_closed answers close. */
MULL_API void mull_port_closed(mull_port *port);

/* mull_timer is the engine's: one for each moment that a transport waits for. */
typedef struct mull_timer mull_timer;

/* mull_port_after calls `fire` on the loop's thread, `delay_ms` from now on the engine's monotonic
 * clock, unless it is cancelled before. A timer that fired is gone. NULL: out of memory. */
MULL_API mull_timer *mull_port_after(mull_port *port, int64_t delay_ms, void (*fire)(void *data),
                                     void *data);

/* mull_port_cancel: the timer is gone, and won't fire. NULL is fine. */
MULL_API void mull_port_cancel(mull_port *port, mull_timer *timer);

/* mull_port_timer_new makes a timer that isn't set, and that may be set any number of times: what
 * must not fail for want of memory later, such as trying again. NULL: out of memory. */
MULL_API mull_timer *mull_port_timer_new(mull_port *port, void (*fire)(void *data), void *data);

/* mull_port_timer_set sets it, anew where it was set, `delay_ms` from now. MULL_NEVER: unset it. */
MULL_API void mull_port_timer_set(mull_port *port, mull_timer *timer, int64_t delay_ms);

/* mull_port_timer_free: before mull_port_closed. NULL is fine. */
MULL_API void mull_port_timer_free(mull_port *port, mull_timer *timer);

/* mull_port_working: +1 when something begins whose end a test's clock must wait for, -1 after. */
MULL_API void mull_port_working(mull_port *port, int change);

/* mull_port_now and _wall read the engine's clocks, in milliseconds. Any thread. */
MULL_API int64_t mull_port_now(const mull_port *port);
MULL_API int64_t mull_port_wall(const mull_port *port);

/* mull_port_data is what was given to mull_engine_scheme; NULL for a transport that is built in. */
MULL_API void *mull_port_data(const mull_port *port);

/* mull_port_loop is the engine's loop: a transport's handles are closed when it answers close. */
MULL_API struct uv_loop_s *mull_port_loop(mull_port *port);

/* mull_port_allocator is the engine's allocator, for all of the transport's memory. Any thread. */
MULL_API const mull_allocator *mull_port_allocator(const mull_port *port);

/* mull_port_log writes a line of log about this transport. Any thread. */
MULL_API void mull_port_log(mull_port *port, mull_level level, const char *text);

#ifdef __cplusplus
}
#endif

#endif
