/* events.h: what listeners are told: the embedder's function, then the policy's notify. */
#ifndef MULL__EVENTS_H
#define MULL__EVENTS_H

#include "engine_state.h"

mull_failure mull__failure_of(const mull__delivery *d);
void mull__events_begin(mull__delivery *d); /* it will be judged: the notify in force hears of it */
void mull__event_from_decision(const mull_event *event,
                               void *engine); /* what the decider comes across */
void mull__event_decided(mull__delivery *d);  /* its verdict is carried out */
void mull__event_header_ignored(mull__delivery *d, const char *name); /* before it is judged */
void mull__events_end(mull__delivery *d); /* tells what is pending, where no event came of it */

/* mull__event_tell tells the embedder, and the notify in force for a consumer. */
void mull__event_tell(mull_engine *engine, const mull_event *event, const char *consumer,
                      const char *transport);

/* What became of a reload: added on any thread, told when the loop drains. */
void mull__policy_event_add(void *engine, const mull_event *event);
void mull__policy_event_at_start(mull_engine *engine);
void mull__policy_events_deliver(mull_engine *engine);

/* mull__event_transports_up tells the embedder alone which transports came up. */
void mull__event_transports_up(mull_engine *engine);

#endif
