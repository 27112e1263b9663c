/* lines.h: stdin line by line, with a bound on a line's size, and without waiting unless asked to:
 * what io.read can't do.
 *
 *   lines(limit)            a reader of stdin
 *   reader:next(may_wait, for_stdout)
 *                           the next line without its newline; false where it is longer than
 *                           `limit` bytes, and skipped; nil and "end"; nil and "later" where there
 *                           is none yet and it may not wait; nil and "unread" where it waits
 *                           `for_stdout` and nobody reads that any more; nil, "error" and why */
#ifndef MULL__LINES_H
#define MULL__LINES_H

#include <lua.h>

int mull__lua_lines(lua_State *L);

#endif
