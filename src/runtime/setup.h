/* setup.h: the transports and consumers of an engine. */
#ifndef MULL__SETUP_H
#define MULL__SETUP_H

#include "state.h"

/* mull__setup_close takes a closing engine one step on, if it may: every delivery is released, then
 * every transport closed. 1: all of them are, and gone. */
int mull__setup_close(mull_engine *engine);
void mull__schemes_free(mull_engine *engine);

#endif
