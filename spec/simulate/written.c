/* written.c: the model's half that reads settlements: whether what they carry is what it should. */
#include "sim.h"

#include "base/clock.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#define WRONG(h, ...) violation((h)->process->sim, __VA_ARGS__)

static int number_of(const handout *h)
{
    return h->message->number;
}

/* header finds one of ours. */
static const char *header(const mull_settlement *settlement, const char *name)
{
    for (size_t i = 0; i < settlement->our_count; i++)
        if (strcmp(settlement->ours[i].name, name) == 0)
            return settlement->ours[i].value;
    return NULL;
}

int64_t settlement_number(const mull_settlement *settlement, const char *name)
{
    const char *value = header(settlement, name);
    return value ? strtoll(value, NULL, 10) : -1;
}

int64_t settlement_moment(const mull_settlement *settlement, const char *name)
{
    const char *value = header(settlement, name);
    int64_t wall = 0;
    return value && mull__timestamp_read(value, &wall) == 0 ? wall : 0;
}

/* expect_back: what goes back is due again when the limit that keeps it, or holds it up, lets it be
 * called; sooner where the broker can't delay it for so long. */
static int64_t expect_back(handout *h, const mull_settlement *settlement)
{
    sim *s = h->process->sim;
    int64_t longest_ms = h->reader->can.longest_delay_ms;
    if (!h->keeps && !h->put_back)
        return 0;
    h->after.not_before_ms = h->put_off_to_ms = settlement->due_ms;
    if (h->put_back && !h->unwritten)
        limits_put_back(h, settlement->due_ms);
    if (h->put_back)
        return settlement->due_ms;
    int64_t until_ms = h->keeps_until_ms + WALL_MS;
    if (longest_ms > 0 && until_ms > h->judged_ms + longest_ms)
        until_ms = h->judged_ms + longest_ms;
    s->totals->kept_whole += h->keeps_whole != 0;
    if (!h->keeps_whole && settlement->due_ms >= until_ms)
        return settlement->due_ms;
    return until_ms > h->judged_ms ? until_ms : 0;
}

/* expect_redelivered plans one: longer ones than the broker can are made of several. */
static int64_t expect_redelivered(handout *h)
{
    sim *s = h->process->sim;
    int64_t now_ms = wall_ms(s), longest_ms = h->reader->can.longest_delay_ms;
    int onward = !h->judged;
    if (!onward)
        now_ms = h->judged_ms;
    int64_t end_ms = onward ? h->counters.due_ms : now_ms + h->judgement.verdict.delay_ms;
    int in_parts = longest_ms > 0 && end_ms - now_ms > longest_ms;
    h->after.due_ms = in_parts || onward ? end_ms : 0;
    h->after.not_before_ms = end_ms;
    h->put_off_to_ms = end_ms;
    s->totals->parts += in_parts != 0;
    return in_parts ? now_ms + longest_ms : end_ms > now_ms ? end_ms : 0;
}

int64_t expect_due(handout *h, const mull_settlement *settlement)
{
    if (settlement->kind == MULL_SETTLE_REDELIVER)
        return expect_redelivered(h);
    return settlement->kind == MULL_SETTLE_GIVE_BACK ? expect_back(h, settlement) : 0;
}

static void expect_moment(const handout *h, const mull_settlement *settlement, const char *name,
                          int64_t expected_ms)
{
    int64_t found_ms = settlement_moment(settlement, name);
    if (found_ms != expected_ms)
        WRONG(h, "message %d: %s is off by %d ms", number_of(h), name,
              (int)(found_ms - expected_ms));
}

static void expect_number(const handout *h, const mull_settlement *settlement, const char *name,
                          int64_t expected)
{
    int64_t found = settlement_number(settlement, name);
    if (found != expected)
        WRONG(h, "message %d: %s is %d, not %d", number_of(h), name, (int)found, (int)expected);
}

