/* compile.h: from the result of a load to a table. */
#ifndef MULL__COMPILE_H
#define MULL__COMPILE_H

#include "decide/decide.h"
#include "policy/table.h"
#include "sandbox.h"

/* mull__compile makes the table of a loaded sandbox. Where the policy has mistakes, each goes to
 * the report, in order, and the answer is MULL_EPOLICY. MULL_ENOMEM. */
int mull__compile(mull__table **out, mull__sandbox *sandbox, mull__report *report);

#endif
