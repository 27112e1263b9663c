/* copy.h: copies of messages and errors, one block each. */
#ifndef MULL__COPY_H
#define MULL__COPY_H

#include "engine_state.h"

mull_error *mull__error_copy(const mull_allocator *allocator, const mull_error *error);
void mull__outgoing_free(const mull_allocator *allocator, mull_outgoing *outgoing);

/* mull__outgoing_copy copies a message that a handler sends, but for our headers, which may be
 * those of the message at work. `bytes` is the copy's size. */
int mull__outgoing_copy(const mull_allocator *allocator, mull_outgoing *out, size_t *bytes,
                        const mull_message *message, int64_t due_ms);

/* mull__message_take copies the struct of a message to be published, with a new id in `id` where it
 * has none, and says whether it can be: MULL_EINVAL, MULL_ETOOBIG. Any thread. */
int mull__message_take(mull_engine *engine, mull_message *own, char id[33],
                       const mull_message *given);

/* mull__delay_check refuses a delay that the transport can't keep: MULL_EREFUSED. Any thread. */
int mull__delay_check(const mull_abilities *can, int64_t delay_ms);

#endif
