/* explain.h: why a verdict is what it is, and what follows from it: data only, for those who look
 * at a policy.
 *
 *   the failure ──> verdict, and each candidate that was looked at on the way
 *               └─> timeline: what becomes of it if every later call fails with the same error,
 *                   walked twice, with every jitter at its low and at its high end
 *
 * Handlers take no time here. */
#ifndef MULL__EXPLAIN_H
#define MULL__EXPLAIN_H

#include "base/arena.h"
#include "policy/table.h"

/* mull__candidate is a rule or declaration that was looked at. */
typedef struct mull__candidate {
    mull__match_attempt trial; /* its strings live as long as the explanation */
    const mull_error *error;   /* that it was looked at for: the failure's, or a cause */
    mull_value given;          /* what trial.test, at which it lost, looked at: its strings are the
                                  failure's; MULL_NIL: there is no such field, or no test to name */
} mull__candidate;

enum { MULL__LOW, MULL__HIGH, MULL__ENDS };

/* mull__step is a call that failed, and what was decided. The two ends are alike on a walk that
 * has parted from the other. */
typedef struct mull__step {
    int64_t at_ms[MULL__ENDS]; /* from now */
    int64_t attempt, redeliveries, calls;
    int64_t delay_ms[MULL__ENDS];
    mull_verdict verdict;
} mull__step;

/* A strip keeps so many steps of its beginning and of its end. */
enum { MULL__TIMELINE_FIRST = 1000, MULL__TIMELINE_LAST = 100 };

/* mull__timeline_part is a part of the timeline: `count` steps, of which those in the middle are
 * left out.
 */
typedef struct mull__timeline_part {
    int64_t count;
    mull__step *first, *last; /* of one array with `kept` steps, which is `first` */
    size_t first_count, last_count, kept;
} mull__timeline_part;

/* After so many calls of the handler a timeline is cut; as many is the most that chains without
 * "unlimited" lead to. It is cut earlier after so many calls of the policy's functions, each of
 * which takes far longer than all the rest of a decision, or after so many tests of matchers, each
 * rule without one counting as a test. */
enum {
    MULL__CALLS_MAX = 1001 * 1001,
    MULL__FUNCTION_CALLS_MAX = 200000,
    MULL__TESTS_MAX = 20000000
};

typedef struct mull__explanation {
    mull__arena arena;           /* has all that is kept */
    const mull_failure *failure; /* that mull__explain was given, while it runs */
    mull_verdict verdict;
    mull_verdict by_rules;       /* what it was before the override in force; else as `verdict` */
    int is_overridden;           /* an override is in force */
    const char *override_failed; /* why its answer doesn't count; NULL: it does */
    mull__candidate *candidates;
    size_t candidate_count;
    mull__timeline_part both;              /* while the two walks decide alike */
    mull__timeline_part alone[MULL__ENDS]; /* from where they part; empty where they don't */
    int is_cut;
    int status; /* MULL_ENOMEM as soon as something is missing */
} mull__explanation;

/* mull__explain fills in an explanation, to be given back by mull__explanation_drop on failure too.
 * The failure is as for mull__evaluate, and `runner` is only asked. Strings are the table's, but
 * for those said to be others'. MULL_ENOMEM. */
int mull__explain(mull__explanation *out, const mull_allocator *allocator, const mull__table *table,
                  const mull_failure *failure, const mull__runner *runner, uint64_t *seen);
void mull__explanation_drop(mull__explanation *explanation);

#endif
