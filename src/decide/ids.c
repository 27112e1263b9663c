/* ids.c: see ids.h. */
#include "ids.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { IDS_MAX = 65535, NAME_BYTES_MAX = 65536, FIRST_SLOTS = 16 };

/* ---- Keys ------------------------------------------------------------------------------------ */

static mull__id_key *key_new(const mull_allocator *a, size_t size)
{
    mull__id_key *key = mull__alloc(a, sizeof *key + size);
    if (key)
        key->size = size;
    return key;
}

static int same_key(const mull__id_key *a, const mull__id_key *b)
{
    return a->hash == b->hash && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static const mull__id_key *key_of(const mull__id_list *list, uint32_t id)
{
    mull__id_key *const *key = mull__rack_get(&list->keys, sizeof *key, id);
    return key ? *key : NULL;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void list_init(mull__id_list *list)
{
    list->slots = NULL;
    list->slot_count = list->count = 0;
    mull__rack_init(&list->keys, sizeof(mull__id_key *));
}

static void list_free(mull__id_list *list, const mull_allocator *a)
{
    for (uint32_t id = 1; id <= list->count; id++) {
        mull__id_key *const *key = mull__rack_get(&list->keys, sizeof *key, id);
        mull__free(a, *key);
    }
    mull__rack_free(&list->keys, a);
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
    if (mull__rack_reserve(&list->keys, a))
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
    mull__rack_put(&list->keys, &key);
    return list->count;
}

/* ---- Types and sites ------------------------------------------------------------------------- */

/* type_key: a name with its NUL. */
static mull__id_key *type_key(const mull_allocator *a, const char *name)
{
    size_t size = strlen(name) + 1;
    mull__id_key *key = key_new(a, size);
    if (key)
        memcpy(key->bytes, name, size);
    return key;
}

const char *mull__ids_type(const mull__ids *ids, uint32_t id)
{
    const mull__id_key *key = key_of(&ids->types, id);
    return key ? key->bytes : NULL;
}

/* site_key: which of the two there are, and both, each with its NUL. */
enum { HAS_CONSUMER = 1, HAS_TRANSPORT = 2 };

static mull__id_key *site_key(const mull_allocator *a, const char *consumer, const char *transport)
{
    char which = (char)((consumer ? HAS_CONSUMER : 0) | (transport ? HAS_TRANSPORT : 0));
    const char *first = consumer ? consumer : "", *second = transport ? transport : "";
    size_t first_size = strlen(first) + 1, second_size = strlen(second) + 1;
    mull__id_key *key = key_new(a, 1 + first_size + second_size);
    if (key) {
        key->bytes[0] = which;
        memcpy(key->bytes + 1, first, first_size);
        memcpy(key->bytes + 1 + first_size, second, second_size);
    }
    return key;
}

static void site_names(const mull__id_key *key, const char **consumer, const char **transport)
{
    const char *first = key->bytes + 1;
    *consumer = key->bytes[0] & HAS_CONSUMER ? first : NULL;
    *transport = key->bytes[0] & HAS_TRANSPORT ? first + strlen(first) + 1 : NULL;
}

int mull__ids_site(const mull__ids *ids, uint32_t id, const char **consumer, const char **transport)
{
    const mull__id_key *key = key_of(&ids->sites, id);
    if (!key)
        return MULL_EINVAL;
    site_names(key, consumer, transport);
    return MULL_OK;
}

/* ---- Meanings -------------------------------------------------------------------------------- */

/* mull__id_layer is what is in force at a site of a table that isn't laid out for all. */
struct mull__id_layer {
    struct mull__id_layer *next;
    mull__layer layer;
};

/* mean_site finds what is in force at a site; a layer put together for it waits in `fresh`. */
static int mean_site(mull__meanings *m, const mull__id_key *key)
{
    const char *consumer, *transport;
    site_names(key, &consumer, &transport);
    mull__layer room;
    m->site = mull__site_of(m->table, consumer, transport, &room);
    if (m->site.layer == &room) {
        m->fresh = mull__alloc(&m->ids->allocator, sizeof *m->fresh);
        if (!m->fresh)
            return MULL_ENOMEM;
        *m->fresh = (struct mull__id_layer){m->layers, room};
        m->site.layer = &m->fresh->layer;
    }
    return mull__rack_reserve(&m->sites, &m->ids->allocator);
}

/* mean finds what a key of a list means, and makes sure that it can be put. */
static int mean(mull__meanings *m, const mull__id_list *list, const mull__id_key *key)
{
    if (list == &m->ids->sites)
        return mean_site(m, key);
    uint64_t hash;
    m->type = mull__names_look_up(&m->table->type_names, key->bytes, &hash);
    return mull__rack_reserve(&m->types, &m->ids->allocator);
}

static void put(mull__meanings *m, const mull__id_list *list)
{
    if (list == &m->ids->types) {
        mull__rack_put(&m->types, &m->type);
        return;
    }
    mull__rack_put(&m->sites, &m->site);
    if (m->fresh)
        m->layers = m->fresh;
    m->fresh = NULL;
}

static void forget(mull__meanings *m)
{
    mull__free(&m->ids->allocator, m->fresh);
    m->fresh = NULL;
}

static int mean_all(mull__meanings *m, const mull__id_list *list)
{
    for (uint32_t id = 1; id <= list->count; id++) {
        if (mean(m, list, key_of(list, id)))
            return MULL_ENOMEM;
        put(m, list);
    }
    return MULL_OK;
}

static void free_all(mull__meanings *m)
{
    const mull_allocator *a = &m->ids->allocator;
    forget(m);
    mull__rack_free(&m->types, a);
    mull__rack_free(&m->sites, a);
    struct mull__id_layer *next;
    for (struct mull__id_layer *layer = m->layers; layer; layer = next) {
        next = layer->next;
        mull__free(a, layer);
    }
}

int mull__meanings_init(mull__meanings *meanings, mull__ids *ids, const mull__table *table)
{
    memset(&meanings->link, 0, sizeof meanings->link);
    meanings->ids = ids;
    meanings->table = table;
    meanings->layers = meanings->fresh = NULL;
    mull__rack_init(&meanings->types, sizeof(uint32_t));
    mull__rack_init(&meanings->sites, sizeof(mull__site));
    pthread_mutex_lock(&ids->lock);
    int status = mean_all(meanings, &ids->types);
    if (status == MULL_OK)
        status = mean_all(meanings, &ids->sites);
    if (status == MULL_OK)
        mull__list_push(&ids->meanings, &meanings->link);
    pthread_mutex_unlock(&ids->lock);
    if (status)
        free_all(meanings);
    return status;
}

void mull__meanings_free(mull__meanings *meanings)
{
    pthread_mutex_lock(&meanings->ids->lock);
    mull__list_remove(&meanings->ids->meanings, &meanings->link);
    pthread_mutex_unlock(&meanings->ids->lock);
    free_all(meanings);
}

/* ---- Ids ------------------------------------------------------------------------------------- */

int mull__ids_init(mull__ids *ids, const mull_allocator *allocator)
{
    ids->allocator = *allocator;
    list_init(&ids->types);
    list_init(&ids->sites);
    mull__list_init(&ids->meanings);
    return pthread_mutex_init(&ids->lock, NULL) ? MULL_ENOMEM : MULL_OK;
}

void mull__ids_free(mull__ids *ids)
{
    list_free(&ids->types, &ids->allocator);
    list_free(&ids->sites, &ids->allocator);
    pthread_mutex_destroy(&ids->lock);
}

static mull__meanings *meanings_at(mull__link *link)
{
    return link ? MULL__ENTRY(link, mull__meanings, link) : NULL;
}

static mull__meanings *next_meanings(mull__ids *ids, mull__meanings *m)
{
    return meanings_at(m ? mull__list_after(&ids->meanings, &m->link)
                         : mull__list_first(&ids->meanings));
}

/* mean_everywhere: from here on nothing can fail, or nothing was done. */
static int mean_everywhere(mull__ids *ids, mull__id_list *list, const mull__id_key *key)
{
    int status = list->count == IDS_MAX ? MULL_ETOOBIG : list_reserve(list, &ids->allocator);
    for (mull__meanings *m = NULL; status == MULL_OK && (m = next_meanings(ids, m));)
        status = mean(m, list, key);
    if (status)
        for (mull__meanings *m = NULL; (m = next_meanings(ids, m));)
            forget(m);
    return status;
}

/* add takes a key, and gives its id. */
static int add(mull__ids *ids, mull__id_list *list, uint32_t *out, mull__id_key *key)
{
    if (!key)
        return MULL_ENOMEM;
    key->hash = mull__hash(key->bytes, key->size);
    pthread_mutex_lock(&ids->lock);
    *out = find(list, key);
    int status = *out ? MULL_OK : mean_everywhere(ids, list, key);
    if (status == MULL_OK && !*out) {
        for (mull__meanings *m = NULL; (m = next_meanings(ids, m));)
            put(m, list);
        *out = list_put(list, key);
        key = NULL;
    }
    pthread_mutex_unlock(&ids->lock);
    mull__free(&ids->allocator, key);
    return status;
}

static int is_too_long(const char *name)
{
    return name && strnlen(name, NAME_BYTES_MAX + 1) > NAME_BYTES_MAX;
}

int mull__ids_add_type(mull__ids *ids, uint32_t *out, const char *name)
{
    *out = 0;
    if (!name || !*name)
        return MULL_EINVAL;
    if (is_too_long(name))
        return MULL_ETOOBIG;
    return add(ids, &ids->types, out, type_key(&ids->allocator, name));
}

int mull__ids_add_site(mull__ids *ids, uint32_t *out, const char *consumer, const char *transport)
{
    *out = 0;
    if (is_too_long(consumer) || is_too_long(transport))
        return MULL_ETOOBIG;
    return add(ids, &ids->sites, out, site_key(&ids->allocator, consumer, transport));
}
