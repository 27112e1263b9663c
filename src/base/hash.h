/* hash.h: the hash of the house, XXH3 at 64 and 128 bits; and mull__mix_word, for where a hash must
 * be cheap and nobody outside sees it. */
#ifndef MULL__HASH_H
#define MULL__HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t mull__hash(const void *bytes, size_t size);
uint64_t mull__hash_text(const char *text);

/* mull__hash_words mixes numbers; what comes out depends on the byte order. */
uint64_t mull__hash_words(const uint64_t *words, size_t count);

/* mull__mix_word stirs a word: any two differ in what comes out, and each bit has a say in the
 * uppermost one. */
static inline uint64_t mull__mix_word(uint64_t word)
{
    return (word ^ word >> 32) * UINT64_C(0x9e3779b97f4a7c15);
}

/* mull__digest is a running 128-bit hash for content: feed each piece with its size, then take the
 * hex. It lives wherever its owner puts it, and needs no memory of its own. */
typedef struct mull__digest {
    _Alignas(64) unsigned char state[640];
} mull__digest;

void mull__digest_begin(mull__digest *digest);
void mull__digest_add(mull__digest *digest, const void *bytes, size_t size);
void mull__digest_end(mull__digest *digest, char hex[33]);

#endif
