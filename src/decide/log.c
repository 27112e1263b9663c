/* log.c: see log.h. */
#include "log.h"

#include <pthread.h>

#include "base/alloc.h"

struct mull__log {
    mull_allocator allocator;
    pthread_mutex_t one; /* held while the embedder's function runs */
    mull_log_fn log;
    void *data;
};

int mull__log_new(mull__log **out, const mull_allocator *allocator, mull_log_fn log, void *data)
{
    *out = NULL;
    mull__log *l = mull__alloc(allocator, sizeof *l);
    if (!l)
        return MULL_ENOMEM;
    l->allocator = *allocator;
    l->log = log;
    l->data = data;
    if (pthread_mutex_init(&l->one, NULL)) {
        mull__free(allocator, l);
        return MULL_ENOMEM;
    }
    *out = l;
    return MULL_OK;
}

void mull__log_write(mull__log *log, mull_level level, const char *text)
{
    if (!log->log)
        return;
    pthread_mutex_lock(&log->one);
    log->log(level, text, log->data);
    pthread_mutex_unlock(&log->one);
}

void mull__log_free(mull__log *log)
{
    if (!log)
        return;
    pthread_mutex_destroy(&log->one);
    const mull_allocator a = log->allocator;
    mull__free(&a, log);
}
