/* decider.c: mull_decide, for one thread. It takes no lock and no memory.
 *
 *   mull_decide               takes the fresh decider state that a reload may have left
 *     mull__decide_current    refuses what can't be read
 *       (resolve.h)           ids or names -> the number of the type, the site
 *       mull__fast_path       another call by the first rule, as most verdicts are
 *       decide_slowly         all else, with defaults and names put in
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/struct_compat.h"
#include "policy.h"
#include "policy/delay.h"
#include "policy/evaluate.h"

/* ---- What a decision meets -------------------------------------------------------------------
 *
 * Only the slow path comes here, and has marked the decider as deciding. */

static int ask(void *state, uint32_t function, const mull_failure *failure, int64_t *steps,
               char *why, size_t why_size)
{
    const mull_decider *decider = state;
    return decider->policy->language.match(decider->decider_state->state, function, failure, steps,
                                           why, why_size);
}

static int ask_override(void *state, uint32_t function, const mull_failure *failure,
                        const mull_verdict *verdict, const mull__config *config,
                        mull__answer *answer, char *why, size_t why_size)
{
    const mull_decider *decider = state;
    return decider->policy->language.override(decider->decider_state->state, function, failure,
                                              verdict, config, answer, why, why_size);
}

static void tell(const mull_decider *decider, mull_event *event)
{
    event->generation = decider->decider_state->name;
    mull__policy_emit(decider->policy, event);
    if (decider->hear)
        decider->hear(event, decider->hear_data);
}

static void matcher_failed(void *data, const mull_failure *failure, const mull_rule *rule,
                           const char *why)
{
    mull_event event = {
        .kind = MULL_EVENT_MATCHER_FAILED, .failure = failure, .rule = rule, .text = why};
    tell(data, &event);
}

static void override_failed(void *data, const mull_failure *failure, const mull_verdict *verdict,
                            const char *why)
{
    mull_event event = {
        .kind = MULL_EVENT_OVERRIDE_FAILED, .failure = failure, .verdict = verdict, .text = why};
    tell(data, &event);
}

/* ---- Coming and going ------------------------------------------------------------------------ */

/* join gives a decider its first decider state and has the policy take it in. Errors as
 * mull__decider_state_new; MULL_ESTATE: called out of a load of the same policy. */
static int join(mull_policy *policy, mull_decider *decider)
{
    if (pthread_mutex_lock(&policy->building))
        return MULL_ESTATE;
    mull__report report = {.problem = policy->problem, .data = policy->data};
    int status = mull__decider_state_new(&decider->decider_state, policy, policy->current, &report);
    if (status == MULL_OK) {
        atomic_fetch_add_explicit(&policy->users, 1, memory_order_relaxed);
        pthread_mutex_lock(&policy->lock);
        mull__list_push(&policy->deciders, &decider->link);
        pthread_mutex_unlock(&policy->lock);
    }
    pthread_mutex_unlock(&policy->building);
    return status;
}

int mull_decider_new(mull_decider **out, mull_policy *policy)
{
    if (!out)
        return MULL_EINVAL;
    *out = NULL;
    if (!policy)
        return MULL_EINVAL;
    mull_decider *decider = mull__zalloc(&policy->allocator, 1, sizeof *decider);
    if (!decider)
        return MULL_ENOMEM;
    decider->policy = policy;
    atomic_init(&decider->slot, 0);
#if defined(MULL__CHECKS)
    atomic_flag_clear_explicit(&decider->entered, memory_order_relaxed);
#endif
    decider->runner = (mull__runner){
        .match = ask,
        .override = ask_override,
        .state = decider,
        .failed = matcher_failed,
        .override_failed = override_failed,
        .data = decider,
    };
    int status = join(policy, decider);
    if (status)
        mull__free(&policy->allocator, decider);
    else
        *out = decider;
    return status;
}

void mull_decider_free(mull_decider *decider)
{
    if (!decider)
        return;
    mull_policy *policy = decider->policy;
    const mull_allocator a = policy->allocator;
    pthread_mutex_lock(&policy->lock);
    mull__list_remove(&policy->deciders, &decider->link); /* no reload touches it any more */
    pthread_mutex_unlock(&policy->lock);
    mull_policy_free(policy); /* its memory stays while a decider state keeps it */
    uintptr_t waiting = atomic_load_explicit(&decider->slot, memory_order_acquire);
    mull__decider_state_unref((mull__decider_state *)(waiting & ~MULL__NEW_STATE_MARK));
    mull__decider_state_unref(decider->decider_state);
    mull__free(&a, decider);
}

