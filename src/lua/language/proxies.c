/* proxies.c: see proxies.h.
 *
 *-  proxy ──[&born]──> the call that it was made in
 *        ──[&self]──> what it shows: an error in C, or a plain table
 *-  err and ctx of a function have none; ctx has the err in &self
 *-  registry ──[&made]──> of this call: address of what is shown -> its proxy
 *                                       proxy -> the table that pairs and next walk */
#include "proxies.h"

#include <lauxlib.h>
#include <stdint.h>
#include <string.h>

#include "base/struct_compat.h"
#include "lua/values/values.h"
#include "sandbox.h"

/* Keys of the registry and of proxies, by their addresses. */
static const char metas, made, declared, kind_key, born, self;

enum { CAUSES = 16, LINEAGE = 256 };

/* PLAIN proxies show a table, and the tables in it as proxies again. */
typedef enum proxy_kind { ERROR, CONTEXT, PLAIN, KINDS } proxy_kind;

/* What proxies have by names of their own. */
#define NAME(kind, field, least) #field,
static const char *const names[KINDS][10] = {
    [ERROR] = {"type", "message", "stack", "cause", "is"},
    [CONTEXT] = {"message", "error", MULL__FAILURE_FIELDS(NAME)}};
#undef NAME

const mull__proxy_pair mull__proxies_none = {NULL, NULL};

static inline mull__proxies *proxies_of(lua_State *L)
{
    return &((mull__sandbox *)mull__vm_of(L))->proxies;
}

/* ---- Views ----------------------------------------------------------------------------------- */

static int refuse(lua_State *L, const char *what)
{
    return mull__vm_raise(L, lua_pushfstring(L, "%s %s", proxies_of(L)->given, what));
}

/* push_target pushes what the proxy at index 1, which is neither err nor ctx, shows. */
static void push_target(lua_State *L)
{
    lua_rawgetp(L, 1, &born);
    if (lua_tointeger(L, -1) != proxies_of(L)->serial)
        refuse(L, "there during the call only; a local can keep what was read");
    lua_rawgetp(L, 1, &self);
    lua_remove(L, -2);
}

/* shown gives what the proxy at index 1 shows in C. */
static const void *shown(lua_State *L)
{
    push_target(L);
    const void *data = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return data;
}

/* error_of and failure_of give the same for what may be an err or a ctx of a function's own. */
static const mull_error *error_of(lua_State *L)
{
    const mull__proxies *proxies = proxies_of(L);
    int is_own = lua_topointer(L, 1) == proxies->own->err && proxies->failure->error;
    return is_own ? proxies->failure->error : shown(L);
}

static const mull_failure *failure_of(lua_State *L)
{
    const mull__proxies *proxies = proxies_of(L);
    return lua_topointer(L, 1) == proxies->own->ctx ? proxies->failure : shown(L);
}

static void set_kind(lua_State *L, proxy_kind kind)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &metas);
    lua_rawgeti(L, -1, kind);
    lua_setmetatable(L, -3);
    lua_pop(L, 1);
}

/* kind_of is the kind of the proxy at `index`, KINDS where that is none. */
static proxy_kind kind_of(lua_State *L, int index)
{
    if (!lua_istable(L, index) || !lua_getmetatable(L, index))
        return KINDS;
    lua_rawgetp(L, -1, &kind_key);
    proxy_kind kind = lua_isinteger(L, -1) ? (proxy_kind)lua_tointeger(L, -1) : KINDS;
    lua_pop(L, 2);
    return kind;
}

/* push_call_cache pushes the table of what the call has made. */
static void push_call_cache(lua_State *L)
{
    mull__proxies *proxies = proxies_of(L);
    if (!proxies->has_call_cache) {
        lua_newtable(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &made);
        proxies->has_call_cache = 1;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &made);
}

/* new_proxy pushes a proxy of what is on top, in whose place it comes. */
static void new_proxy(lua_State *L, proxy_kind kind)
{
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, proxies_of(L)->serial);
    lua_rawsetp(L, -2, &born);
    lua_insert(L, -2);
    lua_rawsetp(L, -2, &self);
    set_kind(L, kind);
}

