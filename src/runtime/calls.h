/* calls.h: what src/lua does with a handler's call, beyond mulligan.h. On the loop's thread. */
#ifndef MULL__CALLS_H
#define MULL__CALLS_H

#include "mulligan.h"

/* Limits of a message that is published or sent. Its texts are its queue, id, type, key and
 * headers, each with its NUL. MULL__SENDS_MAX is for all that one call sends. */
enum {
    MULL__BODY_MAX = 16 * 1024 * 1024,
    MULL__HEADERS_MAX = 1000,
    MULL__TEXTS_MAX = 1024 * 1024,
    MULL__SENDS_MAX = 64 * 1024 * 1024
};

/* mull__call_index is a small number, which no other call has until this one has ended. */
enum { MULL__CALL_INDEX_BITS = 24 };
static inline uint32_t mull__call_index(mull_call call)
{
    return (uint32_t)call & ((UINT32_C(1) << MULL__CALL_INDEX_BITS) - 1);
}

/* mull__done_out_of_memory is mull_done where there is no memory for an error. */
int mull__done_out_of_memory(mull_engine *engine, mull_call call);

/* mull__call_uncount takes back that a call which ended on this turn has failed. Its message is
 * called again once nothing else is at work, or goes back to its queue where the engine stops. 1:
 * the call ran alone already. A call that didn't fail is left alone. */
int mull__call_uncount(mull_engine *engine, mull_call call);

/* mull__done_crashed is mull_done for a call whose handler died, maybe of another call's message: a
 * retry is made alone. Where the engine stops it counts for nothing, and its message goes back. */
int mull__done_crashed(mull_engine *engine, mull_call call, const mull_error *error);

/* mull__call_why_cancelled says why a call is cancelled: "timeout"; "lost", the claim of its
 * message; "stop". */
const char *mull__call_why_cancelled(mull_engine *engine, mull_call call);

/* mull__call_is_isolated says whether a call is made while no other may begin. */
int mull__call_is_isolated(mull_engine *engine, mull_call call);

/* ---- For the engine alone ------------------------------------------------------------------- */

typedef struct mull__delivery mull__delivery;

/* mull__engine_errors: failures that the engine itself states. All others are one block each. */
enum {
    MULL__TIMED_OUT,
    MULL__CRASHED,
    MULL__NO_CONSUMER,
    MULL__OUT_OF_MEMORY,
    MULL__TOO_BIG,
    MULL__BODILESS,
    MULL__UNREADABLE,
    MULL__SEND_REFUSED,
    MULL__UNCALLED,
    MULL__ENGINE_ERRORS
};
extern const mull_error mull__engine_errors[MULL__ENGINE_ERRORS];
void mull__error_free(mull_engine *engine, const mull_error *error); /* one of ours is left alone */

mull_call mull__call_new(mull_engine *engine, mull__delivery *d); /* 0: out of memory */

/* mull__call_detach: the handler goes on, for nothing. 0: the call was ended already. */
int mull__call_detach(mull_engine *engine, mull_call call);

mull__delivery *mull__calls_take_ended(mull_engine *engine); /* and frees its call. NULL: none */
/* mull__sends_add puts a message of the engine's own behind what a call that has ended sent. Errors
 * as of mull_send. */
int mull__sends_add(mull__delivery *d, const mull_message *given);
void mull__sends_drop(mull__delivery *d); /* its call has ended: no thread adds to them */

#endif
