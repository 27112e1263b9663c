/* rate_limit.c: see rate_limit.h. */
#include "rate_limit.h"

#include "base/alloc.h"

#include <string.h>

enum {
    WINDOW_STEPS = 1000, /* in so many the window is divided: what is noted of it is bounded */
    JITTER_PART = 4      /* a wait is longer by up to a quarter, never shorter */
};

/* ---- What failed in a row -------------------------------------------------------------------- */

/* note_moment keeps the last `after` failures' moments. */
static int note_moment(mull__rate *rate, const mull__rate_limit *limit, int64_t now_ms)
{
    size_t most = (size_t)limit->after;
    if (limit->within_ms == MULL__OFF)
        return 0;
    if (rate->row_count >= most) { /* more than `most` after a reload */
        size_t dropped = rate->row_count - most + 1;
        memmove(rate->row_ms, rate->row_ms + dropped, (most - 1) * sizeof *rate->row_ms);
        rate->row_count = most - 1;
    } else {
        int64_t *grown =
            mull__grow(rate->allocator, rate->row_ms, rate->row_count + 1, sizeof *grown);
        if (!grown)
            return MULL_ENOMEM;
        rate->row_ms = grown;
    }
    rate->row_ms[rate->row_count++] = now_ms;
    return 0;
}

/* note_message keeps the last `messages` different messages that failed. */
static int note_message(mull__rate *rate, const mull__rate_limit *limit, uint64_t id,
                        int64_t now_ms)
{
    size_t most = (size_t)limit->messages, at = 0;
    if (most <= 1)
        return 0;
    while (at < rate->message_count && rate->messages[at].id != id)
        at++;
    if (at == rate->message_count && at < most) {
        mull__failed_message *grown =
            mull__grow(rate->allocator, rate->messages, at + 1, sizeof *grown);
        if (!grown)
            return MULL_ENOMEM;
        rate->messages = grown;
        rate->message_count++;
    } else if (at == rate->message_count) {
        at = 0; /* the one that failed longest ago makes room */
    }
    memmove(rate->messages + at, rate->messages + at + 1,
            (rate->message_count - at - 1) * sizeof *rate->messages);
    rate->messages[rate->message_count - 1] = (mull__failed_message){id, now_ms};
    return 0;
}

/* enough_messages: so many different ones failed since `from_ms`. */
static int enough_messages(const mull__rate *rate, const mull__rate_limit *limit, int64_t from_ms)
{
    size_t least = (size_t)limit->messages;
    return least <= 1 || (rate->message_count >= least &&
                          rate->messages[rate->message_count - least].last_ms >= from_ms);
}

static void forget_row(mull__rate *rate)
{
    rate->row = 0;
    rate->row_count = rate->message_count = 0;
}

static int row_starts(mull__rate *rate, const mull__rate_limit *limit, const mull__rate_call *call)
{
    if (!call->failed || rate->row == 0) /* of a failure that wasn't counted some may be noted */
        forget_row(rate);
    if (!call->failed)
        return 0;
    if (note_moment(rate, limit, call->now_ms) != 0 ||
        note_message(rate, limit, call->message, call->now_ms) != 0)
        return 0;
    rate->row++;
    size_t after = (size_t)limit->after;
    if (limit->within_ms == MULL__OFF)
        return rate->row >= limit->after && enough_messages(rate, limit, INT64_MIN);
    int64_t from_ms = call->now_ms - limit->within_ms;
    return rate->row_count >= after && rate->row_ms[rate->row_count - after] >= from_ms &&
           enough_messages(rate, limit, from_ms);
}

/* ---- What part failed ------------------------------------------------------------------------ */

static void pass_window(mull__rate *rate, int64_t from_ms)
{
    while (rate->window_first < rate->window_end &&
           rate->window[rate->window_first].at_ms <= from_ms) {
        rate->window_calls -= rate->window[rate->window_first].calls;
        rate->window_failed -= rate->window[rate->window_first].failed;
        rate->window_first++;
    }
}

/* make_room moves what is left to the beginning, or doubles the room. */
static int make_room(mull__rate *rate)
{
    size_t count = rate->window_end - rate->window_first;
    if (rate->window_end < rate->window_room)
        return 0;
    if (rate->window_first <= rate->window_room / 2) {
        size_t room = rate->window_room ? rate->window_room * 2 : 4;
        mull__ended_calls *grown = mull__grow(rate->allocator, rate->window, room, sizeof *grown);
        if (!grown)
            return MULL_ENOMEM;
        rate->window = grown;
        rate->window_room = room;
    }
    memmove(rate->window, rate->window + rate->window_first, count * sizeof *rate->window);
    rate->window_first = 0;
    rate->window_end = count;
    return 0;
}

static int note_call(mull__rate *rate, const mull__rate_limit *limit, const mull__rate_call *call)
{
    int64_t step_ms = limit->window_ms > WINDOW_STEPS ? limit->window_ms / WINDOW_STEPS : 1;
    mull__ended_calls *last =
        rate->window_end > rate->window_first ? &rate->window[rate->window_end - 1] : NULL;
    if (!last || call->now_ms - last->at_ms >= step_ms) {
        if (make_room(rate) != 0)
            return MULL_ENOMEM;
        last = &rate->window[rate->window_end++];
        *last = (mull__ended_calls){.at_ms = call->now_ms};
    }
    last->calls++;
    last->failed += call->failed != 0;
    rate->window_calls++;
    rate->window_failed += call->failed != 0;
    return 0;
}

