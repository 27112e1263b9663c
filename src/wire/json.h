/* json.h: JSON to and from errors, failures, verdicts and headers, by jansson. */
#ifndef MULL__JSON_H
#define MULL__JSON_H

#include "mulligan.h"

/* mull__headers_to_json writes headers as one JSON object in a malloc'ed string (free it with
 * mull__json_free); "" where there are none; NULL: out of memory or a header that isn't UTF-8. */
char *mull__headers_to_json(const mull_header *headers, size_t count);
void mull__json_free(char *text);

/* mull__headers_from_json reads what the former wrote into one block from the allocator: an array
 * with its strings behind it, to be freed by mull__free. MULL_EINVAL: no object of strings. */
int mull__headers_from_json(mull_header **out, size_t *count, const mull_allocator *allocator,
                            const char *text);

#endif
