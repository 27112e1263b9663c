/* callbacks.h: callbacks in the embedder's Lua state: where they run, what keeps their functions
 * alive, and who is told when one raises.
 *
 *   owners (weak) ── address of an engine or policy ──> its userdata ── anchors: log, event, ...
 *
 * C callbacks know an address only. They look the userdata up and find the Lua functions in its
 * anchors, a table that is its first user value; so a function that refers to its own engine is a
 * cycle that the collector sees. */
#ifndef MULL__CALLBACKS_H
#define MULL__CALLBACKS_H

#include "mulligan.h"

#include <lua.h>

struct mull__job;
struct mull__watchdog;

/* mull__callbacks: one for each Lua state. */
typedef struct mull__callbacks {
    lua_State *L; /* a thread of the state on which callbacks run: it never yields, never dies */
    struct mull__job *job;           /* the handler's call that runs; NULL: none */
    uint32_t jobs;                   /* at work, those that sleep included */
    uint64_t begun;                  /* jobs so far */
    struct mull__watchdog *watchdog; /* the program's; NULL elsewhere */
} mull__callbacks;

/* mull__callbacks_of gives the host of a state, made the first time. May raise. */
mull__callbacks *mull__callbacks_of(lua_State *L);

/* mull__register_owner makes the userdata at `index`, with a table as its first user value, the
 * owner for callbacks that know `address`. May raise. */
void mull__register_owner(lua_State *L, int index, const void *address);

/* mull__unregister_owner forgets it. Raises nothing. */
void mull__unregister_owner(lua_State *L, const void *address);

/* mull__push_references pushes the anchors of an address and gives 1; or pushes nothing and gives
 * 0. The stack needs three free slots. */
int mull__push_references(lua_State *L, const void *address);

/* mull__call_protected calls function(argument as light userdata) on the host's thread. What it
 * raises is logged for the owner at `address`, beginning with `what`; non-zero then. */
int mull__call_protected(mull__callbacks *host, const void *address, const char *what,
                         lua_CFunction function, void *argument);

/* mull__switch_job makes a call the one at work; NULL: none. The one that was. See handler.c. */
struct mull__job *mull__switch_job(mull__callbacks *host, struct mull__job *job);

/* mull__note_position keeps where the Lua function is that runs, for the watchdog. */
void mull__note_position(lua_State *L);

/* mull__callback_log gives a line to the owner's log function; a warning or worse that finds none
 * goes to stderr, so it isn't lost. */
void mull__callback_log(mull__callbacks *host, const void *address, mull_level level,
                        const char *text);

/* mull__callback_mute_events is mute_policy(policy, names): its event function isn't told of events
 * whose name is a key of `names`. Nothing is made in Lua of these. */
int mull__callback_mute_events(lua_State *L);

/* mull__callback_word_verdicts is in_words(engine, decided): from now on decided(action, words)
 * hears of verdicts in place of the event function. Nothing else is made in Lua of these. */
int mull__callback_word_verdicts(lua_State *L);

/* mull__push_decided_words pushes the words of a verdict, for a line of the log; see log_words.c.
 */
void mull__push_decided_words(lua_State *L, const mull_event *event);

/* mull__callback_event gives an event to the owner's event function, if it has one. */
void mull__callback_event(mull__callbacks *host, const void *address, const mull_event *event);

/* mull__level_name is the level's word in Lua. */
const char *mull__level_name(mull_level level);

/* mull__fail pushes nil, `message`, and the name of `code`: what a Lua function returns. */
int mull__fail(lua_State *L, int code, const char *message);

/* mull__code_name is the word for a code in Lua, "io"; mull__code_named the reverse, 0: none. */
const char *mull__code_name(int code);
int mull__code_named(const char *name);

#endif
