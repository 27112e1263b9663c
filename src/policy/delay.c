/* delay.c: see delay.h. No libm: the same on every machine. */
#include "delay.h"

/* LIMIT_MS, 365 days, is where a computed delay without a cap saturates; no delay that a policy
 * can name is longer. */
#define LIMIT_MS (INT64_C(365) * 24 * 3600 * 1000)

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

static int64_t computed(const mull__plain_tier *tier, int64_t step, int64_t limit_ms)
{
    if (tier->base_ms == 0)
        return 0;
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

int64_t mull__delay(const mull__plain_tier *tier, int64_t step)
{
    int64_t limit_ms = tier->max_delay_ms == MULL__NO_CAP ? LIMIT_MS : tier->max_delay_ms;
    int64_t ms = tier->delays ? tier->delays[step - 1] : computed(tier, step, limit_ms);
    return smaller(ms, limit_ms);
}

mull__span mull__delay_span(const mull__plain_tier *tier, int64_t delay_ms)
{
    int64_t reach = round_down((double)delay_ms * tier->jitter);
    int64_t high = delay_ms + reach;
    if (tier->max_delay_ms != MULL__NO_CAP)
        high = smaller(high, tier->max_delay_ms);
    return (mull__span){delay_ms - reach, high};
}

/* high_word is the upper half of a 128-bit product. */
static uint64_t high_word(uint64_t a, uint64_t b)
{
    uint64_t a_low = (uint32_t)a, a_high = a >> 32;
    uint64_t b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    uint64_t carry = a_low * b_high + (uint32_t)middle;
    return a_high * b_high + (middle >> 32) + (carry >> 32);
}

int64_t mull__draw(mull__span span, uint64_t hash)
{
    uint64_t choices = (uint64_t)(span.high_ms - span.low_ms) + 1;
    return span.low_ms + (int64_t)high_word(hash, choices);
}

int64_t mull__longest_round(const mull__plain_tier *tier)
{
    int64_t sum = 0;
    for (int64_t step = 1; step <= tier->attempts; step++)
        sum += mull__delay_span(tier, mull__delay(tier, step)).high_ms;
    return sum;
}