/* push_cached_proxy pushes the proxy of what is at an address, which within a call is always the
 * same one; 0, and nothing: there is none yet. */
static int push_cached_proxy(lua_State *L, const void *at)
{
    luaL_checkstack(L, 8, "a value too deep");
    push_call_cache(L);
    int is = lua_rawgetp(L, -1, at) != LUA_TNIL;
    lua_remove(L, -2);
    if (!is)
        lua_pop(L, 1);
    return is;
}

/* wrap_and_cache puts a proxy in the place of what is on top, for push_cached_proxy. */
static void wrap_and_cache(lua_State *L, const void *at, proxy_kind kind)
{
    new_proxy(L, kind);
    push_call_cache(L);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, at);
    lua_pop(L, 1);
}

/* cover puts a proxy in the place of a table on top, unless that is one. */
static void cover(lua_State *L)
{
    if (!lua_istable(L, -1) || kind_of(L, -1) != KINDS)
        return;
    const void *at = lua_topointer(L, -1);
    if (push_cached_proxy(L, at))
        lua_remove(L, -2);
    else
        wrap_and_cache(L, at, PLAIN);
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* What an instruction stands for; what isn't worth counting: SHORT * SHORT = CHECKED. */
enum { BYTES = 16, CHECKED = 64, SHORT = 8 };

/* push_text: what is copied counts as instructions. */
static void push_text(lua_State *L, const char *text)
{
    lua_pushstring(L, text); /* nil for NULL */
    size_t size = lua_rawlen(L, -1);
    if (size >= CHECKED)
        mull__vm_charge(L, size / BYTES);
}

/* push_value pushes a value, of a list and a map a proxy. */
static inline void push_value(lua_State *L, const mull_value *value)
{
    mull_kind kind = mull__kind(value);
    if (kind == MULL_INTEGER) {
        lua_pushinteger(L, value->as.integer);
    } else if (kind == MULL_STRING) {
        push_text(L, value->as.string);
    } else if (kind != MULL_LIST && kind != MULL_MAP) {
        mull__push_value(L, value);
    } else if (!push_cached_proxy(L, value)) {
        mull__push_value(L, value);
        wrap_and_cache(L, value, PLAIN);
    }
}

/* charge_search: looking through fields counts as instructions. */
static inline void charge_search(lua_State *L, size_t looked_at, size_t length)
{
    if ((looked_at | length) < SHORT)
        return;
    size_t steps = looked_at * (1 + length / CHECKED);
    if (steps >= CHECKED)
        mull__vm_charge(L, steps / BYTES);
}

/* is_named: a name has no zero byte, a key may have one. */
static inline int is_named(const char *name, const char *key, size_t length)
{
    return name && *name == *key && strlen(name) == length && memcmp(name, key, length) == 0;
}

/* push_field pushes the first of an error's fields with a name; nil: there is none. */
static void push_field(lua_State *L, const mull_error *error, const char *key, size_t length)
{
    size_t i = 0, count = mull__field_count(error);
    while (i < count && !is_named(error->fields[i].name, key, length))
        i++;
    charge_search(L, i, length);
    if (i < count)
        push_value(L, &error->fields[i].value);
    else
        lua_pushnil(L);
}

/* ---- An error -------------------------------------------------------------------------------- */

static int same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* sent_type gives the `i`-th name that an error came with: its type, then its lineage; NULL where
 * it says nothing. */
static const char *sent_type(const mull_error *error, size_t i)
{
    const char *type = i == 0 ? error->type : error->lineage[i - 1];
    return type && *type && !same(type, "Error") ? type : NULL;
}

/* is_sent says whether a type is among the first names that an error came with. */
static int is_sent(const mull_error *error, size_t count, const char *type)
{
    size_t i = 0;
    while (i < count && !(sent_type(error, i) && same(sent_type(error, i), type)))
        i++;
    return i < count;
}

/* last_sent gives the last of these names, repeats left out. */
static const char *last_sent(const mull_error *error, size_t count)
{
    while (count-- > 0)
        if (sent_type(error, count) && !is_sent(error, count, sent_type(error, count)))
            return sent_type(error, count);
    return "Error";
}

/* descends says whether the string at index 2 is a declared ancestor of a type. */
static int descends(lua_State *L, const char *type)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &declared);
    lua_pushstring(L, type);
    size_t above = 0;
    int is = 0;
    for (; !is && lua_rawget(L, -2) == LUA_TSTRING; above++) /* a type gives way to its parent */
        is = lua_rawequal(L, -1, 2);
    charge_search(L, above, 0);
    return is;
}

