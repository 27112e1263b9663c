/* companions.h: what works beside an engine, see engine_control.h. */
#ifndef MULL__COMPANIONS_H
#define MULL__COMPANIONS_H

#include "engine_state.h"

void mull__companions_start(mull_engine *engine);
void mull__companions_stop(mull_engine *engine);
int mull__companions_end(mull_engine *engine); /* tells them to, once; 1: all are gone */

#endif
