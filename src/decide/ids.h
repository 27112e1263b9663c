/* ids.h: the names that are interned in a policy, and what each means in each generation.
 *
 *   policy ───── ids: name -> id -> name           one list of types, one of sites; they only grow
 *                 └── resolved ids, of each generation that lives:
 *                       id of a type -> its number in the table
 *                       id of a site -> what is in force there, the hash of its consumer
 *
 * An id is resolved, in every generation that some decider may sit on, before anybody has it; a
 * generation resolves all ids before anybody sits on it. Both happen under one lock; who decides
 * takes none. */
#ifndef MULL__IDS_H
#define MULL__IDS_H

#include <pthread.h>

#include "base/append_array.h"
#include "base/list.h"
#include "policy/table_internal.h"

/* mull__id_key is what is interned: one name or two, and the bytes by which it is compared. */
typedef struct mull__id_key {
    const char *first, *second; /* a type's name; a site's consumer and transport, NULL or not */
    size_t size;
    uint64_t hash;
    char bytes[];
} mull__id_key;

/* mull__id_list is of types or of sites. */
typedef struct mull__id_list {
    mull__append_array keys; /* mull__id_key *, by id */
    uint32_t *slots;         /* ids by hash; 0: free */
    uint32_t slot_count, count;
} mull__id_list;

typedef struct mull__ids {
    mull_allocator allocator;
    pthread_mutex_t lock; /* for all but reading the arrays */
    mull__id_list types, sites;
    mull__list resolved;
} mull__ids;

typedef struct mull__resolved_ids {
    mull__link link;
    mull__ids *ids;
    const mull__table *table;
    mull__append_array types; /* uint32_t: a number in the table */
    mull__append_array sites; /* mull__site */
} mull__resolved_ids;

/* mull__ids_init is for what is zero so far, as is mull__resolved_init. MULL_ENOMEM. */
int mull__ids_init(mull__ids *ids, const mull_allocator *allocator);
void mull__ids_free(mull__ids *ids);

/* mull__resolved_init works out what every id means in a table, and goes on to do so for those that
 * are still to come, until mull__resolved_free, which is due after MULL_ENOMEM, too. */
int mull__resolved_init(mull__resolved_ids *resolved, mull__ids *ids, const mull__table *table);
void mull__resolved_free(mull__resolved_ids *resolved);

/* mull__ids_type is the name of a type, NULL where it has no such id; mull__ids_site gives those of
 * a site, or MULL_EINVAL. They live as long as the ids. */
const char *mull__ids_type(const mull__ids *ids, uint32_t id);
int mull__ids_site(const mull__ids *ids, uint32_t id, const char **consumer,
                   const char **transport);

/* ---- Names in the place of ids --------------------------------------------------------------- */

/* MULL__CAUSE_CYCLE_MAX is how many causes may lie between an error and itself for anybody to come
 * round: 16 count, and a function that is asked about one of them sees 16 of its own. */
enum { MULL__CAUSE_CYCLE_MAX = 32 };

/* mull__named is room for an error with the name of its type, and for causes that lead back to it.
 */
typedef struct mull__named {
    mull_error error;
    mull_error causes[MULL__CAUSE_CYCLE_MAX];
} mull__named;

/* mull__name_all puts names in the place of a failure's ids; what it points to then is in `room`.
 * MULL_EINVAL: an id was never given. */
int mull__name_all(mull_failure *failure, const mull__ids *ids, mull__named *room);

/* ---- Ids in a decision ----------------------------------------------------------------------- */

/* mull__resolved_type and mull__resolved_site are NULL for an id that was never given. */
static MULL__ALWAYS_INLINE const uint32_t *mull__resolved_type(const mull__resolved_ids *resolved,
                                                               uint32_t id)
{
    return mull__append_get(&resolved->types, sizeof(uint32_t), id);
}

static MULL__ALWAYS_INLINE const mull__site *mull__resolved_site(const mull__resolved_ids *resolved,
                                                                 uint32_t id)
{
    return mull__append_get(&resolved->sites, sizeof(mull__site), id);
}

#endif
