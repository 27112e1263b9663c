/* failure_json.c: one of `decide`'s objects, out of JSON. */
#include "convert.h"
#include "json.h"
#include "wire/json_tree.h"

#include <lauxlib.h>

/* A text that takes more than this has more lists and maps than any failure has room for. The
 * longest that has none takes three times 16 MiB. */
enum { WEIGHT = 64 * 1024 * 1024 };

void mull__push_failure_of_json(lua_State *L, int index)
{
    size_t size;
    const char *text = luaL_checklstring(L, index, &size);
    if (mull__json_weight(text, size) > WEIGHT)
        luaL_error(L, "this is more than a failure has room for");
    mull__json_push(L, text, size, MULL__JSON_UNIQUE);
    if (!lua_istable(L, -1))
        luaL_error(L, "a failure must be an object");
}
