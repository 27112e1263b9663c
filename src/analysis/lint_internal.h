/* lint_internal.h: what all searches for findings have in common: what they look at, whom they
 * tell, and when they stop. */
#ifndef MULL__LINT_INTERNAL_H
#define MULL__LINT_INTERNAL_H

#include "lint.h"

typedef struct mull__lint_context {
    const mull__table *table;
    const mull__fates *fates;
    const mull__scope_users *users;
    const mull_allocator *allocator;
    void (*tell)(void *data, const mull__finding *finding);
    void *data;
    mull__finding_kind kind; /* that is looked for */
    void *search;            /* what the search at hand keeps */
    int64_t effort; /* in nanoseconds, roughly, that may still be spent on all searches: each ends
                       where there are none */
    int stopped;    /* the search at hand looks no further */
    int status;     /* MULL_ENOMEM: all of them end */
} mull__lint_context;

/* mull__lint_item is what a search looks at: a scope, a rule that it has, with its fate, or a
 * declaration of it, which has none. What there is not is NULL. */
typedef struct mull__lint_item {
    const mull__scope *scope;
    const mull__rule *rule;
    const mull__fate *fate;
} mull__lint_item;

typedef void mull__lint(mull__lint_context *finder, const mull__lint_item *item);

/* What a search looks at. Most look at a scope's own rules: one that it includes and leaves no room
 * for is what including is for. */
enum {
    MULL__ONCE = 0, /* at no scope in particular */
    MULL__SCOPES = 1,
    MULL__OWN_RULES = 2,
    MULL__DECLARATIONS = 4
};

/* mull__lint_each looks, in the order of the table, until it is stopped. */
void mull__lint_each(mull__lint_context *finder, unsigned at, mull__lint *look);

/* mull__lint_report tells a finding, of the kind that is looked for if it has none; about a rule or
 * declaration, if one is given. */
void mull__lint_report(const mull__lint_context *finder, const mull__rule *rule,
                       mull__finding finding);

/* mull__stop tells that what `word` says wasn't looked for any further than to a place. */
void mull__stop(mull__lint_context *finder, const char *word, const char *file, int line);

/* mull__is_included: a rule is in the rules of a scope that it wasn't written in too, where it may
 * come to more. */
int mull__is_included(const mull__lint_context *finder, const mull__rule *rule);

/* ---- Searches -------------------------------------------------------------------------------- */

mull__lint mull__lint_typo;                /* once */
mull__lint mull__lint_limits;              /* scopes */
mull__lint mull__lint_no_effect;           /* own rules */
mull__lint mull__lint_nothing_redelivered; /* scopes */
mull__lint mull__lint_endless_override;    /* scopes */
mull__lint mull__lint_comparison;          /* own rules, declarations */

#endif
