/* delay.c: see delay.h. No libm: the same on every machine. */
#include "delay.h"

#include <string.h>

#include "field_match.h"

/* What decorrelated jitter remembers: a step follows from so many before it, itself included. */
enum { MEMORY = 1000 };

/* slack is by how much a product may miss the whole millisecond that it means: 100 * 1.1 is
 * 110.00000000000001, and must not become 111. Beyond 10^6 ms it stays a microsecond, which is
 * still far more than doubles lose on the way to 365 days. */
static double slack(double ms)
{
    return ms < 1e6 ? ms * 1e-9 : 1e-3;
}

static int64_t round_down(double ms)
{
    return (int64_t)(ms + slack(ms));
}

static int64_t round_up(double ms)
{
    int64_t whole = (int64_t)ms;
    return ms - (double)whole > slack(ms) ? whole + 1 : whole;
}

/* power is factor^exponent; factor >= 1, so that it grows to infinity and no further. */
static double power(double factor, uint64_t exponent)
{
    double product = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            product *= factor;
        factor *= factor;
    }
    return product;
}

static int64_t linear(int64_t base_ms, int64_t step, int64_t limit_ms)
{
    return step > limit_ms / base_ms ? limit_ms : base_ms * step;
}

static int64_t exponential(int64_t base_ms, double factor, int64_t step, int64_t limit_ms)
{
    double ms = (double)base_ms * power(factor, (uint64_t)step - 1);
    return ms < (double)limit_ms ? round_up(ms) : limit_ms;
}

