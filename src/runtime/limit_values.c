/* limit_values.c: see limit_values.h. */
#include "limit_values.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <string.h>

void mull__values_init(mull__limit_values *values)
{
    *values = (mull__limit_values){0};
    mull__list_init(&values->counted);
    mull__list_init(&values->limited);
}

static size_t count_of(const mull__limit_values *values)
{
    return values->counted.count + values->limited.count;
}

static mull__limit_state **bucket_of(const mull__limit_values *values, uint64_t hash)
{
    return &values->buckets[hash & (values->bucket_count - 1)];
}

mull__limit_state *mull__value_find(const mull__limit_values *values, const char *value)
{
    if (values->bucket_count == 0)
        return NULL;
    uint64_t hash = mull__hash_text(value);
    mull__limit_state *state = *bucket_of(values, hash);
    while (state && (state->hash != hash || strcmp(state->value, value) != 0))
        state = state->next;
    return state;
}

static void put_into_bucket(mull__limit_values *values, mull__limit_state *state)
{
    mull__limit_state **bucket = bucket_of(values, state->hash);
    state->next = *bucket;
    *bucket = state;
}

static void rehash(mull__limit_values *values, mull__list *list)
{
    for (mull__link *link = mull__list_first(list); link; link = mull__list_after(list, link))
        put_into_bucket(values, MULL__ENTRY(link, mull__limit_state, link));
}

static int grow(mull__limit_values *values, const mull_allocator *allocator)
{
    if (count_of(values) < values->bucket_count)
        return 0;
    size_t count = values->bucket_count ? values->bucket_count * 2 : 16;
    mull__limit_state **buckets = mull__zalloc(allocator, count, sizeof *buckets);
    if (!buckets)
        return MULL_ENOMEM;
    mull__free(allocator, values->buckets);
    values->buckets = buckets;
    values->bucket_count = count;
    rehash(values, &values->counted);
    rehash(values, &values->limited);
    return 0;
}

mull__limit_state *mull__limit_state_new(const mull_allocator *allocator, const char *value)
{
    size_t size = strlen(value) + 1;
    mull__limit_state *state = mull__zalloc(allocator, 1, sizeof *state + size);
    if (!state)
        return NULL;
    memcpy(state->value, value, size);
    state->hash = mull__hash_text(value);
    state->rate.allocator = allocator;
    return state;
}

void mull__limit_state_free(const mull_allocator *allocator, mull__limit_state *state)
{
    if (!state)
        return;
    mull__rate_free(&state->rate);
    mull__free(allocator, state->error_type);
    mull__free(allocator, state);
}

mull__limit_state *mull__value_add(mull__limit_values *values, const mull_allocator *allocator,
                                   const char *value)
{
    mull__limit_state *state = mull__limit_state_new(allocator, value);
    if (!state || grow(values, allocator) != 0) {
        mull__limit_state_free(allocator, state);
        return NULL;
    }
    put_into_bucket(values, state);
    mull__list_push(&values->counted, &state->link);
    return state;
}

static mull__list *list_of(mull__limit_values *values, const mull__limit_state *state)
{
    return state->is_limited ? &values->limited : &values->counted;
}

void mull__value_touch(mull__limit_values *values, mull__limit_state *state, int limited)
{
    mull__list_remove(list_of(values, state), &state->link);
    state->is_limited = limited;
    mull__list_push(list_of(values, state), &state->link);
}

mull__limit_state *mull__value_too_many(mull__limit_values *values)
{
    mull__link *link = values->limited.count > MULL__VALUES_LIMITED   ? values->limited.head.next
                       : values->counted.count > MULL__VALUES_COUNTED ? values->counted.head.next
                                                                      : NULL;
    return link ? MULL__ENTRY(link, mull__limit_state, link) : NULL;
}

void mull__value_drop(mull__limit_values *values, const mull_allocator *allocator,
                      mull__limit_state *state)
{
    mull__limit_state **at = bucket_of(values, state->hash);
    while (*at != state)
        at = &(*at)->next;
    *at = state->next;
    mull__list_remove(list_of(values, state), &state->link);
    mull__limit_state_free(allocator, state);
}

void mull__values_free(mull__limit_values *values, const mull_allocator *allocator)
{
    mull__link *link;
    while ((link = mull__list_first(&values->counted)) ||
           (link = mull__list_first(&values->limited)))
        mull__value_drop(values, allocator, MULL__ENTRY(link, mull__limit_state, link));
    mull__free(allocator, values->buckets);
    values->buckets = NULL;
    values->bucket_count = 0;
}
