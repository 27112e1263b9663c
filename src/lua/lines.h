/* lines.h: reading a file line by line with a bound, which io.read hasn't. */
#ifndef MULL__LINES_H
#define MULL__LINES_H

#include <lua.h>

/* mull__read_line is read_line(file, limit): the next line without its newline; nil at the end;
 * false where it is longer than `limit` bytes, and skipped. */
int mull__read_line(lua_State *L);

#endif
