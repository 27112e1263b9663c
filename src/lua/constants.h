/* constants.h: what Lua's parser may take for a text beyond what its size says. The parser keeps
 * all names, strings and numbers of a text in one table, and looks each of them up there; numbers
 * can be chosen so that they collide in it, and nobody counts what a parser does. */
#ifndef MULL__CONSTANTS_H
#define MULL__CONSTANTS_H

#include <stddef.h>
#include <stdint.h>

/* mull__constants_steps gives how many keys the parser may walk through for a text: as many for
 * each name, string or number as there are numbers before it that may have been chosen. Few
 * policies have many: short ones don't count, nor does what is in strings and comments. */
uint64_t mull__constants_steps(const char *text, size_t size);

#endif
