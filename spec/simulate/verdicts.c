/* verdicts.c: the model's half that decides: what should become of a hand-out, by the table of the
 * generation in force, and whether that is what the engine does and says. */
#include "sim.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define WRONG(h, ...) violation((h)->process->sim, __VA_ARGS__)

static int number_of(const handout *h)
{
    return h->message->number;
}

static const char *transport_of(const handout *h)
{
    return h->connection->broker->index ? "t1" : "t0";
}

int same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* age_now: it stood still from a failure that was kept to the next call, or the end. */
int64_t age_now(handout *h)
{
    counters *c = &h->counters;
    int64_t now_ms = wall_ms(h->process->sim);
    if (c->held_since_ms != 0)
        c->held_ms += now_ms - c->held_since_ms;
    c->held_since_ms = 0;
    return c->first_failure_ms ? now_ms - c->first_failure_ms - c->held_ms : 0;
}

/* may_be_kept: what a rule, a declaration or an override ends at once is ended. */
static int may_be_kept(const mull_verdict *v)
{
    return v->action == MULL_RETRY || v->action == MULL_REDELIVER ||
           v->reason == MULL_REASON_EXHAUSTED || v->reason == MULL_REASON_MAX_ATTEMPTS ||
           v->reason == MULL_REASON_MAX_AGE || v->reason == MULL_REASON_DEADLINE;
}

/* count_failure: one that a limit keeps is none. */
static void count_failure(handout *h)
{
    const sim *s = h->process->sim;
    int kept = h->keeps && may_be_kept(&h->judgement.verdict);
    s->totals->kept_not += h->keeps && !kept;
    h->keeps = kept;
    if (h->judged_for.type == CRASHED_TYPE)
        return;
    if (!kept) {
        account_failed(h);
        return;
    }
    account_uncounted(h);
    s->totals->kept++;
    h->attempt--;
    h->judged_calls--;
    h->judged = 0;
    h->counters.held_since_ms = h->judged_ms;
}

/* judge asks what should become of a failure. */
static void judge(handout *h, failing f)
{
    process *p = h->process;
    sim *s = p->sim;
    const mull_abilities *can = &h->reader->can;
    if (h->unheard)
        WRONG(h, "the notify of message %d hears nothing of its verdict", number_of(h));
    h->keeps = 0;
    if (f.type != CRASHED_TYPE)
        limits_ended(h, &f);
    h->attempt++;
    h->crashes -= f.type == CRASHED_TYPE;
    if (h->counters.first_failure_ms == 0)
        h->counters.first_failure_ms = wall_ms(s);
    h->judged_age_ms = age_now(h);
    h->judged_calls = h->counters.calls + h->crashes + h->attempt;
    h->judged_ms = wall_ms(s);
    error_room room;
    const mull_message failed = {.size = sizeof failed, .queue = queue_name(h->consumer)};
    const mull_failure failure = {
        .size = sizeof failure,
        .error = work_error(&room, &f),
        .message = &failed,
        .consumer = p->consumers[h->consumer].name,
        .transport = transport_of(h),
        .attempt = h->attempt,
        .redeliveries = h->counters.redeliveries,
        .calls = h->judged_calls > 0 ? h->judged_calls : h->attempt + h->counters.redeliveries,
        .deliveries = deliveries_of(h),
        .age_ms = h->judged_age_ms,
        .held_ms = h->counters.held_ms,
        .chance = mull__hash_text(h->id),
        .flags = (uint32_t)(MULL_HAS_CHANCE | (can->can_retry ? 0 : MULL_CANNOT_RETRY) |
                            (can->can_delay ? 0 : MULL_CANNOT_DELAY)),
    };
    generation_judge(p->generation, &failure, &h->judgement);
    const mull__settings set = in_force(h, p->generation);
    h->default_queue = set.dead_letter_queue;
    h->allowed = set.max_attempts;
    mull_reason reason = h->judgement.verdict.reason;
    if (reason == MULL_REASON_FALLBACK && set.override == MULL__OFF)
        WRONG(h, "message %d needs what its transport can't do: such a policy is refused",
              number_of(h));
    h->judged = 1;
    h->judged_for = f;
    h->failed_type = 1 + f.type;
    h->judged_under = p->generation;
    s->totals->timeouts += f.type == TIMED_OUT_TYPE;
    s->totals->crash_verdicts += f.type == CRASHED_TYPE;
    s->totals->limits += reason == MULL_REASON_MAX_ATTEMPTS || reason == MULL_REASON_MAX_AGE;
    s->totals->deadlines += reason == MULL_REASON_DEADLINE;
    s->totals->overridden += reason == MULL_REASON_OVERRIDE;
    s->totals->overrides_failed += (uint64_t)h->judgement.override_failed;
    s->totals->fallbacks += reason == MULL_REASON_FALLBACK;
    count_failure(h);
}

