/* types.h: error types and their lineages. */
#ifndef MULL__TYPES_H
#define MULL__TYPES_H

#include "shape.h"

/* mull__lineage_words is how much scratch a lineage takes. */
size_t mull__lineage_words(const mull__table *table);

/* mull__types_add gives the number of a type, which it takes in under `name` where it is new; the
 * name is borrowed. Only while the table is built, which has room for it. */
uint32_t mull__types_add(mull__table *table, const char *name);

/* mull__types_ready gives each type its mark and its lineage, once all of them are there, and keeps
 * the short way from rules that something comes before: that the type, or an ancestor of it, may be
 * declared unrecoverable; and cause rules, before those for Error. */
void mull__types_ready(mull__table *table);

/* mull__lineage_climbed is mull__lineage_of for an error of a type that climbs, mull__lineage_sent
 * for one that comes with a lineage, or without a type. They give `room`. */
const mull__lineage *mull__lineage_climbed(const mull__table *table, const mull__type *type,
                                           uint64_t *scratch, mull__lineage *room);
const mull__lineage *mull__lineage_sent(const mull__table *table, const mull_error *error,
                                        uint64_t *scratch, mull__lineage *room);

/* mull__lineage_by_number finds the lineage of an error of a type that brings none along; it is the
 * table's, or in `room` with its types in `scratch`. */
static inline const mull__lineage *mull__lineage_by_number(const mull__table *table,
                                                           uint32_t number, uint64_t *scratch,
                                                           mull__lineage *room)
{
    const mull__type *type = &table->types[number == MULL__NONE ? MULL__ERROR_TYPE : number];
    return type->climbs ? mull__lineage_climbed(table, type, scratch, room) : &type->lineage;
}

/* mull__lineage_of is that of an error with a type. */
static inline const mull__lineage *mull__lineage_of(const mull__table *table,
                                                    const mull_error *error, uint64_t *scratch,
                                                    mull__lineage *room)
{
    if (error->lineage_count > 0)
        return mull__lineage_sent(table, error, scratch, room);
    uint64_t hash;
    uint32_t number = mull__names_look_up(&table->type_names, error->type, &hash);
    return mull__lineage_by_number(table, number, scratch, room);
}

#endif
