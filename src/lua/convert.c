/* convert.c: out of Lua. Tables are read raw: no metamethod runs while half of something is read.
 */
#include "convert.h"

#include "base/duration.h"
#include "base/utf8.h"
#include "host.h"
#include "raise.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 16, CAUSES = 16 };

/* source is where values come from, and what happens to those that can't be passed on: raised at,
 * or, from a handler whose error must not get lost, mended or left out. */
typedef struct source {
    lua_State *L;
    mull__arena *arena;
    int strict;
} source;

/* raw_field pushes a field and gives its type; json.null counts as missing. */
static int raw_field(lua_State *L, int index, const char *name)
{
    index = lua_absindex(L, index);
    lua_pushstring(L, name);
    int type = lua_rawget(L, index);
    if (type != LUA_TLIGHTUSERDATA)
        return type;
    lua_pop(L, 1);
    lua_pushnil(L);
    return LUA_TNIL;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static int is_text(const char *text, size_t size)
{
    return strlen(text) == size && mull__utf8_valid(text);
}

/* text copies the string at `index`. */
static const char *text(source *s, int index, const char *what)
{
    size_t size;
    const char *given = lua_tolstring(s->L, index, &size);
    char *copy = mull__arena_copy(s->L, s->arena, given, size);
    if (is_text(copy, size))
        return copy;
    if (s->strict)
        luaL_error(s->L, "%s must be UTF-8, without a NUL", what);
    for (size_t i = 0; i < size; i++) {
        if (copy[i] == 0)
            copy[i] = '?';
    }
    mull__utf8_mend(copy, size);
    return copy;
}

/* optional_text reads a field that is a string or not there. */
static const char *optional_text(source *s, int index, const char *field)
{
    int type = raw_field(s->L, index, field);
    const char *copy = NULL;
    if (type == LUA_TSTRING)
        copy = text(s, -1, field);
    else if (type != LUA_TNIL && s->strict)
        luaL_error(s->L, "%s must be a string", field);
    lua_pop(s->L, 1);
    return copy;
}

const char *mull__read_name(lua_State *L, int index, const char *what)
{
    size_t size;
    const char *name = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &size) : NULL;
    if (!name || size == 0 || !is_text(name, size))
        luaL_error(L, "%s must be a name in UTF-8", what);
    return name;
}

int64_t mull__read_duration(lua_State *L, int index, const char *what)
{
    int64_t ms = 0;
    size_t size;
    char why[128];
    if (lua_type(L, index) == LUA_TSTRING) {
        const char *written = lua_tolstring(L, index, &size);
        if (mull__duration_read(&ms, written, size, why, sizeof why) != 0)
            luaL_error(L, "%s %s", what, why);
    } else if (lua_type(L, index) != LUA_TNUMBER || lua_tonumber(L, index) != 0) {
        luaL_error(L, "%s must be 0 or a text such as \"200ms\" or \"1h30m\"", what);
    }
    return ms;
}

/* ---- Values and fields ----------------------------------------------------------------------- */

static int by_name(const void *left, const void *right)
{
    return strcmp(((const mull_field *)left)->name, ((const mull_field *)right)->name);
}

/* list_size is n where the keys are 1 ... n and nothing else, n > 0; else 0. */
static size_t list_size(lua_State *L, int index)
{
    size_t keys = 0, size = lua_rawlen(L, index);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        if (!lua_isinteger(L, -1) || ++keys > size) {
            lua_pop(L, 1);
            return 0;
        }
    }
    return keys == size ? size : 0;
}

static int read_value(source *s, int index, const char *what, int level, mull_value *value);

/* read_fields reads all keys of a table that are strings, but for those in `except`. */
static const mull_field *read_fields(source *s, int index, const char *const *except, int level,
                                     size_t *count)
{
    lua_State *L = s->L;
    size_t room = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
        room++;
    mull_field *fields = mull__arena_take(L, s->arena, room, sizeof *fields);
    *count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) {
            if (s->strict)
                luaL_error(L, "names of fields must be strings");
            continue;
        }
        const char *key = lua_tostring(L, -2);
        const char *const *known = except;
        while (known && *known && strcmp(*known, key) != 0)
            known++;
        if (known && *known)
            continue;
        mull_field *field = &fields[*count];
        field->name = text(s, -2, "the name of a field");
        if (read_value(s, lua_gettop(L), field->name, level, &field->value))
            ++*count;
    }
    qsort(fields, *count, sizeof *fields, by_name);
    return fields;
}

