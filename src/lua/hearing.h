/* hearing.h: the module "mulligan.policy.hearing", which embedded files require: what every word of
 * a policy does first, in C because a large policy says many thousand of them. */
#ifndef MULL__HEARING_H
#define MULL__HEARING_H

#include <lua.h>

/* mull__hearing_push pushes the module, a table of functions:
 *
 *   place()              where the policy is now: { file =, line = }, not to be written to
 *   index(kind)          the __index for objects of a kind; lua/mulligan/policy/words.lua has more
 *   stage(metatable, data)
 *                        an object of a kind of which there are many: all have one metatable, whose
 *                        __index is index(kind)
 *   is_begun(data)       whether the stage at which a word of a rule was looked up last is its own
 *   close()              from now on no word is heard
 *   is_name(value)       whether it is a string in UTF-8, not empty, without a zero byte
 *   recall(known, ...)   the value in the table `known` under what follows, and the key that stands
 *                        for it; nil, nil where it is nothing that a key can stand for
 *   settings             the rows of policy/settings.h: { { field =, kind =, example = }, ... } */
void mull__hearing_push(lua_State *L);

#endif
