/* subsumption.h: finds, among rules for a type, the first that passes wherever a matcher does,
 * without looking at all of them.
 *
 *   key ──> its rules, in order          each rule is kept by something that its matcher asks for:
 *   "A" status 503 ──> 3, 17             of its tests, by that which the fewest others have, so
 *   "A" code "c1"  ──> 4                 that few rules are met which don't cover after all
 *
 * A matcher that a rule covers asks for the same, or for something that implies it: it is looked up
 * by all that its own tests imply. */
#ifndef MULL__SUBSUMPTION_H
#define MULL__SUBSUMPTION_H

#include "policy/shape.h"

typedef struct mull__cover {
    const mull__rules *rules;
    const mull_allocator *allocator;
    struct mull__cover_place *places; /* found by key */
    uint64_t mask;
    struct mull__cover_entry *entries; /* of one key, linked */
    size_t entry_count;
    uint32_t *chosen; /* [rule]: the test that it is kept by */
} mull__cover;

/* mull__cover_init is for rules none of which is in it yet. MULL_ENOMEM. */
int mull__cover_init(mull__cover *cover, const mull__rules *rules, const mull_allocator *allocator);
void mull__cover_free(mull__cover *cover);

/* mull__cover_add takes in a rule by its index; in their order, each once. */
void mull__cover_add(mull__cover *cover, size_t index);

/* mull__cover_find is the first of those taken in that covers a matcher, as mull__covers says;
 * NULL: none, or it isn't certain. */
const mull__rule *mull__cover_find(const mull__cover *cover, uint32_t type,
                                   const mull__plain_matcher *matcher, int64_t *effort);

#endif
