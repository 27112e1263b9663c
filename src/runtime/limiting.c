/* limiting.c: which calls limits let begin, and what they make of those that end; see limiting.h.
 */
#include "limiting.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "limit_events.h"
#include "policy/delay.h"
#include "timers.h"
#include "transitions.h"
#include "wire/headers.h"

#include <string.h>

enum {
    GATE_MS = 1000,   /* what has to wait for longer waits in its queue */
    AHEAD_MS = 60000, /* so far ahead messages of a value come one for each probe, ... */
    APART_MS = 10     /* ... and further ones so far apart */
};

/* ---- Values ---------------------------------------------------------------------------------- */

/* value_of gives a message's value; NULL: the limit isn't for it. */
static const char *value_of(const mull__limit *limit, const mull__delivery *d)
{
    const mull__per *per = mull__limit_per(limit);
    switch (per->kind) {
    case MULL__PER_KEY:
        return d->message.key;
    case MULL__PER_TYPE:
        return d->message.type;
    case MULL__PER_HEADER:
        return mull__header_find(d->message.headers, d->message.header_count, per->header);
    default:
        return NULL;
    }
}

static int is_found(const mull__limit *limit, const mull__delivery *d)
{
    return limit->found_of == d->ticket.number;
}

/* found notes what was found of a message's value: a call asks for it several times in a row. */
static mull__limit_state *found(mull__limit *limit, const mull__delivery *d,
                                mull__limit_state *state)
{
    limit->found_of = d->ticket.number;
    limit->found = state;
    return state;
}

/* state_of gives what is known of a message's value, or of its consumer; NULL: nothing. */
static mull__limit_state *state_of(mull__limit *limit, const mull__delivery *d)
{
    if (limit->whole)
        return limit->whole;
    if (is_found(limit, d))
        return limit->found;
    const char *value = value_of(limit, d);
    return found(limit, d, value ? mull__value_find(&limit->values, value) : NULL);
}

static int is_at_work(const mull__delivery *d)
{
    return d->call != 0;
}

static int is_gated(const mull__delivery *d)
{
    return d->gated;
}

/* count_of counts a consumer's messages of a value of which something is so. */
static uint32_t count_of(const mull__limit *limit, mull__consumer *c, const char *value,
                         int (*is)(const mull__delivery *d))
{
    uint32_t count = 0;
    for (mull__delivery *d = NULL; (d = mull__next_delivery(c->engine, d));) {
        const char *other = d->consumer == c && is(d) ? value_of(limit, d) : NULL;
        count += other && strcmp(other, value) == 0;
    }
    return count;
}

void mull__limits_look_again(mull__consumer *c, const mull__limit *limit, const char *value)
{
    for (mull__delivery *d = NULL; (d = mull__next_delivery(c->engine, d));) {
        const char *other = d->consumer != c || !d->gated ? NULL : limit ? value_of(limit, d) : "";
        if (other && strcmp(other, value) == 0)
            mull__timer_set(c->engine, &d->timer, 0, d->timer.fire, d);
    }
}

static void forget(mull__limit *limit, const mull__consumer *c, mull__limit_state *state)
{
    limit->found_of = 0;
    mull__value_drop(&limit->values, &c->engine->allocator, state);
}

static int has_failed(const mull__rate *rate)
{
    return rate->limited || rate->row > 0 || rate->window_failed > 0;
}

static void drop_too_many(mull__limit *limit, mull__consumer *c)
{
    mull__limit_state *state;
    while ((state = mull__value_too_many(&limit->values))) {
        if (limit->rate && has_failed(&state->rate))
            mull__limit_dropped(c, limit->rate, state);
        mull__limits_look_again(c, limit, state->value);
        forget(limit, c, state);
    }
}

/* state_made is state_of, and makes it. NULL: the limit isn't for the message, or there is no
 * memory. */
static mull__limit_state *state_made(mull__limit *limit, const mull__delivery *d)
{
    mull__limit_state *state = state_of(limit, d);
    const char *value = state || limit->whole ? NULL : value_of(limit, d);
    if (!value)
        return state;
    state = mull__value_add(&limit->values, &d->engine->allocator, value);
    if (!state)
        return NULL;
    found(limit, d, state);
    if (limit->rate) /* a call that just ended is let go of afterwards */
        state->at_work = count_of(limit, d->consumer, value, is_at_work) + (d->call == 0);
    drop_too_many(limit, d->consumer);
    return state;
}

