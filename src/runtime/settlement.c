/* settlement.c: how a delivery ends at the broker: its settlement is written once, and handed to
 * the transport until that takes it. */
#include "settlement.h"

#include "admission.h"
#include "base/compiler.h"
#include "calls.h"
#include "copy.h"
#include "counting.h"
#include "events.h"
#include "questions.h"
#include "timers.h"
#include "transitions.h"
#include "wire/nservicebus.h"

#include <string.h>
#include <uv.h>

enum { AGAIN_FIRST_MS = 100, MAX_DOUBLED = 7, AGAIN_MAX_MS = 10000, TRIES_WHEN_STOPPING = 3 };

static mull__settings settings_by(const mull__delivery *d, const mull__generation *generation)
{
    return mull__effective_settings_of(mull__generation_table(generation), d->consumer->name,
                                       d->consumer->port->name)
        .settings;
}

mull__settings mull__delivery_settings(const mull__delivery *d)
{
    return settings_by(d, mull__decider_generation(d->engine->decider));
}

void mull__keep_generation(mull__delivery *d)
{
    if (d->generation)
        mull__generation_unref(d->generation);
    d->generation = mull__generation_ref(mull__decider_generation(d->engine->decider));
}

void mull__decide_dead_letter(mull__delivery *d, mull_reason reason)
{
    d->verdict.action = MULL_DEAD_LETTER;
    d->verdict.reason = reason;
    d->verdict.queue = settings_by(d, d->generation).dead_letter_queue;
    d->verdict.generation = mull__generation_name(d->generation);
}

static const char *our_header(const mull__delivery *d, const char *name)
{
    return mull__header_find(d->settlement.ours, d->settlement.our_count, name);
}

/* stamp_for: a redelivery or a dead letter is a new copy, so hand-outs that died with their owner
 * go into its calls. One that is given back, or noted, keeps the broker's count of them. */
static mull__header_values stamp_for(const mull__delivery *d)
{
    mull_settle_kind kind = d->settlement.kind;
    int stays = kind == MULL_SETTLE_GIVE_BACK || kind == MULL_SETTLE_NOTE;
    const char *error_type = d->error ? d->error->type : d->record.error_type;
    mull__header_values stamp = {
        .redeliveries = d->record.redeliveries + (kind == MULL_SETTLE_REDELIVER),
        .calls = d->record.calls + d->attempt + (stays ? 0 : d->crashes),
        .first_failure_ms = d->record.first_failure_ms,
        .last_failure_ms = d->failed_at_ms,
        .held_ms = d->record.held_ms,
        .held_since_ms = kind == MULL_SETTLE_DEAD_LETTER ? 0 : d->record.held_since_ms,
        .error_type = d->tells_type ? error_type : NULL,
        .given_id = d->handed->message->id ? NULL : d->message.id,
        .due_ms = kind == MULL_SETTLE_REDELIVER ? d->record.due_ms : 0,
        .keep_aside = d->record.aside,
        .queue = d->consumer->queue,
    };
    if (kind == MULL_SETTLE_DEAD_LETTER) {
        stamp.error = d->error;
        stamp.consumer = mull__consumer_name(d->consumer);
        stamp.verdict = &d->verdict;
    }
    return stamp;
}

static const char *machine_name(char name[UV_MAXHOSTNAMESIZE])
{
    size_t size = UV_MAXHOSTNAMESIZE;
    return uv_os_gethostname(name, &size) == 0 ? name : "?";
}

/* answer_retry: ServiceControl is told that a message which it sent back was handled. MULL_ENOMEM:
 * it is to be tried again. */
MULL__COLD static int answer_retry(mull__delivery *d)
{
    mull__retry_answer answer;
    if (d->retry_answered ||
        !mull__nservicebus_answer(&answer, d->handed->message, mull__engine_wall(d->engine)))
        return 0;
    int status = mull__sends_add(d, &answer.message);
    d->retry_answered = status != MULL_ENOMEM;
    d->settlement.sends = d->sends;
    d->settlement.send_count = d->send_count;
    if (status == 0 || status == MULL_ENOMEM)
        return status;
    mull__engine_log(d->engine, MULL_WARNING,
                     "%s: ServiceControl isn't told that message %s was handled: %s",
                     d->consumer->label, d->message.id, mull_strerror(status));
    return 0;
}

