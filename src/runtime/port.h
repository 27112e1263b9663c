/* port.h: the engine as a transport sees it. */
#ifndef MULL__PORT_H
#define MULL__PORT_H

#include "engine_state.h"

/* mull__port_calls are what a transport calls, for those that are modules. */
extern const mull_port_calls mull__port_calls;

void mull__questions_fail(mull_engine *engine);  /* no transport is there to answer */
int mull__has_deferred(const mull__consumer *c); /* there was no memory for one of its deliveries */

/* mull__source_set says how a queue is read: for a reader, and for the consumers that it reads for.
 */
void mull__source_set(mull__consumer *c, mull_source_state state, const mull_abilities *found,
                      const char *why);

void mull__deferred_try(void *port);          /* takes in those for which there was no memory */
void mull__deferred_release(mull_port *port); /* those that are left when it closes */

#endif
