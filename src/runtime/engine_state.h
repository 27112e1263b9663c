/* engine_state.h: the structs of an engine. A file of this room uses those of its step and of the
 * steps before it. What concerns a later one it posts here, for the loop to find
 * (tools/circles.lua):
 *
 *   engine_state ──> transitions, timers, tickets, copy, counting, rate_limit, call_limit
 *                ──> calls, questions, limit_values ──> events ──> limit_events
 *                ──> limiting ──> limiting_refresh, admission ──> readers ──> settlement
 *                ──> delivery ──> turn
 *                ──> check, port ──> consumers ──> setup, reload, stop ──> stop_when_empty,
 * snapshot ──> loop
 *
 *        engine ──< port (a transport) ──< mull_delivery, the transport's memory
 *               ──< consumer ──< delivery (one message on its way) ── call, while its handler works
 *
 * All of it belongs to the loop's thread, except what `mutex` guards. */
#ifndef MULL__ENGINE_STATE_H
#define MULL__ENGINE_STATE_H

#include "base/alloc.h"
#include "base/list.h"
#include "base/rand.h"
#include "calls.h"
#include "decide/decide.h"
#include "engine_control.h"
#include "mulligan/module.h"
#include "tickets.h"
#include "timers.h"
#include "wire/headers.h"

#include <stdatomic.h>
#include <uv.h>

/* MULL__ASSERT ends the process in builds for tests where its condition doesn't hold. */
#if defined(MULL__ASSERTS)
#define MULL__ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define MULL__ASSERT(condition) ((void)(condition))
#endif

enum {
    MULL__AGAIN_MS = 100, /* after memory ran out */
    MULL__DRAIN_MS = 5000 /* for transports to end what was asked, once the grace is over */
};

/* ---- Timers ---------------------------------------------------------------------------------- */

struct mull_timer {
    int64_t due_ms;
    uint64_t order; /* among those due at the same moment, first set first fired */
    int set;        /* it is in the heap */
    int own;        /* memory of its own, freed when it fires or is cancelled */
    void (*fire)(void *data);
    void *data;
    mull_timer *left, *right, *parent; /* in the heap */
};

/* What a limit counts apart, in words, cut. */
enum { MULL__PER_SIZE = 256 };

/* ---- Calls ----------------------------------------------------------------------------------- */

typedef enum mull__call_state {
    MULL__CALL_NONE,
    MULL__CALL_OPEN,
    MULL__CALL_DETACHED, /* timed out, lost or shut down: its end no longer matters, but ends it */
    MULL__CALL_ENDED,    /* mull_done was called, the loop hasn't seen it yet */
    MULL__CALL_STATES
} mull__call_state;

typedef struct mull__call_slot {
    uint64_t serial;
    mull__call_state state;
    struct mull__delivery *delivery;
    uint32_t next_free;
} mull__call_slot;

/* ---- Counts ---------------------------------------------------------------------------------- */

enum { MULL__VERDICTS = MULL_DISCARD + 1 };

/* mull__tally is what a consumer's snapshot counts and remembers, see counting.c. */
typedef struct mull__tally {
    uint64_t taken, done;
    uint64_t verdicts[MULL__VERDICTS];  /* carried out, by mull_action */
    uint64_t reasons[MULL_REASON_LAST]; /* of dead letters and discards */
    uint64_t times[MULL_TIME_BUCKETS];
    char error_type[128], error_text[256]; /* of the last failure, */
    int64_t error_ms;                      /* and when that was, wall clock; 0: never */
    char settling_why[256];                /* as the transport said when a settlement failed */
    mull_why_not why;                      /* as of the end of the last turn, */
    int64_t why_since_ms;                  /* and since when, monotonic */
} mull__tally;

/* mull__rule_tally counts by a rule, which it keeps through reloads. */
typedef struct mull__rule_tally {
    struct mull__rule_tally *next; /* in its bucket */
    uint64_t verdicts[MULL__VERDICTS];
    int line;
    char file[];
} mull__rule_tally;

typedef struct mull__rule_tallies {
    mull__rule_tally *buckets[256];
    size_t count;
} mull__rule_tallies;

/* ---- Ports, consumers ------------------------------------------------------------------------ */

typedef enum mull__operation {
    MULL__SETTLE,
    MULL__PUBLISH,
    MULL__DEPTH,
    MULL__HOLD,
    MULL__NOTE, /* a settlement too */
    MULL__OPERATIONS
} mull__operation;

typedef struct mull__fault { /* see mull__engine_fault */
    uint32_t skip, times;
    int code;
} mull__fault;

