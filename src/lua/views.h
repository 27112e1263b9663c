/* views.h: a failure as the policy's functions see it: err and ctx.
 *
 *   view (an empty table) ──live──> what it shows (a plain table)
 *
 * Views are read-only, and live for one call: mull__views_end forgets what they show. */
#ifndef MULL__VIEWS_H
#define MULL__VIEWS_H

#include "mulligan.h"

#include <lua.h>

/* mull__views_open makes ready a state, once; `parents` is the index of a table child -> parent
 * with the declared types. May raise, like all of these but mull__views_end. */
void mull__views_open(lua_State *L, int parents);

/* mull__views_push pushes err and ctx. */
void mull__views_push(lua_State *L, const mull_failure *failure);

/* mull__views_end: from now on, looking at a view raises. It raises nothing itself. */
void mull__views_end(lua_State *L);

/* mull__views_reveal is a Lua function: what a view shows; nil: its argument is no view. */
int mull__views_reveal(lua_State *L);

#endif
