/* stop.h: a stop, asked for or by itself. */
#ifndef MULL__STOP_H
#define MULL__STOP_H

#include "engine_state.h"

void mull__stop_begin(mull_engine *engine);
void mull__stop_end_grace(mull_engine *engine); /* the grace is over, and so are waits to settle */
void mull__stop_end_drain(mull_engine *engine); /* no answer of a transport is waited for */
void mull__stop_check(mull_engine *engine);     /* has it stopped by now? */

#endif
