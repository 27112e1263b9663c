/* decider.c: mull_decide, for one thread. It takes no lock and no memory. */
#include "base/alloc.h"
#include "base/given.h"
#include "base/rare.h"
#include "holder.h"
#include "named.h"
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
    decider->rows = seat->rows;
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
    atomic_flag_clear_explicit(&decider->entered, memory_order_relaxed);
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

static MULL__IN_PLACE int has_room(const mull_verdict *verdict)
{
    return verdict && verdict->size >= MULL__VERDICT_LEAST;
}

/* is_there: with all the parts that this release knows, as most are. */
static MULL__IN_PLACE int is_there(const mull_failure *f)
{
    return f && f->size >= sizeof *f;
}

static MULL__IN_PLACE int has_message(const mull_failure *f)
{
    return !f->message || f->message->size >= MULL__MESSAGE_LEAST;
}

/* has_named_parts: the structs in a failure are there, in sizes of some release, and its error has
 * a type, be it empty; has_parts: or its id. */
static MULL__IN_PLACE int has_named_parts(const mull_failure *f)
{
    return f->error && f->error->size >= MULL__ERROR_LEAST && f->error->type && has_message(f);
}

static int has_parts(const mull_failure *f)
{
    if (!f->type)
        return has_named_parts(f);
    return (!f->error || f->error->size >= MULL__ERROR_LEAST) && has_message(f);
}

/* KNOWN are all flags that an embedder may set; OPTIONAL those that leave a failure complete. */
#define OPTIONAL ((uint32_t)(MULL_CANNOT_RETRY | MULL_CANNOT_DELAY | MULL_NO_JITTER))
#define KNOWN    (OPTIONAL | MULL_HAS_CHANCE)

/* is_right: the type isn't empty, no number is below 0, which is where its sign is set, and no flag
 * is a mystery. */
static int is_right(const mull_failure *f)
{
    return (f->type || *f->error->type) &&
           (f->attempt | f->redeliveries | f->calls | f->deliveries | f->age_ms) >= 0 &&
           !(f->flags & ~KNOWN);
}

static int64_t sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* is_complete: no number is missing, nor wrong, and no id stands for a name. */
static inline int is_complete(const mull_failure *failure)
{
    return is_there(failure) && !(failure->type | failure->site) && failure->attempt > 0 &&
           failure->calls > 0 && failure->deliveries > 0 &&
           (failure->redeliveries | failure->age_ms) >= 0 &&
           (failure->flags & ~OPTIONAL) == MULL_HAS_CHANCE;
}

static void give_chance(mull_failure *f)
{
    if (f->flags & MULL_HAS_CHANCE)
        return;
    f->flags |= MULL_HAS_CHANCE;
    f->chance = mull__chance_by_id(f->message);
}

