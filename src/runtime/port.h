/* port.h: the engine as transports see it. What they call is in mulligan/transport.h. */
#ifndef MULL__PORT_H
#define MULL__PORT_H

#include "state.h"

/* mull__port_begin_holding renews every claim three times in its timeout. */
void mull__port_begin_holding(mull_port *port);

/* mull__deferred_try takes in the deliveries for which there was no memory, where there is now. */
void mull__deferred_try(mull_port *port);

/* mull__deferred_release lets go of those that are left when the transport closes: they stay
 * claimed, so that the broker hands them out again when we are gone. */
void mull__deferred_release(mull_port *port);

#endif
