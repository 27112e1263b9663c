/* stop.h: stops: asked for, by itself, or because the queues are empty. */
#ifndef MULL__STOP_H
#define MULL__STOP_H

#include "state.h"

void mull__stop_begin(mull_engine *engine);
void mull__stop_end_grace(mull_engine *engine); /* the grace is over, and so are waits to settle */
void mull__stop_check(mull_engine *engine);     /* has it stopped by now? */
void mull__until_empty_check(mull_engine *engine); /* is it time to ask for depths? */

#endif
