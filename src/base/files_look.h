/* files_look.h: how files look from outside, to see that they changed without reading them. */
#ifndef MULL__FILES_LOOK_H
#define MULL__FILES_LOOK_H

#include <stdint.h>

/* mull__files_look sums up what `stat` says of each path: they stand one behind the other, each
 * with its NUL, and an empty one at the end. It follows links, needs no handle, and sees what
 * another machine writes. NULL gives 0. */
uint64_t mull__files_look(const char *paths);

#endif
