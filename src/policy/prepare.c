/* prepare.c: see prepare.h. */
#include "prepare.h"

#include "delay.h"
#include "fact.h"

void mull__tests_prepare(mull__plain_test *tests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tests[i].fact = mull__fact_named(tests[i].subject, tests[i].name);
}

int mull__tier_prepare(mull__arena *arena, mull__plain_tier *tier)
{
    int64_t count = mull__ahead(tier);
    mull__lot *lots = mull__arena_zalloc(arena, (size_t)count, sizeof *lots);
    if (!lots)
        return MULL_ENOMEM;
    for (int64_t step = 1; step <= count; step++) {
        mull__span span = mull__tier_span(tier, step);
        lots[step - 1] = (mull__lot){span.low_ms, mull__choices(span), tier->attempts};
    }
    tier->lots = lots;
    tier->lot_count = count;
    return MULL_OK;
}
