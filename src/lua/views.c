/* views.c: see views.h.
 *
 *   view ──[&born]──> the call that it was made in, and its level
 *        ──[&self]──> what it shows: in C, or a table       err and ctx of a function have none;
 * the latter has the err there registry ──[&made]──> of this call: address of what is shown -> its
 * view view -> the plain table that pairs and next walk
 */
#include "views.h"

#include <lauxlib.h>
#include <stdint.h>
#include <string.h>

#include "base/given.h"
#include "sandbox.h"

/* Keys of the registry and of views, by their addresses. */
static const char metas, made, declared, kept, kind_key, born, self;

enum { LEVELS = 16, CAUSES = 16, LINEAGE = 256 };
enum { LEVEL_BITS = 5 };

typedef enum view_kind { ERROR, CONTEXT, MESSAGE, HEADERS, LIST, MAP, PLAIN, KINDS } view_kind;

/* Names are in such an order that those of a message, of an error and of ctx are in a row each. */
enum { ID, KEY, SIZE, HEADERS_NAME, TYPE, STACK, CAUSE, IS, TEXT, ATTEMPT, ERROR_NAME = 16 };
static const char *const names[MULL__VIEW_NAMES] = {
    "id",    "key",    "size",     "headers",   "type",         "stack",
    "cause", "is",     "message",  "attempt",   "redeliveries", "deliveries",
    "calls", "age_ms", "consumer", "transport", "error"};

const mull__views_own mull__views_nobody = {NULL, NULL};

static inline mull__views *views_of(lua_State *L)
{
    return &((mull__sandbox *)mull__vm_of(L))->views;
}

/* ---- Views ----------------------------------------------------------------------------------- */

static int refuse(lua_State *L, const char *what)
{
    return mull__vm_raise(L, lua_pushfstring(L, "%s %s", views_of(L)->given, what));
}

/* push_self pushes what the view at `index`, which is neither err nor ctx, shows, and gives its
 * level. */
static int push_self(lua_State *L, int index)
{
    lua_rawgetp(L, index, &born);
    lua_Integer when = lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (when >> LEVEL_BITS != views_of(L)->serial)
        refuse(L, "there during the call only; a local can keep what was read");
    lua_rawgetp(L, index, &self);
    return (int)(when & ((1 << LEVEL_BITS) - 1));
}

/* shown gives what the view at index 1 shows in C, and its level. */
static const void *shown(lua_State *L, int *level)
{
    *level = push_self(L, 1);
    const void *data = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return data;
}

/* error_of and failure_of give the same for what may be an err or a ctx of a function's own. */
static const mull_error *error_of(lua_State *L, const mull__views *views)
{
    int level;
    int is_own = lua_topointer(L, 1) == views->own->err && views->failure->error;
    return is_own ? views->failure->error : shown(L, &level);
}

static const mull_failure *failure_of(lua_State *L, const mull__views *views)
{
    int level;
    return lua_topointer(L, 1) == views->own->ctx ? views->failure : shown(L, &level);
}

static void set_kind(lua_State *L, view_kind kind)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &metas);
    lua_rawgeti(L, -1, kind);
    lua_setmetatable(L, -3);
    lua_pop(L, 1);
}

/* data_of gives what a view of any kind but PLAIN, at index 1, shows, and its level. */
static const void *data_of(lua_State *L, view_kind kind, int *level)
{
    *level = 0;
    return kind == ERROR     ? error_of(L, views_of(L))
           : kind == CONTEXT ? (const void *)failure_of(L, views_of(L))
                             : shown(L, level);
}

/* kind_of is the kind of the view at `index`, KINDS where that is none. */
static view_kind kind_of(lua_State *L, int index)
{
    if (!lua_istable(L, index) || !lua_getmetatable(L, index))
        return KINDS;
    lua_rawgetp(L, -1, &kind_key);
    view_kind kind = lua_isinteger(L, -1) ? (view_kind)lua_tointeger(L, -1) : KINDS;
    lua_pop(L, 2);
    return kind;
}

/* push_made pushes the table of what the call has made. */
static void push_made(lua_State *L)
{
    mull__views *views = views_of(L);
    if (!views->has_made) {
        lua_newtable(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &made);
        views->has_made = 1;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &made);
}

/* new_view pushes a view of what is on top, in whose place it comes. */
static void new_view(lua_State *L, view_kind kind, int level)
{
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (views_of(L)->serial << LEVEL_BITS) | level);
    lua_rawsetp(L, -2, &born);
    lua_insert(L, -2);
    lua_rawsetp(L, -2, &self);
    set_kind(L, kind);
}

