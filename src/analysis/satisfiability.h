/* satisfiability.h: what can be said of matchers without an error to try them on. Each answer is
 * certain where it is 1; 0 says nothing. The matchers are a table's.
 *
 * `effort` is how many nanoseconds, roughly, may still go into answers; each takes its own. Once it
 * is spent, all of them are 0. */
#ifndef MULL__SATISFIABILITY_H
#define MULL__SATISFIABILITY_H

#include "policy/model.h"

/* mull__never_passes: whatever the failure. */
int mull__never_passes(const mull__matcher *matcher, int64_t *effort);

/* mull__covers: where `narrow` passes, `wide` does. */
int mull__covers(const mull__matcher *wide, const mull__matcher *narrow, int64_t *effort);

#endif
