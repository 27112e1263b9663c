/* recall.h: what was read of a policy's values before, under a key that stands for the values. A
 * large policy says the same few tiers and matchers again and again. */
#ifndef MULL__RECALL_H
#define MULL__RECALL_H

#include <lua.h>

/* mull__recall(known, ...) gives what the table `known` has under the key of what follows, nil
 * where it has nothing, and the key; nothing at all where there is no key. Strings, numbers,
 * booleans, nil and flat tables of these have one, if it isn't too long. */
int mull__recall(lua_State *L);

#endif
