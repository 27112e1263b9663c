/* json.c: decoding; see json.h. */
#include "json.h"

#include "ceiling.h"
#include "json_encode.h"
#include "raise.h"
#include "scoped.h"
#include "wire/json_tree.h"

#include <lauxlib.h>

static const char tree_type[] = "mulligan.json.tree";

typedef struct tree {
    mull__json *root;
    size_t charged;
} tree;

static int drop(lua_State *L)
{
    tree *t = lua_touserdata(L, 1);
    mull__json_drop(t->root);
    mull__ceiling_refund(L, t->charged);
    *t = (tree){0};
    return 0;
}

static void push(lua_State *L, const mull__json *value, int level);

static void push_list(lua_State *L, const mull__json *list, size_t size, int level)
{
    lua_createtable(L, (int)size, 0);
    for (size_t i = 0; i < size; i++) {
        const mull__json *item = mull__json_item(list, i);
        push(L, item, level);
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            lua_pushlightuserdata(L, NULL);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    if (size == 0)
        mull__json_mark_list(L);
}

static void push_map(lua_State *L, const mull__json *map, size_t size, int level)
{
    lua_createtable(L, 0, (int)size);
    void *place = NULL;
    const char *name;
    size_t name_size;
    const mull__json *value;
    while ((value = mull__json_member(map, &place, &name, &name_size))) {
        lua_pushlstring(L, name, name_size);
        push(L, value, level);
        lua_rawset(L, -3);
    }
}

static void push(lua_State *L, const mull__json *value, int level)
{
    mull__json_view view;
    mull__json_look(value, &view);
    if (level > MULL__JSON_LEVELS)
        mull__raise(L, "MessageDeserializationError", "JSON nested deeper than %d levels",
                    (int)MULL__JSON_LEVELS);
    luaL_checkstack(L, 8, NULL);
    switch (view.kind) {
    case MULL_NIL:
        lua_pushnil(L);
        break;
    case MULL_BOOLEAN:
        lua_pushboolean(L, view.boolean);
        break;
    case MULL_INTEGER:
        lua_pushinteger(L, view.integer);
        break;
    case MULL_NUMBER:
        lua_pushnumber(L, view.number);
        break;
    case MULL_STRING:
        lua_pushlstring(L, view.text, view.size);
        break;
    case MULL_LIST:
        push_list(L, value, view.size, level + 1);
        break;
    case MULL_MAP:
        push_map(L, value, view.size, level + 1);
        break;
    }
}

void mull__json_push(lua_State *L, const char *text, size_t size, int flags)
{
    char why[256];
    tree *t = mull__scoped_new(L, sizeof *t, tree_type, drop);
    size_t weight = mull__json_weight(text, size);
    if (!mull__ceiling_charge(L, weight)) {
        lua_pushliteral(L, "not enough memory"); /* without a place, as Lua says it */
        lua_error(L);
    }
    t->charged = weight;
    t->root = mull__json_parse(text, size, flags, why, sizeof why);
    if (!t->root)
        mull__raise(L, "MessageDeserializationError", "not JSON: %s", why);
    push(L, t->root, 0);
}

static int decode(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    mull__json_push(L, text, size, 0);
    return 1;
}

static int list(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    mull__json_mark_list(L);
    return 1;
}

int mull__open_json(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"decode", decode}, {"encode", mull__json_encode}, {"list", list}, {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    return 1;
}
