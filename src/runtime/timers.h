/* timers.h: timers on the engine's monotonic clock, in milliseconds. On the loop's thread. */
#ifndef MULL__TIMERS_H
#define MULL__TIMERS_H

#include "mulligan/transport.h"

int64_t mull__engine_now(const mull_engine *engine);

/* mull__engine_after is mull_port_after, and mull__engine_cancel mull_port_cancel. */
mull_timer *mull__engine_after(mull_engine *engine, int64_t delay_ms, void (*fire)(void *data),
                               void *data);
void mull__engine_cancel(mull_engine *engine, mull_timer *timer);

/* ---- For the engine alone ------------------------------------------------------------------- */

/* mull__timer_set sets a timer that lives in another struct, until mull__engine_cancel. It gives
 * the time that it is, to whom that is of use. */
int64_t mull__timer_set(mull_engine *engine, mull_timer *timer, int64_t delay_ms,
                        void (*fire)(void *data), void *data);
void mull__timers_fire(mull_engine *engine); /* what is due. What that adds waits its turn */
int64_t mull__timers_next(const mull_engine *engine); /* INT64_MAX: none */

#endif
