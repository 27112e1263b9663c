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
int mull__unrecoverable(const mull__inquiry *inquiry, const mull__lineage *lineage);

/* mull__match is the first rule in force that passes: those for each type of the error's lineage in
 * turn, then the cause rules, those for Error last. NULL: none does. It may overwrite the lineage.
 */
const mull__rule *mull__match(const mull__inquiry *inquiry, const mull__lineage *lineage);

#endif