/* error_is is err:is(type): whether the type is in the error's effective lineage: what was sent,
 * then the declared parents of the last of these, then Error. */
static int error_is(lua_State *L)
{
    luaL_argcheck(L, kind_of(L, 1) == ERROR, 1, "err:is(type) takes a colon, behind an error");
    luaL_checktype(L, 2, LUA_TSTRING);
    const mull_error *error = error_of(L);
    const char *type = lua_tostring(L, 2);
    size_t sent = mull__lineage_count(error), count = 1 + (sent < LINEAGE ? sent : LINEAGE);
    charge_search(L, count, lua_rawlen(L, 2));
    int is = same(type, "Error") || is_sent(error, count, type);
    is = is && strlen(type) == lua_rawlen(L, 2);
    lua_pushboolean(L, is || descends(L, last_sent(error, count)));
    return 1;
}

/* push_cause: a circle is cut, and so is what is too deep. */
static void push_cause(lua_State *L, const mull_error *error)
{
    const mull_error *at = proxies_of(L)->failure->error, *cause = mull__cause(error);
    int depth = 1, is_new = at != cause;
    for (; at != error && depth <= CAUSES; depth++) {
        at = at->cause;
        is_new &= at != cause;
    }
    if (!cause || !is_new || depth > CAUSES) {
        lua_pushnil(L);
    } else if (!push_cached_proxy(L, cause)) {
        lua_pushlightuserdata(L, (void *)(uintptr_t)cause);
        wrap_and_cache(L, cause, ERROR);
    }
}

/* ---- By name --------------------------------------------------------------------------------- */

static int error_index(lua_State *L)
{
    const mull_error *error = error_of(L);
    size_t length;
    if (lua_type(L, 2) != LUA_TSTRING)
        return 0;
    const char *key = lua_tolstring(L, 2, &length);
    if (is_named("type", key, length))
        push_text(L, error->type);
    else if (is_named("message", key, length))
        push_text(L, error->message ? error->message : "");
    else if (is_named("stack", key, length))
        push_text(L, error->stack ? error->stack : "");
    else if (is_named("cause", key, length))
        push_cause(L, error);
    else if (is_named("is", key, length))
        lua_pushcfunction(L, error_is);
    else
        push_field(L, error, key, length);
    return 1;
}

static void push_message(lua_State *L, const mull_failure *failure)
{
    static const mull_message none = {.size = sizeof none};
    const mull_message *message = failure->message ? failure->message : &none;
    if (push_cached_proxy(L, message))
        return;
    mull__push_facts(L, message);
    wrap_and_cache(L, message, PLAIN);
}

static void push_integer(lua_State *L, int64_t number)
{
    lua_pushinteger(L, number);
}

