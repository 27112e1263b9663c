/* table.h: the decision table: immutable once finished, so any number of threads may read it. */
#ifndef MULL__TABLE_H
#define MULL__TABLE_H

#include "model.h"
#include "settings.h"

typedef struct mull__table mull__table;

/* mull__table_begin makes an empty table. The caller gives it scopes, with their rules and
 * settings, and a function_count (see table_internal.h). What these point to is in the table's
 * arena, or outlives the table. MULL_ENOMEM. */
int mull__table_begin(mull__table **out, const mull_allocator *allocator);

/* mull__table_finish works out the rest: types, from the rules and the declared parents; labels;
 * and what is in force where. Nothing in the table changes after that. MULL_ENOMEM: the table can
 * only be freed. */
int mull__table_finish(mull__table *table, const mull__type_parent *parents, size_t count);

void mull__table_free(mull__table *table);

/* mull__table_digest writes a content hash of the table: equal tables, equal hashes. */
void mull__table_digest(const mull__table *table, char hex[33]);

/* mull__rate_limit_counts: a failure with this error counts for a rate_limit of the table, by
 * `only` and `except`, each with the types that descend from those named. Both may be said: then
 * what `only` names counts, but for what `except` names. */
int mull__rate_limit_counts(const mull__table *table, const mull__rate_limit *limit,
                            const mull_error *error);

/* ---- Deciding -------------------------------------------------------------------------------- */

/* mull__answer is what an override returned. */
typedef struct mull__answer {
    int given; /* 0: nothing, the verdict stands */
    mull_action action;
    int64_t delay_ms;  /* of a retry or a redelivery */
    const char *queue; /* NULL: the default queue; the state's, until its next call */
    const char *note;  /* NULL: none; likewise */
} mull__answer;

/* mull__config is what an override may look at of the settings and rules in force. */
typedef struct mull__config_tier {
    int64_t attempts;     /* MULL_UNLIMITED; 0 where it is off or not available here */
    int64_t delay_ms;     /* of the first step, jitter left out */
    int64_t max_delay_ms; /* MULL__NO_CAP: none */
    mull__backoff backoff;
    int has_list; /* its delays are named one by one, and `backoff` says nothing */
} mull__config_tier;

typedef struct mull__config {
    const char *dead_letter_queue;
    int64_t max_age_ms, max_attempts; /* MULL__OFF: none */
    const char *const *unrecoverable; /* names of types */
    size_t unrecoverable_count;
    mull__config_tier retry, redeliver; /* of the default() in force, the same for every failure */
    int has_rule;                       /* 0: no rule decided, and the next two are nothing */
    mull__config_tier rule_retry, rule_redeliver; /* of the rule that decided */
} mull__config;

/* mull__match_attempt is one candidate that was looked at on the way to a verdict. */
typedef enum mull__attempt_kind {
    MULL__TRIED_UNRECOVERABLE,
    MULL__TRIED_RULE,
    MULL__TRIED_CAUSE_RULE
} mull__attempt_kind;

typedef enum mull__attempt_result {
    MULL__ATTEMPT_PASSED,
    MULL__ATTEMPT_FAILED,
    MULL__ATTEMPT_RAISED
} mull__attempt_result;

typedef struct mull__match_attempt {
    mull__attempt_kind kind;
    mull__attempt_result end;
    const mull_rule *source; /* file NULL: the built-in unrecoverable declaration */
    const mull__matcher *matcher;
    const mull__field_test *test; /* at which a matcher lost; NULL where there is none to name */
    unsigned depth;               /* cause rules: 1 for the error's cause, and so on; else 0 */
    int64_t steps;                /* of patterns that it took */
    const char *why;              /* raised: why; else NULL */
} mull__match_attempt;

/* What runs for one decision may take so many steps in all: of functions, instructions; of
 * `matches`, looks at a pattern. It is ten times what one call, or one matcher's patterns, may. */
enum { MULL__CALL_STEPS = 100000, MULL__DECISION_STEPS = 10 * MULL__CALL_STEPS };

/* mull__runner runs the policy's functions and hears what happens on the way to a verdict: src/lua
 * and decide/ fill it in, policy/ only calls it. */
typedef struct mull__runner {
    /* match gives 1 or 0, or a negative code where the function raised, with the reason in `why`. A
     * cause rule's failure has the cause as its error. What it took is subtracted from `steps`. */
    int (*match)(void *state, uint32_t function, const mull_failure *failure, int64_t *steps,
                 char *why, size_t why_size);
    void *state;
    /* failed is told of a matcher that raised, of a rule or an unrecoverable declaration. NULL:
     * nobody is. */
    void (*failed)(void *data, const mull_failure *failure, const mull_rule *rule, const char *why);
    void *data;
    /* override gives 0, or a negative code where the function raised or gave a wrong value, with
     * the reason in `why`. NULL: no override is asked. */
    int (*override)(void *state, uint32_t function, const mull_failure *failure,
                    const mull_verdict *verdict, const mull__config *config, mull__answer *answer,
                    char *why, size_t why_size);
    /* override_failed is told why an override's answer doesn't count. NULL: nobody is. */
    void (*override_failed)(void *data, const mull_failure *failure, const mull_verdict *verdict,
                            const char *why);
    /* tried is told of each candidate, in the order in which they are looked at; by mull__evaluate
     * only. NULL: nobody is. */
    void (*tried)(void *data, const mull__match_attempt *trial);
} mull__runner;

/* Flags of a failure besides those of mulligan.h: every draw is at that end of its span. */
#define MULL__JITTER_LOW  (UINT32_C(1) << 30)
#define MULL__JITTER_HIGH (UINT32_C(1) << 31)

/* mull__evaluate gives the verdict on a failure, as language.md says under "Order". The failure is
 * complete and checked: no counter is missing, `chance` is set. `seen` is scratch of
 * mull__table_scratch_words words. Strings of the verdict are the table's, or of an override's
 * state; `generation` and `size` are not touched. */
void mull__evaluate(const mull__table *table, const mull_failure *failure,
                    const mull__runner *runner, uint64_t *seen, mull_verdict *verdict);
size_t mull__table_scratch_words(const mull__table *table);

#endif
