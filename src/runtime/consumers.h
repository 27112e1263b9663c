/* consumers.h: consumers, from when they are added until they are gone. */
#ifndef MULL__CONSUMERS_H
#define MULL__CONSUMERS_H

#include "engine_state.h"

/* mull__is_name: what policies, logs and headers can call something. */
int mull__is_name(const char *text);

/* mull__refuse_url tells what is wrong with a URL, without its credentials. */
int mull__refuse_url(mull_engine *engine, int status, const char *name, const char *url,
                     const char *why);

int mull__consumer_subscribe(mull__consumer *c);         /* MULL_ENOMEM, as the only error */
void mull__consumer_free(mull__consumer *c, int status); /* and tells who wanted it removed */

/* mull__consumers_end carries removals, and what takes a new subscription, on as far as it can. */
void mull__consumers_end(mull_engine *engine);

#endif
