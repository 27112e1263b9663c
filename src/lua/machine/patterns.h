/* patterns.h: string.find, match, gmatch and gsub: Lua's, but what they look at is counted, so that
 * they can be ended. */
#ifndef MULL__PATTERNS_H
#define MULL__PATTERNS_H

#include <lua.h>

/* For policies: what they look at counts as instructions of the call's budget. */

int mull__string_find(lua_State *L);
int mull__string_match(lua_State *L);
int mull__string_gmatch(lua_State *L);
int mull__string_gsub(lua_State *L);

/* mull__pattern_limiter says, for other Lua, when they are to be counted, and when to end. */
typedef struct mull__pattern_limiter {
    int (*counts)(lua_State *L);       /* else Lua's own function does it */
    int (*may_continue)(lua_State *L); /* asked every 10,000 steps; may not raise */
    int (*give_up)(lua_State *L);      /* raises, since it may not go on */
} mull__pattern_limiter;

/* mull__patterns_limit puts functions that go by a meter, which outlives the state, in the place of
 * Lua's own in the global `string`, once; in that of others' it puts none. */
void mull__patterns_limit(lua_State *L, mull__pattern_limiter *meter);

#endif
