/* plain_push.h: rules as Lua tables, for those who look at a policy. docs/table.md lists the keys.
 * Each pushes one value, and may raise for want of memory. */
#ifndef MULL__PLAIN_PUSH_H
#define MULL__PLAIN_PUSH_H

#include "analysis/scope_usage.h"

#include <lua.h>

/* mull__set_list sets, in the table on top, a list of what `push` pushes for each of `count` items
 * of so many bytes; with none it stays a list as JSON, too. mull__push_list pushes an empty one. */
void mull__set_list(lua_State *L, const char *field, const void *items, size_t count, size_t bytes,
                    void (*push)(lua_State *L, const void *item));
void mull__push_list(lua_State *L);

/* mull__push_matcher pushes what docs/plain-rules.md has for a matcher; nil for none. */
void mull__push_matcher(lua_State *L, const mull__plain_matcher *matcher);
void mull__push_test(lua_State *L, const void *test);

/* mull__push_rule pushes a rule with its chain; `queue` is where its dead letters go if it names no
 * queue, `steps` how many of each tier are shown. mull__push_declaration is for an unrecoverable
 * declaration, which has none. */
void mull__push_rule(lua_State *L, const mull__rule *rule, const char *queue, int64_t steps);
void mull__push_declaration(lua_State *L, const void *rule);

/* The timeout of a consumer that names none: what a handler may take where none is known. */
enum { MULL__HANDLER_MS = 30 * 1000 };

/* mull__set_extent sets the fields of an extent in the table on top; what has no bound is left out.
 */
void mull__set_extent(lua_State *L, const mull__extent *extent);

/* mull__extents_of_rules gives those of a scope's rules each alone, by mull__rule_at, to be freed
 * by free(); NULL: there is no memory. */
mull__extent *mull__extents_of_rules(const mull__scope *scope, const mull__mixes *mixes,
                                     int64_t *effort);

#endif
