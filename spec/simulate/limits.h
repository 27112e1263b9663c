/* limits.h: what the model knows of rate_limit and limit, of what is written down before a call,
 * and what it takes from the engine. */
#ifndef SIM_LIMITS_H
#define SIM_LIMITS_H

#include "mulligan/transport.h"
#include "policy/resolve.h"

typedef struct sim sim;
typedef struct process process;
typedef struct consumer consumer;
typedef struct handout handout;
typedef struct failing failing;
typedef struct generation generation;

/* ---- What is in force ------------------------------------------------------------------------ */

/* ending is the end of a handler's call that counts for a rate_limit. */
typedef struct ending {
    int64_t at_ms;
    uint64_t message; /* its id's: without one of its own it is another one each time */
    int failed;
} ending;

/* limit_value is what a statement knows of a consumer, or of one value of its `per`. */
typedef struct limit_value {
    struct limit_value *next;
    const char *value; /* "": of a consumer */
    ending *endings;   /* while it isn't in force */
    size_t ending_count, ending_room;
    int unsure; /* its numbers changed, or memory was short, since some of these */
    int limited;
    int64_t since_ms, next_ms, wait_ms, successes;
    mull_call prober; /* 0: none */
    int64_t ramp_ms;  /* 0: it doesn't ramp */
    int64_t ramp_from_ms;
    int64_t even_ns; /* when its next call would begin if all came evenly */
} limit_value;

/* statement is a rate_limit or limit in force. */
typedef struct statement {
    const mull__rate_limit *rate;  /* either this, */
    const mull__call_limit *calls; /* or this */
    limit_value *values;
} statement;

enum { LIMITS_MAX = 8, EXPECTED_MAX = 64 };

/* limit_event is one that the engine has to tell. */
typedef struct limit_event {
    mull_event_kind kind;
    int queue;
    mull__per per;
    const char *value;
} limit_event;

/* in_force gives what a generation says of a hand-out's consumer. */
mull__settings in_force(const handout *h, const generation *g);

/* ---- Limits ---------------------------------------------------------------------------------- */

/* limits_follow takes over the policies by which the engine goes. */
void limits_follow(process *p);

/* limits_policy is what holds for a hand-out's next call. */
mull__settings limits_policy(const handout *h);

/* limits_policy_before is what held before a reload of this very moment. */
mull__settings limits_policy_before(const handout *h);

/* limits_began: a call begins, and may. */
void limits_began(const handout *h, mull_call call);

/* limits_ended: a call failed, or succeeded (NULL). It says whether its failure is kept. */
void limits_ended(handout *h, const failing *f);

/* limits_shut says whether no call of a consumer may begin now, limits_hold whether one of a
 * message's values lets none of it. */
int limits_shut(const consumer *c);
int limits_hold(const handout *h);
int limits_probe(const consumer *c); /* one call at a time */
int limits_paced(const consumer *c); /* it has a pace of its own */
uint32_t limits_soon(const consumer *c, uint32_t most);

/* limits_put_back: a message goes back until a moment of the wall clock, since a value holds it. */
void limits_put_back(const handout *h, int64_t due_ms);
void limits_told(process *p, const mull_event *told);
void limits_turned(process *p);

/* memory_is_short: some was refused just now, so that it isn't known what was done. */
int memory_is_short(const sim *s);

/* ---- The journal ----------------------------------------------------------------------------- */

/* used_up says why the policy in force allows no further call; MULL_REASON_NONE: it does. */
mull_reason used_up(const handout *h);

/* age_now is how old a hand-out's failure is, when it is called or ends. */
int64_t age_now(handout *h);

/* end_unasked is the verdict on a message that may not be called again. */
void end_unasked(handout *h, mull_reason reason);

/* has_to_note: its failed calls, or its first failure, have to be safe before its next call. */
int has_to_note(const handout *h);
void expect_note(handout *h);

/* may_end_unasked, by the policy in force: then a settlement tells the type of the last error. */
int may_end_unasked(const handout *h);
void note_asked(handout *h);

/* notes_go_by_it: a policy came into force before the engine saw which calls have ended. */
void notes_go_by_it(const process *p);
void note_answered(handout *h, int status);

/* account_begun checks a call against all that really was, and counts it. */
void account_begun(handout *h);
void account_failed(const handout *h);
void account_uncounted(const handout *h); /* a call's end counts for nothing */
void account_died(handout *h);            /* a hand-out ends with its owner, its copy still there */
void account_ended(const handout *h);     /* its calls are used up */
void account_anew(const handout *h);

/* model_unasked: the engine has decided to settle it, and there was no memory to ask. */
void model_unasked(handout *h);

/* ---- What the engine knows ------------------------------------------------------------------- */

struct mull__limit_state;

/* view_generation is the policy by which a consumer's limits go; NULL: none yet. */
const generation *view_generation(const consumer *c);

/* view_state is what the engine knows of a value; NULL: nothing. */
const struct mull__limit_state *view_state(const consumer *c, const statement *l,
                                           const char *value);
int view_more_may_come(const consumer *c);     /* the transport is asked for more, since a turn */
int64_t view_more_until_ms(const consumer *c); /* and it may come until then */
int view_held(const handout *h);               /* its retry waits without a slot */
int view_gated(const handout *h);              /* it waits for the pace of its value */
int view_failed_as(const handout *h, const char *type);     /* last */
int view_tells_type(const handout *h);                      /* its settlement does */
int view_settles(const handout *h, mull_settle_kind *kind); /* it is being settled */

#endif
