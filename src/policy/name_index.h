/* name_index.h: names to numbers: an open-addressing hash, filled once and then only read. The
 * names themselves are borrowed.
 *
 * A decision looks up one to three names, and little else of it takes as long: hence a hash of our
 * own, which a compiler can put in place. It is no defence against names that are made to collide,
 * and needs to be none: what is in the table is the policy's own, and what is looked up in it adds
 * nothing to it. */
#ifndef MULL__NAME_INDEX_H
#define MULL__NAME_INDEX_H

#include <string.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "mulligan.h"

#define MULL__NONE UINT32_MAX

/* mull__name is a text with what is worked out of it once. Its ends, a word each, are all of it up
 * to 16 bytes, as most names have. */
typedef struct mull__name {
    const char *text;
    size_t size;          /* with its NUL, so that not even "" is like a free slot */
    uint64_t first, last; /* last: 0 up to 8 bytes; from 9 to 15 they overlap */
    uint64_t hash;        /* the same on every machine */
} mull__name;

typedef struct mull__name_entry {
    uint64_t first, last;
    const char *text;
    uint32_t size; /* 0: a free slot */
    uint32_t number;
} mull__name_entry;

typedef struct mull__name_index {
    mull__name_entry *slots, *last;
    uint64_t mask;  /* their number - 1 */
    unsigned shift; /* leaves of a hash the place where to begin */
} mull__name_index;

/* mull__name_index_init makes room for `count` names, which is the arena's. MULL_ENOMEM. */
int mull__name_index_init(mull__name_index *names, mull__arena *arena, size_t count);

/* mull__name_index_add adds a name that isn't there yet. */
void mull__name_index_add(mull__name_index *names, const char *text, uint32_t number);

/* ---- In place -------------------------------------------------------------------------------- */

static inline uint64_t mull__load_8(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

static inline uint32_t mull__load_4(const char *text)
{
    uint32_t word;
    memcpy(&word, text, sizeof word);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word;
}

/* mull__load_up_to_8 gives a text of at most 8 bytes as one word: two texts of one length differ in
 * it. */
static inline uint64_t mull__load_up_to_8(const char *text, size_t length)
{
    if (length >= 4)
        return mull__load_4(text) | (uint64_t)mull__load_4(text + length - 4) << 32;
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++)
        word = word << 8 | (unsigned char)text[i];
    return word;
}

#define MULL__NAME_FACTOR UINT64_C(0x9e3779b97f4a7c15)

static inline mull__name mull__name_of(const char *text)
{
    size_t length = strlen(text), size = length + 1;
    if (length <= 8) {
        uint64_t word = mull__load_up_to_8(text, length);
        return (mull__name){text, size, word, 0, (size + mull__mix_word(word)) * MULL__NAME_FACTOR};
    }
    uint64_t first = mull__load_8(text), last = mull__load_8(text + length - 8);
    uint64_t hash = (size + first) * MULL__NAME_FACTOR;
    for (size_t at = 8; at + 8 < length; at += 8)
        hash = (hash + mull__load_8(text + at)) * MULL__NAME_FACTOR;
    return (mull__name){text, size, first, last, (hash + last) * MULL__NAME_FACTOR};
}

static inline int mull__name_entry_equals(const mull__name_entry *slot, const mull__name *name)
{
    if (slot->last != name->last || slot->first != name->first || slot->size != name->size)
        return 0;
    for (size_t at = 8; at + 9 < name->size; at += 8) /* between the ends */
        if (mull__load_8(slot->text + at) != mull__load_8(name->text + at))
            return 0;
    return 1;
}

/* mull__name_index_find gives a name's number, or MULL__NONE; `hash` gets the name's. */
static MULL__ALWAYS_INLINE uint32_t mull__name_index_find(const mull__name_index *names,
                                                          const char *text, uint64_t *hash)
{
    const mull__name name = mull__name_of(text);
    const mull__name_entry *slot = &names->slots[name.hash >> names->shift];
    *hash = name.hash;
    while (!MULL__LIKELY(mull__name_entry_equals(slot, &name))) {
        if (slot->size == 0)
            return MULL__NONE;
        slot = slot < names->last ? slot + 1 : names->slots;
    }
    return slot->number;
}

#endif
