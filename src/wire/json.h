/* json.h: headers to and from JSON: an object of strings. */
#ifndef MULL__JSON_H
#define MULL__JSON_H

#include "mulligan.h"

/* mull__headers_to_json writes headers as one JSON object, to be freed by mull__free; "" where
 * there are none. MULL_ENOMEM; MULL_EINVAL: a header that isn't UTF-8. */
int mull__headers_to_json(char **out, const mull_allocator *allocator, const mull_header *headers,
                          size_t count);

/* mull__headers_from_json reads what the former wrote into one block from the allocator: an array
 * with its strings behind it, to be freed by mull__free. MULL_ENOMEM; MULL_EINVAL: no object of
 * strings, or one with a NUL in a string. */
int mull__headers_from_json(mull_header **out, size_t *count, const mull_allocator *allocator,
                            const char *text);

#endif
