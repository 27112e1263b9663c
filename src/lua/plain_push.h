/* plain_push.h: rules as Lua tables, for those who look at a policy. docs/table.md lists the keys.
 * Each pushes one value, and may raise for want of memory. */
#ifndef MULL__PLAIN_PUSH_H
#define MULL__PLAIN_PUSH_H

#include "policy/usage.h"

#include <lua.h>

/* mull__push_list pushes an empty list, which stays one as JSON. */
void mull__push_list(lua_State *L);

/* mull__push_matcher pushes what docs/plain-rules.md has for a matcher; nil for none. */
void mull__push_matcher(lua_State *L, const mull__plain_matcher *matcher);
void mull__push_test(lua_State *L, const mull__plain_test *test);

/* mull__push_rule pushes a rule with its chain; `queue` is where its dead letters go if it names no
 * queue. mull__push_declaration is for an unrecoverable declaration, which has none. */
void mull__push_rule(lua_State *L, const mull__rule *rule, const char *queue);
void mull__push_declaration(lua_State *L, const mull__rule *rule);

/* The timeout of a consumer that names none: what a handler may take where none is known. */
enum { MULL__HANDLER_MS = 30 * 1000 };

/* mull__set_extent sets the fields of an extent in the table on top; what has no bound is left out.
 */
void mull__set_extent(lua_State *L, const mull__extent *extent);

#endif