/* refuse is the verdict on a body that is too large. */
static void refuse(handout *h)
{
    process *p = h->process;
    const mull__settings set = in_force(h, p->generation);
    h->attempt = 1;
    h->failed_type = 1 + TOO_BIG_TYPE;
    if (h->counters.first_failure_ms == 0)
        h->counters.first_failure_ms = wall_ms(p->sim);
    h->judged_age_ms = age_now(h);
    h->judged_calls = h->counters.calls + h->crashes + 1;
    h->judged_ms = wall_ms(p->sim);
    h->judgement = (judgement){.verdict = {.action = MULL_DEAD_LETTER,
                                           .reason = MULL_REASON_UNRECOVERABLE,
                                           .queue = set.dead_letter_queue,
                                           .generation = p->generation->name}};
    h->judged = 1;
    h->judged_for = (failing){TOO_BIG_TYPE, -1, -1};
    h->judged_under = p->generation;
    p->sim->totals->too_big++;
}

static const failing timed_out = {TIMED_OUT_TYPE, -1, -1}, crashed = {CRASHED_TYPE, -1, -1};

static int has_timed_out(const handout *h)
{
    int64_t timeout_ms = h->process->consumers[h->consumer].timeout_ms;
    return timeout_ms != MULL_NEVER && h->process->sim->k.now_ms >= h->started_ms + timeout_ms;
}

/* short_since says whether memory ran out since it was judged. */
static int short_since(const handout *h)
{
    return h->process->sim->counting_allocator.failed_ms + WALL_MS >= h->judged_ms;
}

/* are_words compares a queue or a note with what it should be, or, where an override's could not be
 * kept, with what is there `without` it. */
int are_words(const handout *h, const char *found, const char *expected, const char *without)
{
    int is_short = !same_text(found, expected) &&
                   h->judgement.verdict.reason == MULL_REASON_OVERRIDE && short_since(h);
    h->process->sim->totals->words_short += is_short != 0;
    return same_text(found, is_short ? without : expected);
}

/* ---- Why it is settled ----------------------------------------------------------------------- */

static void expect_kind(const handout *h, const mull_settlement *settlement, mull_settle_kind kind)
{
    if (settlement->kind != kind)
        WRONG(h, "message %d in stage %d is settled as %d, not %d", number_of(h), h->stage,
              settlement->kind, kind);
}

static const consumer *consumer_of(const handout *h)
{
    return &h->process->consumers[h->consumer];
}

/* expect_given_back: only what no handler is to see is given back. */
static void expect_given_back(const handout *h, const mull_settlement *settlement)
{
    expect_kind(h, settlement, MULL_SETTLE_GIVE_BACK);
    if (process_accepts(consumer_of(h)))
        WRONG(h, "message %d is given back, though its consumer takes messages", number_of(h));
}

/* A retry is given back where the engine stops. */
static const mull_settle_kind kinds[] = {[MULL_RETRY] = MULL_SETTLE_GIVE_BACK,
                                         [MULL_REDELIVER] = MULL_SETTLE_REDELIVER,
                                         [MULL_DEAD_LETTER] = MULL_SETTLE_DEAD_LETTER,
                                         [MULL_DISCARD] = MULL_SETTLE_DISCARD};

/* expect_verdict: a retry that is due while the engine stops isn't made, and nobody is told; nor of
 * what a limit keeps. */
static void expect_verdict(handout *h, const mull_settlement *settlement)
{
    if (h->keeps) {
        expect_kind(h, settlement, MULL_SETTLE_GIVE_BACK);
        return;
    }
    expect_kind(h, settlement, kinds[h->judgement.verdict.action]);
    if (h->judgement.verdict.action != MULL_RETRY)
        return;
    expect_given_back(h, settlement);
    h->judged = 0;
}

