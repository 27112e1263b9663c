/* misbehave.h: what a broker may do and this transport wouldn't, where its URL asks for it: so that
 * tests see what the engine makes of that. */
#ifndef MULL__MEMORY_MISBEHAVE_H
#define MULL__MEMORY_MISBEHAVE_H

#include "claim.h"

/* mull__misbehave_settle settles a claim, as `settle` and `note` say. */
int mull__misbehave_settle(mull__memory_transport *self, mull__memory_claim *claim,
                           const mull_settlement *settlement);

/* mull__misbehave_answers gives how often the port is to be told of an answer now, as `answers`
 * says; once more comes later by itself. */
int mull__misbehave_answers(mull__memory_transport *self, const mull__memory_answer *answer);

/* mull__misbehave_released: by answers=late, the last settlement of a claim is answered again. */
void mull__misbehave_released(mull__memory_transport *self, const mull__memory_claim *claim);

/* mull__misbehave_depth hides what isn't told, as `depth` says. */
void mull__misbehave_depth(const mull__memory_transport *self, mull_depth *depth);

#endif
