/* channel.c: a channel, as RabbitMQ has it: one command after the other, each as late as it likes;
 * answers, confirms, and what ends it. See server.c. */
#include "sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static sim *sim_of(const channel *c)
{
    return c->conn->broker->sim;
}

static void reply(channel *c, amqp_method_number_t id, void *method)
{
    conn_send(c->conn, c->number, id, method);
}

/* ---- The end --------------------------------------------------------------------------------- */

static void drop_consumers(channel *c)
{
    mull__list *queues = &c->conn->broker->queues;
    for (mull__link *at = mull__list_first(queues); at; at = mull__list_after(queues, at)) {
        mull__list *list = &MULL__ENTRY(at, queue, link)->consumers;
        mull__link *after;
        for (mull__link *one = mull__list_first(list); one; one = after) {
            after = mull__list_after(list, one);
            if (MULL__ENTRY(one, consumer, link)->on == c)
                mull__list_remove(list, one);
        }
    }
}

/* let_go: all that the channel had is given back, or forgotten. */
static void let_go(channel *c, int is_fault)
{
    mull__link *link;
    drop_consumers(c);
    while ((link = mull__list_first(&c->handouts))) {
        handout *h = MULL__ENTRY(link, handout, link);
        if (is_fault)
            ledger_excuse(h);
        handout_back(h);
    }
    while (mull__list_pop(&c->unconfirmed))
        ;
    c->life++;
    c->confirms = 0;
    c->publish_tag = c->delivery_tag = 0;
    call_off(&c->flush);
}

void channel_end(channel *c, int is_fault)
{
    let_go(c, is_fault);
    call_off(&c->next);
    c->first = NULL;
    c->last = &c->first;
    c->arriving = NULL;
    c->state = CHANNEL_NONE;
}

void channel_close(channel *c, uint16_t code, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    note(sim_of(c), "channel %lld is closed by the broker (%lld)", c->number, code, 0, 0);
    sim_of(c)->totals->channels_closed++;
    engine_excuse(sim_of(c));
    let_go(c, 1);
    c->state = CHANNEL_CLOSING;
    amqp_channel_close_t close = {.reply_code = code, .reply_text = bytes_of(text)};
    reply(c, AMQP_CHANNEL_CLOSE_METHOD, &close);
}

/* ---- Confirms -------------------------------------------------------------------------------- */

static void tell_verdict(channel *c, unconfirmed *last, int is_multiple)
{
    amqp_basic_ack_t ack = {.delivery_tag = last->tag, .multiple = is_multiple};
    amqp_basic_nack_t nack = {.delivery_tag = last->tag, .multiple = is_multiple};
    note(sim_of(c), last->verdict > 0 ? "confirm %lld, multiple %lld" : "nack %lld, multiple %lld",
         (int64_t)last->tag, is_multiple, 0, 0);
    if (last->verdict > 0)
        reply(c, AMQP_BASIC_ACK_METHOD, &ack);
    else
        reply(c, AMQP_BASIC_NACK_METHOD, &nack);
}

static void told(channel *c, unconfirmed *u)
{
    sim *s = sim_of(c);
    mull__list_remove(&c->unconfirmed, &u->link);
    s->totals->confirmed += u->verdict > 0;
    s->totals->nacked += u->verdict < 0;
    if (u->verdict > 0 && !u->was_returned)
        ledger_confirmed(s, u->of);
}

/* tell_prefix: those that come first and have the same verdict are told together. */
static void tell_prefix(channel *c)
{
    unconfirmed *last = NULL;
    int count = 0;
    for (mull__link *at = mull__list_first(&c->unconfirmed); at;
         at = mull__list_after(&c->unconfirmed, at)) {
        unconfirmed *u = MULL__ENTRY(at, unconfirmed, link);
        if (!u->verdict || (last && last->verdict != u->verdict))
            break;
        last = u;
        count++;
    }
    if (!last)
        return;
    sim_of(c)->totals->confirmed_together += count > 1;
    tell_verdict(c, last, count > 1 || one_in(sim_of(c), 2));
    for (int i = 0; i < count; i++)
        told(c, MULL__ENTRY(mull__list_first(&c->unconfirmed), unconfirmed, link));
}