static void expect_text(const handout *h, const mull_settlement *settlement, const char *name,
                        const char *expected)
{
    const char *found = header(settlement, name);
    if (!found || strcmp(found, expected) != 0)
        WRONG(h, "message %d: %s is %s, not %s", number_of(h), name, found ? found : "missing",
              expected);
}

static void expect_record(const handout *h, const mull_settlement *settlement)
{
    expect_text(h, settlement, "mulligan-reason", mull_reason_name(h->judgement.verdict.reason));
    expect_text(h, settlement, "mulligan-generation", h->judged_under->name);
    expect_text(h, settlement, "mulligan-queue", queue_name(h->consumer));
    expect_text(h, settlement, "mulligan-error-type", type_names[h->judged_for.type]);
    expect_text(h, settlement, "mulligan-consumer", h->process->consumers[h->consumer].name);
    char rule[64] = "";
    if (h->judgement.verdict.rule.file)
        snprintf(rule, sizeof rule, "%s:%d", h->judgement.verdict.rule.file,
                 h->judgement.verdict.rule.line);
    if (!same_text(settlement->error_type, type_names[h->judged_for.type]) ||
        !same_text(settlement->reason, mull_reason_name(h->judgement.verdict.reason)) ||
        !same_text(settlement->rule ? settlement->rule : "", rule) ||
        !same_text(settlement->consumer, h->process->consumers[h->consumer].name))
        WRONG(h, "message %d: the columns of its dead letter say something else", number_of(h));
    if (!are_words(h, settlement->queue, h->judgement.verdict.queue, h->default_queue))
        WRONG(h, "message %d goes to %s, not to %s", number_of(h), settlement->queue,
              h->judgement.verdict.queue);
}

/* expect_same: what isn't counted leaves everything as it came. */
static void expect_same(const handout *h, const mull_settlement *settlement)
{
    if (!settlement->as_it_came || settlement->our_count > 0)
        WRONG(h, "message %d is settled as %d with other headers than it came with", number_of(h),
              settlement->kind);
}

/* expect_ours: all others are the transport's to carry. */
static void expect_ours(const handout *h, const mull_settlement *settlement)
{
    for (size_t i = 0; i < settlement->our_count; i++)
        if (!mull_is_own_header(settlement->ours[i].name))
            WRONG(h, "message %d is settled with the header %s, which isn't ours", number_of(h),
                  settlement->ours[i].name);
    if (settlement->as_it_came)
        WRONG(h, "message %d is settled as it came, and counts", number_of(h));
}

/* expect_type: what may end later without being asked says with which error it failed last. */
static int expect_type(const handout *h, mull_settle_kind kind, int aside)
{
    if (kind == MULL_SETTLE_DEAD_LETTER)
        return 1 + h->judged_for.type;
    if (aside)
        return h->claimed.error_type;
    if (!h->tells_type)
        return 0;
    return h->failed_type > 0 ? h->failed_type : h->counters.error_type;
}

