/* json.c: see json.h. */
#include "json.h"

#include "base/alloc.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

char *mull__headers_to_json(const mull_header *headers, size_t count)
{
    if (count == 0)
        return calloc(1, 1);
    json_t *object = json_object();
    if (!object)
        return NULL;
    char *text = NULL;
    for (size_t i = 0; i < count; i++)
        if (json_object_set_new(object, headers[i].name, json_string(headers[i].value)) != 0)
            goto out;
    text = json_dumps(object, JSON_COMPACT);
out:
    json_decref(object);
    return text;
}

void mull__json_free(char *text)
{
    free(text);
}

/* measure gives the bytes that an object's headers need, strings behind the array; 0: one of its
 * values is no string. */
static size_t measure(json_t *object)
{
    size_t bytes = 1 + json_object_size(object) * sizeof(mull_header);
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        if (!json_is_string(value))
            return 0;
        bytes += strlen(name) + json_string_length(value) + 2;
    }
    return bytes;
}

/* place copies a string to `*end` and moves that behind it. */
static const char *place(char **end, const char *text, size_t length)
{
    char *start = *end;
    memcpy(start, text, length);
    start[length] = 0;
    *end += length + 1;
    return start;
}

static int from_object(mull_header **out, size_t *count, const mull_allocator *allocator,
                       json_t *object)
{
    size_t bytes = json_is_object(object) ? measure(object) : 0;
    if (bytes == 0)
        return MULL_EINVAL;
    mull_header *headers = mull__alloc(allocator, bytes);
    if (!headers)
        return MULL_ENOMEM;
    char *end = (char *)(headers + json_object_size(object));
    size_t n = 0;
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        headers[n].name = place(&end, name, strlen(name));
        headers[n++].value = place(&end, json_string_value(value), json_string_length(value));
    }
    *out = headers;
    *count = n;
    return 0;
}

int mull__headers_from_json(mull_header **out, size_t *count, const mull_allocator *allocator,
                            const char *text)
{
    *out = NULL;
    *count = 0;
    if (!*text)
        return 0;
    json_error_t error;
    json_t *object = json_loads(text, 0, &error);
    if (!object && json_error_code(&error) == json_error_out_of_memory)
        return MULL_ENOMEM;
    int status = from_object(out, count, allocator, object);
    json_decref(object);
    return status;
}
