/* names.h: names to numbers: an open-addressing hash, filled once and then only read. The names
 * themselves are borrowed. */
#ifndef MULL__NAMES_H
#define MULL__NAMES_H

#include "mulligan.h"

#define MULL__NONE UINT32_MAX

typedef struct mull__name_slot {
    const char *name; /* NULL: a free slot */
    uint32_t tag;     /* the upper half of the name's hash */
    uint32_t number;
} mull__name_slot;

typedef struct mull__names {
    mull__name_slot *slots;
    uint64_t mask; /* their number - 1 */
} mull__names;

/* mull__names_init makes room for `count` names. MULL_ENOMEM. */
int mull__names_init(mull__names *names, const mull_allocator *allocator, size_t count);

/* mull__names_add adds a name that isn't there yet; `hash` is its mull__hash_text. */
void mull__names_add(mull__names *names, const char *name, uint64_t hash, uint32_t number);

/* mull__names_find gives a name's number, or MULL__NONE. */
uint32_t mull__names_find(const mull__names *names, const char *name, uint64_t hash);

#endif
