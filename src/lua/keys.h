/* keys.h: the keys that a table of somebody's may have. */
#ifndef MULL__KEYS_H
#define MULL__KEYS_H

#include <lua.h>

/* mull__check_keys raises at a key of the table at `index` that isn't among `known`, which ends in
 * NULL: it says which one was probably meant, or lists them. `where` is what the table is. */
void mull__check_keys(lua_State *L, int index, const char *const *known, const char *where);

#endif
