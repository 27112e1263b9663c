/* decider.c: mull_decide, for one thread. It takes no lock and no memory. */
#include "base/alloc.h"
#include "base/given.h"
#include "base/hash.h"
#include "base/rare.h"
#include "holder.h"
#include "policy/brief.h"

/* ---- What a decision meets -------------------------------------------------------------------
 *
 * All that a decision calls goes through here, and only meanwhile is the decider at work: nothing
 * but what is called from within could find it so. */

static int ask(void *state, uint32_t function, const mull_failure *failure, char *why,
               size_t why_size)
{
    mull_decider *decider = state;
    void *data;
    const mull__guest *guest = mull__holder_guest(decider->policy, &data);
    uintptr_t before = decider->deciding;
    decider->deciding = 1;
    int answer = guest->match(decider->seat->state, function, failure, why, why_size);
    decider->deciding = before;
    return answer;
}

static int ask_override(void *state, uint32_t function, const mull_failure *failure,
                        const mull_verdict *verdict, const mull__config *config,
                        mull__answer *answer, char *why, size_t why_size)
{
    mull_decider *decider = state;
    void *data;
    const mull__guest *guest = mull__holder_guest(decider->policy, &data);
    uintptr_t before = decider->deciding;
    decider->deciding = 1;
    int status = guest->override(decider->seat->state, function, failure, verdict, config, answer,
                                 why, why_size);
    decider->deciding = before;
    return status;
}

