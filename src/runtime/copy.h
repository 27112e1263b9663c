/* copy.h: deep copies of errors and messages, in one block each, which mull__free frees; and what a
 * message that is published may be. */
#ifndef MULL__COPY_H
#define MULL__COPY_H

#include "mulligan/transport.h"

mull_error *mull__error_copy(const mull_allocator *allocator, const mull_error *error);
void mull__outgoing_free(const mull_allocator *allocator, mull_outgoing *outgoing);

/* mull__outgoing_copy copies a message that a handler sends: it gets `id` where it has none, and
 * none of our headers, which a handler that passes its message's on would hand down. `bytes` is
 * what the copy takes. */
int mull__outgoing_copy(const mull_allocator *allocator, mull_outgoing *out, size_t *bytes,
                        const mull_message *message, const char *id, int64_t due_ms);

/* mull__message_take copies the struct of a message to be published, and says whether it can be:
 * MULL_EINVAL, MULL_ETOOBIG. */
int mull__message_take(mull_message *own, const mull_message *given);

/* mull__delay_check refuses a delay that the transport can't keep: MULL_EREFUSED. Any thread. */
int mull__delay_check(const mull_abilities *can, int64_t delay_ms);

#endif
