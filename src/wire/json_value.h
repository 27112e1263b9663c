/* json_value.h: a small JSON text as a value. */
#ifndef MULL__JSON_VALUE_H
#define MULL__JSON_VALUE_H

#include "base/arena.h"
#include "mulligan.h"

/* mull__json_value reads a text of `size` bytes, behind which a NUL stands, into an arena. A map
 * has no entry that is null. MULL_EINVAL: it isn't JSON, has a name twice, a NUL in a text, a
 * number that is no whole one of 64 bits, or is larger or deeper than a failure usually is.
 * MULL_ENOMEM. */
int mull__json_value(mull_value *out, mull__arena *arena, const char *text, size_t size);

#endif
