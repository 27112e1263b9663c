/* stop.h: stopping at once, and once the queues are empty. mull_stop itself only posts: state.c. */
#ifndef MULL__STOP_H
#define MULL__STOP_H

#include "state.h"

void mull__stop_begin(mull_engine *engine);

/* mull__stop_now ends the grace of an engine that stops; where it is over, what waits for its next
 * try to be settled waits no longer: what came too late too, when the engine had stopped. */
void mull__stop_now(mull_engine *engine);
void mull__stop_look(mull_engine *engine);  /* has it stopped by now? */
void mull__empty_look(mull_engine *engine); /* is it time to ask for depths? */

#endif
