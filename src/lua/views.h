/* views.h: what a policy's functions are given: read-only tables that read a failure in place.
 *
 *   a function's own err and ctx     the same two in all its calls: a decision makes no table
 *   what is in them (cause, message, headers, lists, maps), a verdict, a config, an event
 *                                    made when it is read, and never alive again after that call
 *
 * A view is an empty table with a metatable of its kind. What it shows isn't converted before it is
 * read. Outside of the call that it is for, looking at it raises. */
#ifndef MULL__VIEWS_H
#define MULL__VIEWS_H

#include "mulligan.h"
#include "short.h"

#include <lua.h>

enum { MULL__VIEW_NAMES = 17 };

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
    const char
        *names[MULL__VIEW_NAMES]; /* as the state has them: the same name, the same pointer */
} mull__views;

extern const mull__views_own mull__views_nobody; /* outside of calls */
void mull__views_forget(lua_State *L, mull__views *views);

/* mull__views_open makes ready a state, once; `parents` is the index of a table child -> parent
 * with the declared types. May raise, like all of these but begin and end. */
void mull__views_open(lua_State *L, int parents);

/* mull__views_push_own pushes an err and a ctx, for a function to keep, and notes them. The err has
 * room for so many `reads`, so that the first call need not make any. */
void mull__views_push_own(lua_State *L, mull__views_own *own, int reads);

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

/* mull__views_reads is what a function reads from its err, by names that the state keeps. */
typedef struct mull__views_reads {
    int count;
    struct {
        const char *name;
        int own; /* which of the names that each error has; -1: none, so that a field has it */
    } of[MULL__READS];
} mull__views_reads;

/* mull__views_note_reads notes the `count` names on top. */
void mull__views_note_reads(lua_State *L, mull__views_reads *reads, int count);

/* mull__views_fill sets in the err at `index` what a function reads from it, where that is little;
 * the rest is looked up as ever. What is set stays: only for a function that keeps no err. The
 * names are at index 1 and so on. mull__views_empty takes it all out of the err of the ctx on top.
 */
void mull__views_fill(lua_State *L, int index, const mull__views_reads *reads);
void mull__views_empty(lua_State *L, const mull__views_reads *reads);

/* mull__views_cover puts a view that shows it in the place of the table on top; of a field of that
 * table where it has one, too. */
void mull__views_cover(lua_State *L);
void mull__views_cover_field(lua_State *L, const char *name);

/* mull__views_reveal is a Lua function: a plain table of what a view shows; nil: its argument is no
 * view. */
int mull__views_reveal(lua_State *L);

#endif
