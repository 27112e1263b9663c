/* sandbox_library.c: see sandbox_library.h. Lua's function is called in the frame of the one in its
 * place, so that an error is told as Lua tells it. Beforehand instructions are taken for what it is
 * about to go over, and room is made for what it gives, since Lua collects no garbage for the
 * buffers of its library; afterwards, for what it gave. */
#include "sandbox_library.h"

#include <lauxlib.h>
#include <lualib.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "budgets.h"
#include "patterns.h"

enum {
    BYTES_A_STEP = 16, /* that are read or written for an instruction */
    VALUES_A_STEP = 4  /* that are put on the stack for one */
};

/* entry is a function, and how its work is counted. */
typedef struct entry {
    const char *library, *name;
    lua_CFunction ours;           /* in the place of Lua's, its upvalue; NULL: Lua's will do */
    size_t (*work)(lua_State *L); /* for `counted`: takes instructions for what Lua's goes over, and
                                     gives the bytes that it makes; NULL: it does no more than it
                                     gives */
} entry;

static size_t bytes_at(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING ? lua_rawlen(L, index) : 0;
}

/* own calls Lua's function, the first upvalue, as if it were the one that was called. */
static int own(lua_State *L)
{
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* counted is the function in the place of most of Lua's; its second upvalue is the entry. */
static int counted(lua_State *L)
{
    const entry *e = lua_touserdata(L, lua_upvalueindex(2));
    size_t bytes = e->work ? e->work(L) : 0;
    if (bytes > 0)
        mull__vm_collect_for(L, 2 * bytes); /* in a buffer, and as a string */
    int count = own(L);
    size_t given = 0;
    for (int i = 1; i <= count; i++)
        given += bytes_at(L, -i);
    mull__vm_charge(L, given / BYTES_A_STEP + (size_t)count / VALUES_A_STEP);
    return count;
}

/* ---- string ---------------------------------------------------------------------------------- */

/* first: it goes over its first argument. */
static size_t first(lua_State *L)
{
    size_t bytes = bytes_at(L, 1);
    mull__vm_charge(L, bytes / BYTES_A_STEP);
    return bytes;
}

/* repeated is string.rep. Nothing, very often, is a loop without an end, so it is had never. */
static size_t repeated(lua_State *L)
{
    size_t size = 0, between = 0;
    luaL_checklstring(L, 1, &size);
    lua_Integer count = luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &between);
    if (size + between == 0) {
        lua_pushinteger(L, 0);
        lua_replace(L, 2);
    }
    int is_possible =
        count > 0 && size + between > 0 && (lua_Unsigned)count <= SIZE_MAX / 2 / (size + between);
    return is_possible ? (size + between) * (size_t)count : 0;
}

/* rewrite adds a directive of a form, from '%' to its letter before `end`. Where its argument (0:
 * there is none) has an address, or is a nan, whose sign is the processor's, a text takes the
 * argument's place. A directive for numbers gives way to one for a text as wide, on the same side.
 */
static void rewrite(lua_State *L, luaL_Buffer *made, const char *p, const char *end, int index)
{
    char kind = end[-1];
    int type = index > 0 ? lua_type(L, index) : LUA_TNONE;
    int is_nan = type == LUA_TNUMBER && isnan(lua_tonumber(L, index));
    int has_address = type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TUSERDATA;
    if (kind == 'p')
        luaL_error(L, "'%%p' shows an address, which a policy has no use for");
    if (is_nan && kind && strchr("aAeEfgG", kind)) {
        size_t flags = strspn(++p, "-+ #0");
        luaL_addstring(made, memchr(p, '-', flags) ? "%-" : "%");
        luaL_addlstring(made, p + flags, strspn(p + flags, "0123456789"));
        luaL_addchar(made, 's');
        kind = 's';
    } else {
        luaL_addlstring(made, p, (size_t)(end - p));
    }
    if (kind == 's' && (is_nan || has_address)) {
        lua_pushstring(L, is_nan ? "nan" : lua_typename(L, type));
        lua_replace(L, index);
    }
}