static int died_too_often(const handout *h)
{
    const process *p = h->process;
    const mull__settings set = in_force(h, p->generation);
    int64_t calls = h->counters.calls + h->crashes;
    int64_t deliveries = deliveries_of(h);
    int handed_out =
        deliveries > 1 && set.max_deliveries != MULL__OFF && deliveries > set.max_deliveries;
    p->sim->totals->handouts_too_many += handed_out && h->crashes == 0;
    return handed_out ||
           (h->crashes > 0 && set.max_attempts != MULL__OFF && calls >= set.max_attempts);
}

static int too_big(const handout *h)
{
    size_t max_body = h->process->consumers[h->consumer].max_body;
    return max_body > 0 && h->content.body_size > max_body;
}

/* settled_at_its_turn: no call of it begins, or not yet, by its values or by what is left of its
 * calls. */
static void settled_at_its_turn(handout *h, const mull_settlement *settlement)
{
    mull_reason over = used_up(h);
    if (limits_probe(consumer_of(h))) /* it was there, so no candidate was to be the next probe */
        no_candidate_waits(h->process);
    if (over != MULL_REASON_NONE) {
        end_unasked(h, over);
        expect_kind(h, settlement, MULL_SETTLE_DEAD_LETTER);
    } else if (settlement->kind == MULL_SETTLE_NOTE) {
        expect_note(h);
    } else {
        expect_kind(h, settlement, MULL_SETTLE_GIVE_BACK);
        h->put_back = 1;
    }
}

/* settled_retrying: in the middle of a round of retries. A limit that begins may take its slot
 * before its turn, when nobody asks yet what is left of its calls; in the turn of a stop, too. */
static void settled_retrying(handout *h, const mull_settlement *settlement)
{
    int too_soon = h->process->sim->k.now_ms <= h->retry_not_before_ms;
    int accepts = process_accepts(consumer_of(h));
    if (settlement->kind == MULL_SETTLE_NOTE)
        expect_note(h);
    else if (too_soon && settlement->kind == MULL_SETTLE_GIVE_BACK &&
             (accepts || settlement->due_ms != 0))
        h->put_back = 1;
    else if (accepts)
        settled_at_its_turn(h, settlement);
    else
        expect_given_back(h, settlement);
}

static void settled_on_arrival(handout *h, const mull_settlement *settlement)
{
    const process *p = h->process;
    int onward = h->counters.due_ms > wall_ms(p->sim);
    int stops = !process_accepts(consumer_of(h)) && settlement->due_ms == 0;
    if (settlement->kind == MULL_SETTLE_GIVE_BACK && stops) {
        expect_given_back(h, settlement);
    } else if (onward) {
        expect_kind(h, settlement, MULL_SETTLE_REDELIVER);
    } else if (too_big(h)) {
        refuse(h);
        expect_verdict(h, settlement);
    } else if (died_too_often(h)) {
        judge(h, crashed);
        expect_verdict(h, settlement);
    } else {
        settled_at_its_turn(h,
                            settlement); /* which may come at once, once there is memory for it */
    }
}

/* is_kept: it says that its age stands still since now. */
static int is_kept(const handout *h, const mull_settlement *settlement)
{
    return settlement->kind == MULL_SETTLE_GIVE_BACK &&
           settlement_moment(settlement, "mulligan-held-since") == wall_ms(h->process->sim);
}

/* cut_off: a call that is still open is settled for its timeout, or for an end without grace. */
static void cut_off(handout *h, const mull_settlement *settlement)
{
    const process *p = h->process;
    int64_t calls = settlement_number(settlement, "mulligan-calls");
    int counted = calls == h->counters.calls + h->attempt + 1;
    int kept = is_kept(h, settlement);
    if (settlement->kind == MULL_SETTLE_GIVE_BACK && !(has_timed_out(h) && (counted || kept))) {
        expect_given_back(h, settlement);
        account_uncounted(h);
        if (p->sim->k.now_ms < p->grace_ends_ms)
            WRONG(h, "message %d is given back before the grace is over", number_of(h));
        return;
    }
    if (!has_timed_out(h))
        WRONG(h, "message %d is settled as %d while its handler works", number_of(h),
              settlement->kind);
    judge(h, timed_out);
    expect_verdict(h, settlement);
}

