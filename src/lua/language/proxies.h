/* proxies.h: what a policy's functions are given: read-only tables that read a failure in place.
 *
 *   a function's own err and ctx     the same two in all its calls: a decision makes no table
 *   what is in them (cause, message, headers, lists, maps), a verdict, a config, an event
 *                                    made when it is read, and never alive again after that call
 *
 * A view is an empty table with a metatable of its kind. What an err or a ctx shows isn't converted
 * before it is read, a list, a map or the message then as a whole. Outside of the call that it is
 * for, looking at it raises. */
#ifndef MULL__PROXIES_H
#define MULL__PROXIES_H

#include "mulligan.h"

#include <lua.h>

/* mull__views_own is an err and a ctx, by their addresses. */
typedef struct mull__views_own {
    const void *err, *ctx;
} mull__views_own;

/* mull__views is a state's; one call at a time. */
typedef struct mull__views {
    const mull_failure *failure; /* the call's; NULL: it has none */
    const mull__views_own *own;  /* those that show it */
    const char *given;           /* what a mistake calls what the call is given, with a verb */
    lua_Integer serial;          /* of the call; another one between two calls */
    int has_error;               /* ctx has the error in it */
    int has_made;                /* something besides the two */
} mull__views;

extern const mull__views_own mull__views_nobody; /* outside of calls */
void mull__views_forget(lua_State *L, mull__views *views);

/* mull__views_open makes ready a state, once; it pops a table child -> parent with the declared
 * types. May raise, like all of these but begin and end. */
void mull__views_open(lua_State *L);

/* mull__views_push_own pushes an err and a ctx, for a function to keep, and notes them. */
void mull__views_push_own(lua_State *L, mull__views_own *own);

/* mull__views_begin: from now on an err and a ctx show a failure, NULL: they show nothing;
 * `has_error`: the ctx has the err in it. */
static inline void mull__views_begin(mull__views *views, const mull__views_own *own,
                                     const mull_failure *failure, int has_error, const char *given)
{
    views->failure = failure;
    views->own = failure ? own : &mull__views_nobody;
    views->has_error = has_error;
    views->given = given;
}

/* mull__views_end: from now on, looking at any view raises. It raises nothing itself. */
static inline void mull__views_end(lua_State *L, mull__views *views)
{
    views->serial++;
    views->own = &mull__views_nobody;
    if (views->has_made)
        mull__views_forget(L, views);
}

/* mull__views_cover puts a view that shows it, and all tables in it, in the place of the table on
 * top. */
void mull__views_cover(lua_State *L);

/* mull__views_reveal is a Lua function: a plain table of what a view shows; nil: its argument is no
 * view. */
int mull__views_reveal(lua_State *L);

#endif
