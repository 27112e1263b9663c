/* sim.h: what one seed is made of. One number decides all that happens, so it happens again.
 *
 *   main.c       which seeds (seeds.h), what is printed
 *   kernel.c     chance, time, what is due, memory, what happened; the other simulator's as well
 *   sim.c        one seed, one step after the other
 *   process.c    engines: started, reloaded, stopped, killed
 *   policies.c   policies as plain data, and the guest that compiles them; no Lua runs
 *   work.c       messages are published, handlers work: how calls end
 *   broker.c     keeps messages, hands them out; outlives engines
 *   connection.c the broker as an engine sees it: the slots of a transport, and their faults
 *   wire.c       what it is asked goes to the broker, and the answer comes back, or doesn't
 *   model.c      is what happens right? an account of each hand-out
 *   verdicts.c   ... and of what should become of it
 *   written.c    ... and of what goes with it
 *   ends.c       ... and of what is left in the end
 *   limits.c     ... and of which calls rate_limit and limit let begin
 *   journal.c    ... and of what is written down before a call, and when there is none any more
 *   view.c       what the model takes from the engine's own state, for want of another way
 */
#ifndef SIM_H
#define SIM_H

#include "base/list.h"
#include "base/rand.h"
#include "decide/decide.h"
#include "kernel.h"
#include "limits.h"
#include "mulligan/transport.h"
#include "policy/field_match.h"
#include "policy/resolve.h"

#include <uv.h>

enum {
    PROCESSES = 2,
    BROKERS = 2,
    QUEUES = 4,      /* that consumers read; handlers send to those behind their own only */
    DEAD_QUEUES = 3, /* behind them; nobody reads these */
    TYPES = 6        /* of errors */
};

typedef struct process process;
typedef struct broker broker;
typedef struct connection connection;
typedef struct handout handout;

/* ---- Chance and time ------------------------------------------------------------------------- */

/* A moment, mostly now, else soon, else later: how long something takes. */
int64_t some_time(sim *s);

char *keep_text(sim *s, const char *text);

int64_t wall_ms(const sim *s);

/* ---- Messages -------------------------------------------------------------------------------- */

typedef enum origin {
    FOREIGN, /* another program put it into the broker; it has no id */
    PUBLISHED,
    SENT
} origin;

/* message is one that somebody wanted handled, whatever its copies are. */
typedef struct message {
    int number;
    origin origin;
    char id[36];                     /* "": none so far */
    const char *key, *type, *tenant; /* NULL: it has none */
    int broker, queue;
    int big;                   /* larger than some consumers allow */
    int published;             /* its publisher was told that it is safe */
    int exists;                /* it was seen in the broker */
    int copies;                /* in the broker, dead letters too */
    int ends;                  /* acknowledged or discarded */
    int extra;                 /* copies that a crash in the midst of a settlement made */
    struct message *next_sent; /* by the same call */
    int64_t delay_ms;          /* it was to be published with */
} message;

/* ---- The broker ------------------------------------------------------------------------------ */

/* counters are what a copy's headers should say, by the model. */
typedef struct counters {
    int64_t redeliveries, calls;
    int64_t first_failure_ms; /* wall clock; 0: none */
    int64_t last_failure_ms;  /* likewise */
    int64_t held_ms;          /* its age stood still for so long, */
    int64_t held_since_ms;    /* and does since then; wall clock; 0: it goes on */
    int error_type;           /* 1 + that of the last failure, where it is written; 0: it isn't */
    int64_t due_ms;           /* wall clock: where its delay is made of several */
    int64_t not_before_ms;    /* wall clock: no handler may see it before */
    int record;               /* of a dead letter: 1 + the queue that it comes from; 0: none */
    int counting; /* 1 + the other queue in which a dead letter is redelivered; 0: none */
} counters;

/* account is what really became of a copy since it counts from the start, whatever is written. */
typedef struct account {
    int64_t begun;            /* calls, but those whose end counts for nothing */
    int64_t failed;           /* of these */
    int64_t deaths;           /* hand-outs that ended with their owner */
    int exempt;               /* an owner died that hadn't to write its calls down */
    int64_t first_written_ms; /* the first failure that the broker knows of; wall clock; 0: none */
} account;

typedef struct copy {
    mull__link link; /* in its broker's, those that ended left out */
    uint64_t place;  /* in the queue's order */
    message *message;
    int queue;
    int64_t due_ms;   /* wall clock */
    int64_t rests_ms; /* monotonic: until the broker sees that its owner died */
    int64_t deliveries;
    const char *id; /* NULL: none */
    const mull_header *headers;
    size_t header_count;
    handout *claim; /* NULL: it is ready or waits */
    counters counters;
    account account;
} copy;

