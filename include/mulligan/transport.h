/* mulligan/transport.h: what the writer of a transport needs, besides mulligan.h.
 *
 *        engine                        port                       transport
 *   ops->open, subscribe    ---------------------------------->  connects, now or later
 *                           <--  mull_port_state, _source  -----  it is up; the queue is read
 *   ops->credit             ---------------------------------->  takes from the broker
 *                           <--  mull_port_delivered  ----------  a message was handed out
 *   ops->settle             ---------------------------------->  ends it at the broker
 *                           <--  mull_port_answer  -------------  it is safe, or it is not
 *   ops->release            ---------------------------------->  frees its memory
 *
 * All of it happens on the thread of the engine's loop. A transport may have threads of its own,
 * but calls mull_port_... from the loop's thread only. A slot may answer at once: from inside
 *
 *   open                          _state
 *   subscribe                     _state, _source
 *   publish, settle               _answer, of the ticket that it was given: the engine keeps that,
 *                                 `why` too, and acts on its next turn
 *   depth                         _depth, in the same way
 *   unsubscribe                   _source, with MULL_SOURCE_ENDED
 *   close                         _closed
 *   any                           _log, _now, _wall, _data, _allocator, _loop, _working, timers
 *
 * and nothing else, least of all _delivered and _lost. A transport carries `mulligan-` headers and
 * understands none of them.
 *
 * While one of _delivered, _lost, _answer or _depth runs outside of a slot, the engine may call
 * `settle`, `release` and other ops, but neither `unsubscribe` nor `close`: walk no list of
 * deliveries across it, and touch no delivery after it was settled, lost or handed over. _state,
 * _source and _closed call none.
 *
 * A connection is cut: DOWN, with the reason; an error to each publish and depth; MULL_ELOST to
 * each settlement under way, which needs no _lost; _lost for the other deliveries; WAITING for each
 * subscription. Later UP, and READY for each.
 *
 * To write one:
 *
 * 1. Fill in a mull_transport_ops and give it to mull_engine_scheme. From then on
 *    mull_engine_transport knows its URLs. Only `depth`, `hold` and `flush` may be NULL.
 * 2. Promise in `look` no more than always holds. What a transport can't do, the policy's fallback
 *    sees to; what it wrongly promises loses messages.
 * 3. Begin DOWN, and say when you are UP. What isn't there yet is no error: try again by yourself.
 * 4. Answer in the slot where you can: what is done at once, or can't be done now. Hand out from
 *    what the loop calls: a timer of the port, set to 0; or a uv_async_t, or the broker's socket. A
 *    test's clock waits for a timer by itself, for the others between mull_port_working +1 and -1.
 * 5. Of two copies rather one too many than one too few: in `settle`, what takes a message's place
 *    (a redelivery, a dead letter, what its handler sent) is safe before the message is gone.
 * 6. A delivery is yours. Settled, its message must still be readable, until `release`: a handler
 *    that was cut off may be at it.
 *
 * examples/array/array.c is the smallest, examples/board/board.c one with threads, delays and
 * depths; docs/embedding.md leads through both. Whether yours keeps to all this, the suite of
 * mulligan/conformance.h says.
 */
#ifndef MULLIGAN_TRANSPORT_H
#define MULLIGAN_TRANSPORT_H

#include "mulligan.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of mull_transport_ops that this header has. The structs here begin with their `size`,
 * and grow at their end. */
enum { MULL_TRANSPORT_VERSION = 2 };

/* mull_port is the engine, as a transport sees it; one for each transport. */
typedef struct mull_port mull_port;

/* mull_ticket numbers what the engine asked, and what it was handed: consumers, deliveries,
 * settlements, messages that are published, depths. No number is given twice in an engine, so an
 * answer that is double, late or made up is told to the log, and nothing else comes of it. */
typedef uint64_t mull_ticket;

/* ---- What a transport promises --------------------------------------------------------------- */

