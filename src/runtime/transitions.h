/* transitions.h: the two state machines of a delivery and of its call. */
#ifndef MULL__TRANSITIONS_H
#define MULL__TRANSITIONS_H

#include "engine_state.h"

void mull__message_becomes(mull__delivery *d, mull__message_state next);
void mull__call_becomes(mull__call_slot *slot, mull__call_state next);

#endif
