/* json_tree.h: any JSON text as a tree to walk, by jansson. Strings in it may hold NULs. */
#ifndef MULL__JSON_TREE_H
#define MULL__JSON_TREE_H

#include "mulligan.h"

/* mull__json is a value of the tree; the tree owns it. */
typedef struct mull__json mull__json;

/* MULL__JSON_UNIQUE: a map with a name twice is refused. Without it the last one counts. */
enum { MULL__JSON_UNIQUE = 1 };

/* mull__json_parse gives the tree's root, to be freed by mull__json_drop; NULL: no JSON, or out of
 * memory, with where and why, in UTF-8, in `why`. A whole number that doesn't fit 64 bits is a
 * MULL_NUMBER. `flags` are of the above. */
mull__json *mull__json_parse(const char *text, size_t size, int flags, char *why, size_t why_size);

/* mull__json_weight gives how many bytes mull__json_parse takes for this text: never fewer than it
 * does, and about twice as many. A tree is up to 80 times as large as its text. */
size_t mull__json_weight(const char *text, size_t size);
void mull__json_drop(mull__json *root);

/* mull__json_view is what a value is: `text` of `size` bytes for a string, `size` items or members
 * for a list or map. */
typedef struct mull__json_view {
    mull_kind kind;
    int boolean;
    int64_t integer;
    double number;
    const char *text;
    size_t size;
} mull__json_view;

void mull__json_look(const mull__json *value, mull__json_view *view);

/* mull__json_item gives an item of a list, from 0. */
const mull__json *mull__json_item(const mull__json *list, size_t index);

/* mull__json_member gives the member after the one at `*place` (NULL: the first) with its name;
 * NULL behind the last. */
const mull__json *mull__json_member(const mull__json *map, void **place, const char **name,
                                    size_t *name_size);

#endif