typedef enum mull__port_state {
    MULL__PORT_OPEN,
    MULL__PORT_CLOSING,
    MULL__PORT_CLOSED
} mull__port_state;

typedef struct mull__scheme { /* a transport that the embedder brought along */
    mull__link link;
    const mull_transport_ops *ops;
    void *data;
} mull__scheme;

struct mull_port {
    const mull_port_calls *calls; /* first, where a module looks for them */
    mull__link link;
    mull_engine *engine;
    const mull_transport_ops *ops;
    void *data; /* of its scheme */
    void *self;
    mull__port_state state;
    mull_health health;   /* as the transport says, */
    char why[256];        /* and why it isn't up, as it was told */
    char failed_why[256]; /* a publish or a depth, as the log knows; "": the last one didn't */
    int64_t since_ms;     /* its health is so, monotonic */
    int told;             /* the log knows that it isn't */
    int was_up;
    int came_up;        /* since the start, and the event function hasn't heard of it */
    int asked;          /* something, since the last flush */
    uint64_t counted;   /* the poll in which its depths were asked for */
    uint32_t abandoned; /* deliveries that could not be settled, since it is broken */
    uint32_t parked;    /* that it never settles; those of consumers that are gone, too */
    void *deferred;     /* mull_delivery: no memory was there for it, linked by `runtime` */
    mull_timer deferred_timer;
    mull__fault faults[MULL__OPERATIONS];
    const char *name, *url; /* in `texts` */
    char texts[];
};

/* mull__message_state: what a message is at. From the fifth on it is over for the broker. */
typedef enum mull__message_state {
    MULL__WAITING,   /* in `waiting` or `candidates`, also from its arrival to the next state */
    MULL__WORKING,   /* its handler was called and its end matters */
    MULL__PAUSING,   /* a retry: for its timer, for a detached call, then in `retries` */
    MULL__SETTLING,  /* with the transport, or between two tries */
    MULL__SETTLED,   /* the transport said that it is */
    MULL__LOST,      /* its claim is gone */
    MULL__ABANDONED, /* it can't be settled, stays claimed, and is lost when its port closes */
    MULL__MESSAGE_STATES
} mull__message_state;

typedef enum mull__consumer_state {
    MULL__CONSUMER_WORKS,
    MULL__CONSUMER_RENEWS, /* it ends its subscription, for one with more credit */
    MULL__CONSUMER_LEAVES  /* it is being removed */
} mull__consumer_state;

typedef struct mull__limits mull__limits;

typedef struct mull__consumer {
    mull__link link;
    mull_engine *engine;
    mull_port *port;
    mull__ticket ticket;
    void *subscription;        /* the transport's */
    mull_source_state source;  /* as it says */
    char why[256];             /* it isn't ready, as it was told */
    mull_abilities floor, can; /* promised beforehand; found later, which is no less */
    mull_timer hold_timer;
    mull__consumer_state state;
    int never_works; /* it was removed before the start, until which no turn may end that */
    int paused;
    uint32_t most; /* credit that its subscription is for */
    int lacking;   /* it hasn't what was promised, and is refused for good */
    int ending;    /* the transport was told to end the subscription, */
    int ended;     /* and has */
    mull_timer end_timer;
    mull_consumer_removed_fn removed;
    void *removed_data;
    size_t deliveries;             /* that aren't released; of a reader all that it read */
    mull_consumer_options options; /* but for its strings, which were borrowed */
    const char *name, *queue;      /* in `texts` */
    const char *label;             /* for people: its name, or a reader's queue */
    const char **types;            /* its own, `type_count`, one block; NULL: it takes the rest */
    size_t type_count;             /* of these */
    struct mull__consumer *reader; /* reads its queue, see readers.h; NULL: it does so itself */
    int is_reader;                 /* for others: it has no name and no handler */
    int shares;                    /* another consumer, before it, reads its queue as well */
    mull__list waiting;            /* new ones, for admission */
    mull__list candidates; /* poison candidates: their last owner died, or they found no memory */
    mull__list retries;    /* due for another call, they have their slots */
    uint32_t calls;        /* handlers at work, be they detached */
    uint32_t slots;        /* taken: handlers at work, and retries that wait */
    uint32_t held;         /* retries that wait without a slot, since a limit holds them up */
    uint32_t gated;        /* messages that wait for the pace of their value */
    uint32_t room;         /* as many may be at work, whatever the concurrency is */
    uint32_t settling;     /* deliveries that the transport is settling */
    uint32_t failing;      /* of these, settles that failed and are tried again */
    uint32_t parked;       /* that the transport never settles */
    uint32_t let_go;       /* parked ones that were released, and stay claimed */
    uint32_t credit;       /* last told to the transport */
    uint64_t more_until;   /* another message may be on its way until the loop has waited so often;
                              UINT64_MAX: the transport isn't told of the room for it yet; */
    int64_t more_until_ms; /* and no longer than until then */
    int own_prefetch;      /* it was set, and doesn't follow the concurrency */
    /* By the policy in force, see limiting_refresh.c: */
    mull__limits *limits;              /* NULL: there are none */
    mull_timer limits_timer;           /* they let the next call begin then */
    int64_t max_attempts, deadline_ms; /* MULL__OFF */
    int may_refuse;                    /* any of these is there */
    mull__generation *generation;      /* where all of these are from */
    mull__tally tally;
    uint64_t here[MULL__MESSAGE_STATES]; /* what a snapshot counts: deliveries by state */
    int subscribed; /* the transport knows of it: a start that failed further on leaves it so */
    char texts[];
} mull__consumer;

