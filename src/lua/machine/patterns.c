/* patterns.c: see patterns.h. What raises says it in Lua's words. */
#include "patterns.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "base/pattern.h"
#include "budgets.h"

enum { BYTES_A_STEP = 16 }; /* of a plain text that is looked for, or that is copied */

/* Upvalues of the functions; a policy's have the first alone. */
enum { OWN = 1, METER, COUNTED };

typedef struct text {
    const char *bytes;
    size_t size;
} text;

static text text_at(lua_State *L, int index)
{
    text t;
    t.bytes = luaL_checklstring(L, index, &t.size);
    return t;
}

/* offset_at gives an argument that counts from 1, or from the end where it is negative, as an
 * offset from 0. */
static size_t offset_at(lua_State *L, int index, size_t size)
{
    lua_Integer position = luaL_optinteger(L, index, 1);
    if (position > 0)
        return (size_t)position - 1;
    if (position == 0 || position < -(lua_Integer)size)
        return 0;
    return size - (size_t)-position;
}

static int is_plain(text pattern)
{
    for (size_t i = 0; i < pattern.size; i++)
        if (pattern.bytes[i] && strchr("^$*+?.([%-", pattern.bytes[i]))
            return 0;
    return 1;
}

/* ---- Counting -------------------------------------------------------------------------------- */

enum { STEPS = 10000 }; /* of a search, between two looks at a meter */

/* counting is what the work of one call is counted by: a meter, or the budget of a policy. */
typedef struct counting {
    mull__pattern_steps steps; /* the first member */
    lua_State *L;
    const mull__pattern_limiter *meter; /* NULL: a policy */
} counting;

static int more_steps(mull__pattern_steps *steps)
{
    const counting *c = (const counting *)steps;
    steps->left = STEPS;
    return c->meter->may_continue(c->L);
}

static counting count_by(lua_State *L, int upvalue)
{
    const mull__pattern_limiter *meter = lua_touserdata(L, lua_upvalueindex(upvalue));
    return (counting){{STEPS, meter ? more_steps : NULL}, L, meter};
}

static void spend(const counting *c, size_t instructions)
{
    if (!c->meter)
        mull__vm_charge(c->L, instructions);
}

/* ---- Searching ------------------------------------------------------------------------------- */

typedef int finder(mull__pattern_match *, const char *text, size_t size, size_t at,
                   const char *pattern, size_t pattern_size, mull__pattern_steps *steps);

/* look gives whether `find` found; else it raises, if the pattern is wrong or it may not go on. */
static int look(counting *c, finder *find, mull__pattern_match *match, text subject, size_t at,
                text pattern)
{
    lua_State *L = c->L;
    int64_t left = c->meter ? c->steps.left : mull__vm_of(L)->left;
    c->steps.left = left;
    int found =
        find(match, subject.bytes, subject.size, at, pattern.bytes, pattern.size, &c->steps);
    spend(c, (size_t)(left - c->steps.left)); /* raises where a policy has no more */
    if (found == MULL__PATTERN_OUT_OF_STEPS)
        return c->meter->give_up(L);
    if (found == MULL__PATTERN_COMPLEX)
        return luaL_error(L, "pattern too complex");
    if (found == MULL__PATTERN_MALFORMED)
        return luaL_error(L, "%s", match->wrong);
    return found == MULL__PATTERN_FOUND;
}

/* push_capture pushes one capture of a match from 0 on; its whole where it has none. */
static void push_capture(lua_State *L, const mull__pattern_match *match, text subject, int index)
{
    if (match->capture_count == 0) {
        lua_pushlstring(L, match->start, (size_t)(match->end - match->start));
        return;
    }
    const mull__capture *capture = &match->captures[index];
    if (capture->length == MULL__CAPTURE_POSITION)
        lua_pushinteger(L, capture->start - subject.bytes + 1);
    else if (capture->length == MULL__CAPTURE_OPEN)
        luaL_error(L, "unfinished capture");
    else
        lua_pushlstring(L, capture->start, (size_t)capture->length);
}

/* push_captures pushes all captures, and returns how many. */
static int push_captures(lua_State *L, const mull__pattern_match *match, text subject)
{
    int count = match->capture_count > 0 ? match->capture_count : 1;
    luaL_checkstack(L, count, "too many captures");
    for (int i = 0; i < count; i++)
        push_capture(L, match, subject, i);
    return count;
}

/* ---- find and match -------------------------------------------------------------------------- */

