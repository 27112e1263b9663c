/* from_lua.c: reads failures, errors and messages out of Lua. Tables are read raw, so that no
 * metamethod runs meanwhile. */
#include "values.h"

#include "base/duration.h"
#include "base/utf8.h"
#include "json.h"
#include "raise.h"
#include "runtime/calls.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 16, CAUSES = 16, LINEAGE = 256 };

/* What one error may hold, its causes included: a table that several others share is copied for
 * each of them. STEPS bounds the counting of tables that turn out to be too large. */
enum { VALUES = 10000, BYTES = 1024 * 1024, STEPS = 8 * VALUES };

/* However large an error is, what a matcher is likely to look at finds room: the messages and
 * stacks of causes may be this long each, and fields leave so much to those of each cause below. */
enum { CAUSE_TEXT = 8 * 1024, CAUSE_VALUES = 64, CAUSE_BYTES = 2 * 1024 };

/* source is where values come from, and what happens to those that can't be passed on: raised at,
 * or, from a handler whose error must not get lost, mended or left out. */
typedef struct source {
    lua_State *L;
    mull__arena *arena;
    const char *whole; /* what all of it together is */
    int strict;
    size_t values, bytes, steps; /* how many are left */
} source;

static source of_error(lua_State *L, mull__arena *arena, int strict)
{
    return (source){L, arena, "an error", strict, .values = VALUES, .bytes = BYTES, .steps = STEPS};
}

static source of_message(lua_State *L, mull__arena *arena)
{
    return (source){L, arena, "a message", .strict = 1, .bytes = BYTES};
}

/* grant takes room for so many values; 0: there isn't as much. */
static int grant(source *s, size_t count)
{
    if (count > s->values) {
        if (s->strict)
            luaL_error(s->L, "an error can't have more than %d values, all levels together",
                       VALUES);
        return 0;
    }
    s->values -= count;
    return 1;
}

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

/* ---- Keys ------------------------------------------------------------------------------------ */

static int is_one_of(const char *const *names, const char *name)
{
    while (names && *names && strcmp(*names, name) != 0)
        names++;
    return names && *names;
}

/* refuse_key raises what lua/mulligan/policy/text.lua has to say of a key. */
static void refuse_key(lua_State *L, const char *key, const char *const *known, const char *where)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "mulligan.policy.text");
    lua_getfield(L, -1, "unknown_key");
    lua_pushstring(L, key);
    lua_pushstring(L, where);
    lua_newtable(L);
    for (int i = 0; known[i]; i++) {
        lua_pushstring(L, known[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 3, 1);
    luaL_error(L, "%s", lua_tostring(L, -1));
}

/* check_keys raises at a key that isn't among `known`; `where` is what the table is. */
static void check_keys(lua_State *L, int index, const char *const *known, const char *where)
{
    index = lua_absindex(L, index);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "unknown key in %s: a %s", where, luaL_typename(L, -2));
        if (!is_one_of(known, lua_tostring(L, -2)))
            refuse_key(L, lua_tostring(L, -2), known, where);
    }
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static int is_text(const char *text, size_t size)
{
    return strlen(text) == size && mull__utf8_valid(text);
}

/* copy_text copies the first `size` bytes of the string at `index`. */
static const char *copy_text(source *s, int index, size_t size, const char *what)
{
    char *copy = mull__arena_copy(s->L, s->arena, lua_tostring(s->L, index), size);
    s->bytes -= size;
    if (is_text(copy, size))
        return copy;
    if (s->strict)
        luaL_error(s->L, "%s must be UTF-8, without a NUL", what);
    for (size_t i = 0; i < size; i++) {
        if (copy[i] == 0)
            copy[i] = '?';
    }
    mull__utf8_repair(copy, size);
    return copy;
}

/* text copies the string at `index`; NULL: there is no room for it. */
static const char *text(source *s, int index, const char *what)
{
    size_t size = (size_t)lua_rawlen(s->L, index);
    if (size <= s->bytes)
        return copy_text(s, index, size, what);
    if (s->strict)
        luaL_error(s->L, "%s can't have more than %d MiB of text", s->whole, BYTES / 1024 / 1024);
    return NULL;
}