/* mull__question is what a transport was asked, and hasn't answered yet. */
typedef struct mull__question {
    mull__ticket ticket; /* first */
    mull__link link;     /* in the engine's, the oldest first; none once it was told that no answer
                            comes. While `kept` in the engine's answers */
    int64_t asked_ms;    /* monotonic */
    const struct mull__asker *asker;
    uint8_t in_slot; /* the slot that asks hasn't returned, */
    uint8_t kept;    /* and has answered, which the next turn takes: */
    int status;
    char *why;
} mull__question;

typedef struct mull__asker mull__asker;

/* ---- Deliveries ------------------------------------------------------------------------------ */

/* mull__delivery is one message on its way through the engine. */
typedef struct mull__delivery {
    mull__link link;        /* in one of its consumer's lists */
    mull__link engine_link; /* in the engine's deliveries */
    mull__link inbox_link;
    mull_engine *engine;
    mull__consumer *consumer;
    mull_delivery *handed; /* the transport's */
    mull__ticket ticket;
    mull__message_state state; /* see transitions.c */

    /* what it brought */
    mull_message message; /* as its handler sees it */
    char given_id[33];    /* "" where it had one */
    mull_header *visible; /* headers of a returned dead letter without its record, or NULL */
    uint64_t chance;
    mull__header_record record; /* of its headers, but for a first failure and a due time of now */
    int64_t crashes;            /* hand-outs that ended with their owner's death */
    int first_is_safe;          /* its first failure is written down at the broker */
    int journalled;             /* the broker has newer headers of it than it came with */
    int delay_hop;              /* it came before its time: put off again, nothing is counted */

    /* where it stands */
    int64_t attempt;      /* failed calls in this hand-out */
    int64_t safe_attempt; /* the last one that was journalled */
    mull_call call;       /* 0: none. While WORKING it is open or ended, else detached or ended */
    int slot;             /* it has one of its consumer's */
    int held;             /* a limit holds its retry up, without a slot */
    int gated;            /* it waits here for the pace of its value */
    int kept;             /* a limit keeps its failure, which doesn't count: it goes back */
    int64_t back_ms;      /* for how long it goes back; 0: for no time */
    int64_t retry_ms;     /* its retry is due, monotonic */
    void (*noted)(struct mull__delivery *d); /* goes on once a NOTE is settled */
    int alone;                               /* a poison candidate, until its next call here ends */
    int overdue;      /* its call took longer than a poison candidate waits */
    mull_timer timer; /* of its timeout, its retry or its next try to settle, one at a time */
    const mull_error *error; /* the last failure's: one of mull__engine_errors, or one block */
    int64_t called_ms;       /* its handler, and */
    int64_t ended_ms;        /* mull_done, monotonic; guarded by the mutex until it is drained */
    const mull_error *ended; /* what mull_done brought, guarded as well */
    int crashed;    /* ... and that its handler died with others at work, guarded as well */
    int suspect;    /* its last call did: the next one is made alone */
    int uncounted;  /* ... and that it failed counts for nothing, guarded as well */
    int64_t age_ms; /* at the last failure */
    int64_t failed_at_ms;

    /* how it ends */
    mull_verdict verdict;
    mull__generation *generation;       /* keeps the verdict's strings */
    char *words;                        /* ... but those that an override answered, one block */
    mull__decider_state *decider_state; /* whose notify has to hear of it, NULL: none has */
    uint32_t notify;                    /* the number of that function */
    mull__list pending;                 /* mull__pending: while it was judged */
    mull_settlement settlement;
    int tells_type; /* ... which may end later without being asked, so its last error is told */
    mull_header *headers; /* of the settlement, one block */
    mull_outgoing *sends; /* each message one block, guarded by the mutex while the call is open */
    size_t send_count, send_room;
    size_t send_bytes;       /* that they take */
    uint32_t tries;          /* to settle */
    int retry_answered;      /* ServiceControl is told, with what was sent, that it was handled */
    int refused;             /* what was decided: it becomes a dead letter instead */
    int parked;              /* the transport never settles it */
    int overlong;            /* it was told that the settlement isn't answered */
    int unanswered;          /* it was given up: the transport may be at the settlement still */
    mull__question question; /* the settlement, while the transport hasn't answered */
    int claim_lost;          /* ... but lost the claim meanwhile */
} mull__delivery;

