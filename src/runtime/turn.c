/* turn.c: a message's turn has come: its handler is called, unless a limit puts it off, or the
 * policy in force allows no further call. */
#include "turn.h"

#include "admission.h"
#include "base/compiler.h"
#include "calls.h"
#include "copy.h"
#include "delivery.h"
#include "events.h"
#include "limiting.h"
#include "settlement.h"
#include "timers.h"
#include "transitions.h"

/* used_up says which limit of the policy in force allows no further call. */
static mull_reason used_up(const mull__delivery *d)
{
    const mull__consumer *c = d->consumer;
    if (c->max_attempts != MULL__OFF &&
        d->record.calls + d->crashes + d->attempt >= c->max_attempts)
        return MULL_REASON_MAX_ATTEMPTS;
    if (c->deadline_ms != MULL__OFF && d->record.first_failure_ms != 0 &&
        mull__engine_wall(d->engine) - d->record.first_failure_ms > c->deadline_ms)
        return MULL_REASON_DEADLINE;
    return MULL_REASON_NONE;
}

/* last_error gives the last failure's, in memory, or its type as the headers have it. */
static const mull_error *last_error(const mull__delivery *d)
{
    if (d->error)
        return d->error;
    if (d->crashes > 0)
        return &mull__engine_errors[MULL__CRASHED];
    mull_error told = mull__engine_errors[MULL__UNCALLED];
    told.type = d->record.error_type ? d->record.error_type : told.type;
    const mull_error *copy = mull__error_copy(&d->engine->allocator, &told);
    return copy ? copy : &mull__engine_errors[MULL__UNCALLED];
}

/* end_unasked makes a dead letter of a message that may not be called again. No call failed, so no
 * rule is asked. */
MULL__COLD static void end_unasked(mull__delivery *d, mull_reason reason)
{
    mull__admission_made_room(d->consumer);
    d->error = last_error(d);
    d->failed_at_ms = d->failed_at_ms ? d->failed_at_ms : d->record.last_failure_ms;
    mull__delivery_age(d, mull__engine_wall(d->engine));
    mull__decider_refresh(d->engine->decider);
    d->verdict = (mull_verdict){.size = sizeof d->verdict};
    mull__events_begin(d);
    mull__keep_generation(d);
    mull__decide_dead_letter(d, reason);
    mull__settle(d, MULL_SETTLE_DEAD_LETTER);
}

static void look_again(void *data)
{
    mull__delivery *d = data;
    mull__gate_set(d, 0);
    mull__admission_put_by_age(d);
}

/* wait_for_gate: a retry waits without its slot. */
MULL__COLD static void wait_for_gate(mull__delivery *d, int64_t until_ms)
{
    if (d->slot)
        mull__slot_yield(d);
    mull__gate_set(d, 1);
    mull__timer_set(d->engine, &d->timer, until_ms - mull__engine_now(d->engine), look_again, d);
}

/* lacks_first_failure: a deadline counts from the first failure, which for a message whose owners
 * died nobody has written down yet. */
static int lacks_first_failure(const mull__delivery *d)
{
    return d->consumer->deadline_ms != MULL__OFF && d->record.first_failure_ms != 0 &&
           !d->first_is_safe && d->consumer->can.can_note;
}

MULL__COLD static void note_first_failure(mull__delivery *d)
{
    d->error = last_error(d);
    mull__keep_generation(d);
    d->retry_ms = 0;
    mull__delivery_journal(d);
}

void mull__delivery_ask(mull__delivery *d)
{
    int64_t until_ms;
    mull_reason over = used_up(d);
    if (over != MULL_REASON_NONE) {
        end_unasked(d, over);
        return;
    }
    mull__gate gate = mull__limits_gate(d, &until_ms);
    if (gate == MULL__GATE_BACK)
        mull__delivery_go_back(d, until_ms);
    else if (gate == MULL__GATE_WAIT)
        wait_for_gate(d, until_ms);
    else if (lacks_first_failure(d))
        note_first_failure(d);
    else
        mull__delivery_call(d);
}
