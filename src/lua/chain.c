/* chain.c: see chain.h. */
#include "chain.h"

#include <lauxlib.h>

#include "hearing.h"
#include "recall.h"

/* ---- Words ----------------------------------------------------------------------------------- */

enum { STATE = 1 }; /* in a rule's list; the words follow */

/* The upvalues of a word's act. */
enum { HEARING = 1, LEADS_TO, WORD, REFUSE, WORK, FIELD, KNOWN, UPVALUES = KNOWN };

/* The arguments of an act; the word's own follow. */
enum { RULE = 1, HERE, COUNT };

/* make_place puts the place of an act's spot into its place. */
static void make_place(lua_State *L)
{
    mull__hearing_push_place(L, lua_upvalueindex(HEARING), lua_tointeger(L, HERE));
    lua_replace(L, HERE);
}

/* keep_hearing puts the hearing below `count` values at the bottom of the stack, and drops what is
 * above these. */
static void keep_hearing(lua_State *L, int count)
{
    lua_settop(L, count);
    lua_pushvalue(L, lua_upvalueindex(HEARING));
    lua_insert(L, 1);
}

static int refuse(lua_State *L)
{
    lua_settop(L, HERE);
    make_place(L);
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
    lua_pushinteger(L, mull__hearing_line(lua_tointeger(L, HERE)));
    lua_rawseti(L, RULE, said + 2);
    return 1;
}

/* push_read pushes what `work` reads out of all but the rule, arguments up to `top`, and whether it
 * is this rule's only. */
static void push_read(lua_State *L, int top)
{
    make_place(L);
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
    push_value(L);
    lua_pushvalue(L, lua_upvalueindex(FIELD));
    lua_insert(L, -2);
    lua_rawset(L, RULE);
    return 0;
}

int mull__chain_word(lua_State *L)
{
    keep_hearing(L, UPVALUES - 1);
    lua_pushcclosure(L, hear, UPVALUES);
    return 1;
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* What a rule has room for: its state and the words of the longest chain, each with its line; and
 * the fields that most have. */
enum { LIST = 1 + 3 * 2, FIELDS = 8 };

static void set_value(lua_State *L, int rule, const char *name, int index)
{
    lua_pushvalue(L, index);
    lua_setfield(L, rule, name);
}

/* set_here sets the rule's file and line: a spot's, or a place's. */
static void set_here(lua_State *L, int rule, int here)
{
    if (lua_isinteger(L, here)) {
        lua_pushvalue(L, rule);
        mull__hearing_set_place(L, lua_upvalueindex(HEARING), lua_tointeger(L, here));
        lua_pop(L, 1);
        return;
    }
    lua_getfield(L, here, "file");
    lua_setfield(L, rule, "file");
    lua_getfield(L, here, "line");
    lua_setfield(L, rule, "line");
}

/* push_rule appends a new rule to the list `rules`, and pushes its stage, with `stages` as its
 * metatable, and the rule. All are indexes on the stack, or of upvalues. */
static void push_rule(lua_State *L, int stages, int rules, int label, int here, int type)
{
    lua_newuserdatauv(L, 0, MULL__HEARING_DATA);
    lua_createtable(L, LIST, FIELDS);
    int rule = lua_gettop(L);
    set_value(L, rule, "type", type);
    set_value(L, rule, "scope", label);
    set_here(L, rule, here);
    lua_pushliteral(L, "start");
    lua_rawseti(L, rule, STATE);
    lua_pushvalue(L, rule);
    lua_rawseti(L, rules, (lua_Integer)lua_rawlen(L, rules) + 1);
    lua_pushvalue(L, rule);
    lua_setiuservalue(L, rule - 1, MULL__HEARING_DATA);
    lua_pushvalue(L, stages);
    lua_setmetatable(L, rule - 1);
}

/* begin(rules, label, here, type) is a beginner. */
static int begin(lua_State *L)
{
    enum { STAGES = 2 };
    enum { RULES = 1, LABEL, PLACE, TYPE };
    lua_settop(L, TYPE);
    push_rule(L, lua_upvalueindex(STAGES), RULES, LABEL, PLACE, TYPE);
    return 2;
}

int mull__chain_beginner(lua_State *L)
{
    keep_hearing(L, 1);
    lua_pushcclosure(L, begin, 2);
    return 1;
}

/* open(data, spot, n, type, ...) is an opener. */
static int open(lua_State *L)
{
    enum { STAGES = 2, BOOK, OTHERWISE };
    enum { DATA = 1, TYPE = COUNT + 1 };
    int is_pinned = lua_getfield(L, lua_upvalueindex(BOOK), "pinned") != LUA_TNIL;
    lua_pop(L, 1);
    if (is_pinned || lua_tointeger(L, COUNT) != 1 || !mull__hearing_is_name(L, TYPE)) {
        make_place(L);
        lua_pushvalue(L, lua_upvalueindex(OTHERWISE));
        lua_insert(L, 1);
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        return lua_gettop(L);
    }
    lua_getfield(L, DATA, "rules");
    lua_getfield(L, DATA, "label");
    push_rule(L, lua_upvalueindex(STAGES), TYPE + 1, TYPE + 2, HERE, TYPE);
    lua_pop(L, 1);
    return 1;
}

int mull__chain_opener(lua_State *L)
{
    keep_hearing(L, 3);
    lua_pushcclosure(L, open, 4);
    return 1;
}