/* find_plain looks for a text, as `look` does for a pattern. */
static int find_plain(const counting *c, mull__pattern_match *match, text subject, size_t from,
                      text wanted)
{
    const char *begin = subject.bytes + from;
    match->capture_count = 0;
    match->start = memmem(begin, subject.size - from, wanted.bytes, wanted.size);
    match->end = match->start ? match->start + wanted.size : subject.bytes + subject.size;
    spend(c, (size_t)(match->end - begin) / BYTES_A_STEP);
    return match->start != NULL;
}

/* search is find and match. */
static int search(lua_State *L, int is_find)
{
    text subject = text_at(L, 1), pattern = text_at(L, 2);
    size_t from = offset_at(L, 3, subject.size);
    counting c = count_by(L, METER);
    mull__pattern_match match;
    int has_text = is_find && lua_toboolean(L, 4), found = 0;
    if (is_find && !has_text && from <= subject.size) {
        spend(&c, pattern.size / BYTES_A_STEP);
        has_text = is_plain(pattern);
    }
    if (from <= subject.size)
        found = has_text ? find_plain(&c, &match, subject, from, pattern)
                         : look(&c, mull__pattern_find, &match, subject, from, pattern);
    if (!found) {
        luaL_pushfail(L);
        return 1;
    }
    if (!is_find)
        return push_captures(L, &match, subject);
    lua_pushinteger(L, match.start - subject.bytes + 1);
    lua_pushinteger(L, match.end - subject.bytes);
    return match.capture_count > 0 ? 2 + push_captures(L, &match, subject) : 2;
}

int mull__string_find(lua_State *L)
{
    return search(L, 1);
}

int mull__string_match(lua_State *L)
{
    return search(L, 0);
}

/* ---- gmatch ---------------------------------------------------------------------------------- */

/* The walk's upvalues: subject, pattern, the offset to go on from, the end of the last match or -1,
 * and the meter. A match may not end where the last one did, or an empty one would never be left.
 */
enum { SUBJECT = 1, PATTERN, NEXT, LAST_END, WALKS_METER };

static void keep_offset(lua_State *L, int upvalue, size_t offset)
{
    lua_pushinteger(L, (lua_Integer)offset);
    lua_replace(L, lua_upvalueindex(upvalue));
}

static int next_match(lua_State *L)
{
    text subject = text_at(L, lua_upvalueindex(SUBJECT));
    text pattern = text_at(L, lua_upvalueindex(PATTERN));
    lua_Integer last_end = lua_tointeger(L, lua_upvalueindex(LAST_END));
    size_t at = (size_t)lua_tointeger(L, lua_upvalueindex(NEXT));
    counting c = count_by(L, WALKS_METER);
    mull__pattern_match match;
    for (; at <= subject.size; at++) {
        if (look(&c, mull__pattern_at, &match, subject, at, pattern) &&
            match.end - subject.bytes != last_end) {
            size_t end = (size_t)(match.end - subject.bytes);
            keep_offset(L, NEXT, end);
            keep_offset(L, LAST_END, end);
            return push_captures(L, &match, subject);
        }
    }
    keep_offset(L, NEXT, at);
    return 0;
}

int mull__string_gmatch(lua_State *L)
{
    text subject = text_at(L, 1);
    text_at(L, 2);
    size_t from = offset_at(L, 3, subject.size);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)(from > subject.size ? subject.size + 1 : from));
    lua_pushinteger(L, -1);
    lua_pushvalue(L, lua_upvalueindex(METER));
    lua_pushcclosure(L, next_match, 5);
    return 1;
}

/* ---- gsub ------------------------------------------------------------------------------------ */

enum { REPLACEMENT = 3 }; /* which argument it is */

/* add_capture adds %1 to %9 of a replacement. */
static void add_capture(lua_State *L, luaL_Buffer *made, const mull__pattern_match *match,
                        text subject, int index)
{
    int count = match->capture_count > 0 ? match->capture_count : 1;
    if (index >= count)
        luaL_error(L, "invalid capture index %%%d", index + 1);
    push_capture(L, match, subject, index);
    luaL_addvalue(made);
}

