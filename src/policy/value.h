/* value.h: whether a value is what a test wants. */
#ifndef MULL__VALUE_H
#define MULL__VALUE_H

#include "plain.h"

/* mull__value_passes is 1 or 0, or negative where a pattern could not be tried to its end: -1: the
 * steps, which it counts down, are spent; -2: it is nested too deep. `given` is NULL where the
 * field is absent; it is never a list or a map. */
int mull__value_passes(const mull__plain_value *wanted, const mull_value *given, int64_t *steps);

#endif
