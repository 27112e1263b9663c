/* message.h: a message copied with all that it points to. */
#ifndef MULL__TRANSPORT_MESSAGE_H
#define MULL__TRANSPORT_MESSAGE_H

#include "mulligan/transport.h"

/* mull__message_bytes is what mull__message_copy needs at `memory`, which is aligned for headers.
 */
size_t mull__message_bytes(const mull_message *message);
void mull__message_copy(mull_message *copy, const mull_message *message, void *memory);

#endif
