/* model.c: is what happens right? It is told of everything that passes between engine, broker and
 * handlers, and keeps its own account of each hand-out:
 *
 *   ON_ITS_WAY ── ARRIVED ── WORKING ──┬── SUCCEEDED ── SETTLING ── SETTLED
 *                    ^                 ├── FAILED ──┬── SETTLING ...
 *                    └─── RETRYING <───┴────────────┘
 *
 * What an engine says and does is compared with that account; what it should say of a failure is
 * asked of the table of the generation in force (verdicts.c). After each turn of an engine nothing
 * may be left to do. */
#include "sim.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define WRONG(h, ...) violation((h)->process->sim, __VA_ARGS__)

handout *handout_of(const mull_message *m)
{
    return (handout *)(void *)((char *)(uintptr_t)m->body - offsetof(handout, body));
}

void take_id(char kept[36], const char *id)
{
    if (id != kept)
        snprintf(kept, 36, "%s", id);
}

static int number_of(const handout *h)
{
    return h->message->number;
}

static const consumer *consumer_of(const handout *h)
{
    return &h->process->consumers[h->consumer];
}

/* accepts says whether the engine keeps a message until its handler can be called. */
static int accepts(const handout *h)
{
    return process_accepts(consumer_of(h));
}

/* is_read says whether new messages of a consumer may be called. */
static int is_read(const process *p, int queue)
{
    const reader *r = process_reader(p, queue);
    return r && r->state == MULL_SOURCE_READY && !r->connection->down &&
           process_accepts(&p->consumers[queue]);
}

/* can_of is what a hand-out's broker can do, as far as the engine knows. */
static const mull_abilities *can_of(const handout *h)
{
    return &h->reader->can;
}

int64_t deliveries_of(const handout *h)
{
    return can_of(h)->deliveries == MULL_COUNTS_NOTHING ? 1 : h->content.deliveries;
}

/* ---- All hand-outs of a process -------------------------------------------------------------- */

handout *model_next(const process *p, const handout *after)
{
    mull__link *link = NULL;
    int b = 0;
    if (after) {
        b = after->connection->broker->index;
        link =
            mull__list_after(&after->connection->handouts, (mull__link *)(uintptr_t)&after->link);
        b++;
    }
    for (; !link && b < p->sim->broker_count; b++)
        link = mull__list_first(&p->connections[b]->handouts);
    return link ? MULL__ENTRY(link, handout, link) : NULL;
}

/* tally is what the consumers of a process are at. */
typedef struct tally {
    uint32_t at_work[QUEUES]; /* handlers, cut off or not */
    uint32_t slots[QUEUES];   /* those, and retries that wait, */
    uint32_t held[QUEUES];    /* be it without a slot, since a limit holds them up */
    uint32_t due[QUEUES];     /* retries whose delay is over */
    uint32_t gated[QUEUES];   /* new ones that wait for the pace of their value */
    uint32_t failing[QUEUES]; /* settlements that failed */
    uint32_t waiting[QUEUES]; /* for their first call */
    uint32_t settling[QUEUES];
    uint32_t parked[QUEUES]; /* their broker refuses each settlement */
    uint32_t candidates[QUEUES];
    int alone; /* a candidate's first call is at work */
    int open;  /* calls that weren't cut off */
} tally;

static int is_candidate(const handout *h)
{
    return h->stage == ARRIVED && h->crashes > 0;
}

/* is_settling: one whose claim is gone meanwhile is given up, whenever its next try would be. */
static int is_settling(const handout *h)
{
    return h->stage == SETTLING && (!h->told_lost || h->under_way);
}

static int is_failing(const handout *h)
{
    return is_settling(h) && h->tries > 0;
}

/* is_retrying: be it while its calls are written down. */
static int is_retrying(const handout *h)
{
    int noted = h->stage == SETTLING && h->kind == MULL_SETTLE_NOTE && h->noted_in == RETRYING;
    return (h->stage == RETRYING && !h->told_lost) || (noted && is_settling(h));
}

