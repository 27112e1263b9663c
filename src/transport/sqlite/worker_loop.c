/* worker_loop.c: what the loop tells the worker, and takes from it. See worker.h. */
#include "worker.h"

#include <signal.h>

void mull__worker_submit(mull__worker *worker, mull__list *jobs, mull__list *readers, int wake)
{
    uv_mutex_lock(&worker->mutex);
    mull__list_append(&worker->inbox, jobs);
    for (mull__link *at = mull__list_first(readers); at; at = mull__list_after(readers, at)) {
        mull__reader *reader = MULL__ENTRY(at, mull__reader, own_link);
        reader->given = reader->wish;
    }
    worker->wakes += wake != 0;
    uv_mutex_unlock(&worker->mutex);
    uv_cond_signal(&worker->cond);
}

void mull__worker_add_reader(mull__worker *worker, mull__reader *reader)
{
    reader->next_due_ms = INT64_MAX;
    uv_mutex_lock(&worker->mutex);
    mull__list_push(&worker->arrivals, &reader->link);
    uv_mutex_unlock(&worker->mutex);
}

void mull__worker_take_answers(mull__worker *worker, mull__answers *answers)
{
    uv_mutex_lock(&worker->mutex);
    *answers = worker->answers;
    mull__list_init(&answers->jobs);
    mull__list_init(&answers->claims);
    mull__list_append(&answers->jobs, &worker->answers.jobs);
    mull__list_append(&answers->claims, &worker->answers.claims);
    worker->answers.state_news = 0;
    worker->unread = 0;
    worker->reading = 1;
    uv_mutex_unlock(&worker->mutex);
}

void mull__worker_answers_seen(mull__worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    worker->reading = 0;
    if (worker->closing)
        uv_cond_signal(&worker->cond);
    uv_mutex_unlock(&worker->mutex);
}

void mull__worker_close(mull__worker *worker, int64_t drain_ms)
{
    const uint64_t ms = 1000000, longest = UINT64_MAX / 2;
    uint64_t drain = drain_ms > 0 ? (uint64_t)drain_ms : 0;
    uv_mutex_lock(&worker->mutex);
    worker->closing = 1;
    worker->close_by = uv_hrtime() + (drain > longest / ms ? longest : drain * ms);
    uv_cond_signal(&worker->cond);
    uv_mutex_unlock(&worker->mutex);
}

/* ---- Start and end --------------------------------------------------------------------------- */

/* create_thread: signals are for the embedder's threads. */
static int create_thread(mull__worker *worker)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = uv_thread_create(&worker->thread, mull__worker_run, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int mull__worker_start(mull__worker *worker, const char *path, size_t most_bytes, uv_async_t *async)
{
    mull__list *const lists[] = {&worker->inbox,        &worker->arrivals,      &worker->readers,
                                 &worker->batch,        &worker->counts,        &worker->done,
                                 &worker->again,        &worker->returns,       &worker->claims,
                                 &worker->answers.jobs, &worker->answers.claims};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        mull__list_init(lists[i]);
    worker->path = path;
    worker->most_bytes = most_bytes;
    worker->async = async;
    worker->health = MULL_UP;
    worker->most = SIZE_MAX;
    worker->answers.due_ms = INT64_MAX;
    sqlite3_busy_handler(worker->store.db, mull__worker_busy, worker);
    if (uv_mutex_init(&worker->mutex) == 0 && uv_cond_init(&worker->cond) == 0 &&
        create_thread(worker) == 0)
        return 0;
    return MULL_EIO; /* on Linux, mutexes and conditions need no memory to be given back */
}

void mull__worker_join(mull__worker *worker)
{
    uv_thread_join(&worker->thread);
    uv_cond_destroy(&worker->cond);
    uv_mutex_destroy(&worker->mutex);
}