/* ---- The consumer's gate --------------------------------------------------------------------- */

static void later(int64_t *until_ms, int64_t moment_ms)
{
    if (*until_ms < moment_ms)
        *until_ms = moment_ms;
}

/* closed_by says until when a statement without `per` lets no call begin; MULL_WHY_CALLED: it does.
 */
static mull_why_not closed_by(const mull__limit *limit, const mull__consumer *c, int64_t now_ms,
                              int64_t *until_ms)
{
    const mull__rate *rate = &limit->whole->rate;
    if (limit->calls) {
        int64_t ready_ms = mull__pace_ready(&limit->whole->pace, limit->calls);
        later(until_ms, ready_ms);
        return ready_ms > now_ms ? MULL_WHY_RATE : MULL_WHY_CALLED;
    }
    if (rate->limited) {
        later(until_ms, c->calls > 0 ? INT64_MAX : rate->next_ms);
        return c->calls > 0 || rate->next_ms > now_ms ? MULL_WHY_LIMITED : MULL_WHY_CALLED;
    }
    int64_t more_ms = 0;
    uint32_t most = c->options.concurrency;
    uint32_t handlers = mull__rate_handlers(rate, now_ms, most, &more_ms);
    if (handlers == most || c->calls < handlers)
        return MULL_WHY_CALLED;
    later(until_ms, more_ms);
    return MULL_WHY_RAMP;
}

mull_why_not mull__limits_closed(const mull__consumer *c, int64_t *until_ms)
{
    mull_why_not first = MULL_WHY_CALLED;
    *until_ms = 0;
    int64_t now_ms = mull__engine_now(c->engine);
    for (size_t i = 0; i < c->limits->count; i++) {
        const mull__limit *limit = c->limits->items[i];
        mull_why_not why = limit->whole ? closed_by(limit, c, now_ms, until_ms) : MULL_WHY_CALLED;
        first = first == MULL_WHY_CALLED ? why : first;
    }
    return first;
}

static void on_open(void *data)
{
    mull__engine_mark_posted(data);
}

void mull__limits_wake(mull__consumer *c)
{
    int64_t until_ms;
    if (mull__limits_why_not(c, &until_ms) == MULL_WHY_CALLED || until_ms == INT64_MAX)
        mull__engine_cancel(c->engine, &c->limits_timer);
    else
        mull__timer_set(c->engine, &c->limits_timer, until_ms - mull__engine_now(c->engine),
                        on_open, c->engine);
}

int mull__limits_probe_only(const mull__consumer *c, uint64_t *last_probe)
{
    for (size_t i = 0; i < c->limits->rates; i++) {
        const mull__limit_state *whole = c->limits->items[i]->whole;
        if (whole && whole->rate.limited) {
            *last_probe = whole->rate.probes > 0 ? whole->rate.last_probe : 0;
            return 1;
        }
    }
    return 0;
}

uint64_t mull__limits_soon(const mull__consumer *c, uint64_t most)
{
    const mull__limit *pace = c->limits ? c->limits->pace : NULL;
    return pace
               ? mull__pace_soon(&pace->whole->pace, pace->calls, mull__engine_now(c->engine), most)
               : most;
}

/* ---- A message's gate ------------------------------------------------------------------------ */

/* book gives a moment of its own to a message of a limited value: one for each probe. Those for
 * which that would be too far ahead look again in between. So what was put back is there again soon
 * after the limit's end: in as long as the limit lasted, or AHEAD_MS, or as many messages take. */