/* mull_counting: what a message's `deliveries` counts. */
typedef enum mull_counting {
    MULL_COUNTS_NOTHING,  /* each message has `deliveries` 1, whatever the transport leaves there */
    MULL_COUNTS_HANDOUTS, /* all of them: lost connections, what was given back and what nobody
                             began are among them. Only max_deliveries goes by it */
    MULL_COUNTS_DEATHS    /* each further hand-out is an owner that died: a failed call, and its
                             message is called alone from then on */
} mull_counting;

/* mull_depth_kind: how far the numbers of a mull_depth can be relied on. */
typedef enum mull_depth_kind {
    MULL_DEPTH_NONE,  /* unknown */
    MULL_DEPTH_ROUGH, /* late, or some of them unknown */
    MULL_DEPTH_EXACT  /* all that is there, at one moment */
} mull_depth_kind;

/* mull_abilities is what a transport can do with a queue; the policy's fallback reads it. */
typedef struct mull_abilities {
    size_t size;
    int can_retry;            /* a message may be held while its handler runs again */
    int can_delay;            /* delayed delivery, and what waits is as safe as what is ready */
    int can_hold;             /* `hold` keeps claims beyond claim_timeout_ms */
    int can_note;             /* MULL_SETTLE_NOTE */
    int settles_whole;        /* copy, sends and end of a settlement are one transaction */
    int counts_at_once;       /* all depths that are asked for in one turn are of one moment */
    mull_counting deliveries; /* what the count of them counts */
    mull_depth_kind depth;    /* how exact depths are */
    int64_t delay_step_ms; /* a delay is rounded up to a multiple of it, where each takes a queue,
                              say; 0, 1: it is exact */
    int64_t longest_delay_ms; /* 0: any; a longer one is made of several */
    int64_t claim_timeout_ms; /* the broker takes a message back after this, from the moment when it
                                 left the queue, be it waiting for a slot. It may take all of a
                                 subscription with it. 0: never */
} mull_abilities;

/* ---- Messages on their way ------------------------------------------------------------------- */

/* MULL_BODY_MISSING, as the `body_size` of a message that is handed out: its body is lost. No
 * handler sees the message; it becomes a dead letter that says so. */
#define MULL_BODY_MISSING ((size_t)-1)

/* mull_source is a queue that a consumer reads. */
typedef struct mull_source {
    size_t size;
    const char *queue; /* borrowed for the call of `subscribe` */
    uint32_t most;     /* no credit will be larger, but for deliveries that were refused with
                          MULL_EREFUSED and stay out */
    size_t max_body;   /* a larger message is dead-lettered unseen: its body needn't be read, only
                          its `body_size` said */
} mull_source;

/* mull_delivery is the transport's memory, a message handed out. Usually the first member of a
 * larger struct, zero at first but for `size` and `message`. All of it stays as it is until
 * `release`. */
typedef struct mull_delivery {
    size_t size;
    const mull_message *message; /* its `deliveries` 1 or more; not looked at where nothing is
                                    counted. Headers as they came, ours too */
    mull_ticket ticket;          /* the engine's: mull_port_delivered sets it */
    mull_ticket consumer;        /* the engine's, and so is `runtime` */
    void *runtime;
    const char *unreadable; /* why the message can't be understood; NULL: it can be. No handler
                               sees it; it becomes a dead letter that says so */
} mull_delivery;

/* mull_settle_kind is what becomes of a delivery. */
typedef enum mull_settle_kind {
    MULL_SETTLE_ACK,         /* the handler succeeded: gone, and `sends` are out */
    MULL_SETTLE_REDELIVER,   /* back to its own queue, due at `due_ms`, with our headers */
    MULL_SETTLE_DEAD_LETTER, /* a copy to `queue`, which is made where it isn't there, then gone */
    MULL_SETTLE_DISCARD,     /* gone */
    MULL_SETTLE_GIVE_BACK, /* to its queue, due at `due_ms`. Due at once and as it came, it has its
                              old place again where the broker can do that. One that counts deaths
                              doesn't count this hand-out */
    MULL_SETTLE_NOTE       /* our headers are safe, and it stays claimed and handed out: asked
                              only where can_note says so, and settled once more later */
} mull_settle_kind;

