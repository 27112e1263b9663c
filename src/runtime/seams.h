/* seams.h: what src/lua and the simulator may do with an engine beyond mulligan.h. On the loop's
 * thread only. */
#ifndef MULL__SEAMS_H
#define MULL__SEAMS_H

#include "mulligan/transport.h"

/* What is published or sent has at most so many bytes of body, so many headers, and so many bytes
 * of texts: its queue, id, type, key and headers, each with its NUL. What one call sends takes at
 * most so many bytes while it is held. */
enum {
    MULL__BODY_MAX = 16 * 1024 * 1024,
    MULL__HEADERS_MAX = 1000,
    MULL__TEXTS_MAX = 1024 * 1024,
    MULL__SENDS_MAX = 64 * 1024 * 1024
};

/* How long a stop waits for handlers, where nothing else is said. */
enum { MULL__GRACE_MS = 10000 };

/* mull__engine_now reads the engine's monotonic clock, in milliseconds. */
int64_t mull__engine_now(const mull_engine *engine);

/* mull__engine_after calls `fire` `delay_ms` from now on that clock, unless it is cancelled before.
 * A timer that fired or was cancelled is gone. NULL: out of memory. */
mull_timer *mull__engine_after(mull_engine *engine, int64_t delay_ms, void (*fire)(void *data),
                               void *data);
void mull__engine_cancel(mull_engine *engine, mull_timer *timer);

/* mull__engine_attach adds a transport by its slots, where no scheme names it. No other has this
 * name; errors as mull_engine_transport's. */
int mull__engine_attach(mull_engine *engine, const char *name, const mull_transport_ops *ops,
                        const char *url);

/* mull__done_short ends a call as failed, where there is no memory for its error: an Error that
 * says so takes that one's place. MULL_EDONE as mull_done. */
int mull__done_short(mull_engine *engine, mull_call call);

/* mull__uncount takes back that a call which ended on this turn has failed: that counts for
 * nothing, and its message is called again once nothing else is at work, or goes back to its queue
 * where the engine stops. 1: the call was one that runs alone already. A call that didn't fail is
 * left alone. */
int mull__uncount(mull_engine *engine, mull_call call);

/* mull__is_alone says whether a call is made while no other may begin. */
int mull__is_alone(mull_engine *engine, mull_call call);

/* mull__stop_short stops an engine whose handlers have no memory left, and says why: its status is
 * MULL_ENOMEM. One that stops already goes on with that. */
void mull__stop_short(mull_engine *engine, const char *why);

/* mull__engine_fault makes the transport's operation ("settle", "publish", "depth", "hold") fail:
 * after `skip` calls the next `times` ones answer `code` without reaching the transport; a hold is
 * not made. For tests. MULL_EINVAL: no such transport or operation. */
int mull__engine_fault(mull_engine *engine, const char *transport, const char *operation,
                       uint32_t skip, uint32_t times, int code);

/* mull__engine_started says whether it was started, be it stopped since. */
int mull__engine_started(const mull_engine *engine);

/* mull__engine_emptied says whether it stopped since its queues were empty, as it was asked to. */
int mull__engine_emptied(const mull_engine *engine);

/* mull__this_thread is the same for two calls exactly if they are on one thread; never 0. */
uintptr_t mull__this_thread(void);

/* mull__machine_memory gives how many bytes this process may have at most: what the machine has,
 * or less where its cgroup or a limit of its own says so. */
uint64_t mull__machine_memory(void);

#endif
