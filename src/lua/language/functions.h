/* functions.h: calls of a policy's functions: matchers, overrides, notifies. The signatures are
 * those of mull__language_ops, for a mull__sandbox that was loaded. Each call has the budget of
 * mull__function_budget; what it took of it is subtracted from `steps`. What it is given lives for
 * the call only. Where one raises, the answer is negative, and `why` says where and what. */
#ifndef MULL__FUNCTIONS_H
#define MULL__FUNCTIONS_H

#include "policy/table.h"
#include "sandbox.h"

/* mull__functions_open readies a loaded sandbox, once. `typed_by` is the loaded one that knows the
 * parents of all types: that of the policy, for its host policy; else NULL. MULL_ENOMEM. */
int mull__functions_open(mull__sandbox *sandbox, const mull__sandbox *typed_by);

/* mull__functions_match calls the `number`-th function with err and ctx: 1 where it gave anything
 * but nil and false, else 0. */
int mull__functions_match(void *sandbox, uint32_t number, const mull_failure *failure,
                          int64_t *steps, char *why, size_t why_size);

/* mull__functions_override: 0, and the answer, whose strings live until the next override in this
 * sandbox. A value that is no answer raises. */
int mull__functions_override(void *sandbox, uint32_t number, const mull_failure *failure,
                             const mull_verdict *verdict, const mull__config *config,
                             mull__answer *answer, char *why, size_t why_size);

int mull__functions_notify(void *sandbox, uint32_t number, const mull_event *event, int64_t *steps,
                           char *why, size_t why_size);

#endif
