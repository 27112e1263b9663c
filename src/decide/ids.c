/* ids.c: see ids.h. */
#include "policy.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/struct_compat.h"
#include "policy/resolve.h"

enum { IDS_MAX = 65535, NAME_BYTES_MAX = 65536, FIRST_SLOTS = 16 };

/* ---- Keys ------------------------------------------------------------------------------------ */

/* key_new copies a type's name, or those of a site, of which either may be NULL. Whether there is
 * a first one goes in front, so that no two keys have the same bytes. */
static mull__id_key *key_new(const mull_allocator *a, const char *first, const char *second)
{
    size_t first_size = first ? strlen(first) + 1 : 0;
    size_t second_size = second ? strlen(second) + 1 : 0;
    size_t size = 1 + first_size + second_size;
    mull__id_key *key = mull__alloc(a, sizeof *key + size);
    if (!key)
        return NULL;
    key->size = size;
    key->bytes[0] = first != NULL;
    key->first = first ? memcpy(key->bytes + 1, first, first_size) : NULL;
    key->second = second ? memcpy(key->bytes + 1 + first_size, second, second_size) : NULL;
    key->hash = mull__hash(key->bytes, size);
    return key;
}

static int same_key(const mull__id_key *a, const mull__id_key *b)
{
    return a->hash == b->hash && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static mull__id_key *key_of(const mull__id_list *list, uint32_t id)
{
    mull__id_key *const *key = mull__append_get(&list->keys, sizeof *key, id);
    return key ? *key : NULL;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void list_free(mull__id_list *list, const mull_allocator *a)
{
    for (uint32_t id = 1; id <= list->count; id++)
        mull__free(a, key_of(list, id));
    mull__append_free(&list->keys, a);
    mull__free(a, list->slots);
}

/* slot_of is where a key is, or is to be. */
static uint32_t *slot_of(const mull__id_list *list, uint32_t *slots, uint32_t slot_count,
                         const mull__id_key *key)
{
    uint32_t mask = slot_count - 1, at = (uint32_t)key->hash & mask;
    while (slots[at] && !same_key(key_of(list, slots[at]), key))
        at = (at + 1) & mask;
    return &slots[at];
}

static uint32_t find(const mull__id_list *list, const mull__id_key *key)
{
    return list->slot_count ? *slot_of(list, list->slots, list->slot_count, key) : 0;
}

/* list_reserve makes room for one more: at most half of the slots are taken. */
static int list_reserve(mull__id_list *list, const mull_allocator *a)
{
    if (list->count == IDS_MAX)
        return MULL_ETOOBIG;
    if (mull__append_reserve(&list->keys, a))
        return MULL_ENOMEM;
    if (2 * (list->count + 1) <= list->slot_count)
        return MULL_OK;
    uint32_t slot_count = list->slot_count ? 2 * list->slot_count : FIRST_SLOTS;
    uint32_t *slots = mull__zalloc(a, slot_count, sizeof *slots);
    if (!slots)
        return MULL_ENOMEM;
    for (uint32_t id = 1; id <= list->count; id++)
        *slot_of(list, slots, slot_count, key_of(list, id)) = id;
    mull__free(a, list->slots);
    list->slots = slots;
    list->slot_count = slot_count;
    return MULL_OK;
}

static uint32_t list_put(mull__id_list *list, mull__id_key *key)
{
    *slot_of(list, list->slots, list->slot_count, key) = ++list->count;
    mull__append(&list->keys, &key);
    return list->count;
}

const char *mull__ids_type(const mull__ids *ids, uint32_t id)
{
    const mull__id_key *key = key_of(&ids->types, id);
    return key ? key->first : NULL;
}

int mull__ids_site(const mull__ids *ids, uint32_t id, const char **consumer, const char **transport)
{
    const mull__id_key *key = key_of(&ids->sites, id);
    if (!key)
        return MULL_EINVAL;
    *consumer = key->first;
    *transport = key->second;
    return MULL_OK;
}

/* ---- What ids mean --------------------------------------------------------------------------- */

static mull__append_array *array_for(mull__resolved_ids *r, const mull__id_list *list)
{
    return list == &r->ids->types ? &r->types : &r->sites;
}

/* resolve adds what a key of a list means, for which there is room. */
static void resolve(mull__resolved_ids *r, const mull__id_list *list, const mull__id_key *key)
{
    if (list == &r->ids->types) {
        uint32_t type = mull__type_number(r->table, key->first);
        mull__append(&r->types, &type);
    } else {
        mull__site site;
        mull__site_find(&site, r->table, key->first, key->second);
        mull__append(&r->sites, &site);
    }
}

static int resolve_all(mull__resolved_ids *r, const mull__id_list *list)
{
    for (uint32_t id = 1; id <= list->count; id++) {
        if (mull__append_reserve(array_for(r, list), &r->ids->allocator))
            return MULL_ENOMEM;
        resolve(r, list, key_of(list, id));
    }
    return MULL_OK;
}

int mull__resolved_init(mull__resolved_ids *resolved, mull__ids *ids, const mull__table *table)
{
    resolved->ids = ids;
    resolved->table = table;
    mull__append_init(&resolved->types, sizeof(uint32_t));
    mull__append_init(&resolved->sites, sizeof(mull__site));
    pthread_mutex_lock(&ids->lock);
    int status = resolve_all(resolved, &ids->types);
    if (status == MULL_OK)
        status = resolve_all(resolved, &ids->sites);
    if (status == MULL_OK)
        mull__list_push(&ids->resolved, &resolved->link);
    pthread_mutex_unlock(&ids->lock);
    return status;
}

void mull__resolved_free(mull__resolved_ids *resolved)
{
    pthread_mutex_lock(&resolved->ids->lock);
    mull__list_remove(&resolved->ids->resolved, &resolved->link);
    pthread_mutex_unlock(&resolved->ids->lock);
    mull__append_free(&resolved->types, &resolved->ids->allocator);
    mull__append_free(&resolved->sites, &resolved->ids->allocator);
}

/* ---- Ids ------------------------------------------------------------------------------------- */

int mull__ids_init(mull__ids *ids, const mull_allocator *allocator)
{
    ids->allocator = *allocator;
    mull__append_init(&ids->types.keys, sizeof(mull__id_key *));
    mull__append_init(&ids->sites.keys, sizeof(mull__id_key *));
    mull__list_init(&ids->resolved);
    return pthread_mutex_init(&ids->lock, NULL) ? MULL_ENOMEM : MULL_OK;
}

void mull__ids_free(mull__ids *ids)
{
    list_free(&ids->types, &ids->allocator);
    list_free(&ids->sites, &ids->allocator);
    pthread_mutex_destroy(&ids->lock);
}

/* reserve makes room for one more in a list and in every generation. */
static int reserve(mull__ids *ids, mull__id_list *list)
{
    int status = list_reserve(list, &ids->allocator);
    for (mull__link *at = mull__list_first(&ids->resolved); at && !status;
         at = mull__list_after(&ids->resolved, at)) {
        mull__resolved_ids *r = MULL__ENTRY(at, mull__resolved_ids, link);
        status = mull__append_reserve(array_for(r, list), &ids->allocator);
    }
    return status;
}

/* put adds a key for which there is room. Whoever finds its id finds what it means. */
static uint32_t put(mull__ids *ids, mull__id_list *list, mull__id_key *key)
{
    for (mull__link *at = mull__list_first(&ids->resolved); at;
         at = mull__list_after(&ids->resolved, at))
        resolve(MULL__ENTRY(at, mull__resolved_ids, link), list, key);
    return list_put(list, key);
}

static int is_too_long(const char *name)
{
    return name && strnlen(name, NAME_BYTES_MAX + 1) > NAME_BYTES_MAX;
}

/* add gives the id of a type's name, or of a site's two, new or not. */
static int add(mull__ids *ids, mull__id_list *list, uint32_t *out, const char *first,
               const char *second)
{
    if (is_too_long(first) || is_too_long(second))
        return MULL_ETOOBIG;
    mull__id_key *key = key_new(&ids->allocator, first, second);
    if (!key)
        return MULL_ENOMEM;
    pthread_mutex_lock(&ids->lock);
    *out = find(list, key);
    int is_new = *out == 0, status = is_new ? reserve(ids, list) : MULL_OK;
    if (is_new && status == MULL_OK)
        *out = put(ids, list, key);
    pthread_mutex_unlock(&ids->lock);
    if (!is_new || status)
        mull__free(&ids->allocator, key);
    return status;
}

int mull_type_intern(mull_type *out, mull_policy *policy, const char *name)
{
    if (!out)
        return MULL_EINVAL;
    *out = 0;
    if (!policy || !name || !*name)
        return MULL_EINVAL;
    return add(&policy->ids, &policy->ids.types, out, name, NULL);
}

int mull_site_intern(mull_site *out, mull_policy *policy, const char *consumer,
                     const char *transport)
{
    if (!out)
        return MULL_EINVAL;
    *out = 0;
    return policy ? add(&policy->ids, &policy->ids.sites, out, consumer, transport) : MULL_EINVAL;
}

/* ---- Names in the place of ids --------------------------------------------------------------- */

/* leads_back: an error is a cause of its own. */
static int leads_back(const mull_error *error)
{
    const mull_error *cause = mull__cause(error);
    for (int i = 0; i < MULL__CAUSE_CYCLE_MAX && cause && cause != error; i++)
        cause = mull__cause(cause);
    return cause == error;
}

/* lead_back copies the causes on the way from an error to itself, so that they come round to its
 * copy, which has its name. */
static void lead_back(mull__named *room, const mull_error *error)
{
    mull_error *last = &room->error;
    for (int i = 0; last->cause != error; i++) {
        mull__struct_copy_in(&room->causes[i], sizeof *room->causes, MULL__ERROR_LEAST,
                             last->cause);
        last->cause = &room->causes[i];
        last = &room->causes[i];
    }
    last->cause = &room->error;
}

static int name_type(mull_failure *failure, const mull__ids *ids, mull__named *room)
{
    const mull_error *given = failure->error;
    if (!mull__struct_copy_in(&room->error, sizeof room->error, MULL__ERROR_LEAST, given))
        room->error = MULL_INIT(mull_error);
    else if (leads_back(given))
        lead_back(room, given);
    room->error.type = mull__ids_type(ids, failure->type);
    failure->error = &room->error;
    return room->error.type ? MULL_OK : MULL_EINVAL;
}

int mull__name_all(mull_failure *failure, const mull__ids *ids, mull__named *room)
{
    if (failure->type && name_type(failure, ids, room))
        return MULL_EINVAL;
    if (failure->site &&
        mull__ids_site(ids, failure->site, &failure->consumer, &failure->transport))
        return MULL_EINVAL;
    failure->type = failure->site = 0;
    return MULL_OK;
}
