/* json.c: see json.h. jansson writes; it doesn't read, since where it finds no memory for a long
 * string it reads on behind the end of what it has. Reading needs one block, and nothing else. */
#include "json.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <jansson.h>
#include <string.h>

/* ---- Writing --------------------------------------------------------------------------------- */

static int dump(char **out, const mull_allocator *allocator, const json_t *object)
{
    size_t size = json_dumpb(object, NULL, 0, JSON_COMPACT);
    char *text = size > 0 ? mull__alloc(allocator, size + 1) : NULL;
    if (!text || json_dumpb(object, text, size, JSON_COMPACT) != size) {
        mull__free(allocator, text);
        return MULL_ENOMEM;
    }
    text[size] = 0;
    *out = text;
    return 0;
}

int mull__headers_to_json(char **out, const mull_allocator *allocator, const mull_header *headers,
                          size_t count)
{
    *out = NULL;
    if (count == 0)
        return (*out = mull__strdup(allocator, "")) ? 0 : MULL_ENOMEM;
    json_t *object = json_object();
    int status = object ? 0 : MULL_ENOMEM;
    for (size_t i = 0; i < count && status == 0; i++) {
        if (!mull__utf8_valid(headers[i].name) || !mull__utf8_valid(headers[i].value))
            status = MULL_EINVAL;
        else if (json_object_set_new(object, headers[i].name, json_string(headers[i].value)) != 0)
            status = MULL_ENOMEM;
    }
    if (status == 0)
        status = dump(out, allocator, object);
    json_decref(object);
    return status;
}

/* ---- Reading: twice, first without memory, which only counts --------------------------------- */

typedef struct reading {
    const char *at;
    char *strings; /* NULL: only count */
    size_t used;
} reading;

static void put(reading *r, uint32_t byte)
{
    if (r->strings)
        r->strings[r->used] = (char)(unsigned char)byte;
    r->used++;
}

static void put_point(reading *r, uint32_t point)
{
    if (point < 0x80) {
        put(r, point);
        return;
    }
    if (point < 0x800) {
        put(r, 0xC0 | point >> 6);
    } else if (point < 0x10000) {
        put(r, 0xE0 | point >> 12);
        put(r, 0x80 | (point >> 6 & 0x3F));
    } else {
        put(r, 0xF0 | point >> 18);
        put(r, 0x80 | (point >> 12 & 0x3F));
        put(r, 0x80 | (point >> 6 & 0x3F));
    }
    put(r, 0x80 | (point & 0x3F));
}

/* take_unit takes the four digits of an escape; 0: they aren't, or they are those of a NUL. */
static uint32_t take_unit(reading *r)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const char *digit = *r->at ? strchr(digits, *r->at) : NULL;
        if (!digit)
            return 0;
        unit = unit << 4 | ((uint32_t)(digit - digits) & 15);
    }
    return unit;
}

/* take_point takes the rest of an escape of a code point: one unit, or two for those from 0x10000
 * on, where the second stands in an escape of its own. */
static int take_point(reading *r)
{
    uint32_t point = take_unit(r);
    if (point >= 0xD800 && point < 0xDC00) {
        if (r->at[0] != '\\' || r->at[1] != 'u')
            return 0;
        r->at += 2;
        uint32_t low = take_unit(r);
        if (low < 0xDC00 || low > 0xDFFF)
            return 0;
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    } else if (point == 0 || (point >= 0xDC00 && point <= 0xDFFF)) {
        return 0;
    }
    put_point(r, point);
    return 1;
}

static int take_escape(reading *r)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char name = *r->at;
    if (!name)
        return 0;
    r->at++;
    if (name == 'u')
        return take_point(r);
    const char *found = strchr(names, name);
    if (found)
        put(r, (unsigned char)meant[found - names]);
    return found != NULL;
}

/* take takes a mark, with the space before it. */
static int take(reading *r, char mark)
{
    r->at += strspn(r->at, " \t\r\n");
    if (*r->at != mark)
        return 0;
    r->at += mark != 0;
    return 1;
}

/* take_string gives where it begins among the strings. */
static int take_string(reading *r, size_t *start)
{
    *start = r->used;
    if (!take(r, '"'))
        return 0;
    while (*r->at != '"') {
        if ((unsigned char)*r->at < 0x20)
            return 0;
        if (*r->at != '\\')
            put(r, (unsigned char)*r->at++);
        else if (r->at++, !take_escape(r))
            return 0;
    }
    r->at++;
    put(r, 0);
    return 1;
}

static int take_object(reading *r, mull_header *headers, size_t *count)
{
    *count = 0;
    if (!take(r, '{'))
        return 0;
    if (take(r, '}'))
        return take(r, 0);
    do {
        size_t name, value;
        if (!take_string(r, &name) || !take(r, ':') || !take_string(r, &value))
            return 0;
        if (headers)
            headers[*count] = (mull_header){r->strings + name, r->strings + value};
        ++*count;
    } while (take(r, ','));
    return take(r, '}') && take(r, 0);
}

int mull__headers_from_json(mull_header **out, size_t *count, const mull_allocator *allocator,
                            const char *text)
{
    *out = NULL;
    *count = 0;
    if (!*text)
        return 0;
    reading counted = {.at = text};
    size_t headers;
    if (!mull__utf8_valid(text) || !take_object(&counted, NULL, &headers))
        return MULL_EINVAL;
    mull_header *block = mull__alloc(allocator, headers * sizeof *block + counted.used);
    if (!block)
        return MULL_ENOMEM;
    reading r = {.at = text, .strings = (char *)(block + headers)};
    take_object(&r, block, count);
    *out = block;
    return 0;
}