static const mull_value *read_items(source *s, int index, size_t count, const char *what, int level)
{
    mull_value *items = mull__arena_take(s->L, s->arena, count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(s->L, index, (lua_Integer)i + 1);
        read_value(s, lua_gettop(s->L), what, level, &items[i]);
        lua_pop(s->L, 1);
    }
    return items;
}

static int read_table(source *s, int index, const char *what, int level, mull_value *value)
{
    if (level >= LEVELS) {
        if (s->strict)
            luaL_error(s->L, "%s is nested deeper than %d levels", what, LEVELS);
        return 0;
    }
    luaL_checkstack(s->L, 8, NULL);
    size_t size = list_size(s->L, index);
    if (size > 0) {
        value->kind = MULL_LIST;
        value->count = size;
        value->as.items = read_items(s, index, size, what, level + 1);
    } else {
        value->kind = MULL_MAP;
        value->as.fields = read_fields(s, index, NULL, level + 1, &value->count);
    }
    return 1;
}

/* read_value gives 0 where there is nothing to pass on; `value` is nil then. */
static int read_value(source *s, int index, const char *what, int level, mull_value *value)
{
    lua_State *L = s->L;
    *value = (mull_value){.kind = MULL_NIL};
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        value->kind = MULL_BOOLEAN;
        value->as.boolean = lua_toboolean(L, index);
        return 1;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index)) {
            value->kind = MULL_INTEGER;
            value->as.integer = lua_tointeger(L, index);
        } else {
            value->kind = MULL_NUMBER;
            value->as.number = lua_tonumber(L, index);
        }
        return 1;
    case LUA_TSTRING:
        value->kind = MULL_STRING;
        value->as.string = text(s, index, what);
        return 1;
    case LUA_TTABLE:
        return read_table(s, index, what, level, value);
    case LUA_TLIGHTUSERDATA: /* json.null */
        return 0;
    default:
        if (s->strict)
            luaL_error(L, "%s can't be a %s", what, luaL_typename(L, index));
        return 0;
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static const char *const error_keys[] = {"type", "lineage", "message", "stack", "cause", NULL};

static void read_lineage(source *s, int index, mull_error *error)
{
    lua_State *L = s->L;
    int type = raw_field(L, index, "lineage");
    int at = lua_gettop(L);
    size_t count = type == LUA_TTABLE ? lua_rawlen(L, at) : 0;
    if (type != LUA_TNIL && type != LUA_TTABLE && s->strict)
        luaL_error(L, "lineage must be a list of types");
    const char **lineage = mull__arena_take(L, s->arena, count, sizeof *lineage);
    for (size_t i = 0; i < count; i++) {
        if (lua_rawgeti(L, at, (lua_Integer)i + 1) == LUA_TSTRING && lua_rawlen(L, -1) > 0)
            lineage[error->lineage_count++] = text(s, -1, "a type in lineage");
        else if (s->strict)
            luaL_error(L, "lineage must be a list of types");
        lua_pop(L, 1);
    }
    error->lineage = lineage;
    lua_pop(L, 1);
}

static const mull_error *read_error(source *s, int index, int depth);

/* read_cause is read_error for a cause, which a handler may give as a plain text as well. */
static const mull_error *read_cause(source *s, int index, int depth)
{
    int type = raw_field(s->L, index, "cause");
    const mull_error *cause = NULL;
    if (depth >= CAUSES) {
        /* Deeper ones are never looked at, and a cycle ends here. */
    } else if (type == LUA_TTABLE) {
        cause = read_error(s, lua_gettop(s->L), depth + 1);
    } else if (type == LUA_TSTRING && !s->strict) {
        mull_error *plain = mull__arena_take(s->L, s->arena, 1, sizeof *plain);
        *plain = MULL_INIT(mull_error);
        plain->type = "Error";
        plain->message = text(s, -1, "cause");
        cause = plain;
    } else if (type != LUA_TNIL && s->strict) {
        luaL_error(s->L, "cause must be an error");
    }
    lua_pop(s->L, 1);
    return cause;
}