static void flush(sim *s, void *data)
{
    channel *c = data;
    mull__link *after;
    c->flush = NULL;
    if (one_in(s, 2))
        tell_prefix(c);
    for (mull__link *at = mull__list_first(&c->unconfirmed); at; at = after) {
        unconfirmed *u = MULL__ENTRY(at, unconfirmed, link);
        after = mull__list_after(&c->unconfirmed, at);
        if (!u->verdict)
            continue;
        tell_verdict(c, u, 0);
        told(c, u);
    }
}

static void decide(sim *s, void *data)
{
    unconfirmed *u = data;
    u->decision = NULL;
    for (int i = 0; i < u->copy_count; i++)
        u->copies[i]->is_safe = 1;
    if (u->life != u->on->life)
        return;
    u->verdict = u->verdict ? u->verdict : 1;
    if (!u->on->flush)
        u->on->flush = at_time(s, (int64_t)draw(s, 6), flush, u->on);
}

static void await_decision(sim *s, unconfirmed *u)
{
    int64_t wait_ms = one_in(s, 2) ? between(s, 0, 12) : 0;
    if (happens(s, s->faults.late_confirm))
        wait_ms = between(s, 0, 5000);
    if (!happens(s, s->faults.withheld))
        u->decision = at_time(s, wait_ms, decide, u);
}

void channels_calm(conn *c)
{
    for (int i = 0; i < CHANNELS; i++) {
        mull__list *list = &c->channels[i].unconfirmed;
        for (mull__link *at = mull__list_first(list); at; at = mull__list_after(list, at)) {
            unconfirmed *u = MULL__ENTRY(at, unconfirmed, link);
            if (!u->decision)
                u->decision = at_time(c->broker->sim, 0, decide, u);
        }
    }
}

/* ---- What is published ----------------------------------------------------------------------- */

static void send_return(channel *c, const amqp_basic_publish_t *publish, const command *what)
{
    sim *s = sim_of(c);
    amqp_basic_return_t returned = {.reply_code = 312,
                                    .reply_text = bytes_of("NO_ROUTE"),
                                    .exchange = publish->exchange,
                                    .routing_key = publish->routing_key};
    note(s, "it comes back", 0, 0, 0, 0);
    s->totals->returned++;
    s->returned_ms = s->k.now_ms;
    engine_excuse(s);
    conn_send_content(c->conn, c->number, AMQP_BASIC_RETURN_METHOD, &returned, what->properties,
                      what->body);
}

/* put_copies puts a copy into each queue. */
static void put_copies(channel *c, unconfirmed *u, message *of, const command *what,
                       const char *key, queue *to[ROUTES], int count)
{
    broker *b = c->conn->broker;
    for (int i = 0; i < count; i++) {
        copy *made = copy_new(b, of, what->properties, what->body, key);
        made->due_ms = u->of->due_ms;
        made->asked_ms = u->of->asked_ms;
        made->taken_ms = b->sim->k.now_ms;
        u->copies[u->copy_count++] = made;
        b->sim->totals->put_off += to[i]->is_delay != 0;
        copy_put(b, to[i], made, 0);
    }
}

