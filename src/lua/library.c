/* library.c: see library.h. Each function first counts what it is about to do, and then does what
 * Lua's does, in the same frame of the stack, so that an error is told as Lua tells it. */
#include "library.h"

#include <lauxlib.h>
#include <limits.h>
#include <lualib.h>
#include <math.h>
#include <string.h>

#include "patterns.h"
#include "vm.h"

enum {
    BYTES_A_STEP = 16, /* that are read or written for an instruction */
    VALUES_A_STEP = 4  /* that are put on the stack for one */
};

/* What a function's work grows with. */
enum { ARGUMENTS = 1, RESULTS = 2 };

/* weigh gives the instructions for the values from `first` to `last`. */
static size_t weigh(lua_State *L, int first, int last)
{
    size_t bytes = 0;
    for (int i = first; i <= last; i++)
        if (lua_type(L, i) == LUA_TSTRING)
            bytes += lua_rawlen(L, i);
    return bytes / BYTES_A_STEP + (size_t)(last >= first ? last - first : 0) / VALUES_A_STEP;
}

/* own calls Lua's function, the upvalue, as if it were the one that was called. */
static int own(lua_State *L)
{
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

/* own_writes does so for a function that writes into a table. What it raises ends that as well. */
static int own_writes(lua_State *L)
{
    mull__vm *vm = mull__vm_of(L);
    vm->writes = 1;
    int count = own(L);
    vm->writes = 0;
    return count;
}

static int by_arguments(lua_State *L)
{
    mull__vm_spend(L, weigh(L, 1, lua_gettop(L)));
    return own(L);
}

static int by_results(lua_State *L)
{
    int count = own(L), top = lua_gettop(L);
    mull__vm_spend(L, weigh(L, top - count + 1, top));
    return count;
}

static int by_both(lua_State *L)
{
    mull__vm_spend(L, weigh(L, 1, lua_gettop(L)));
    return by_results(L);
}

/* by_text makes a text as long as its first argument. */
static int by_text(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TSTRING)
        mull__vm_make_room(L, 2 * lua_rawlen(L, 1));
    return by_both(L);
}

/* ---- string ---------------------------------------------------------------------------------- */

