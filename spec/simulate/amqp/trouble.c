/* trouble.c: what goes wrong, and when; and what others do at the broker. */
#include "sim.h"

#include <inttypes.h>
#include <string.h>

/* some gives a chance that many seeds don't have at all. */
static uint32_t some(sim *s, int64_t high)
{
    return one_in(s, 2) ? 0 : (uint32_t)between(s, 1, high);
}

/* draw_nature draws once in a statement: in which order an expression does it is the compiler's to
 * choose. */
static void draw_nature(sim *s)
{
    s->faults.slow = some(s, 100);
    s->faults.slices = one_in(s, 2) ? 0 : some(s, 1000);
    s->faults.late_confirm = some(s, 300);
    s->faults.delay = one_in(s, 2) ? 300 : some(s, 900);
    s->faults.big = some(s, 300);
    s->faults.reopen = some(s, 60);
    if (s->k.seed % QUIET == 0)
        return;
    s->faults.cut = some(s, 120);
    s->faults.cut_at = some(s, 700);
    s->faults.mute = one_in(s, 3) ? some(s, 30) : 0;
    s->faults.nack = some(s, 150);
    s->faults.kept_nack = some(s, 1000);
    s->faults.withheld = one_in(s, 2) ? some(s, 60) : 0;
    s->faults.no_memory = one_in(s, 3) ? some(s, 20) : 0;
    s->faults.refuses = some(s, 300);
    s->faults.restart = some(s, 30);
    s->faults.alarm = some(s, 40);
    s->faults.channel_close = some(s, 80);
    s->faults.cancel = some(s, 40);
    s->faults.delete_queue = some(s, 60);
    s->broker.max_body = one_in(s, 4) ? (size_t)between(s, 3000, 16000) : 0;
}

/* ---- Others at the broker -------------------------------------------------------------------- */

static queue *some_queue(sim *s, int of_delays)
{
    mull__list *list = &s->broker.queues;
    uint64_t left = draw(s, list->count + 1);
    for (mull__link *at = mull__list_first(list); at; at = mull__list_after(list, at)) {
        queue *q = MULL__ENTRY(at, queue, link);
        if ((q->is_delay || strstr(q->name, ".astray")) == of_delays && left-- == 0)
            return q;
    }
    return NULL;
}

/* inject: somebody else publishes. */
static void inject(sim *s)
{
    queue *q = some_queue(s, 0);
    if (!q || q->name[0] != 'q')
        return;
    message *m = message_new(s, one_in(s, 4) ? 0 : (size_t)between(s, 1, 6000));
    char id[24], *body = keep(s, m->body_size + 1), room[512];
    snprintf(id, sizeof id, "m%" PRIu64, m->number);
    message_body(m, body);
    amqp_table_entry_t entries[] = {
        {bytes_of("number"), {.kind = AMQP_FIELD_KIND_I64, .value.i64 = (int64_t)m->number}},
        {bytes_of("extra"), {.kind = AMQP_FIELD_KIND_I64, .value.i64 = 7}},
        {bytes_of("mulligan-attempts"),
         {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = bytes_of("3")}}};
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_PRIORITY_FLAG |
                  AMQP_BASIC_DELIVERY_MODE_FLAG,
        .message_id = bytes_of(id),
        .priority = 3,
        .delivery_mode = 2,
        .headers = {3, entries}};
    amqp_bytes_t out = {sizeof room, room};
    out.len = (size_t)amqp_encode_properties(AMQP_BASIC_CLASS, &properties, out);
    copy *c =
        copy_new(&s->broker, m, keep_bytes(s, out), (amqp_bytes_t){m->body_size, body}, q->name);
    c->is_safe = 1;
    m->is_accepted = 1;
    note(s, "somebody else publishes message %lld", (int64_t)m->number, 0, 0, 0);
    copy_put(&s->broker, q, c, 0);
}

/* delete_queue: somebody deletes a queue, or one of delays. */
static void delete_queue(sim *s)
{
    queue *q = some_queue(s, one_in(s, 4));
    if (!q)
        return;
    note(s, "a queue is deleted, with %lld messages", (int64_t)q->ready.count, 0, 0, 0);
    s->totals->queues_deleted++;
    engine_excuse(s);
    queue_delete(&s->broker, q);
    if (q->name[0] == 'm' && s->deleted_count < (int)(sizeof s->deleted / sizeof *s->deleted))
        s->deleted[s->deleted_count++] = q;
}

/* away: the queue goes on elsewhere. */
static void away(sim *s)
{
    queue *q = some_queue(s, 0);
    if (!q)
        return;
    note(s, "the consumers of a queue are cancelled", 0, 0, 0, 0);
    engine_excuse(s);
    consumers_away(s, q);
}

/* ---- The broker's own ------------------------------------------------------------------------ */

