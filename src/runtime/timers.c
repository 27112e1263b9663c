/* timers.c: timers on the engine's monotonic clock, in a skew heap whose links live in the timers
 * themselves: to set one needs no memory, so it never fails. One uv_timer stands for the earliest
 * of them. With a test's clock there is none, and mull_engine_turn fires them. */
#include "timers.h"

#include "engine_state.h"

/* meld joins two heaps, NULL is an empty one, below `parent`. The children of each node on the way
 * change places, so that it takes O(log n) steps, amortized. */
static mull_timer *meld(mull_timer *a, mull_timer *b, mull_timer *parent)
{
    mull_timer *root = NULL, **at = &root;
    while (a && b) {
        int swap = b->due_ms != a->due_ms ? b->due_ms < a->due_ms : b->order < a->order;
        mull_timer *first = swap ? b : a;
        b = swap ? a : b;
        a = first->right;
        first->right = first->left;
        first->parent = parent;
        parent = *at = first;
        at = &first->left;
    }
    *at = a ? a : b;
    if (*at)
        (*at)->parent = parent;
    return root;
}

/* take_out takes a timer out of the heap, and frees one with memory of its own. */
static void take_out(mull_engine *engine, mull_timer *timer)
{
    mull_timer *parent = timer->parent;
    mull_timer **at = !parent                 ? &engine->timers
                      : parent->left == timer ? &parent->left
                                              : &parent->right;
    *at = meld(timer->left, timer->right, parent);
    timer->left = timer->right = timer->parent = NULL;
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

int64_t mull__timer_set(mull_engine *engine, mull_timer *timer, int64_t delay_ms,
                        void (*fire)(void *data), void *data)
{
    int64_t now_ms = mull__engine_now(engine);
    mull__engine_cancel(engine, timer);
    /* The real clock's milliseconds are cut off: one more, so that no timer is early. */
    int64_t more = delay_ms > 0 && !engine->manual;
    timer->due_ms = mull__later(now_ms + more, delay_ms);
    timer->order = engine->next_timer++;
    timer->fire = fire;
    timer->data = data;
    timer->set = 1;
    engine->timers = meld(engine->timers, timer, NULL);
    if (engine->timers == timer)
        set_alarm(engine);
    return now_ms;
}

mull_timer *mull__engine_after(mull_engine *engine, int64_t delay_ms, void (*fire)(void *data),
                               void *data)
{
    mull_timer *timer = mull__zalloc(&engine->allocator, 1, sizeof *timer);
    if (timer) {
        timer->own = 1;
        mull__timer_set(engine, timer, delay_ms, fire, data);
    }
    return timer;
}

void mull__engine_cancel(mull_engine *engine, mull_timer *timer)
{
    if (!timer || !timer->set)
        return;
    take_out(engine, timer);
    /* An alarm that is now too early rings for nothing. Without timers none may ring. */
    if (!engine->timers)
        set_alarm(engine);
}

void mull__timers_fire(mull_engine *engine)
{
    int64_t now = mull__engine_now(engine);
    uint64_t end = engine->next_timer;
    mull_timer *first;
    while ((first = engine->timers) && first->due_ms <= now && first->order < end) {
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