/* rep: nothing, very often, is a loop without an end. */
static int rep(lua_State *L)
{
    size_t size, between = 0;
    luaL_checklstring(L, 1, &size);
    lua_Integer count = luaL_checkinteger(L, 2);
    luaL_optlstring(L, 3, "", &between);
    if (count <= 0 || size + between == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if ((lua_Unsigned)count <= SIZE_MAX / 2 / (size + between))
        mull__vm_make_room(L, 2 * (size + between) * (size_t)count);
    return by_results(L);
}

/* unpack_bytes reads the options of its form one by one, whatever they stand for. */
static int unpack_bytes(lua_State *L)
{
    mull__vm_spend(L, lua_type(L, 1) == LUA_TSTRING ? lua_rawlen(L, 1) : 0);
    return by_results(L);
}

/* is_nan: its sign is the processor's, and is shown nowhere. */
static int is_nan(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TNUMBER && isnan(lua_tonumber(L, index));
}

/* blank makes of an argument what %s may show: no address, and no sign of a nan. */
static void blank(lua_State *L, int index)
{
    int type = lua_type(L, index);
    if (is_nan(L, index))
        lua_pushliteral(L, "nan");
    else if (type == LUA_TTABLE || type == LUA_TFUNCTION || type == LUA_TUSERDATA)
        lua_pushstring(L, lua_typename(L, type));
    else
        return;
    lua_replace(L, index);
}

/* blank_nan writes, for a directive from `p` to its letter at `end`, one that shows a text as wide
 * and on the same side, and blanks the argument. */
static void blank_nan(lua_State *L, luaL_Buffer *made, const char *p, const char *end, int index)
{
    luaL_addchar(made, '%');
    if (p < end && *p == '-')
        luaL_addchar(made, *p);
    while (p < end && strchr("-+ #0", *p))
        p++;
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        luaL_addchar(made, *p);
    luaL_addchar(made, 's');
    blank(L, index);
}

/* rewrite copies one directive of a form, from '%' to behind its letter, after it made its argument
 * fit to be shown. */
static void rewrite(lua_State *L, luaL_Buffer *made, const char *p, const char *end, int index)
{
    char kind = end[-1];
    int is_there = index <= lua_gettop(L) && kind && kind != '%';
    if (kind == 'p')
        luaL_error(L, "'%%p' shows an address, which a policy has no use for");
    if (is_there && strchr("aAeEfgG", kind) && is_nan(L, index)) {
        blank_nan(L, made, p + 1, end - 1, index);
        return;
    }
    if (is_there && kind == 's')
        blank(L, index);
    luaL_addlstring(made, p, (size_t)(end - p));
}

/* format shows no address and no sign of a nan, and leaves the rest to Lua. */
static int format(lua_State *L)
{
    size_t size;
    const char *p = luaL_checklstring(L, 1, &size), *end = p + size;
    int top = lua_gettop(L), index = 1;
    mull__vm_spend(L, weigh(L, 1, top));
    luaL_Buffer made;
    luaL_buffinit(L, &made);
    for (const char *mark; (mark = memchr(p, '%', (size_t)(end - p)));) {
        luaL_addlstring(&made, p, (size_t)(mark - p));
        p = mark + 1;
        while (p < end && *p && strchr("-+ #0123456789.", *p))
            p++;
        p += p < end;
        index += p[-1] != '%';
        rewrite(L, &made, mark, p, index <= top ? index : INT_MAX);
    }
    luaL_addlstring(&made, p, (size_t)(end - p));
    luaL_pushresult(&made);
    lua_replace(L, 1);
    own(L);
    mull__vm_spend(L, lua_rawlen(L, -1)); /* digits are dear */
    return 1;
}

/* ---- table ----------------------------------------------------------------------------------- */

/* length gives that of a table, and 0 of anything else, of which Lua's function complains. */
static lua_Integer length(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TTABLE ? luaL_len(L, index) : 0;
}

/* spend_span takes an instruction for each element from one to another. */
static void spend_span(lua_State *L, lua_Integer first, lua_Integer last)
{
    if (first > last)
        return;
    size_t count = (size_t)((lua_Unsigned)last - (lua_Unsigned)first);
    mull__vm_spend(L, count);
    mull__vm_spend_lookups(L, count);
}

/* shift is insert and remove: all that is behind the place moves. */
static int shift(lua_State *L)
{
    lua_Integer place = lua_tointeger(L, 2);
    if (place > 0)
        spend_span(L, place, length(L, 1));
    return own_writes(L);
}

static int insert(lua_State *L)
{
    return lua_gettop(L) == 3 ? shift(L) : own_writes(L);
}

static int remove_one(lua_State *L)
{
    return lua_isnoneornil(L, 2) ? own(L) : shift(L);
}

/* bytes_of gives how long the texts of a list are together, as far as they are texts. */
static size_t bytes_of(lua_State *L, int list, lua_Integer first, lua_Integer last)
{
    size_t bytes = 0;
    for (lua_Integer i = first; i <= last; i++) {
        lua_geti(L, list, i);
        int is_text = lua_isstring(L, -1);
        bytes += lua_type(L, -1) == LUA_TSTRING ? lua_rawlen(L, -1) : 0;
        lua_pop(L, 1);
        if (!is_text || i == last)
            break;
    }
    return bytes;
}

static int concat(lua_State *L)
{
    if (lua_type(L, 1) != LUA_TTABLE)
        return own(L);
    lua_Integer first = luaL_optinteger(L, 3, 1);
    lua_Integer last = luaL_opt(L, luaL_checkinteger, 4, length(L, 1));
    if (first > last)
        return own(L);
    spend_span(L, first, last);
    size_t between = lua_type(L, 2) == LUA_TSTRING ? lua_rawlen(L, 2) : 0;
    size_t bytes = bytes_of(L, 1, first, last) + between * (size_t)(last - first);
    mull__vm_make_room(L, 2 * bytes);
    mull__vm_spend(L, bytes / BYTES_A_STEP);
    return own(L);
}

/* unpack: Lua's refuses what no stack has room for, before it looks anything up. */
static int unpack(lua_State *L)
{
    enum { MOST = 10000000 };
    lua_Integer first = luaL_optinteger(L, 2, 1);
    lua_Integer last = luaL_opt(L, luaL_checkinteger, 3, length(L, 1));
    if (first <= last && (lua_Unsigned)last - (lua_Unsigned)first < MOST)
        mull__vm_spend_lookups(L, (size_t)((lua_Unsigned)last - (lua_Unsigned)first));
    return by_results(L);
}

static int move(lua_State *L)
{
    spend_span(L, lua_tointeger(L, 2), lua_tointeger(L, 3));
    return own_writes(L);
}

/* ---- utf8 ------------------------------------------------------------------------------------ */

/* offset goes from one byte to another, over all that belong to the characters between. */
static int offset(lua_State *L)
{
    size_t size = 0;
    luaL_checklstring(L, 1, &size);
    lua_Integer length = (lua_Integer)size;
    lua_Integer from = luaL_optinteger(L, 3, luaL_checkinteger(L, 2) > 0 ? 1 : length + 1);
    own(L);
    lua_Integer to = lua_tointeger(L, -1); /* 0 for nil: it came to an end of the text */
    from = from < 0 ? length + from + 1 : from;
    lua_Integer far = to == 0 ? length : to > from ? to - from : from - to;
    mull__vm_spend(L, (size_t)far / BYTES_A_STEP);
    return 1;
}

/* walk is a step through the characters of a text, by Lua's function, which goes over what belongs
 * to the last one. */
static int walk(lua_State *L)
{
    size_t size = 0;
    const char *text = lua_tolstring(L, 1, &size);
    lua_Integer from = lua_tointeger(L, 2);
    size_t at = from > 0 ? (size_t)from : 0, first = at;
    while (at < size && ((unsigned char)text[at] & 0xC0) == 0x80)
        at++;
    mull__vm_spend(L, (at - first) / BYTES_A_STEP);
    return own(L);
}

static int codes(lua_State *L)
{
    int count = own(L);
    lua_pushvalue(L, -count);
    lua_pushcclosure(L, walk, 1);
    lua_replace(L, -count - 1);
    return count;
}

/* ---- All of them ----------------------------------------------------------------------------- */

typedef struct entry {
    const char *library, *name;
    lua_CFunction
        counts; /* with Lua's function as its upvalue; NULL: its work is always the same */
} entry;

static const entry entries[] = {
    {"string", "byte", by_results},
    {"string", "char", by_arguments},
    {"string", "find", mull__string_find},
    {"string", "format", format},
    {"string", "gmatch", mull__string_gmatch},
    {"string", "gsub", mull__string_gsub},
    {"string", "len", NULL},
    {"utf8", "codes", codes},
    {"string", "lower", by_text},
    {"string", "match", mull__string_match},
    {"string", "pack", by_both},
    {"string", "packsize", by_arguments},
    {"string", "rep", rep},
    {"string", "reverse", by_text},
    {"string", "sub", by_results},
    {"string", "unpack", unpack_bytes},
    {"string", "upper", by_text},
    {"table", "concat", concat},
    {"table", "insert", insert},
    {"table", "move", move},
    {"table", "pack", by_arguments},
    {"table", "remove", remove_one},
    {"table", "unpack", unpack},
    {"utf8", "char", by_arguments},
    {"utf8", "codepoint", by_results},
    {"utf8", "len", by_arguments},
    {"utf8", "offset", offset},
    {"basic", "select", by_results},
    {"basic", "tonumber", by_arguments},
};

enum { ENTRIES = sizeof entries / sizeof entries[0] };

static void push_entry(lua_State *L, const entry *e)
{
    if (strcmp(e->library, "basic") == 0) {
        lua_getglobal(L, e->name);
    } else {
        lua_getglobal(L, e->library);
        lua_getfield(L, -1, e->name);
        lua_remove(L, -2);
    }
    if (e->counts)
        lua_pushcclosure(L, e->counts, 1);
}

void mull__library_push(lua_State *L)
{
    lua_newtable(L);
    for (size_t i = 0; i < ENTRIES; i++) {
        luaL_getsubtable(L, -1, entries[i].library);
        push_entry(L, &entries[i]);
        lua_setfield(L, -2, entries[i].name);
        lua_pop(L, 1);
    }
}
