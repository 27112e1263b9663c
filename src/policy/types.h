/* types.h: error types and their lineages. */
#ifndef MULL__TYPES_H
#define MULL__TYPES_H

#include "shape.h"

/* mull__types_add gives the number of a type, which it takes in under `name` where it is new; the
 * name is borrowed. Only while the table is built, which has room for it. */
uint32_t mull__types_add(mull__table *table, const char *name);

/* mull__types_ready gives each type its mark, once all of them are there, and keeps the fast path
 * from rules that something comes before: that the type, or an ancestor of it, may be declared
 * unrecoverable; and cause rules, before those for Error. */
void mull__types_ready(mull__table *table);

/* mull__lineage_words is how much scratch a lineage takes. */
size_t mull__lineage_words(const mull__table *table);

/* mull__unrecoverable_names writes the names of the types that are declared unrecoverable for a
 * layer to the beginning of a lineage's scratch, each once, and says how many they are. */
size_t mull__unrecoverable_names(const mull__table *table, const mull__layer *layer,
                                 uint64_t *scratch);

/* mull__lineage_of_type is that of an error of a known type that comes without a lineage;
 * mull__lineage_sent is that of any error. Its types are in the scratch. */
mull__lineage mull__lineage_of_type(const mull__table *table, uint32_t type, uint64_t *scratch);
mull__lineage mull__lineage_sent(const mull__table *table, const mull_error *error,
                                 uint64_t *scratch);

#endif
