/* json.c: see json.h. */
#include "json.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <jansson.h>
#include <string.h>

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
