/* raise.h: errors as Lua raises them: a table with a `type`, made by mulligan.error. */
#ifndef MULL__RAISE_H
#define MULL__RAISE_H

#include <lua.h>

/* mull__raise raises an error of a type with a formatted message (as lua_pushfstring). */
int mull__raise(lua_State *L, const char *type, const char *format, ...);

/* mull__is_error_value says whether the value at `index` was made by mulligan.error. */
int mull__is_error_value(lua_State *L, int index);

/* mull__error_value_text pushes what another value that was raised says of itself; for one that
 * could only give its address, how an error is raised. Raises for want of memory only. */
void mull__error_value_text(lua_State *L, int index);

/* mull__lua_error is mulligan.error: checks its table and raises it. */
int mull__lua_error(lua_State *L);

#endif
