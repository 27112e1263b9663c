/* hearing.c: see hearing.h.
 *
 *   bus:on("TimeoutError")      look("on"), which gives say; say(bus, "TimeoutError")
 *      :retry(5, "200ms")       look("retry"), say(rule, 5, "200ms")
 *
 * Lua 5.4.4 gives every call of a chain over several lines the line of the first. The word's own
 * line is known when it is looked up, so that is where it is taken, and `say` carries it. */
#include "hearing.h"

#include <lauxlib.h>
#include <string.h>

#include "base/utf8.h"
#include "chain.h"
#include "recall.h"

/* hearing is the first upvalue of every function here. Its user values keep the place that was
 * asked for last, as words of one line ask for the same; the names of files and their numbers, each
 * under the other; and the stage of a rule at which a word was looked up last. */
typedef struct hearing {
    int closed;        /* the load is over */
    lua_Integer files; /* how many there are */
    const char *file;  /* the last one's name, and its number; NULL: there is none */
    lua_Integer number;
    lua_Integer spot; /* of the last place; NOWHERE: there is none */
} hearing;

enum { LAST_PLACE = 1, FILES, LAST_STAGE, VALUES = LAST_STAGE };

/* The upvalues of look and say. */
enum { HEARING = 1, KIND };
enum { OBJECT = 2, ACT, SPOT, SAY_UPVALUES = SPOT };

/* A kind has what `look` needs most in its array. */
enum { ACTS = 1, FIELDS };

static hearing *hearing_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(HEARING));
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* A spot is a place as a number, which is all that most words need of it: that of the file, and the
 * line. */
enum { LINE_BITS = 32, NOWHERE = -1 };

static lua_Integer file_of(lua_Integer spot)
{
    return spot >> LINE_BITS;
}

lua_Integer mull__hearing_line(lua_Integer spot)
{
    return spot & (((lua_Integer)1 << LINE_BITS) - 1);
}

/* number_file gives a file's number. */
static lua_Integer number_file(lua_State *L, hearing *h, const char *file)
{
    if (h->file && strcmp(h->file, file) == 0)
        return h->number;
    lua_getiuservalue(L, lua_upvalueindex(HEARING), FILES);
    if (lua_getfield(L, -1, file) == LUA_TNIL) {
        lua_pushstring(L, file);
        lua_rawseti(L, -3, h->files + 1);
        lua_pushinteger(L, h->files + 1);
        lua_setfield(L, -3, file);
        h->files++;
    }
    lua_Integer number = lua_isnil(L, -1) ? h->files : lua_tointeger(L, -1);
    lua_rawgeti(L, -2, number);
    h->file = lua_tostring(L, -1);
    h->number = number;
    lua_pop(L, 3);
    return number;
}

/* find gives the innermost spot in a policy's file that is at work now. The frames that are no
 * policy's are C's and those of embedded files, whose names begin with "=". */
static lua_Integer find(lua_State *L, hearing *h)
{
    lua_Debug at;
    for (int level = 1; lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sl", &at) && at.source[0] == '@')
            return number_file(L, h, at.source + 1) << LINE_BITS | at.currentline;
    return number_file(L, h, "policy.lua") << LINE_BITS;
}

/* push_file pushes the name of a spot's file. `from` is the hearing's index here and below. */
static void push_file(lua_State *L, int from, lua_Integer spot)
{
    lua_getiuservalue(L, from, FILES);
    lua_rawgeti(L, -1, file_of(spot));
    lua_remove(L, -2);
}

void mull__hearing_push_place(lua_State *L, int from, lua_Integer spot)
{
    hearing *h = lua_touserdata(L, from);
    if (h->spot == spot) {
        lua_getiuservalue(L, from, LAST_PLACE);
        return;
    }
    h->spot = NOWHERE;
    lua_createtable(L, 0, 2);
    mull__hearing_set_place(L, from, spot);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, from, LAST_PLACE);
    h->spot = spot;
}

