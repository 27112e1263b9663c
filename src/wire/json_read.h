/* json_read.h: JSON, read part by part. The reader takes no memory and makes no values: its
 * callback does. RFC 8259, so no comments, no comma too many, and UTF-8 only.
 *
 *   {"a": [1, null]}    MAP, NAME a, LIST, NUMBER 1, NULL, LIST_END, MAP_END
 */
#ifndef MULL__JSON_READ_H
#define MULL__JSON_READ_H

#include <stddef.h>

typedef enum mull__json_kind {
    MULL__JSON_NULL,
    MULL__JSON_FALSE,
    MULL__JSON_TRUE,
    MULL__JSON_NUMBER,
    MULL__JSON_STRING,
    MULL__JSON_NAME, /* of the value that follows; a string without a NUL */
    MULL__JSON_LIST,
    MULL__JSON_LIST_END,
    MULL__JSON_MAP,
    MULL__JSON_MAP_END
} mull__json_kind;

/* mull__json_part has, of a number, its text; of a string or name, what is between the quotes. */
typedef struct mull__json_part {
    mull__json_kind kind;
    const char *text;
    size_t size;
    int has_escapes;
} mull__json_part;

/* What is wrong with a part that the reader itself can't see. */
enum { MULL__JSON_TWICE = 1, MULL__JSON_TOO_LARGE };

/* mull__json_taker takes a part. Not 0 stops the reader, which then gives MULL_EINVAL for one of
 * the above, and anything else as it is. */
typedef int (*mull__json_taker)(void *data, const mull__json_part *part);

/* LEVELS: the deepest nesting of lists and maps. */
enum { MULL__JSON_LEVELS = 128, MULL__JSON_WHY = 160 };

/* mull__json_read reads a text of `size` bytes, behind which a NUL stands, of at most `most`
 * values, those in others included. MULL_EINVAL: it isn't such a text; `why` says in words what is
 * wrong, with line and column. */
int mull__json_read(const char *text, size_t size, size_t most, mull__json_taker take, void *data,
                    char why[MULL__JSON_WHY]);

/* mull__json_unescape writes what a string says, which is never longer than its part, and gives its
 * size. A NUL may be in it. */
size_t mull__json_unescape(char *to, const mull__json_part *part);

#endif
