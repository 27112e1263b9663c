/* decide_json.c: the lines of `mulligan decide`: a failure out of JSON, and the verdict on it, with
 * every key in a fixed order. */
#include "convert.h"
#include "json.h"
#include "json_encode.h"

#include <lauxlib.h>
#include <string.h>

/* No failure has room for as many values. As empty tables they take some 30 MiB. */
enum { MOST_VALUES = 300000 };

void mull__push_failure_of_json(lua_State *L, int index)
{
    size_t size;
    const char *text = luaL_checklstring(L, index, &size);
    mull__json_push(L, text, size, MOST_VALUES, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "a failure must be an object");
}

static void add(lua_State *L, mull__json_text *out, const char *text)
{
    mull__json_add(L, out, text, strlen(text));
}

/* add_table adds what the table on top has under these keys, with those of a table in it. */
static void add_table(lua_State *L, mull__json_text *out, const char *const *keys,
                      const char *const *inner)
{
    for (const char *const *key = keys; *key; key++) {
        add(L, out, key == keys ? "{\"" : ", \"");
        add(L, out, *key);
        add(L, out, "\": ");
        if (lua_getfield(L, -1, *key) == LUA_TTABLE)
            add_table(L, out, inner, NULL);
        else
            mull__json_add_value(L, out, lua_gettop(L));
        lua_pop(L, 1);
    }
    add(L, out, "}");
}

void mull__push_verdict_json(lua_State *L, const mull_verdict *verdict)
{
    static const char *const keys[] = {"action", "delay_ms", "queue",      "reason",
                                       "note",   "tier",     "step",       "of",
                                       "rule",   "fallback", "generation", NULL};
    static const char *const of_rule[] = {"file", "line", "scope", "type", NULL};
    mull__json_text *out = mull__json_text_new(L);
    mull__push_verdict(L, verdict);
    add_table(L, out, keys, of_rule);
    lua_pop(L, 1);
    mull__json_text_push(L, out);
    lua_remove(L, -2);
}
