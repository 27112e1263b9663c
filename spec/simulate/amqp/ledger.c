/* ledger.c: the account of messages: where each is, what was promised of it, and whether that
 * holds. What is checked is listed in README.md. */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_MS = 50, RETURN_MS = 1000 };

message *message_new(sim *s, size_t body_size)
{
    message *m = keep(s, sizeof *m);
    if (s->message_count == s->message_room) {
        s->message_room = s->message_room ? 2 * s->message_room : 256;
        s->messages = realloc(s->messages, s->message_room * sizeof(void *));
        if (!s->messages)
            violation(s, "out of memory");
    }
    s->messages[s->message_count++] = m;
    m->number = s->message_count;
    m->body_size = body_size;
    return m;
}

/* number_header is a header that is a number, or a text of one; 0: there is none. */
static uint64_t number_header(const amqp_table_t *headers, const char *name)
{
    char text[32];
    for (int i = 0; i < headers->num_entries; i++) {
        const amqp_field_value_t *value = &headers->entries[i].value;
        if (!same(headers->entries[i].key, name))
            continue;
        if (value->kind == AMQP_FIELD_KIND_I64)
            return (uint64_t)value->value.i64;
        snprintf(text, sizeof text, "%.*s", (int)value->value.bytes.len,
                 (char *)value->value.bytes.bytes);
        return strtoull(text, NULL, 10);
    }
    return 0;
}

message *message_of(sim *s, const amqp_table_t *headers)
{
    uint64_t number = number_header(headers, "number");
    if (number == 0 || number > s->message_count)
        violation(s, "a message whose number is %" PRIu64, number);
    return s->messages[number - 1];
}

static char letter(const message *m, size_t at)
{
    return (char)('a' + (m->number * 7 + at * 11 + at / 97) % 26);
}

void message_body(const message *m, char *out)
{
    for (size_t i = 0; i < m->body_size; i++)
        out[i] = letter(m, i);
}

void message_check_body(sim *s, const message *m, const void *body, size_t size)
{
    const char *bytes = body;
    int good = size == m->body_size;
    for (size_t i = 0; good && i < size; i++)
        good = bytes[i] == letter(m, i);
    if (!good)
        violation(s, "the body of message %" PRIu64 " isn't what it was", m->number);
}

/* ---- What is published ----------------------------------------------------------------------- */

static int has_header(const amqp_table_t *headers, const char *name)
{
    for (int i = 0; i < headers->num_entries; i++)
        if (same(headers->entries[i].key, name))
            return 1;
    return 0;
}

post *ledger_published(sim *s, const amqp_table_t *headers, message **of)
{
    message *m = *of = message_of(s, headers);
    const handout *from = handout_at(&s->broker, number_header(headers, "hand-out"));
    post *p = from && from->claim ? from->claim->copy : m->as_post;
    if (!p || p->of != m)
        violation(s, "message %" PRIu64 " is published, and nobody asked for that", m->number);
    if (has_header(headers, "x-death") || has_header(headers, "x-first-death-queue"))
        violation(s, "message %" PRIu64 " keeps what dead-lettering left in it", m->number);
    if (!has_header(headers, "extra"))
        violation(s, "message %" PRIu64 " loses a header", m->number);
    if (p->settled && number_header(headers, "mulligan-settled") != p->settled)
        violation(s, "the copy of message %" PRIu64 " hasn't our headers", m->number);
    if (s->returned_ms > 0 && p->asked_ms < s->returned_ms + RETURN_MS)
        m->is_excused = 1; /* what was on its way to that queue is sent again, too */
    return p;
}

void ledger_confirmed(sim *s, post *p)
{
    (void)s;
    p->is_confirmed = 1;
}

void ledger_visible(sim *s, copy *c)
{
    int64_t wall_ms = WALL_MS + s->k.now_ms, due_ms = c->due_ms;
    c->due_ms = 0; /* what goes back was seen */
    if (due_ms == 0)
        return;
    if (wall_ms < due_ms)
        violation(s, "message %" PRIu64 " is there %" PRId64 " ms early", c->of->number,
                  due_ms - wall_ms);
    if (due_ms < WALL_MS + c->asked_ms)
        due_ms = WALL_MS + c->asked_ms;
    if (!c->may_be_late && wall_ms > due_ms + STEP_MS + c->taken_ms - c->asked_ms)
        violation(s, "message %" PRIu64 " is there %" PRId64 " ms late", c->of->number,
                  wall_ms - due_ms);
}

/* ---- What ends ------------------------------------------------------------------------------- */

static void must_be_safe(sim *s, const handout *h, const post *p)
{
    if (p && !p->is_confirmed)
        violation(s,
                  "hand-out %" PRIu64 " is acknowledged before message %" PRIu64 " is safe in '%s'",
                  h->serial, p->of->number, p->queue);
}

void ledger_acked(sim *s, handout *h)
{
    const claim *c = h->claim;
    if (!c || !c->may_ack)
        violation(s, "hand-out %" PRIu64 " is acknowledged, and nobody asked for that", h->serial);
    must_be_safe(s, h, c->copy);
    for (size_t i = 0; i < c->send_count; i++)
        must_be_safe(s, h, c->sends[i]);
}

void ledger_nacked(sim *s, handout *h)
{
    if (h->claim && !h->claim->may_nack)
        violation(s, "hand-out %" PRIu64 " is given back, and nobody asked for that", h->serial);
}

void ledger_ended(sim *s, handout *h)
{
    message *m = h->of->of;
    if (!h->claim->copy)
        m->ends++;
    note(s, "hand-out %lld is over: message %lld has %lld copies and %lld ends", (int64_t)h->serial,
         (int64_t)m->number, m->live, m->ends);
    ledger_holds(s, m);
}

void ledger_holds(sim *s, const message *m)
{
    if (m->is_accepted && !m->is_deleted && m->live == 0 && m->ends == 0)
        violation(s, "message %" PRIu64 " is gone", m->number);
}

void ledger_excuse(handout *h)
{
    h->of->of->is_excused = 1;
}

void ledger_end(sim *s)
{
    for (size_t i = 0; i < s->message_count; i++) {
        const message *m = s->messages[i];
        int count = m->live + m->ends;
        ledger_holds(s, m);
        s->totals->duplicates += count > 1;
        if (m->is_accepted && !m->is_excused && !m->is_deleted && count != 1)
            violation(s, "message %" PRIu64 " is there %d times, and nothing went wrong with it",
                      m->number, count);
    }
}
