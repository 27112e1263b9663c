/* timers.h: timers on the engine's monotonic clock. */
#ifndef MULL__TIMERS_H
#define MULL__TIMERS_H

#include "state.h"

/* mull__timer_set sets a timer that lives in another struct, anew if it was set. It can't fail.
 * mull__engine_cancel unsets it; one that isn't set is left alone. */
void mull__timer_set(mull_engine *engine, mull_timer *timer, int64_t delay_ms,
                     void (*fire)(void *data), void *data);

/* mull__timers_fire fires what is due. What a timer adds waits its turn. */
void mull__timers_fire(mull_engine *engine);
int64_t mull__timers_next(const mull_engine *engine); /* INT64_MAX: none */
void mull__timers_free(mull_engine *engine);

#endif