static void expect_reason(handout *h, const mull_settlement *settlement)
{
    switch (h->stage) {
    case ARRIVED:
        if (h->fresh || !process_accepts(consumer_of(h)))
            settled_on_arrival(h, settlement);
        else
            settled_at_its_turn(h, settlement);
        break;
    case WORKING:
        cut_off(h, settlement);
        break;
    case SUCCEEDED:
        limits_ended(h, NULL);
        expect_kind(h, settlement, MULL_SETTLE_ACK);
        break;
    case FAILED:
        judge(h, h->failing);
        expect_verdict(h, settlement);
        break;
    case RETRYING:
        settled_retrying(h, settlement);
        break;
    case SETTLING:
        expect_kind(h, settlement, h->kind);
        break;
    case ON_ITS_WAY:
    case STRAYED:
    case PARKED:
    case SETTLED:
        WRONG(h, "message %d is settled in stage %d", number_of(h), h->stage);
    }
}

/* model_unwritten: see sim.h. A cut-off at a timeout comes before one at the end of the grace,
 * since its timer was set before. */
void model_unwritten(handout *h)
{
    sim *s = h->process->sim;
    if (h->stage == ARRIVED && too_big(h))
        refuse(h);
    else if (h->stage == ARRIVED && died_too_often(h))
        judge(h, crashed);
    else if (h->stage == ARRIVED)
        return;
    else if (h->stage == FAILED)
        judge(h, h->failing);
    else if (h->stage == WORKING && has_timed_out(h))
        judge(h, timed_out);
    if (s->counting_allocator.failed_ms < s->k.now_ms)
        WRONG(h, "message %d is to be settled, and isn't", number_of(h));
    h->kind = h->judged ? kinds[h->judgement.verdict.action] : MULL_SETTLE_GIVE_BACK;
    if (h->kind == MULL_SETTLE_GIVE_BACK && !h->keeps && process_accepts(consumer_of(h)))
        WRONG(h, "message %d is to be called again, and isn't", number_of(h));
    h->judged = h->judged && h->kind != MULL_SETTLE_GIVE_BACK;
    h->tells_type = view_tells_type(h);
    h->stage = SETTLING;
    h->unwritten = 1;
    s->totals->unwritten++;
    model_failed_try(h);
}

/* settled_again: the same once more, after a while; an engine that is to end need not wait. */
static void settled_again(handout *h, const mull_settlement *settlement)
{
    const process *p = h->process;
    if (h->under_way)
        WRONG(h, "message %d is settled twice at once", number_of(h));
    if (h->given_up)
        WRONG(h, "message %d is settled again, %d tries after the engine was to end", number_of(h),
              h->tries);
    if (p->sim->k.now_ms < h->try_not_before_ms && !process_is_stopping(p))
        WRONG(h, "message %d is settled again %d ms early", number_of(h),
              (int)(h->try_not_before_ms - p->sim->k.now_ms));
    if (settlement_hash(settlement) != h->settlement_hash)
        WRONG(h, "message %d is settled another way than before", number_of(h));
    h->under_way = 1;
}

/* asked begins a settlement that was never asked before. */
static void asked(handout *h, const mull_settlement *settlement)
{
    if (settlement->kind == MULL_SETTLE_NOTE && h->stage != SETTLING)
        note_asked(h);
    h->stage = SETTLING;
    h->unwritten = 0;
    h->kind = settlement->kind;
    if (h->kind == MULL_SETTLE_DEAD_LETTER)
        h->dead_in = keep_text(h->process->sim, settlement->queue);
    h->settlement_hash = settlement_hash(settlement);
    h->under_way = 1;
}

/* ---- The broker refuses it ------------------------------------------------------------------- */

static const char *default_queue(const handout *h, const generation *g)
{
    return in_force(h, g).dead_letter_queue;
}

/* last_hope gives the generation whose default queue is tried: what a handler sent is judged anew.
 * NULL: there is no hope. */
static const generation *last_hope(const handout *h)
{
    int sends = h->kind == MULL_SETTLE_ACK && h->sent_count > 0;
    int is_verdict =
        h->judged && (h->kind == MULL_SETTLE_REDELIVER || h->kind == MULL_SETTLE_DEAD_LETTER);
    int is_note = h->kind == MULL_SETTLE_NOTE;
    if (h->refusals > 1 || (!sends && !is_verdict && !is_note))
        return NULL;
    const generation *g = sends || is_note ? h->refused_under : h->judged_under;
    int was_default =
        h->kind == MULL_SETTLE_DEAD_LETTER && same_text(default_queue(h, g), h->dead_in);
    return was_default ? NULL : g;
}

/* fail_send: the handler succeeded, and is told of as failed, since nothing of what it sent can go
 * out. It counts as no failed call. */