/* push_view pushes the view of what is at an address, which within a call is always the same one.
 * The same value may be seen on several levels, fewer than it has bytes. */
static void push_view(lua_State *L, view_kind kind, const void *data, int level)
{
    const void *at = (const char *)data + level;
    luaL_checkstack(L, 8, "a value too deep");
    push_made(L);
    if (lua_rawgetp(L, -1, at) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_pushlightuserdata(L, (void *)(uintptr_t)data);
        new_view(L, kind, level);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, -3, at);
    }
    lua_remove(L, -2);
}

/* ---- Values ---------------------------------------------------------------------------------- */

enum {
    BYTES = 16,
    CHECKED = 64,
    SHORT = 8
}; /* what an instruction stands for; what isn't
        worth counting: SHORT * SHORT = CHECKED */

/* push_text: what is copied counts as instructions. */
static void push_text(lua_State *L, const char *text)
{
    lua_pushstring(L, text); /* nil for NULL */
    size_t size = lua_rawlen(L, -1);
    if (size >= CHECKED)
        mull__vm_spend(L, size / BYTES);
}

/* kind_at is the kind of a value that is within so many others. */
static inline mull_kind kind_at(const mull_value *value, int level)
{
    mull_kind kind = mull__kind(value);
    return level >= LEVELS && (kind == MULL_LIST || kind == MULL_MAP) ? MULL_NIL : kind;
}

/* push_value pushes a value that is within so many others. */
static inline void push_value(lua_State *L, const mull_value *value, int level)
{
    switch (kind_at(value, level)) {
    case MULL_NIL:
        lua_pushnil(L);
        break;
    case MULL_BOOLEAN:
        lua_pushboolean(L, value->as.boolean);
        break;
    case MULL_INTEGER:
        lua_pushinteger(L, value->as.integer);
        break;
    case MULL_NUMBER:
        lua_pushnumber(L, value->as.number);
        break;
    case MULL_STRING:
        push_text(L, value->as.string);
        break;
    case MULL_LIST:
        push_view(L, LIST, value, level);
        break;
    case MULL_MAP:
        push_view(L, MAP, value, level);
        break;
    }
}

/* count_search: looking through fields counts as instructions. */
static inline void count_search(lua_State *L, size_t looked_at, size_t length)
{
    if ((looked_at | length) < SHORT)
        return;
    size_t steps = looked_at * (1 + length / CHECKED);
    if (steps >= CHECKED)
        mull__vm_spend(L, steps / BYTES);
}

/* is_named: a name has no zero byte, a key may have one. */
static inline int is_named(const char *name, const char *key, size_t length)
{
    return name && *name == *key && strcmp(name, key) == 0 && strlen(name) == length;
}

/* push_field pushes the first of `count` fields with a name; nil: there is none. */
static inline void push_field(lua_State *L, const mull_field *fields, size_t count, const char *key,
                              size_t length, int level)
{
    size_t i = 0;
    while (i < count && !is_named(fields[i].name, key, length))
        i++;
    count_search(L, i, length);
    if (i < count)
        push_value(L, &fields[i].value, level);
    else
        lua_pushnil(L);
}

/* set_fields sets fields in the table on top; of several with one name the first counts. */
static void set_fields(lua_State *L, const mull_field *fields, size_t count, int level)
{
    for (size_t i = count; i-- > 0;) {
        if (!fields[i].name)
            continue;
        lua_pushstring(L, fields[i].name);
        push_value(L, &fields[i].value, level);
        lua_rawset(L, -3);
    }
}

/* name_among gives which of the names from `first` to `last` a key is; -1: none. Names are short,
 * so that the state has each once. */
static inline int name_among(const mull__views *views, const char *key, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (views->names[i] == key)
            return i;
    return -1;
}

/* key_of gives the string at index 2; NULL: it is none. */
static inline const char *key_of(lua_State *L, size_t *length)
{
    return lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, length) : NULL;
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

/* last_sent gives the last of the names that an error came with, repeats left out. */
static const char *last_sent(const mull_error *error, size_t count)
{
    while (count-- > 0) {
        const char *type = sent_type(error, count);
        size_t i = 0;
        while (type && i < count && !(sent_type(error, i) && same(sent_type(error, i), type)))
            i++;
        if (type && i == count)
            return type;
    }
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
    count_search(L, above, 0);
    return is;
}

/* error_is is err:is(type): whether the type is in the error's effective lineage: what was sent,
 * then the declared parents of the last of these, then Error. */
