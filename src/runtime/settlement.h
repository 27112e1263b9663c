/* settlement.h: how a delivery ends at its broker. */
#ifndef MULL__SETTLEMENT_H
#define MULL__SETTLEMENT_H

#include "engine_state.h"
#include "policy/resolve.h"

void mull__settle(mull__delivery *d, mull_settle_kind kind);
void mull__settlement_answered(mull__delivery *d, int status, const char *why); /* NULL */
void mull__settlement_give_up(mull__delivery *d);   /* no answer counts any more */
void mull__settlement_retry_now(mull__delivery *d); /* no more waiting between two tries */
int mull__all_settled(mull_engine *engine);         /* nothing that was delivered is left to do */
void mull__log_lost(const mull__delivery *d, const char *why);

/* mull__delivery_settings gives what holds for its consumer, of the decider's generation. */
mull__settings mull__delivery_settings(const mull__delivery *d);

/* mull__keep_generation: the verdict's strings live in it, and the decider will move on. */
void mull__keep_generation(mull__delivery *d);

/* mull__decide_dead_letter makes its verdict one of the engine's own. */
void mull__decide_dead_letter(mull__delivery *d, mull_reason reason);
void mull__delivery_release(mull__delivery *d); /* once broker and handler are through with it */

#endif