static void fail_send(handout *h)
{
    h->judged_for = (failing){SEND_REFUSED_TYPE, -1, -1};
    h->judged_ms = h->refused_ms;
    if (h->counters.first_failure_ms == 0)
        h->counters.first_failure_ms = h->refused_ms;
    h->sent_count = 0;
}

/* fail_note: it may not be called again, since that it failed can't be written down. */
static void fail_note(handout *h)
{
    h->judged_for = (failing){h->failed_type - 1, -1, -1};
    h->process->sim->totals->notes_refused++;
}

static void judge_anew(handout *h, const generation *g)
{
    if (h->kind == MULL_SETTLE_ACK)
        fail_send(h);
    else
        fail_note(h);
    h->judged = 1;
    h->judged_calls = h->counters.calls + h->crashes + h->attempt;
    h->judged_under = g;
    h->judgement = (judgement){.verdict.size = sizeof h->judgement.verdict};
}

/* settled_elsewhere: it becomes a dead letter, in the default queue. */
static void settled_elsewhere(handout *h, const mull_settlement *settlement)
{
    sim *s = h->process->sim;
    const generation *g = last_hope(h);
    if (!g || !same_text(default_queue(h, g), settlement->queue))
        WRONG(h, "message %d is settled as %d in %s, which can never be either", number_of(h),
              settlement->kind, settlement->queue);
    expect_kind(h, settlement, MULL_SETTLE_DEAD_LETTER);
    if (h->kind == MULL_SETTLE_ACK || h->kind == MULL_SETTLE_NOTE)
        judge_anew(h, g);
    h->judgement.verdict.action = MULL_DEAD_LETTER;
    h->judgement.verdict.reason = MULL_REASON_UNRECOVERABLE;
    h->judgement.verdict.queue = keep_text(s, settlement->queue);
    h->refused_now = 0;
    h->after = h->counters;
    h->after.due_ms = h->after.not_before_ms = 0;
    if (settlement->due_ms != 0)
        WRONG(h, "message %d is a dead letter that is due", number_of(h));
    expect_written(h, settlement);
    asked(h, settlement);
    s->totals->redirected++;
}

/* model_refused: where nothing else is tried it is parked, or there was no memory to try it. */
void model_refused(handout *h)
{
    const process *p = h->process;
    sim *s = p->sim;
    if (!h->refused_now || p->dead)
        return;
    if (last_hope(h) && s->counting_allocator.failed_ms == s->k.now_ms) {
        model_failed_try(h);
        return;
    }
    if (last_hope(h) && !process_drained(p))
        WRONG(h, "message %d is parked, and its default queue wasn't tried", number_of(h));
    h->refused_now = 0;
    h->stage = PARKED;
    s->totals->parked++;
}

/* ---- It is settled --------------------------------------------------------------------------- */

void model_settle(handout *h, const mull_settlement *settlement)
{
    const process *p = h->process;
    note(p->sim, "process %lld settles message %lld as %lld, due %lld", p->index, number_of(h),
         settlement->kind, settlement->due_ms ? settlement->due_ms - WALL_MS : 0);
    if (p->dead)
        return;
    limits_follow(h->process);
    if (h->told_lost)
        WRONG(h, "message %d is settled, though its claim is gone", number_of(h));
    if (h->stage == STRAYED)
        model_delivered(h);
    if (p->drained && h->stage == SETTLING)
        WRONG(h, "message %d is settled when it is no longer waited for answers", number_of(h));
    if (h->stage == SETTLING && h->refused_now) {
        settled_elsewhere(h, settlement);
        return;
    }
    if (h->stage == SETTLING && !h->unwritten) {
        settled_again(h, settlement);
        return;
    }
    if (h->id[0] == 0)
        take_id(h->id, settlement->id);
    if (strcmp(h->id, settlement->id) != 0)
        WRONG(h, "message %d is settled as %s", number_of(h), settlement->id);
    expect_reason(h, settlement);
    /* In the turn of a reload it may have been decided before or after that. */
    int is_unsure = consumer_of(h)->limits_since_ms == h->process->sim->k.now_ms;
    if (!h->unwritten)
        h->tells_type = is_unsure ? view_tells_type(h) : may_end_unasked(h);
    if (settlement->kind == MULL_SETTLE_DEAD_LETTER)
        account_ended(h);
    h->after = h->counters;
    h->after.due_ms = h->after.not_before_ms = 0;
    int64_t due_ms = expect_due(h, settlement);
    if (settlement->due_ms != due_ms)
        WRONG(h, "message %d is due %d ms off", number_of(h), (int)(settlement->due_ms - due_ms));
    expect_written(h, settlement);
    asked(h, settlement);
}

