/* held.h: what `mulligan run` does about a loop that is held: by a handler in C code that blocks,
 * or by a finalizer without an end. See runtime/watchdog.h. */
#ifndef MULL__HELD_H
#define MULL__HELD_H

#include <lua.h>

/* mull__held_guard is guard_handlers(): puts other functions in the place of those of Lua's that
 * may hold a handler: searches for patterns, which can be ended, and calls that block, which can be
 * named. It comes before anybody keeps Lua's own. */
int mull__held_guard(lua_State *L);

/* mull__held_watch is watch(format, level): from now on a watchdog sees to this state's engine, and
 * logs in that format what is of that level. True; or nil and why. Once only. */
int mull__held_watch(lua_State *L);

/* mull__held_leave: the state is about to be closed, which its finalizers may hold. */
void mull__held_leave(void);

/* mull__held_end ends the watchdog; for the signals see mull__watchdog_free. */
void mull__held_end(void);

#endif
