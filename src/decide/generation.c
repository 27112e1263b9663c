/* generation.c: a policy as it was loaded at one moment, and the seats that decide by it. */
#include "policy.h"

#include <string.h>

#include "base/alloc.h"

struct mull__generation {
    atomic_size_t refs;
    mull_policy *policy;
    mull__table *table;
    void *source;    /* the guest's */
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
    int status = policy->guest.compile(policy->language_data, load);
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
    policy->guest.source_free(policy->language_data, generation->source);
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
    mull__decider_state *seat =
        mull__zalloc(a, 1, sizeof *seat + words * sizeof *seat->seen + MULL__CACHE_LINE);
    if (!seat)
        return MULL_ENOMEM;
    if (generation->table->function_count > 0) {
        int status = policy->guest.state_new(policy->language_data, generation->source,
                                             generation->digest, report, &seat->state);
        if (status) {
            mull__free(a, seat);
            return status;
        }
    }
    atomic_init(&seat->refs, 1);
    seat->generation = mull__generation_ref(generation);
    seat->table = generation->table;
    seat->resolved = &generation->resolved;
    seat->name = generation->name;
    *out = seat;
    return MULL_OK;
}

void mull__decider_state_unref(mull__decider_state *seat)
{
    if (!seat || atomic_fetch_sub_explicit(&seat->refs, 1, memory_order_acq_rel) > 1)
        return;
    /* The generation goes last: it may be what keeps the guest and the allocator alive. */
    mull__generation *generation = seat->generation;
    mull_policy *policy = generation->policy;
    if (seat->state)
        policy->guest.state_free(policy->language_data, seat->state);
    mull__free(&policy->allocator, seat);
    mull__generation_unref(generation);
}

int mull__decider_state_notify(mull__decider_state *seat, uint32_t function,
                               const mull_event *event, int64_t *steps, char *why, size_t why_size)
{
    const mull__language_ops *guest = &seat->generation->policy->guest;
    return guest->notify(seat->state, function, event, steps, why, why_size);
}