/* ---- The engine ------------------------------------------------------------------------------ */

typedef enum mull__engine_state {
    MULL__NEW,
    MULL__RUNNING,
    MULL__STOPPING,
    MULL__STOPPED
} mull__engine_state;

typedef enum mull__closing {
    MULL__NOT_CLOSING,
    MULL__CLOSE_ASKED,   /* stopping, detached calls may be at work */
    MULL__CLOSE_PORTS,   /* transports end what is under way */
    MULL__CLOSE_HANDLES, /* uv handles close */
    MULL__CLOSE_DONE     /* only the memory is left */
} mull__closing;

/* mull__depth_poll is what a stop until empty has asked of the transports. */
typedef struct mull__depth_poll {
    uint64_t arrivals; /* of the engine, when they were asked */
    uint32_t asked;    /* not answered yet */
    size_t rounds;     /* in a row that found nothing */
    size_t moments;    /* at which the queues of all consumers are counted */
    uint64_t polls;    /* so far */
    uint64_t left;     /* messages that the answers so far count */
    uint64_t resting;  /* of these, messages that only paused consumers would take */
    uint64_t parked;   /* of these, messages that their transport never settles */
    int rough;         /* it isn't known of all queues */
    int64_t next_due;  /* wall clock */
    int claimed;
    int failed; /* how the first one of this round did that could not be had, 0: none */
    mull__consumer *failed_of;
    int64_t wait_ms;    /* until they are asked for again since some failed, 0: none did */
    int is_told;        /* that some failed */
    int64_t give_up_ms; /* monotonic */
    mull_timer timer;
} mull__depth_poll;

struct mull_engine {
    mull_allocator allocator;
    mull_engine_options options;
    mull_decider *decider;
    mull__reload_validator validator; /* registered from start until it has stopped */
    mull__delivery *judged;           /* that the decider is at work on, NULL */
    mull__engine_state state;

    uv_loop_t *loop, own_loop;
    uv_async_t wake;  /* from other threads */
    uv_timer_t alarm; /* the earliest of `timers`, on the real clock */
    uv_check_t after; /* the point of a turn where what was posted is drained */
    uv_idle_t posted; /* at work while something is posted: the loop doesn't wait then */
    uv_signal_t signals[3];
    uv_handle_t *handles[8]; /* open ones, of the above */
    int handle_count;
    struct mull__reload *reload; /* NULL: it reloads nothing by itself */
    _Atomic(uintptr_t) drains;   /* the thread that drains, see mull__this_thread, 0: none */
    atomic_int woken;            /* `wake` was sent, and the loop hasn't seen it yet */

    mull_clock clock;   /* a test's, 0: the real ones */
    int manual;         /* a test's clock: no alarm, mull_engine_turn */
    int for_policy;     /* it has neither transport nor consumer, see engine_control.h */
    mull_timer *timers; /* the heap's root: the earliest, NULL: none */
    uint64_t next_timer;
    mull__rand rand;

    const mull__generation *limits_of; /* the one that consumers go by, see limiting_refresh.c, */
    int limits_stale;                  /* but for those that found no memory, or are new */
    mull_timer limits_timer;
    mull__list consumer_events;     /* see limit_events.c */
    mull_timer lines_timer;         /* a second, in which lines about values are counted, */
    uint32_t lines, lines_left_out; /* and left out */

    mull__list schemes, ports, consumers, deliveries, companions;
    int companions_end; /* they were told to */
    mull__list gone; /* consumers that were removed and have let go of parked messages, one for each
                        queue */
    mull__tickets tickets;
    mull__list questions;
    mull_timer question_timer;
    /* questions that were answered from within their slots, for the next turn */
    mull__list answers;
    int64_t working;                    /* transports, and handlers outside, at work */
    const mull__consumer *candidate_of; /* for its poison candidate all others wait, NULL */
    int changing;                       /* consumers renew their subscription, or leave */
    uint64_t waits;                     /* how often the loop has waited */
    uint32_t active_calls;              /* handlers at work that aren't detached */
    int alone; /* a poison candidate's handler is at work: nobody else's starts */
    int dirty; /* something was posted */
    mull_counts counts;
    mull__rule_tallies rules;