static void tally_waiting(tally *t, const handout *h)
{
    int c = h->consumer;
    int gated = (h->stage == ARRIVED || h->stage == RETRYING) && view_gated(h);
    t->held[c] += h->stage == RETRYING && view_held(h);
    t->due[c] += h->stage == RETRYING && !h->at_work && !gated &&
                 h->process->sim->k.now_ms >= h->retry_not_before_ms;
    t->gated[c] += h->stage == ARRIVED && gated;
    t->waiting[c] += h->stage == ARRIVED && !is_candidate(h) && !gated;
    t->candidates[c] += is_candidate(h) && !gated;
}

static tally take_tally(const process *p)
{
    tally t = {0};
    for (handout *h = NULL; (h = model_next(p, h));) {
        int c = h->consumer;
        t.at_work[c] += h->at_work != 0;
        t.slots[c] += h->at_work || is_retrying(h);
        t.settling[c] += is_settling(h) != 0;
        t.parked[c] += h->stage == PARKED && !h->told_lost;
        t.failing[c] += is_failing(h) != 0;
        if (!h->told_lost)
            tally_waiting(&t, h);
        if (h->stage == WORKING && h->at_work && !h->cancelled) {
            t.open++;
            t.alone |= h->first_of_candidate;
        }
    }
    return t;
}

/* may_call says whether a consumer has a slot that is free, and no limit is against a call. */
static int may_call(const process *p, const tally *t, int queue)
{
    const consumer *c = &p->consumers[queue];
    return t->failing[queue] == 0 && is_read(p, queue) &&
           t->slots[queue] - t->held[queue] < c->concurrency && !limits_shut(c);
}

/* candidates_may_run gives a bit for each queue that has one that may: it has a slot that is free;
 * as a probe, if nothing else is there or on its way. */
static unsigned candidates_may_run(const process *p, const tally *t)
{
    unsigned may_run = 0;
    for (int c = 0; c < QUEUES; c++)
        if (t->candidates[c] > 0 && may_call(p, t, c) &&
            (!limits_probe(&p->consumers[c]) ||
             (t->waiting[c] + t->due[c] == 0 && !view_more_may_come(&p->consumers[c]))))
            may_run |= 1U << c;
    return may_run;
}

void no_candidate_waits(process *p)
{
    for (int queue = 0; queue < QUEUES; queue++)
        p->candidate_since_ms[queue] = INT64_MAX;
}

/* ---- It arrives ------------------------------------------------------------------------------ */

void model_unsubscribed(const process *p, const reader *r)
{
    int changes = p->consumers[r->consumer].place != WORKS;
    if (!p->dead && !changes)
        violation(p->sim, "queue %d is given up, and nobody asked to", r->queue);
}

static uint32_t most_credit(const consumer *c)
{
    return c->concurrency + 2 * c->prefetch;
}

void model_subscribed(process *p, const reader *r, const mull_source *source)
{
    consumer *c = &p->consumers[r->consumer];
    p->sim->totals->renewals += c->place == RENEWS;
    c->place = WORKS;
    uint32_t most = most_credit(c);
    if (source->most != most || (c->max_body > 0 && source->max_body != c->max_body))
        violation(p->sim, "queue %d is to be read up to %u messages, not %u, or other sizes",
                  r->queue, source->most, most);
}

void model_delivered(handout *h)
{
    const sim *s = h->process->sim;
    counters *c = &h->counters;
    h->counters = h->claimed;
    note(h->process->sim, "message %lld arrives at process %lld", number_of(h), h->process->index,
         0, 0);
    h->stage = ARRIVED;
    h->fresh = 1;
    h->held_ms = s->k.now_ms;
    h->arrived_under = h->process->generation;
    h->process->busy_ms = s->k.now_ms;
    h->crashes = can_of(h)->deliveries == MULL_COUNTS_DEATHS ? deliveries_of(h) - 1 : 0;
    /* A dead letter that somebody put back counts from the start. */
    if (c->record > 0 && (c->record == h->consumer + 1 || c->counting != h->consumer + 1)) {
        c->redeliveries = c->calls = c->first_failure_ms = c->last_failure_ms = 0;
        c->held_ms = c->held_since_ms = c->error_type = 0;
        account_anew(h);
    }
    h->first_safe = c->first_failure_ms != 0;
    if (h->crashes > 0 && c->first_failure_ms == 0)
        c->first_failure_ms = wall_ms(s);
}

