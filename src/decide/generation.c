/* generation.c: a policy as it was loaded at one moment, and the decider states that decide by it.
 */
#include "policy.h"

#include <string.h>

#include "base/alloc.h"

struct mull__generation {
    atomic_size_t refs;
    mull_policy *policy;
    mull__table *table;
    void *source;    /* the language's */
    char name[33];   /* content hash of the files */
    char digest[33]; /* content hash of a table that needs states */
    mull__resolved_ids resolved;
};

/* ---- Generations ----------------------------------------------------------------------------- */

int mull__generation_new(mull__generation **out, mull_policy *policy, mull__load *load)
{
    *out = NULL;
    if (load->text && load->text_size == 0)
        load->text_size = strlen(load->text);
    mull__generation *g = mull__zalloc(&policy->allocator, 1, sizeof *g);
    if (!g)
        return MULL_ENOMEM;
    int status = policy->language.compile(policy->language_data, load);
    if (status) {
        mull__free(&policy->allocator, g);
        return status;
    }
    atomic_init(&g->refs, 1);
    g->table = load->table;
    g->source = load->source;
    memcpy(g->name, load->name, sizeof g->name);
    g->policy = policy;
    atomic_fetch_add_explicit(&policy->refs, 1, memory_order_relaxed);
    if (mull__resolved_init(&g->resolved, &policy->ids, load->table)) {
        mull__generation_unref(g);
        return MULL_ENOMEM;
    }
    if (g->table->function_count > 0)
        mull__table_digest(g->table, g->digest);
    *out = g;
    return MULL_OK;
}

mull__generation *mull__generation_ref(mull__generation *generation)
{
    atomic_fetch_add_explicit(&generation->refs, 1, memory_order_relaxed);
    return generation;
}

void mull__generation_unref(mull__generation *generation)
{
    if (!generation || atomic_fetch_sub_explicit(&generation->refs, 1, memory_order_acq_rel) > 1)
        return;
    mull_policy *policy = generation->policy;
    mull__resolved_free(&generation->resolved);
    mull__table_free(generation->table);
    policy->language.source_free(policy->language_data, generation->source);
    mull__free(&policy->allocator, generation);
    mull__policy_unref(policy);
}

const mull__table *mull__generation_table(const mull__generation *generation)
{
    return generation->table;
}

const char *mull__generation_name(const mull__generation *generation)
{
    return generation->name;
}

/* ---- Seats ----------------------------------------------------------------------------------- */

int mull__decider_state_new(mull__decider_state **out, mull_policy *policy,
                            mull__generation *generation, mull__report *report)
{
    *out = NULL;
    const mull_allocator *a = &policy->allocator;
    size_t words = mull__table_scratch_words(generation->table);
    mull__decider_state *decider_state = mull__zalloc(
        a, 1, sizeof *decider_state + words * sizeof *decider_state->seen + MULL__CACHE_LINE);
    if (!decider_state)
        return MULL_ENOMEM;
    if (generation->table->function_count > 0) {
        int status = policy->language.state_new(policy->language_data, generation->source,
                                                generation->digest, report, &decider_state->state);
        if (status) {
            mull__free(a, decider_state);
            return status;
        }
    }
    atomic_init(&decider_state->refs, 1);
    decider_state->generation = mull__generation_ref(generation);
    decider_state->table = generation->table;
    decider_state->resolved = &generation->resolved;
    decider_state->name = generation->name;
    *out = decider_state;
    return MULL_OK;
}

void mull__decider_state_unref(mull__decider_state *decider_state)
{
    if (!decider_state ||
        atomic_fetch_sub_explicit(&decider_state->refs, 1, memory_order_acq_rel) > 1)
        return;
    /* The generation goes last: it may be what keeps the language and the allocator alive. */
    mull__generation *generation = decider_state->generation;
    mull_policy *policy = generation->policy;
    if (decider_state->state)
        policy->language.state_free(policy->language_data, decider_state->state);
    mull__free(&policy->allocator, decider_state);
    mull__generation_unref(generation);
}

int mull__decider_state_notify(mull__decider_state *decider_state, uint32_t function,
                               const mull_event *event, int64_t *steps, char *why, size_t why_size)
{
    const mull__language_ops *language = &decider_state->generation->policy->language;
    return language->notify(decider_state->state, function, event, steps, why, why_size);
}
