/* hearing.h: the module "mulligan.policy.hearing", which embedded files require: what every word of
 * a policy does first, in C because a large policy says many thousand of them. */
#ifndef MULL__HEARING_H
#define MULL__HEARING_H

#include <lua.h>

/* mull__hearing_push pushes the module, a table of functions:
 *
 *   place()              where the policy is now: { file =, line = }, not to be written to
 *   index(kind)          the __index for objects of a kind; lua/mulligan/policy/words.lua has more
 *   is_begun(data)       whether the stage at which a word of a rule was looked up last is its own
 *   close()              from now on no word is heard
 *   is_name(value)       whether it is a string in UTF-8, not empty, without a zero byte
 *   recall(known, ...)   the value in the table `known` under what follows, and the key that stands
 *                        for it; nil, nil where it is nothing that a key can stand for */
void mull__hearing_push(lua_State *L);

/* An act in C is called with the place as a number, its spot; the first upvalue of each, as of
 * every function of the module, is the hearing, `from` below.
 *
 * mull__hearing_push_place pushes a spot's place, mull__hearing_set_place sets `file` and `line` of
 * the table on top. */
void mull__hearing_push_place(lua_State *L, int from, lua_Integer spot);
void mull__hearing_set_place(lua_State *L, int from, lua_Integer spot);
lua_Integer mull__hearing_line(lua_Integer spot);

/* mull__hearing_is_name says whether the value at `index` is what is_name(value) asks for. */
int mull__hearing_is_name(lua_State *L, int index);

/* What has its data not as its metatable, but as a userdata, has it under this user value. */
enum { MULL__HEARING_DATA = 1 };

#endif
