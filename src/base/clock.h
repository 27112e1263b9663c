/* clock.h: the two clocks of the machine, and moments as text (RFC 3339, UTC, milliseconds). */
#ifndef MULL__CLOCK_H
#define MULL__CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t mull__monotonic_ms(void);
int64_t mull__wall_ms(void); /* since 1970, UTC */

enum { MULL__TIMESTAMP_SIZE = 32 };

/* mull__timestamp_write gives "2026-11-20T07:08:09.123Z". */
void mull__timestamp_write(int64_t wall_ms, char text[MULL__TIMESTAMP_SIZE]);

/* mull__timestamp_read reads that form, with any number of fractional digits or none. Non-zero: it
 * is something else. */
int mull__timestamp_read(const char *text, int64_t *wall_ms);

#endif