#define OR_PUSH(kind, field, least)                                                                \
    else if (is_named(#field, key, length)) push_##kind(L, failure->field);

static int context_index(lua_State *L)
{
    const mull_failure *failure = failure_of(L);
    size_t length;
    if (lua_type(L, 2) != LUA_TSTRING)
        return 0;
    const char *key = lua_tolstring(L, 2, &length);
    if (is_named("message", key, length))
        push_message(L, failure);
    else if (is_named("error", key, length) && proxies_of(L)->has_error && failure->error)
        lua_rawgetp(L, 1, &self);
    MULL__FAILURE_FIELDS(OR_PUSH)
    else lua_pushnil(L);
    return 1;
}

static int plain_index(lua_State *L)
{
    push_target(L);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    cover(L);
    return 1;
}

/* proxy_len is __len: err and ctx have no numbers for keys, and raise where any proxy does. */
static int proxy_len(lua_State *L)
{
    int is_plain = kind_of(L, 1) == PLAIN;
    if (is_plain)
        push_target(L);
    else
        lua_geti(L, 1, 1);
    lua_pushinteger(L, is_plain ? (lua_Integer)lua_rawlen(L, -1) : 0);
    return 1;
}

static int proxy_newindex(lua_State *L)
{
    return refuse(L, "read-only");
}

/* ---- As plain tables ------------------------------------------------------------------------- */

/* set_fields: of several with one name the first counts. */
static void set_fields(lua_State *L, const mull_error *error)
{
    for (size_t i = mull__field_count(error); i-- > 0;) {
        if (!error->fields[i].name)
            continue;
        push_value(L, &error->fields[i].value);
        lua_setfield(L, -2, error->fields[i].name);
    }
}

/* set_entries sets those of the table below the one on top. */
static void set_entries(lua_State *L)
{
    for (lua_pushnil(L); lua_next(L, -3);) {
        cover(L);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
}

/* push_all pushes a plain table of what the proxy at index 1 has. */
static void push_all(lua_State *L, proxy_kind kind)
{
    const mull_error *error = kind == ERROR ? error_of(L) : NULL;
    if (kind == PLAIN)
        push_target(L);
    lua_newtable(L);
    if (kind == PLAIN) {
        set_entries(L);
        lua_remove(L, -2);
    }
    if (error)
        set_fields(L, error);
    for (const char *const *name = names[kind]; *name; name++) {
        lua_getfield(L, 1, *name);
        lua_setfield(L, -2, *name);
    }
}

int mull__proxy_unwrap(lua_State *L)
{
    lua_settop(L, 1);
    proxy_kind kind = kind_of(L, 1);
    if (kind == KINDS)
        return 0;
    push_call_cache(L);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        push_all(L, kind);
        lua_pushvalue(L, 1);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    return 1;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void open_kind(lua_State *L, proxy_kind kind, lua_CFunction index)
{
    const luaL_Reg functions[] = {
        {"__index", index}, {"__newindex", proxy_newindex}, {"__len", proxy_len}, {NULL, NULL}};
    lua_createtable(L, 0, 5);
    luaL_setfuncs(L, functions, 0);
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pushinteger(L, kind);
    lua_rawsetp(L, -2, &kind_key);
    lua_rawseti(L, -2, kind);
}

void mull__proxies_open(lua_State *L)
{
    mull__proxies *proxies = proxies_of(L);
    proxies->own = &mull__proxies_none;
    proxies->serial = 1; /* what has none isn't of a call */
    lua_rawsetp(L, LUA_REGISTRYINDEX, &declared);
    lua_createtable(L, KINDS, 0);
    open_kind(L, ERROR, error_index);
    open_kind(L, CONTEXT, context_index);
    open_kind(L, PLAIN, plain_index);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &metas);
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &made);
}

void mull__proxies_push_pair(lua_State *L, mull__proxy_pair *own)
{
    lua_newtable(L);
    own->err = lua_topointer(L, -1);
    set_kind(L, ERROR);
    lua_createtable(L, 0, 1);
    own->ctx = lua_topointer(L, -1);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, &self);
    set_kind(L, CONTEXT);
}

void mull__proxies_forget(lua_State *L, mull__proxies *proxies)
{
    proxies->has_call_cache = 0;
    lua_pushboolean(L, 0); /* a key that is there takes a value without new memory */
    lua_rawsetp(L, LUA_REGISTRYINDEX, &made);
}

void mull__proxy_wrap(lua_State *L)
{
    new_proxy(L, PLAIN);
}
