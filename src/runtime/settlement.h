/* settlement.h: how a delivery ends at its broker. */
#ifndef MULL__SETTLEMENT_H
#define MULL__SETTLEMENT_H

#include "engine_state.h"

void mull__settle(mull__delivery *d, mull_settle_kind kind);
void mull__settlement_answered(mull__delivery *d, int status);
void mull__settlement_retry_now(mull__delivery *d); /* no more waiting between two tries */
int mull__all_settled(mull_engine *engine);         /* nothing that was delivered is left to do */
void mull__log_lost(const mull__delivery *d);
void mull__delivery_release(mull__delivery *d); /* once broker and handler are through with it */

#endif
