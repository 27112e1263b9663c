/* name_index.c: see name_index.h. */
#include "name_index.h"

/* slots_for is a power of two, at least twice `count`: probing always ends at a free slot. */
static size_t slots_for(size_t count)
{
    size_t slots = 2;
    while (slots / 4 < count && slots <= SIZE_MAX / 4)
        slots *= 2;
    return slots;
}

int mull__name_index_init(mull__name_index *names, mull__arena *arena, size_t count)
{
    size_t slots = slots_for(count);
    names->slots = mull__arena_zalloc(arena, slots, sizeof *names->slots);
    if (!names->slots)
        return MULL_ENOMEM;
    names->mask = slots - 1;
    names->last = &names->slots[names->mask];
    for (names->shift = 64; slots > 1; slots /= 2)
        names->shift--;
    return MULL_OK;
}

void mull__name_index_add(mull__name_index *names, const char *text, uint32_t number)
{
    const mull__name name = mull__name_of(text);
    uint64_t at = name.hash >> names->shift;
    while (names->slots[at].size)
        at = (at + 1) & names->mask;
    names->slots[at] = (mull__name_entry){name.first, name.last, text, (uint32_t)name.size, number};
}