/* mull_outgoing is a message to be published: due at a moment of the wall clock (`due_ms`), 0 at
 * once. */
typedef struct mull_outgoing {
    size_t size;
    const mull_message *message;
    int64_t due_ms;
} mull_outgoing;

/* mull_settlement says what becomes of a delivery, by its `kind`. All it points to is the engine's
 * and lives until the answer. Of a copy's headers the transport carries all that the message came
 * with, and in place of those that begin with `mulligan-` has `ours`, which may also have others:
 * these replace what came with their names. mull_settled_headers puts all of them together. A
 * broker's own properties pass as well. */
typedef struct mull_settlement {
    size_t size;
    mull_settle_kind kind;
    int64_t due_ms;          /* wall clock; 0: at once. Never early */
    const char *queue;       /* where it goes; its own for redeliver and give back */
    int as_it_came;          /* all its headers stay, those with `mulligan-` too: `ours` is empty */
    const mull_header *ours; /* `our_count`, finished */
    size_t our_count;
    const mull_outgoing *sends; /* what the handler sent; with ACK only */
    size_t send_count;          /* of these */
    const char *id;             /* the message's id, given by the engine where it had none */
    const char *error_type;     /* of a dead letter, for people who look: else NULL */
    const char *reason;         /* the word for the verdict's; as error_type */
    const char *rule;           /* "policy.lua:12"; as error_type */
    const char *consumer;       /* as error_type */
} mull_settlement;

/* mull_is_own_header says whether a header's name begins with `mulligan-`. Any thread. */
static inline int mull_is_own_header(const char *name)
{
    return name && strncmp(name, "mulligan-", sizeof "mulligan-" - 1) == 0;
}

/* mull__is_replaced: `ours` has a header of that name, behind those that begin with `mulligan-`. */
static inline int mull__is_replaced(const char *name, const mull_settlement *settlement)
{
    for (size_t i = settlement->our_count; i-- > 0;) {
        if (mull_is_own_header(settlement->ours[i].name))
            return 0;
        if (strcmp(settlement->ours[i].name, name) == 0)
            return 1;
    }
    return 0;
}

/* mull_settled_headers writes the headers of a settled message's copy to `out`, which has room for
 * message->header_count + settlement->our_count, and gives how many there are. Their strings are
 * borrowed from both. Any thread. */
static inline size_t mull_settled_headers(mull_header *out, const mull_message *message,
                                          const mull_settlement *settlement)
{
    size_t count = 0;
    if (!out || !message || !settlement)
        return 0;
    for (size_t i = 0; i < message->header_count; i++)
        if (settlement->as_it_came || (!mull_is_own_header(message->headers[i].name) &&
                                       !mull__is_replaced(message->headers[i].name, settlement)))
            out[count++] = message->headers[i];
    for (size_t i = 0; i < settlement->our_count; i++)
        out[count++] = settlement->ours[i];
    return count;
}

/* mull_message_size is how many bytes mull_message_copy needs for a message, or for the copy that a
 * settlement makes of it (NULL: none does). Any thread, as the next. */
static inline size_t mull_message_size(const mull_message *message,
                                       const mull_settlement *settlement)
{
    size_t size = 1;
    if (!message)
        return 0;
    const char *const texts[] = {
        message->id || !settlement ? message->id : settlement->id, message->type, message->key,
        settlement && settlement->queue ? settlement->queue : message->queue};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        size += texts[i] ? strlen(texts[i]) + 1 : 0;
    for (size_t i = 0; i < message->header_count; i++)
        size += sizeof *message->headers + strlen(message->headers[i].name) +
                strlen(message->headers[i].value) + 2;
    for (size_t i = 0; settlement && i < settlement->our_count; i++)
        size += sizeof *settlement->ours + strlen(settlement->ours[i].name) +
                strlen(settlement->ours[i].value) + 2;
    return size + message->body_size;
}

