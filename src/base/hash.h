/* hash.h: the one hash of the house, XXH3 at 64 and 128 bits. */
#ifndef MULL__HASH_H
#define MULL__HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t mull__hash(const void *bytes, size_t size);
uint64_t mull__hash_text(const char *text);

/* mull__hash_words mixes numbers: the same on every machine, whatever its byte order. */
uint64_t mull__hash_words(const uint64_t *words, size_t count);

/* A running 128-bit hash for content: feed each piece with its size, then take the hex. */
typedef struct mull__digest mull__digest;
mull__digest *mull__digest_new(void);
void mull__digest_add(mull__digest *digest, const void *bytes, size_t size);
void mull__digest_free(mull__digest *digest, char hex[33]); /* `hex` may be NULL */

#endif