static int error_is(lua_State *L)
{
    luaL_argcheck(L, lua_istable(L, 1), 1, "err:is(type) takes a colon");
    luaL_checktype(L, 2, LUA_TSTRING);
    luaL_argcheck(L, kind_of(L, 1) == ERROR, 1, "only an error has a type");
    const mull_error *error = error_of(L, views_of(L));
    const char *type = lua_tostring(L, 2);
    size_t sent = mull__lineage_count(error), count = 1 + (sent < LINEAGE ? sent : LINEAGE);
    count_search(L, count, lua_rawlen(L, 2));
    int is = same(type, "Error");
    for (size_t i = 0; i < count && !is; i++)
        is = sent_type(error, i) && same(sent_type(error, i), type);
    is = is && strlen(type) == lua_rawlen(L, 2);
    lua_pushboolean(L, is || descends(L, last_sent(error, count)));
    return 1;
}

/* push_cause: a circle is cut, and so is what is too deep. */
static void push_cause(lua_State *L, const mull_error *error)
{
    const mull_error *at = views_of(L)->failure->error, *cause = mull__cause(error);
    int depth = 1, is_new = at != cause;
    for (; at != error && depth <= CAUSES; depth++) {
        at = at->cause;
        is_new &= at != cause;
    }
    if (cause && is_new && depth <= CAUSES)
        push_view(L, ERROR, cause, 0);
    else
        lua_pushnil(L);
}

/* push_of_error pushes what an error has by one of its own names. */
static void push_of_error(lua_State *L, const mull_error *error, int name)
{
    switch (name) {
    case TYPE:
        push_text(L, error->type);
        break;
    case TEXT:
        push_text(L, error->message ? error->message : "");
        break;
    case STACK:
        push_text(L, error->stack ? error->stack : "");
        break;
    case CAUSE:
        push_cause(L, error);
        break;
    default:
        lua_pushcfunction(L, error_is);
        break;
    }
}

/* own_name_of gives which of an error's own names a key is; -1: none. */
static inline int own_name_of(const mull__views *views, const char *key)
{
    const char *const *own = views->names;
    return key == own[TYPE]    ? TYPE
           : key == own[STACK] ? STACK
           : key == own[CAUSE] ? CAUSE
           : key == own[IS]    ? IS
           : key == own[TEXT]  ? TEXT
                               : -1;
}

static int error_index(lua_State *L)
{
    const mull__views *views = views_of(L);
    const mull_error *error = error_of(L, views);
    size_t length;
    const char *key = key_of(L, &length);
    if (!key)
        return 0;
    int name = own_name_of(views, key);
    if (name >= 0)
        push_of_error(L, error, name);
    else
        push_field(L, error->fields, mull__field_count(error), key, length, 0);
    return 1;
}

/* push_little_text pushes a text that costs no instructions; nil: there is none, or it is longer.
 */
static void push_little_text(lua_State *L, const char *text)
{
    lua_pushstring(L, text && strnlen(text, CHECKED) < CHECKED ? text : NULL);
}

static void push_little(lua_State *L, const mull_value *value)
{
    if (value->kind == MULL_STRING)
        push_little_text(L, value->as.string);
    else
        push_value(L, value, LEVELS); /* no list and no map */
}

static void push_own_little(lua_State *L, const mull_error *error, int name)
{
    push_little_text(L, name == TYPE    ? error->type
                        : name == TEXT  ? error->message
                        : name == STACK ? error->stack
                                        : NULL);
}

/* push_little_field: of so many fields that looking through them costs instructions, none. */
static void push_little_field(lua_State *L, const mull_error *error, const char *name)
{
    const mull_field *fields = error->fields;
    size_t all = mull__field_count(error), count = all < CHECKED ? all : 0, i = 0;
    while (i < count && !(fields[i].name && *fields[i].name == *name && same(fields[i].name, name)))
        i++;
    if (i < count)
        push_little(L, &fields[i].value);
    else
        lua_pushnil(L);
}

void mull__views_note_reads(lua_State *L, mull__views_reads *reads, int count)
{
    reads->count = count;
    for (int i = 0; i < count; i++) {
        reads->of[i].name = lua_tostring(L, i - count);
        reads->of[i].own = own_name_of(views_of(L), reads->of[i].name);
    }
}

void mull__views_fill(lua_State *L, int index, const mull__views_reads *reads)
{
    const mull_error *error = views_of(L)->failure->error;
    for (int i = 0; i < reads->count; i++) {
        lua_pushvalue(L, i + 1);
        if (reads->of[i].own >= 0)
            push_own_little(L, error, reads->of[i].own);
        else
            push_little_field(L, error, reads->of[i].name);
        lua_rawset(L, index);
    }
}

