/* lifecycle.h: the two state machines of a delivery and of its call. */
#ifndef MULL__LIFECYCLE_H
#define MULL__LIFECYCLE_H

#include "state.h"

void mull__message_becomes(mull__delivery *d, mull__message_state next);
void mull__call_becomes(mull__call_slot *slot, mull__call_state next);

#endif