void model_looked(handout *h)
{
    const sim *s = h->process->sim;
    if (h->process->dead)
        return;
    if (h->stage == ARRIVED && connection_strayed(h)) {
        h->stage = STRAYED;
        s->totals->strays++;
    } else if (h->stage == STRAYED && !connection_strayed(h) && !h->process->drained) {
        model_delivered(h); /* once nothing is settled any more, it stays what it is */
    }
    if (h->fresh && h->stage == ARRIVED)
        ticket_given(h->process, h->delivery.ticket);
    int fresh = h->fresh && h->stage == ARRIVED;
    h->fresh = 0;
    if (s->counting_allocator.failed_ms < s->k.now_ms || h->told_lost)
        return;
    if (fresh || h->stage == FAILED)
        model_unwritten(h);
    else if (is_failing(h) && !h->under_way && s->k.now_ms >= h->try_not_before_ms)
        model_failed_try(h);
}

/* ---- Its handler is called ------------------------------------------------------------------- */

static void check_counters(const handout *h, const mull_message *m)
{
    const counters *c = &h->counters;
    int64_t calls = c->calls + h->crashes + h->attempt;
    if (m->attempt != h->attempt + 1)
        WRONG(h, "message %d: attempt %d, not %d", number_of(h), (int)m->attempt,
              (int)h->attempt + 1);
    if (m->redeliveries != c->redeliveries)
        WRONG(h, "message %d: %d redeliveries, not %d", number_of(h), (int)m->redeliveries,
              (int)c->redeliveries);
    if (m->calls != calls)
        WRONG(h, "message %d: %d calls, not %d", number_of(h), (int)m->calls, (int)calls);
    if (m->deliveries != deliveries_of(h))
        WRONG(h, "message %d: %d deliveries, not %d", number_of(h), (int)m->deliveries,
              (int)deliveries_of(h));
}

/* check_headers: all that it came with, but for a dead letter that is back where it came from: its
 * record is of an earlier life. */
static void check_headers(const handout *h, const mull_message *m)
{
    const mull_message *from = &h->content;
    int returned = h->counters.record == h->consumer + 1;
    size_t count = 0;
    for (size_t i = 0; i < from->header_count; i++) {
        const mull_header *header = &from->headers[i];
        if (returned && strncmp(header->name, "mulligan-", strlen("mulligan-")) == 0)
            continue;
        if (count >= m->header_count || strcmp(m->headers[count].name, header->name) != 0 ||
            strcmp(m->headers[count].value, header->value) != 0)
            WRONG(h, "message %d lacks the header %s", number_of(h), header->name);
        count++;
    }
    if (count != m->header_count)
        WRONG(h, "message %d has %d headers, not %d", number_of(h), (int)m->header_count,
              (int)count);
}

static void check_content(const handout *h, const mull_message *m)
{
    if (m->body != h->body || strtol(h->body, NULL, 10) != number_of(h))
        WRONG(h, "message %d has another body", number_of(h));
    if (strcmp(m->queue, queue_name(h->consumer)) != 0)
        WRONG(h, "message %d is of the queue %s", number_of(h), m->queue);
    if (!same_text(m->key, h->message->key) || !same_text(m->type, h->message->type))
        WRONG(h, "message %d has another key or type", number_of(h));
    if (!m->id || !m->id[0] || (h->id[0] && strcmp(m->id, h->id) != 0))
        WRONG(h, "message %d has the id %s, not %s", number_of(h), m->id ? m->id : "-", h->id);
}

/* check_limits: its policy's limits, as they stand, but that of hand-outs, as it stood when it
 * came.
 */