MULL__COLD static int write_ours(mull__delivery *d)
{
    mull_settlement *settlement = &d->settlement;
    const mull_message *from = d->handed->message;
    mull__header_values stamp = stamp_for(d);
    mull__fault_headers faults;
    char machine[UV_MAXHOSTNAMESIZE];
    if (stamp.error && d->consumer->options.nservicebus) {
        mull__nservicebus_faults(&faults, &stamp, machine_name(machine));
        stamp.faults = faults.list;
        stamp.fault_count = faults.count;
    }
    mull__free(&d->engine->allocator, d->headers);
    d->headers = NULL;
    int status = mull__headers_write(&d->headers, &settlement->our_count, &d->engine->allocator,
                                     from->headers, from->header_count, &stamp);
    settlement->ours = d->headers;
    return status;
}

/* write_headers finishes ours. Those of a message that is given back without a failed call stay as
 * they came, a returned dead letter's record too. */
static int write_headers(mull__delivery *d)
{
    mull_settlement *settlement = &d->settlement;
    int uncounted =
        settlement->kind == MULL_SETTLE_GIVE_BACK && d->attempt == 0 && !d->kept && !d->journalled;
    settlement->as_it_came = settlement->kind == MULL_SETTLE_ACK ||
                             settlement->kind == MULL_SETTLE_DISCARD || uncounted || d->delay_hop;
    if (settlement->kind == MULL_SETTLE_ACK)
        return d->consumer->options.nservicebus ? answer_retry(d) : 0;
    return settlement->as_it_came ? 0 : write_ours(d);
}

/* plan_due sets when a redelivery is due. What is longer than the transport's longest delay is made
 * of several: the end goes into a header, and the message comes by on its way there. */
static void plan_due(mull__delivery *d)
{
    int64_t now_ms = mull__engine_wall(d->engine);
    int64_t longest_ms = d->consumer->can.longest_delay_ms;
    int64_t end_ms = d->delay_hop ? d->record.due_ms : now_ms + d->verdict.delay_ms;
    int in_parts = longest_ms > 0 && end_ms - now_ms > longest_ms;
    d->record.due_ms = in_parts || d->delay_hop ? end_ms : 0;
    d->settlement.due_ms = in_parts ? now_ms + longest_ms : end_ms > now_ms ? end_ms : 0;
}

/* plan_back sets when a message that goes back is due again: sooner where the transport can't delay
 * it for so long, and then it goes back once more. */
static void plan_back(mull__delivery *d)
{
    int64_t longest_ms = d->consumer->can.longest_delay_ms;
    int64_t delay_ms = longest_ms > 0 && d->back_ms > longest_ms ? longest_ms : d->back_ms;
    d->settlement.due_ms = mull__engine_due(d->engine, delay_ms);
}

static void plan(mull__delivery *d, mull_settle_kind kind)
{
    int sends = kind == MULL_SETTLE_ACK;
    d->settlement = (mull_settlement){.size = sizeof d->settlement,
                                      .kind = kind,
                                      .queue = kind == MULL_SETTLE_DEAD_LETTER ? d->verdict.queue
                                                                               : d->consumer->queue,
                                      .id = d->message.id,
                                      .sends = sends ? d->sends : NULL,
                                      .send_count = sends ? d->send_count : 0};
    if (kind == MULL_SETTLE_REDELIVER)
        plan_due(d);
    if (kind == MULL_SETTLE_GIVE_BACK)
        plan_back(d);
}

/* ---- Handing it over, and the answer --------------------------------------------------------- */

static void hand_over(void *data);
static void on_answered(mull__question *question, int status, const char *why);

/* end_settling: from now on nothing is asked of the transport. */
static void end_settling(mull__delivery *d, mull__message_state end)
{
    d->consumer->settling--;
    d->consumer->failing -= d->tries > 0;
    if (d->unanswered) /* its answer may come still, and is none too many */
        mull__question_drop(d->engine, &d->question);
    else
        mull__question_end(d->engine, &d->question);
    mull__engine_cancel(d->engine, &d->timer);
    mull__message_becomes(d, end);
    mull__engine_mark_posted(d->engine);
}

