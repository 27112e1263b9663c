/* engine.h: the shapes of the runtime. Each file of this room owns one part of them:
 *
 *   engine.c   life of an engine, its loop and turns       setup.c    transports and consumers
 *   flow.c     a message's life, to read from the top      check.c    what start and reloads refuse
 *   gate.c     who may be called now; credit               publish.c  publish and depth
 *   settle.c   how a delivery ends at the broker           stop.c     stop, stop when empty
 *   call.c     numbers of calls; mull_done, mull_send      timer.c    timers on the engine's clock
 *   port.c     what transports call; faults for tests      copy.c     messages and errors copied
 *   reload.c   when the policy is loaded anew              watch.c    have its files changed?
 *   tell.c     who hears of events: the embedder, the policy's own notify
 *
 *        engine ──< port (a transport) ──< delivery
 *               ──< consumer ──< flow (one delivery on its way) ── call, while its handler works
 *
 * All of it belongs to the loop's thread, except what `mutex` guards: calls and the inbox.
 */
#ifndef MULL__ENGINE_H
#define MULL__ENGINE_H

#include "base/alloc.h"
#include "base/list.h"
#include "base/rand.h"
#include "decide/decide.h"
#include "mulligan/transport.h"
#include "runtime/seams.h"
#include "wire/headers.h"

#include <stdatomic.h>
#include <uv.h>

/* ---- Timers ---------------------------------------------------------------------------------- */

struct mull_timer {
    int64_t due_ms;
    uint64_t order; /* among those due at the same moment, first set first fired */
    size_t index;   /* in the heap */
    int set;        /* it is in the heap */
    int own;        /* memory of its own, freed when it fires or is cancelled */
    void (*fire)(void *data);
    void *data;
};

/* A timer that lives in another struct never fails: its place in the heap was reserved before. */
typedef struct mull__timers {
    mull_timer **heap;
    size_t count, room;
    size_t reserved; /* timers that are, or may at any moment be, in the heap; at most `room` */
    uint64_t next_order;
} mull__timers;

int mull__timer_reserve(mull_engine *engine); /* MULL_ENOMEM */
void mull__timer_unreserve(mull_engine *engine);

/* mull__timer_set sets a timer with a reserved place, anew if it was set. */
void mull__timer_set(mull_engine *engine, mull_timer *timer, int64_t delay_ms,
                     void (*fire)(void *data), void *data);

/* mull__timer_add makes one with memory of its own. NULL: out of memory. */
mull_timer *mull__timer_add(mull_engine *engine, int64_t delay_ms, void (*fire)(void *data),
                            void *data);

/* mull__timer_cancel: one that isn't set is left alone; NULL is fine. */
void mull__timer_cancel(mull_engine *engine, mull_timer *timer);

/* mull__timers_fire fires what is due; how many that were. What a timer adds waits its turn. */
size_t mull__timers_fire(mull_engine *engine);
int64_t mull__timers_next(const mull_engine *engine); /* INT64_MAX: none */
void mull__timers_free(mull_engine *engine);

/* ---- Calls ----------------------------------------------------------------------------------- */

typedef enum mull__call_state {
    MULL__CALL_FREE,
    MULL__CALL_OPEN,
    MULL__CALL_CUT,  /* timed out, lost or shut down: its end no longer matters, but ends it */
    MULL__CALL_ENDED /* mull_done was called, the loop hasn't seen it yet */
} mull__call_state;

struct mull__flow;

typedef struct mull__call_slot {
    uint64_t serial;
    mull__call_state state;
    struct mull__flow *flow;
    uint32_t next_free;
} mull__call_slot;

typedef struct mull__calls {
    mull__call_slot *slots;
    uint32_t room, first_free; /* 0 ends the free list: slot 0 isn't used */
} mull__calls;

/* ---- Ports, consumers ------------------------------------------------------------------------ */

typedef enum mull__operation {
    MULL__SETTLE,
    MULL__PUBLISH,
    MULL__DEPTH,
    MULL__HOLD,
    MULL__OPERATIONS
} mull__operation;

typedef struct mull__fault {
    uint32_t skip, times;
    int code;
} mull__fault;

typedef enum mull__port_state {
    MULL__PORT_OPEN,
    MULL__PORT_CLOSING,
    MULL__PORT_CLOSED
} mull__port_state;

/* mull__scheme is a transport that the embedder brought along. */
typedef struct mull__scheme {
    mull__link link;
    const mull_transport_ops *ops;
    void *data;
} mull__scheme;

