/* compile.h: from the result of a load to a table. */
#ifndef MULL__COMPILE_H
#define MULL__COMPILE_H

#include "decide/decide.h"
#include "policy/table.h"
#include "sandbox.h"

/* mull__compile makes one table of the loaded sandboxes of a host policy, which may be NULL, and of
 * the policy before it. Functions are numbered in this order. Where there are mistakes, each goes
 * to the report, in the same order, and the answer is MULL_EPOLICY. MULL_ENOMEM. */
int mull__compile(mull__table **out, mull__sandbox *host, mull__sandbox *own, mull__report *report);

#endif
