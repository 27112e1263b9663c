/* limiting.h: what `rate_limit` and `limit` say of a consumer's calls; limits.md is the contract.
 *
 *   the policy in force ── mull__limits_refresh ──> a consumer's statements, each with its states
 *   may a call begin?   consumer: mull__limits_why_not ── message: mull__limits_gate
 *   a call begins, ends, is let go of: mull__limits_began, _ended, _left
 *
 * A statement without `per` has one state, one with `per` a state for each value. On the loop's
 * thread. */
#ifndef MULL__LIMITING_H
#define MULL__LIMITING_H

#include "engine_state.h"
#include "limit_values.h"

/* mull__limit is one statement in force. */
typedef struct mull__limit mull__limit;
struct mull__limit {
    const mull__rate_limit *rate;  /* either this, */
    const mull__call_limit *calls; /* or this, */
    int64_t step_ns, early_ns;     /* with its mull__pace_step and mull__pace_early */
    mull__limit_state *whole;      /* without `per` */
    mull__limit_values values;     /* with `per` */
    mull_ticket found_of;          /* the message whose value was looked up last; 0: none, */
    mull__limit_state *found;      /* and what that found, NULL too */
    mull__limit *next;             /* of the paces of values */
};

struct mull__limits {
    size_t count, rates; /* statements, of which the first ones are rate_limit's */
    int busy;            /* a rate_limit notes more than failures in a row, or has noted some: else
                            no call that begins or succeeds matters to them */
    int whole_busy;      /* so has the one without `per` */
    int starts;          /* one does: the retries that it holds up have their slots still */
    mull__limit *pace, *value_paces; /* the statement of `limit` without `per`, NULL: there is none,
                                        and those with it */
    mull__limit *items[];
};

static inline const mull__per *mull__limit_per(const mull__limit *limit)
{
    return limit->rate ? &limit->rate->per : &limit->calls->per;
}

/* mull__limits_refresh takes over the policy in force, where it is another one. */
void mull__limits_refresh(mull_engine *engine);
void mull__limits_free(mull__consumer *c);

/* mull__limits_end ends those that are in force, with their events: their consumer is removed. */
void mull__limits_end(mull__consumer *c);

/* mull__limits_look_again: what waits here for a value, or (`limit` NULL, and "") for any, needn't
 * wait for the moment that it was given. */
void mull__limits_look_again(mull__consumer *c, const mull__limit *limit, const char *value);

/* mull__limits_look sets `busy` and `whole_busy`. */
void mull__limits_look(mull__limits *limits);

/* mull__limits_why_not says why no message of a consumer may be called now, MULL_WHY_CALLED where
 * one may; and until when, INT64_MAX where a handler's end is waited for. */
mull_why_not mull__limits_closed(const mull__consumer *c, int64_t *until_ms);

/* mull__limits_open: one may, by a moment that is past. No clock is read for that. */
static inline int mull__limits_open(const mull__consumer *c)
{
    const mull__limits *limits = c->limits;
    return !limits ||
           (!limits->whole_busy &&
            (!limits->pace || mull__pace_open(&limits->pace->whole->pace, limits->pace->early_ns,
                                              c->engine->active_ms)));
}

static inline mull_why_not mull__limits_why_not(const mull__consumer *c, int64_t *until_ms)
{
    return mull__limits_open(c) ? MULL_WHY_CALLED : mull__limits_closed(c, until_ms);
}

/* mull__limits_wake has the loop look again once a call may begin. */
void mull__limits_wake(mull__consumer *c);

/* mull__limits_probes: one call at a time is let through, and which message's was the last. */
int mull__limits_probe_only(const mull__consumer *c, uint64_t *last_probe);

static inline int mull__limits_probes(const mull__consumer *c, uint64_t *last_probe)
{
    return c->limits && c->limits->whole_busy && mull__limits_probe_only(c, last_probe);
}

/* mull__limits_soon is how many calls `limit` lets begin soon, at most `most`. */
uint64_t mull__limits_soon(const mull__consumer *c, uint64_t most);

typedef enum mull__gate {
    MULL__GATE_OPEN,
    MULL__GATE_WAIT, /* here, until then */
    MULL__GATE_BACK  /* in its queue, until then */
} mull__gate;

/* mull__limits_gate says whether a message may be called now as far as its values go, or until when
 * it has to wait, on the monotonic clock. That moment is its own from then on. */
mull__gate mull__limits_gate_of(mull__delivery *d, int64_t *until_ms);

static inline mull__gate mull__limits_gate(mull__delivery *d, int64_t *until_ms)
{
    return d->consumer->limits ? mull__limits_gate_of(d, until_ms) : MULL__GATE_OPEN;
}

/* mull__limits_count: a call that failed (or succeeded, NULL) matters to a limit. */
static inline int mull__limits_count(const mull__consumer *c, const mull_error *error)
{
    return c->limits && (error || c->limits->busy);
}

/* These are asked where there are limits. */
void mull__limits_began(const mull__delivery *d);

/* mull__limits_ended takes in a call that succeeded (NULL) or failed. 1: a limit keeps the failure,
 * until `until_ms`. */
int mull__limits_ended(mull__delivery *d, const mull_error *error, int64_t *until_ms);

/* mull__limits_left: a handler is no longer at work, whatever its end meant. */
void mull__limits_left(const mull__delivery *d);

/* mull__limits_hold says where its retry waits: without a slot, or in its queue, where a limit
 * holds it up. */
mull__gate mull__limits_hold(const mull__delivery *d);

/* mull__limits_go_back: at its turn it would go back, or wait. */
int mull__limits_go_back(const mull__delivery *d);

#endif