static void check_limits(const handout *h)
{
    int64_t calls = h->counters.calls + h->crashes + h->attempt;
    if (used_up(h) != MULL_REASON_NONE)
        WRONG(h, "message %d is called after %d calls, %d ms after its first failure", number_of(h),
              (int)calls, (int)(wall_ms(h->process->sim) - h->counters.first_failure_ms));
    int64_t deliveries = deliveries_of(h);
    const mull__settings set = in_force(h, h->arrived_under);
    if (h->stage == ARRIVED && deliveries > 1 && set.max_deliveries != MULL__OFF &&
        deliveries > set.max_deliveries)
        WRONG(h, "message %d is called in hand-out %d, of %d allowed", number_of(h),
              (int)deliveries, (int)set.max_deliveries);
    if (h->note_due || (h->stage == ARRIVED && has_to_note(h)))
        WRONG(h, "message %d is called before its failures are safe", number_of(h));
}

enum { PATIENCE_MS = 5000, PROBE_WAITS_MS = 1000 };

/* check_alone: while a candidate's first call works nothing else starts, and it starts beside
 * others only where these have lasted for very long. */
static void check_alone(const handout *called, const tally *t)
{
    const sim *s = called->process->sim;
    if (t->alone)
        WRONG(called, "message %d is called beside a candidate", number_of(called));
    for (handout *h = NULL; is_candidate(called) && (h = model_next(called->process, h));)
        if (h->stage == WORKING && h->at_work && !h->cancelled &&
            s->k.now_ms - h->started_ms < PATIENCE_MS)
            WRONG(called, "candidate %d is called beside message %d", number_of(called),
                  number_of(h));
}

static void check_start(const handout *h)
{
    const sim *s = h->process->sim;
    if (h->told_lost)
        WRONG(h, "message %d is called, though its claim is gone", number_of(h));
    if (h->stage != ARRIVED && h->stage != RETRYING)
        WRONG(h, "message %d is called in stage %d", number_of(h), h->stage);
    /* What a handler asks for takes effect on the next turn. */
    if (!accepts(h) && h->process->asked_in != s->k.steps &&
        consumer_of(h)->changed_in != s->k.steps)
        WRONG(h, "message %d is called while its consumer takes none", number_of(h));
    if (h->stage == ARRIVED && accepts(h) && !is_read(h->process, h->consumer))
        WRONG(h, "message %d is called, and its queue isn't read", number_of(h));
    if (h->at_work)
        WRONG(h, "message %d is called before its last call was ended", number_of(h));
    if (h->stage == RETRYING && s->k.now_ms < h->retry_not_before_ms)
        WRONG(h, "message %d is retried %d ms early", number_of(h),
              (int)(h->retry_not_before_ms - s->k.now_ms));
    if (wall_ms(s) < h->counters.not_before_ms)
        WRONG(h, "message %d is called %d ms before it is due", number_of(h),
              (int)(h->counters.not_before_ms - wall_ms(s)));
}

void model_called(handout *h, mull_call call, const mull_message *m)
{
    sim *s = h->process->sim;
    if (h->stage == STRAYED)
        model_delivered(h);
    tally t = take_tally(h->process);
    note(s, "process %lld calls message %lld, attempt %lld, after %lld calls", h->process->index,
         number_of(h), m->attempt, m->calls);
    check_start(h);
    if (call == 0 || call == h->call)
        WRONG(h, "the call of message %d has a number that was used", number_of(h));
    if (t.at_work[h->consumer] >= consumer_of(h)->concurrency)
        WRONG(h, "consumer %d has %u handlers at work already", h->consumer,
              t.at_work[h->consumer]);
    int heard = h->process->in_slot_ms != s->k.now_ms; /* that some can't be settled */
    if (h->stage == ARRIVED && t.failing[h->consumer] > 0 && heard)
        WRONG(h, "message %d is new, and others can't be settled", number_of(h));
    check_alone(h, &t);
    check_counters(h, m);
    check_content(h, m);
    check_headers(h, m);
    check_limits(h);
    limits_began(h, call);
    account_begun(h);
    age_now(h);
    take_id(h->id, m->id);
    s->totals->calls++;
    s->totals->candidates += (uint64_t)is_candidate(h);
    s->totals->in_company += is_candidate(h) && t.open > 0;
    h->first_of_candidate = is_candidate(h);
    no_candidate_waits(h->process); /* while one waits for others, nothing starts */
    h->stage = WORKING;
    h->call = call;
    h->at_work = 1;
    h->cancelled = 0;
    h->started_ms = s->k.now_ms;
    h->sent = NULL;
    h->sent_count = 0;
}

