/* rule_match.h: which rule decides, and what no rule is asked for. */
#ifndef MULL__RULE_MATCH_H
#define MULL__RULE_MATCH_H

#include "resolve.h"

#define MULL__BUDGET_EXCEEDED                                                                      \
    "the matchers before took what one decision may spend on functions and patterns, ten calls' "  \
    "budget"

/* mull__eval_context is what decides: a table, whom to ask and to tell, and scratch of
 * mull__table_scratch_words words. */
typedef struct mull__eval_context {
    const mull__table *table;
    const mull__runner *runner;
    uint64_t *seen;
} mull__eval_context;

/* mull__evaluation is one decision on the slow path. Once its steps are spent, matchers that need
 * more are skipped: they don't match, and are only counted. */
typedef struct mull__evaluation {
    const mull__eval_context *context; /* the error's own lineage may be in its scratch */
    const mull__effective_settings *effective;
    const mull_failure *failure;
    const mull__rule *rule;         /* that decided; NULL so far */
    int64_t steps;                  /* left; below 0 where the last call took more than was there */
    uint32_t skipped;               /* matchers */
    const mull_rule *first_skipped; /* the first one's rule */
} mull__evaluation;

/* mull__unrecoverable is the declaration in force, of whatever scope, that holds for the error,
 * whose lineage is given; the built-in one has no file. NULL: none does. */
const mull_rule *mull__unrecoverable(mull__evaluation *evaluation, const mull__lineage *lineage);

/* mull__match is the first rule in force that passes: those for each type of the error's lineage in
 * turn, then the cause rules, those for Error last. NULL: none does. It may overwrite the lineage.
 */
const mull__rule *mull__match(mull__evaluation *evaluation, const mull__lineage *lineage);

#endif
