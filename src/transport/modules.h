/* modules.h: transports that are shared objects of their own, see mulligan/module.h. */
#ifndef MULL__MODULES_H
#define MULL__MODULES_H

#include "mulligan/transport.h"

/* mull__modules_folders: where modules are, seen from the file that this is linked into: once
 * installed, and in its build. Each thing that the build links has its own; NULL in the static
 * library and in tests, which load none. */
extern const char *const mull__modules_folders[2] __attribute__((weak));

/* mull__module_load gives the transport of a scheme. NULL: `why` says what is wrong with its module
 * and what would be right, or is empty where there is none. Nothing is kept: the process itself
 * knows what it has loaded, which stays. Any thread. */
const mull_transport_ops *mull__module_load(const char *scheme, char *why, size_t why_size);

#endif