/* fill_in puts every default in its place. */
static void fill_in(mull_failure *f)
{
    if (f->attempt == 0)
        f->attempt = 1;
    if (f->calls == 0)
        f->calls = sum(f->attempt, f->redeliveries);
    if (f->deliveries == 0)
        f->deliveries = 1;
    give_chance(f);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static MULL__IN_PLACE mull__row *row_for(const mull_decider *decider, uint64_t key)
{
    return &decider->rows[(key * MULL__NAME_FACTOR) >> (64 - MULL__ROW_BITS)];
}

/* follow_row: 0: there is more to the failure than its row knows. */
static MULL__IN_PLACE int follow_row(const mull__row *row, const mull_failure *failure,
                                     mull_verdict *verdict)
{
    return !mull__is_flagged(failure) && !(failure->error && failure->error->lineage_count) &&
           mull__is_within_limits(failure, row->deliveries, row->calls) &&
           mull__follow_briefly(row->rule, row->site, failure, verdict);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* decide_by_names is for a failure that is complete, but for the names of its ids. They are for
 * those who look at them: what the ids mean is known. */
static int decide_by_names(mull_decider *decider, mull_failure *failure, mull_verdict *verdict)
{
    const mull__meanings *meanings = decider->seat->meanings;
    const uint32_t *type = mull__meaning_of_type(meanings, failure->type);
    const mull__site *site = mull__meaning_of_site(meanings, failure->site);
    mull__named room;
    int status = mull__name_all(failure, mull__holder_ids(decider->policy), &room);
    if (status)
        return status;
    verdict->generation = decider->generation;
    return type && site && failure->error->lineage_count == 0
               ? mull__decide_further(&decider->desk, *type, *site, failure, verdict)
               : mull__decide(&decider->desk, failure, verdict);
}

static int decide_incomplete(mull_decider *decider, const mull_failure *failure,
                             mull_verdict *verdict)
{
    mull_failure full;
    mull__struct_take(&full, sizeof full, MULL__FAILURE_LEAST, failure);
    fill_in(&full);
    uint64_t key = mull__row_key(&full);
    if (!key) {
        verdict->generation = decider->generation;
        return mull__decide(&decider->desk, &full, verdict);
    }
    const mull__row *row = row_for(decider, key);
    if (!full.type || row->key != key || !follow_row(row, &full, verdict))
        return decide_by_names(decider, &full, verdict);
    verdict->generation = decider->generation;
    return MULL_OK;
}

/* decide_checked: `briefly`, the short way wasn't tried yet. */
static int decide_checked(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict,
                          int briefly)
{
    if (!has_room(verdict) || !failure || failure->size < MULL__FAILURE_LEAST ||
        !has_parts(failure) || !is_right(failure))
        return MULL_EINVAL;
    if (decider->deciding)
        return MULL_ESTATE;
    if (is_complete(failure)) {
        verdict->generation = decider->generation;
        return briefly ? mull__decide(&decider->desk, failure, verdict)
                       : mull__decide_at_length(&decider->desk, failure, verdict);
    }
    return decide_incomplete(decider, failure, verdict);
}

int mull__decide_on(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict)
{
    return decide_checked(decider, failure, verdict, 1);
}

/* ---- The short way ---------------------------------------------------------------------------
 *
 * mull_decide goes straight through where a row of the decider's seat has what it needs; what takes
 * more is in functions of its own, each of which ends the call. What is wrong with a failure's
 * numbers, the steps of policy/brief.h find. */

static MULL__APART int decide_otherwise(mull_decider *decider, const mull_failure *failure,
                                        mull_verdict *verdict)
{
    take_fresh_seat(decider);
    return decide_checked(decider, failure, verdict, 0);
}

/* decide_further: what was looked up isn't looked up again. The short way draws by a chance that
 * wasn't given without a copy of the failure; here others are to see it. */
static MULL__APART int decide_further(mull_decider *decider, uint32_t type, mull__site site,
                                      const mull_failure *failure, mull_verdict *verdict)
{
    mull_failure full;
    if (!(failure->flags & MULL_HAS_CHANCE)) {
        full = *failure;
        full.size = sizeof full;
        give_chance(&full);
        failure = &full;
    }
    if (!is_complete(failure))
        return decide_otherwise(decider, failure, verdict);
    verdict->generation = decider->generation;
    return mull__decide_further(&decider->desk, type, site, failure, verdict);
}

static MULL__IN_PLACE int decide_at(mull_decider *decider, uint32_t type, mull__site site,
                                    const mull_failure *failure, mull_verdict *verdict)
{
    if (!MULL__MOSTLY(mull__decide_at(type, site, failure, verdict)))
        return decide_further(decider, type, site, failure, verdict);
    verdict->generation = decider->generation;
    return MULL_OK;
}

/* decide_there looks up where the message failed. */
static MULL__APART int decide_there(mull_decider *decider, uint32_t type,
                                    const mull_failure *failure, mull_verdict *verdict)
{
    mull__layer room;
    mull__site site;
    if (failure->site) {
        const mull__site *meaning = mull__meaning_of_site(decider->seat->meanings, failure->site);
        if (!meaning)
            return MULL_EINVAL;
        site = *meaning;
    } else {
        site = mull__site_of(decider->desk.table, failure->consumer, failure->transport, &room);
    }
    return decide_at(decider, type, site, failure, verdict);
}

/* is_ready: nothing is in its slot, and it isn't in the middle of a decision; and there is room for
 * the answer. */
static MULL__IN_PLACE int is_ready(mull_decider *decider, const mull_verdict *verdict)
{
    return !(has_fresh_seat(decider) | decider->deciding) && has_room(verdict);
}

static MULL__APART int decide_by_name(mull_decider *decider, const mull_failure *failure,
                                      mull_verdict *verdict)
{
    if (!MULL__MOSTLY(is_ready(decider, verdict)) || !MULL__MOSTLY(has_named_parts(failure)))
        return decide_otherwise(decider, failure, verdict);
    const mull__name_slot *type = mull__type_briefly(&decider->desk, failure);
    if (!type)
        return decide_otherwise(decider, failure, verdict);
    /* All at once: one test in place of three. */
    if ((uintptr_t)failure->consumer | (uintptr_t)failure->transport | failure->site)
        return decide_there(decider, type->number, failure, verdict);
    const mull__site site = {&decider->desk.table->layers[0], 0};
    return decide_at(decider, type->number, site, failure, verdict);
}

/* decide_by_rule: the rule is known, but there is more to the failure, or to the rule. */
static MULL__APART int decide_by_rule(mull_decider *decider, const mull_failure *failure,
                                      mull_verdict *verdict, const mull__row *row)
{
    if (!has_parts(failure))
        return MULL_EINVAL;
    if (!follow_row(row, failure, verdict))
        return decide_otherwise(decider, failure, verdict);
    verdict->generation = decider->generation;
    return MULL_OK;
}

/* decide_by_id fills the row that wasn't there. */
static MULL__APART int decide_by_id(mull_decider *decider, const mull_failure *failure,
                                    mull_verdict *verdict, mull__row *row)
{
    const mull__meanings *meanings = decider->seat->meanings;
    const uint32_t *type = mull__meaning_of_type(meanings, failure->type);
    const mull__site *site = mull__meaning_of_site(meanings, failure->site);
    if (!type || !has_parts(failure))
        return MULL_EINVAL;
    if (site && mull__row_fill(row, mull__row_key(failure), meanings->table, *type, *site))
        return decide_by_rule(decider, failure, verdict, row);
    if (site || mull__is_flagged(failure) || (failure->error && failure->error->lineage_count))
        return decide_otherwise(decider, failure, verdict);
    return *type == MULL__NONE ? decide_otherwise(decider, failure, verdict)
                               : decide_there(decider, *type, failure, verdict);
}

static MULL__IN_PLACE int decide(mull_decider *decider, const mull_failure *failure,
                                 mull_verdict *verdict)
{
    if (!is_there(failure))
        return decide_otherwise(decider, failure, verdict);
    uint64_t key = mull__row_key(failure);
    if (!(uint32_t)key)
        return decide_by_name(decider, failure, verdict);
    if (!MULL__MOSTLY(is_ready(decider, verdict)))
        return decide_otherwise(decider, failure, verdict);
    mull__row *row = row_for(decider, key);
    if (!MULL__MOSTLY(row->key == key))
        return decide_by_id(decider, failure, verdict, row);
    /* Both at once: one test in place of two. */
    if ((uintptr_t)failure->error | (uintptr_t)failure->message ||
        failure->flags != MULL_HAS_CHANCE ||
        !MULL__MOSTLY(mull__decide_by_row(row, failure, verdict)))
        return decide_by_rule(decider, failure, verdict, row);
    verdict->generation = decider->generation;
    return MULL_OK;
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

int mull__decider_look(mull_decider *decider, const mull_failure *failure, mull__look_fn look,
                       void *data)
{
    mull_failure full;
    if (!mull__struct_take(&full, sizeof full, MULL__FAILURE_LEAST, failure) || !has_parts(&full) ||
        !is_right(&full))
        return MULL_EINVAL;
    if (decider->deciding)
        return MULL_ESTATE;
    take_fresh_seat(decider);
    mull__named room;
    fill_in(&full);
    int status = mull__name_all(&full, mull__holder_ids(decider->policy), &room);
    if (status)
        return status;
    decider->deciding = 1;
    const mull__runner runner = {
        .match = decider->runner.match, .override = decider->runner.override, .state = decider};
    status = look(data, decider->seat->table, &full, &runner, decider->seat->seen);
    decider->deciding = 0;
    return status;
}