/* format shows no address and no sign of a nan, and leaves the rest to Lua. */
static int format(lua_State *L)
{
    size_t size;
    const char *p = luaL_checklstring(L, 1, &size), *end = p + size;
    int top = lua_gettop(L), index = 1;
    mull__vm_charge(L, size / BYTES_A_STEP);
    luaL_Buffer made;
    luaL_buffinit(L, &made);
    for (const char *mark; (mark = memchr(p, '%', (size_t)(end - p)));) {
        luaL_addlstring(&made, p, (size_t)(mark - p));
        p = mark + 1;
        while (p < end && *p && strchr("-+ #0123456789.", *p))
            p++;
        p += p < end;
        index += p[-1] != '%';
        rewrite(L, &made, mark, p, index <= top ? index : 0);
    }
    luaL_addlstring(&made, p, (size_t)(end - p));
    luaL_pushresult(&made);
    lua_replace(L, 1);
    own(L);
    mull__vm_charge(L, lua_rawlen(L, -1)); /* digits are dear */
    return 1;
}

/* ---- table ----------------------------------------------------------------------------------- */

/* length gives that of a table, and 0 of anything else, of which Lua's function complains. */
static lua_Integer length(lua_State *L)
{
    return lua_type(L, 1) == LUA_TTABLE ? luaL_len(L, 1) : 0;
}

/* spend_span takes an instruction for each element from one to another. */
static void spend_span(lua_State *L, lua_Integer from, lua_Integer to)
{
    if (from <= to)
        mull__vm_charge(L, (size_t)((lua_Unsigned)to - (lua_Unsigned)from));
}

/* shifted is insert and remove, which move all that is behind the place. */
static size_t shifted(lua_State *L)
{
    lua_Integer place = lua_tointeger(L, 2);
    if (place > 0)
        spend_span(L, place, length(L));
    return 0;
}

static size_t inserted(lua_State *L)
{
    return lua_gettop(L) == 3 ? shifted(L) : 0;
}

static size_t moved(lua_State *L)
{
    spend_span(L, lua_tointeger(L, 2), lua_tointeger(L, 3));
    return 0;
}

/* concatenated is concat: Lua's stops at the first element that is no text. */
static size_t concatenated(lua_State *L)
{
    size_t bytes = 0, between = bytes_at(L, 2);
    lua_Integer i = luaL_opt(L, lua_tointeger, 3, 1);
    lua_Integer last = luaL_opt(L, lua_tointeger, 4, length(L));
    if (!lua_istable(L, 1) || i > last)
        return 0;
    spend_span(L, i, last);
    for (;; i++) {
        lua_geti(L, 1, i);
        int is_text = lua_isstring(L, -1);
        bytes += bytes_at(L, -1) + between;
        lua_pop(L, 1);
        if (!is_text || i == last)
            return bytes;
    }
}

/* ---- All of them ----------------------------------------------------------------------------- */

static const entry entries[] = {
    {"string", "byte", counted, NULL},
    {"string", "char", counted, NULL},
    {"string", "find", mull__string_find, NULL},
    {"string", "format", format, NULL},
    {"string", "gmatch", mull__string_gmatch, NULL},
    {"string", "gsub", mull__string_gsub, NULL},
    {"string", "len", NULL, NULL},
    {"string", "lower", counted, first},
    {"string", "match", mull__string_match, NULL},
    {"string", "pack", counted, first},
    {"string", "packsize", counted, first},
    {"string", "rep", counted, repeated},
    {"string", "reverse", counted, first},
    {"string", "sub", counted, NULL},
    {"string", "unpack", counted, first},
    {"string", "upper", counted, first},
    {"table", "concat", counted, concatenated},
    {"table", "insert", counted, inserted},
    {"table", "move", counted, moved},
    {"table", "pack", NULL, NULL},
    {"table", "remove", counted, shifted},
    {"table", "unpack", counted, NULL},
    {"utf8", "char", counted, NULL},
    {"utf8", "codepoint", counted, NULL},
    {"utf8", "codes", NULL, NULL},
    {"utf8", "len", counted, first},
    {"utf8", "offset", NULL, NULL},
    {LUA_GNAME, "select", counted, NULL},
    {LUA_GNAME, "tonumber", counted, first},
};

enum { ENTRIES = sizeof entries / sizeof entries[0] };

static void push_entry(lua_State *L, const entry *e)
{
    lua_getglobal(L, e->library);
    lua_getfield(L, -1, e->name);
    lua_remove(L, -2);
    if (e->ours == counted)
        lua_pushlightuserdata(L, (void *)(uintptr_t)e);
    if (e->ours)
        lua_pushcclosure(L, e->ours, e->ours == counted ? 2 : 1);
}

void mull__sandbox_library_push(lua_State *L)
{
    lua_newtable(L);
    for (size_t i = 0; i < ENTRIES; i++) {
        luaL_getsubtable(L, -1, entries[i].library);
        push_entry(L, &entries[i]);
        lua_setfield(L, -2, entries[i].name);
        lua_pop(L, 1);
    }
}
