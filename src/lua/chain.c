/* chain.c: see chain.h. */
#include "chain.h"

#include <lauxlib.h>

#include "recall.h"

/* ---- Words ----------------------------------------------------------------------------------- */

enum { STATE = 1 }; /* in a rule's list; the words follow */

/* The upvalues of a word's act. */
enum { LEADS_TO = 1, WORD, REFUSE, WORK, FIELD, KNOWN, UPVALUES = KNOWN };

/* The arguments of an act; the word's own follow. */
enum { RULE = 1, HERE, COUNT };

static int refuse(lua_State *L)
{
    lua_settop(L, HERE);
    lua_pushvalue(L, lua_upvalueindex(REFUSE));
    lua_insert(L, RULE);
    lua_call(L, 2, 1);
    return 1;
}

/* take_step moves the rule to the state that the word leads to; 0: it leads nowhere. */
static int take_step(lua_State *L)
{
    lua_rawgeti(L, RULE, STATE);
    if (lua_rawget(L, lua_upvalueindex(LEADS_TO)) == LUA_TNIL) {
        lua_pop(L, 1);
        return 0;
    }
    lua_rawseti(L, RULE, STATE);
    lua_Integer said = (lua_Integer)lua_rawlen(L, RULE);
    lua_pushvalue(L, lua_upvalueindex(WORD));
    lua_rawseti(L, RULE, said + 1);
    lua_pushvalue(L, HERE);
    lua_rawseti(L, RULE, said + 2);
    return 1;
}

/* push_read pushes what `work` reads out of all but the rule, arguments up to `top`, and whether it
 * is this rule's only. */
static void push_read(lua_State *L, int top)
{
    lua_pushvalue(L, lua_upvalueindex(WORK));
    for (int i = HERE; i <= top; i++)
        lua_pushvalue(L, i);
    lua_call(L, top - RULE, 2);
}

/* push_value pushes the value for the word's arguments, read now or before. */
static void push_value(lua_State *L)
{
    int top = lua_gettop(L);
    luaL_checkstack(L, top + 8, "too many arguments");
    if (!mull__recall_key(L, COUNT)) {
        push_read(L, top);
        lua_pop(L, 1);
        return;
    }
    lua_pushvalue(L, -1);
    if (lua_rawget(L, lua_upvalueindex(KNOWN)) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    push_read(L, top);
    int is_own = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (is_own)
        return;
    lua_insert(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, lua_upvalueindex(KNOWN)); /* nil, where it was wrong, stays unknown */
}

/* hear(rule, here, n, ...) is the act of a word. */
static int hear(lua_State *L)
{
    if (!take_step(L))
        return refuse(L);
    if (lua_isnil(L, lua_upvalueindex(FIELD))) {
        lua_pushvalue(L, lua_upvalueindex(WORK));
        lua_insert(L, RULE);
        lua_call(L, lua_gettop(L) - 1, 0);
        return 0;
    }
    push_value(L);
    lua_pushvalue(L, lua_upvalueindex(FIELD));
    lua_insert(L, -2);
    lua_rawset(L, RULE);
    return 0;
}

int mull__chain_word(lua_State *L)
{
    lua_settop(L, UPVALUES);
    lua_pushcclosure(L, hear, UPVALUES);
    return 1;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

enum { INDEX = 1, ASSIGN };

/* What a rule has room for: its state and the words of the longest chain, each with its place; and
 * fields. */
enum { LIST = 1 + 3 * 2, FIELDS = 16 };

static void set_text(lua_State *L, int rule, const char *name, const char *text)
{
    lua_pushstring(L, text);
    lua_setfield(L, rule, name);
}

static void set_value(lua_State *L, int rule, const char *name, int index)
{
    lua_pushvalue(L, index);
    lua_setfield(L, rule, name);
}

/* begin(rules, label, here, type, matcher) is a beginner. */
static int begin(lua_State *L)
{
    enum { RULES = 1, LABEL, PLACE, TYPE, MATCHER, STAGE, BEGUN };
    lua_settop(L, MATCHER);
    lua_newtable(L);
    lua_createtable(L, LIST, FIELDS);
    set_value(L, BEGUN, "type", TYPE);
    set_value(L, BEGUN, "matcher", MATCHER);
    set_value(L, BEGUN, "scope", LABEL);
    lua_getfield(L, PLACE, "file");
    lua_setfield(L, BEGUN, "file");
    lua_getfield(L, PLACE, "line");
    lua_setfield(L, BEGUN, "line");
    set_text(L, BEGUN, "action", "dead_letter");
    lua_pushstring(L, "start");
    lua_rawseti(L, BEGUN, STATE);
    set_value(L, BEGUN, "__index", lua_upvalueindex(INDEX));
    set_value(L, BEGUN, "__newindex", lua_upvalueindex(ASSIGN));
    lua_pushboolean(L, 0);
    lua_setfield(L, BEGUN, "__metatable");
    lua_pushvalue(L, BEGUN);
    lua_rawseti(L, RULES, (lua_Integer)lua_rawlen(L, RULES) + 1);
    lua_pushvalue(L, BEGUN);
    lua_setmetatable(L, STAGE);
    return 2;
}

int mull__chain_beginner(lua_State *L)
{
    lua_settop(L, ASSIGN);
    lua_pushcclosure(L, begin, ASSIGN);
    return 1;
}