static const mull_error *read_error(source *s, int index, int depth)
{
    luaL_checkstack(s->L, 8, NULL);
    mull_error *error = mull__arena_take(s->L, s->arena, 1, sizeof *error);
    *error = MULL_INIT(mull_error);
    error->type = optional_text(s, index, "type");
    if (!error->type || !*error->type) {
        if (s->strict)
            luaL_error(s->L, "%s needs a type", depth ? "a cause" : "error");
        error->type = "Error";
    }
    error->message = optional_text(s, index, "message");
    error->stack = optional_text(s, index, "stack");
    read_lineage(s, index, error);
    error->fields = read_fields(s, index, error_keys, 0, &error->field_count);
    error->cause = read_cause(s, index, depth);
    return error;
}

const mull_error *mull__read_raised(lua_State *L, int index, mull__arena *arena, const char *stack)
{
    source s = {.L = L, .arena = arena, .strict = 0};
    index = lua_absindex(L, index);
    if (mull__is_raised(L, index))
        return read_error(&s, index, 0);
    mull_error *error = mull__arena_take(L, arena, 1, sizeof *error);
    *error = MULL_INIT(mull_error);
    error->type = "Error";
    if (stack) {
        lua_pushstring(L, stack);
        error->stack = text(&s, -1, "stack");
        lua_pop(L, 1);
    }
    mull__raised_text(L, index);
    error->message = text(&s, -1, "message");
    lua_pop(L, 1);
    return error;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static int by_header(const void *left, const void *right)
{
    return strcmp(((const mull_header *)left)->name, ((const mull_header *)right)->name);
}

/* read_headers reads the table at the top into a message, ordered by name. */
static void read_headers(source *s, mull_message *message)
{
    lua_State *L = s->L;
    int at = lua_gettop(L);
    if (lua_isnil(L, at))
        return;
    if (!lua_istable(L, at))
        luaL_error(L, "headers must be a table of strings");
    size_t room = 0;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1))
        room++;
    mull_header *headers = mull__arena_take(L, s->arena, room, sizeof *headers);
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || lua_rawlen(L, -2) == 0)
            luaL_error(L, "names of headers must be strings, not empty");
        headers[count].name = text(s, -2, "the name of a header");
        if (lua_islightuserdata(L, -1)) /* json.null */
            continue;
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "header \"%s\" must be a string", headers[count].name);
        headers[count].value = text(s, -1, headers[count].name);
        count++;
    }
    qsort(headers, count, sizeof *headers, by_header);
    message->headers = headers;
    message->header_count = count;
}

/* check_keys raises at a key that isn't in the list. */
static void check_keys(lua_State *L, int index, const char *const *known, const char *where)
{
    index = lua_absindex(L, index);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;
        const char *const *k = known;
        while (key && *k && strcmp(*k, key) != 0)
            k++;
        if (!key)
            luaL_error(L, "unknown key in %s: a %s", where, luaL_typename(L, -2));
        if (!*k)
            luaL_error(L, "unknown key \"%s\" in %s", key, where);
    }
}

static void read_names(source *s, int index, mull_message *message)
{
    message->id = optional_text(s, index, "id");
    message->type = optional_text(s, index, "type");
    message->key = optional_text(s, index, "key");
    raw_field(s->L, index, "headers");
    read_headers(s, message);
    lua_pop(s->L, 1);
}

