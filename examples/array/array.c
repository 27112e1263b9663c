/* array.c: the transport `array:`, the smallest: an array of messages, which closing frees. */
#include <mulligan/transport.h>
#include <stdlib.h>

enum { ROOM = 1000, READERS = 8 };

typedef struct reader {
    mull_ticket consumer; /* 0: the place is free */
    uint32_t credit, out;
    char queue[256];
} reader;

typedef struct item {
    mull_delivery delivery; /* first */
    mull_message message;
    reader *reader; /* that it is out to */
    int gone;
} item;

typedef struct transport {
    mull_port *port;
    mull_timer *timer;
    reader readers[READERS];
    item *items[ROOM];
    size_t count;
} transport;

static int add(transport *t, const mull_message *from, const mull_settlement *s)
{
    size_t room = s ? ROOM : ROOM / 2; /* the other half is for what takes a message's place */
    item *i = t->count < room ? calloc(1, sizeof *i + mull_message_size(from, s)) : NULL;
    if (!i)
        return MULL_ENOMEM;
    mull_message_copy(&i->message, from, s, (mull_header *)(i + 1));
    i->delivery = (mull_delivery){.size = sizeof i->delivery, .message = &i->message};
    t->items[t->count++] = i;
    mull_port_timer_set(t->port, t->timer, 0);
    return 0;
}

static void hand_out(void *data)
{
    transport *t = data;
    for (reader *r = t->readers; r < t->readers + READERS; r++)
        for (size_t n = 0; n < t->count && r->credit > r->out; n++) {
            item *i = t->items[n];
            if (i->reader || strcmp(i->message.queue, r->queue) != 0)
                continue;
            i->reader = r;
            r->out++;
            mull_port_delivered(t->port, r->consumer, &i->delivery);
        }
}

static int array_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                      size_t why_size)
{
    (void)url, (void)queue, (void)why, (void)why_size;
    floor->can_retry = 1;
    return 0;
}

static int array_open(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    (void)url, (void)why, (void)why_size;
    transport *t = *self = calloc(1, sizeof *t);
    if (!t || !(t->timer = mull_port_timer_new(port, hand_out, t))) {
        free(t);
        return MULL_ENOMEM;
    }
    t->port = port;
    mull_port_state(port, MULL_UP, NULL);
    return 0;
}

static int array_subscribe(void *self, mull_ticket consumer, const mull_source *source, void **out)
{
    transport *t = self;
    reader *r = t->readers;
    while (r < t->readers + READERS && r->consumer)
        r++;
    if (r == t->readers + READERS || strlen(source->queue) >= sizeof r->queue)
        return MULL_EREFUSED;
    r->consumer = consumer;
    strcpy(r->queue, source->queue);
    *out = r;
    mull_port_source(t->port, consumer, MULL_SOURCE_READY, NULL, NULL);
    return 0;
}

static void array_credit(void *self, void *subscription, uint32_t deliveries)
{
    transport *t = self;
    ((reader *)subscription)->credit = deliveries;
    mull_port_timer_set(t->port, t->timer, 0);
}

static void array_unsubscribe(void *self, void *subscription)
{
    reader *r = subscription;
    mull_port_source(((transport *)self)->port, r->consumer, MULL_SOURCE_ENDED, NULL, NULL);
    *r = (reader){0};
}

static int array_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    transport *t = self;
    mull_port_answer(t->port, ticket, add(t, outgoing->message, NULL), NULL);
    return 0;
}

static void array_settle(void *self, mull_delivery *d, const mull_settlement *s, mull_ticket ticket)
{
    transport *t = self;
    item *i = (item *)d;
    int copies = s->kind != MULL_SETTLE_ACK && s->kind != MULL_SETTLE_DISCARD;
    int status = copies ? add(t, &i->message, s) : 0;
    for (size_t n = 0; !status && n < s->send_count; n++)
        status = add(t, s->sends[n].message, NULL);
    i->gone = !status;
    i->reader->out -= !status;
    mull_port_answer(t->port, ticket, status, NULL);
    mull_port_timer_set(t->port, t->timer, 0);
}

static void array_release(void *self, mull_delivery *delivery)
{
    transport *t = self;
    size_t n = 0;
    if (!((item *)delivery)->gone)
        return;
    while (t->items[n] != (item *)delivery)
        n++;
    memmove(&t->items[n], &t->items[n + 1], (--t->count - n) * sizeof *t->items);
    free(delivery);
}

static void array_close(void *self, int64_t drain_ms)
{
    transport *t = self;
    (void)drain_ms;
    while (t->count > 0)
        free(t->items[--t->count]);
    mull_port_timer_free(t->port, t->timer);
    mull_port_closed(t->port);
    free(t);
}

const mull_transport_ops array_transport = {MULL_TRANSPORT_OPS(array)};
