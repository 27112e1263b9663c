/* values.h: failures, errors and messages out of Lua, and back into it. What is read lives in an
 * arena; functions that read raise for misuse, in words that name the key. */
#ifndef MULL__VALUES_H
#define MULL__VALUES_H

#include "mulligan.h"
#include "scoped_memory.h"

/* What Lua has of a failure and of a message under the names that C has: the kind of each, and the
 * least number, or length of a text, that is taken. */
#define MULL__FAILURE_FIELDS(X)                                                                    \
    X(text, consumer, 1)                                                                           \
    X(text, transport, 1)                                                                          \
    X(integer, attempt, 1)                                                                         \
    X(integer, redeliveries, 0)                                                                    \
    X(integer, calls, 1)                                                                           \
    X(integer, deliveries, 1)                                                                      \
    X(integer, age_ms, 0)
#define MULL__MESSAGE_FIELDS(X) X(text, id, 0) X(text, type, 0) X(text, key, 0)

/* ---- Out of Lua ------------------------------------------------------------------------------ */

/* mull__read_failure reads a table with the keys of `mulligan decide`, or its text in JSON, in
 * whose place it leaves the table; a plain text is read without one, by wire/failure_value.h. An
 * unknown key raises. */
void mull__read_failure(lua_State *L, int index, mull__arena *arena, mull_failure *failure);

/* mull__read_error_value reads what a handler raised, and raises only for want of memory: an error
 * of mulligan.error as it is, leaving out what can't be passed on; anything else is an "Error" with
 * its text as the message and `stack` as its stack. */
const mull_error *mull__read_error_value(lua_State *L, int index, mull__arena *arena,
                                         const char *stack);

/* mull__read_outgoing reads the arguments queue, body, options from index `first` on. The body is
 * borrowed from Lua's string. */
void mull__read_outgoing(lua_State *L, int first, mull__arena *arena, mull_message *message,
                         int64_t *delay_ms);

/* mull__read_duration reads 0 or a text such as "1.5s" at `index`; `what` names it. */
int64_t mull__read_duration(lua_State *L, int index, const char *what);

/* mull__read_name reads a text in UTF-8 without a NUL, not empty. */
const char *mull__read_name(lua_State *L, int index, const char *what);

/* ---- Fields of the table on top: may raise for want of memory ---------------------------------
 */

/* mull__set_text: a text that is NULL isn't set. */
static inline void mull__set_text(lua_State *L, const char *field, const char *text)
{
    if (!text)
        return;
    lua_pushstring(L, text);
    lua_setfield(L, -2, field);
}

static inline void mull__set_integer(lua_State *L, const char *field, int64_t number)
{
    lua_pushinteger(L, number);
    lua_setfield(L, -2, field);
}

static inline void mull__set_number(lua_State *L, const char *field, double number)
{
    lua_pushnumber(L, number);
    lua_setfield(L, -2, field);
}

static inline void mull__set_flag(lua_State *L, const char *field, int is)
{
    lua_pushboolean(L, is);
    lua_setfield(L, -2, field);
}

/* ---- Into Lua, each pushes one value --------------------------------------------------------- */

/* mull__push_message is what a handler gets, mull__push_facts what a policy's function does. */
void mull__push_message(lua_State *L, const mull_message *message);
void mull__push_facts(lua_State *L, const mull_message *message);
void mull__push_value(lua_State *L, const mull_value *value);
void mull__push_failure(lua_State *L, const mull_failure *failure);
void mull__push_verdict(lua_State *L, const mull_verdict *verdict);
void mull__push_limit(lua_State *L, const mull_limit_status *limit);
void mull__push_event(lua_State *L, const mull_event *event);

/* mull__set_failure_counters sets in the table on top where a failure was, and its counters. */
void mull__set_failure_counters(lua_State *L, const mull_failure *failure);

/* mull__push_source pushes where a rule was written, without a line where it has no file. */
void mull__push_source(lua_State *L, const mull_rule *rule);

/* mull__set_rule sets the field `rule` of the table on top; NULL, or without a file: it doesn't. */
void mull__set_rule(lua_State *L, const mull_rule *rule);

#endif
