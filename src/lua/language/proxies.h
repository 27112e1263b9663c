/* proxies.h: what a policy's functions are given: read-only tables that read a failure in place.
 *
 *   a function's own err and ctx     the same two in all its calls: a decision makes no table
 *   what is in them (cause, message, headers, lists, maps), a verdict, a config, an event
 *                                    made when it is read, and never alive again after that call
 *
 * A proxy is an empty table with a metatable of its kind. What an err or a ctx shows isn't
 * converted before it is read, a list, a map or the message then as a whole. Outside of the call
 * that it is for, looking at it raises. */
#ifndef MULL__PROXIES_H
#define MULL__PROXIES_H

#include "mulligan.h"

#include <lua.h>

/* mull__proxy_pair is an err and a ctx, by their addresses. */
typedef struct mull__proxy_pair {
    const void *err, *ctx;
} mull__proxy_pair;

/* mull__proxies is a state's; one call at a time. */
typedef struct mull__proxies {
    const mull_failure *failure; /* the call's; NULL: it has none */
    const mull__proxy_pair *own; /* those that show it */
    const char *given;           /* what a mistake calls what the call is given, with a verb */
    lua_Integer serial;          /* of the call; another one between two calls */
    int has_error;               /* ctx has the error in it */
    int has_call_cache;          /* something besides the two */
} mull__proxies;

extern const mull__proxy_pair mull__proxies_none; /* outside of calls */
void mull__proxies_forget(lua_State *L, mull__proxies *proxies);

/* mull__proxies_open makes ready a state, once; it pops a table child -> parent with the declared
 * types. May raise, like all of these but begin and end. */
void mull__proxies_open(lua_State *L);

/* mull__proxies_push_pair pushes an err and a ctx, for a function to keep, and notes them. */
void mull__proxies_push_pair(lua_State *L, mull__proxy_pair *own);

/* mull__proxies_begin: from now on an err and a ctx show a failure, NULL: they show nothing;
 * `has_error`: the ctx has the err in it. */
static inline void mull__proxies_begin(mull__proxies *proxies, const mull__proxy_pair *own,
                                       const mull_failure *failure, int has_error,
                                       const char *given)
{
    proxies->failure = failure;
    proxies->own = failure ? own : &mull__proxies_none;
    proxies->has_error = has_error;
    proxies->given = given;
}

/* mull__proxies_end: from now on, looking at any proxy raises. It raises nothing itself. */
static inline void mull__proxies_end(lua_State *L, mull__proxies *proxies)
{
    proxies->serial++;
    proxies->own = &mull__proxies_none;
    if (proxies->has_call_cache)
        mull__proxies_forget(L, proxies);
}

/* mull__proxy_wrap puts a proxy that shows it, and all tables in it, in the place of the table on
 * top. */
void mull__proxy_wrap(lua_State *L);

/* mull__proxy_unwrap is a Lua function: a plain table of what a proxy shows; nil: its argument is
 * no proxy. */
int mull__proxy_unwrap(lua_State *L);

#endif
