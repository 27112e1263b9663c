/* prepare.h: what is worked out of matchers and tiers once, when they are read, for decisions. */
#ifndef MULL__PREPARE_H
#define MULL__PREPARE_H

#include "base/arena.h"
#include "plain.h"

/* mull__tests_prepare fills in what each test looks at. */
void mull__tests_prepare(mull__plain_test *tests, size_t count);

/* mull__tier_prepare fills in `lots`. MULL_ENOMEM. */
int mull__tier_prepare(mull__arena *arena, mull__plain_tier *tier);

#endif