struct broker {
    sim *sim;
    int index;
    mull_abilities abilities; /* what it can do */
    mull_abilities floor;     /* what is promised of it before anybody looks */
    int adopts_ids;           /* it keeps the id that an engine gives */
    int reverses;             /* headers come back in another order than they went */
    int halves;  /* a settlement may stop midway when the connection dies: the copy is out then */
    int midway;  /* ... or when an error is answered: asked again, it goes on from there */
    int to_tail; /* what is given back has lost its place */
    int counts_given_back; /* ... and was counted, where hand-outs are */
    int drops_claims;      /* a connection that goes down loses its claims */
    int batches;           /* what is asked leaves with the next flush */
    int refuses_big;       /* a large message can neither be redelivered, noted nor sent */
    unsigned missing;      /* dead-letter queues that aren't there, a bit each */
    mull__list copies;
    uint64_t next_place;
    mull__list connections;
};

void broker_init(sim *s, int index);

/* broker_put makes a copy of a message, due at a moment of the wall clock. */
copy *broker_put(broker *b, message *m, int64_t due_ms, const mull_message *content);

/* broker_put_back: somebody moves a dead letter to a queue that is read, where there is one. */
void broker_put_back(broker *b);

/* broker_settle carries a settlement out: 0; MULL_ELOST where the claim is gone; MULL_EREFUSED
 * where it can never be. */
int broker_settle(handout *h, const mull_settlement *settlement);

/* broker_settle_half does only what comes before the end of the message: the copy, or what its
 * handler sent. broker_settle does the rest. */
void broker_settle_half(handout *h, const mull_settlement *settlement);

/* broker_refuses says whether a settlement can never be. */
int broker_refuses(const handout *h, const mull_settlement *settlement);

/* broker_take_back ends a claim, counted, and lets its message rest for a while. */
void broker_take_back(handout *h, int64_t rests_ms);

/* broker_next: the first message of a queue that may be handed out; NULL: none, and then *next_ms
 * (monotonic) may be made smaller: when there is one. */
copy *broker_next(broker *b, int queue, int64_t *next_ms);

/* broker_stir has its connections hand out what there is. */
void broker_stir(broker *b);

int queue_number(const char *name); /* -1: none of ours */
const char *queue_name(int number);

/* ---- Connections ----------------------------------------------------------------------------- */

typedef struct reader {
    connection *connection;
    mull_ticket ticket;
    int queue, consumer;
    int tells; /* what holds for its queue, which is more than was promised */
    mull_source_state state;
    int over;           /* the engine has ended it */
    mull_abilities can; /* as far as the engine knows */
    uint32_t most, credit, out;
} reader;

/* A connection is a transport's self: one for each engine and broker. */
struct connection {
    mull__link link; /* in its broker's */
    broker *broker;
    process *process;
    mull_port *port;
    reader *readers[QUEUES];
    int reader_count;
    mull__list handouts; /* not released */
    mull__list wires;    /* asked, and not answered */
    int dead;            /* nothing it does changes the broker any more */
    int down;            /* it says that it can't reach the broker */
    int closing;
    event *hand_out, *up;
};

extern const mull_transport_ops simulated;

/* connection_die cuts it off; what was under way may have reached the broker or not. */
void connection_die(connection *c);

void connection_stir(connection *c, int64_t delay_ms);
void connection_lose(handout *h);                    /* the broker takes a claim back */
void connection_drop(connection *c, int64_t for_ms); /* down, and up again */
void connection_calm(connection *c);
int connection_strayed(const handout *h); /* for lack of memory */
void handout_free(handout *h);

/* serve says for whom the next connection is opened. */
void serve(process *p);

/* ---- Over the wire --------------------------------------------------------------------------- */

void wire_settle(handout *h, const mull_settlement *settlement, mull_ticket ticket);
void wire_publish(connection *c, message *m, const mull_outgoing *outgoing, mull_ticket ticket);
void wire_depth(connection *c, int queue, mull_ticket ticket);
void wire_close(connection *c, int64_t drain_ms);

/* wires_leave sends off what was asked since the last flush. */
void wires_leave(connection *c);

/* wires_last_words: some of what was asked reaches the broker, and nobody will know. */
void wires_last_words(connection *c);

