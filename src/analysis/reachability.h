/* reachability.h: what is certain of each rule of a table whatever fails, found once for all who
 * ask. */
#ifndef MULL__REACHABILITY_H
#define MULL__REACHABILITY_H

#include "policy/table_internal.h"

typedef struct mull__fate {
    const mull__rule *hidden_by; /* the rule of the same scope that always decides before it */
    /* A declaration by which every error that its type and matcher let through is unrecoverable,
     * as far as it brings no lineage. */
    const mull__rule *taken_by;
    int is_unreadable; /* its type is the built-in one that is unrecoverable, or descends from it */
    int never_passes;  /* its matcher */
    int may_decide;    /* it isn't certain that it never does */
} mull__fate;

typedef struct mull__fates {
    const mull__table *table;
    const mull_allocator *allocator;
    mull__fate *items;
    size_t *first; /* [scope]: where its rules' begin */
    /* The first rule that wasn't looked at, since it would have taken too long: of it, and of those
     * behind it, nothing is certain. NULL: all were. */
    const mull__rule *stopped;
} mull__fates;

/* mull__fates_of looks at the rules of `only`, or of all scopes where that is NULL. MULL_ENOMEM. */
int mull__fates_of(mull__fates *fates, const mull__table *table, const mull__scope *only,
                   const mull_allocator *allocator);
void mull__fates_free(mull__fates *fates);

/* mull__fates_in gives those of a scope that was looked at, by the index of mull__rule_at. */
const mull__fate *mull__fates_in(const mull__fates *fates, const mull__scope *scope);

#endif