static void tell(mull_decider *decider, mull_event *event)
{
    uintptr_t before = decider->deciding;
    decider->deciding = 1;
    event->generation = decider->generation;
    mull__holder_tell(decider->policy, event);
    if (decider->hear)
        decider->hear(event, decider->hear_data);
    decider->deciding = before;
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

/* sit down: the decider's seat is another one. */
static void sit(mull_decider *decider, mull__seat *seat)
{
    decider->seat = seat;
    decider->generation = seat->name;
    decider->desk = (mull__desk){seat->table, &decider->runner, seat->seen};
}

int mull_decider_new(mull_decider **out, mull_policy *policy)
{
    if (!out)
        return MULL_EINVAL;
    *out = NULL;
    if (!policy)
        return MULL_EINVAL;
    const mull_allocator *a = mull__holder_allocator(policy);
    mull_decider *decider = mull__zalloc(a, 1, sizeof *decider);
    if (!decider)
        return MULL_ENOMEM;
    decider->policy = policy;
    atomic_init(&decider->slot, 0);
#if defined(MULL__CHECKS)
    atomic_init(&decider->entered, 0);
#endif
    void *data;
    const mull__guest *guest = mull__holder_guest(policy, &data);
    decider->runner = (mull__runner){
        .match = ask,
        .override = guest->override ? ask_override : NULL,
        .state = decider,
        .failed = matcher_failed,
        .override_failed = override_failed,
        .data = decider,
    };
    int status = mull__holder_join(policy, decider);
    if (status) {
        mull__free(a, decider);
        return status;
    }
    sit(decider, decider->seat);
    *out = decider;
    return MULL_OK;
}

void mull_decider_free(mull_decider *decider)
{
    if (!decider)
        return;
    /* Its seat still keeps what the policy may be the last to have let go of. */
    const mull_allocator a = *mull__holder_allocator(decider->policy);
    mull__holder_leave(decider->policy, decider);
    uintptr_t waiting = atomic_load_explicit(&decider->slot, memory_order_acquire);
    mull__seat_drop((mull__seat *)(waiting & ~MULL__FRESH));
    mull__seat_drop(decider->seat);
    mull__free(&a, decider);
}

static void exchange_seats(mull_decider *decider)
{
    uintptr_t fresh =
        atomic_exchange_explicit(&decider->slot, (uintptr_t)decider->seat, memory_order_acq_rel);
    sit(decider, (mull__seat *)(fresh & ~MULL__FRESH));
}

/* has_fresh_seat is FRESH, or 0. */
static inline uintptr_t has_fresh_seat(mull_decider *decider)
{
    return atomic_load_explicit(&decider->slot, memory_order_relaxed) & MULL__FRESH;
}

/* take_fresh_seat: only a reload marks a slot, and only this takes a mark away, so that what comes
 * out is marked for sure, even if another reload came between. A seat at work is kept. */
static void take_fresh_seat(mull_decider *decider)
{
    if (has_fresh_seat(decider) && !decider->deciding)
        exchange_seats(decider);
}

mull__generation *mull__decider_generation(mull_decider *decider)
{
    return decider->seat->generation;
}

mull__generation *mull__decider_latest(mull_decider *decider)
{
    take_fresh_seat(decider);
    return decider->seat->generation;
}

mull__seat *mull__decider_seat(mull_decider *decider)
{
    return mull__seat_keep(decider->seat);
}

void mull__decider_hear(mull_decider *decider, mull_event_fn hear, void *data)
{
    decider->hear = hear;
    decider->hear_data = data;
}

/* ---- What a failure must be ------------------------------------------------------------------ */

/* has_parts: the structs are there, in sizes of some release, and the error has a type, be it
 * empty. */
static int has_parts(const mull_failure *f)
{
    return f && f->size >= MULL__FAILURE_LEAST && f->error && f->error->size >= MULL__ERROR_LEAST &&
           f->error->type && (!f->message || f->message->size >= MULL__MESSAGE_LEAST);
}

static int has_room(const mull_verdict *verdict)
{
    return verdict && verdict->size >= MULL__VERDICT_LEAST;
}

/* is_current: both are there, with all the parts that this release knows. */
static MULL__IN_PLACE int is_current(const mull_failure *f, const mull_verdict *verdict)
{
    return verdict && verdict->size >= sizeof *verdict && f && f->size >= sizeof *f && f->error &&
           f->error->size >= sizeof *f->error && f->error->type &&
           (!f->message || f->message->size >= sizeof *f->message);
}

/* KNOWN are all flags that an embedder may set; OPTIONAL those that leave a failure complete. */
#define OPTIONAL ((uint32_t)(MULL_CANNOT_RETRY | MULL_CANNOT_DELAY | MULL_NO_JITTER))
#define KNOWN    (OPTIONAL | MULL_HAS_CHANCE)

/* is_right: the type isn't empty, no number is below 0, which is where its sign is set, and no flag
 * is a mystery. */
static int is_right(const mull_failure *f)
{
    return *f->error->type &&
           (f->attempt | f->redeliveries | f->calls | f->deliveries | f->age_ms) >= 0 &&
           !(f->flags & ~KNOWN);
}

static int64_t sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static uint64_t chance_of(const mull_message *message)
{
    return mull__hash_text(message && message->id ? message->id : "");
}

/* is_complete: no number is missing, nor wrong, and no field is. */
static inline int is_complete(const mull_failure *failure)
{
    return failure->attempt > 0 && failure->calls > 0 && failure->deliveries > 0 &&
           (failure->redeliveries | failure->age_ms) >= 0 &&
           (failure->flags & ~OPTIONAL) == MULL_HAS_CHANCE && failure->size >= sizeof *failure;
}

/* completed is a failure with every default in its place. */
static mull_failure completed(const mull_failure *failure)
{
    mull_failure full;
    mull__struct_take(&full, sizeof full, MULL__FAILURE_LEAST, failure);
    if (full.attempt == 0)
        full.attempt = 1;
    if (full.calls == 0)
        full.calls = sum(full.attempt, full.redeliveries);
    if (full.deliveries == 0)
        full.deliveries = 1;
    if (!(full.flags & MULL_HAS_CHANCE)) {
        full.flags |= MULL_HAS_CHANCE;
        full.chance = chance_of(full.message);
    }
    return full;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* decide_checked: `briefly`, the short way wasn't tried yet. */
static int decide_checked(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict,
                          int briefly)
{
    if (!has_room(verdict) || !has_parts(failure) || !is_right(failure))
        return MULL_EINVAL;
    if (decider->deciding)
        return MULL_ESTATE;
    verdict->generation = decider->generation;
    if (is_complete(failure))
        return briefly ? mull__decide(&decider->desk, failure, verdict)
                       : mull__decide_at_length(&decider->desk, failure, verdict);
    const mull_failure full = completed(failure);
    return mull__decide(&decider->desk, &full, verdict);
}

int mull__decide_on(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict)
{
    return decide_checked(decider, failure, verdict, 1);
}

static MULL__APART int decide_otherwise(mull_decider *decider, const mull_failure *failure,
                                        mull_verdict *verdict)
{
    take_fresh_seat(decider);
    return decide_checked(decider, failure, verdict, 0);
}

/* decide_by_latest: what is wrong with a failure's numbers, the short way finds. */
static MULL__IN_PLACE int decide_by_latest(mull_decider *decider, const mull_failure *failure,
                                           mull_verdict *verdict)
{
    if (!MULL__MOSTLY(!(has_fresh_seat(decider) | decider->deciding) &&
                      is_current(failure, verdict)) ||
        !MULL__MOSTLY(mull__decide_briefly(decider->desk.table, failure, verdict)))
        return decide_otherwise(decider, failure, verdict);
    verdict->generation = decider->generation;
    return MULL_OK;
}

#if defined(MULL__CHECKS)
/* A build that checks tells two threads at once from one: the second touches nothing else. */
int mull_decide(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict)
{
    if (!decider)
        return MULL_EINVAL;
    if (atomic_exchange_explicit(&decider->entered, 1, memory_order_acquire))
        return MULL_ESTATE;
    int status = decide_by_latest(decider, failure, verdict);
    atomic_store_explicit(&decider->entered, 0, memory_order_release);
    return status;
}
#else
int mull_decide(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict)
{
    return decider ? decide_by_latest(decider, failure, verdict) : MULL_EINVAL;
}
#endif

int mull__decider_look(mull_decider *decider, const mull_failure *failure, mull__look_fn look,
                       void *data)
{
    if (!has_parts(failure) || !is_right(failure))
        return MULL_EINVAL;
    if (decider->deciding)
        return MULL_ESTATE;
    take_fresh_seat(decider);
    decider->deciding = 1;
    const mull__runner runner = {
        .match = decider->runner.match, .override = decider->runner.override, .state = decider};
    const mull_failure full = completed(failure);
    int status = look(data, decider->seat->table, &full, &runner, decider->seat->seen);
    decider->deciding = 0;
    return status;
}
