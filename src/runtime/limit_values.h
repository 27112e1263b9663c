/* limit_values.h: what a limit knows of each value of its `per`: a key, a type, a header's text.
 * Values are bounded: the one that was touched longest ago is dropped, and starts anew. */
#ifndef MULL__LIMIT_VALUES_H
#define MULL__LIMIT_VALUES_H

#include "base/list.h"
#include "call_limit.h"
#include "rate_limit.h"

enum { MULL__VALUES_LIMITED = 10000, MULL__VALUES_COUNTED = 100000 };

/* mull__limit_state is what one limit knows of a consumer, or of one value. */
typedef struct mull__limit_state {
    mull__rate rate;  /* of a rate_limit, */
    mull__pace pace;  /* or of a limit */
    char *error_type; /* of the last failure that counted while it is limited; NULL */
    /* Of a value alone: */
    uint32_t at_work; /* handlers, detached ones too */
    int64_t first_ms; /* its messages that are put back are due from then */
    int64_t last_ms;  /* until then, one for each probe; 0: none is */
    int64_t tail_ms;  /* and others, that look again, until then */
    int is_limited;   /* it is in that list, by `link` */
    mull__link link;
    uint64_t hash;
    struct mull__limit_state *next; /* in its bucket */
    char value[];                   /* "" of a consumer */
} mull__limit_state;

typedef struct mull__limit_values {
    mull__limit_state **buckets;
    size_t bucket_count;         /* 0, or a power of two */
    mull__list counted, limited; /* touched longest ago first */
} mull__limit_values;

void mull__values_init(mull__limit_values *values);

/* mull__limit_state_new makes one that is in no list. NULL: there is no memory. */
mull__limit_state *mull__limit_state_new(const mull_allocator *allocator, const char *value);
void mull__limit_state_free(const mull_allocator *allocator, mull__limit_state *state);

/* mull__value_find gives NULL where nothing is known of the value. */
mull__limit_state *mull__value_find(const mull__limit_values *values, const char *value);

/* mull__value_add adds one that isn't there. NULL: there is no memory. */
mull__limit_state *mull__value_add(mull__limit_values *values, const mull_allocator *allocator,
                                   const char *value);

/* mull__value_touch makes it the last one to be dropped, of those that are limited or of those that
 * aren't. */
void mull__value_touch(mull__limit_values *values, mull__limit_state *state, int limited);

/* mull__value_too_many gives one that is to be dropped, NULL where there are few enough. */
mull__limit_state *mull__value_too_many(mull__limit_values *values);

void mull__value_drop(mull__limit_values *values, const mull_allocator *allocator,
                      mull__limit_state *state);
void mull__values_free(mull__limit_values *values, const mull_allocator *allocator);

#endif
