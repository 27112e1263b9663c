/* types.h: error types and their lineages. */
#ifndef MULL__TYPES_H
#define MULL__TYPES_H

#include "shape.h"

/* mull__lineage is an error's effective lineage, nearest first, without Error, which always comes
 * last, and without types that the table doesn't know, for which it has no rules. */
typedef struct mull__lineage {
    const uint64_t *types;
    size_t count;
    mull__mark mark; /* MULL__UNRECOVERABLE where one of them has it, or Error */
} mull__lineage;

/* mull__lineage_words is how much scratch a lineage takes. */
size_t mull__lineage_words(const mull__table *table);

/* mull__lineage_of finds an error's lineage, in `scratch` or in the table, where it lives. */
static inline mull__lineage mull__lineage_of(const mull__table *table, const mull_error *error,
                                             uint64_t *scratch);

/* mull__types_add gives the number of a type, which it takes in under `name` where it is new; the
 * name is borrowed. Only while the table is built, which has room for it. */
uint32_t mull__types_add(mull__table *table, const char *name);

/* mull__lineage_climbed is mull__lineage_of for an error of a type that has a parent, and
 * mull__lineage_sent for one that comes with a lineage, or without a type. */
mull__lineage mull__lineage_climbed(const mull__table *table, const mull__type *type,
                                    uint64_t *scratch);
mull__lineage mull__lineage_sent(const mull__table *table, const mull_error *error,
                                 uint64_t *scratch);

static inline mull__lineage mull__lineage_of(const mull__table *table, const mull_error *error,
                                             uint64_t *scratch)
{
    if (error->lineage_count > 0)
        return mull__lineage_sent(table, error, scratch);
    uint64_t hash;
    uint32_t number = mull__names_look_up(&table->type_names, error->type, &hash);
    if (number == MULL__NONE || number == MULL__ERROR_TYPE)
        return (mull__lineage){NULL, 0, table->types[MULL__ERROR_TYPE].mark};
    const mull__type *type = &table->types[number];
    if (type->parent == MULL__ERROR_TYPE)
        return (mull__lineage){&type->number, 1, type->mark};
    return mull__lineage_climbed(table, type, scratch);
}

#endif