static int64_t book(mull__limit_state *state, int64_t now_ms)
{
    const mull__rate *rate = &state->rate;
    if (state->first_ms < rate->next_ms) { /* nobody is there for the next probe */
        state->first_ms = rate->next_ms;
        later(&state->last_ms, rate->next_ms);
        return rate->next_ms;
    }
    int64_t lasts_ms = now_ms - rate->since_ms;
    int64_t ahead_ms = lasts_ms > AHEAD_MS ? lasts_ms : AHEAD_MS;
    later(&state->last_ms, now_ms); /* a probe may take longer than its wait */
    int64_t next_ms = mull__later(state->last_ms, rate->wait_ms);
    if (next_ms <= now_ms + ahead_ms) {
        state->last_ms = next_ms;
        return next_ms;
    }
    later(&state->tail_ms, now_ms + ahead_ms / 2);
    state->tail_ms += APART_MS;
    return state->tail_ms;
}

/* few_held: a retry stays here as long as few others do, since in its queue its round would begin
 * anew; more of them would take the room of messages that aren't limited. */
static int few_held(const mull__delivery *d)
{
    return d->consumer->held - (uint32_t)d->held < d->consumer->options.prefetch;
}

/* rate_gate: during a ramp what finds no handler comes again by chance until the ramp is over. */
static mull__gate rate_gate(mull__limit_state *state, const mull__delivery *d, int64_t *until_ms)
{
    const mull__rate *rate = &state->rate;
    int64_t now_ms = mull__engine_now(d->engine);
    if (!rate->limited) {
        int64_t more_ms;
        uint32_t most = d->consumer->options.concurrency;
        uint32_t handlers = mull__rate_handlers(rate, now_ms, most, &more_ms);
        if (handlers == most || state->at_work < handlers)
            return MULL__GATE_OPEN;
        int64_t left_ms = rate->ramp_from_ms + rate->ramp_ms - now_ms;
        later(until_ms, now_ms + 1 + (int64_t)(mull__engine_chance(d->engine) % (uint64_t)left_ms));
        return MULL__GATE_BACK;
    }
    if (state->at_work == 0 && rate->next_ms <= now_ms)
        return MULL__GATE_OPEN;
    if (d->state == MULL__PAUSING && few_held(d)) /* at the next probe, or to look again */
        later(until_ms, rate->next_ms > now_ms ? rate->next_ms : now_ms + rate->wait_ms);
    else
        later(until_ms, book(state, now_ms));
    return MULL__GATE_BACK;
}

/* pace_gate: those that wait here go first, and what goes back is due behind all of them. */
static mull__gate pace_gate(const mull__limit *limit, mull__limit_state *state,
                            const mull__delivery *d, int64_t *until_ms)
{
    int64_t now_ms = mull__engine_now(d->engine);
    int64_t ready_ms = mull__pace_ready(&state->pace, limit->calls);
    if (ready_ms <= now_ms)
        return MULL__GATE_OPEN;
    int64_t interval_ms = mull__pace_interval(limit->calls);
    int64_t ahead_ms = interval_ms * count_of(limit, d->consumer, state->value, is_gated);
    if (ready_ms + ahead_ms - now_ms <= GATE_MS) {
        later(until_ms, ready_ms);
        return MULL__GATE_WAIT;
    }
    int64_t behind_ms = state->last_ms > now_ms ? state->last_ms + interval_ms : 0;
    state->last_ms = behind_ms > ready_ms + ahead_ms ? behind_ms : ready_ms + ahead_ms;
    later(until_ms, state->last_ms);
    return MULL__GATE_BACK;
}

/* first_of leaves out the statements of rate_limit, where none has a say. */
static size_t first_of(const mull__limits *limits)
{
    return limits->busy ? 0 : limits->rates;
}

MULL__NOINLINE static mull__gate gate_of(mull__delivery *d, int64_t *until_ms)
{
    mull__consumer *c = d->consumer;
    mull__gate gate = MULL__GATE_OPEN;
    *until_ms = 0;
    for (size_t i = first_of(c->limits); i < c->limits->count; i++) {
        mull__limit *limit = c->limits->items[i];
        mull__limit_state *state = limit->whole ? NULL : state_of(limit, d);
        if (!state)
            continue;
        mull__gate of =
            limit->rate ? rate_gate(state, d, until_ms) : pace_gate(limit, state, d, until_ms);
        gate = of > gate ? of : gate;
    }
    int stays = d->state == MULL__PAUSING && few_held(d);
    return gate == MULL__GATE_BACK && stays ? MULL__GATE_WAIT : gate;
}