void mull__hearing_set_place(lua_State *L, int from, lua_Integer spot)
{
    push_file(L, from, spot);
    lua_setfield(L, -2, "file");
    lua_pushinteger(L, mull__hearing_line(spot));
    lua_setfield(L, -2, "line");
}

static int place(lua_State *L)
{
    mull__hearing_push_place(L, lua_upvalueindex(HEARING), find(L, hearing_of(L)));
    return 1;
}

/* ---- Saying a word --------------------------------------------------------------------------- */

/* said_at gives where a word is said: at its lookup; but one that was kept in a variable stands
 * where it is called, below that. */
static lua_Integer said_at(lua_State *L)
{
    lua_Integer looked = lua_tointeger(L, lua_upvalueindex(SPOT));
    lua_Integer called = find(L, hearing_of(L));
    return file_of(looked) == file_of(called) && looked > called ? looked : called;
}

/* push_data pushes the data of an object: its metatable, or what it has as a userdata. */
static void push_data(lua_State *L, int object)
{
    if (lua_type(L, object) == LUA_TUSERDATA)
        lua_getiuservalue(L, object, MULL__HEARING_DATA);
    else
        lua_getmetatable(L, object);
}

/* push_of_kind pushes a function of the kind that the word's object is of; the object's own
 * __index knows the kind. */
static void push_of_kind(lua_State *L, const char *name)
{
    luaL_getmetafield(L, lua_upvalueindex(OBJECT), "__index");
    lua_getupvalue(L, -1, KIND);
    lua_getfield(L, -1, name);
}

static int say_late(lua_State *L)
{
    push_of_kind(L, "name_of");
    lua_pushvalue(L, lua_upvalueindex(ACT));
    lua_call(L, 1, 1);
    return luaL_error(L, "%s can't be said once the policy is loaded", lua_tostring(L, -1));
}

static int say_wrongly(lua_State *L)
{
    push_of_kind(L, "misused");
    push_data(L, lua_upvalueindex(OBJECT));
    lua_pushvalue(L, lua_upvalueindex(ACT));
    mull__hearing_push_place(L, lua_upvalueindex(HEARING), said_at(L));
    lua_call(L, 3, 1);
    return 1;
}

/* act calls a word's act with the object's data, the place, the number of arguments and these,
 * which begin at index 2, below `top`. An act in C gets the spot for the place. Where it gives
 * nothing, the word gives its object. */
static int act(lua_State *L)
{
    int top = lua_gettop(L);
    lua_pushinteger(L, top - 1);
    lua_replace(L, 1);
    lua_pushvalue(L, lua_upvalueindex(ACT));
    push_data(L, lua_upvalueindex(OBJECT));
    if (lua_iscfunction(L, lua_upvalueindex(ACT)))
        lua_pushinteger(L, said_at(L));
    else
        mull__hearing_push_place(L, lua_upvalueindex(HEARING), said_at(L));
    lua_rotate(L, 1, 3);
    lua_call(L, top + 2, LUA_MULTRET);
    if (lua_gettop(L) == 0)
        lua_pushvalue(L, lua_upvalueindex(OBJECT));
    return lua_gettop(L);
}

/* say_colon is a word that is said with a colon, on what it was taken from. */
static int say_colon(lua_State *L)
{
    if (hearing_of(L)->closed)
        return say_late(L);
    if (!lua_rawequal(L, 1, lua_upvalueindex(OBJECT)))
        return say_wrongly(L);
    return act(L);
}

/* say_point is one that is said with a point. */
static int say_point(lua_State *L)
{
    if (hearing_of(L)->closed)
        return say_late(L);
    if (lua_rawequal(L, 1, lua_upvalueindex(OBJECT)))
        return say_wrongly(L);
    lua_pushnil(L);
    lua_insert(L, 1);
    return act(L);
}

/* ---- Looking a word up ----------------------------------------------------------------------- */

/* look_in_vain: the kind says what is wrong with a word that it doesn't have, which is at index 2;
 * it stands at `spot`. */