#ifdef __cplusplus
#define MULL__BYTES(pointer) static_cast<char *>(static_cast<void *>(pointer))
#else
#define MULL__BYTES(pointer) ((char *)(pointer))
#endif

/* mull__text_place copies a text to `*at`, and moves that behind it; NULL stays NULL. */
static inline const char *mull__text_place(char **at, const char *text)
{
    char *copy = *at;
    if (!text)
        return text;
    *at += strlen(text) + 1;
    return strcpy(copy, text);
}

/* mull_message_copy copies a message with all that it points to into `memory`: as it is, or as a
 * settlement makes it: with its headers, on its queue, with its id where there was none. A NUL
 * follows the body. What counts calls and deliveries is 0: one that counts sets `deliveries`
 * before it hands the message out. */
static inline void mull_message_copy(mull_message *copy, const mull_message *message,
                                     const mull_settlement *settlement, mull_header *memory)
{
    if (!copy || !message || !memory)
        return;
    *copy = *message;
    copy->attempt = copy->redeliveries = copy->calls = copy->deliveries = 0;
    copy->headers = memory;
    if (settlement)
        copy->header_count = mull_settled_headers(memory, message, settlement);
    else if (message->header_count > 0)
        memcpy(memory, message->headers, message->header_count * sizeof *memory);
    char *at = MULL__BYTES(memory + copy->header_count);
    for (size_t i = 0; i < copy->header_count; i++) {
        memory[i].name = mull__text_place(&at, memory[i].name);
        memory[i].value = mull__text_place(&at, memory[i].value);
    }
    copy->id = mull__text_place(&at, message->id || !settlement ? message->id : settlement->id);
    copy->type = mull__text_place(&at, message->type);
    copy->key = mull__text_place(&at, message->key);
    copy->queue =
        mull__text_place(&at, settlement && settlement->queue ? settlement->queue : message->queue);
    copy->body = at;
    if (message->body_size > 0)
        memcpy(at, message->body, message->body_size);
    at[message->body_size] = 0;
}

/* ---- A transport ----------------------------------------------------------------------------- */

/* mull_transport_ops is a transport: one of these and nothing else global. `self` is what open
 * gave, `subscription` what subscribe gave. Every slot but `look` is called on the loop's thread.
 * Where one can fail at once it returns a negative code, MULL_E..., and nothing was done; it then
 * answers nothing. All else is answered, from inside the slot or later. An answer's `why` is a text
 * for people, without secrets; NULL. */
