/* setup.h: what an engine is set up with, and takes down again. */
#ifndef MULL__SETUP_H
#define MULL__SETUP_H

#include "engine_state.h"

int mull__setup_teardown(mull_engine *engine); /* releases all, closes all. 1: all of it is gone */

#endif