/* long_text copies at most `most` of it, and no more than a quarter of the room. */
static const char *long_text(source *s, int index, size_t most, const char *what)
{
    size_t size = (size_t)lua_rawlen(s->L, index);
    if (most > s->bytes / 4)
        most = s->bytes / 4;
    return s->strict || size <= most ? text(s, index, what) : copy_text(s, index, most, what);
}

/* optional_text reads a field that is a string or not there. */
static const char *optional_text(source *s, int index, size_t most, const char *field)
{
    int type = raw_field(s->L, index, field);
    const char *copy = NULL;
    if (type == LUA_TSTRING)
        copy = long_text(s, -1, most, field);
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

/* count_keys counts a table's keys, as far as there is room for so many, and says whether all are
 * whole numbers. */
static size_t count_keys(source *s, int index, int *are_whole)
{
    size_t count = 0;
    *are_whole = 1;
    for (lua_pushnil(s->L); lua_next(s->L, index); lua_pop(s->L, 1)) {
        *are_whole = *are_whole && lua_isinteger(s->L, -2);
        if (++count > s->values || s->steps == 0) {
            lua_pop(s->L, 2);
            return SIZE_MAX;
        }
        s->steps--;
    }
    return count;
}

/* path is the tables that lead to a value, from the error on. */
typedef struct path {
    const void *table;
    const struct path *up;
    int depth;
} path;

static void read_value(source *s, int index, const char *what, const path *up, mull_value *value);

/* name_of gives the name under the key at `index`; NULL: it isn't passed on. */
static const char *name_of(source *s, int index, const char *const *except)
{
    int is_name = lua_type(s->L, index) == LUA_TSTRING;
    if (!is_name && s->strict)
        luaL_error(s->L, "names of fields must be strings");
    if (!is_name || is_one_of(except, lua_tostring(s->L, index)))
        return NULL;
    return text(s, index, "the name of a field");
}

/* push_values pushes the values of a table's fields, and lists these, ordered by their names, so
 * that it is always the same ones that find room. The kind of each is MULL_MAP, which says where on
 * the stack its value is. Nothing of Lua's is made meanwhile: no finalizer runs that could change a
 * table half read. */
static size_t push_values(source *s, int index, const char *const *except, mull_field *fields)
{
    size_t count = 0;
    lua_pushnil(s->L);
    while (lua_next(s->L, index)) {
        const char *name = name_of(s, -2, except);
        if (!name) {
            lua_pop(s->L, 1);
            continue;
        }
        lua_insert(s->L, -2);
        fields[count++] =
            (mull_field){name, {.kind = MULL_MAP, .as.integer = lua_absindex(s->L, -2)}};
    }
    qsort(fields, count, sizeof *fields, by_name);
    return count;
}

/* read_fields reads all of a table's `keys` that are strings, but for those in `except`; NULL:
 * there is no room for them. Tables come last, for they may take the room of all others. */
static const mull_field *read_fields(source *s, int index, size_t keys, const char *const *except,
                                     const path *here, size_t *count)
{
    int top = lua_gettop(s->L);
    *count = 0;
    if (!grant(s, keys))
        return NULL;
    luaL_checkstack(s->L, (int)keys + 8, NULL);
    mull_field *fields = mull__arena_take(s->L, s->arena, keys, sizeof *fields);
    size_t all = push_values(s, index, except, fields);
    for (int tables = 0; tables < 2; tables++)
        for (mull_field *field = fields; field < fields + all; field++) {
            int at = (int)field->value.as.integer, is_unread = field->value.kind == MULL_MAP;
            if (is_unread && lua_istable(s->L, at) == tables)
                read_value(s, at, field->name, here, &field->value);
        }
    lua_settop(s->L, top);
    for (size_t i = 0; i < all; i++)
        if (fields[i].value.kind != MULL_NIL)
            fields[(*count)++] = fields[i];
    return fields;
}

static const mull_value *read_items(source *s, int index, size_t count, const char *what,
                                    const path *here)
{
    mull_value *items = mull__arena_take(s->L, s->arena, count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(s->L, index, (lua_Integer)i + 1);
        read_value(s, lua_gettop(s->L), what, here, &items[i]);
        lua_pop(s->L, 1);
    }
    return items;
}

/* has_end says whether a table lies neither too deep nor in itself. */
static int has_end(const source *s, const path *here, const char *what)
{
    const path *up = here->up;
    while (up && up->table != here->table)
        up = up->up;
    if (up && s->strict)
        luaL_error(s->L, "%s contains itself", what);
    if (here->depth > LEVELS && s->strict)
        luaL_error(s->L, "%s is nested deeper than %d levels", what, LEVELS);
    return !up && here->depth <= LEVELS;
}

static void read_table(source *s, int index, const char *what, const path *up, mull_value *value)
{
    const path here = {lua_topointer(s->L, index), up, up->depth + 1};
    mull_value read = {.kind = MULL_LIST};
    int are_whole;
    if (!has_end(s, &here, what))
        return;
    luaL_checkstack(s->L, 8, NULL);
    size_t keys = count_keys(s, index, &are_whole);
    if (are_whole && keys > 0 && keys == lua_rawlen(s->L, index)) {
        grant(s, keys);
        read.count = keys;
        read.as.items = read_items(s, index, keys, what, &here);
    } else {
        read.kind = MULL_MAP;
        read.as.fields = read_fields(s, index, keys, NULL, &here, &read.count);
        if (!read.as.fields)
            return;
    }
    *value = read;
}

/* read_value: `value` is nil where there is nothing to pass on. */
static void read_value(source *s, int index, const char *what, const path *up, mull_value *value)
{
    lua_State *L = s->L;
    *value = (mull_value){.kind = MULL_NIL};
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        *value = (mull_value){.kind = MULL_BOOLEAN, .as.boolean = lua_toboolean(L, index)};
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            *value = (mull_value){.kind = MULL_INTEGER, .as.integer = lua_tointeger(L, index)};
        else
            *value = (mull_value){.kind = MULL_NUMBER, .as.number = lua_tonumber(L, index)};
        break;
    case LUA_TSTRING:
        value->as.string = text(s, index, what);
        value->kind = value->as.string ? MULL_STRING : MULL_NIL;
        break;
    case LUA_TTABLE:
        read_table(s, index, what, up, value);
        break;
    case LUA_TLIGHTUSERDATA: /* json.null */
        break;
    default:
        if (s->strict)
            luaL_error(L, "%s can't be a %s", what, luaL_typename(L, index));
    }
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static const char *const error_keys[] = {"type", "lineage", "message", "stack", "cause", NULL};

static int is_empty(lua_State *L, int index)
{
    lua_pushnil(L);
    if (!lua_next(L, index))
        return 1;
    lua_pop(L, 2);
    return 0;
}

static void read_lineage(source *s, int index, mull_error *error)
{
    lua_State *L = s->L;
    int type = raw_field(L, index, "lineage");
    int at = lua_gettop(L);
    size_t count = type == LUA_TTABLE ? lua_rawlen(L, at) : 0;
    int is_list = type == LUA_TTABLE && (count > 0 || is_empty(L, at));
    if (type != LUA_TNIL && !is_list && s->strict)
        luaL_error(L, "lineage must be a list of types");
    if (count > LINEAGE)
        count = LINEAGE; /* no decision looks further */
    const char **lineage = mull__arena_take(L, s->arena, count, sizeof *lineage);
    for (size_t i = 0; i < count; i++) {
        const char *name = NULL;
        if (lua_rawgeti(L, at, (lua_Integer)i + 1) == LUA_TSTRING && lua_rawlen(L, -1) > 0)
            name = text(s, -1, "a type in lineage");
        else if (s->strict)
            luaL_error(L, "lineage must be a list of types");
        if (name)
            lineage[error->lineage_count++] = name;
        lua_pop(L, 1);
    }
    error->lineage = lineage;
    lua_pop(L, 1);
}

/* push_cause pushes the cause of the error on top, which a handler may give as a plain text as
 * well; 0: it has none, or, in a circle, one of those from `first` on. */
static int push_cause(source *s, int first)
{
    lua_State *L = s->L;
    int top = lua_gettop(L), last = top;
    if (!lua_istable(L, top))
        return 0;
    int type = raw_field(L, top, "cause");
    if (type == LUA_TSTRING && !s->strict)
        return 1;
    if (type != LUA_TNIL && type != LUA_TTABLE && s->strict)
        luaL_error(L, "cause must be an error");
    while (last >= first && !lua_rawequal(L, last, -1))
        last--;
    if (type == LUA_TTABLE && last < first)
        return 1;
    lua_pop(L, 1);
    return 0;
}

/* new_error makes an error of what is on top, with its type. */
static mull_error *new_error(source *s, int is_cause)
{
    mull_error *error = mull__arena_take(s->L, s->arena, 1, sizeof *error);
    *error = MULL_INIT(mull_error);
    if (lua_istable(s->L, -1))
        error->type = optional_text(s, lua_gettop(s->L), CAUSE_TEXT, "type");
    if (!error->type || !*error->type) {
        if (s->strict)
            luaL_error(s->L, "%s needs a type", is_cause ? "a cause" : "error");
        error->type = "Error";
    }
    return error;
}

static void read_texts(source *s, int index, size_t most, mull_error *error)
{
    if (lua_istable(s->L, index)) {
        error->message = optional_text(s, index, most, "message");
        error->stack = optional_text(s, index, most, "stack");
        read_lineage(s, index, error);
    } else {
        error->message = long_text(s, index, most, "cause");
    }
}

/* read_all_fields reads the fields of an error, and leaves room to the `below` causes below it. */
static void read_all_fields(source *s, int index, size_t below, mull_error *error)
{
    if (!lua_istable(s->L, index))
        return;
    size_t values = below * CAUSE_VALUES, bytes = below * CAUSE_BYTES;
    values = values < s->values ? values : 0;
    bytes = bytes < s->bytes ? bytes : 0;
    const path here = {.table = lua_topointer(s->L, index)};
    s->values -= values;
    s->bytes -= bytes;
    int are_whole;
    size_t keys = count_keys(s, index, &are_whole);
    error->fields = read_fields(s, index, keys, error_keys, &here, &error->field_count);
    s->values += values;
    s->bytes += bytes;
}

/* read_error reads an error and its causes; those below the sixteenth are never looked at. What
 * matters most comes first, before the room is used up: the types of all, then what they say. */
static const mull_error *read_error(source *s, int index)
{
    lua_State *L = s->L;
    mull_error *chain[CAUSES + 1];
    int first = lua_gettop(L) + 1, count = 0;
    luaL_checkstack(L, CAUSES + 16, NULL);
    lua_pushvalue(L, index);
    do {
        chain[count] = new_error(s, count > 0);
        if (count > 0)
            chain[count - 1]->cause = chain[count];
        count++;
    } while (count <= CAUSES && push_cause(s, first));
    for (int i = 0; i < count; i++)
        read_texts(s, first + i, i == 0 ? BYTES : CAUSE_TEXT, chain[i]);
    for (int i = 0; i < count; i++)
        read_all_fields(s, first + i, (size_t)(count - 1 - i), chain[i]);
    lua_settop(L, first - 1);
    return chain[0];
}

const mull_error *mull__read_error_value(lua_State *L, int index, mull__arena *arena,
                                         const char *stack)
{
    source s = of_error(L, arena, 0);
    index = lua_absindex(L, index);
    if (mull__is_error_value(L, index))
        return read_error(&s, index);
    mull_error *error = mull__arena_take(L, arena, 1, sizeof *error);
    *error = MULL_INIT(mull_error);
    error->type = "Error";
    if (stack) {
        lua_pushstring(L, stack);
        error->stack = long_text(&s, -1, BYTES, "stack");
        lua_pop(L, 1);
    }
    mull__error_value_text(L, index);
    error->message = long_text(&s, -1, BYTES, "message");
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
        luaL_error(L, "headers must be strings by name");
    size_t room = 0;
    for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
        if (++room > MULL__HEADERS_MAX)
            luaL_error(L, "a message can't have more than %d headers", (int)MULL__HEADERS_MAX);
    }
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

#define READ_NAME(kind, field, least) message->field = optional_text(s, index, SIZE_MAX, #field);

static void read_names(source *s, int index, mull_message *message)
{
    MULL__MESSAGE_FIELDS(READ_NAME)
    raw_field(s->L, index, "headers");
    read_headers(s, message);
    lua_pop(s->L, 1);
}

void mull__read_outgoing(lua_State *L, int first, mull__arena *arena, mull_message *message,
                         int64_t *delay_ms)
{
    static const char *const known[] = {"id", "type", "key", "headers", "delay", NULL};
    source s = of_message(L, arena);
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

static const char *read_text(source *s, int index, const char *field, int64_t least)
{
    const char *name = optional_text(s, index, SIZE_MAX, field);
    if (name && !*name && least > 0)
        luaL_error(s->L, "%s must not be empty", field);
    return name;
}

static int64_t read_integer(source *s, int index, const char *field, int64_t least)
{
    int64_t number = 0;
    int type = raw_field(s->L, index, field), is_whole = 0;
    if (type != LUA_TNIL) {
        number = type == LUA_TNUMBER ? lua_tointegerx(s->L, -1, &is_whole) : 0;
        if (!is_whole || number < least)
            luaL_error(s->L, "%s must be a whole number from %d", field, (int)least);
    }
    lua_pop(s->L, 1);
    return number;
}

/* push_part pushes a table in a field, whose keys are `known`; 0, and nil: there is none. */
static int push_part(lua_State *L, int index, const char *field, const char *const *known,
                     const char *keys)
{
    int type = raw_field(L, index, field);
    if (type == LUA_TTABLE)
        check_keys(L, -1, known, field);
    else if (type != LUA_TNIL)
        luaL_error(L, "%s must be none or have %s", field, keys);
    return type == LUA_TTABLE;
}

static void read_message(source *s, int index, mull_failure *failure)
{
    static const char *const known[] = {"id", "type", "key", "size", "headers", NULL};
    if (push_part(s->L, index, "message", known, "id, type, key, size or headers")) {
        int at = lua_gettop(s->L);
        mull_message *message = mull__arena_take(s->L, s->arena, 1, sizeof *message);
        *message = MULL_INIT(mull_message);
        read_names(s, at, message);
        message->body_size = (size_t)read_integer(s, at, "size", 0);
        failure->message = message;
    }
    lua_pop(s->L, 1);
}

static int is_denied(lua_State *L, const char *field)
{
    int type = raw_field(L, -1, field), is_allowed = lua_toboolean(L, -1);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "%s must be true or false", field);
    lua_pop(L, 1);
    return type == LUA_TBOOLEAN && !is_allowed;
}

static void read_abilities(lua_State *L, int index, mull_failure *failure)
{
    static const char *const known[] = {"retry", "delay", NULL};
    if (push_part(L, index, "can", known, "retry or delay"))
        failure->flags |= (is_denied(L, "retry") ? MULL_CANNOT_RETRY : 0u) |
                          (is_denied(L, "delay") ? MULL_CANNOT_DELAY : 0u);
    lua_pop(L, 1);
}

/* read_json puts the value of a JSON text in its place. No failure has room for so many values; as
 * empty tables they take some 30 MiB. */
static void read_json(lua_State *L, int index)
{
    enum { MOST_VALUES = 300000 };
    size_t size;
    const char *written = lua_tolstring(L, index, &size);
    mull__json_push(L, written, size, MOST_VALUES, 1);
    lua_replace(L, index);
    if (!lua_istable(L, index))
        luaL_error(L, "a failure must be an object");
}

#define KEY(kind, field, least)  #field,
#define READ(kind, field, least) failure->field = read_##kind(&s, index, #field, least);

void mull__read_failure(lua_State *L, int index, mull__arena *arena, mull_failure *failure)
{
    static const char *const known[] = {"error", MULL__FAILURE_FIELDS(KEY) "message", "can", NULL};
    source s = of_message(L, arena), error = of_error(L, arena, 1);
    index = lua_absindex(L, index);
    if (lua_type(L, index) == LUA_TSTRING)
        read_json(L, index);
    luaL_checktype(L, index, LUA_TTABLE);
    check_keys(L, index, known, "the failure");
    *failure = MULL_INIT(mull_failure);
    if (raw_field(L, index, "error") != LUA_TTABLE)
        luaL_error(L, "error must have a type");
    failure->error = read_error(&error, lua_gettop(L));
    lua_pop(L, 1);
    MULL__FAILURE_FIELDS(READ)
    read_message(&s, index, failure);
    read_abilities(L, index, failure);
}
