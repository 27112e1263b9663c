/* decider_functions.h: the functions of a policy and its host policy, for one decider: the state of
 * mull__language_ops, and what is done with it. */
#ifndef MULL__DECIDER_FUNCTIONS_H
#define MULL__DECIDER_FUNCTIONS_H

#include "decide/decide.h"

int mull__decider_functions_new(void *texts, void *source, const char *digest, mull__report *report,
                                void **state);
void mull__decider_functions_free(void *texts, void *state);
int mull__decider_functions_match(void *state, uint32_t number, const mull_failure *failure,
                                  int64_t *steps, char *why, size_t why_size);
int mull__decider_functions_override(void *state, uint32_t number, const mull_failure *failure,
                                     const mull_verdict *verdict, const mull__config *config,
                                     mull__answer *answer, char *why, size_t why_size);
int mull__decider_functions_notify(void *state, uint32_t number, const mull_event *event,
                                   int64_t *steps, char *why, size_t why_size);

#endif
