/* compile.h: from the result of a load to a table. */
#ifndef MULL__COMPILE_H
#define MULL__COMPILE_H

#include "policy/table.h"
#include "sandbox.h"

/* mull__compile makes the table of a loaded sandbox. Where the policy has mistakes, each is told to
 * `problem` (NULL: nobody) in order, and the answer is MULL_EPOLICY. MULL_ENOMEM. */
int mull__compile(mull__table **out, mull__sandbox *sandbox, mull_problem_fn problem, void *data);

/* mull__compile_functions readies a loaded sandbox for mull__call_function. MULL_ENOMEM. */
int mull__compile_functions(mull__sandbox *sandbox);

/* mull__call_function calls the policy's `number`-th function with err and ctx: 1 where it gave
 * anything but nil and false, else 0; negative where it raised, with the reason in `why`. */
int mull__call_function(mull__sandbox *sandbox, uint32_t number, const mull_failure *failure,
                        char *why, size_t why_size);

#endif
