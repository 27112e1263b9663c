/* dsl_dispatch.h: the module "mulligan.policy.dispatch", which embedded files require: what the
 * words of a policy need of C. */
#ifndef MULL__DSL_DISPATCH_H
#define MULL__DSL_DISPATCH_H

#include <lua.h>

/* mull__dsl_dispatch_push pushes the module, a table:
 *
 *   place()              where the policy is now: { file =, line = }
 *   word(say, object, word)
 *                        what a word gives that was looked up: a function that calls
 *                        say(object, word, here, ...) with the word's place and its arguments
 *   is_name(value)       whether it is a string in UTF-8, not empty, without a zero byte
 *   recall(known, ...)   the value in the table `known` under what follows, and the key that stands
 *                        for it; nothing where there is no key. Strings, whole numbers, booleans,
 *                        nil and flat tables of these have one, if it isn't too long
 *   settings             what mull__settings_push pushes */
void mull__dsl_dispatch_push(lua_State *L);

/* mull__settings_push pushes the rows of policy/settings.h: { { field =, kind =, example = }, ...
 * }.
 */
void mull__settings_push(lua_State *L);

#endif