/* not_in_slot: nothing is told to anybody while a slot answers. */
void not_in_slot(const process *p);

/* wires_answer answers all that a dead connection was asked. */
void wires_answer(connection *c);

/* stray_loss tells some time later that a delivery is lost that is nobody's any more. */
void stray_loss(connection *c, mull_ticket delivery);

/* ticket_given is told of each number that an engine gives. */
void ticket_given(process *p, mull_ticket ticket);

/* ---- Hand-outs ------------------------------------------------------------------------------- */

typedef enum stage {
    ON_ITS_WAY, /* claimed, not delivered */
    STRAYED,    /* delivered when there was no memory for it; the engine tries again */
    ARRIVED,    /* waits for its first call */
    WORKING,    /* its call's end matters */
    SUCCEEDED,  /* ended, and the engine hasn't looked */
    FAILED,
    RETRYING, /* judged: waits for its next call */
    SETTLING,
    PARKED, /* it can't be settled, and waits for a person */
    SETTLED
} stage;

/* failing is how a handler fails; enough to make the same error of it again. */
typedef struct failing {
    int type, cause; /* a cause of -1: none */
    int64_t code;    /* -1: none */
} failing;

/* An engine that is to end tries so often to settle what fails. */
enum { TRIES_WHEN_STOPPING = 3 };

/* A question that isn't answered for so long is given up. */
enum { EXPIRES_MS = 60000 };

/* So long an engine that is to end waits for answers, once the grace is over. */
enum { DRAIN_MS = 5000 };

/* Where depths aren't exact, queues count as empty once nothing has happened for so long. */
enum { QUIET_MS = 10000 };

enum { CRASHED_TYPE = TYPES, TIMED_OUT_TYPE, TOO_BIG_TYPE, SEND_REFUSED_TYPE };

/* What isn't known of is an Error, as what can't be sent is. */
enum { UNKNOWN_TYPE = SEND_REFUSED_TYPE };

struct generation;

enum { WORDS = 16 };

/* judgement is what a generation makes of a failure. It isn't copied: the verdict may point into
 * it. */
typedef struct judgement {
    mull_verdict verdict; /* the strings of the table, or below */
    char words[WORDS];    /* of an override */
    int matchers_failed, override_failed;
} judgement;

/* handout is one claim: for the engine the delivery in it, for the model what should become of it.
 */
struct handout {
    mull_delivery delivery; /* first */
    mull__link link;
    connection *connection;
    reader *reader;
    process *process;
    int consumer;
    copy *copy;          /* NULL: the claim is gone, or settled */
    struct copy *origin; /* what was claimed */
    message *message;
    mull_message content;
    char body[16];
    char id[36];
    int half;            /* its settlement is carried out but for the end */
    int64_t deadline_ms; /* of the claim */
    int64_t held_ms;     /* when it was last held, or delivered */
    event *on_its_way, *deadline, *lost;
    struct wire *wire; /* its settlement is with the broker */
    int mute;          /* ... from which no answer comes */

    /* the model's */
    stage stage;
    int fresh; /* it has just arrived */
    int told_lost;
    const struct generation *arrived_under;
    int64_t crashes;
    counters claimed, counters; /* of its copy; as they count here */
    int64_t attempt;

    mull_call call;
    int at_work;   /* its handler hasn't ended it */
    int unlooked;  /* ... or has, and the engine hasn't looked */
    int cancelled; /* ... though its end no longer matters */
    int first_of_candidate;
    int64_t started_ms;
    failing failing;
    message *sent;
    int sent_count;

    judgement judgement;
    const char *default_queue; /* where it was judged */
    int judged;                /* there is a verdict, of which nobody was told */
    int unheard;               /* it was told, and its policy's notify has to hear of it */
    failing judged_for;
    int64_t judged_ms; /* wall clock */
    int64_t judged_age_ms;
    int64_t judged_calls;
    const struct generation *judged_under;
    int64_t retry_not_before_ms; /* INT64_MAX: a cut-off handler is still at work */

    int keeps; /* a limit keeps the failure: it counts for nothing, and the message goes back */
    int keeps_whole; /* ... one that holds for the whole consumer, so that it is known until when */
    int64_t keeps_until_ms;
    int note_due;    /* its calls have to be safe before the next one */
    int64_t noted;   /* failed calls of this hand-out that are */
    int first_safe;  /* its first failure is */
    int journalled;  /* the broker has other headers of it than it came with */
    int failed_type; /* 1 + that of its last failure here; 0: none */
    stage noted_in;  /* where it stood when it was noted */
    int unsafe;      /* a call began though those before weren't safe */
    int tells_type;  /* it may end later without being asked */
    int put_back;    /* a limit puts it back */
    int64_t allowed; /* calls, by the max_attempts that ended it */