void model_sent(handout *h, message *m, int status)
{
    int expected = h->cancelled ? MULL_EDONE : 0;
    if (status != expected)
        WRONG(h, "sending message %d gave %d, not %d", m->number, status, expected);
    if (status != 0)
        return;
    message **end = &h->sent;
    while (*end)
        end = &(*end)->next_sent;
    *end = m;
    h->sent_count++;
}

void model_ended(handout *h, int status, const failing *f)
{
    sim *s = h->process->sim;
    note(s, "message %lld's handler ends: type %lld, answer %lld", number_of(h), f ? f->type : -1,
         status, 0);
    int expected = h->cancelled ? MULL_EDONE : 0;
    if (!h->at_work || status != expected)
        WRONG(h, "ending the call of message %d gave %d, not %d", number_of(h), status, expected);
    h->at_work = 0;
    h->unlooked = 1;
    if (h->cancelled) {
        s->totals->late_ends++;
        int noting = h->stage == SETTLING && h->kind == MULL_SETTLE_NOTE;
        if (h->stage != RETRYING && !noting)
            return;
        h->retry_not_before_ms = s->k.now_ms + h->judgement.verdict.delay_ms;
        h->note_due = !noting && accepts(h) && !h->told_lost && has_to_note(h) &&
                      h->noted != h->attempt && consumer_of(h)->limits_of == h->process->generation;
        return;
    }
    h->stage = f ? FAILED : SUCCEEDED;
    s->totals->failures += f != NULL;
    if (f)
        h->failing = *f;
}

void model_cancelled(handout *h)
{
    note(h->process->sim, "message %lld's call is cut off", number_of(h), 0, 0, 0);
    if (!h->at_work || h->cancelled)
        WRONG(h, "a call of message %d is cancelled that isn't at work", number_of(h));
    if (h->stage == WORKING && !h->told_lost)
        model_unwritten(h);
    h->cancelled = 1;
}

/* ---- It is taken away, it is released -------------------------------------------------------- */

void model_lost(handout *h)
{
    note(h->process->sim, "process %lld is told that message %lld is lost", h->process->index,
         number_of(h), 0, 0);
    h->told_lost = 1;
}

/* is_abandoned: it couldn't be settled before the end, or there was no memory to take it in. */
static int is_abandoned(const handout *h)
{
    int left = h->stage == STRAYED || h->stage == PARKED || (is_failing(h) && !h->under_way);
    int leaves = consumer_of(h)->place != WORKS && h->stage == PARKED;
    return (h->connection->closing || leaves) && left && !h->told_lost;
}

static int may_be_released(const handout *h)
{
    return h->stage == SETTLED || (h->told_lost && !h->under_way) || is_abandoned(h);
}

void model_released(handout *h)
{
    if (h->process->dead)
        return;
    if (!may_be_released(h))
        WRONG(h, "message %d is released in stage %d", number_of(h), h->stage);
    h->process->sim->totals->abandoned += (uint64_t)is_abandoned(h);
    h->process->consumers[h->consumer].let_go |= h->stage == PARKED;
    if (h->at_work)
        WRONG(h, "message %d is released, and its handler works", number_of(h));
    if (h->stage == SETTLED && h->answered == 0 && h->judged)
        WRONG(h, "nobody was told of the verdict on message %d", number_of(h));
    if (h->unheard)
        WRONG(h, "notify heard nothing of the verdict on message %d", number_of(h));
}

int model_stuck(const handout *h)
{
    return h->stage == PARKED || h->mute;
}

int model_is_stuck(const process *p)
{
    for (handout *h = NULL; (h = model_next(p, h));)
        if (model_stuck(h))
            return 1;
    for (int c = 0; c < QUEUES; c++)
        if (p->consumers[c].place > RENEWS || p->consumers[c].let_go)
            return 1;
    for (int b = 0; b < p->sim->broker_count; b++)
        for (int i = 0; i < p->connections[b]->reader_count; i++)
            if (p->connections[b]->readers[i]->state == MULL_SOURCE_REFUSED)
                return 1;
    return 0;
}