static int64_t computed(const mull__tier_config *tier, int64_t step, int64_t limit_ms)
{
    if (tier->base_ms == 0)
        return 0;
    if (tier->jitter_kind == MULL__JITTER_DECORRELATED)
        return tier->base_ms;
    switch (tier->backoff) {
    case MULL__LINEAR:
        return linear(tier->base_ms, step, limit_ms);
    case MULL__EXPONENTIAL:
        return exponential(tier->base_ms, tier->factor, step, limit_ms);
    case MULL__CONSTANT:
        break;
    }
    return tier->base_ms;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t limit_of(const mull__tier_config *tier)
{
    return tier->max_delay_ms == MULL__NO_CAP ? MULL__DELAY_MAX_MS : tier->max_delay_ms;
}

int64_t mull__delay(const mull__tier_config *tier, int64_t step)
{
    int64_t limit_ms = limit_of(tier);
    int64_t ms = tier->delays ? tier->delays[step - 1] : computed(tier, step, limit_ms);
    return smaller(ms, limit_ms);
}

/* ---- Where jitter may take it ---------------------------------------------------------------- */

static mull__ms_range around(const mull__tier_config *tier, int64_t delay_ms)
{
    int64_t reach = round_down((double)delay_ms * tier->jitter);
    int64_t high = delay_ms + reach;
    if (tier->max_delay_ms != MULL__NO_CAP)
        high = smaller(high, tier->max_delay_ms);
    return (mull__ms_range){delay_ms - reach, high};
}

mull__ms_range mull__jitter_ms_range(const mull__tier_config *tier, int64_t delay_ms)
{
    switch (tier->jitter_kind) {
    case MULL__JITTER_FULL:
        return (mull__ms_range){0, delay_ms};
    case MULL__JITTER_DECORRELATED:
        return (mull__ms_range){mull__delay(tier, 1), smaller(3 * delay_ms, limit_of(tier))};
    case MULL__JITTER_FRACTION:
        break;
    }
    return around(tier, delay_ms);
}

/* hinted_span is for a delay that a hint had a say in: jitter only adds. */
static mull__ms_range hinted_span(const mull__tier_config *tier, int64_t delay_ms)
{
    if (tier->jitter_kind != MULL__JITTER_FRACTION)
        return (mull__ms_range){delay_ms, delay_ms};
    return (mull__ms_range){delay_ms, around(tier, delay_ms).high_ms};
}

/* farthest is the longest that decorrelated jitter may come to by a step. It grows by three times
 * each, so that it is soon at the cap, or stays 0. */
static int64_t farthest(const mull__tier_config *tier, int64_t step)
{
    int64_t ms = mull__delay(tier, 1), before = -1;
    for (int64_t at = 1; at <= step && ms != before; at++) {
        before = ms;
        ms = mull__jitter_ms_range(tier, ms).high_ms;
    }
    return ms;
}

mull__ms_range mull__tier_ms_range(const mull__tier_config *tier, int64_t step)
{
    mull__ms_range span = mull__jitter_ms_range(tier, mull__delay(tier, step));
    if (tier->jitter_kind == MULL__JITTER_DECORRELATED)
        span.high_ms = farthest(tier, step);
    if (tier->hint)
        span.high_ms = hinted_span(tier, limit_of(tier)).high_ms;
    return span;
}

/* ahead is of how many of a tier's steps the precomputed steps are worked out. */
static int64_t ahead(const mull__tier_config *tier)
{
    if (!tier->on || tier->hint || tier->jitter_kind == MULL__JITTER_DECORRELATED)
        return 0;
    int unlimited = tier->attempts == MULL_UNLIMITED;
    return unlimited || tier->attempts > MULL__PRECOMPUTED_MAX ? MULL__PRECOMPUTED_MAX
                                                               : tier->attempts;
}

int mull__tier_precompute(mull__arena *arena, mull__tier_config *tier)
{
    int64_t count = ahead(tier);
    mull__precomputed_step *precomputed_steps =
        mull__arena_zalloc(arena, (size_t)count, sizeof *precomputed_steps);
    if (!precomputed_steps)
        return MULL_ENOMEM;
    for (int64_t step = 1; step <= count; step++) {
        mull__ms_range span = mull__tier_ms_range(tier, step);
        precomputed_steps[step - 1] =
            (mull__precomputed_step){span.low_ms, mull__range_size(span), tier->attempts};
    }
    tier->precomputed_steps = precomputed_steps;
    tier->precomputed_count = count;
    return MULL_OK;
}

int64_t mull__longest_retry_round(const mull__tier_config *tier)
{
    int64_t sum = 0;
    for (int64_t step = 1; step <= tier->attempts; step++)
        sum += mull__tier_ms_range(tier, step).high_ms;
    return sum;
}

/* ---- Chance ---------------------------------------------------------------------------------- */

/* drawn is the delay at a step, of which the inputs may be a later one. */
static int64_t drawn(mull__ms_range span, const mull__jitter_inputs *inputs, int64_t step)
{
    if (span.low_ms == span.high_ms || (inputs->flags & MULL__JITTER_LOW))
        return span.low_ms;
    if (inputs->flags & MULL__JITTER_HIGH)
        return span.high_ms;
    int64_t redeliveries = inputs->redeliveries;
    if (inputs->tier == MULL_TIER_REDELIVER)
        redeliveries -= inputs->step - step;
    return mull__draw_jitter(span.low_ms, mull__range_size(span),
                             mull__jitter_hash(inputs, redeliveries, step));
}

/* decorrelated draws each step from the one before. */
static int64_t decorrelated(const mull__tier_config *tier, const mull__jitter_inputs *inputs)
{
    int64_t step = inputs->step > MEMORY ? inputs->step - MEMORY + 1 : 1;
    int64_t ms = mull__delay(tier, 1);
    for (;; step++) {
        ms = drawn(mull__jitter_ms_range(tier, ms), inputs, step);
        if (step == inputs->step)
            return ms;
    }
}

/* ---- Hints ----------------------------------------------------------------------------------- */

enum { NO_HINT = -1 };

static int64_t hint_in(const mull_value *value, int64_t limit_ms)
{
    if (value->kind == MULL_INTEGER && value->as.integer >= 0)
        return value->as.integer > limit_ms / 1000 ? limit_ms : value->as.integer * 1000;
    if (value->kind == MULL_NUMBER && value->as.number >= 0) { /* no NaN is */
        double ms = value->as.number * 1000;
        return ms < (double)limit_ms ? round_up(ms) : limit_ms;
    }
    return NO_HINT;
}

/* hint_of is how long the error asks for, capped. The texts that every error has are no numbers,
 * whatever else goes by their names. */
static int64_t hint_of(const char *name, int64_t limit_ms, const mull_error *error)
{
    if (strcmp(name, "type") == 0 || strcmp(name, "message") == 0 || strcmp(name, "stack") == 0)
        return NO_HINT;
    const mull_field *field = mull__field_in(error->fields, mull__fields_end(error), name);
    return field ? hint_in(&field->value, limit_ms) : NO_HINT;
}

int64_t mull__hint_ms(const char *name, const mull_error *error)
{
    int64_t hint_ms = hint_of(name, MULL__DELAY_MAX_MS, error);
    return hint_ms == NO_HINT ? 0 : hint_ms;
}

/* ---- All of it ------------------------------------------------------------------------------- */

int64_t mull__tier_delay(const mull__tier_config *tier, const mull__jitter_inputs *inputs,
                         const mull_error *error)
{
    int64_t delay_ms = mull__delay(tier, inputs->step);
    int64_t hint_ms = tier->hint ? hint_of(tier->hint, limit_of(tier), error) : NO_HINT;
    if (hint_ms > delay_ms)
        delay_ms = hint_ms;
    if (inputs->flags & MULL_NO_JITTER)
        return delay_ms;
    if (hint_ms != NO_HINT)
        return drawn(hinted_span(tier, delay_ms), inputs, inputs->step);
    if (tier->jitter_kind == MULL__JITTER_DECORRELATED)
        return decorrelated(tier, inputs);
    return drawn(mull__jitter_ms_range(tier, delay_ms), inputs, inputs->step);
}

uint64_t mull__chance_from_id(const mull_message *message)
{
    return mull__hash_text(message && message->id ? message->id : "");
}