struct mull_port {
    mull__link link;
    mull_engine *engine;
    char *name;
    const mull_transport_ops *ops;
    void *data; /* of its scheme */
    void *self;
    mull_abilities abilities;
    mull__port_state state;
    mull_health health;    /* as the transport says */
    uint32_t abandoned;    /* deliveries that could not be settled, since it is broken */
    mull__list flows;      /* all of its deliveries that aren't released */
    mull_delivery *strays; /* arrived when there was no memory; linked by `runtime` */
    mull_timer stray_timer;
    mull_timer hold_timer;
    mull__fault faults[MULL__OPERATIONS];
};

/* mull_subscription is a consumer: the transport sees only its address. */
struct mull_subscription {
    mull__link link;
    mull_engine *engine;
    mull_port *port;
    mull_consumer_options options; /* strings are `name` and `queue` below */
    char *name, *queue;
    mull__list waiting;  /* new ones, for the gate */
    mull__list suspects; /* new ones whose last owner died: each runs alone */
    mull__list retries;  /* due for another call; they have their slots */
    uint32_t slots;      /* taken: handlers at work, and retries that wait */
    uint32_t settling;   /* deliveries that the transport is settling */
    uint32_t failing;    /* of these, settles that failed and are tried again */
    uint32_t credit;     /* last told to the transport */
    int subscribed;      /* its queue is read: a start that failed further on leaves it so */
};

/* ---- Flows ----------------------------------------------------------------------------------- */

typedef enum mull__stage {
    MULL__WAITING,  /* in `waiting` or `suspects` */
    MULL__WORKING,  /* its handler was called and its end matters */
    MULL__PAUSING,  /* a retry: for its timer, for a handler cut off, then in `retries` */
    MULL__SETTLING, /* with the transport, or between two tries */
    MULL__SETTLED   /* nothing left to do at the broker; lost ones too */
} mull__stage;

/* mull__flow is one delivery on its way through the engine. */
typedef struct mull__flow {
    mull__link link;      /* in one of its consumer's lists */
    mull__link port_link; /* in its port's flows */
    mull__link inbox_link;
    struct mull_subscription *consumer;
    mull_delivery *delivery;
    mull__stage stage;

    /* what it brought */
    mull_message message; /* as its handler sees it */
    char given_id[33];    /* "" where it had one */
    mull_header *visible; /* headers of a returned dead letter without its record; or NULL */
    uint64_t chance;
    int aside;
    int64_t redeliveries;
    int64_t calls_before; /* failed before this hand-out, by its headers */
    int64_t crashes;      /* hand-outs that ended with their owner's death */
    int64_t first_failure_ms;
    int64_t due_ms; /* of a redelivery whose delay is made of several; 0 */
    int onward;     /* it came before its time: put off again, nothing is counted */

    /* where it stands */
    int64_t attempt; /* failed calls in this hand-out */
    mull_call call;  /* 0: no handler has it */
    int cut;         /* ... but one that was cut off */
    int slot;        /* it has one of its consumer's */
    int alone;       /* a suspect, until its first call here ends */
    int outlasts;    /* its call has outlasted a suspect's patience */
    int lost;
    mull_timer timer; /* of its timeout, its retry or its next try to settle; one at a time */
    const mull_error *error;  /* the last failure's */
    mull_error *error_memory; /* ... where it isn't one of ours; one block */
    mull_error *ended; /* what mull_done brought; guarded by the mutex until the inbox is read */
    int ended_short;   /* ... or that it failed, and why found no memory; guarded as well */
    int64_t age_ms;    /* at the last failure */
    int64_t failed_at_ms;

    /* how it ends */
    mull_verdict verdict;
    mull__generation *generation; /* keeps the verdict's strings */
    char *words;                  /* ... but those that an override answered; one block */
    int decided;                  /* there is a verdict, whose event is to be told */
    mull__seat *seat;             /* whose notify has to hear of it; NULL: none has */
    uint32_t notify;              /* the number of that function */
    mull__list met;               /* mull__met: while it was judged */
    mull_settlement settlement;
    mull_header *headers; /* of the settlement; one block */
    mull_outgoing *sends; /* each message one block; guarded by the mutex while the call is open */
    size_t send_count, send_room;
    size_t send_bytes; /* that they take */
    uint32_t tries;    /* to settle */
    int fault_code;    /* what a test's fault answers in place of the transport */
    int abandoned;     /* it could not be settled before the end: released when the port closes */
} mull__flow;

