/* policy.c: mull_policy: which generation is in force, and who decides by it. How another takes its
 * place is in reload.c. */
#include "policy.h"

#include <string.h>

#include "base/alloc.h"

/* ---- The policy's life ----------------------------------------------------------------------- */

void mull__policy_unref(mull_policy *policy)
{
    if (atomic_fetch_sub_explicit(&policy->refs, 1, memory_order_acq_rel) > 1)
        return;
    mull__ids_free(&policy->ids);
    pthread_mutex_destroy(&policy->lock);
    pthread_mutex_destroy(&policy->validating);
    pthread_mutex_destroy(&policy->building);
    const mull_allocator a = policy->allocator;
    const mull__language_ops language = policy->language;
    void *data = policy->language_data;
    mull__free(&a, policy->files);
    mull__free(&a, policy->host_path);
    mull__free(&a, policy->path);
    mull__free(&a, policy);
    language.data_free(data);
}

/* make_checked_lock: one that knows its owner, so that an embedder who loads again, or makes a
 * decider, out of the `problem` or `log` of a load gets an error and not a thread that stands. */
static int make_checked_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t checked;
    if (pthread_mutexattr_init(&checked))
        return MULL_ENOMEM;
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    int status = pthread_mutex_init(lock, &checked) ? MULL_ENOMEM : MULL_OK;
    pthread_mutexattr_destroy(&checked);
    return status;
}

/* make_locks leaves those that could be made where one can't: they hold no memory. */
static int make_locks(mull_policy *policy)
{
    if (make_checked_lock(&policy->building) || make_checked_lock(&policy->validating) ||
        pthread_mutex_init(&policy->lock, NULL))
        return MULL_ENOMEM;
    return mull__ids_init(&policy->ids, &policy->allocator);
}

/* policy_new makes a policy without a generation. */
static mull_policy *policy_new(const mull_policy_options *options,
                               const mull__language_ops *language, void *data)
{
    mull_allocator a = mull__allocator_or_default(options->allocator);
    mull_policy *policy = mull__zalloc(&a, 1, sizeof *policy);
    if (!policy)
        return NULL;
    policy->allocator = a;
    int has_host = options->host_path || options->host_text;
    policy->path = mull__strdup(&a, options->path ? options->path : "policy.lua");
    if (has_host)
        policy->host_path = mull__strdup(&a, options->host_path ? options->host_path : "host.lua");
    if (!policy->path || has_host != (policy->host_path != NULL) || make_locks(policy)) {
        mull__free(&a, policy->host_path);
        mull__free(&a, policy->path);
        mull__free(&a, policy);
        return NULL;
    }
    atomic_init(&policy->refs, 1);
    atomic_init(&policy->users, 1);
    policy->language = *language;
    policy->language_data = data;
    policy->has_files = !options->text || (has_host && !options->host_text);
    policy->problem = options->problem;
    policy->event = options->event;
    policy->data = options->data;
    mull__list_init(&policy->deciders);
    mull__list_init(&policy->validators);
    return policy;
}

int mull__policy_new(mull_policy **out, const mull_policy_options *options,
                     const mull__language_ops *language, void *data)
{
    *out = NULL;
    mull_policy *policy = policy_new(options, language, data);
    if (!policy) {
        language->data_free(data);
        return MULL_ENOMEM;
    }
    int status = mull__policy_load_first(policy, options);
    if (status) {
        mull__policy_unref(policy);
        return status;
    }
    *out = policy;
    return MULL_OK;
}

/* mull_policy_free: without users nothing is in force any more. */
void mull_policy_free(mull_policy *policy)
{
    if (!policy || atomic_fetch_sub_explicit(&policy->users, 1, memory_order_acq_rel) > 1)
        return;
    mull__generation_unref(policy->current);
    mull__policy_unref(policy);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

mull__generation *mull__policy_current(mull_policy *policy)
{
    pthread_mutex_lock(&policy->lock);
    mull__generation *current = mull__generation_ref(policy->current);
    pthread_mutex_unlock(&policy->lock);
    return current;
}

void mull_policy_generation(mull_policy *policy, char name[33])
{
    if (!name)
        return;
    name[0] = '\0';
    if (!policy)
        return;
    mull__generation *current = mull__policy_current(policy);
    memcpy(name, mull__generation_name(current), 33);
    mull__generation_unref(current);
}

size_t mull_policy_rules(mull_policy *policy)
{
    if (!policy)
        return 0;
    mull__generation *current = mull__policy_current(policy);
    size_t rules = mull__generation_table(current)->rule_count;
    mull__generation_unref(current);
    return rules;
}

void mull__policy_emit(const mull_policy *policy, const mull_event *event)
{
    if (policy->event)
        policy->event(event, policy->data);
}
