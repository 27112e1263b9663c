/* copy.h: copying a plain policy into memory of its own: everything is measured first, memory is
 * taken once, and then filled from front to end, so that nothing can fail any more. What is
 * measured and what is copied must agree, thing by thing. */
#ifndef MULL__COPY_H
#define MULL__COPY_H

#include "shape.h"

/* mull__size is how much of each kind of memory a copy takes, in bytes. */
typedef struct mull__size {
    size_t things; /* structs and arrays, each on a boundary of 8 */
    size_t text;
} mull__size;

void mull__measure_things(mull__size *size, size_t count, size_t bytes);
void mull__measure_text(mull__size *size, const char *text);
void mull__measure_matcher(mull__size *size, const mull__plain_matcher *matcher);
void mull__measure_tier(mull__size *size, const mull__plain_tier *tier);

/* mull__room is where the next copy goes. */
typedef struct mull__room {
    char *things, *text;
    const char *last_file; /* copied; most things are in the same file as those before them */
} mull__room;

/* mull__take gives zeroed memory out of the room. */
void *mull__take(mull__room *room, size_t count, size_t bytes);

/* mull__copy_text copies a string; NULL stays NULL. mull__copy_file may share the last one. */
const char *mull__copy_text(mull__room *room, const char *text);
const char *mull__copy_file(mull__room *room, const char *file);

mull__plain_matcher mull__copy_matcher(mull__room *room, const mull__plain_matcher *plain);
mull__plain_tier mull__copy_tier(mull__room *room, const mull__plain_tier *plain);

#endif