/* ---- Publishing ------------------------------------------------------------------------------ */

message *model_published(const connection *c, const mull_outgoing *outgoing)
{
    sim *s = c->broker->sim;
    const mull_message *given = outgoing->message;
    long number = strtol(given->body, NULL, 10);
    if (number < 0 || number >= s->message_count)
        violation(s, "a message is published that nobody made");
    message *m = s->messages[number];
    int64_t due_ms = m->delay_ms > 0 ? wall_ms(s) + m->delay_ms : 0;
    if (m->origin != PUBLISHED || m->exists)
        violation(s, "message %d is published, which it should not", m->number);
    if (!given->id || (m->id[0] && strcmp(m->id, given->id) != 0) ||
        strcmp(given->queue, queue_name(m->queue)) != 0 || outgoing->due_ms != due_ms)
        violation(s, "message %d isn't published as it should", m->number);
    take_id(m->id, given->id);
    return m;
}

/* ---- After a turn ---------------------------------------------------------------------------- */

uint32_t model_parked(const reader *r)
{
    return take_tally(r->connection->process).parked[r->consumer];
}

/* A call that there was no memory for is tried again after so long. */
enum { CALL_AGAIN_MS = 100 };

static int short_of_calls(const sim *s)
{
    return s->k.now_ms <= s->counting_allocator.failed_ms + CALL_AGAIN_MS;
}

/* right_credit: those at work, or held up, what waits for its value, candidates while only probes
 * are called, a reserve, of no more than can be called soon, and what is being settled, at most
 * what the queue was subscribed for; nothing while settlements fail, or the queue isn't read. */
static uint32_t right_credit(const process *p, const tally *t, const reader *r, uint32_t others)
{
    int c = r->consumer;
    uint32_t most = most_credit(&p->consumers[c]);
    if (!process_accepts(&p->consumers[c]) || t->failing[c] > 0 || r->state != MULL_SOURCE_READY)
        return 0;
    uint32_t right = t->slots[c] + t->gated[c] + t->settling[c];
    right += others;
    return t->parked[c] + (right < most ? right : most);
}

static void check_credit(const process *p, const tally *t)
{
    for (int b = 0; b < p->sim->broker_count; b++) {
        const connection *c = p->connections[b];
        for (int i = 0; i < c->reader_count && !c->closing; i++) {
            const reader *r = c->readers[i];
            const consumer *of = &p->consumers[r->consumer];
            uint32_t soon = limits_soon(of, of->prefetch);
            uint32_t candidates = limits_probe(of) ? t->candidates[r->consumer] : 0;
            uint32_t right = right_credit(p, t, r, candidates + soon);
            /* As time goes by more could be called soon; the engine needn't look before one can. A
             * candidate whose call there was no memory for counts for nothing. */
            soon = limits_paced(of) ? !limits_shut(of) : soon;
            candidates = short_of_calls(p->sim) ? 0 : candidates;
            uint32_t least = right_credit(p, t, r, candidates + soon);
            if (r->credit > right || r->credit < least)
                violation(p->sim,
                          "queue %d has a credit of %u, not %u: %u have slots, %u wait for their "
                          "value, %u are candidates, %u are settled, %u can be called soon",
                          r->queue, r->credit, right, t->slots[r->consumer], t->gated[r->consumer],
                          t->candidates[r->consumer], t->settling[r->consumer], soon);
        }
    }
}

/* check_held: but for what the engine gave up to settle before its end. */
static void check_held(const handout *h)
{
    const mull_abilities *can = can_of(h);
    int given_up = is_failing(h) && !h->under_way && process_is_stopping(h->process);
    int held = h->stage >= ARRIVED && h->stage < SETTLED && !given_up && !h->connection->closing &&
               h->reader->state == MULL_SOURCE_READY;
    if (can->can_hold && held && h->process->sim->k.now_ms - h->held_ms > can->claim_timeout_ms / 2)
        WRONG(h, "the claim on message %d isn't held", number_of(h));
}

