/* timer.c: a binary heap of timers on the engine's monotonic clock. One uv_timer stands for the
 * earliest of them; with a test's clock there is none, and mull_engine_turn fires them. */
#include "engine.h"

static int earlier(const mull_timer *a, const mull_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void place(mull__timers *timers, size_t index, mull_timer *timer)
{
    timers->heap[index] = timer;
    timer->index = index;
}

static void sift_up(mull__timers *timers, size_t index)
{
    mull_timer *timer = timers->heap[index];
    while (index > 0 && earlier(timer, timers->heap[(index - 1) / 2])) {
        place(timers, index, timers->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    place(timers, index, timer);
}

static void sift_down(mull__timers *timers, size_t index)
{
    mull_timer *timer = timers->heap[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count && earlier(timers->heap[child + 1], timers->heap[child]))
            child++;
        if (!earlier(timers->heap[child], timer))
            break;
        place(timers, index, timers->heap[child]);
        index = child;
    }
    place(timers, index, timer);
}

static void take_out(mull__timers *timers, mull_timer *timer)
{
    size_t index = timer->index;
    mull_timer *last = timers->heap[--timers->count];
    if (last == timer)
        return;
    place(timers, index, last);
    sift_up(timers, index);
    sift_down(timers, last->index);
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

int mull__timer_reserve(mull_engine *engine)
{
    mull__timers *timers = &engine->timers;
    if (timers->reserved == timers->room) {
        size_t room = timers->room ? timers->room * 2 : 16;
        mull_timer **heap = mull__grow(&engine->allocator, timers->heap, room, sizeof *heap);
        if (!heap)
            return MULL_ENOMEM;
        timers->heap = heap;
        timers->room = room;
    }
    timers->reserved++;
    return 0;
}

void mull__timer_unreserve(mull_engine *engine)
{
    engine->timers.reserved--;
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
    mull__timers *timers = &engine->timers;
    mull__timer_cancel(engine, timer);
    timer->due_ms = due(engine, delay_ms);
    timer->order = timers->next_order++;
    timer->fire = fire;
    timer->data = data;
    timer->set = 1;
    timers->heap[timers->count++] = timer;
    timer->index = timers->count - 1;
    sift_up(timers, timer->index);
    if (timer->index == 0)
        set_alarm(engine);
}

mull_timer *mull__timer_add(mull_engine *engine, int64_t delay_ms, void (*fire)(void *data),
                            void *data)
{
    mull_timer *timer = mull__zalloc(&engine->allocator, 1, sizeof *timer);
    if (!timer || mull__timer_reserve(engine) != 0) {
        mull__free(&engine->allocator, timer);
        return NULL;
    }
    timer->own = 1;
    mull__timer_set(engine, timer, delay_ms, fire, data);
    return timer;
}

/* leave takes a timer out of the heap, and frees one with memory of its own. */
static void leave(mull_engine *engine, mull_timer *timer)
{
    take_out(&engine->timers, timer);
    timer->set = 0;
    if (timer->own) {
        mull__timer_unreserve(engine);
        mull__free(&engine->allocator, timer);
    }
}

void mull__timer_cancel(mull_engine *engine, mull_timer *timer)
{
    if (!timer || !timer->set)
        return;
    leave(engine, timer);
    /* An alarm that is now too early rings for nothing; without timers none may ring. */
    if (engine->timers.count == 0)
        set_alarm(engine);
}

size_t mull__timers_fire(mull_engine *engine)
{
    mull__timers *timers = &engine->timers;
    int64_t now = mull__engine_now(engine);
    uint64_t end = timers->next_order;
    size_t fired = 0;
    while (timers->count > 0 && timers->heap[0]->due_ms <= now && timers->heap[0]->order < end) {
        void (*fire)(void *data) = timers->heap[0]->fire;
        void *data = timers->heap[0]->data;
        leave(engine, timers->heap[0]);
        fire(data);
        fired++;
    }
    return fired;
}

int64_t mull__timers_next(const mull_engine *engine)
{
    return engine->timers.count ? engine->timers.heap[0]->due_ms : INT64_MAX;
}

void mull__timers_free(mull_engine *engine)
{
    for (size_t i = 0; i < engine->timers.count; i++)
        if (engine->timers.heap[i]->own)
            mull__free(&engine->allocator, engine->timers.heap[i]);
    mull__free(&engine->allocator, engine->timers.heap);
    engine->timers = (mull__timers){0};
}
