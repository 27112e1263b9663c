/* table.h: the decision table: immutable once built, so any number of threads may read it. */
#ifndef MULL__TABLE_H
#define MULL__TABLE_H

#include "plain.h"

typedef struct mull__table mull__table;

/* mull__table_new compiles a plain policy; all memory in it is its own. MULL_ENOMEM. */
int mull__table_new(mull__table **out, const mull_allocator *allocator, const mull__plain *plain);
void mull__table_free(mull__table *table);

/* mull__table_digest writes a content hash of the table: equal tables, equal hashes. */
void mull__table_digest(const mull__table *table, char hex[33]);

size_t mull__table_rules(const mull__table *table);
uint32_t mull__table_functions(const mull__table *table);

/* mull__runner runs function matchers: src/lua fills it in, policy/ only calls it. `match` gives 1
 * or 0, or a negative code where the function raised, with the reason in `why`. */
typedef struct mull__runner {
    int (*match)(void *state, uint32_t function, const mull_failure *failure, char *why,
                 size_t why_size);
    void *state;
    /* failed is told of a matcher that raised. NULL: nobody is. */
    void (*failed)(void *data, const mull_failure *failure, const mull_rule *rule, const char *why);
    void *data;
} mull__runner;

/* mull__judge gives the verdict on a failure, as language.md says under "Order". The failure is
 * complete and checked: no counter is missing, `chance` is set. Strings of the verdict are the
 * table's; `generation` and `size` are not touched. `seen` is scratch of mull__table_seen words. */
void mull__judge(const mull__table *table, const mull_failure *failure, const mull__runner *runner,
                 uint64_t *seen, mull_verdict *verdict);
size_t mull__table_seen(const mull__table *table);

/* ---- What is in force for a consumer on a transport: names or NULL --------------------------- */

typedef struct mull__in_force {
    const char *dead_letter_queue;
    int64_t max_age_ms;     /* MULL__OFF: none */
    int64_t max_attempts;   /* MULL__OFF: none */
    int64_t max_deliveries; /* MULL__OFF: none */
    size_t rule_count;
} mull__in_force;

void mull__table_in_force(const mull__table *table, const char *consumer, const char *transport,
                          mull__in_force *in_force);

/* mull__rule_view is a rule for those who look at a policy. `round_ms` is the longest that all its
 * retries in one hand-out may wait together, jitter and caps included. */
typedef struct mull__rule_view {
    mull_rule source;
    int retries, redelivers; /* such a tier with at least one attempt */
    int64_t retry_attempts;
    int64_t round_ms;
    mull_action end;
    const char *queue; /* as written; NULL */
} mull__rule_view;

/* mull__table_rule gives the `index`-th rule in force; `index` < rule_count. */
void mull__table_rule(const mull__table *table, const char *consumer, const char *transport,
                      size_t index, mull__rule_view *view);

#endif
