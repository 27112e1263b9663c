/* modules.h: transports that are shared objects of their own, see mulligan/module.h. */
#ifndef MULL__MODULES_H
#define MULL__MODULES_H

#include "mulligan/transport.h"

/* mull__module_load gives the transport of a scheme. NULL: `why` says what is wrong with its module
 * and what would be right, or is empty where there is none. Any thread. */
const mull_transport_ops *mull__module_load(const char *scheme, char *why, size_t why_size);

#endif
