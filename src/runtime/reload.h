/* reload.h: an engine that reloads its policy by itself: at SIGHUP, when the files change, and once
 * a minute while they aren't what runs. All of it on the loop's thread. */
#ifndef MULL__RELOAD_H
#define MULL__RELOAD_H

#include "mulligan.h"

/* mull__reload_new prepares an engine whose options ask for reloads; others have nothing to
 * prepare. MULL_ENOMEM; MULL_EINVAL: the policy has no files. */
int mull__reload_new(mull_engine *engine);
void mull__reload_free(mull_engine *engine);

/* mull__reload_start and _stop: in between it reloads. */
void mull__reload_start(mull_engine *engine);
void mull__reload_stop(mull_engine *engine);

/* mull__reload_ask: a signal asks for a reload; outside of start and stop it does nothing. */
void mull__reload_ask(mull_engine *engine);

#endif
