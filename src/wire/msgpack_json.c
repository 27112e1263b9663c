/* msgpack_json.c: see msgpack_json.h. Floats are written and read by C's library: the program never
 * leaves the locale "C". */
#include "msgpack_json.h"

#include "json_read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- To JSON --------------------------------------------------------------------------------- */

/* add_comma adds what stands before the item number `i`. */
static int add_comma(mull__json_text *out, size_t i)
{
    return i > 0 ? mull__json_add(out, ",") : 0;
}

static int add_list(mull__json_text *out, const mull_value *list)
{
    int status = mull__json_add(out, "[");
    for (size_t i = 0; status == 0 && i < list->count; i++) {
        status = add_comma(out, i);
        if (status == 0)
            status = mull__value_to_json(out, &list->as.items[i]);
    }
    return status == 0 ? mull__json_add(out, "]") : status;
}

static int add_map(mull__json_text *out, const mull_value *map)
{
    int status = mull__json_add(out, "{");
    for (size_t i = 0; status == 0 && i < map->count; i++) {
        status = add_comma(out, i);
        if (status == 0)
            status = mull__json_add_string(out, map->as.fields[i].name, ':');
        if (status == 0)
            status = mull__value_to_json(out, &map->as.fields[i].value);
    }
    return status == 0 ? mull__json_add(out, "}") : status;
}

/* add_string: what stands behind it is taken back, and a NUL put there. */
static int add_string(mull__json_text *out, const char *text)
{
    int status = mull__json_add_string(out, text, ' ');
    if (status == 0)
        out->memory[--out->size] = 0;
    return status;
}

/* add_number writes a float that stays one, in as few digits as read back to the same. */
static int add_number(mull__json_text *out, double number)
{
    enum { SURE = 15, ALL = 17 };
    char digits[40];
    if (!isfinite(number))
        return MULL_EINVAL;
    for (int count = SURE; count <= ALL; count++) {
        snprintf(digits, sizeof digits, "%.*g", count, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    if (!strpbrk(digits, ".e"))
        strcat(digits, ".0");
    return mull__json_add(out, digits);
}

int mull__value_to_json(mull__json_text *out, const mull_value *value)
{
    char digits[24];
    switch (value->kind) {
    case MULL_BOOLEAN:
        return mull__json_add(out, value->as.boolean ? "true" : "false");
    case MULL_INTEGER:
        snprintf(digits, sizeof digits, "%" PRId64, value->as.integer);
        return mull__json_add(out, digits);
    case MULL_NUMBER:
        return add_number(out, value->as.number);
    case MULL_STRING:
        return add_string(out, value->as.string);
    case MULL_LIST:
        return add_list(out, value);
    case MULL_MAP:
        return add_map(out, value);
    default:
        return mull__json_add(out, "null");
    }
}

/* ---- From JSON ------------------------------------------------------------------------------- */

/* maker has the lists and maps that aren't whole yet: where each begins, and its items so far. */
typedef struct maker {
    mull__msgpack *out;
    int level;
    size_t begun[MULL__JSON_LEVELS + 1];
    uint32_t counts[MULL__JSON_LEVELS + 1];
} maker;

/* put_string unescapes a text behind its own place, from where it is copied there. */
static void put_string(mull__msgpack *out, const mull__json_part *part)
{
    size_t behind = part->size + MULL__MSGPACK_HEAD;
    char *to = mull__msgpack_room(out, behind + part->size);
    if (!to)
        return;
    size_t size = mull__json_unescape(to + behind, part);
    out->size = (size_t)(mull__msgpack_put_string(to, to + behind, size) - out->memory);
}

/* put_number: the text of a number ends where another character stands. */
static void put_number(mull__msgpack *out, const mull__json_part *part)
{
    char *end;
    errno = 0;
    long long whole = strtoll(part->text, &end, 10);
    if (errno == 0 && end == part->text + part->size)
        mull__msgpack_integer(out, whole);
    else
        mull__msgpack_number(out, strtod(part->text, NULL));
}

static void begin(maker *m, int is_map)
{
    m->level++;
    m->begun[m->level] = mull__msgpack_begin(m->out, is_map);
    m->counts[m->level] = 0;
}

static void end(maker *m)
{
    mull__msgpack_end(m->out, m->begun[m->level], m->counts[m->level]);
    m->level--;
}

static int take(void *data, const mull__json_part *part)
{
    maker *m = data;
    if (part->kind == MULL__JSON_LIST_END || part->kind == MULL__JSON_MAP_END)
        end(m);
    else if (part->kind != MULL__JSON_NAME)
        m->counts[m->level]++;
    switch (part->kind) {
    case MULL__JSON_NULL:
        mull__msgpack_nil(m->out);
        break;
    case MULL__JSON_FALSE:
    case MULL__JSON_TRUE:
        mull__msgpack_flag(m->out, part->kind == MULL__JSON_TRUE);
        break;
    case MULL__JSON_NUMBER:
        put_number(m->out, part);
        break;
    case MULL__JSON_STRING:
    case MULL__JSON_NAME:
        put_string(m->out, part);
        break;
    case MULL__JSON_LIST:
    case MULL__JSON_MAP:
        begin(m, part->kind == MULL__JSON_MAP);
        break;
    default:
        break;
    }
    return m->out->status;
}

int mull__json_to_msgpack(mull__msgpack *out, const char *text, size_t size)
{
    char why[MULL__JSON_WHY];
    maker m = {.out = out};
    return mull__json_read(text, size, SIZE_MAX, take, &m, why);
}
