/* names.c: see names.h. */
#include "names.h"

#include <string.h>

#include "base/alloc.h"

/* slots_for is a power of two, at least twice `count`: probing always ends at a free slot. */
static size_t slots_for(size_t count)
{
    size_t slots = 2;
    while (slots / 2 < count && slots <= SIZE_MAX / 4)
        slots *= 2;
    return slots;
}

int mull__names_init(mull__names *names, const mull_allocator *allocator, size_t count)
{
    size_t slots = slots_for(count);
    names->slots = mull__zalloc(allocator, slots, sizeof *names->slots);
    names->mask = slots - 1;
    return names->slots ? MULL_OK : MULL_ENOMEM;
}

void mull__names_add(mull__names *names, const char *name, uint64_t hash, uint32_t number)
{
    uint64_t at = hash & names->mask;
    while (names->slots[at].name)
        at = (at + 1) & names->mask;
    names->slots[at] = (mull__name_slot){name, (uint32_t)(hash >> 32), number};
}

uint32_t mull__names_find(const mull__names *names, const char *name, uint64_t hash)
{
    uint32_t tag = (uint32_t)(hash >> 32);
    for (uint64_t at = hash & names->mask;; at = (at + 1) & names->mask) {
        const mull__name_slot *slot = &names->slots[at];
        if (!slot->name)
            return MULL__NONE;
        if (slot->tag == tag && strcmp(slot->name, name) == 0)
            return slot->number;
    }
}