static channel *some_channel(sim *s)
{
    mull__link *first = mull__list_first(&s->broker.conns);
    conn *c = first ? MULL__ENTRY(first, conn, link) : NULL;
    channel *on = c ? &c->channels[draw(s, 6)] : NULL;
    return on && c->state == CONN_OPEN && on->state == CHANNEL_OPEN ? on : NULL;
}

static void close_channel(sim *s)
{
    channel *c = some_channel(s);
    if (c)
        channel_close(c, 406,
                      "PRECONDITION_FAILED - delivery acknowledgement on channel %d timed out",
                      c->number);
}

static void alarm_ends(sim *s, void *data)
{
    (void)data;
    note(s, "the alarm is over", 0, 0, 0, 0);
    conn_block(&s->broker, 0);
}

static void alarm_begins(sim *s)
{
    note(s, "an alarm", 0, 0, 0, 0);
    s->totals->alarms++;
    conn_block(&s->broker, 1);
    at_time(s, between(s, 0, 8000), alarm_ends, NULL);
}

static wire *some_wire(sim *s)
{
    for (mull__link *at = mull__list_first(&s->wires); at; at = mull__list_after(&s->wires, at)) {
        wire *w = MULL__ENTRY(at, wire, link);
        if (w->client && w->server)
            return w;
    }
    return NULL;
}

static void trouble(sim *s, void *data)
{
    (void)data;
    if (s->k.calm)
        return;
    at_time(s, between(s, 0, 600), trouble, NULL);
    wire *w = some_wire(s);
    if (w && happens(s, s->faults.cut))
        wire_cut(w);
    if (w && happens(s, s->faults.mute))
        wire_mute(w);
    if (!s->broker.is_off && happens(s, s->faults.restart))
        broker_restart(&s->broker, between(s, 0, 5000));
    if (!s->broker.alarm && happens(s, s->faults.alarm))
        alarm_begins(s);
    if (happens(s, s->faults.channel_close))
        close_channel(s);
    if (happens(s, s->faults.delete_queue))
        delete_queue(s);
    if (happens(s, s->faults.cancel))
        away(s);
    if (one_in(s, 3))
        inject(s);
}

/* foreign_queue: a queue is there before, with arguments of its own. */
static void foreign_queue(sim *s)
{
    argument arguments[] = {
        {.name = "x-queue-type", .text = "quorum", .kind = AMQP_FIELD_KIND_UTF8},
        {.name = "x-max-length", .number = 100000, .kind = AMQP_FIELD_KIND_I64}};
    if (one_in(s, 2))
        snprintf(arguments[0].text, sizeof arguments[0].text, "classic");
    int count = (int)draw(s, 3);
    queue_make(&s->broker, bytes_of("q0"), arguments, count);
}

/* make_queues: a person makes all queues, where the module doesn't. */
static void make_queues(sim *s)
{
    static const char *const names[] = {"q0", "q1", "q2", "dead0", "dead1"};
    static const argument quorum = {
        .name = "x-queue-type", .text = "quorum", .kind = AMQP_FIELD_KIND_UTF8};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!queue_find(&s->broker, bytes_of(names[i])))
            queue_make(&s->broker, bytes_of(names[i]), &quorum, 1);
}

void trouble_begin(sim *s)
{
    draw_nature(s);
    s->declares = !one_in(s, 8);
    s->totals->without_declarations += !s->declares;
    if (!s->declares && one_in(s, 2))
        make_queues(s);
    else if (s->k.seed % 4 != 0 && one_in(s, 4))
        foreign_queue(s);
    at_time(s, between(s, 0, 100), trouble, NULL);
}

/* make_again: a person makes a queue of delays that is missing, and binds it, since messages wait
 * for it. */
static void make_again(sim *s, const queue *old)
{
    broker *b = &s->broker;
    exchange *from = exchange_find(b, bytes_of(old->name));
    queue *q = queue_find(b, bytes_of(old->name));
    char bit[48];
    snprintf(bit, sizeof bit, "mulligan.delay%s", strrchr(old->name, '.'));
    amqp_table_entry_t entry = {bytes_of(bit),
                                {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1}};
    const amqp_table_t arguments = {old->is_delay, &entry};
    if (!q)
        q = queue_make(b, bytes_of(old->name), old->arguments, old->argument_count);
    if (from)
        binding_make(b, from, NULL, q, amqp_empty_bytes, &arguments);
}

void trouble_calm(sim *s)
{
    for (int i = 0; i < s->deleted_count; i++)
        make_again(s, s->deleted[i]);
    if (!s->declares)
        make_queues(s);
    s->broker.is_off = 0;
    conn_block(&s->broker, 0);
    for (mull__link *at = mull__list_first(&s->broker.conns); at;
         at = mull__list_after(&s->broker.conns, at))
        channels_calm(MULL__ENTRY(at, conn, link));
    for (mull__link *at = mull__list_first(&s->wires); at; at = mull__list_after(&s->wires, at)) {
        wire *w = MULL__ENTRY(at, wire, link);
        w->up.cut_at = w->down.cut_at = UINT64_MAX;
    }
}
