/* json.c: see json.h. The text is written twice by the same functions: first without memory, which
 * only counts, then into as much as was counted. */
#include "json.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <string.h>

typedef struct text {
    char *memory; /* NULL: only count */
    size_t size;
} text;

static void add(text *out, const char *bytes, size_t size)
{
    if (out->memory)
        memcpy(out->memory + out->size, bytes, size);
    out->size += size;
}

static void add_escaped(text *out, unsigned char c)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt",
                      hex[] = "0123456789ABCDEF";
    const char *found = strchr(named, c);
    if (found)
        add(out, (const char[]){'\\', letters[found - named]}, 2);
    else
        add(out, (const char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

static void add_string(text *out, const char *string)
{
    add(out, "\"", 1);
    const char *from = string, *at = string;
    for (; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        add(out, from, (size_t)(at - from));
        add_escaped(out, c);
        from = at + 1;
    }
    add(out, from, (size_t)(at - from));
    add(out, "\"", 1);
}

static void add_headers(text *out, const mull_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add(out, i == 0 ? "{" : ",", 1);
        add_string(out, headers[i].name);
        add(out, ":", 1);
        add_string(out, headers[i].value);
    }
    add(out, "}", 2); /* with its NUL */
}

int mull__headers_to_json(char **out, const mull_allocator *allocator, const mull_header *headers,
                          size_t count)
{
    *out = NULL;
    if (count == 0)
        return (*out = mull__strdup(allocator, "{}")) ? 0 : MULL_ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (!mull__utf8_valid(headers[i].name) || !mull__utf8_valid(headers[i].value))
            return MULL_EINVAL;
    text written = {0};
    add_headers(&written, headers, count);
    written.memory = mull__alloc(allocator, written.size);
    if (!written.memory)
        return MULL_ENOMEM;
    written.size = 0;
    add_headers(&written, headers, count);
    *out = written.memory;
    return 0;
}
