/* value.h: whether a value is what a test wants. */
#ifndef MULL__VALUE_H
#define MULL__VALUE_H

#include "plain.h"

/* mull__value_passes is 1 or 0, or negative where a pattern could not be tried to its end:
 * MULL__PATTERN_SPENT (`steps` counts down) or MULL__PATTERN_COMPLEX. `given` is NULL where the
 * field is absent; it is never a list or a map. */
int mull__value_passes(const mull__plain_value *wanted, const mull_value *given, int64_t *steps);

#endif
