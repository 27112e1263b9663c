/* folders.h: what a command that writes files needs of the system, for Lua. */
#ifndef MULL__FOLDERS_H
#define MULL__FOLDERS_H

#include <lua.h>

/* mull__folders_open pushes a table of functions. Those that can fail give true; or nil, why, and
 * the number of the system's error.
 *
 *   make(path)            makes a folder; one that is there is well, too
 *   is_there(path)        says whether a path names anything, be it a link to nothing
 *   put(from, to, over)   renames a file; if not `over`, only where nothing has the new name
 *   types()               the folder of the types for editors, without links; nil: there is none
 */
void mull__folders_open(lua_State *L);

#endif