/* mull__met is an event of which notify hears later. One block. */
typedef struct mull__met {
    mull__link link;
    mull_event_kind kind;
    const mull_rule *rule; /* in the flow's generation; NULL: none */
    char generation[33];   /* of policy_loaded, policy_refused */
    char text[];
} mull__met;

/* ---- The engine ------------------------------------------------------------------------------ */

typedef enum mull__engine_state {
    MULL__NEW,
    MULL__RUNNING,
    MULL__STOPPING,
    MULL__STOPPED
} mull__engine_state;

typedef enum mull__closing {
    MULL__NOT_CLOSING,
    MULL__CLOSE_ASKED,   /* stopping; handlers that were cut off may be at work */
    MULL__CLOSE_PORTS,   /* transports end what is under way */
    MULL__CLOSE_HANDLES, /* uv handles close */
    MULL__CLOSE_DONE     /* only the memory is left */
} mull__closing;

struct mull_engine {
    mull_allocator allocator;
    mull_engine_options options;
    mull_decider *decider;
    mull__veto veto;    /* registered from start until it has stopped */
    mull__flow *judged; /* that the decider is at work on; NULL */
    mull__engine_state state;

    uv_loop_t *loop, own_loop;
    uv_async_t wake;     /* from other threads */
    uv_timer_t alarm;    /* the earliest of `timers`, on the real clock */
    uv_prepare_t before; /* the two points of a turn where the pump runs */
    uv_check_t after;
    uv_signal_t signals[3];
    int signal_count;
    struct mull__reload *reload; /* NULL: it reloads nothing by itself */
    int handles;                 /* open ones, to be closed */
    _Atomic(uintptr_t) pumps; /* the thread that is in the pump, see mull__this_thread; 0: none */
    atomic_int woken;         /* `wake` was sent, and the loop hasn't seen it yet */

    mull_clock clock;
    int manual; /* a test's clock: no alarm, mull_engine_turn */
    mull__timers timers;
    mull__rand rand;

    mull__list schemes, ports, consumers;
    int64_t working;     /* transports at work, for a test's clock */
    uint32_t open_calls; /* handlers at work that weren't cut off */
    int alone;           /* a suspect's handler is at work: nobody else's starts */
    int dirty;           /* the pump has something to look at */
    int pumping;
    mull_counts counts;

    uv_mutex_t log_mutex; /* one line at a time */
    uv_mutex_t
        mutex; /* guards rand, calls, inbox, stop_asked, news and each flow's `ended` and `sends` */
    mull__calls calls;
    mull__list inbox; /* flows whose call was ended */
    mull__list news;  /* mull__met: what became of reloads */
    int stop_asked;

    mull_timer patience_timer; /* of a suspect that waits for others' calls to end */
    uint32_t outlasting;       /* of the open calls, those that have outlasted one */

    mull_timer grace_timer;
    int grace_over;
    int until_empty;
    int emptied;              /* ... and that is why it stops */
    uint64_t arrivals;        /* deliveries so far */
    uint64_t depths_arrivals; /* ... when the depths were asked for */
    uint32_t depths_asked;
    size_t depths_rounds;    /* in a row that found nothing */
    uint64_t depths_left;    /* messages that the answers so far count */
    int64_t depths_next_due; /* wall clock */
    int depths_claimed, depths_failed;
    mull_timer empty_timer;

    int status; /* why it stops by itself; 0 */
    int told_stopped;
    mull__closing closing;
    int in_loop; /* inside a uv_run of ours: the memory is freed when it returns */
    void (*closed)(void *data);
    void *closed_data;
};

