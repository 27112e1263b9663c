/* log.h: what a policy prints, one line at a time, whichever deciders' threads it comes from. */
#ifndef MULL__LOG_H
#define MULL__LOG_H

#include "mulligan.h"

typedef struct mull__log mull__log;

/* mull__log_new: lines go to `log`, called with `data`; NULL: nowhere. MULL_ENOMEM. */
int mull__log_new(mull__log **out, const mull_allocator *allocator, mull_log_fn log, void *data);

/* mull__log_write hands on a line. Any thread; the embedder's function must not write in turn. */
void mull__log_write(mull__log *log, mull_level level, const char *text);

void mull__log_free(mull__log *log);

#endif
