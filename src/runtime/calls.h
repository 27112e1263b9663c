/* calls.h: the numbers of calls. What handlers do with them, on any thread, is in mulligan.h and
 * seams.h: mull_done, mull_send, mull__uncount. */
#ifndef MULL__CALLS_H
#define MULL__CALLS_H

#include "state.h"

/* mull__own_errors: failures that the engine itself states. All others are one block each. */
enum {
    MULL__TIMED_OUT,
    MULL__CRASHED,
    MULL__OUT_OF_MEMORY,
    MULL__TOO_BIG,
    MULL__BODILESS,
    MULL__OWN_ERRORS
};
extern const mull_error mull__own_errors[MULL__OWN_ERRORS];
void mull__error_free(mull_engine *engine, const mull_error *error); /* one of ours is left alone */

mull_call mull__call_new(mull_engine *engine, mull__delivery *d); /* 0: out of memory */

/* mull__call_detach: the handler goes on, but what it says and sends no longer counts. 0: the call
 * was ended already. */
int mull__call_detach(mull_engine *engine, mull_call call);

/* mull__calls_take_ended takes out a delivery whose call was ended; its number is free from then
 * on. NULL: none is left. */
mull__delivery *mull__calls_take_ended(mull_engine *engine);
void mull__calls_free(mull_engine *engine);

/* mull__sends_drop forgets what a call wanted sent: it failed, or the messages are out. The call
 * must have ended, so that no other thread adds to them. */
void mull__sends_drop(mull__delivery *d);

#endif
