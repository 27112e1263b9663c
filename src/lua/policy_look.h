/* policy_look.h: what a policy says, and why, as Lua tables: policy:table, policy:explain and
 * policy:check. */
#ifndef MULL__POLICY_LOOK_H
#define MULL__POLICY_LOOK_H

#include "policy/table.h"

#include <lua.h>

/* mull__policy_table is table(policy, consumer or nil, transport or nil). As there may be many
 * rules, `rules` and `cause_rules` are functions: f(n) gives a rule or nil, f() how many there are.
 * Second is what they look at, to be closed. */
int mull__policy_table(lua_State *L);

/* mull__policy_explain is explain(policy, failure, options): a failure as decide takes it, or its
 * JSON text. */
int mull__policy_explain(lua_State *L);

/* mull__policy_check is check(policy, consumers or nil, transports or nil): a consumer is { name =,
 * queue =, transport =, url =, timeout_ms = }, a transport its name. It gives { generation =,
 * findings = { ... }, bounds = { ... }, refused = { ... } }: the last is what `run` would refuse; a
 * finding has its kind, of analysis/findings.h, for its words. */
int mull__policy_check(lua_State *L);

/* mull__policy_not_there is not_there(policy, consumers, transports): { findings = { ... } } of the
 * scopes that are for none of them; of a consumer only its name is looked at. */
int mull__policy_not_there(lua_State *L);

/* mull__set_scopes sets the field `scopes` of the table on top: those that are looked at for a
 * consumer on a transport, the nearest first. Each name may be NULL. */
void mull__set_scopes(lua_State *L, const mull__table *table, const char *consumer,
                      const char *transport);

#endif
