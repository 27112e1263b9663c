/* journal.c: the model's half that knows what bounds the calls of a message, whatever is killed:
 * what has to be written down before a call, when there is none any more, and an account of what
 * really happened, kept with the broker's copy, that no engine sees. */
#include "sim.h"

#include <string.h>

#define WRONG(h, ...) violation((h)->process->sim, __VA_ARGS__)

static int number_of(const handout *h)
{
    return h->message->number;
}

/* ---- When there is no call any more ---------------------------------------------------------- */

static int is_over(const handout *h, const mull__settings *set)
{
    return set->deadline_ms != MULL__OFF && h->counters.first_failure_ms != 0 &&
           wall_ms(h->process->sim) - h->counters.first_failure_ms > set->deadline_ms;
}

static mull_reason used_up_by(const handout *h, mull__settings set)
{
    int64_t calls = h->counters.calls + h->crashes + h->attempt;
    if (set.max_attempts != MULL__OFF && calls >= set.max_attempts)
        return MULL_REASON_MAX_ATTEMPTS;
    return is_over(h, &set) ? MULL_REASON_DEADLINE : MULL_REASON_NONE;
}

mull_reason used_up(const handout *h)
{
    return used_up_by(h, limits_policy(h));
}

/* used_up_now: its turn may have been just before a reload. */
static mull_reason used_up_now(const handout *h)
{
    mull_reason reason = used_up(h);
    return reason != MULL_REASON_NONE ? reason : used_up_by(h, limits_policy_before(h));
}

/* last_type is that of the last failure here, else as the message says; an Error where there was no
 * memory to keep that. */
static int last_type(const handout *h)
{
    if (h->failed_type > 0)
        return h->failed_type - 1;
    if (h->crashes > 0)
        return CRASHED_TYPE;
    if (h->counters.error_type == 0 ||
        (memory_is_short(h->process->sim) && view_failed_as(h, type_names[UNKNOWN_TYPE])))
        return UNKNOWN_TYPE;
    return h->counters.error_type - 1;
}

void end_unasked(handout *h, mull_reason reason)
{
    const process *p = h->process;
    const counters *c = &h->counters;
    const mull__settings set = in_force(h, p->generation);
    h->allowed = limits_policy(h).max_attempts;
    h->judged_for = (failing){last_type(h), -1, -1};
    h->judged_age_ms = age_now(h);
    h->judged_calls = c->calls + h->crashes + h->attempt;
    h->judged_ms = h->judged_ms ? h->judged_ms : c->last_failure_ms;
    h->judged_under = p->generation;
    h->default_queue = set.dead_letter_queue;
    h->judgement = (judgement){.verdict = {.size = sizeof(mull_verdict),
                                           .action = MULL_DEAD_LETTER,
                                           .reason = reason,
                                           .queue = set.dead_letter_queue,
                                           .generation = p->generation->name}};
    h->judged = 1;
    if (reason == MULL_REASON_MAX_ATTEMPTS)
        p->sim->totals->out_of_attempts++;
    else
        p->sim->totals->out_of_time++;
}

/* ---- What is written down before ------------------------------------------------------------- */

static int has_to_note_by(const handout *h, mull__settings set)
{
    int first = set.deadline_ms != MULL__OFF && h->counters.first_failure_ms != 0 && !h->first_safe;
    if (!h->reader->can.can_note)
        return 0;
    return h->stage == ARRIVED ? first : set.max_attempts != MULL__OFF || first;
}

int has_to_note(const handout *h)
{
    return has_to_note_by(h, limits_policy(h));
}

/* may_note: it may have been decided just before a reload. */
static int may_note(const handout *h)
{
    return has_to_note(h) || has_to_note_by(h, limits_policy_before(h));
}

void expect_note(handout *h)
{
    if (!h->reader->can.can_note)
        WRONG(h, "message %d is noted, which its broker can't", number_of(h));
    if (h->stage != ARRIVED && h->stage != RETRYING)
        WRONG(h, "message %d is noted in stage %d", number_of(h), h->stage);
    int again = h->stage == RETRYING && h->noted == h->attempt;
    if (!may_note(h) || again)
        WRONG(h, "message %d is noted, for nothing", number_of(h));
    if (h->stage == ARRIVED)
        h->failed_type = 1 + last_type(h);
}

int may_end_unasked(const handout *h)
{
    const mull__settings set = limits_policy(h);
    return set.max_attempts != MULL__OFF || set.deadline_ms != MULL__OFF;
}

