/* limit_events.h: what becomes of a consumer: limits that begin and end, pauses, its concurrency.
 * Each is a line of the log at once, and an event on this turn or the next. */
#ifndef MULL__LIMIT_EVENTS_H
#define MULL__LIMIT_EVENTS_H

#include "engine_state.h"
#include "limit_values.h"

void mull__limit_started(mull__consumer *c, const mull__rate_limit *limit,
                         mull__limit_state *state);

/* mull__limit_ended: `why` where it isn't that enough calls succeeded. */
void mull__limit_ended(mull__consumer *c, const mull__rate_limit *limit, mull__limit_state *state,
                       const char *why);

/* mull__limit_dropped: there are too many values, and this one starts anew. */
void mull__limit_dropped(mull__consumer *c, const mull__rate_limit *limit,
                         mull__limit_state *state);

/* mull__consumer_event tells that it was paused, resumed, or got another concurrency. */
void mull__consumer_event(mull__consumer *c, mull_event_kind kind, const char *text);

/* mull__limit_status_of describes a state that is limited, with the moments of the wall's clock. It
 * points to the state, and to `per`, in which the words for that are. */
mull_limit_status mull__limit_status_of(const mull__consumer *c, const mull__rate_limit *limit,
                                        const mull__limit_state *state, char per[MULL__PER_SIZE]);

void mull__consumer_events_deliver(mull_engine *engine);

#endif