/* backoff_ms is how long the next try waits. */
static int64_t backoff_ms(const mull__delivery *d)
{
    uint32_t doubled = d->tries <= MAX_DOUBLED ? d->tries - 1 : MAX_DOUBLED;
    int64_t delay_ms = (int64_t)AGAIN_FIRST_MS << doubled;
    return d->engine->closing ? 0 : delay_ms < AGAIN_MAX_MS ? delay_ms : AGAIN_MAX_MS;
}

/* abandon leaves the message claimed. */
static void abandon(mull__delivery *d)
{
    end_settling(d, MULL__ABANDONED);
    mull__events_end(d);
}

/* failed tries again later, or leaves the message claimed: when its owner is gone, the broker hands
 * it out again. */
static void failed(mull__delivery *d, int status, const char *why)
{
    mull_engine *engine = d->engine;
    mull_port *port = d->consumer->port;
    int broken = port->health == MULL_BROKEN;
    mull__copy_cut(d->consumer->tally.settling_why, sizeof d->consumer->tally.settling_why,
                   why ? why : mull_strerror(status));
    /* One line for all that fail meanwhile: the first says that it begins. */
    if (!broken && d->tries++ == 0 && d->consumer->failing++ == 0)
        mull__engine_log(engine, MULL_WARNING,
                         "%s: message %s isn't settled (%s); trying again, taking nothing new",
                         d->consumer->label, d->message.id, why ? why : mull_strerror(status));
    int hopeless = d->tries > TRIES_WHEN_STOPPING || port->health == MULL_DOWN;
    if (!broken && (!engine->grace_over || !hopeless)) {
        mull__timer_set(engine, &d->timer, backoff_ms(d), hand_over, d);
        return;
    }
    port->abandoned += (uint32_t)broken;
    if (!broken)
        mull__engine_log(engine, MULL_ERROR_LEVEL,
                         "%s: message %s could not be settled before the end; it will be handed "
                         "out again",
                         d->consumer->label, d->message.id);
    abandon(d);
}

void mull__settlement_give_up(mull__delivery *d)
{
    if (d->state != MULL__SETTLING || d->question.ticket.number == 0 || d->question.kept)
        return;
    mull__engine_log(d->engine, MULL_ERROR_LEVEL,
                     "%s: transport %s did not say before the end whether message %s is settled; "
                     "if it isn't, it will be handed out again",
                     d->consumer->label, d->consumer->port->name, d->message.id);
    d->unanswered = 1;
    abandon(d);
}

static void on_unanswered(mull__question *question)
{
    mull__delivery *d = MULL__ENTRY(question, mull__delivery, question);
    d->overlong = 1;
    mull__engine_log(d->engine, MULL_WARNING,
                     "%s: transport %s has not said for %d s whether message %s is settled; it is "
                     "waited for",
                     d->consumer->label, d->consumer->port->name, MULL__ANSWER_MS / 1000,
                     d->message.id);
}

static const mull__asker settler = {.answered = on_answered, .unanswered = on_unanswered};

static void hand_over(void *data)
{
    mull__delivery *d = data;
    mull_port *port = d->consumer->port;
    if (d->engine->drain_over) {
        abandon(d);
        return;
    }
    int status = write_headers(d);
    if (status != 0) {
        failed(d, status, NULL);
        return;
    }
    mull_ticket ticket = mull__question_ask(port, &d->question, MULL__TICKET_SETTLEMENT, &settler);
    mull_settlement *settlement = &d->settlement;
    int notes = settlement->kind == MULL_SETTLE_NOTE;
    int fault = mull__fault_hit(port, notes ? MULL__NOTE : MULL__SETTLE);
    int dead = settlement->kind == MULL_SETTLE_DEAD_LETTER;
    settlement->error_type = dead ? our_header(d, "mulligan-error-type") : NULL;
    settlement->reason = dead ? mull_reason_name(d->verdict.reason) : NULL;
    settlement->rule = dead ? our_header(d, "mulligan-rule") : NULL;
    settlement->consumer = dead ? mull__consumer_name(d->consumer) : NULL;
    if (fault != 0)
        mull__question_answered(&d->question, fault, NULL);
    else
        port->ops->settle(port->self, d->handed, settlement, ticket);
    mull__question_asked(&d->question);
}