static int window_starts(mull__rate *rate, const mull__rate_limit *limit,
                         const mull__rate_call *call)
{
    int64_t from_ms = call->now_ms - limit->window_ms;
    pass_window(rate, from_ms);
    if (note_call(rate, limit, call) != 0)
        return 0;
    if (!call->failed || note_message(rate, limit, call->message, call->now_ms) != 0)
        return 0;
    return rate->window_calls >= (uint64_t)limit->least &&
           (double)rate->window_failed / (double)rate->window_calls >= limit->ratio &&
           enough_messages(rate, limit, from_ms + 1);
}

/* ---- While it is in force -------------------------------------------------------------------- */

/* put_off sets when the next probe may begin, no earlier than it was. */
static void put_off(mull__rate *rate, const mull__rate_call *call)
{
    int64_t wait_ms = rate->wait_ms > call->hint_ms ? rate->wait_ms : call->hint_ms;
    wait_ms += (int64_t)(call->chance % ((uint64_t)wait_ms / JITTER_PART + 1));
    if (rate->next_ms < call->now_ms + wait_ms)
        rate->next_ms = call->now_ms + wait_ms;
}

static void start(mull__rate *rate, const mull__rate_limit *limit, const mull__rate_call *call)
{
    mull__rate_free(rate);
    rate->limited = 1;
    rate->ramp_ms = 0;
    rate->since_ms = call->now_ms;
    rate->wait_ms = limit->wait_ms;
    rate->next_ms = call->now_ms;
    rate->successes = 0;
    rate->probes = 0;
    put_off(rate, call);
}

/* lengthen: the wait doubles from one probe to the next, within the numbers of the policy in force.
 */
static void lengthen(mull__rate *rate, const mull__rate_limit *limit, int probed)
{
    int64_t most_ms = limit->max_wait_ms, wait_ms = rate->wait_ms;
    if (probed)
        wait_ms = wait_ms > most_ms / 2 ? most_ms : 2 * wait_ms;
    wait_ms = wait_ms < most_ms ? wait_ms : most_ms;
    rate->wait_ms = wait_ms > limit->wait_ms ? wait_ms : limit->wait_ms;
}

static mull__rate_change ended_limited(mull__rate *rate, const mull__rate_limit *limit,
                                       const mull__rate_call *call)
{
    int probed = rate->probing;
    rate->probing = 0;
    if (!call->failed) {
        if (++rate->successes < limit->successes)
            return MULL__RATE_SAME;
        mull__rate_end(rate, limit, call->now_ms);
        return MULL__RATE_ENDS;
    }
    rate->successes = 0;
    lengthen(rate, limit, probed);
    put_off(rate, call);
    return MULL__RATE_SAME;
}

mull__rate_change mull__rate_ended(mull__rate *rate, const mull__rate_limit *limit,
                                   const mull__rate_call *call)
{
    if (rate->limited)
        return ended_limited(rate, limit, call);
    if (call->now_ms - rate->ramp_from_ms >= rate->ramp_ms)
        rate->ramp_ms = 0; /* it is over */
    if (limit->ratio > 0 ? !window_starts(rate, limit, call) : !row_starts(rate, limit, call))
        return MULL__RATE_SAME;
    start(rate, limit, call);
    return MULL__RATE_STARTS;
}

void mull__rate_probes(mull__rate *rate, uint64_t message)
{
    rate->probing = 1;
    rate->probes++;
    rate->last_probe = message;
}

/* ---- Afterwards ------------------------------------------------------------------------------ */

void mull__rate_end(mull__rate *rate, const mull__rate_limit *limit, int64_t now_ms)
{
    rate->limited = rate->probing = 0;
    rate->ramp_from_ms = now_ms;
    rate->ramp_ms = limit->ramp_ms;
}

/* The k-th handler is allowed from ceil(k T / concurrency) on. */
uint32_t mull__rate_handlers(const mull__rate *rate, int64_t now_ms, uint32_t concurrency,
                             int64_t *more_ms)
{
    int64_t passed_ms = now_ms - rate->ramp_from_ms;
    if (passed_ms >= rate->ramp_ms)
        return concurrency;
    double whole = (double)rate->ramp_ms, all = (double)concurrency;
    int64_t allowed = (int64_t)(all * (double)passed_ms / whole);
    allowed = allowed > 1 ? allowed : 1;
    int64_t next_ms = (int64_t)((double)(allowed + 1) * whole / all);
    *more_ms = rate->ramp_from_ms + (next_ms > passed_ms ? next_ms : passed_ms + 1);
    return (uint32_t)allowed;
}

void mull__rate_free(mull__rate *rate)
{
    mull__free(rate->allocator, rate->row_ms);
    mull__free(rate->allocator, rate->messages);
    mull__free(rate->allocator, rate->window);
    rate->row_ms = NULL;
    rate->messages = NULL;
    rate->window = NULL;
    rate->window_first = rate->window_end = rate->window_room = 0;
    rate->window_calls = rate->window_failed = 0;
    forget_row(rate);
}