/* check_tried_again: what isn't settled yet is tried again when it is time; at once where the
 * engine closes, but not for ever. */
static void check_tried_again(const handout *h)
{
    const process *p = h->process;
    if (!is_failing(h) || h->under_way)
        return;
    if (!process_is_stopping(p) && p->sim->k.now_ms >= h->try_not_before_ms)
        WRONG(h, "message %d isn't settled again when it is time", number_of(h));
    if (p->life == CLOSING && p->sim->faults.no_memory == 0 && h->tries <= TRIES_WHEN_STOPPING &&
        !h->hopeless && !process_drained(p))
        WRONG(h, "message %d isn't settled again, and the engine closes", number_of(h));
}

/* check_left: nothing of this may be left to do for a hand-out after a turn. */
static void check_left(const handout *h, int gate_open)
{
    const sim *s = h->process->sim;
    const consumer *c = consumer_of(h);
    if (h->stage == SUCCEEDED || h->stage == FAILED)
        WRONG(h, "the call of message %d has ended, and nobody looks", number_of(h));
    if (h->stage == WORKING && !h->cancelled && c->timeout_ms != MULL_NEVER &&
        s->k.now_ms >= h->started_ms + c->timeout_ms)
        WRONG(h, "message %d isn't cut off at its timeout", number_of(h));
    if (h->stage == WORKING && !h->cancelled && s->k.now_ms > h->process->grace_ends_ms)
        WRONG(h, "message %d isn't cut off when the grace is over", number_of(h));
    if (h->told_lost || h->stage == PARKED)
        return;
    if (h->stage == ARRIVED && !accepts(h))
        WRONG(h, "message %d waits, and its consumer takes none", number_of(h));
    check_held(h);
    if (h->stage == RETRYING && h->note_due)
        WRONG(h, "the calls of message %d aren't written down", number_of(h));
    if (h->stage == RETRYING && gate_open && !h->at_work && s->k.now_ms >= h->retry_not_before_ms &&
        !view_gated(h))
        WRONG(h, "message %d isn't retried when it is time", number_of(h));
    check_tried_again(h);
}

/* check_probe: a limit that lets a call begin gets one, unless what was here goes back: then it
 * waits for what comes instead. */
static void check_probe(consumer *c, int there)
{
    const sim *s = c->process->sim;
    if (!there)
        c->idle_since_ms = INT64_MAX;
    else if (c->idle_since_ms == INT64_MAX)
        c->idle_since_ms = s->k.now_ms;
    if (there && s->k.now_ms > c->idle_since_ms + PROBE_WAITS_MS)
        violation(c->process->sim, "consumer %d is limited, and its next probe doesn't begin",
                  c->queue);
}

static void check_idle(process *p, const tally *t)
{
    for (int c = 0; c < QUEUES; c++) {
        int there = t->waiting[c] > 0 && may_call(p, t, c), probes = limits_probe(&p->consumers[c]);
        if (there && !probes)
            violation(p->sim, "consumer %d has %u messages waiting and %u of %u handlers at work",
                      c, t->waiting[c], t->slots[c], p->consumers[c].concurrency);
        check_probe(&p->consumers[c], probes && (there || (t->due[c] > 0 && may_call(p, t, c))));
    }
}

static void check_counts(process *p)
{
    mull_counts counts = MULL_INIT(mull_counts);
    p->counts.size = sizeof counts;
    mull_engine_counts(p->engine, &counts);
    if (memcmp(&counts, &p->counts, sizeof counts) != 0)
        violation(p->sim, "the engine counts %d, %d, %d, %d, %d, not %d, %d, %d, %d, %d",
                  (int)counts.done, (int)counts.retried, (int)counts.redelivered,
                  (int)counts.dead_lettered, (int)counts.discarded, (int)p->counts.done,
                  (int)p->counts.retried, (int)p->counts.redelivered, (int)p->counts.dead_lettered,
                  (int)p->counts.discarded);
}

/* check_candidate_waits: a candidate waits for others to end, but not for ever. One that is a probe
 * begins to wait anew where another message may come in its place. */
