/* check.h: whether consumers could work by a policy, asked without an engine. */
#ifndef MULL__CHECK_H
#define MULL__CHECK_H

#include "mulligan/transport.h"
#include "policy/table.h"

/* mull__worker is a consumer, as far as a policy can fit it or not. */
typedef struct mull__worker {
    const char *name; /* "": nobody's messages on this queue */
    const char *queue, *transport;
    mull_abilities can; /* what its transport promises */
    int64_t timeout_ms; /* MULL_NEVER: none */
} mull__worker;

/* mull__check_workers tells what of a policy an engine would refuse. MULL_EREFUSED: something. */
int mull__check_workers(const mull__worker *workers, size_t count, const mull__table *table,
                        mull_problem_fn problem, void *data);

/* mull__worker_probe fills in what the transport of a URL promises. `why`: why it can't be opened.
 */
int mull__worker_probe(mull__worker *worker, const char *url, char *why, size_t why_size);

struct mull__consumer;
mull__worker mull__worker_of(const struct mull__consumer *c);

/* In between no policy is in force that the engine refuses. */
int mull__check_begin(mull_engine *engine);
void mull__check_end(mull_engine *engine); /* without begin: nothing */

#endif
