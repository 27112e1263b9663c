/* engine_control.h: what src/lua does with an engine, beyond mulligan.h. On the loop's thread. */
#ifndef MULL__ENGINE_CONTROL_H
#define MULL__ENGINE_CONTROL_H

#include "base/list.h"
#include "mulligan/transport.h"

/* How long a stop waits for handlers by default. */
enum { MULL__GRACE_MS = 10000 };

struct uv_loop_s *mull__engine_loop(mull_engine *engine);

/* mull__engine_for_policy makes an engine that only reloads its policy and stops on signals: it
 * starts without a transport. */
void mull__engine_for_policy(mull_engine *engine);

int mull__engine_started(const mull_engine *engine); /* be it stopped since */
int mull__engine_emptied(const mull_engine *engine); /* it stopped since its queues were empty */

int mull__engine_quiet(const mull_engine *engine); /* ... as far as a quiet time can tell */

/* mull__transport_why gives why a transport isn't up, as it said itself; "": it hasn't said. */
const char *mull__transport_why(mull_engine *engine, const char *transport);

/* mull__stop_out_of_memory stops an engine whose handlers have no memory left, unless it stops
 * already. */
void mull__stop_out_of_memory(mull_engine *engine, const char *why);

/* mull__engine_fault makes an operation ("settle", "note", "publish", "depth", "hold") of a
 * transport fail, for tests: after `skip` calls the next `times` ones answer `code` without
 * reaching the transport. MULL_EINVAL: no such transport or operation. */
int mull__engine_fault(mull_engine *engine, const char *transport, const char *operation,
                       uint32_t skip, uint32_t times, int code);

/* mull__engine_working is for who has a handle of its own on the loop, and a callback that ends a
 * handler's call (+1, -1): a test's clock waits for it. */
void mull__engine_working(mull_engine *engine, int change);

/* mull__companion works beside an engine, on its loop: worker processes, say. */
typedef struct mull__companion {
    mull__link link;
    void (*start)(void *data);                  /* the engine takes messages from now on */
    void (*stop)(void *data, int64_t grace_ms); /* no call begins from now on */
    void (*close)(void *data); /* no call is open, and the engine waits for mull__companion_gone */
    void *data;
} mull__companion;

/* mull__companion_add: the companion stays its owner's. It is started with the engine, or at once
 * where that has started. */
void mull__companion_add(mull_engine *engine, mull__companion *companion);

/* mull__companion_gone: the loop has nothing of it any more. */
void mull__companion_gone(mull_engine *engine, mull__companion *companion);

/* mull__consumer_room: as many handlers of a consumer may be at work, beside what its concurrency
 * says. 0: it isn't called, since it has no worker. */
void mull__consumer_room(mull_engine *engine, const char *name, uint32_t room);

/* mull__this_thread is the same for two calls exactly if they are on one thread, and never 0. */
uintptr_t mull__this_thread(void);

/* mull__machine_memory gives the bytes of the machine, or less if a cgroup or limit says so. */
uint64_t mull__machine_memory(void);

#endif