static MULL__ALWAYS_INLINE uintptr_t has_fresh_state(mull_decider *decider)
{
    return atomic_load_explicit(&decider->slot, memory_order_relaxed) & MULL__NEW_STATE_MARK;
}

/* take_fresh_state: only a reload marks a slot, and only this takes a mark away, so that what comes
 * out is marked for sure, even if another reload came between. A decider state at work is kept. */
static void take_fresh_state(mull_decider *decider)
{
    if (!has_fresh_state(decider) || decider->deciding)
        return;
    uintptr_t fresh = atomic_exchange_explicit(&decider->slot, (uintptr_t)decider->decider_state,
                                               memory_order_acq_rel);
    decider->decider_state = (mull__decider_state *)(fresh & ~MULL__NEW_STATE_MARK);
}

mull__generation *mull__decider_generation(mull_decider *decider)
{
    return decider->decider_state->generation;
}

mull__generation *mull__decider_refresh(mull_decider *decider)
{
    take_fresh_state(decider);
    return decider->decider_state->generation;
}

mull__decider_state *mull__decider_state_ref(mull_decider *decider)
{
    atomic_fetch_add_explicit(&decider->decider_state->refs, 1, memory_order_relaxed);
    return decider->decider_state;
}

void mull__decider_on_event(mull_decider *decider, mull_event_fn hear, void *data)
{
    decider->hear = hear;
    decider->hear_data = data;
}

/* ---- What a failure must be ------------------------------------------------------------------ */

/* is_readable: the structs are there, in sizes of some release. */
static MULL__ALWAYS_INLINE int is_readable(const mull_failure *f)
{
    return f && f->size >= MULL__FAILURE_LEAST &&
           (!f->error || f->error->size >= MULL__ERROR_LEAST) &&
           (!f->message || f->message->size >= MULL__MESSAGE_LEAST);
}

/* has_name: of its error's type. */
static MULL__ALWAYS_INLINE int has_name(const mull_failure *f)
{
    return f->error && f->error->type && *f->error->type;
}

/* KNOWN are all flags that an embedder may set. */
#define KNOWN ((uint32_t)(MULL_CANNOT_RETRY | MULL_CANNOT_DELAY | MULL_NO_JITTER | MULL_HAS_CHANCE))

/* is_right: there is a type, no number is below 0, which is where its sign is set, and no flag is a
 * mystery. */
static int is_right(const mull_failure *f)
{
    return (f->type || has_name(f)) &&
           (f->attempt | f->redeliveries | f->calls | f->deliveries | f->age_ms) >= 0 &&
           !(f->flags & ~KNOWN);
}

static int64_t sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* complete copies a failure that is right, with every default in its place, and names in that of
 * ids; what it points to then is in `room`. MULL_EINVAL: an id was never given. */