/* add_template adds a replacement that is a text, in which %0 to %9 stand for captures. */
static void add_template(const counting *c, luaL_Buffer *made, const mull__pattern_match *match,
                         text subject)
{
    lua_State *L = c->L;
    text t = text_at(L, REPLACEMENT);
    const char *p = t.bytes, *end = t.bytes + t.size;
    spend(c, t.size / BYTES_A_STEP);
    for (const char *mark; (mark = memchr(p, '%', (size_t)(end - p))); p = mark + 2) {
        luaL_addlstring(made, p, (size_t)(mark - p));
        char kind = mark + 1 < end ? mark[1] : '\0';
        if (kind == '%')
            luaL_addchar(made, '%');
        else if (kind == '0')
            luaL_addlstring(made, match->start, (size_t)(match->end - match->start));
        else if (kind >= '1' && kind <= '9')
            add_capture(L, made, match, subject, kind - '1');
        else
            luaL_error(L, "invalid use of '%%' in replacement string");
    }
    luaL_addlstring(made, p, (size_t)(end - p));
}

/* replace adds what comes in a match's place; 0: a table or a function has nothing for it, and the
 * match stays. */
static int replace(const counting *c, luaL_Buffer *made, const mull__pattern_match *match,
                   text subject, int type)
{
    lua_State *L = c->L;
    if (type == LUA_TTABLE) {
        push_capture(L, match, subject, 0);
        lua_gettable(L, REPLACEMENT);
    } else if (type == LUA_TFUNCTION) {
        lua_pushvalue(L, REPLACEMENT);
        lua_call(L, push_captures(L, match, subject), 1);
    } else {
        add_template(c, made, match, subject);
        return 1;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(made, match->start, (size_t)(match->end - match->start));
        return 0;
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    luaL_addvalue(made);
    return 1;
}

int mull__string_gsub(lua_State *L)
{
    text subject = text_at(L, 1), pattern = text_at(L, 2);
    int type = lua_type(L, REPLACEMENT);
    lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)subject.size + 1), found = 0;
    luaL_argexpected(L,
                     type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TTABLE ||
                         type == LUA_TFUNCTION,
                     REPLACEMENT, "string/function/table");
    int is_anchored = pattern.size > 0 && pattern.bytes[0] == '^', has_changed = 0;
    pattern.bytes += is_anchored;
    pattern.size -= (size_t)is_anchored;
    counting c = count_by(L, METER);
    if (!c.meter)
        mull__vm_collect_for(L, 2 * subject.size);
    luaL_Buffer made;
    luaL_buffinit(L, &made);
    mull__pattern_match match;
    const char *last_end = NULL;
    size_t at = 0;
    while (found < most) {
        if (look(&c, mull__pattern_at, &match, subject, at, pattern) && match.end != last_end) {
            found++;
            has_changed |= replace(&c, &made, &match, subject, type);
            last_end = match.end;
            at = (size_t)(match.end - subject.bytes);
        } else if (at < subject.size) {
            luaL_addchar(&made, subject.bytes[at++]);
        } else {
            break;
        }
        if (is_anchored)
            break;
    }
    if (has_changed) {
        luaL_addlstring(&made, subject.bytes + at, subject.size - at);
        luaL_pushresult(&made);
        spend(&c, lua_rawlen(L, -1) / BYTES_A_STEP);
    } else {
        lua_pushvalue(L, 1);
    }
    lua_pushinteger(L, found);
    return 2;
}

/* ---- By a meter ------------------------------------------------------------------------------ */

/* metered calls, as if it were the one that was called, the function that counts, or Lua's. */
static int metered(lua_State *L)
{
    const mull__pattern_limiter *meter = lua_touserdata(L, lua_upvalueindex(METER));
    return lua_tocfunction(L, lua_upvalueindex(meter->counts(L) ? COUNTED : OWN))(L);
}

void mull__patterns_limit(lua_State *L, mull__pattern_limiter *meter)
{
    static const luaL_Reg functions[] = {{"find", mull__string_find},
                                         {"match", mull__string_match},
                                         {"gmatch", mull__string_gmatch},
                                         {"gsub", mull__string_gsub}};
    lua_getglobal(L, LUA_STRLIBNAME);
    int string = lua_gettop(L);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        lua_getfield(L, string, functions[i].name);
        /* Lua's has no upvalue; ours, and perhaps another's, has. */
        if (lua_iscfunction(L, -1) && !lua_getupvalue(L, -1, 1)) {
            lua_pushlightuserdata(L, meter);
            lua_pushcfunction(L, functions[i].func);
            lua_pushcclosure(L, metered, COUNTED);
            lua_setfield(L, string, functions[i].name);
        }
        lua_settop(L, string);
    }
    lua_pop(L, 1);
}
