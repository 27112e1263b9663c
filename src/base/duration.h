/* duration.h: a span of time as people write it: "200ms", "1.5s", "1h30m". */
#ifndef MULL__DURATION_H
#define MULL__DURATION_H

#include <stddef.h>
#include <stdint.h>

/* mull__duration_read reads units ms s m h d, the largest first, each at most once, digits on both
 * sides of a point, into whole milliseconds of at most 365 days. 0, or -1 with the reason in
 * `why`, in words that follow "it". */
int mull__duration_read(int64_t *milliseconds, const char *text, size_t size, char *why,
                        size_t why_size);

#endif