typedef struct mull_transport_ops {
    size_t size;        /* sizeof(mull_transport_ops) */
    int version;        /* MULL_TRANSPORT_VERSION */
    const char *scheme; /* of its URLs, without the colon: a letter of a-z, then these, 0-9, '+',
                           '-' and '.'; at most 31 in all */

    /* look says what is promised of a queue of this URL (NULL: of any), and whether the URL can be
     * one. It opens nothing and touches nothing. Any thread. `floor` is all 0 but for its size. */
    int (*look)(const char *url, const char *queue, mull_abilities *floor, char *why,
                size_t why_size);

    /* open begins with what `url` names (scheme and all). Failing here is for what trying again
     * won't mend; then nothing is left behind, and `why` says what is wrong and what would be
     * right. What was given to mull_engine_scheme is mull_port_data. The transport is DOWN until
     * mull_port_state says otherwise. */
    int (*open)(void **self, mull_port *port, const char *url, char *why, size_t why_size);

    /* subscribe begins to read a queue, with a credit of 0, and tells by mull_port_source how that
     * goes; whether the transport is up or not. A queue that isn't there is made. Several may read
     * one queue: each message goes to one of them. */
    int (*subscribe)(void *self, mull_ticket consumer, const mull_source *source,
                     void **subscription);

    /* credit: how many deliveries of a subscription may be out, those settled not counted. It is
     * absolute, holds over DOWN and WAITING, and a lost delivery counts until `release`. Of 0 takes
     * nothing more, and what the transport holds in stock goes back within a second. What is on its
     * way already may still be delivered. */
    void (*credit)(void *self, void *subscription, uint32_t deliveries);

    /* unsubscribe ends a subscription, all deliveries of which were released. Nothing is
     * delivered for it from now on. Answered by MULL_SOURCE_ENDED; the subscription is the
     * transport's own again from this call on. */
    void (*unsubscribe)(void *self, void *subscription);

    /* publish puts a message on message->queue and answers mull_port_answer with `ticket` once it
     * is safe. The message is copied before this returns, and may be handed out before the answer.
     * A queue that isn't there is made, or it is MULL_EREFUSED. Answered with an error, it may be
     * on the queue all the same. MULL_EDOWN: it is DOWN, and to try now wouldn't bring it up; a
     * message is never kept until it is UP. */
    int (*publish)(void *self, const mull_outgoing *outgoing, mull_ticket ticket);

    /* settle ends a delivery at the broker and answers mull_port_answer with `ticket`, once:
     * 0: safe; of what makes no copy: the broker was told, and hands it out again where the
     * connection broke before it read that. MULL_ELOST: the claim is gone, and the message comes
     * again. MULL_EREFUSED: it can never be so (too big, no such queue); it is still claimed, and
     * will be settled another way. Any other error: still claimed; the same settlement is asked
     * again, with another ticket, and goes on where it stopped. After each error a copy, or some of
     * `sends`, may be out: rather one too many than one too few. */
    void (*settle)(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                   mull_ticket ticket);

    /* depth answers mull_port_depth with `ticket`. MULL_EDOWN as of publish. NULL: none is known,
     * whatever `look` promises. */
    int (*depth)(void *self, const char *queue, mull_ticket ticket);

    /* release frees a delivery's memory. Called once, after it was settled or lost, or after close
     * began; never while a settlement of it is unanswered. One that is neither settled nor lost
     * stays claimed until the transport closes. */
    void (*release)(void *self, mull_delivery *delivery);

    /* close ends what is under way: settlements and messages that were taken are carried out and
     * answered, for at most `drain_ms`. It delivers nothing more, and answers mull_port_closed;
     * `self` is gone then, and all deliveries that weren't released. Claims that are left go back:
     * uncounted where the transport can do that, since nobody died, else as if their owner had.
     * Right after this call the engine releases every delivery, but one whose settlement is
     * unanswered: that once it is answered. After mull_port_closed it touches none, so that a
     * `close` that calls it frees them itself. No handler is at work by then. */
    void (*close)(void *self, int64_t drain_ms);

    /* hold keeps all claims of a subscription alive; called well within claim_timeout_ms where
     * can_hold says so. NULL: it can't or needn't. */
    void (*hold)(void *self, void *subscription);

    /* flush: all that this turn asks for was asked. NULL: it batches nothing. */
    void (*flush)(void *self);
} mull_transport_ops;

/* MULL_TRANSPORT_OPS begins the initializer of a mull_transport_ops in C: its size, version and
 * scheme, which is the name, and the slots that every transport has: name_look, name_open and so
 * on. `depth`, `hold` and `flush` follow by hand. */
#define MULL_TRANSPORT_OPS(name)                                                                   \
    .size = sizeof(mull_transport_ops), .version = MULL_TRANSPORT_VERSION, .scheme = #name,        \
    .look = name##_look, .open = name##_open, .subscribe = name##_subscribe,                       \
    .credit = name##_credit, .unsubscribe = name##_unsubscribe, .publish = name##_publish,         \
    .settle = name##_settle, .release = name##_release, .close = name##_close

/* mull_engine_scheme makes a transport of yours known to an engine: mull_engine_transport then
 * takes URLs that begin with its scheme and a colon. `ops` and the scheme's text are borrowed until
 * the engine is closed; `data` is yours, mull_port_data gives it to each transport of that scheme.
 * It goes before a module of that scheme. Several engines may have the same ops, or different ones
 * for one scheme. On the loop's thread.
 * MULL_EINVAL: another version, no scheme, one that is built in (or will be: amqp, redis, nats) or
 * taken, or a slot is missing; `problem` says which. MULL_ENOMEM; MULL_ESTATE: it is closing. */
