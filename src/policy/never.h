/* never.h: what can be said of matchers without an error to try them on. Each answer is certain
 * where it is 1; 0 says nothing. The matchers are a table's. */
#ifndef MULL__NEVER_H
#define MULL__NEVER_H

#include "plain.h"

/* mull__never_passes: whatever the failure. */
int mull__never_passes(const mull__plain_matcher *matcher);

/* mull__same_matcher: both pass, or neither does. */
int mull__same_matcher(const mull__plain_matcher *a, const mull__plain_matcher *b);

/* mull__covers: where `narrow` passes, `wide` does. */
int mull__covers(const mull__plain_matcher *wide, const mull__plain_matcher *narrow);

#endif
