/* ids.h: the names that are interned in a policy, and what each means in each generation.
 *
 *   holder ───── ids: name -> id -> name           one list of types, one of sites; they only grow
 *                 └── meanings, of each generation that lives:
 *                       id of a type -> its number in the table
 *                       id of a site -> what is in force there, the hash of its consumer
 *
 * An id gets its meanings, in every generation that some decider may sit on, before anybody has it;
 * a generation gets those of all ids before anybody sits on it. Both happen under one lock; who
 * decides takes none. */
#ifndef MULL__IDS_H
#define MULL__IDS_H

#include <pthread.h>

#include "base/list.h"
#include "base/rack.h"
#include "policy/shape.h"

/* mull__id_key is a name as it is compared. */
typedef struct mull__id_key {
    size_t size;
    uint64_t hash;
    char bytes[];
} mull__id_key;

/* mull__id_list is of types, whose keys are their names, or of sites; see site_key in ids.c. */
typedef struct mull__id_list {
    mull__rack keys; /* mull__id_key *, by id */
    uint32_t *slots; /* ids by hash; 0: free */
    uint32_t slot_count, count;
} mull__id_list;

typedef struct mull__ids {
    mull_allocator allocator;
    pthread_mutex_t lock; /* for all but reading the racks */
    mull__id_list types, sites;
    mull__list meanings;
} mull__ids;

typedef struct mull__meanings {
    mull__link link;
    mull__ids *ids;
    const mull__table *table;
    mull__rack types;              /* uint32_t: a number in the table, or MULL__NONE */
    mull__rack sites;              /* mull__site */
    struct mull__id_layer *layers; /* of sites for which the table has none */
    /* What is to be put next, while an id is added. */
    uint32_t type;
    mull__site site;
    struct mull__id_layer *fresh;
} mull__meanings;

/* mull__ids_init: MULL_ENOMEM. */
int mull__ids_init(mull__ids *ids, const mull_allocator *allocator);
void mull__ids_free(mull__ids *ids);

/* mull__meanings_init works out what every id means in a table, and goes on to do so for those that
 * are still to come, until mull__meanings_free. MULL_ENOMEM, and nothing is left to free. */
int mull__meanings_init(mull__meanings *meanings, mull__ids *ids, const mull__table *table);
void mull__meanings_free(mull__meanings *meanings);

/* mull__ids_add_type and mull__ids_add_site give a name's id, new or not: as mull_type_intern. */
int mull__ids_add_type(mull__ids *ids, uint32_t *out, const char *name);
int mull__ids_add_site(mull__ids *ids, uint32_t *out, const char *consumer, const char *transport);

/* mull__ids_type is the name of a type, NULL where it has no such id; mull__ids_site gives those of
 * a site, or MULL_EINVAL. They live as long as the ids. */
const char *mull__ids_type(const mull__ids *ids, uint32_t id);
int mull__ids_site(const mull__ids *ids, uint32_t id, const char **consumer,
                   const char **transport);

/* mull__meaning_of_type and mull__meaning_of_site are NULL for an id that was never given. */
static MULL__IN_PLACE const uint32_t *mull__meaning_of_type(const mull__meanings *meanings,
                                                            uint32_t id)
{
    return mull__rack_get(&meanings->types, sizeof(uint32_t), id);
}

static MULL__IN_PLACE const mull__site *mull__meaning_of_site(const mull__meanings *meanings,
                                                              uint32_t id)
{
    return mull__rack_get(&meanings->sites, sizeof(mull__site), id);
}

#endif
