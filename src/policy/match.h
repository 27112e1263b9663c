/* match.h: which rule of a scope decides. */
#ifndef MULL__MATCH_H
#define MULL__MATCH_H

#include "types.h"

/* mull__match is the first rule that passes: those of each type of the lineage in turn, those of
 * Error last. NULL: none does. */
const mull__rule *mull__match(const mull__scope *scope, const mull__lineage *lineage,
                              const mull_failure *failure, const mull__runner *runner);

/* mull__field_passes: an error carries the field that a literal names, and it has its value. */
int mull__field_passes(const mull_field *literal, const mull_error *error);

#endif
