/* stop_when_empty.h: a stop because the queues are empty. */
#ifndef MULL__STOP_WHEN_EMPTY_H
#define MULL__STOP_WHEN_EMPTY_H

#include "engine_state.h"

void mull__until_empty_check(mull_engine *engine); /* is it time to ask for depths? */

#endif