void note_asked(handout *h)
{
    h->noted_in = h->stage;
    h->note_due = 0;
}

void notes_go_by_it(const process *p)
{
    for (handout *h = NULL; p->engine && (h = model_next(p, h));)
        h->note_due &= !h->unlooked;
}

void note_answered(handout *h, int status)
{
    totals *t = h->process->sim->totals;
    if (status != 0 || h->told_lost) {
        t->notes_lost++;
        h->stage = SETTLED;
        h->answered = MULL_ELOST;
        return;
    }
    t->notes += h->noted_in == RETRYING;
    t->notes_of_deaths += h->noted_in == ARRIVED;
    h->stage = h->noted_in;
    h->noted = h->attempt;
    h->journalled = h->first_safe = 1;
    h->unsafe = h->tries = 0;
}

/* model_unasked: what the engine decided on is looked up, and must be right. */
void model_unasked(handout *h)
{
    mull_settle_kind kind;
    if (h->told_lost || (h->stage != ARRIVED && h->stage != RETRYING) || !view_settles(h, &kind))
        return;
    if (!memory_is_short(h->process->sim))
        WRONG(h, "message %d is to be settled, and nobody was asked", number_of(h));
    if (kind == MULL_SETTLE_NOTE) {
        expect_note(h);
        note_asked(h);
    } else if (kind == MULL_SETTLE_DEAD_LETTER) {
        if (used_up_now(h) == MULL_REASON_NONE)
            WRONG(h, "message %d is to be a dead letter, and may be called", number_of(h));
        end_unasked(h, used_up_now(h));
    } else if (kind != MULL_SETTLE_GIVE_BACK) {
        WRONG(h, "message %d is to be settled as %d in stage %d", number_of(h), kind, h->stage);
    } else if (process_accepts(&h->process->consumers[h->consumer])) {
        h->put_back = 1;
    }
    h->tells_type = view_tells_type(h);
    h->kind = kind;
    h->stage = SETTLING;
    h->unwritten = 1;
    h->process->sim->totals->unwritten++;
    model_failed_try(h);
}

/* ---- What really happened -------------------------------------------------------------------- */

/* is_exact: the broker counts deaths and keeps notes, and the engine has known so all along. */
static int is_exact(const handout *h)
{
    const broker *b = h->connection->broker;
    return b->floor.can_note && b->floor.deliveries == MULL_COUNTS_DEATHS;
}

void account_begun(handout *h)
{
    const mull__settings set = limits_policy(h);
    account *a = &h->origin->account;
    int64_t now_ms = wall_ms(h->process->sim);
    h->unsafe |= h->attempt > h->noted;
    a->exempt |= !h->copy; /* who lost its claim and wasn't told can't know what others did */
    a->begun++;
    if (is_exact(h) && !a->exempt && set.max_attempts != MULL__OFF && a->begun > set.max_attempts)
        WRONG(h, "message %d is called for the %dth time, of %d allowed", number_of(h),
              (int)a->begun, (int)set.max_attempts);
    if (h->copy && set.deadline_ms != MULL__OFF && a->first_written_ms != 0 &&
        now_ms > a->first_written_ms + set.deadline_ms)
        WRONG(h, "message %d is called %d ms after its deadline", number_of(h),
              (int)(now_ms - a->first_written_ms - set.deadline_ms));
    h->process->sim->totals->journal_read += is_exact(h) && !a->exempt && h->crashes > 0 &&
                                             h->claimed.calls > 0 && set.max_attempts != MULL__OFF;
}

void account_failed(const handout *h)
{
    h->origin->account.failed++;
}

void account_uncounted(const handout *h)
{
    h->origin->account.begun--;
}

void account_died(handout *h)
{
    account *a = &h->origin->account;
    a->deaths++;
    a->exempt |= h->unsafe;
}

void account_ended(const handout *h)
{
    const account *a = &h->origin->account;
    if (h->copy && h->judgement.verdict.reason == MULL_REASON_MAX_ATTEMPTS &&
        a->failed + a->deaths < h->allowed)
        WRONG(h, "message %d ends after %d failed calls and %d deaths, of %d allowed", number_of(h),
              (int)a->failed, (int)a->deaths, (int)h->allowed);
}

void account_anew(const handout *h)
{
    h->origin->account = (account){.deaths = h->crashes};
}
