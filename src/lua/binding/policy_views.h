/* policy_views.h: what a policy says, and why, as Lua tables: policy:table, policy:explain and
 * policy:check. */
#ifndef MULL__POLICY_VIEWS_H
#define MULL__POLICY_VIEWS_H

#include "analysis/scope_usage.h"
#include "policy/table.h"

#include <lua.h>

/* mull__policy_table is table(policy, consumer or nil, transport or nil). As there may be many
 * rules, `rules` and `cause_rules` are functions: f(n) gives a rule or nil, f() how many there are.
 * Second is what they look at, to be closed. */
int mull__policy_table(lua_State *L);

/* mull__policy_explain is explain(policy, failure, options): a failure as decide takes it, or its
 * JSON text. */
int mull__policy_explain(lua_State *L);

/* mull__policy_check is check(policy, consumers or nil, transports or nil, names_only): a consumer
 * is { name =, queue =, transport =, url =, timeout_ms = }, a transport its name. It gives {
 * generation =, findings = { ... }, bounds = { ... }, refused = { ... } }: the last is what `run`
 * would refuse; a finding has its kind, of analysis/lint.h, for its words. `names_only`: only
 * names are looked at, and given only the findings of scopes that are for none of them. */
int mull__policy_check(lua_State *L);

/* mull__set_scopes sets the field `scopes` of the table on top: those that are looked at for a
 * consumer on a transport, the nearest first. Each name may be NULL. */
void mull__set_scopes(lua_State *L, const mull__table *table, const char *consumer,
                      const char *transport);

/* mull__set_settings sets the field `settings` of the table on top: those in force, each with its
 * place. */
void mull__set_settings(lua_State *L, const mull__table *table,
                        const mull__effective_settings *effective);

/* ---- model_to_lua.c: rules as Lua tables, with the keys of docs/table.md ---- */

/* mull__set_list sets, in the table on top, a list of what `push` pushes for each of `count` items
 * of so many bytes; with none it stays a list as JSON, too. mull__push_items pushes such a list,
 * mull__push_list an empty one. */
void mull__set_list(lua_State *L, const char *field, const void *items, size_t count, size_t bytes,
                    void (*push)(lua_State *L, const void *item));
void mull__push_items(lua_State *L, const void *items, size_t count, size_t bytes,
                      void (*push)(lua_State *L, const void *item));
void mull__push_list(lua_State *L);

/* mull__push_matcher pushes what docs/plain-rules.md has for a matcher; nil for none. */
void mull__push_matcher(lua_State *L, const mull__matcher *matcher);
void mull__push_test(lua_State *L, const void *test);

/* mull__push_rule pushes a rule with its chain; `queue` is where its dead letters go if it names no
 * queue, `steps` how many of each tier are shown. mull__push_declaration is for an unrecoverable
 * declaration, which has none. */
void mull__push_rule(lua_State *L, const mull__rule *rule, const char *queue, int64_t steps);
void mull__push_declaration(lua_State *L, const void *rule);

/* mull__push_rate_limit and mull__push_call_limit push a statement; what it doesn't say and has no
 * default is left out. */
void mull__push_rate_limit(lua_State *L, const void *limit);
void mull__push_call_limit(lua_State *L, const void *limit);

/* The timeout of a consumer that names none: what a handler may take where none is known. */
enum { MULL__HANDLER_MS = 30 * 1000 };

/* mull__set_range sets the fields of an range in the table on top; what has no bound is left out.
 */
void mull__set_range(lua_State *L, const mull__range *range);

/* mull__ranges_of_rules gives those of a scope's rules each alone, by mull__rule_at, to be freed
 * by free(); NULL: there is no memory. */
mull__range *mull__ranges_of_rules(const mull__scope *scope,
                                   const mull__effective_limit_list *mixes, int64_t *effort);

#endif