    mull_settle_kind kind;
    uint64_t settlement_hash;
    counters after; /* what its copy should carry once it is settled */
    int under_way, tries, answered;
    int refusals; /* settlements that can never be */
    const struct generation *refused_under;
    int64_t put_off_to_ms; /* wall clock, as a redelivery */
    const char *dead_in;   /* the queue of the dead letter that it was to be last */
    int refused_now;       /* ... the last one was */
    int64_t refused_ms;    /* wall clock */
    int unanswered;        /* its engine no longer waits for the answer */
    int unwritten;         /* decided, but there was no memory to write the settlement */
    int given_up;          /* it failed too often, and the grace was over */
    int hopeless; /* it failed when it was to end and the broker was down: it may be given up */
    int64_t try_not_before_ms;
};

/* ---- Processes ------------------------------------------------------------------------------- */

typedef enum life { DOWN, RUNNING, STOPPING, STOPPED, CLOSING } life;

/* place is where a consumer stands: more concurrency than its subscription is for takes a new one.
 */
typedef enum place { WORKS, RENEWS, LEAVES, ABSENT } place;

typedef struct consumer {
    process *process;
    char name[8];
    int queue, broker;
    place place;
    int paused;
    int let_go; /* of a parked message: what another process has claimed may be taken for that */
    uint64_t changed_in; /* the step in which it began to accept nothing */
    uint32_t concurrency, prefetch;
    int64_t timeout_ms;
    size_t max_body;
    const struct generation *limits_of; /* the policy by which its limits go by now; NULL: none */
    int64_t limits_since_ms;            /* ... since then, and until then by */
    const struct generation *limits_were;
    statement limits[LIMITS_MAX];
    int limit_count;
    int64_t idle_since_ms; /* a limit lets a call begin, and none does; INT64_MAX: it isn't so */
} consumer;

struct process {
    sim *sim;
    int index;
    uv_loop_t *loop;
    mull_policy *policy;
    const struct generation *generation; /* in force */
    int unheard_of; /* ... and there was no memory to tell its engine, which sees on its own */
    mull_engine *engine;
    life life;
    int dead; /* killed; what is left of it is taken down */
    int touched;
    int in_slot;                        /* a slot of its transports answers, */
    int64_t in_slot_ms;                 /* and when one last did, which is heard on the next turn */
    int turning;                        /* its engine is being turned */
    int64_t candidate_since_ms[QUEUES]; /* since when its candidate waits for others; INT64_MAX:
                                           none does */
    int64_t next_ms;                    /* when its engine wants to be turned */
    int64_t grace_ms;
    int64_t grace_ends_ms; /* of one that stops */
    int64_t drain_ends_ms; /* ... that no longer waits for answers */
    int drained;           /* ... since its last turn */
    uint64_t asked_in;     /* the step in which it was asked to stop */
    int64_t epoch;         /* which of its starts this is */
    int until_empty;
    connection *connections[BROKERS];
    consumer consumers[QUEUES];
    int consumer_count;
    mull_counts counts; /* as they should be */
    int64_t publishes;  /* not answered */
    int asked;          /* depths, not answered */
    int64_t errors;     /* lines of its log */
    int64_t busy_ms;    /* when a message last came here, or was settled */
    int64_t put_off_ms; /* wall clock: when the last of its redeliveries is due */
    mull_ticket *tickets;
    size_t ticket_count, ticket_room;
    limit_event expected[EXPECTED_MAX];
    int expected_count;
};

void processes_init(sim *s);
void process_start(sim *s, void *p);
void process_turn(process *p);
void process_kill(process *p);
void process_stop(process *p);
void process_close(process *p);
void process_close_later(sim *s, void *p);
void process_troubled(process *p); /* something could not be settled */
void process_reload(process *p);
void process_consumers(process *p); /* one is added, changed or removed */

/* process_reader is how a process reads a queue; NULL: it doesn't. */
const reader *process_reader(const process *p, int queue);
int process_is_stopping(const process *p);
int process_accepts(const consumer *c); /* it may call handlers, now or later */
int process_drained(const process *p);  /* it waits for no answer any more */

void process_calm(sim *s);    /* all run, and nothing hinders them */
void process_end_all(sim *s); /* all come to their end */

