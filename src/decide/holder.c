/* holder.c: mull_policy: which generation is in force, and how another takes its place.
 *
 * Two locks. `building` is held by whoever runs the guest to build something, which may take long:
 * a reload from its first line to its last, and a decider's first seat. So the generation in force
 * doesn't change, and the list doesn't grow, under a reload. `lock` guards the list and the pointer
 * for a few instructions, and nothing foreign is called under it. Deciding takes neither. */
#include "holder.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"

struct mull_policy {
    mull_allocator allocator;
    atomic_size_t keepers;
    mull__guest guest;
    void *guest_data;
    mull_event_fn event;
    void *event_data;
    pthread_mutex_t building, lock;
    mull__generation *current;
    mull__list deciders;
};

/* ---- The holder's life ----------------------------------------------------------------------- */

void mull__holder_keep(mull_policy *policy)
{
    atomic_fetch_add_explicit(&policy->keepers, 1, memory_order_relaxed);
}

void mull__holder_drop(mull_policy *policy)
{
    if (atomic_fetch_sub_explicit(&policy->keepers, 1, memory_order_acq_rel) > 1)
        return;
    pthread_mutex_destroy(&policy->lock);
    pthread_mutex_destroy(&policy->building);
    const mull_allocator a = policy->allocator;
    const mull__guest guest = policy->guest;
    void *data = policy->guest_data;
    mull__free(&a, policy);
    guest.data_free(data);
}

const mull_allocator *mull__holder_allocator(const mull_policy *policy)
{
    return &policy->allocator;
}

const mull__guest *mull__holder_guest(const mull_policy *policy, void **data)
{
    *data = policy->guest_data;
    return &policy->guest;
}

/* make_building_lock: one that knows its owner, so that an embedder who loads again, or makes a
 * decider, out of the `problem` or `log` of a load gets an error and not a thread that stands. */
static int make_building_lock(pthread_mutex_t *building)
{
    pthread_mutexattr_t checked;
    if (pthread_mutexattr_init(&checked))
        return MULL_ENOMEM;
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    int status = pthread_mutex_init(building, &checked) ? MULL_ENOMEM : MULL_OK;
    pthread_mutexattr_destroy(&checked);
    return status;
}

static int make_locks(mull_policy *policy)
{
    int status = make_building_lock(&policy->building);
    if (status)
        return status;
    if (pthread_mutex_init(&policy->lock, NULL) == 0)
        return MULL_OK;
    pthread_mutex_destroy(&policy->building);
    return MULL_ENOMEM;
}

/* holder_new makes a holder without a generation. */
static mull_policy *holder_new(const mull_policy_options *options, const mull__guest *guest,
                               void *data)
{
    mull_allocator a = mull__allocator_or_default(options->allocator);
    mull_policy *policy = mull__zalloc(&a, 1, sizeof *policy);
    if (!policy)
        return NULL;
    policy->allocator = a;
    if (make_locks(policy)) {
        mull__free(&a, policy);
        return NULL;
    }
    atomic_init(&policy->keepers, 1);
    policy->guest = *guest;
    policy->guest_data = data;
    policy->event = options->event;
    policy->event_data = options->data;
    mull__list_init(&policy->deciders);
    return policy;
}

int mull__policy_new(mull_policy **out, const mull_policy_options *options,
                     const mull__guest *guest, void *data)
{
    *out = NULL;
    mull_policy *policy = holder_new(options, guest, data);
    if (!policy) {
        guest->data_free(data);
        return MULL_ENOMEM;
    }
    int status = mull__generation_new(&policy->current, policy, options->text, options->text_size);
    if (status) {
        mull__holder_drop(policy);
        return status;
    }
    *out = policy;
    return MULL_OK;
}