/* ---- Where the transport never will ---------------------------------------------------------- */

/* refused_send: its handler succeeded, but what it sent can't go out. */
static void refused_send(mull__delivery *d, const char *why)
{
    const mull_error *error = &mull__engine_errors[MULL__SEND_REFUSED];
    mull_error told = *error;
    told.message = why ? why : error->message;
    const mull_error *copy = mull__error_copy(&d->engine->allocator, &told);
    mull__error_free(d->engine, d->error);
    d->error = copy ? copy : error;
    d->failed_at_ms = mull__engine_wall(d->engine);
    if (d->record.first_failure_ms == 0)
        d->record.first_failure_ms = d->failed_at_ms;
    mull__count_failure(d);
    mull__sends_drop(d);
}

/* decide_anew: what was decided has been told, or was nothing. No rule is asked; the policy in
 * force names the queue of its dead letter. */
static void decide_anew(mull__delivery *d)
{
    if (d->call == 0)
        mull__slot_free(d);
    mull__decider_refresh(d->engine->decider);
    mull__keep_generation(d);
    d->verdict = (mull_verdict){.size = sizeof d->verdict};
    mull__events_begin(d);
}

static void park(mull__delivery *d, const char *why)
{
    mull__engine_log(d->engine, MULL_ERROR_LEVEL,
                     "%s: message %s is parked: the transport never settles it (%s); it stays "
                     "claimed here until it stops",
                     d->consumer->label, d->message.id, why);
    d->parked = 1;
    d->consumer->parked++;
    d->consumer->port->parked++;
    abandon(d);
}

/* refused: what was decided can never be. The default queue of dead letters is tried, once, of the
 * policy that decided. */
static void refused(mull__delivery *d, const char *why)
{
    const mull_settlement *settlement = &d->settlement;
    int sends = settlement->kind == MULL_SETTLE_ACK && settlement->send_count > 0;
    int elsewhere =
        settlement->kind == MULL_SETTLE_REDELIVER || settlement->kind == MULL_SETTLE_NOTE ||
        (settlement->kind == MULL_SETTLE_DEAD_LETTER &&
         strcmp(settlement->queue, settings_by(d, d->generation).dead_letter_queue) != 0);
    why = why ? why : mull_strerror(MULL_EREFUSED);
    if (d->refused || d->delay_hop || (!sends && !elsewhere)) {
        park(d, why);
        return;
    }
    mull__engine_log(d->engine, MULL_WARNING,
                     "%s: message %s can't be settled as decided (%s); it becomes a dead letter",
                     d->consumer->label, d->message.id, why);
    d->refused = 1;
    if (sends)
        refused_send(d, why);
    if (sends || settlement->kind == MULL_SETTLE_NOTE)
        decide_anew(d);
    mull__decide_dead_letter(d, MULL_REASON_UNRECOVERABLE);
    plan(d, MULL_SETTLE_DEAD_LETTER);
    hand_over(d);
}

/* ---- A settlement ---------------------------------------------------------------------------- */

void mull__settle(mull__delivery *d, mull_settle_kind kind)
{
    if (d->call == 0 && kind != MULL_SETTLE_NOTE)
        mull__slot_free(d);
    mull__message_becomes(d, MULL__SETTLING);
    const mull__consumer *c = d->consumer;
    d->tells_type = c->max_attempts != MULL__OFF || c->deadline_ms != MULL__OFF;
    d->tries = 0;
    d->consumer->settling++;
    plan(d, kind);
    hand_over(d);
}

void mull__settlement_retry_now(mull__delivery *d)
{
    if (d->state == MULL__SETTLING && d->timer.set)
        mull__timer_set(d->engine, &d->timer, 0, d->timer.fire, d);
}