static int look_in_vain(lua_State *L, lua_Integer spot)
{
    lua_getfield(L, lua_upvalueindex(KIND), "unknown");
    push_data(L, 1);
    lua_pushvalue(L, 2);
    mull__hearing_push_place(L, lua_upvalueindex(HEARING), spot);
    lua_call(L, 3, 1);
    return 1;
}

/* push_field pushes what an object of the kind has as a field, at any time; 0: it has none. */
static int push_field(lua_State *L)
{
    if (lua_rawgeti(L, lua_upvalueindex(KIND), FIELDS) == LUA_TTABLE) {
        lua_pushvalue(L, 2);
        if (lua_rawget(L, -2) != LUA_TNIL)
            return 1;
    }
    return 0;
}

/* look(object, word) is the __index of objects. */
static int look(lua_State *L, lua_CFunction say)
{
    hearing *h = hearing_of(L);
    if (push_field(L))
        return 1;
    if (h->closed)
        return luaL_error(L, "a policy can't be changed once it is loaded");
    lua_Integer spot = find(L, h);
    lua_settop(L, 2);
    lua_rawgeti(L, lua_upvalueindex(KIND), ACTS);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, 3) == LUA_TNIL)
        return look_in_vain(L, spot);
    lua_pushvalue(L, lua_upvalueindex(HEARING));
    lua_pushvalue(L, 1);
    lua_rotate(L, -3, 2); /* hearing, object, act */
    lua_pushinteger(L, spot);
    lua_pushcclosure(L, say, SAY_UPVALUES);
    return 1;
}

static int look_for_colon(lua_State *L)
{
    return look(L, say_colon);
}

static int look_for_point(lua_State *L)
{
    return look(L, say_point);
}

/* look_at_stage keeps the stage, for an error may come before its word is said. */
static int look_at_stage(lua_State *L)
{
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, lua_upvalueindex(HEARING), LAST_STAGE);
    return look_for_colon(L);
}

static int is_set(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    int set = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return set;
}

static int make_index(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_CFunction look_for = is_set(L, "point")   ? look_for_point
                             : is_set(L, "stage") ? look_at_stage
                                                  : look_for_colon;
    lua_pushvalue(L, lua_upvalueindex(HEARING));
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, look_for, 2);
    return 1;
}

/* is_begun(data) compares the last stage's data. */
static int is_begun(lua_State *L)
{
    lua_getiuservalue(L, lua_upvalueindex(HEARING), LAST_STAGE);
    if (lua_isnil(L, -1))
        return 1;
    push_data(L, -1);
    lua_pushboolean(L, lua_rawequal(L, 1, -1));
    return 1;
}

static int close_hearing(lua_State *L)
{
    hearing_of(L)->closed = 1;
    return 0;
}

/* ---- Values ---------------------------------------------------------------------------------- */

int mull__hearing_is_name(lua_State *L, int index)
{
    size_t size = 0;
    const char *text = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &size) : NULL;
    return size > 0 && strlen(text) == size && mull__utf8_valid(text);
}

static int is_name(lua_State *L)
{
    lua_pushboolean(L, mull__hearing_is_name(L, 1));
    return 1;
}

/* ---- The module ------------------------------------------------------------------------------ */

void mull__hearing_push(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"place", place},
        {"index", make_index},
        {"is_begun", is_begun},
        {"close", close_hearing},
        {"is_name", is_name},
        {"recall", mull__recall},
        {"chain_word", mull__chain_word},
        {"beginner", mull__chain_beginner},
        {"opener", mull__chain_opener},
        {NULL, NULL},
    };
    luaL_newlibtable(L, functions);
    hearing *h = lua_newuserdatauv(L, sizeof *h, VALUES);
    *h = (hearing){.spot = NOWHERE};
    lua_newtable(L);
    lua_setiuservalue(L, -2, FILES);
    luaL_setfuncs(L, functions, 1);
}