    uv_mutex_t log_mutex; /* one line at a time */
    uv_mutex_t mutex;     /* guards rand, calls, inbox, stop_asked, policy_events, and of each
                             delivery `ended`, `uncounted`, `crashed` and `sends` */
    mull__call_slot *calls;
    uint32_t call_room, free_call; /* 0 ends the free list: slot 0 isn't used */
    mull__list inbox;              /* deliveries whose call was ended */
    mull__list policy_events;      /* mull__pending: what became of reloads */
    int stop_asked;

    mull_timer poison_timer; /* of a poison candidate that waits for others' calls to end */
    uint32_t overdue;        /* of the open calls, those that it has waited out */

    mull_timer grace_timer;
    int grace_over;
    int drain_over; /* and so is the time for transports to answer */
    int until_empty;
    int emptied;        /* ... and that is why it stops */
    uint64_t arrivals;  /* deliveries so far */
    int64_t active_ms;  /* when it started, or one last came, was settled or seen; monotonic */
    int64_t put_off_ms; /* when the last redelivery is due, wall clock */
    mull__depth_poll depths;

    int status; /* why it stops by itself, 0 */
    int stop_reported;
    mull__closing closing;
    int in_loop; /* inside a uv_run of ours: the memory is freed when it returns */
    void (*closed)(void *data);
    void *closed_data;
};

/* ---- state.c: clocks, ids, log, what wakes the loop ------------------------------------------ */

/* mull__later is `now` and `delay_ms`, at most INT64_MAX. */
static inline int64_t mull__later(int64_t now, int64_t delay_ms)
{
    return delay_ms <= 0 ? now : delay_ms > INT64_MAX - now ? INT64_MAX : now + delay_ms;
}

/* mull__turn_ms is mull__engine_now as of the beginning of this turn, for what may be rough. */
int64_t mull__turn_ms(const mull_engine *engine);
int64_t mull__engine_wall(const mull_engine *engine);
int64_t mull__engine_due(const mull_engine *engine, int64_t delay_ms); /* wall clock, 0: at once */
void mull__engine_id(mull_engine *engine, char id[33]);                /* any thread */
uint64_t mull__engine_chance(mull_engine *engine);                     /* any thread */
void mull__engine_log(mull_engine *engine, mull_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* mull__engine_problem tells a problem, and answers its code. */
int mull__engine_problem(mull_engine *engine, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* MULL__REFUSE tells what is wrong with what an embedder asks, and answers MULL_EINVAL. */
#define MULL__REFUSE(engine, ...) mull__engine_problem(engine, MULL_EINVAL, __VA_ARGS__)

void mull__engine_mark_posted(mull_engine *engine); /* something was posted (loop's thread) */
void mull__engine_wake(mull_engine *engine);        /* the same from any thread */
int mull__engine_stop_asked(mull_engine *engine);

/* Each gives the one after `after`, the first after NULL, and NULL at the end. */
mull__consumer *mull__next_consumer(mull_engine *engine, mull__consumer *after);
mull_port *mull__next_port(mull_engine *engine, mull_port *after);
mull__delivery *mull__next_delivery(mull_engine *engine, mull__delivery *after);

/* mull__consumer_name is what policies call a consumer; NULL for a reader, which has no scope. */
static inline const char *mull__consumer_name(const mull__consumer *c)
{
    return c->is_reader ? NULL : c->name;
}

/* mull__same_queue says whether two consumers read the same queue. */
int mull__same_queue(const mull__consumer *a, const mull__consumer *b);

mull_port *mull__port_named(mull_engine *engine, const char *name);
int mull__fault_hit(mull_port *port, mull__operation operation); /* its code, 0: none */

/* mull__look is a transport's `look`; `can_hold` and depths only where there are the slots. */
int mull__look(const mull_transport_ops *ops, const char *url, const char *queue,
               mull_abilities *floor, char *why, size_t why_size);

/* mull__port_asked: something was asked of it, which is flushed at the end of the turn. */
void mull__port_asked(mull_port *port);

/* mull__refusal is what a transport's slot answers: 0, or a negative code, whatever it was. */
static inline int mull__refusal(int status)
{
    return status > 0 ? MULL_EIO : status;
}

#endif