void mull__read_outgoing(lua_State *L, int first, mull__arena *arena, mull_message *message,
                         int64_t *delay_ms)
{
    static const char *const known[] = {"id", "type", "key", "headers", "delay", NULL};
    source s = {.L = L, .arena = arena, .strict = 1};
    *message = MULL_INIT(mull_message);
    *delay_ms = 0;
    message->queue = mull__read_name(L, first, "queue");
    if (lua_type(L, first + 1) != LUA_TSTRING)
        luaL_error(L, "body must be a string");
    message->body = lua_tolstring(L, first + 1, &message->body_size);
    if (lua_isnoneornil(L, first + 2))
        return;
    luaL_checktype(L, first + 2, LUA_TTABLE);
    check_keys(L, first + 2, known, "the message's options");
    read_names(&s, first + 2, message);
    if (raw_field(L, first + 2, "delay") != LUA_TNIL)
        *delay_ms = mull__read_duration(L, -1, "delay");
    lua_pop(L, 1);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static const char *optional_name(source *s, int index, const char *field)
{
    const char *name = optional_text(s, index, field);
    if (name && !*name)
        luaL_error(s->L, "%s must not be empty", field);
    return name;
}

static int64_t whole(lua_State *L, int index, const char *field, int64_t least)
{
    int64_t number = 0;
    int type = raw_field(L, index, field);
    if (type != LUA_TNIL) {
        int is_whole = 0;
        number = type == LUA_TNUMBER ? lua_tointegerx(L, -1, &is_whole) : 0;
        if (!is_whole || number < least)
            luaL_error(L, "%s must be a whole number from %d", field, (int)least);
    }
    lua_pop(L, 1);
    return number;
}

static void read_message(source *s, int index, mull_failure *failure)
{
    static const char *const known[] = {"id", "type", "key", "size", "headers", NULL};
    int type = raw_field(s->L, index, "message");
    if (type != LUA_TNIL) {
        if (type != LUA_TTABLE)
            luaL_error(s->L, "message must be a table");
        int at = lua_gettop(s->L);
        check_keys(s->L, at, known, "message");
        mull_message *message = mull__arena_take(s->L, s->arena, 1, sizeof *message);
        *message = MULL_INIT(mull_message);
        read_names(s, at, message);
        message->body_size = (size_t)whole(s->L, at, "size", 0);
        failure->message = message;
    }
    lua_pop(s->L, 1);
}

static int denied(lua_State *L, int index, const char *field)
{
    int type = raw_field(L, index, field);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "%s must be true or false", field);
    int no = type == LUA_TBOOLEAN && !lua_toboolean(L, -1);
    lua_pop(L, 1);
    return no;
}

static void read_abilities(lua_State *L, int index, mull_failure *failure)
{
    static const char *const known[] = {"retry", "delay", NULL};
    int type = raw_field(L, index, "can");
    if (type != LUA_TNIL) {
        if (type != LUA_TTABLE)
            luaL_error(L, "can must be a table");
        int at = lua_gettop(L);
        check_keys(L, at, known, "can");
        if (denied(L, at, "retry"))
            failure->flags |= MULL_CANNOT_RETRY;
        if (denied(L, at, "delay"))
            failure->flags |= MULL_CANNOT_DELAY;
    }
    lua_pop(L, 1);
}

void mull__read_failure(lua_State *L, int index, mull__arena *arena, mull_failure *failure)
{
    static const char *const known[] = {"error",        "consumer", "transport",  "attempt",
                                        "redeliveries", "calls",    "deliveries", "age_ms",
                                        "message",      "can",      NULL};
    source s = {.L = L, .arena = arena, .strict = 1};
    index = lua_absindex(L, index);
    check_keys(L, index, known, "the failure");
    *failure = MULL_INIT(mull_failure);
    if (raw_field(L, index, "error") != LUA_TTABLE)
        luaL_error(L, "error must be a table with a type");
    failure->error = read_error(&s, lua_gettop(L), 0);
    lua_pop(L, 1);
    failure->consumer = optional_name(&s, index, "consumer");
    failure->transport = optional_name(&s, index, "transport");
    failure->attempt = whole(L, index, "attempt", 1);
    failure->redeliveries = whole(L, index, "redeliveries", 0);
    failure->calls = whole(L, index, "calls", 1);
    failure->deliveries = whole(L, index, "deliveries", 1);
    failure->age_ms = whole(L, index, "age_ms", 0);
    read_message(&s, index, failure);
    read_abilities(L, index, failure);
}
