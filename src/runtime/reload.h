/* reload.h: reloads while the engine runs, by a signal or when files change. */
#ifndef MULL__RELOAD_H
#define MULL__RELOAD_H

#include "engine_state.h"

int mull__reload_new(mull_engine *engine); /* MULL_ENOMEM. MULL_EINVAL: the policy has no files */
void mull__reload_start(mull_engine *engine);
void mull__reload_ask(mull_engine *engine); /* by a signal. Outside of start and stop: nothing */
void mull__reload_stop(mull_engine *engine);
void mull__reload_free(mull_engine *engine);

#endif