static void publish(channel *c, const amqp_basic_publish_t *method, const command *what)
{
    sim *s = sim_of(c);
    broker *b = c->conn->broker;
    void *decoded = NULL;
    message *of = NULL;
    queue *to[ROUTES];
    if (!c->confirms || !method->mandatory)
        violation(s, "a message is published without confirms, or not as mandatory");
    c->publish_tag++;
    if (amqp_decode_properties(AMQP_BASIC_CLASS, &b->pool, what->properties, &decoded) < 0)
        violation(s, "properties that can't be read are published");
    const amqp_basic_properties_t *properties = decoded;
    amqp_table_t headers =
        properties->_flags & AMQP_BASIC_HEADERS_FLAG ? properties->headers : amqp_empty_table;
    post *p = ledger_published(s, &headers, &of);
    const char *key = keep_bytes(s, method->routing_key).bytes;
    const char *name = keep_bytes(s, method->exchange).bytes;
    note(s, "message %lld is published, tag %lld, %lld bytes", (int64_t)of->number,
         (int64_t)c->publish_tag, (int64_t)what->body.len, 0);
    s->totals->published++;
    if (!(properties->_flags & AMQP_BASIC_DELIVERY_MODE_FLAG) || properties->delivery_mode != 2)
        violation(s, "message %" PRIu64 " isn't persistent", of->number);
    if (strcmp(key, p->queue) != 0)
        violation(s, "message %" PRIu64 " goes to '%s', and should to '%s'", of->number, key,
                  p->queue);
    message_check_body(s, of, what->body.bytes, what->body.len);
    if (b->max_body && what->body.len > b->max_body) {
        s->totals->too_big++;
        channel_close(
            c, 406, "PRECONDITION_FAILED - message size %zu is larger than configured max size %zu",
            what->body.len, b->max_body);
        return;
    }
    if (name[0] && !exchange_find(b, method->exchange)) {
        channel_close(c, 404, "NOT_FOUND - no exchange '%s' in vhost '/'", name);
        return;
    }
    int count = broker_route(b, name, key, &headers, to);
    unconfirmed *u = keep(s, sizeof *u);
    *u = (unconfirmed){.tag = c->publish_tag, .on = c, .life = c->life, .of = p};
    mull__list_push(&c->unconfirmed, &u->link);
    if (count == 0) {
        u->was_returned = 1;
        send_return(c, method, what);
    } else if (happens(s, s->faults.nack)) {
        u->verdict = -1;
        of->is_excused = 1;
        count = happens(s, s->faults.kept_nack) ? count : 0;
    }
    put_copies(c, u, of, what, key, to, count);
    await_decision(s, u);
}

/* ---- Declarations ---------------------------------------------------------------------------- */

static int read_arguments(const amqp_table_t *table, argument out[ARGUMENTS])
{
    int count = 0;
    for (; count < table->num_entries && count < ARGUMENTS; count++) {
        const amqp_table_entry_t *entry = &table->entries[count];
        argument *a = &out[count];
        *a = (argument){.kind = entry->value.kind};
        snprintf(a->name, sizeof a->name, "%.*s", (int)entry->key.len, (char *)entry->key.bytes);
        if (a->kind == AMQP_FIELD_KIND_UTF8)
            snprintf(a->text, sizeof a->text, "%.*s", (int)entry->value.value.bytes.len,
                     (char *)entry->value.value.bytes.bytes);
        else if (a->kind == AMQP_FIELD_KIND_BOOLEAN)
            a->number = entry->value.value.boolean;
        else
            a->number = entry->value.value.i64;
    }
    return count;
}