static void expect_headers(handout *h, const mull_settlement *settlement)
{
    mull_settle_kind kind = settlement->kind;
    const counters *c = &h->counters;
    int given_back = kind == MULL_SETTLE_GIVE_BACK;
    int uncounted = given_back && h->attempt == 0 && !h->keeps && !h->journalled;
    if (kind == MULL_SETTLE_ACK || kind == MULL_SETTLE_DISCARD)
        return;
    if (uncounted || (kind == MULL_SETTLE_REDELIVER && !h->judged)) {
        expect_same(h, settlement);
        int64_t not_before_ms = h->after.not_before_ms;
        if (h->copy)
            h->after = h->copy->counters;
        if (given_back && not_before_ms > 0)
            h->after.not_before_ms = not_before_ms;
        return;
    }
    int stays = given_back || kind == MULL_SETTLE_NOTE;
    h->after.redeliveries = c->redeliveries + (kind == MULL_SETTLE_REDELIVER);
    h->after.calls = c->calls + h->attempt + (stays ? 0 : h->crashes);
    h->after.first_failure_ms = c->first_failure_ms;
    h->after.last_failure_ms = h->judged_ms;
    h->after.held_ms = c->held_ms;
    h->after.held_since_ms = kind == MULL_SETTLE_DEAD_LETTER ? 0 : c->held_since_ms;
    int aside = c->record > 0 && c->record != h->consumer + 1;
    h->after.error_type = expect_type(h, kind, aside);
    h->after.record = kind == MULL_SETTLE_DEAD_LETTER ? h->consumer + 1 : aside ? c->record : 0;
    h->after.counting = kind != MULL_SETTLE_DEAD_LETTER && aside ? h->consumer + 1 : 0;
    if (h->after.counting > 0)
        expect_text(h, settlement, "mulligan-counting", queue_name(h->consumer));
    if (!header(settlement, "mulligan-queue") != (h->after.record == 0))
        WRONG(h, "message %d keeps the wrong record of an earlier failure", number_of(h));
    expect_number(h, settlement, "mulligan-redeliveries", h->after.redeliveries);
    expect_number(h, settlement, "mulligan-calls", h->after.calls);
    expect_moment(h, settlement, "mulligan-first-failure", h->after.first_failure_ms);
    expect_moment(h, settlement, "mulligan-last-failure", h->judged_ms);
    expect_moment(h, settlement, "mulligan-due", h->after.due_ms);
    expect_number(h, settlement, "mulligan-held", h->after.held_ms > 0 ? h->after.held_ms : -1);
    expect_moment(h, settlement, "mulligan-held-since", h->after.held_since_ms);
    if (h->after.error_type > 0)
        expect_text(h, settlement, "mulligan-error-type", type_names[h->after.error_type - 1]);
    else if (header(settlement, "mulligan-error-type"))
        WRONG(h, "message %d tells of an error, for nothing", number_of(h));
    if (!h->content.id)
        expect_text(h, settlement, "mulligan-id", h->id);
    expect_ours(h, settlement);
    if (kind == MULL_SETTLE_DEAD_LETTER)
        expect_record(h, settlement);
}

static void expect_sends(const handout *h, const mull_settlement *settlement)
{
    const sim *s = h->process->sim;
    size_t expected = settlement->kind == MULL_SETTLE_ACK ? (size_t)h->sent_count : 0;
    const message *m = h->sent;
    if (settlement->send_count != expected)
        WRONG(h, "message %d: %d messages are sent, not %d", number_of(h),
              (int)settlement->send_count, (int)expected);
    for (size_t i = 0; i < expected; i++, m = m->next_sent) {
        const mull_message *sent = settlement->sends[i].message;
        int64_t due_ms = settlement->sends[i].due_ms;
        if (strtol(sent->body, NULL, 10) != m->number || !sent->id ||
            (m->id[0] && strcmp(m->id, sent->id) != 0) ||
            strcmp(sent->queue, queue_name(m->queue)) != 0 || (due_ms == 0) != (m->delay_ms == 0) ||
            (due_ms > 0 && due_ms > wall_ms(s) + m->delay_ms))
            WRONG(h, "message %d isn't sent as it should", m->number);
    }
}

void expect_written(handout *h, const mull_settlement *settlement)
{
    expect_headers(h, settlement);
    expect_sends(h, settlement);
}

uint64_t settlement_hash(const mull_settlement *settlement)
{
    uint64_t hash = mull__hash_text(settlement->queue);
    for (size_t i = 0; i < settlement->our_count; i++) {
        const uint64_t words[] = {hash, mull__hash_text(settlement->ours[i].name),
                                  mull__hash_text(settlement->ours[i].value)};
        hash = mull__hash_words(words, 3);
    }
    const uint64_t words[] = {hash, (uint64_t)settlement->kind, (uint64_t)settlement->due_ms,
                              settlement->send_count, mull__hash_text(settlement->id)};
    return mull__hash_words(words, 5);
}
