/* json_value.c: see json_value.h. */
#include "json_value.h"

#include "json_read.h"

#include <string.h>

/* What is larger is read by lua/values/from_lua.c, which says what an error may hold at most: these
 * are below its bounds. PENDING: items of lists and maps that aren't whole yet. */
enum { BYTES = 64 * 1024, VALUES = 2000, PENDING = 256, LEVELS = 12 };

/* maker has the items of the lists and maps that aren't whole yet, one behind the other. */
typedef struct maker {
    mull__arena *arena;
    mull_field pending[PENDING];
    const char *names[LEVELS + 1]; /* of each list or map, or of the value that comes next */
    size_t begins[LEVELS + 1];     /* where its items begin */
    size_t count, level;
} maker;

static int put(maker *m, const mull_value *value)
{
    if (m->count == PENDING)
        return MULL_EINVAL;
    m->pending[m->count++] = (mull_field){m->names[m->level], *value};
    return 0;
}

/* copy gives what a string or name says. */
static int copy(const maker *m, const mull__json_part *part, const char **out)
{
    char *made = mull__arena_zalloc(m->arena, part->size + 1, 1);
    size_t size = made ? mull__json_unescape(made, part) : 0;
    *out = made;
    return !made ? MULL_ENOMEM : strlen(made) == size ? 0 : MULL_EINVAL;
}

static int put_string(maker *m, const mull__json_part *part)
{
    mull_value value = {.kind = MULL_STRING};
    int status = copy(m, part, &value.as.string);
    return status == 0 ? put(m, &value) : status;
}

static int put_number(maker *m, const mull__json_part *part)
{
    enum { DIGITS = 18 }; /* always fit 64 bits */
    mull_value value = {.kind = MULL_INTEGER};
    size_t sign = *part->text == '-';
    if (part->size - sign > DIGITS)
        return MULL_EINVAL;
    for (size_t i = sign; i < part->size; i++) {
        if (part->text[i] < '0' || part->text[i] > '9')
            return MULL_EINVAL;
        value.as.integer = value.as.integer * 10 + (part->text[i] - '0');
    }
    if (sign)
        value.as.integer = -value.as.integer;
    return put(m, &value);
}

static int begin(maker *m)
{
    if (m->level == LEVELS)
        return MULL_EINVAL;
    m->begins[++m->level] = m->count;
    m->names[m->level] = NULL;
    return 0;
}

static int has_name_twice(const mull_field *fields, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(fields[i].name, fields[k].name) == 0)
                return 1;
    return 0;
}

static int end_list(maker *m)
{
    mull_field *from = &m->pending[m->begins[m->level]];
    mull_value list = {.kind = MULL_LIST, .count = m->count - m->begins[m->level]};
    mull_value *items = mull__arena_zalloc(m->arena, list.count, sizeof *items);
    if (!items)
        return MULL_ENOMEM;
    for (size_t i = 0; i < list.count; i++)
        items[i] = from[i].value;
    list.as.items = items;
    m->count -= list.count;
    m->level--;
    return put(m, &list);
}

static int end_map(maker *m)
{
    const mull_field *from = &m->pending[m->begins[m->level]];
    size_t count = m->count - m->begins[m->level];
    mull_value map = {.kind = MULL_MAP};
    mull_field *fields = mull__arena_zalloc(m->arena, count, sizeof *fields);
    if (!fields)
        return MULL_ENOMEM;
    if (has_name_twice(from, count))
        return MULL_EINVAL;
    for (size_t i = 0; i < count; i++)
        if (from[i].value.kind != MULL_NIL)
            fields[map.count++] = from[i];
    map.as.fields = fields;
    m->count -= count;
    m->level--;
    return put(m, &map);
}

static int take(void *data, const mull__json_part *part)
{
    maker *m = data;
    switch (part->kind) {
    case MULL__JSON_FALSE:
    case MULL__JSON_TRUE:
        return put(
            m, &(mull_value){.kind = MULL_BOOLEAN, .as.boolean = part->kind == MULL__JSON_TRUE});
    case MULL__JSON_NUMBER:
        return put_number(m, part);
    case MULL__JSON_STRING:
        return put_string(m, part);
    case MULL__JSON_NAME:
        return copy(m, part, &m->names[m->level]);
    case MULL__JSON_LIST:
    case MULL__JSON_MAP:
        return begin(m);
    case MULL__JSON_LIST_END:
        return end_list(m);
    case MULL__JSON_MAP_END:
        return end_map(m);
    default:
        return put(m, &(mull_value){.kind = MULL_NIL});
    }
}

int mull__json_value(mull_value *out, mull__arena *arena, const char *text, size_t size)
{
    char why[MULL__JSON_WHY];
    maker m;
    if (size > BYTES)
        return MULL_EINVAL;
    m.arena = arena;
    m.count = m.level = 0;
    m.names[0] = NULL;
    int status = mull__json_read(text, size, VALUES, take, &m, why);
    if (status == 0)
        *out = m.pending[0].value;
    return status;
}
