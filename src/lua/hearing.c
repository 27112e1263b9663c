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
#include "recall.h"
#include "settings.h"
#include "vm.h"

/* hearing is the first upvalue of every function here. Its user values keep the place that was
 * asked for last, as words of one line ask for the same; and the stage of a rule at which a word
 * was looked up last. */
typedef struct hearing {
    int closed;       /* the load is over */
    const char *file; /* of the last place, whose it is; NULL: there is none */
    int line;
} hearing;

enum { LAST_PLACE = 1, LAST_STAGE, VALUES = LAST_STAGE };

/* What has its data not as its metatable, but as a userdata, has it under this user value. */
enum { DATA = 1 };

/* The upvalues of look and say. */
enum { HEARING = 1, KIND };
enum { OBJECT = 2, ACT, LOOKED, SAY_UPVALUES = LOOKED };

/* A kind has what `look` needs most in its array. */
enum { ACTS = 1, FIELDS };

static hearing *hearing_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(HEARING));
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* find gives the innermost place in a policy's file that is at work now. The frames that are no
 * policy's are C's and those of embedded files, whose names begin with "=". */
static const char *find(lua_State *L, int *line)
{
    lua_Debug at;
    for (int level = 1; lua_getstack(L, level, &at); level++)
        if (lua_getinfo(L, "Sl", &at) && at.source[0] == '@') {
            *line = at.currentline;
            return at.source + 1;
        }
    *line = 0;
    return "policy.lua";
}

/* push_place pushes the place that `find` gave, the last one again where it is the same. */
static void push_place(lua_State *L, const char *file, int line)
{
    hearing *h = hearing_of(L);
    int same_file = h->file && strcmp(h->file, file) == 0;
    lua_getiuservalue(L, lua_upvalueindex(HEARING), LAST_PLACE);
    if (same_file && h->line == line)
        return;
    h->file = NULL;
    lua_createtable(L, 0, 2);
    lua_insert(L, -2);
    if (same_file)
        lua_getfield(L, -1, "file");
    else
        lua_pushstring(L, file);
    lua_remove(L, -2);
    const char *kept = lua_tostring(L, -1);
    lua_setfield(L, -2, "file");
    lua_pushinteger(L, line);
    lua_setfield(L, -2, "line");
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, lua_upvalueindex(HEARING), LAST_PLACE);
    h->file = kept;
    h->line = line;
}

static void push_here(lua_State *L)
{
    int line;
    const char *file = find(L, &line);
    push_place(L, file, line);
}

static int place(lua_State *L)
{
    push_here(L);
    return 1;
}

/* ---- Saying a word --------------------------------------------------------------------------- */

/* push_said pushes where a word is said: at its lookup; but one that was kept in a variable stands
 * where it is called, below that. */
static void push_said(lua_State *L)
{
    int line;
    const char *file = find(L, &line);
    lua_getfield(L, lua_upvalueindex(LOOKED), "line");
    lua_getfield(L, lua_upvalueindex(LOOKED), "file");
    int at_lookup = lua_tointeger(L, -2) >= line && strcmp(lua_tostring(L, -1), file) == 0;
    lua_pop(L, 2);
    if (at_lookup)
        lua_pushvalue(L, lua_upvalueindex(LOOKED));
    else
        push_place(L, file, line);
}

/* push_data pushes the data of an object: its metatable, or what it has as a userdata. */
static void push_data(lua_State *L, int object)
{
    if (lua_type(L, object) == LUA_TUSERDATA)
        lua_getiuservalue(L, object, DATA);
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
    push_said(L);
    lua_call(L, 3, 1);
    return 1;
}

/* act calls a word's act with the object's data, the place, the number of arguments and these,
 * which begin at index 2, below `top`. Where it gives nothing, the word gives its object. */
static int act(lua_State *L)
{
    int top = lua_gettop(L);
    lua_pushinteger(L, top - 1);
    lua_replace(L, 1);
    lua_pushvalue(L, lua_upvalueindex(ACT));
    push_data(L, lua_upvalueindex(OBJECT));
    push_said(L);
    lua_rotate(L, 1, 3);
    lua_call(L, top + 2, LUA_MULTRET);
    if (lua_gettop(L) == 0)
        lua_pushvalue(L, lua_upvalueindex(OBJECT));
    return lua_gettop(L);
}

/* say_colon is a word that is said with a colon, on what it was taken from; say_point is one that
 * is said with a point. */
static int say_colon(lua_State *L)
{
    if (hearing_of(L)->closed)
        return say_late(L);
    return lua_rawequal(L, 1, lua_upvalueindex(OBJECT)) ? act(L) : say_wrongly(L);
}

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

/* look_in_vain: the kind says what is wrong with a word that it doesn't have, which is at index 2.
 */
static int look_in_vain(lua_State *L)
{
    lua_getfield(L, lua_upvalueindex(KIND), "unknown");
    push_data(L, 1);
    lua_pushvalue(L, 2);
    push_here(L);
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
    if (push_field(L))
        return 1;
    if (hearing_of(L)->closed)
        return luaL_error(L, "a policy can't be changed once it is loaded");
    lua_settop(L, 2);
    lua_rawgeti(L, lua_upvalueindex(KIND), ACTS);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, 3) == LUA_TNIL)
        return look_in_vain(L);
    lua_pushvalue(L, lua_upvalueindex(HEARING));
    lua_pushvalue(L, 1);
    lua_rotate(L, -3, 2); /* hearing, object, act */
    push_here(L);
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

/* stage(metatable, data) makes an object of a kind of which there are many: all have one metatable.
 */
static int make_stage(lua_State *L)
{
    lua_settop(L, 2);
    lua_newuserdatauv(L, 0, DATA);
    lua_insert(L, 1);
    lua_setiuservalue(L, 1, DATA);
    lua_setmetatable(L, 1);
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

static int is_name(lua_State *L)
{
    size_t size = 0;
    const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tolstring(L, 1, &size) : NULL;
    lua_pushboolean(L, size > 0 && strlen(text) == size && mull__utf8_valid(text));
    return 1;
}

/* ---- The module ------------------------------------------------------------------------------ */

void mull__hearing_push(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"place", place},         {"index", make_index}, {"is_begun", is_begun},
        {"close", close_hearing}, {"is_name", is_name},  {"recall", mull__recall},
        {"stage", make_stage},    {NULL, NULL},
    };
    luaL_newlibtable(L, functions);
    hearing *h = lua_newuserdatauv(L, sizeof *h, VALUES);
    *h = (hearing){0};
    luaL_setfuncs(L, functions, 1);
    mull__push_settings(L);
    lua_setfield(L, -2, "settings");
}
