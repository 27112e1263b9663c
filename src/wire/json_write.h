/* json_write.h: writes JSON. */
#ifndef MULL__JSON_WRITE_H
#define MULL__JSON_WRITE_H

#include "mulligan.h"

/* mull__json_text grows as it is written; begun zeroed but for its allocator. `memory` is freed by
 * mull__free. */
typedef struct mull__json_text {
    const mull_allocator *allocator;
    char *memory;
    size_t size, room;
} mull__json_text;

/* mull__json_add adds JSON as it is, and a NUL that isn't counted. MULL_ENOMEM. */
int mull__json_add(mull__json_text *out, const char *json);

/* mull__json_add_string adds a string in quotes, and `behind`; no NUL follows. MULL_ENOMEM;
 * MULL_EINVAL: it isn't UTF-8. */
int mull__json_add_string(mull__json_text *out, const char *string, char behind);

#endif
