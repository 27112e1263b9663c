/* match.h: which rule decides, and what no rule is asked for. */
#ifndef MULL__MATCH_H
#define MULL__MATCH_H

#include "types.h"

/* mull__inquiry is what both look at. */
typedef struct mull__inquiry {
    const mull__desk *desk; /* the error's own lineage may be in its scratch */
    const mull__layer *layer;
    const mull_failure *failure;
} mull__inquiry;

/* mull__unrecoverable: some declaration in force, of whatever scope, or the built-in one holds for
 * the error, whose lineage is given. */
static inline int mull__unrecoverable(const mull__inquiry *inquiry, const mull__lineage *lineage);

/* mull__match is the first rule in force that passes: those for each type of the error's lineage in
 * turn, then the cause rules, those for Error last. NULL: none does. It may overwrite the lineage.
 */
static inline const mull__rule *mull__match(const mull__inquiry *inquiry,
                                            const mull__lineage *lineage);

/* ---- In place: how most of them end ----------------------------------------------------------
 *
 * What these are given is copied for the long way only, so that a compiler need not have it in
 * memory for the short one. */

int mull__declared_unrecoverable(mull__inquiry inquiry, mull__lineage lineage);
const mull__rule *mull__match_all(mull__inquiry inquiry, mull__lineage lineage);

/* No declaration of any scope is for a type of the lineage. */
static inline int mull__unrecoverable(const mull__inquiry *inquiry, const mull__lineage *lineage)
{
    return lineage->mark == MULL__UNRECOVERABLE && mull__declared_unrecoverable(*inquiry, *lineage);
}

/* mull__equals_all: the matcher has only tests for fields to equal one literal each, and all pass.
 */
int mull__equals_all(const mull__plain_matcher *matcher, const mull_error *error);

/* The first rule for the error's own type has no matcher, or a plain one. */
static inline const mull__rule *mull__match(const mull__inquiry *inquiry,
                                            const mull__lineage *lineage)
{
    const mull__scope *scope = inquiry->layer->rules;
    if (!scope)
        return NULL;
    if (lineage->count > 0 && !inquiry->desk->runner->tried) {
        const mull__rule *rule = mull__first_rule(&scope->rules, (uint32_t)lineage->types[0]);
        if (rule && (rule->matcher.kind == MULL__MATCH_ALWAYS ||
                     mull__equals_all(&rule->matcher, inquiry->failure->error)))
            return rule;
    }
    return mull__match_all(*inquiry, *lineage);
}

#endif
