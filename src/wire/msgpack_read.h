/* msgpack_read.h: MessagePack, read where it stands.
 *
 *   mull__msgpack_scan    bytes as they come, cut anywhere: is the value that they begin with
 * whole? mull__msgpack_value   a whole value as a mull_value the others            a whole value,
 * item by item: `at` moves on
 *
 * A scan takes no memory, whatever a length field claims, and only what it found whole may be
 * given to the rest. Reading a value moves its texts, so the same bytes are read once. */
#ifndef MULL__MSGPACK_READ_H
#define MULL__MSGPACK_READ_H

#include "base/arena.h"
#include "mulligan.h"

/* LEVELS: lists and maps in one another, as many as msgpack-c reads. WHY: room for what is wrong.
 */
enum { MULL__MSGPACK_LEVELS = 32, MULL__MSGPACK_WHY = 160 };

/* ---- Bytes as they come ---------------------------------------------------------------------- */

/* mull__msgpack_progress is how far a scan has come; zeroed at the beginning. */
typedef struct mull__msgpack_progress {
    size_t at;                               /* what is before it has been looked at */
    int begun, level;                        /* level: lists and maps that aren't whole */
    uint64_t left[MULL__MSGPACK_LEVELS + 1]; /* the items of each that are still to come */
} mull__msgpack_progress;

/* mull__msgpack_scan goes on with a value of which there are `size` bytes by now, and which may
 * have `most`. 1: it is whole, and ends before `at`; 0: there is more to come. MULL_EINVAL: 0xc1,
 * which begins nothing; MULL_ETOOBIG: it has more than `most` bytes; MULL_EREFUSED: it has more
 * than MULL__MSGPACK_LEVELS levels. */
int mull__msgpack_scan(mull__msgpack_progress *scan, const char *bytes, size_t size, size_t most);

/* ---- Whole values ---------------------------------------------------------------------------- */

/* mull__msgpack_list enters a list, mull__msgpack_map a map, and gives how many items, or entries,
 * follow; MULL_EINVAL: there is something else, and `at` stays. */
int mull__msgpack_list(char **at, size_t *count);
int mull__msgpack_map(char **at, size_t *count);

/* mull__msgpack_whole reads a number of 64 bits with a sign; MULL_EINVAL as above. */
int mull__msgpack_whole(char **at, int64_t *number);

/* mull__msgpack_text reads a text, which stays in the bytes; MULL_EINVAL as above. */
int mull__msgpack_text(char **at, const char **text, size_t *size);

/* mull__msgpack_bytes_or_text reads bytes (bin), or a text as its bytes; MULL_EINVAL as above. */
int mull__msgpack_bytes_or_text(char **at, const char **bytes, size_t *size);

/* mull__msgpack_skip goes on behind the next value. */
void mull__msgpack_skip(char **at);

/* mull__msgpack_extent is how much there was to a value. */
typedef struct mull__msgpack_extent {
    size_t values; /* those in others included */
    int levels;
} mull__msgpack_extent;

/* mull__msgpack_value reads the next value into an arena. A map has no entry that is nil. A whole
 * number beyond 64 bits with a sign is a MULL_NUMBER. MULL_EINVAL: it has something that a
 * mull_value can't hold, which `why` says: bytes (bin, ext), a number that isn't finite, a text
 * that isn't UTF-8 or has a NUL, a name that isn't a text or is there twice. MULL_ENOMEM. `at` is
 * behind it in each case. */
int mull__msgpack_value(mull_value *out, mull__arena *arena, char **at,
                        mull__msgpack_extent *extent, char why[MULL__MSGPACK_WHY]);

#endif
