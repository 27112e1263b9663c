/* descriptors.h: whether the process may open more files, pipes and sockets. */
#ifndef MULL__DESCRIPTORS_H
#define MULL__DESCRIPTORS_H

#include <stddef.h>

/* mull__descriptors_lack is 0 where so many file descriptors (at most 16) can be had now; else 1,
 * and `text` says how many can, and what the limit is. */
int mull__descriptors_lack(int needed, char *text, size_t size);

#endif