static void check_candidate_waits(process *p, const tally *t, int queue)
{
    const consumer *c = &p->consumers[queue];
    int64_t now_ms = p->sim->k.now_ms, *since_ms = &p->candidate_since_ms[queue];
    if (*since_ms == INT64_MAX)
        *since_ms = now_ms;
    if (limits_probe(c) && *since_ms < view_more_until_ms(c))
        *since_ms = view_more_until_ms(c);
    if (t->open == 0 || now_ms >= *since_ms + PATIENCE_MS)
        violation(p->sim, "a candidate could run, and doesn't");
}

static void check_candidates_wait(process *p, const tally *t, unsigned may_run)
{
    if (t->alone)
        return;
    if (process_is_stopping(p) || short_of_calls(p->sim))
        may_run = 0;
    for (int queue = 0; queue < QUEUES; queue++) {
        if (may_run & 1U << queue)
            check_candidate_waits(p, t, queue);
        else
            p->candidate_since_ms[queue] = INT64_MAX;
    }
}

/* check_ends: an engine that stops, or closes, goes on with that once nothing is left. */
static void check_ends(const process *p, const tally *t)
{
    int works = 0;
    for (handout *h = NULL; (h = model_next(p, h));)
        if (h->stage == STRAYED || h->stage == SETTLING ||
            (h->stage != ON_ITS_WAY && h->stage < PARKED && !h->told_lost))
            return;
    for (int c = 0; c < QUEUES; c++)
        works |= t->at_work[c] > 0;
    if (p->life == STOPPING || (p->life == CLOSING && !works && !p->connections[0]->closing))
        violation(p->sim, "process %d has nothing left to wait for, and doesn't end", p->index);
}

/* drain: its engine has waited long enough for answers. What isn't answered stays claimed. */
static void drain(process *p)
{
    p->drained = process_drained(p);
    if (!p->drained)
        return;
    for (handout *h = NULL; (h = model_next(p, h));)
        if (h->stage == SETTLING && h->under_way) {
            h->unanswered = 1;
            h->under_way = 0;
            h->stage = PARKED;
            p->sim->totals->unanswered++;
        }
}

void model_turned(process *p)
{
    if (p->dead)
        return;
    drain(p);
    for (handout *h = NULL; (h = model_next(p, h));) {
        h->unlooked = 0;
        model_looked(h);
        model_unasked(h);
        if (!accepts(h) && h->stage == RETRYING && !h->told_lost)
            model_unwritten(h); /* it goes back */
    }
    limits_turned(p);
    tally t = take_tally(p);
    unsigned may_run = candidates_may_run(p, &t);
    int gate_open = !process_is_stopping(p) && !t.alone && !may_run && !short_of_calls(p->sim);
    for (handout *h = NULL; (h = model_next(p, h));) {
        const consumer *c = consumer_of(h);
        check_left(h, gate_open && t.at_work[h->consumer] < c->concurrency && !limits_shut(c) &&
                          !limits_probe(c));
        p->sim->totals->gated += h->stage == ARRIVED && !h->told_lost && view_gated(h);
        p->sim->totals->held_retries += h->stage == RETRYING && !h->told_lost && view_held(h);
    }
    if (gate_open)
        check_idle(p, &t);
    check_candidates_wait(p, &t, may_run);
    check_ends(p, &t);
    check_credit(p, &t);
    check_counts(p);
}

/* model_stopped: what it leaves behind is settled, or can't be. */
void model_stopped(process *p)
{
    sim *s = p->sim;
    if (p->dead)
        return;
    int cut_short = p->until_empty && model_is_stuck(p);
    if (!process_is_stopping(p) && !cut_short)
        violation(s, "process %d stops by itself", p->index);
    drain(p);
    for (handout *h = NULL; (h = model_next(p, h));)
        if (h->stage > STRAYED && h->stage < PARKED && !h->told_lost && !is_failing(h))
            violation(s, "process %d has stopped, and message %d is in stage %d", p->index,
                      number_of(h), h->stage);
    if (p->life == RUNNING && !cut_short) {
        s->totals->emptied++;
        model_emptied(p);
    }
}