/* process_changes has one of the above happen. */
void process_changes(sim *s, void *none);

/* ---- Policies -------------------------------------------------------------------------------- */

/* generation is a policy that a number stands for, and the model's own table of it. */
typedef struct generation {
    mull__link link;
    uint64_t number;
    mull__table *table;
    char name[33];
} generation;

/* policy_text writes a policy's text for a number; one that is broken doesn't compile. */
void policy_text(char text[40], uint64_t number, int broken);
extern const mull__language_ops sim_guest;

/* generation_of makes the model's table, or finds it. */
const generation *generation_of(sim *s, uint64_t number);
void generations_free(sim *s);
void generation_judge(const generation *g, const mull_failure *failure, judgement *made);

extern const char *const type_names[];

/* ---- Work ------------------------------------------------------------------------------------ */

/* message_new makes a message that isn't anywhere yet. */
message *message_new(sim *s, origin from, int on, int queue);
const char *message_body(const message *m, char body[16]);
size_t message_body_size(const message *m);

void work_publish(sim *s, void *none);
void work_on_call(mull_engine *engine, mull_call call, const mull_message *m, void *data);
void work_on_cancel(mull_engine *engine, mull_call call, void *data);

/* work_fill makes the error of a failing in `room`. */
typedef struct error_room {
    mull_error error, cause;
    mull_field fields[2];
} error_room;
const mull_error *work_error(error_room *room, const failing *f);

/* work_calm: handlers that would work for ever end. */
void work_calm(sim *s);

/* work_end_all ends every call of a process, so that it can be taken down. */
void work_end_all(process *p);

/* ---- The model ------------------------------------------------------------------------------- */

void model_subscribed(process *p, const reader *r, const mull_source *source);
void model_unsubscribed(const process *p, const reader *r);
void model_delivered(handout *h);

/* model_looked: the engine had a look; what it had no memory to do is to come. */
void model_looked(handout *h);

/* model_unwritten: it was decided on, and there was no memory to write that down. */
void model_unwritten(handout *h);
void model_failed_try(handout *h);
void model_called(handout *h, mull_call call, const mull_message *m);
void model_ended(handout *h, int status, const failing *f);
void model_cancelled(handout *h);
void model_sent(handout *h, message *m, int status);
message *model_published(const connection *c, const mull_outgoing *outgoing);
void model_settle(handout *h, const mull_settlement *settlement);
void model_answered(handout *h, int status);

/* What a settlement carries. expect_due says when it should be due; of the other two, one checks
 * and one hashes all of it. */
int64_t expect_due(handout *h, const mull_settlement *settlement);
void expect_written(handout *h, const mull_settlement *settlement);
uint64_t settlement_hash(const mull_settlement *settlement);
int64_t settlement_number(const mull_settlement *settlement, const char *header); /* -1: none */
int64_t settlement_moment(const mull_settlement *settlement, const char *header); /* 0: none */

/* are_words compares a queue or a note with what it should be, or, where an override's could not be
 * kept, with what is there `without` it. */
int are_words(const handout *h, const char *found, const char *expected, const char *without);
int same_text(const char *a, const char *b);

/* model_parked counts what a reader was handed and its broker refuses to settle. */
uint32_t model_parked(const reader *r);

/* model_refused: it was told that a settlement can never be, and has looked. */
void model_refused(handout *h);
void model_event(process *p, const mull_event *told);

/* model_heard: the notify of a generation is called, and fails or doesn't. */
void model_heard(uint64_t number, const mull_event *heard, int fails);
void model_lost(handout *h);
void model_released(handout *h);
void model_turned(process *p);
void no_candidate_waits(process *p);
void model_emptied(const process *p); /* it stops, since nothing is left */
void model_stopped(process *p);
void model_end(sim *s);

/* model_next gives the hand-outs of a process: NULL begins, and ends. */
handout *model_next(const process *p, const handout *after);

/* model_stuck says whether a hand-out goes no further until its process ends. */
int model_stuck(const handout *h);

/* model_is_stuck says whether a process has one of those, or a queue that it doesn't read. */
int model_is_stuck(const process *p);

/* deliveries_of is what its engine counts. */
int64_t deliveries_of(const handout *h);

handout *handout_of(const mull_message *m);

/* take_id keeps an id that may be the kept one already. */
void take_id(char kept[36], const char *id);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* ---- All of it ------------------------------------------------------------------------------- */

