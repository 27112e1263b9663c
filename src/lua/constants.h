/* constants.h: what Lua's parser may take for a text beyond what its size says. The parser keeps
 * all names, strings and numbers of a text in one table, and looks each of them up there; numbers
 * can be chosen so that they collide in it, and nobody counts what a parser does. It keeps jumps
 * that lead to one place, and labels, in lists, too, and goes through all of a list for each one
 * more: a condition with a hundred thousand `or` keeps it busy for a minute. */
#ifndef MULL__CONSTANTS_H
#define MULL__CONSTANTS_H

#include <stddef.h>
#include <stdint.h>

/* mull__constants_steps gives how many keys and jumps the parser may walk through for a text: as
 * many for each name, string or number as there are numbers before it that may have been chosen,
 * and for each `and`, `or`, `elseif`, `goto`, `break` and `::` as there are of these before it. Few
 * policies have many: short ones don't count, nor does what is in strings and comments. */
uint64_t mull__constants_steps(const char *text, size_t size);

#endif