/* is_in_time: no rate_limit knows a value of the message, and each may be called by a moment that
 * is past. */
static int is_in_time(const mull__delivery *d)
{
    const mull__limits *limits = d->consumer->limits;
    for (size_t i = first_of(limits); i < limits->rates; i++)
        if (!limits->items[i]->whole && state_of(limits->items[i], d))
            return 0;
    for (mull__limit *limit = limits->value_paces; limit; limit = limit->next) {
        const mull__limit_state *state = state_of(limit, d);
        if (state && !mull__pace_open(&state->pace, limit->early_ns, d->engine->active_ms))
            return 0;
    }
    return 1;
}

mull__gate mull__limits_gate_of(mull__delivery *d, int64_t *until_ms)
{
    return is_in_time(d) ? MULL__GATE_OPEN : gate_of(d, until_ms);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

MULL__NOINLINE static void rates_begin(mull__limits *limits, const mull__delivery *d)
{
    for (size_t i = 0; i < limits->rates; i++) {
        mull__limit_state *state = state_of(limits->items[i], d);
        if (!state)
            continue;
        state->at_work++;
        if (state->rate.limited)
            mull__rate_probes(&state->rate, d->chance);
    }
}

/* value_begins: its pace was looked up at the gate, mostly. */
static void value_begins(mull__limit *limit, const mull__delivery *d)
{
    int known = is_found(limit, d) && limit->found;
    mull__limit_state *state = known ? limit->found : state_made(limit, d);
    if (!state)
        return;
    mull__pace_move(&state->pace, limit->step_ns, d->called_ms);
    if (limit->values.counted.count > MULL__VALUES_COUNTED / 2) /* else none is dropped for long */
        mull__value_touch(&limit->values, state, 0);
}

void mull__limits_began(const mull__delivery *d)
{
    mull__limits *limits = d->consumer->limits;
    if (limits->busy)
        rates_begin(limits, d);
    if (limits->pace)
        mull__pace_move(&limits->pace->whole->pace, limits->pace->step_ns, d->called_ms);
    for (mull__limit *limit = limits->value_paces; limit; limit = limit->next)
        value_begins(limit, d);
}

void mull__limits_left(const mull__delivery *d)
{
    mull__limits *limits = d->consumer->limits;
    for (size_t i = first_of(limits); i < limits->rates; i++) {
        mull__limit *limit = limits->items[i];
        mull__limit_state *state = state_of(limit, d);
        if (!state)
            continue;
        state->at_work -= state->at_work > 0;
        state->rate.probing &= (limit->whole ? d->consumer->calls : state->at_work) > 0;
    }
}

static int is_busy(const mull__limit *limit)
{
    const mull__rate *rate = limit->whole ? &limit->whole->rate : NULL;
    if (limit->rate->ratio > 0 || !rate)
        return limit->rate->ratio > 0 || limit->values.counted.count + limit->values.limited.count;
    return rate->row > 0 || rate->limited || rate->ramp_ms > 0;
}

void mull__limits_look(mull__limits *limits)
{
    limits->busy = limits->whole_busy = 0;
    for (size_t i = 0; i < limits->rates; i++) {
        int busy = is_busy(limits->items[i]);
        limits->busy |= busy;
        limits->whole_busy |= busy && limits->items[i]->whole;
    }
}

static int counts(const mull__delivery *d, const mull__rate_limit *rate, const mull_error *error)
{
    const mull__table *table = mull__generation_table(d->consumer->generation);
    return !error || mull__rate_limit_counts(table, rate, error);
}

static mull__rate_call call_of(const mull__delivery *d, const mull__rate_limit *rate,
                               const mull_error *error)
{
    mull__rate_call call = {.now_ms = mull__engine_now(d->engine), .message = d->chance};
    if (!error)
        return call;
    call.failed = 1;
    call.chance = mull__engine_chance(d->engine);
    call.hint_ms = rate->hint ? mull__hint_ms(rate->hint, error) : 0;
    return call;
}

static void remember_error(mull_engine *engine, mull__limit_state *state, const mull_error *error)
{
    mull__free(&engine->allocator, state->error_type);
    state->error_type = mull__strdup(&engine->allocator, error->type);
}

static void changed(mull__delivery *d, mull__limit *limit, mull__limit_state *state,
                    mull__rate_change change, const mull_error *error)
{
    mull__consumer *c = d->consumer;
    if (error && state->rate.limited)
        remember_error(c->engine, state, error);
    if (!limit->whole && (error || change == MULL__RATE_ENDS))
        mull__value_touch(&limit->values, state, state->rate.limited);
    if (change == MULL__RATE_STARTS) {
        mull__limit_started(c, limit->rate, state);
        c->limits->starts = 1;
        state->first_ms = 0; /* what an earlier limit put back may come late for a probe */
    } else if (change == MULL__RATE_ENDS) {
        mull__limit_ended(c, limit->rate, state, NULL);
        mull__limits_look_again(c, limit, state->value);
    }
    if (!limit->whole)
        drop_too_many(limit, c);
}

/* is_forgettable: nothing is counted of a value, nothing is due later: it is as if it were new. */
static int is_forgettable(const mull__limit *limit, const mull__limit_state *state, int64_t now_ms)
{
    const mull__rate *rate = &state->rate;
    return limit->rate->ratio == 0 && rate->row == 0 && !rate->limited && rate->ramp_ms == 0 &&
           state->last_ms <= now_ms && state->tail_ms <= now_ms;
}

/* ended_in takes an end into one statement. 1: it keeps the failure. */
static int ended_in(mull__delivery *d, mull__limit *limit, const mull_error *error,
                    int64_t *until_ms)
{
    if (!counts(d, limit->rate, error))
        return 0;
    int notes = error || limit->rate->ratio > 0;
    mull__limit_state *state = notes ? state_made(limit, d) : state_of(limit, d);
    if (!state)
        return 0;
    const mull__rate_call call = call_of(d, limit->rate, error);
    mull__rate_change change = mull__rate_ended(&state->rate, limit->rate, &call);
    int keeps = error && state->rate.limited && limit->rate->keep;
    if (keeps)
        later(until_ms, limit->whole ? state->rate.next_ms : book(state, call.now_ms));
    changed(d, limit, state, change, error);
    if (!error && !limit->whole && is_forgettable(limit, state, call.now_ms))
        forget(limit, d->consumer, state);
    return keeps;
}

int mull__limits_ended(mull__delivery *d, const mull_error *error, int64_t *until_ms)
{
    mull__limits *limits = d->consumer->limits;
    int keeps = 0;
    *until_ms = 0;
    for (size_t i = 0; i < limits->rates; i++)
        keeps |= ended_in(d, limits->items[i], error, until_ms);
    mull__limits_look(limits);
    return keeps;
}

mull__gate mull__limits_hold(const mull__delivery *d)
{
    const mull__limits *limits = d->consumer->limits;
    mull__gate hold = MULL__GATE_OPEN;
    for (size_t i = 0; limits && i < limits->count; i++) {
        mull__limit *limit = limits->items[i];
        const mull__limit_state *state = state_of(limit, d);
        mull__gate of = !state || !state->rate.limited ? MULL__GATE_OPEN
                        : limit->whole                 ? MULL__GATE_WAIT
                                                       : MULL__GATE_BACK;
        hold = of > hold ? of : hold;
    }
    return hold == MULL__GATE_BACK && few_held(d) ? MULL__GATE_WAIT : hold;
}

int mull__limits_go_back(const mull__delivery *d)
{
    const mull__limits *limits = d->consumer->limits;
    int64_t now_ms = limits ? mull__engine_now(d->engine) : 0;
    for (size_t i = 0; limits && i < limits->count; i++) {
        mull__limit *limit = limits->items[i];
        const mull__limit_state *state = limit->whole ? NULL : state_of(limit, d);
        if (!state)
            continue;
        if (limit->calls && !mull__pace_open(&state->pace, limit->early_ns, now_ms))
            return 1;
        if (state->rate.limited && (state->at_work > 0 || state->rate.next_ms > now_ms))
            return 1;
    }
    return 0;
}