/* count_end counts how a message ended, and tells of the verdict that is carried out. */
static void count_end(mull__delivery *d)
{
    mull_settle_kind kind = d->settlement.kind;
    if (kind == MULL_SETTLE_ACK) {
        d->engine->counts.done++;
        d->consumer->tally.done++;
    } else if (kind != MULL_SETTLE_GIVE_BACK && !d->delay_hop) {
        mull__count_verdict(d);
        mull__event_decided(d);
    }
}

void mull__log_lost(const mull__delivery *d, const char *why)
{
    mull__engine_log(d->engine, MULL_WARNING,
                     "%s: the claim on message %s is gone%s%s; it will be handed out again",
                     d->consumer->label, d->message.id, why ? ": " : "", why ? why : "");
}

/* note_put_off: what goes back may have come with a due time that is over. */
static void note_put_off(const mull__delivery *d)
{
    int64_t end_ms =
        d->record.due_ms > d->settlement.due_ms ? d->record.due_ms : d->settlement.due_ms;
    if (end_ms > d->engine->put_off_ms)
        d->engine->put_off_ms = end_ms;
}

/* answered_late: it was given up, and is the engine's to release again. */
static void answered_late(mull__delivery *d)
{
    d->unanswered = 0;
    if (d->engine->closing != MULL__CLOSE_PORTS)
        return; /* the close will */
    mull__message_becomes(d, MULL__LOST);
    mull__delivery_release(d);
}

void mull__settlement_answered(mull__delivery *d, int status, const char *why)
{
    mull__question_end(d->engine, &d->question);
    if (d->unanswered) {
        answered_late(d);
        return;
    }
    d->overlong = 0;
    mull__engine_mark_posted(d->engine);
    d->engine->active_ms = mull__turn_ms(d->engine);
    if (status == MULL_EREFUSED && !d->claim_lost) {
        refused(d, why);
        return;
    }
    if (status != 0 && status != MULL_ELOST && !d->claim_lost) {
        failed(d, status, why);
        return;
    }
    int noted = d->settlement.kind == MULL_SETTLE_NOTE;
    if (noted && status == 0 && !d->claim_lost) {
        end_settling(d, MULL__PAUSING);
        d->tries = 0;
        d->first_is_safe = d->journalled = 1;
        d->noted(d);
        return;
    }
    if (status == 0 && !noted) {
        end_settling(d, MULL__SETTLED);
        if (d->settlement.due_ms > 0)
            note_put_off(d);
        count_end(d);
    } else {
        end_settling(d, MULL__LOST);
        mull__log_lost(d, why);
    }
    mull__events_end(d);
    mull__delivery_release(d);
}

static void on_answered(mull__question *question, int status, const char *why)
{
    mull__settlement_answered(MULL__ENTRY(question, mull__delivery, question), status, why);
}

int mull__all_settled(mull_engine *engine)
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (port->deferred && !engine->grace_over)
            return 0;
    for (mull__delivery *d = NULL; (d = mull__next_delivery(engine, d));)
        if (d->state < MULL__SETTLED)
            return 0;
    return 1;
}

void mull__delivery_release(mull__delivery *d)
{
    if (d->state < MULL__SETTLED || d->state == MULL__ABANDONED || d->call != 0)
        return;
    const mull_allocator *allocator = &d->engine->allocator;
    mull_port *port = d->consumer->port;
    mull__slot_free(d);
    mull__engine_cancel(d->engine, &d->timer);
    mull__list_remove(&d->engine->deliveries, &d->engine_link);
    d->consumer->parked -= (uint32_t)d->parked;
    d->consumer->deliveries--;
    if (d->consumer->reader)
        d->consumer->reader->deliveries--;
    d->engine->dirty |= d->engine->changing;
    mull__ticket_take(d->engine, &d->ticket);
    mull__question_end(d->engine, &d->question);
    if (!d->unanswered && port->state != MULL__PORT_CLOSED) {
        d->handed->runtime = NULL; /* a transport that delivers it once more is found out */
        port->ops->release(port->self, d->handed);
    }
    mull__sends_drop(d);
    if (d->generation)
        mull__generation_unref(d->generation);
    mull__error_free(d->engine, d->error);
    mull__free(allocator, d->words);
    mull__free(allocator, d->headers);
    mull__free(allocator, d->visible);
    mull__free(allocator, d);
}
