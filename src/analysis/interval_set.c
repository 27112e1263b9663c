/* interval_set.c: see interval_set.h. */
#include "interval_set.h"

#include <string.h>

/* touches: nothing lies between the end of one and the beginning of the other. */
static int touches(int64_t high_ms, int64_t low_ms)
{
    return high_ms >= low_ms || high_ms + 1 == low_ms;
}

static void remove_at(mull__ages *ages, size_t index, size_t count)
{
    ages->count -= count;
    memmove(&ages->at[index], &ages->at[index + count], (ages->count - index) * sizeof *ages->at);
}

/* first_reaching is the index of the first span that ends at `low_ms` or after, or just before. */
static size_t first_reaching(const mull__ages *ages, int64_t low_ms)
{
    size_t from = 0, to = ages->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (touches(ages->at[middle].high_ms, low_ms))
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

/* close_least_gap makes room for one more. */
static void close_least_gap(mull__ages *ages)
{
    size_t least = 1;
    for (size_t i = 2; i < ages->count; i++)
        if (ages->at[i].low_ms - ages->at[i - 1].high_ms <
            ages->at[least].low_ms - ages->at[least - 1].high_ms)
            least = i;
    ages->at[least - 1].high_ms = ages->at[least].high_ms;
    remove_at(ages, least, 1);
    ages->rough = 1;
}

void mull__ages_copy(mull__ages *to, const mull__ages *from)
{
    memcpy(to->at, from->at, from->count * sizeof *to->at);
    to->count = from->count;
    to->rough = from->rough;
}

void mull__ages_add(mull__ages *ages, mull__span span)
{
    if (ages->room == 1 && ages->count == 1) {
        mull__span_widen(&ages->at[0], span);
        return;
    }
    size_t first = first_reaching(ages, span.low_ms), end = first;
    while (end < ages->count && touches(span.high_ms, ages->at[end].low_ms))
        mull__span_widen(&span, ages->at[end++]);
    if (end > first) {
        ages->at[first] = span;
        remove_at(ages, first + 1, end - first - 1);
        return;
    }
    if (ages->count == ages->room) {
        close_least_gap(ages);
        mull__ages_add(ages, span);
        return;
    }
    memmove(&ages->at[first + 1], &ages->at[first], (ages->count - first) * sizeof *ages->at);
    ages->at[first] = span;
    ages->count++;
}

int mull__ages_hold(const mull__ages *outer, const mull__ages *inner)
{
    for (size_t i = 0; i < inner->count; i++) {
        size_t at = first_reaching(outer, inner->at[i].low_ms);
        if (at == outer->count || outer->at[at].low_ms > inner->at[i].low_ms ||
            outer->at[at].high_ms < inner->at[i].high_ms)
            return 0;
    }
    return 1;
}