static const argument *argument_of(const argument *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* value_text says what an argument is, as RabbitMQ does. */
static void value_text(char out[160], const argument *a, int is_short)
{
    const char *type = a && a->kind == AMQP_FIELD_KIND_UTF8 ? "longstr" : "signedint";
    char number[32];
    if (!a) {
        snprintf(out, 160, "none");
        return;
    }
    snprintf(number, sizeof number, "%" PRId64, a->number);
    const char *value = a->kind == AMQP_FIELD_KIND_UTF8 ? a->text : number;
    if (is_short)
        snprintf(out, 160, "'%s'", value);
    else
        snprintf(out, 160, "the value '%s' of type '%s'", value, type);
}

/* differs closes the channel for the first argument that isn't the same. */
static int differs(channel *c, const queue *q, const argument *asked, int count)
{
    for (int i = 0; i < count + q->argument_count; i++) {
        const char *name = i < count ? asked[i].name : q->arguments[i - count].name;
        const argument *a = argument_of(asked, count, name);
        const argument *is = argument_of(q->arguments, q->argument_count, name);
        char received[160], current[160];
        if (a && is && a->number == is->number && strcmp(a->text, is->text) == 0)
            continue;
        value_text(received, a, a && is);
        value_text(current, is, a && is);
        sim_of(c)->totals->learnt++;
        channel_close(c, 406,
                      "PRECONDITION_FAILED - inequivalent arg '%s' for queue '%s' in vhost '/': "
                      "received %s but current is %s",
                      name, q->name, received, current);
        return 1;
    }
    return 0;
}

static void declare_queue(channel *c, const amqp_queue_declare_t *declare)
{
    broker *b = c->conn->broker;
    queue *q = queue_find(b, declare->queue);
    argument asked[ARGUMENTS];
    int count = read_arguments(&declare->arguments, asked);
    if (!declare->passive && (!declare->durable || declare->exclusive || declare->auto_delete))
        violation(sim_of(c), "a queue is declared that a restart would lose");
    if (!q && declare->passive) {
        channel_close(c, 404, "NOT_FOUND - no queue '%.*s' in vhost '/'", (int)declare->queue.len,
                      (char *)declare->queue.bytes);
        return;
    }
    if (q && !declare->passive && differs(c, q, asked, count))
        return;
    if (!q)
        q = queue_make(b, declare->queue, asked, count);
    amqp_queue_declare_ok_t ok = {.queue = declare->queue,
                                  .message_count = (uint32_t)q->ready.count,
                                  .consumer_count = (uint32_t)q->consumers.count};
    reply(c, AMQP_QUEUE_DECLARE_OK_METHOD, &ok);
}

static void declare_exchange(channel *c, const amqp_exchange_declare_t *declare)
{
    amqp_exchange_declare_ok_t ok = {0};
    if (!declare->durable)
        violation(sim_of(c), "an exchange is declared that a restart would lose");
    if (!exchange_find(c->conn->broker, declare->exchange))
        exchange_make(c->conn->broker, declare);
    reply(c, AMQP_EXCHANGE_DECLARE_OK_METHOD, &ok);
}

static void bind_queue(channel *c, const amqp_queue_bind_t *bind)
{
    broker *b = c->conn->broker;
    exchange *from = exchange_find(b, bind->exchange);
    queue *to = queue_find(b, bind->queue);
    amqp_queue_bind_ok_t ok = {0};
    if (!from || !to) {
        channel_close(c, 404, "NOT_FOUND - no queue or exchange in vhost '/'");
        return;
    }
    binding_make(b, from, NULL, to, bind->routing_key, &bind->arguments);
    reply(c, AMQP_QUEUE_BIND_OK_METHOD, &ok);
}

static void bind_exchange(channel *c, const amqp_exchange_bind_t *bind)
{
    broker *b = c->conn->broker;
    exchange *from = exchange_find(b, bind->source), *to = exchange_find(b, bind->destination);
    amqp_exchange_bind_ok_t ok = {0};
    if (!from || !to) {
        channel_close(c, 404, "NOT_FOUND - no exchange in vhost '/'");
        return;
    }
    binding_make(b, from, to, NULL, bind->routing_key, &bind->arguments);
    reply(c, AMQP_EXCHANGE_BIND_OK_METHOD, &ok);
}

/* ---- Consumers ------------------------------------------------------------------------------- */

void consumer_tell(consumer *c)
{
    amqp_basic_consume_ok_t ok = {.consumer_tag = bytes_of(c->tag)};
    if (!c->is_told)
        reply(c->on, AMQP_BASIC_CONSUME_OK_METHOD, &ok);
    c->is_told = 1;
    queue_pump(sim_of(c->on), c->of);
}

static void tell_consumer(sim *s, void *data)
{
    consumer *c = data;
    (void)s;
    if (c->link.next) /* else it has ended */
        consumer_tell(c);
}

static void consume(channel *c, const amqp_basic_consume_t *method)
{
    sim *s = sim_of(c);
    queue *q = queue_find(c->conn->broker, method->queue);
    for (mull__link *at = mull__list_first(&c->handouts); at;
         at = mull__list_after(&c->handouts, at))
        if (same(method->consumer_tag, MULL__ENTRY(at, handout, link)->by->tag))
            violation(s, "a consumer has the name of one that still has messages");
    if (consumer_find(c, method->consumer_tag) || method->no_ack)
        violation(s, "a consumer is there twice, or needs no acknowledgements");
    if (!q) {
        channel_close(c, 404, "NOT_FOUND - no queue '%.*s' in vhost '/'", (int)method->queue.len,
                      (char *)method->queue.bytes);
        return;
    }
    const subscription *sub = c->conn->wire->client ? engine_sub(s, q->name) : NULL;
    if (c->prefetch == 0 || (sub && c->prefetch > sub->peak))
        violation(s, "a consumer of '%s' may have %u messages", q->name, c->prefetch);
    consumer *made = keep(s, sizeof *made);
    *made = (consumer){.on = c, .of = q, .prefetch = c->prefetch};
    snprintf(made->tag, sizeof made->tag, "%.*s", (int)method->consumer_tag.len,
             (char *)method->consumer_tag.bytes);
    mull__list_push(&q->consumers, &made->link);
    at_time(s, one_in(s, 3) ? between(s, 0, 10) : 0, tell_consumer, made);
}

static void cancel(channel *c, const amqp_basic_cancel_t *method)
{
    consumer *found = consumer_find(c, method->consumer_tag);
    amqp_basic_cancel_ok_t ok = {.consumer_tag = method->consumer_tag};
    if (found && !found->is_told)
        violation(sim_of(c), "a consumer is cancelled before it is confirmed");
    if (found)
        mull__list_remove(&found->of->consumers, &found->link);
    reply(c, AMQP_BASIC_CANCEL_OK_METHOD, &ok);
}

static void end_one(handout *h, int is_ack)
{
    if (is_ack)
        ledger_acked(h->on->conn->broker->sim, h);
    else
        ledger_nacked(h->on->conn->broker->sim, h);
    if (is_ack)
        handout_ack(h);
    else
        handout_back(h);
}

/* settled reads an acknowledgement, or its opposite, of one tag, or of all up to it. */
static void settled(channel *c, uint64_t tag, int multiple, int is_ack)
{
    sim *s = sim_of(c);
    mull__link *after;
    int found = 0, count = 0;
    for (mull__link *at = mull__list_first(&c->handouts); at;
         at = mull__list_after(&c->handouts, at)) {
        const handout *h = MULL__ENTRY(at, handout, link);
        found |= h->tag == tag && h->state != HANDOUT_ENDING;
    }
    if (!found)
        violation(s, "PRECONDITION_FAILED - unknown delivery tag %" PRIu64 " on channel %d", tag,
                  c->number);
    for (mull__link *at = mull__list_first(&c->handouts); at; at = after) {
        handout *h = MULL__ENTRY(at, handout, link);
        after = mull__list_after(&c->handouts, at);
        if (h->state == HANDOUT_ENDING || (multiple ? h->tag > tag : h->tag != tag))
            continue;
        end_one(h, is_ack);
        count++;
    }
    note(s,
         is_ack ? "channel %lld: acknowledged up to %lld, %lld of them"
                : "channel %lld: given back up to %lld, %lld of them",
         c->number, (int64_t)tag, count, 0);
    *(is_ack ? &s->totals->acknowledged : &s->totals->given_back) += (uint64_t)count;
    s->totals->acknowledged_together += (uint64_t)(is_ack && count > 1);
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void open_method(channel *c, const command *what, const void *method)
{
    sim *s = sim_of(c);
    const amqp_basic_ack_t *ack = method;
    const amqp_basic_nack_t *nack = method;
    const amqp_basic_qos_t *qos = method;
    amqp_channel_close_ok_t close_ok = {0};
    amqp_confirm_select_ok_t select_ok = {0};
    amqp_basic_qos_ok_t qos_ok = {0};
    switch (what->id) {
    case AMQP_CHANNEL_CLOSE_METHOD:
        channel_end(c, c->conn->was_slow);
        reply(c, AMQP_CHANNEL_CLOSE_OK_METHOD, &close_ok);
        break;
    case AMQP_CONFIRM_SELECT_METHOD:
        c->confirms = 1;
        reply(c, AMQP_CONFIRM_SELECT_OK_METHOD, &select_ok);
        break;
    case AMQP_BASIC_QOS_METHOD:
        c->prefetch = qos->prefetch_count;
        reply(c, AMQP_BASIC_QOS_OK_METHOD, &qos_ok);
        break;
    case AMQP_BASIC_CONSUME_METHOD:
        consume(c, method);
        break;
    case AMQP_BASIC_CANCEL_METHOD:
        cancel(c, method);
        break;
    case AMQP_BASIC_ACK_METHOD:
        settled(c, ack->delivery_tag, ack->multiple, 1);
        break;
    case AMQP_BASIC_NACK_METHOD:
        if (!nack->requeue)
            violation(s, "a message is thrown away (basic.nack without requeue)");
        settled(c, nack->delivery_tag, nack->multiple, 0);
        break;
    case AMQP_BASIC_PUBLISH_METHOD:
        publish(c, method, what);
        break;
    case AMQP_QUEUE_DECLARE_METHOD:
        declare_queue(c, method);
        break;
    case AMQP_QUEUE_BIND_METHOD:
        bind_queue(c, method);
        break;
    case AMQP_EXCHANGE_DECLARE_METHOD:
        declare_exchange(c, method);
        break;
    case AMQP_EXCHANGE_BIND_METHOD:
        bind_exchange(c, method);
        break;
    default:
        violation(s, "method %x on channel %d", what->id, c->number);
    }
}

static void carry_out(channel *c, const command *what)
{
    sim *s = sim_of(c);
    void *method = NULL;
    if (amqp_decode_method(what->id, &c->conn->broker->pool, what->method, &method) < 0)
        violation(s, "method %x can't be read", what->id);
    note(s, "channel %lld: method %lld.%lld", c->number, what->id >> 16, what->id & 0xffff, 0);
    if (c->state == CHANNEL_OPEN) {
        open_method(c, what, method);
    } else if (c->state == CHANNEL_CLOSING && what->id == AMQP_CHANNEL_CLOSE_OK_METHOD) {
        c->state = CHANNEL_NONE;
    } else if (c->state == CHANNEL_CLOSING) {
        amqp_channel_close_ok_t ok = {0};
        if (what->id == AMQP_CHANNEL_OPEN_METHOD)
            violation(s, "channel %d is opened before it has closed", c->number);
        if (what->id == AMQP_CHANNEL_CLOSE_METHOD)
            reply(c, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
    } else if (what->id == AMQP_CHANNEL_OPEN_METHOD) {
        amqp_channel_open_ok_t ok = {0};
        c->state = CHANNEL_OPEN;
        c->life++;
        reply(c, AMQP_CHANNEL_OPEN_OK_METHOD, &ok);
    } else {
        violation(s, "method %x on channel %d, which isn't open", what->id, c->number);
    }
}

static void go_on(channel *c);

static void on_next(sim *s, void *data)
{
    channel *c = data;
    command *what = c->first;
    c->next = NULL;
    c->first = what->next;
    if (!c->first)
        c->last = &c->first;
    carry_out(c, what);
    recycle_amqp_pool(&s->broker.pool);
    go_on(c);
}

static void go_on(channel *c)
{
    sim *s = sim_of(c);
    if (c->next || !c->first)
        return;
    int64_t wait_ms = one_in(s, 8) ? between(s, 0, 4) : 0;
    if (happens(s, s->faults.slow)) {
        wait_ms = between(s, 0, 3000);
        c->conn->was_slow = 1;
    }
    c->next = at_time(s, wait_ms, on_next, c);
}

void channel_take(channel *c, command *what)
{
    *c->last = what;
    c->last = &what->next;
    go_on(c);
}