/* engine.c */
void mull__engine_touch(mull_engine *engine); /* the pump has work; loop's thread */
void mull__engine_wake(mull_engine *engine);  /* the same from any thread */
void mull__engine_pump(mull_engine *engine);
void mull__engine_log(mull_engine *engine, mull_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int mull__engine_problem(mull_engine *engine, int code, const char *file, int line,
                         const char *format, ...) __attribute__((format(printf, 5, 6)));
void mull__engine_close_handles(mull_engine *engine);
void mull__engine_handle_closed(mull_engine *engine); /* one of `handles`; the last ends it all */
int mull__engine_stop_asked(mull_engine *engine);
int64_t mull__engine_wall(const mull_engine *engine);
int64_t mull__engine_due(const mull_engine *engine, int64_t delay_ms); /* wall clock; 0: at once */
void mull__engine_id(mull_engine *engine, char id[33]);                /* any thread */
struct mull_subscription *mull__next_consumer(mull_engine *engine, struct mull_subscription *after);
mull_port *mull__next_port(mull_engine *engine, mull_port *after);
mull_port *mull__port_named(mull_engine *engine, const char *name);

/* port.c */
int mull__fault_hit(mull_port *port, mull__operation operation, int *code);
void mull__port_begin_holding(mull_port *port);
void mull__strays_try(mull_port *port);     /* is there memory for them now? */
void mull__strays_release(mull_port *port); /* the transport was closed */

/* flow.c */
int mull__flow_arrive(mull_port *port, mull_delivery *delivery);
void mull__flow_call(mull__flow *flow);  /* the gate let it through */
void mull__flow_ended(mull__flow *flow); /* mull_done was called */
void mull__flow_settled(mull__flow *flow, int status);
void mull__flow_lost(mull__flow *flow);
void mull__flow_abandon(mull__flow *flow); /* it can't be settled, and the engine stops */
void mull__flow_release_abandoned(mull__flow *flow);
void mull__flow_give_back(mull__flow *flow); /* the engine stops */
void mull__flow_cut(mull__flow *flow);       /* ... and its grace is over */

/* tell.c: the embedder's event function hears of an event first; then the `notify` that was in
 * force for the flow when it was judged, which hears before that of what was met meanwhile. Begin
 * comes before a flow is judged; end tells what was met where no event came of it. */
void mull__tell_begin(mull__flow *flow);
void mull__tell(mull__flow *flow, const mull_event *event);
void mull__tell_end(mull__flow *flow, const mull_event *about);
void mull__tell_open(mull_engine *engine); /* once it has its decider */
void mull__tell_close(mull_engine *engine);

/* What became of a reload: added on any thread, told on a turn of the loop. */
void mull__news_add(void *engine, const mull_event *event);
void mull__news_tell(mull_engine *engine);

/* settle.c */
void mull__settle(mull__flow *flow, mull_settle_kind kind);
void mull__settle_again(mull__flow *flow, int status);
void mull__settle_hurry(mull__flow *flow); /* no more waiting between two tries */

/* gate.c */
void mull__slot_free(mull__flow *flow);      /* one that has none is left alone */
void mull__gate_open(mull_engine *engine);   /* call all that may be called now */
void mull__gate_credit(mull_engine *engine); /* tell transports how much may be out */

/* call.c */
mull_call mull__call_new(mull_engine *engine, mull__flow *flow); /* 0: out of memory */
int mull__call_cut(mull_engine *engine, mull_call call);         /* 0: it had been ended */
int mull__inbox_read(mull_engine *engine);                       /* how many calls had ended */
void mull__calls_free(mull_engine *engine);
void mull__sends_drop(mull__flow *flow);

/* copy.c: deep copies in one block each, freed by mull__free */
mull_error *mull__error_copy(const mull_allocator *allocator, const mull_error *error);
void mull__outgoing_free(const mull_allocator *allocator, mull_outgoing *outgoing);

/* mull__outgoing_copy copies a message that a handler sends: it gets `id` where it has none, and
 * none of our headers, which a handler that passes its message's on would hand down. `bytes` is
 * what the copy takes. */
int mull__outgoing_copy(const mull_allocator *allocator, mull_outgoing *out, size_t *bytes,
                        const mull_message *message, const char *id, int64_t due_ms);

/* mull__message_take copies the struct of a message to be published, and says whether it can be:
 * MULL_EINVAL, MULL_ETOOBIG. */
int mull__message_take(mull_message *own, const mull_message *given);
int mull__delay_check(const mull_port *port, int64_t delay_ms); /* MULL_EREFUSED */

/* check.c: from begin to end no policy is in force that the engine refuses. End may be called
 * without begin. */
int mull__check_begin(mull_engine *engine);
void mull__check_end(mull_engine *engine);

/* stop.c */
void mull__stop_begin(mull_engine *engine);
void mull__stop_now(mull_engine *engine);
void mull__stop_broken(mull_port *port, const char *why);
void mull__stop_look(mull_engine *engine);  /* has it stopped by now? */
void mull__empty_look(mull_engine *engine); /* is it time to ask for depths? */

/* mull__refusal is what a transport's slot answers: 0, or a negative code, whatever it was. */
static inline int mull__refusal(int status)
{
    return status > 0 ? MULL_EIO : status;
}

/* setup.c */
void mull__close_look(mull_engine *engine); /* may a closing engine go on? */
void mull__schemes_free(mull_engine *engine);

#endif
