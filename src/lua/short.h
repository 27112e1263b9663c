/* short.h: functions that end soon, whatever they are given. While instructions are counted, each
 * costs about twice what it does else; for these nobody has to count. */
#ifndef MULL__SHORT_H
#define MULL__SHORT_H

#include <lua.h>

enum { MULL__SHORT = 500 }; /* instructions */

/* mull__is_short says whether the function on top, given views and plain values, ends after at most
 * MULL__SHORT instructions and calls nothing but what is C's: it has no loop, no call, no variable
 * from outside of it, and makes nothing. 0 where that isn't known, such as in a version of Lua
 * whose instructions are others. */
int mull__is_short(lua_State *L);

enum { MULL__READS = 4 };

/* mull__push_reads pushes the names of fields that the short function on top reads from its first
 * argument, each once, the first MULL__READS of them without a zero byte, and gives how many. */
int mull__push_reads(lua_State *L);

#endif
