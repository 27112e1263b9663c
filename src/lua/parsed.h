/* parsed.h: the embedded files that give a policy its words, parsed once in the life of a process.
 * Every load and every decider has a Lua state of its own, and parsing these files would be most of
 * what a load takes.
 *
 * They are the same for all embedders, so they are in no embedder's memory, but in malloc's, and
 * stay there. */
#ifndef MULL__PARSED_H
#define MULL__PARSED_H

#include <lua.h>

#include "mulligan.h"

typedef struct mull__parsed mull__parsed;

/* mull__parsed_get gives them, parsed the first time. What it gives never changes, so any thread
 * may read it. MULL_ENOMEM; MULL_EPOLICY: an embedded file is broken. */
int mull__parsed_get(const mull__parsed **out);

/* mull__parsed_push pushes the function of the embedded file `name`. The name of its chunk begins
 * with "=", which tells it from a policy's. Raises where there is none, or no memory. */
void mull__parsed_push(lua_State *L, const mull__parsed *parsed, const char *name);

#endif