/* faults are chances in a thousand. */
typedef struct faults {
    uint32_t settle_fails, publish_fails, slow, loses, forgets_hold, drops;
    uint32_t no_memory;
    uint32_t kill_inside; /* the process dies right in what it does */
    uint32_t mute, twice; /* questions that are never answered, or once too often */
    uint32_t refuses;     /* a queue isn't read until a person acts */
    uint32_t in_slot;     /* what is asked is answered within the slot that asks */
} faults;

/* habits are how its handlers are; in a hundred. */
typedef struct habits {
    uint32_t fails, at_once, sends, careless, stuck;
} habits;

/* COUNTED is what there is to happen, and is to happen in a test. */
#define COUNTED(X)                                                                                 \
    X(calls)                                                                                       \
    X(failures)                                                                                    \
    X(timeouts)                                                                                    \
    X(retries)                                                                                     \
    X(redeliveries)                                                                                \
    X(dead_letters)                                                                                \
    X(discards)                                                                                    \
    X(given_back)                                                                                  \
    X(abandoned)                                                                                   \
    X(acknowledged)                                                                                \
    X(sent)                                                                                        \
    X(lost)                                                                                        \
    X(candidates)                                                                                  \
    X(in_company)                                                                                  \
    X(crash_verdicts)                                                                              \
    X(too_big)                                                                                     \
    X(parts)                                                                                       \
    X(limits)                                                                                      \
    X(settles_failed)                                                                              \
    X(refused)                                                                                     \
    X(redirected)                                                                                  \
    X(parked)                                                                                      \
    X(midways)                                                                                     \
    X(unanswered)                                                                                  \
    X(pauses)                                                                                      \
    X(renewals)                                                                                    \
    X(removals)                                                                                    \
    X(additions)                                                                                   \
    X(mutes)                                                                                       \
    X(expired)                                                                                     \
    X(twice)                                                                                       \
    X(in_slot)                                                                                     \
    X(late_connects)                                                                               \
    X(sources_refused)                                                                             \
    X(handouts_too_many)                                                                           \
    X(strays)                                                                                      \
    X(unwritten)                                                                                   \
    X(kills)                                                                                       \
    X(stops)                                                                                       \
    X(closes)                                                                                      \
    X(reloads)                                                                                     \
    X(put_back)                                                                                    \
    X(reloads_refused)                                                                             \
    X(starts_refused)                                                                              \
    X(halves)                                                                                      \
    X(late_ends)                                                                                   \
    X(emptied)                                                                                     \
    X(depths)                                                                                      \
    X(heard)                                                                                       \
    X(heard_before)                                                                                \
    X(heard_old)                                                                                   \
    X(limits_started)                                                                              \
    X(limits_ended)                                                                                \
    X(limits_dropped)                                                                              \
    X(probes)                                                                                      \
    X(ramped)                                                                                      \
    X(paced)                                                                                       \
    X(kept)                                                                                        \
    X(kept_whole)                                                                                  \
    X(kept_not)                                                                                    \
    X(deadlines)                                                                                   \
    X(put_back_by_limit)                                                                           \
    X(retries_put_back)                                                                            \
    X(held_retries)                                                                                \
    X(gated)                                                                                       \
    X(notes)                                                                                       \
    X(notes_refused)                                                                               \
    X(notes_lost)                                                                                  \
    X(notes_of_deaths)                                                                             \
    X(journal_read)                                                                                \
    X(out_of_attempts)                                                                             \
    X(out_of_time)                                                                                 \
    X(overridden)                                                                                  \
    X(overrides_failed)                                                                            \
    X(fallbacks)                                                                                   \
    X(words_short)                                                                                 \
    X(old_generations)

typedef struct totals {
#define FIELD(name) uint64_t name;
    COUNTED(FIELD)
#undef FIELD
} totals;

struct sim {
    kernel k; /* first */
    int over; /* every message came to its end */
    faults faults;
    habits habits;
    broker brokers[BROKERS];
    int broker_count;
    process processes[PROCESSES];
    int process_count;
    message **messages;
    int message_count, message_room;
    mull__list generations;
    counting_allocator counting_allocator,
        table_allocator; /* the engines', and the model's tables' */
    mull__list jobs;     /* calls that their handlers haven't ended, or end twice */
    int publishes_left;
    int64_t published_ms; /* the last time that somebody put a message into a broker */
    totals *totals;
};

/* simulate runs one seed to its end. */
void simulate(sim *s, uint64_t seed, totals *sums, int tell);

#endif