void mull__views_empty(lua_State *L, const mull__views_reads *reads)
{
    lua_rawgetp(L, -1, &self);
    for (int i = 0; i < reads->count; i++) {
        lua_pushstring(L, reads->of[i].name);
        lua_pushnil(L);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
}

/* ---- ctx ------------------------------------------------------------------------------------- */

static const mull_message *message_of(const mull_failure *failure)
{
    static const mull_message none = {.size = sizeof none};
    return failure->message ? failure->message : &none;
}

/* push_of_context: the ctx is at index 1. */
static void push_of_context(lua_State *L, const mull_failure *failure, int name)
{
    const int64_t counts[] = {failure->attempt, failure->redeliveries, failure->deliveries,
                              failure->calls, failure->age_ms};
    enum { COUNTS = sizeof counts / sizeof *counts, CONSUMER = ATTEMPT + COUNTS };
    if (name >= ATTEMPT && name < CONSUMER)
        lua_pushinteger(L, counts[name - ATTEMPT]);
    else if (name == TEXT)
        push_view(L, MESSAGE, message_of(failure), 0);
    else if (name != ERROR_NAME)
        push_text(L, name == CONSUMER ? failure->consumer : failure->transport);
    else if (views_of(L)->has_error && failure->error)
        lua_rawgetp(L, 1, &self);
    else
        lua_pushnil(L);
}

static int context_index(lua_State *L)
{
    const mull__views *views = views_of(L);
    const mull_failure *failure = failure_of(L, views);
    size_t length;
    int name = name_among(views, key_of(L, &length), TEXT, ERROR_NAME);
    if (name < 0)
        return 0;
    push_of_context(L, failure, name);
    return 1;
}

static void push_of_message(lua_State *L, const mull_message *message, int name)
{
    switch (name) {
    case ID:
        push_text(L, message->id);
        break;
    case TYPE:
        push_text(L, message->type);
        break;
    case KEY:
        push_text(L, message->key);
        break;
    case SIZE:
        lua_pushinteger(L, (lua_Integer)message->body_size);
        break;
    default:
        push_view(L, HEADERS, message, 1); /* the other view of it */
        break;
    }
}

static int message_index(lua_State *L)
{
    int level;
    const mull_message *message = shown(L, &level);
    size_t length;
    int name = name_among(views_of(L), key_of(L, &length), ID, TYPE);
    if (name < 0)
        return 0;
    push_of_message(L, message, name);
    return 1;
}

static int headers_index(lua_State *L)
{
    int level;
    const mull_message *message = shown(L, &level);
    size_t length, i = 0;
    const char *key = key_of(L, &length);
    if (!key)
        return 0;
    size_t count = mull__header_count(message);
    while (i < count && !is_named(message->headers[i].name, key, length))
        i++;
    count_search(L, i, length);
    push_text(L, i < count ? message->headers[i].value : NULL);
    return 1;
}

/* ---- Lists, maps, tables --------------------------------------------------------------------- */

static int list_index(lua_State *L)
{
    int level, is_number;
    const mull_value *list = shown(L, &level);
    lua_Integer at = lua_type(L, 2) == LUA_TNUMBER ? lua_tointegerx(L, 2, &is_number) : 0;
    if (at >= 1 && (lua_Unsigned)at <= list->count)
        push_value(L, &list->as.items[at - 1], level + 1);
    else
        lua_pushnil(L);
    return 1;
}

static int map_index(lua_State *L)
{
    int level;
    const mull_value *map = shown(L, &level);
    size_t length;
    const char *key = key_of(L, &length);
    if (!key)
        return 0;
    push_field(L, map->as.fields, map->count, key, length, level + 1);
    return 1;
}

static int plain_index(lua_State *L)
{
    push_self(L, 1);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    return 1;
}

static int plain_length(lua_State *L)
{
    push_self(L, 1);
    lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
    return 1;
}

/* list_length: nulls at the end don't count. */
static int list_length(lua_State *L)
{
    int level;
    const mull_value *list = shown(L, &level);
    size_t count = list->count;
    while (count > 0 && kind_at(&list->as.items[count - 1], level + 1) == MULL_NIL)
        count--;
    count_search(L, list->count - count, 0);
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

/* no_length is that of what has no numbers for keys. */
static int no_length(lua_State *L)
{
    data_of(L, kind_of(L, 1), &(int){0});
    lua_pushinteger(L, 0);
    return 1;
}

static int view_newindex(lua_State *L)
{
    return refuse(L, "read-only");
}

/* ---- As plain tables ------------------------------------------------------------------------- */

/* set_named sets what has names of its own, from `first` to `last`, in the table on top. */
static void set_named(lua_State *L, view_kind kind, const void *data, int first, int last)
{
    for (int name = first; name <= last; name++) {
        if (kind == ERROR)
            push_of_error(L, data, name);
        else if (kind == CONTEXT)
            push_of_context(L, data, name);
        else
            push_of_message(L, data, name);
        lua_setfield(L, -2, names[name]);
    }
}

static void set_headers(lua_State *L, const mull_message *message)
{
    for (size_t i = mull__header_count(message); i-- > 0;) {
        if (!message->headers[i].name)
            continue;
        push_text(L, message->headers[i].value);
        lua_setfield(L, -2, message->headers[i].name);
    }
}

/* set_all sets all that the view at index 1 shows in the table on top. */
static void set_all(lua_State *L, view_kind kind, const void *data, int level)
{
    const mull_error *error = data;
    const mull_value *value = data;
    switch (kind) {
    case ERROR:
        set_fields(L, error->fields, mull__field_count(error), 0);
        set_named(L, kind, data, TYPE, TEXT);
        break;
    case CONTEXT:
        set_named(L, kind, data, TEXT, ERROR_NAME);
        break;
    case MESSAGE:
        set_named(L, kind, data, ID, TYPE);
        break;
    case HEADERS:
        set_headers(L, data);
        break;
    case LIST:
        for (size_t i = 0; i < value->count; i++) {
            push_value(L, &value->as.items[i], level + 1);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        break;
    default:
        set_fields(L, value->as.fields, value->count, level + 1);
        break;
    }
}

int mull__views_reveal(lua_State *L)
{
    lua_settop(L, 1);
    view_kind kind = kind_of(L, 1);
    if (kind == KINDS)
        return 0;
    if (kind == PLAIN) {
        push_self(L, 1);
        return 1;
    }
    int level;
    const void *data = data_of(L, kind, &level);
    push_made(L);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        set_all(L, kind, data, level);
        lua_pushvalue(L, 1);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    return 1;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void open_kind(lua_State *L, view_kind kind, lua_CFunction index, lua_CFunction length)
{
    lua_createtable(L, 0, 5);
    lua_pushcfunction(L, index);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, view_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_pushcfunction(L, length);
    lua_setfield(L, -2, "__len");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pushinteger(L, kind);
    lua_rawsetp(L, -2, &kind_key);
    lua_rawseti(L, -2, kind);
}

void mull__views_open(lua_State *L, int parents)
{
    mull__views *views = views_of(L);
    views->own = &mull__views_nobody;
    views->serial = 1; /* what has none isn't of a call */
    lua_pushvalue(L, parents);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &declared);
    lua_createtable(L, MULL__VIEW_NAMES, 0);
    for (int i = 0; i < MULL__VIEW_NAMES; i++) {
        views->names[i] = lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept);
    lua_createtable(L, KINDS, 0);
    open_kind(L, ERROR, error_index, no_length);
    open_kind(L, CONTEXT, context_index, no_length);
    open_kind(L, MESSAGE, message_index, no_length);
    open_kind(L, HEADERS, headers_index, no_length);
    open_kind(L, LIST, list_index, list_length);
    open_kind(L, MAP, map_index, no_length);
    open_kind(L, PLAIN, plain_index, plain_length);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &metas);
    lua_pushboolean(L, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &made);
}

void mull__views_push_own(lua_State *L, mull__views_own *own, int reads)
{
    lua_createtable(L, 0, reads);
    own->err = lua_topointer(L, -1);
    set_kind(L, ERROR);
    lua_createtable(L, 0, 1);
    own->ctx = lua_topointer(L, -1);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, &self);
    set_kind(L, CONTEXT);
}

void mull__views_forget(lua_State *L, mull__views *views)
{
    views->has_made = 0;
    lua_pushboolean(L, 0); /* a key that is there takes a value without new memory */
    lua_rawsetp(L, LUA_REGISTRYINDEX, &made);
}

void mull__views_cover(lua_State *L)
{
    new_view(L, PLAIN, 0);
}

void mull__views_cover_field(lua_State *L, const char *name)
{
    if (lua_getfield(L, -1, name) == LUA_TTABLE) {
        mull__views_cover(L);
        lua_setfield(L, -2, name);
    } else {
        lua_pop(L, 1);
    }
}
