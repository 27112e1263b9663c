/* program.h: the program `mulligan`, in Lua. */
#ifndef MULL__PROGRAM_H
#define MULL__PROGRAM_H

typedef struct lua_State lua_State; /* main.c knows no Lua */

/* The exit code of a process that ended itself before its work was done: start it again. */
enum { MULL__EXIT_RESTART = 75 };

/* mull__program runs lua/mulligan/cli.lua and gives the exit code: 0, 1, 2, or MULL__EXIT_RESTART.
 */
int mull__program(int argc, char **argv);

/* ---- stall_log.c: a handler in C that blocks, or an endless finalizer, holds the loop ----------
 */

/* mull__stall_guard is guard_handlers(): puts other functions in the place of those of Lua's that
 * may hold a handler: searches for patterns, which can be ended, and calls that block, which can be
 * named. It comes before anybody keeps Lua's own. */
int mull__stall_guard(lua_State *L);

/* mull__stall_watch is watch(format, level): from now on a watchdog sees to this state's engine,
 * and logs in that format what is of that level. True; or nil and why. Once only. */
int mull__stall_watch(lua_State *L);

/* mull__stall_leave: the state is about to be closed, which its finalizers may hold. */
void mull__stall_leave(void);

/* mull__stall_end ends the watchdog; for the signals see mull__watchdog_free. */
void mull__stall_end(void);

/* ---- serve.c: verdicts for other programs ---- */

/* mull__serve is serve(engine, path, ask, log): a server on the engine's loop, for its policy, with
 * the methods changed(), for another generation, and close(), before the engine's; or nil and why.
 * ask(what, json) gives JSON; or nil and why. mull__serve_policy is serve_policy(engine): an engine
 * for its policy alone. mull__open_serve makes the type. */
int mull__serve(lua_State *L);
int mull__serve_policy(lua_State *L);
void mull__open_serve(lua_State *L);

/* ---- fs.c: what a command that writes files needs of the system ---- */

/* mull__fs_open pushes a table of functions. Those that can fail give true; or nil, why, and
 * the number of the system's error.
 *
 *   make(path)            makes a folder; one that is there is well, too
 *   is_there(path)        says whether a path names anything, be it a link to nothing
 *   put(from, to, over)   renames a file; if not `over`, only where nothing has the new name
 *   types()               the folder of the types for editors, without links; nil: there is none
 */
void mull__fs_open(lua_State *L);

#endif