MULL_API int mull_engine_scheme(mull_engine *engine, const mull_transport_ops *ops, void *data);

/* mull_transport_ops_of gives the ops that the library has for a URL, built in or by a module,
 * which it may load: for what stands before a transport and passes on what it is asked, see
 * mulligan/conformance.h. Static. NULL: there are none, or no URL. Any thread. */
MULL_API const mull_transport_ops *mull_transport_ops_of(const char *url);

/* ---- What a transport calls ------------------------------------------------------------------ */

/* mull_port_state says how the transport is (a mull_health of mulligan.h) and, where it isn't up,
 * why: what happened and what would be right. A change of either is told to the log. BROKEN is for
 * good: the engine stops by itself. What it still asks of this transport is answered all the same,
 * with an error, and not asked again; and close ends it. */
MULL_API void mull_port_state(mull_port *port, mull_health health, const char *why);

/* mull_source_state is how a subscription is. */
typedef enum mull_source_state {
    MULL_SOURCE_WAITING, /* as at first: it isn't read yet, or not now. NULL for why, where DOWN has
                            said it */
    MULL_SOURCE_READY,   /* it is read, as far as there is credit */
    MULL_SOURCE_REFUSED, /* it won't be until a person acts; other queues are read on. The transport
                            may look again by itself, and say READY */
    MULL_SOURCE_ENDED    /* answers unsubscribe */
} mull_source_state;

/* mull_port_source says how a consumer's subscription is, and why where it isn't ready. `found` is
 * what holds for this queue, where more is known of it than `look` did (NULL: nothing): where that
 * is less than was promised, the subscription is refused for good. */
MULL_API void mull_port_source(mull_port *port, mull_ticket consumer, mull_source_state state,
                               const mull_abilities *found, const char *why);

/* mull_port_delivered hands a delivery to the engine, which settles and releases it. Here and
 * below: what a transport may not do (deliver what isn't new, answer what it wasn't asked, close
 * unasked) is told to the log, as an error, where it can be seen, and nothing else comes of it. */
MULL_API void mull_port_delivered(mull_port *port, mull_ticket consumer, mull_delivery *delivery);

/* mull_port_lost says that the claim on a delivery is gone: the engine settles it no more (a
 * settlement under way is answered all the same, as a rule by MULL_ELOST) and releases it when its
 * handler has ended. */
MULL_API void mull_port_lost(mull_port *port, mull_ticket delivery, const char *why);

/* mull_port_answer answers settle and publish: 0, or an error. The log tells `why`, here and below,
 * when it changes. */
MULL_API void mull_port_answer(mull_port *port, mull_ticket ticket, int status, const char *why);

/* mull_port_depth answers depth. Numbers that aren't known are MULL_UNKNOWN. */
MULL_API void mull_port_depth(mull_port *port, mull_ticket ticket, int status,
                              const mull_depth *depth, const char *why);

/* mull_port_closed answers close. */
MULL_API void mull_port_closed(mull_port *port);

/* mull_timer is the engine's: it calls `fire` on the loop's thread, by the engine's monotonic
 * clock. */
typedef struct mull_timer mull_timer;

/* mull_port_timer_new makes a timer that isn't set. NULL: out of memory. */
MULL_API mull_timer *mull_port_timer_new(mull_port *port, void (*fire)(void *data), void *data);

/* mull_port_timer_set sets it, anew where it was set, `delay_ms` from now; 0: for a later turn,
 * never inside of this call. MULL_NEVER: unset it. It needs no memory. */
MULL_API void mull_port_timer_set(mull_port *port, mull_timer *timer, int64_t delay_ms);

/* mull_port_timer_free: before mull_port_closed; its own `fire` may call it. NULL is fine. */
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