static void count_settled(handout *h)
{
    mull_counts *counts = &h->process->counts;
    totals *t = h->process->sim->totals;
    switch (h->kind) {
    case MULL_SETTLE_ACK:
        counts->done++;
        t->acknowledged++;
        t->sent += (uint64_t)h->sent_count;
        break;
    case MULL_SETTLE_REDELIVER:
        counts->redelivered += h->judged != 0;
        t->redeliveries++;
        break;
    case MULL_SETTLE_DEAD_LETTER:
        counts->dead_lettered++;
        t->dead_letters++;
        break;
    case MULL_SETTLE_DISCARD:
        counts->discarded++;
        t->discards++;
        break;
    case MULL_SETTLE_GIVE_BACK:
        t->given_back++;
        break;
    case MULL_SETTLE_NOTE:
        break;
    }
}

void model_failed_try(handout *h)
{
    int64_t wait_ms = h->tries < 7 ? INT64_C(100) << h->tries : 10000;
    h->try_not_before_ms = h->process->sim->k.now_ms + (wait_ms < 10000 ? wait_ms : 10000);
    h->tries++;
}

void model_answered(handout *h, int status)
{
    sim *s = h->process->sim;
    note(s, "message %lld is settled: %lld", number_of(h), status, 0, 0);
    h->under_way = 0;
    h->answered = status;
    h->process->busy_ms = s->k.now_ms;
    if (h->kind == MULL_SETTLE_NOTE && (status == 0 || status == MULL_ELOST)) {
        note_answered(h, status);
        return;
    }
    int goes_on = h->kind == MULL_SETTLE_REDELIVER || h->kind == MULL_SETTLE_GIVE_BACK;
    if (status == 0 && goes_on && h->put_off_to_ms > h->process->put_off_ms)
        h->process->put_off_ms = h->put_off_to_ms;
    if (status == 0 || status == MULL_ELOST) {
        h->stage = SETTLED;
        if (status == 0 && !h->process->dead)
            count_settled(h);
        return;
    }
    if (status == MULL_EREFUSED) {
        h->refusals++;
        h->refused_now = 1;
        h->refused_ms = wall_ms(s);
        h->refused_under = h->process->generation;
        s->totals->refused++;
        return;
    }
    model_failed_try(h);
    h->given_up = s->k.now_ms > h->process->grace_ends_ms && h->tries > TRIES_WHEN_STOPPING;
    h->hopeless |= process_is_stopping(h->process) && h->connection->down;
    s->totals->settles_failed++;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void compare_verdict(const handout *h, const mull_verdict *v)
{
    const mull_verdict *e = &h->judgement.verdict;
    if (v->action != e->action || v->reason != e->reason || v->tier != e->tier ||
        v->fallback != e->fallback || v->delay_ms != e->delay_ms || v->step != e->step ||
        v->of != e->of)
        WRONG(h, "message %d: the verdict is %d (reason %d, %d ms), not %d (%d, %d ms)",
              number_of(h), v->action, v->reason, (int)v->delay_ms, e->action, e->reason,
              (int)e->delay_ms);
    if (!are_words(h, v->queue, e->queue, e->queue ? h->default_queue : NULL) ||
        !are_words(h, v->note, e->note, NULL) || !same_text(v->rule.file, e->rule.file) ||
        v->rule.line != e->rule.line || !same_text(v->rule.scope, e->rule.scope) ||
        !same_text(v->rule.type, e->rule.type))
        WRONG(h, "message %d: the verdict's queue, note or rule is another", number_of(h));
    if (!same_text(v->generation, h->judged_under->name))
        WRONG(h, "message %d is decided by generation %s, not by %s", number_of(h), v->generation,
              h->judged_under->name);
}

static void compare_failure(const handout *h, const mull_failure *f)
{
    if (!same_text(f->error->type, type_names[h->judged_for.type]))
        WRONG(h, "message %d failed with %s, not %s", number_of(h), f->error->type,
              type_names[h->judged_for.type]);
    if (f->attempt != h->attempt || f->redeliveries != h->counters.redeliveries ||
        f->calls != h->judged_calls || f->deliveries != deliveries_of(h) ||
        f->age_ms != h->judged_age_ms || f->chance != mull__hash_text(h->id) ||
        !same_text(f->consumer, h->process->consumers[h->consumer].name) ||
        !same_text(f->transport, transport_of(h)))
        WRONG(h, "message %d: the failure told isn't the one judged", number_of(h));
}

/* told_retry is told at the moment of the decision; the others once they are carried out. */
static void told_retry(handout *h)
{
    sim *s = h->process->sim;
    if (h->stage == WORKING && !h->cancelled && has_timed_out(h))
        judge(h, timed_out);
    else if (h->stage == FAILED)
        judge(h, h->failing);
    else
        WRONG(h, "message %d is to be retried in stage %d", number_of(h), h->stage);
    if (process_is_stopping(h->process) && h->process->life != STOPPING &&
        h->process->life != CLOSING)
        WRONG(h, "message %d is to be retried by an engine that has stopped", number_of(h));
    h->retry_not_before_ms = h->at_work ? INT64_MAX : s->k.now_ms + h->judgement.verdict.delay_ms;
    if (h->keeps)
        WRONG(h, "message %d is to be retried, and a limit keeps its failure", number_of(h));
    h->stage = RETRYING;
    h->note_due = process_accepts(consumer_of(h)) && has_to_note(h);
    h->process->counts.retried++;
    s->totals->retries++;
}

/* has_notify: one is in force where it was judged. */
static int has_notify(const handout *h)
{
    return in_force(h, h->judged_under).notify != MULL__OFF;
}

void model_event(process *p, const mull_event *told)
{
    if (p->dead)
        return;
    limits_follow(p);
    if (told->limit)
        limits_told(p, told);
    if (told->kind != MULL_EVENT_DECIDED)
        return;
    handout *h = handout_of(told->failure->message);
    note(p->sim, "process %lld tells: message %lld, action %lld, %lld ms", p->index, number_of(h),
         told->verdict->action, told->verdict->delay_ms);
    if (told->verdict->action == MULL_RETRY)
        told_retry(h);
    else if (h->stage != SETTLED || h->answered != 0)
        WRONG(h, "the verdict on message %d is told before it is carried out", number_of(h));
    if (!h->judged)
        WRONG(h, "a verdict on message %d is told that nobody gave, or twice", number_of(h));
    compare_verdict(h, told->verdict);
    if (!told->rule != !h->judgement.verdict.rule.file ||
        !same_text(told->generation, h->judged_under->name))
        WRONG(h, "message %d: the event's rule or generation is another", number_of(h));
    compare_failure(h, told->failure);
    p->sim->totals->old_generations += h->judged_under != p->generation;
    h->judged = 0;
    h->unheard = has_notify(h);
}

/* heard_met: each is heard once, matchers before the override, but those for which there was no
 * memory. */
static void heard_met(handout *h, mull_event_kind kind)
{
    judgement *j = &h->judgement;
    if (kind == MULL_EVENT_MATCHER_FAILED
            ? j->matchers_failed-- == 0
            : j->override_failed-- == 0 || (j->matchers_failed > 0 && !short_since(h)))
        WRONG(h, "notify hears of message %d what wasn't met, or hears it late", number_of(h));
    h->process->sim->totals->heard_before++; /* or where no verdict was carried out */
}

/* model_heard: what was met on the way to the verdict comes before it. */
void model_heard(uint64_t number, const mull_event *heard, int fails)
{
    handout *h = handout_of(heard->failure->message);
    process *p = h->process;
    if (p->dead)
        return;
    p->counts.notify_failed += fails != 0;
    if (heard->kind == MULL_EVENT_HEADER_IGNORED)
        return;
    if (number != h->judged_under->number)
        WRONG(h, "a notify hears of message %d that has no say in it", number_of(h));
    compare_verdict(h, heard->verdict);
    compare_failure(h, heard->failure);
    totals *t = p->sim->totals;
    if (heard->kind != MULL_EVENT_DECIDED) {
        heard_met(h, heard->kind);
        return;
    }
    if (!h->unheard)
        WRONG(h, "notify hears of the verdict on message %d before it is told, or twice",
              number_of(h));
    if ((h->judgement.matchers_failed || h->judgement.override_failed) && !short_since(h))
        WRONG(h, "notify hears nothing of what was met before the verdict on message %d",
              number_of(h));
    h->unheard = 0;
    t->heard++;
    t->heard_old += h->judged_under != p->generation;
}
