/* timers.c: timers on the engine's monotonic clock, in a pairing heap whose links live in the
 * timers themselves: to set one needs no memory, so it never fails. One uv_timer stands for the
 * earliest of them; with a test's clock there is none, and mull_engine_turn fires them. */
#include "timers.h"

static int earlier(const mull_timer *a, const mull_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

/* meld joins two heaps; the later one becomes the first child of the earlier. NULL is an empty one.
 * A root has no `before`; a first child's is its parent, another's the sibling before it. */
static mull_timer *meld(mull_timer *a, mull_timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (earlier(b, a)) {
        mull_timer *later = a;
        a = b;
        b = later;
    }
    b->before = a;
    b->next = a->child;
    if (b->next)
        b->next->before = b;
    a->child = b;
    a->next = a->before = NULL;
    return a;
}

/* meld_all joins siblings: in pairs from the first on, then the pairs from the last on. */
static mull_timer *meld_all(mull_timer *first)
{
    mull_timer *pairs = NULL, *all = NULL;
    while (first) {
        mull_timer *second = first->next, *rest = second ? second->next : NULL;
        mull_timer *pair = meld(first, second);
        pair->next = pairs;
        pairs = pair;
        first = rest;
    }
    while (pairs) {
        mull_timer *rest = pairs->next;
        all = meld(all, pairs);
        pairs = rest;
    }
    if (all)
        all->next = all->before = NULL;
    return all;
}

/* take_out takes a timer out of the heap, and frees one with memory of its own. */
static void take_out(mull_engine *engine, mull_timer *timer)
{
    mull_timer *children = meld_all(timer->child);
    if (timer->before) {
        *(timer->before->child == timer ? &timer->before->child : &timer->before->next) =
            timer->next;
        if (timer->next)
            timer->next->before = timer->before;
        engine->timers = meld(engine->timers, children);
    } else {
        engine->timers = children;
    }
    timer->child = timer->next = timer->before = NULL;
    timer->set = 0;
    if (timer->own)
        mull__free(&engine->allocator, timer);
}

static void on_alarm(uv_timer_t *alarm);

/* set_alarm rings a millisecond late rather than early: libuv counts from the start of its turn. */
static void set_alarm(mull_engine *engine)
{
    if (engine->manual || engine->closing >= MULL__CLOSE_HANDLES)
        return;
    int64_t next = mull__timers_next(engine);
    if (next == INT64_MAX) {
        uv_timer_stop(&engine->alarm);
        return;
    }
    uv_update_time(engine->loop);
    int64_t wait = next - mull__engine_now(engine);
    uv_timer_start(&engine->alarm, on_alarm, wait > 0 ? (uint64_t)wait : 0, 0);
}

static void on_alarm(uv_timer_t *alarm)
{
    mull_engine *engine = alarm->data;
    mull__timers_fire(engine);
    set_alarm(engine);
}

/* due gives the moment `delay_ms` from now. Now was cut to a whole millisecond: on the real clock a
 * timer would be early by the part that was cut off, so it gets one more. */
static int64_t due(const mull_engine *engine, int64_t delay_ms)
{
    int64_t now = mull__engine_now(engine);
    if (delay_ms <= 0)
        return now;
    int64_t more = engine->manual ? 0 : 1;
    return delay_ms > INT64_MAX - now - more ? INT64_MAX : now + delay_ms + more;
}

void mull__timer_set(mull_engine *engine, mull_timer *timer, int64_t delay_ms,
                     void (*fire)(void *data), void *data)
{
    mull__engine_cancel(engine, timer);
    timer->due_ms = due(engine, delay_ms);
    timer->order = engine->next_timer++;
    timer->fire = fire;
    timer->data = data;
    timer->set = 1;
    engine->timers = meld(engine->timers, timer);
    if (engine->timers == timer)
        set_alarm(engine);
}

mull_timer *mull__engine_after(mull_engine *engine, int64_t delay_ms, void (*fire)(void *data),
                               void *data)
{
    mull_timer *timer = mull__zalloc(&engine->allocator, 1, sizeof *timer);
    if (!timer)
        return NULL;
    timer->own = 1;
    mull__timer_set(engine, timer, delay_ms, fire, data);
    return timer;
}

void mull__engine_cancel(mull_engine *engine, mull_timer *timer)
{
    if (!timer || !timer->set)
        return;
    take_out(engine, timer);
    /* An alarm that is now too early rings for nothing; without timers none may ring. */
    if (!engine->timers)
        set_alarm(engine);
}

void mull__timers_fire(mull_engine *engine)
{
    int64_t now = mull__engine_now(engine);
    uint64_t end = engine->next_timer;
    for (mull_timer *first; (first = engine->timers);) {
        if (first->due_ms > now || first->order >= end)
            return;
        void (*fire)(void *data) = first->fire;
        void *data = first->data;
        take_out(engine, first);
        fire(data);
    }
}

int64_t mull__timers_next(const mull_engine *engine)
{
    return engine->timers ? engine->timers->due_ms : INT64_MAX;
}

/* mull__timers_free frees those with memory of their own that are left. */
void mull__timers_free(mull_engine *engine)
{
    while (engine->timers)
        take_out(engine, engine->timers);
}
