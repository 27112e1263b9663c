/* named.h: a failure that came with ids, with names in their place: for a decision at length, and
 * for what functions and events are shown. */
#ifndef MULL__NAMED_H
#define MULL__NAMED_H

#include "ids.h"

/* MULL__ROUND is how many causes may lie between an error and itself for anybody to come round:
 * 16 count, and a function that is asked about one of them sees 16 of its own. */
enum { MULL__ROUND = 32 };

/* mull__named is room for an error with the name of its type, and for causes that lead back to it.
 */
typedef struct mull__named {
    mull_error error;
    mull_error causes[MULL__ROUND];
} mull__named;

/* mull__name_all puts names in the place of a failure's ids; what it points to then is in `room`.
 * MULL_EINVAL: an id was never given. */
int mull__name_all(mull_failure *failure, const mull__ids *ids, mull__named *room);

#endif