static int complete(const mull_decider *decider, mull_failure *f, const mull_failure *given,
                    mull__named *room)
{
    mull__struct_copy_in(f, sizeof *f, MULL__FAILURE_LEAST, given);
    if (f->attempt == 0)
        f->attempt = 1;
    if (f->calls == 0)
        f->calls = sum(f->attempt, f->redeliveries);
    if (f->deliveries == 0)
        f->deliveries = 1;
    if (!(f->flags & MULL_HAS_CHANCE))
        f->chance = mull__chance_from_id(f->message);
    f->flags |= MULL_HAS_CHANCE;
    return mull__name_all(f, &decider->policy->ids, room);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* decide_slowly is for a failure of which nothing is known but its target, not even that it is
 * right. */
static MULL__NOINLINE int decide_slowly(mull_decider *decider, mull__target target,
                                        const mull_failure *failure, mull_verdict *verdict)
{
    if (!is_right(failure))
        return MULL_EINVAL;
    mull__decider_state *decider_state = decider->decider_state;
    const mull__eval_context context = {decider_state->table, &decider->runner,
                                        decider_state->seen};
    mull_failure full;
    mull__named room;
    int status = complete(decider, &full, failure, &room);
    if (status)
        return status;
    verdict->generation = decider_state->name;
    decider->deciding = 1;
    mull__slow_path(&context, target, &full, verdict);
    decider->deciding = 0;
    return MULL_OK;
}

static MULL__ALWAYS_INLINE int decide_at(mull_decider *decider, mull__target target,
                                         const mull_failure *failure, mull_verdict *verdict)
{
    if (!mull__fast_path(decider->decider_state->table, target, failure, verdict))
        return decide_slowly(decider, target, failure, verdict);
    verdict->generation = decider->decider_state->name;
    return MULL_OK;
}

/* decide_by_ids is for what mull__fast_retry has left. */
static MULL__NOINLINE int decide_by_ids(mull_decider *decider, mull__target target,
                                        const mull_failure *failure, mull_verdict *verdict)
{
    return decide_at(decider, target, failure, verdict);
}

/* decide_by_names is for a failure of which one or both are known by their names. */
static MULL__NOINLINE int decide_by_names(mull_decider *decider, const mull_failure *failure,
                                          mull_verdict *verdict)
{
    const mull__decider_state *decider_state = decider->decider_state;
    mull__target target = {.site = &decider_state->table->nowhere};
    mull__site site;
    if (failure->type) {
        const uint32_t *type = mull__resolved_type(decider_state->resolved, failure->type);
        if (!type)
            return MULL_EINVAL;
        target.type = *type;
    } else {
        if (!has_name(failure))
            return MULL_EINVAL;
        target.type = mull__type_number(decider_state->table, failure->error->type);
    }
    if (failure->site) {
        target.site = mull__resolved_site(decider_state->resolved, failure->site);
        if (!target.site)
            return MULL_EINVAL;
    } else if (failure->consumer || failure->transport) {
        mull__site_find(&site, decider_state->table, failure->consumer, failure->transport);
        target.site = &site;
    }
    return decide_at(decider, target, failure, verdict);
}

int mull__decide_current(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict)
{
    if (!verdict || verdict->size < MULL__VERDICT_LEAST || !is_readable(failure))
        return MULL_EINVAL;
    if (decider->deciding)
        return MULL_ESTATE;
    if (!failure->type || !failure->site)
        return decide_by_names(decider, failure, verdict);
    const mull__resolved_ids *resolved = decider->decider_state->resolved;
    const uint32_t *type = mull__resolved_type(resolved, failure->type);
    const mull__site *site = mull__resolved_site(resolved, failure->site);
    if (!type || !site)
        return MULL_EINVAL;
    const mull__target target = {*type, site};
    if (!MULL__LIKELY(mull__fast_retry(target, failure, verdict)))
        return decide_by_ids(decider, target, failure, verdict);
    verdict->generation = decider->decider_state->name;
    return MULL_OK;
}

static MULL__NOINLINE int decide_afresh(mull_decider *decider, const mull_failure *failure,
                                        mull_verdict *verdict)
{
    take_fresh_state(decider);
    return mull__decide_current(decider, failure, verdict);
}

static MULL__ALWAYS_INLINE int decide(mull_decider *decider, const mull_failure *failure,
                                      mull_verdict *verdict)
{
    return MULL__LIKELY(!has_fresh_state(decider)) ? mull__decide_current(decider, failure, verdict)
                                                   : decide_afresh(decider, failure, verdict);
}

#if defined(MULL__CHECKS)
/* A build that checks tells two threads at once from one: the second touches nothing else. */
int mull_decide(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict)
{
    if (!decider)
        return MULL_EINVAL;
    if (atomic_flag_test_and_set_explicit(&decider->entered, memory_order_acquire))
        return MULL_ESTATE;
    int status = decide(decider, failure, verdict);
    atomic_flag_clear_explicit(&decider->entered, memory_order_release);
    return status;
}
#else
int mull_decide(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict)
{
    return decider ? decide(decider, failure, verdict) : MULL_EINVAL;
}
#endif

int mull__decider_inspect(mull_decider *decider, const mull_failure *failure, mull__inspect_fn look,
                          void *data)
{
    if (!is_readable(failure) || !is_right(failure))
        return MULL_EINVAL;
    if (decider->deciding)
        return MULL_ESTATE;
    take_fresh_state(decider);
    mull_failure full;
    mull__named room;
    int status = complete(decider, &full, failure, &room);
    if (status)
        return status;
    decider->deciding = 1;
    const mull__runner runner = {
        .match = decider->runner.match, .override = decider->runner.override, .state = decider};
    status =
        look(data, decider->decider_state->table, &full, &runner, decider->decider_state->seen);
    decider->deciding = 0;
    return status;
}
