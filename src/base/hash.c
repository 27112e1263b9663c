/* hash.c: see hash.h. XXH3 is compiled in, from its header: only so is its state's size known, and
 * nothing asked of malloc. */
#include "hash.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(sizeof(XXH3_state_t) <= sizeof(mull__digest), "a digest has room for XXH3's state");

uint64_t mull__hash(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}

uint64_t mull__hash_text(const char *text)
{
    return mull__hash(text, strlen(text));
}

uint64_t mull__hash_words(const uint64_t *words, size_t count)
{
    return mull__hash(words, count * sizeof *words);
}

static XXH3_state_t *state_of(mull__digest *digest)
{
    return (XXH3_state_t *)(void *)digest->state;
}

void mull__digest_begin(mull__digest *digest)
{
    XXH3_128bits_reset(state_of(digest));
}

/* mull__digest_add writes the size first, so that "ab","c" and "a","bc" differ. */
void mull__digest_add(mull__digest *digest, const void *bytes, size_t size)
{
    unsigned char length[8];
    for (unsigned i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)size >> (8 * i));
    XXH3_128bits_update(state_of(digest), length, sizeof length);
    XXH3_128bits_update(state_of(digest), bytes, size);
}

void mull__digest_end(mull__digest *digest, char hex[33])
{
    XXH128_hash_t sum = XXH3_128bits_digest(state_of(digest));
    snprintf(hex, 33, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
}
