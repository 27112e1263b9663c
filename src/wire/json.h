/* json.h: headers to JSON: an object of strings. */
#ifndef MULL__JSON_H
#define MULL__JSON_H

#include "mulligan.h"

/* mull__headers_to_json writes headers as one JSON object, to be freed by mull__free.
 * MULL_ENOMEM; MULL_EINVAL: a header that isn't UTF-8. */
int mull__headers_to_json(char **out, const mull_allocator *allocator, const mull_header *headers,
                          size_t count);

#endif
