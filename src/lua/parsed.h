/* parsed.h: the embedded files that give a policy its words, parsed once. Every load and every
 * decider has a Lua state of its own, and parsing these files would be most of what it takes.
 *
 * The first state parses them as it requires them, and what it parsed is kept. Once it is ready,
 * nothing is added any more, so any thread may read: what only mistakes need is parsed where it is
 * needed. */
#ifndef MULL__PARSED_H
#define MULL__PARSED_H

#include <lua.h>

#include "mulligan.h"

typedef struct mull__parsed mull__parsed;

/* mull__parsed_new has no file yet. MULL_ENOMEM. */
int mull__parsed_new(mull__parsed **out, const mull_allocator *allocator);
void mull__parsed_free(mull__parsed *parsed);

/* mull__parsed_seal: from now on no file is added. */
void mull__parsed_seal(mull__parsed *parsed);

/* mull__parsed_push pushes the function of the embedded file `name`. The name of its chunk begins
 * with "=", which tells it from a policy's. Raises where there is none, or no memory. */
void mull__parsed_push(lua_State *L, mull__parsed *parsed, const char *name);

#endif
