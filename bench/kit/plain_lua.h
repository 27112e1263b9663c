/* plain_lua.h: the policy of peers/function.lua, in a Lua state of its own. */
#ifndef BENCH_PLAIN_LUA_H
#define BENCH_PLAIN_LUA_H

#include "mulligan.h"

typedef struct bench_plain_lua bench_plain_lua;

/* bench_plain_lua_open gives NULL where the file can't be run. */
bench_plain_lua *bench_plain_lua_open(const char *path);
void bench_plain_lua_close(bench_plain_lua *plain);

/* bench_plain_lua_decide calls the function without jitter, as a host does: with tables made of
 * this failure. The action is borrowed until the next call. Not 0: it raised. */
int bench_plain_lua_decide(bench_plain_lua *plain, const mull_failure *failure, const char **action,
                           int64_t *delay_ms);

/* bench_plain_lua_call_ns is what one such call takes, with jitter; _loop_ns what it takes where
 * Lua itself calls the function again and again with the same tables. Below 0: it raised. */
double bench_plain_lua_call_ns(bench_plain_lua *plain, const mull_failure *failure);
double bench_plain_lua_loop_ns(bench_plain_lua *plain, const mull_failure *failure);

#endif
