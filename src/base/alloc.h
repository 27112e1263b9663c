/* alloc.h: memory through the embedder's allocator. Every function takes it first. */
#ifndef MULL__ALLOC_H
#define MULL__ALLOC_H

#include "mulligan.h"

/* mull__allocator_or_default gives `wanted`, or malloc and free where its `resize` is NULL. */
mull_allocator mull__allocator_or_default(mull_allocator wanted);

/* mull__alloc gives `bytes` of uninitialised memory, NULL where there is none. */
void *mull__alloc(const mull_allocator *a, size_t bytes);

/* mull__zalloc gives `count` zeroed elements; NULL also where their product overflows. */
void *mull__zalloc(const mull_allocator *a, size_t count, size_t bytes);

/* mull__grow resizes an array to `count` elements; NULL: it stays as it was. */
void *mull__grow(const mull_allocator *a, void *array, size_t count, size_t bytes);

/* mull__strdup copies a string; NULL stays NULL. */
char *mull__strdup(const mull_allocator *a, const char *text);
char *mull__strndup(const mull_allocator *a, const char *text, size_t length);

void mull__free(const mull_allocator *a, void *pointer);

#endif
