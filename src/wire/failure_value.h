/* failure_value.h: a failure out of a map with the keys of `mulligan decide`. */
#ifndef MULL__FAILURE_VALUE_H
#define MULL__FAILURE_VALUE_H

#include "base/arena.h"
#include "mulligan.h"

/* mull__error_of_value makes an error alone, with at most so many causes; errors as below. */
int mull__error_of_value(const mull_error **out, mull__arena *arena, const mull_value *map,
                         int causes);

/* mull__failure_of_value makes a failure, which refers to what the map refers to. MULL_EINVAL: it
 * isn't one as cli.md has it, or it is an unusual one: lua/values reads that, and has the error
 * messages. MULL_ENOMEM. */
int mull__failure_of_value(mull_failure *out, mull__arena *arena, const mull_value *map);

#endif
