/* decide.h: who may use which table when. docs/design.md, "Generations", draws it.
 *
 *   holder ──> generation (counted): table, name        published by one exchange
 *   decider ── seat: generation + Lua state             one a thread; a fresh one waits in its slot
 */
#ifndef MULL__DECIDE_H
#define MULL__DECIDE_H

#include "policy/table.h"

typedef struct mull__generation mull__generation;

/* mull__guest is how decide/ reaches the language that a policy is written in; src/lua fills one
 * in, and decide/ never sees Lua. All but `match` may fail with MULL_ENOMEM or MULL_EPOLICY. */
typedef struct mull__guest {
    /* compile reads the policy's file (or takes `text`) and gives its table, the content hash of
     * all files in `name`, and the kept text in `source`. Mistakes go to the policy's `problem`. */
    int (*compile)(void *data, const char *text, size_t text_size, mull__table **table,
                   char name[33], void **source);
    /* source_free gives back what compile kept. */
    void (*source_free)(void *data, void *source);
    /* state_new runs the kept text once more, for one decider. The table that it gives must have
     * the digest `digest`, or the policy isn't pure: MULL_EPOLICY. */
    int (*state_new)(void *data, void *source, const char *digest, void **state);
    void (*state_free)(void *data, void *state);
    int (*match)(void *state, uint32_t function, const mull_failure *failure, char *why,
                 size_t why_size);
    /* data_free gives back `data`, last of all. */
    void (*data_free)(void *data);
} mull__guest;

/* mull__policy_new makes a holder and loads its first generation. It owns `data` from the first
 * moment, on failure too. */
int mull__policy_new(mull_policy **out, const mull_policy_options *options,
                     const mull__guest *guest, void *data);

/* mull__decider_generation is the generation that the decider's last decision came from, which the
 * caller may keep with mull__generation_keep: counted, so that a verdict's strings stay. */
mull__generation *mull__decider_generation(mull_decider *decider);
mull__generation *mull__generation_keep(mull__generation *generation);
void mull__generation_drop(mull__generation *generation);
const mull__table *mull__generation_table(const mull__generation *generation);
const char *mull__generation_name(const mull__generation *generation);

/* mull__policy_current keeps and gives the generation in force. */
mull__generation *mull__policy_current(mull_policy *policy);

#endif
