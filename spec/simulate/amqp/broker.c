/* broker.c: what RabbitMQ keeps: exchanges, bindings, queues and their messages, and those that
 * wait for their time. No protocol; see server.c. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 1000 };

/* ---- Texts ----------------------------------------------------------------------------------- */

amqp_bytes_t bytes_of(const char *text)
{
    return (amqp_bytes_t){strlen(text), (void *)(uintptr_t)text};
}

int same(amqp_bytes_t bytes, const char *text)
{
    return bytes.len == strlen(text) &&
           (bytes.len == 0 || memcmp(bytes.bytes, text, bytes.len) == 0);
}

static void copy_text(char *out, size_t room, amqp_bytes_t bytes)
{
    size_t size = bytes.len < room ? bytes.len : room - 1;
    if (size > 0)
        memcpy(out, bytes.bytes, size);
    out[size] = 0;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

queue *queue_find(broker *b, amqp_bytes_t name)
{
    for (mull__link *at = mull__list_first(&b->queues); at; at = mull__list_after(&b->queues, at)) {
        queue *q = MULL__ENTRY(at, queue, link);
        if (same(name, q->name))
            return q;
    }
    return NULL;
}

queue *queue_make(broker *b, amqp_bytes_t name, const argument *arguments, int count)
{
    queue *q = keep(b->sim, sizeof *q);
    copy_text(q->name, sizeof q->name, name);
    q->argument_count = count;
    if (count > 0)
        memcpy(q->arguments, arguments, (size_t)count * sizeof *arguments);
    for (int i = 0; i < count; i++) {
        const argument *a = &q->arguments[i];
        if (strcmp(a->name, "x-queue-type") == 0)
            q->is_quorum = strcmp(a->text, "quorum") == 0;
        else if (strcmp(a->name, "x-message-ttl") == 0)
            q->ttl_ms = a->number;
        else if (strcmp(a->name, "x-dead-letter-exchange") == 0)
            q->next_exchange = a->text;
    }
    q->is_delay = q->next_exchange != NULL;
    mull__list_init(&q->ready);
    mull__list_init(&q->consumers);
    mull__list_push(&b->queues, &q->link);
    return q;
}

/* unbind takes out all that leads to a queue. */
static void unbind(broker *b, const queue *q)
{
    mull__link *after;
    for (mull__link *at = mull__list_first(&b->bindings); at; at = after) {
        binding *one = MULL__ENTRY(at, binding, link);
        after = mull__list_after(&b->bindings, at);
        if (one->to == q)
            mull__list_remove(&b->bindings, at);
    }
}

void queue_delete(broker *b, queue *q)
{
    mull__link *link;
    unbind(b, q);
    mull__list_remove(&b->queues, &q->link);
    call_off(&q->pump);
    call_off(&q->expiry);
    while ((link = mull__list_pop(&q->ready)))
        copy_drop(b, MULL__ENTRY(link, copy, link));
    handouts_forget(b, q);
    while ((link = mull__list_first(&q->consumers)))
        consumer_end(MULL__ENTRY(link, consumer, link));
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

exchange *exchange_find(broker *b, amqp_bytes_t name)
{
    mull__list *list = &b->exchanges;
    for (mull__link *at = mull__list_first(list); at; at = mull__list_after(list, at)) {
        exchange *e = MULL__ENTRY(at, exchange, link);
        if (same(name, e->name))
            return e;
    }
    return NULL;
}

exchange *exchange_make(broker *b, const amqp_exchange_declare_t *declare)
{
    exchange *e = keep(b->sim, sizeof *e);
    copy_text(e->name, sizeof e->name, declare->exchange);
    copy_text(e->type, sizeof e->type, declare->type);
    for (int i = 0; i < declare->arguments.num_entries; i++)
        if (same(declare->arguments.entries[i].key, "alternate-exchange"))
            copy_text(e->alternate, sizeof e->alternate,
                      declare->arguments.entries[i].value.value.bytes);
    mull__list_push(&b->exchanges, &e->link);
    return e;
}

void binding_make(broker *b, exchange *from, exchange *to_exchange, queue *to, amqp_bytes_t key,
                  const amqp_table_t *arguments)
{
    binding *made = keep(b->sim, sizeof *made);
    *made = (binding){.from = from, .to_exchange = to_exchange, .to = to};
    copy_text(made->key, sizeof made->key, key);
    for (int i = 0; i < arguments->num_entries; i++) {
        const amqp_table_entry_t *entry = &arguments->entries[i];
        if (entry->key.len > 0 && *(const char *)entry->key.bytes == 'x')
            continue; /* x-match: all */
        copy_text(made->header, sizeof made->header, entry->key);
        made->value = entry->value.value.boolean;
    }
    mull__list *list = &b->bindings;
    for (mull__link *at = mull__list_first(list); at; at = mull__list_after(list, at)) {
        const binding *old = MULL__ENTRY(at, binding, link);
        if (old->from == from && old->to == to && old->to_exchange == to_exchange &&
            old->value == made->value && strcmp(old->key, made->key) == 0 &&
            strcmp(old->header, made->header) == 0)
            return;
    }
    mull__list_push(list, &made->link);
}

static int has_header(const amqp_table_t *headers, const char *name, int value)
{
    for (int i = 0; i < headers->num_entries; i++)
        if (same(headers->entries[i].key, name) &&
            headers->entries[i].value.kind == AMQP_FIELD_KIND_BOOLEAN)
            return headers->entries[i].value.value.boolean == value;
    return 0;
}

static int matches(const exchange *e, const binding *one, const char *key,
                   const amqp_table_t *headers)
{
    if (strcmp(e->type, "direct") == 0)
        return strcmp(one->key, key) == 0;
    return strcmp(e->type, "fanout") == 0 || !one->header[0] ||
           has_header(headers, one->header, one->value);
}

static int add_route(queue *q, queue *out[ROUTES], int count)
{
    for (int i = 0; i < count; i++)
        if (out[i] == q)
            return count;
    out[count] = q;
    return count + 1;
}

/* route_from adds to `out` where a message goes from an exchange. */
static int route_from(broker *b, const exchange *e, const char *key, const amqp_table_t *headers,
                      queue *out[ROUTES], int count)
{
    int before = count;
    mull__list *list = &b->bindings;
    for (mull__link *at = mull__list_first(list); at && count < ROUTES;
         at = mull__list_after(list, at)) {
        const binding *one = MULL__ENTRY(at, binding, link);
        if (one->from != e || !matches(e, one, key, headers))
            continue;
        count = one->to ? add_route(one->to, out, count)
                        : route_from(b, one->to_exchange, key, headers, out, count);
    }
    const exchange *other = e->alternate[0] ? exchange_find(b, bytes_of(e->alternate)) : NULL;
    return count == before && other ? route_from(b, other, key, headers, out, count) : count;
}

int broker_route(broker *b, const char *name, const char *key, const amqp_table_t *headers,
                 queue *out[ROUTES])
{
    if (name[0]) {
        const exchange *e = exchange_find(b, bytes_of(name));
        return e ? route_from(b, e, key, headers, out, 0) : 0;
    }
    out[0] = queue_find(b, bytes_of(key));
    return out[0] != NULL;
}

/* ---- Messages -------------------------------------------------------------------------------- */

copy *copy_new(broker *b, message *of, amqp_bytes_t properties, amqp_bytes_t body, const char *key)
{
    copy *c = keep(b->sim, sizeof *c);
    c->of = of;
    c->properties = properties;
    c->body = body;
    c->key = key;
    of->live++;
    return c;
}

static void expire(sim *s, void *data);

static void await_expiry(broker *b, queue *q)
{
    mull__link *first = mull__list_first(&q->ready);
    if (!q->ttl_ms || !first || q->expiry)
        return;
    int64_t wait_ms = MULL__ENTRY(first, copy, link)->expires_ms - b->sim->k.now_ms;
    q->expiry = at_time(b->sim, wait_ms > 0 ? wait_ms : 0, expire, q);
}

void copy_put(broker *b, queue *q, copy *c, int to_front)
{
    c->in = q;
    c->expires_ms = b->sim->k.now_ms + q->ttl_ms;
    if (to_front)
        mull__list_push_front(&q->ready, &c->link);
    else
        mull__list_push(&q->ready, &c->link);
    if (!q->is_delay)
        ledger_visible(b->sim, c);
    await_expiry(b, q);
    queue_pump(b->sim, q);
}

void copy_drop(broker *b, copy *c)
{
    note(b->sim, "message %lld is deleted", (int64_t)c->of->number, 0, 0, 0);
    c->of->live--;
    c->of->is_deleted = 1;
    c->in = NULL;
}

/* ---- Delays ---------------------------------------------------------------------------------- */

static amqp_table_t headers_of(broker *b, const copy *c)
{
    void *decoded = NULL;
    if (amqp_decode_properties(AMQP_BASIC_CLASS, &b->pool, c->properties, &decoded) < 0)
        return amqp_empty_table;
    const amqp_basic_properties_t *properties = decoded;
    return properties->_flags & AMQP_BASIC_HEADERS_FLAG ? properties->headers : amqp_empty_table;
}

/* came_from says whether a publisher's own x-death names a queue. */
static int came_from(const amqp_table_t *headers, const char *name)
{
    for (int i = 0; i < headers->num_entries; i++) {
        const amqp_field_value_t *value = &headers->entries[i].value;
        if (!same(headers->entries[i].key, "x-death") || value->kind != AMQP_FIELD_KIND_ARRAY)
            continue;
        for (int j = 0; j < value->value.array.num_entries; j++) {
            const amqp_table_t death = value->value.array.entries[j].value.table;
            for (int k = 0; k < death.num_entries; k++)
                if (same(death.entries[k].key, "queue") &&
                    same(death.entries[k].value.value.bytes, name))
                    return 1;
        }
    }
    return 0;
}

/* goes_in_circles: it was there before, and only its time brought it back: RabbitMQ drops it. */
static int goes_in_circles(const copy *c, const amqp_table_t *headers, const queue *to)
{
    for (int i = 0; i < c->death_count; i++)
        if (strcmp(c->deaths[i], to->name) == 0)
            return 1;
    return came_from(headers, to->name);
}

/* move hands a copy whose time is over to the next exchange. 0: nothing takes it. */
static int move(broker *b, queue *q, copy *c)
{
    queue *to[ROUTES];
    amqp_table_t headers = headers_of(b, c);
    int count = broker_route(b, q->next_exchange, c->key, &headers, to);
    if (count == 0)
        return 0;
    if (count > 1)
        violation(b->sim, "message %llu comes out of '%s' in %d queues",
                  (unsigned long long)c->of->number, q->name, count);
    if (c->death_count < (int)(sizeof c->deaths / sizeof *c->deaths))
        c->deaths[c->death_count++] = q->name;
    if (goes_in_circles(c, &headers, to[0]))
        violation(b->sim, "message %llu goes in circles, and RabbitMQ drops it before '%s'",
                  (unsigned long long)c->of->number, to[0]->name);
    mull__list_remove(&q->ready, &c->link);
    c->may_be_late |= q->was_stuck;
    b->sim->totals->come_due += !to[0]->is_delay;
    b->sim->totals->gone_astray += strstr(to[0]->name, ".astray") != NULL;
    copy_put(b, to[0], c, 0);
    return 1;
}

static void expire(sim *s, void *data)
{
    queue *q = data;
    broker *b = &s->broker;
    mull__link *first;
    q->expiry = NULL;
    while ((first = mull__list_first(&q->ready))) {
        copy *c = MULL__ENTRY(first, copy, link);
        if (c->expires_ms > s->k.now_ms)
            break;
        if (!move(b, q, c) && !q->is_quorum) { /* at most once */
            mull__list_remove(&q->ready, first);
            copy_drop(b, c);
        } else if (c->in == q) { /* at least once: it stays until something takes it */
            c->expires_ms = s->k.now_ms + AGAIN_MS;
            q->was_stuck = 1;
            break;
        }
    }
    recycle_amqp_pool(&b->pool);
    await_expiry(b, q);
}

/* ---- Its life -------------------------------------------------------------------------------- */

static void come_back(sim *s, void *data)
{
    (void)data;
    note(s, "the broker is back", 0, 0, 0, 0);
    s->broker.is_off = 0;
}

/* forget: what wasn't safe may be gone. */
static void forget(broker *b, queue *q)
{
    mull__link *after;
    for (mull__link *at = mull__list_first(&q->ready); at; at = after) {
        copy *c = MULL__ENTRY(at, copy, link);
        after = mull__list_after(&q->ready, at);
        int is_kept = c->is_safe || one_in(b->sim, 2);
        c->is_safe = 1;
        if (is_kept)
            continue;
        b->sim->totals->unsafe_lost++;
        mull__list_remove(&q->ready, at);
        c->of->live--;
        ledger_holds(b->sim, c->of);
    }
}

void broker_restart(broker *b, int64_t down_ms)
{
    sim *s = b->sim;
    mull__link *link;
    note(s, "the broker restarts", 0, 0, 0, 0);
    s->totals->restarts++;
    b->is_off = 1;
    at_time(s, down_ms, come_back, NULL);
    while ((link = mull__list_first(&b->conns))) {
        conn *c = MULL__ENTRY(link, conn, link);
        wire *w = c->wire;
        if (one_in(s, 2))
            conn_close(c, 320,
                       "CONNECTION_FORCED - broker forced connection closure with reason "
                       "'shutdown'");
        conn_gone(c);
        wire_cut(w);
    }
    for (link = mull__list_first(&b->queues); link; link = mull__list_after(&b->queues, link))
        forget(b, MULL__ENTRY(link, queue, link));
}

void broker_begin(broker *b, sim *s)
{
    *b = (broker){.sim = s};
    mull__list_init(&b->queues);
    mull__list_init(&b->exchanges);
    mull__list_init(&b->bindings);
    mull__list_init(&b->conns);
    init_amqp_pool(&b->pool, 65536);
}

void broker_end(broker *b)
{
    empty_amqp_pool(&b->pool);
}
