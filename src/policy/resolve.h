/* resolve.h: the first stage of a decision: what a failure's names, or ids, mean in a table: the
 * number of its error's type, and the settings in force where it failed. */
#ifndef MULL__RESOLVE_H
#define MULL__RESOLVE_H

#include "table_internal.h"

/* mull__target is what a failure is judged by besides its counters and its error's fields. */
typedef struct mull__target {
    uint32_t type; /* MULL__ERROR_TYPE for one that the table doesn't know */
    const mull__site *site;
} mull__target;

/* mull__type_find is the number of a type by its name, MULL__NONE where the table doesn't know it;
 * mull__type_number is MULL__ERROR_TYPE then. */
static inline uint32_t mull__type_find(const mull__table *table, const char *name)
{
    uint64_t hash;
    return mull__name_index_find(&table->type_names, name, &hash);
}

static inline uint32_t mull__type_number(const mull__table *table, const char *name)
{
    uint32_t number = mull__type_find(table, name);
    return number == MULL__NONE ? MULL__ERROR_TYPE : number;
}

/* mull__site_find is for a consumer on a transport; each may be NULL. */
void mull__site_find(mull__site *site, const mull__table *table, const char *consumer,
                     const char *transport);

/* mull__effective_settings_of is what is in force there. */
static inline mull__effective_settings
mull__effective_settings_of(const mull__table *table, const char *consumer, const char *transport)
{
    mull__site site;
    mull__site_find(&site, table, consumer, transport);
    return site.effective;
}

/* ---- Scopes ---------------------------------------------------------------------------------- */

/* mull__effective_settings_ready fills in what can be said of settings before a failure comes, and
 * makes scopes found by name, once all of them are there. MULL_ENOMEM. */
int mull__effective_settings_ready(mull__table *table);

/* mull__scope_of is the scope of a kind that a effective settings is made of, NULL where there is
 * none. */
const mull__scope *mull__scope_of(const mull__table *table,
                                  const mull__effective_settings *effective, mull__scope_kind kind);

/* mull__scope_that_sets is the nearest scope that sets a setting; NULL: none, so that its default
 * holds. Its place in that scope says where. */
const mull__scope *mull__scope_that_sets(const mull__table *table,
                                         const mull__effective_settings *effective,
                                         mull__setting setting);

/* mull__builtin_unrecoverable_applies: a message that couldn't be read is unrecoverable, because no
 * rule in force is written for MessageDeserializationError. */
int mull__builtin_unrecoverable_applies(const mull__effective_settings *effective);

/* ---- Lineages -------------------------------------------------------------------------------- */

/* mull__unrecoverable_names writes the names of the types that are declared unrecoverable for a
 * effective settings to the beginning of the scratch, each once, and says how many they are. */
size_t mull__unrecoverable_names(const mull__table *table,
                                 const mull__effective_settings *effective, uint64_t *scratch);

/* mull__lineage_of_type is that of an error of a known type that comes without a lineage;
 * mull__lineage_sent is that of any error. Its types are in the scratch. */
mull__lineage mull__lineage_of_type(const mull__table *table, uint32_t type, uint64_t *scratch);
mull__lineage mull__lineage_sent(const mull__table *table, const mull_error *error,
                                 uint64_t *scratch);

#endif
