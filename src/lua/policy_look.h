/* policy_look.h: what a policy says, and why, as Lua tables: policy:table, policy:explain and
 * policy:check. */
#ifndef MULL__POLICY_LOOK_H
#define MULL__POLICY_LOOK_H

#include "policy/table.h"

#include <lua.h>

/* mull__policy_table is table(policy, consumer or nil, transport or nil). */
int mull__policy_table(lua_State *L);

/* mull__policy_explain is explain(policy, failure, options): a failure as decide takes it, or its
 * JSON text. */
int mull__policy_explain(lua_State *L);

/* mull__policy_check is check(policy, consumers or nil, transports or nil): a consumer is { name =,
 * queue =, transport =, url =, timeout_ms = }, a transport its name. It gives { generation =,
 * findings = { ... }, bounds = { ... }, refused = { ... } }: the last is what `run` would refuse; a
 * finding has its kind, of policy/findings.h, for its words. */
int mull__policy_check(lua_State *L);

/* mull__set_scopes sets the field `scopes` of the table on top: those that are looked at for a
 * consumer on a transport, the nearest first. Each name may be NULL. */
void mull__set_scopes(lua_State *L, const mull__table *table, const char *consumer,
                      const char *transport);

#endif
