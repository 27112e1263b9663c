/* types.h: error types and their lineages. */
#ifndef MULL__TYPES_H
#define MULL__TYPES_H

#include "shape.h"

/* mull__lineage is an error's effective lineage, nearest first, without Error, which always comes
 * last, and without types that the table doesn't know, for which it has no rules. */
typedef struct mull__lineage {
    const uint64_t *types;
    size_t count;
} mull__lineage;

/* mull__lineage_words is how much scratch a lineage takes. */
size_t mull__lineage_words(const mull__table *table);

/* mull__lineage_of finds an error's lineage, in `scratch`, which it lives in. */
mull__lineage mull__lineage_of(const mull__table *table, const mull_error *error,
                               uint64_t *scratch);

/* mull__types_add gives the number of a type, which it takes in under `name` where it is new; the
 * name is borrowed. Only while the table is built, which has room for it. */
uint32_t mull__types_add(mull__table *table, const char *name);

#endif
