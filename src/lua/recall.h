/* recall.h: what was read of a policy's values before, under a key that stands for the values. A
 * large policy says the same few tiers and matchers again and again. */
#ifndef MULL__RECALL_H
#define MULL__RECALL_H

#include <lua.h>

/* mull__recall_key pushes the key of all values from index `first` on and is true; where there is
 * none, it is false and pushes nothing. Strings, numbers, booleans, nil and flat tables of these
 * have one, if it isn't too long. */
int mull__recall_key(lua_State *L, int first);

/* mull__recall(known, ...) gives what the table `known` has under the key of what follows, nil
 * where it has nothing, and the key; nothing at all where there is no key. */
int mull__recall(lua_State *L);

#endif
