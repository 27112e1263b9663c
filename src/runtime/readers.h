/* readers.h: consumers that share a queue, each by the types of messages that it names.
 *
 *   transport ── subscription ── reader ── readers.c ──┬── consumer: its types
 *                                                      ├── consumer: its types
 *                                                      └── consumer: the rest
 *
 * A reader is a consumer without a name and without a handler. What it reads belongs to the
 * consumer that takes the message's type. What can't be there now, and what no consumer takes,
 * stays the reader's own, and goes by the policy's rules for its transport. */
#ifndef MULL__READERS_H
#define MULL__READERS_H

#include "engine_state.h"

/* mull__reader_of finds the one that reads for others what `c` reads, NULL: there is none. */
mull__consumer *mull__reader_of(const mull__consumer *c);

/* mull__taker_of finds the consumer on the queue of `c` that takes a type: by name, else the one
 * that takes the rest. NULL: none does. One that is being removed takes nothing. */
mull__consumer *mull__taker_of(const mull__consumer *c, const char *type);

/* mull__reader_goes_to finds whose a message is that this reader was handed: a consumer's, or the
 * reader's own, and `waits` then says that it goes back: its consumer has no room, or all of them
 * are being removed. */
mull__consumer *mull__reader_goes_to(mull__consumer *reader, const char *type, int *waits);

/* mull__types_refuse refuses a new consumer where others on its queue take what it would. */
int mull__types_refuse(const mull__consumer *c);

/* mull__types_share says that a consumer's queue needs a reader: somebody names types. */
int mull__types_share(const mull__consumer *c);

#endif