void mull_policy_free(mull_policy *policy)
{
    if (!policy)
        return;
    mull__generation_drop(policy->current);
    mull__holder_drop(policy);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

mull__generation *mull__policy_current(mull_policy *policy)
{
    pthread_mutex_lock(&policy->lock);
    mull__generation *current = mull__generation_keep(policy->current);
    pthread_mutex_unlock(&policy->lock);
    return current;
}

void mull_policy_generation(mull_policy *policy, char name[33])
{
    mull__generation *current = mull__policy_current(policy);
    memcpy(name, mull__generation_name(current), 33);
    mull__generation_drop(current);
}

size_t mull_policy_rules(mull_policy *policy)
{
    mull__generation *current = mull__policy_current(policy);
    size_t rules = mull__table_rules(mull__generation_table(current));
    mull__generation_drop(current);
    return rules;
}

void mull__holder_tell(const mull_policy *policy, const mull_event *event)
{
    if (policy->event)
        policy->event(event, policy->event_data);
}

/* ---- Deciders come and go -------------------------------------------------------------------- */

int mull__holder_join(mull_policy *policy, mull_decider *decider)
{
    if (pthread_mutex_lock(&policy->building))
        return MULL_ESTATE;
    int status = mull__seat_new(&decider->seat, policy, policy->current);
    if (status == MULL_OK) {
        pthread_mutex_lock(&policy->lock);
        mull__list_push(&policy->deciders, &decider->link);
        pthread_mutex_unlock(&policy->lock);
    }
    pthread_mutex_unlock(&policy->building);
    return status;
}

void mull__holder_leave(mull_policy *policy, mull_decider *decider)
{
    pthread_mutex_lock(&policy->lock);
    mull__list_remove(&policy->deciders, &decider->link);
    pthread_mutex_unlock(&policy->lock);
}

/* ---- Reloading ------------------------------------------------------------------------------- */

/* staged is what a reload has built: a generation, and seats for it, as many as there are deciders.
 * Once published, `seats` holds what came out of their slots. */
typedef struct staged {
    mull__generation *generation;
    uintptr_t *seats;
    size_t count;
} staged;

static void unstage(mull_policy *policy, staged *s)
{
    for (size_t i = 0; i < s->count; i++)
        mull__seat_free((mull__seat *)(s->seats[i] & ~MULL__FRESH));
    mull__free(&policy->allocator, s->seats);
    mull__generation_drop(s->generation);
}

/* add_seats stages a seat for each decider; some of these may leave meanwhile, none can join. */
static int add_seats(mull_policy *policy, staged *s)
{
    pthread_mutex_lock(&policy->lock);
    size_t wanted = policy->deciders.count;
    pthread_mutex_unlock(&policy->lock);
    s->seats = mull__zalloc(&policy->allocator, wanted, sizeof *s->seats);
    if (!s->seats)
        return MULL_ENOMEM;
    for (; s->count < wanted; s->count++) {
        mull__seat *seat;
        int status = mull__seat_new(&seat, policy, s->generation);
        if (status)
            return status;
        s->seats[s->count] = (uintptr_t)seat | MULL__FRESH;
    }
    return MULL_OK;
}

/* publish puts the staged generation in force; what it replaced is staged then, to be freed. */
static void publish(mull_policy *policy, staged *s)
{
    size_t next = 0;
    pthread_mutex_lock(&policy->lock);
    mull__generation *old = policy->current;
    policy->current = s->generation;
    s->generation = old;
    for (mull__link *at = mull__list_first(&policy->deciders); at;
         at = mull__list_after(&policy->deciders, at)) {
        mull_decider *decider = MULL__ENTRY(at, mull_decider, link);
        uintptr_t fresh = s->seats[next];
        s->seats[next++] = atomic_exchange_explicit(&decider->slot, fresh, memory_order_acq_rel);
    }
    pthread_mutex_unlock(&policy->lock);
}

/* reload builds and publishes, under `building`. 1: the same bytes as those in force. */
static int reload(mull_policy *policy, const char *text, size_t text_size)
{
    staged s = {0};
    int status = mull__generation_new(&s.generation, policy, text, text_size);
    if (status)
        return status;
    if (strcmp(mull__generation_name(s.generation), mull__generation_name(policy->current)) == 0)
        status = 1;
    else
        status = add_seats(policy, &s);
    if (status == MULL_OK)
        publish(policy, &s);
    unstage(policy, &s);
    return status;
}

int mull_policy_reload(mull_policy *policy, const char *text, size_t text_size)
{
    if (!policy)
        return MULL_EINVAL;
    if (pthread_mutex_lock(&policy->building))
        return MULL_ESTATE;
    int status = reload(policy, text, text_size);
    mull__generation *current = mull__policy_current(policy);
    pthread_mutex_unlock(&policy->building);
    /* No lock is held here: whoever is told may ask, or even load again. */
    if (status <= 0)
        mull__holder_tell(policy,
                          &(mull_event){
                              .kind = status ? MULL_EVENT_POLICY_REFUSED : MULL_EVENT_POLICY_LOADED,
                              .text = status ? mull_strerror(status) : NULL,
                              .generation = mull__generation_name(current),
                          });
    mull__generation_drop(current);
    return status;
}
