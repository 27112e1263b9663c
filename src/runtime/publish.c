/* publish.c: messages put on queues from outside of a handler, and the depth of queues. Each
 * question to a transport carries a ticket, which comes back with the answer. */
#include "copy.h"
#include "state.h"

typedef struct ticket {
    mull_port *port;
    mull_published_fn published;
    mull_depth_fn answer;
    void *data;
    int code; /* of a fault that stands in for the transport */
} ticket;

static void on_fault(void *data)
{
    ticket *t = data;
    if (t->answer)
        mull_port_depth(t->port, t, t->code, NULL);
    else
        mull_port_published(t->port, t, t->code);
}

/* answer_fault answers a ticket in place of the transport, on a later turn. */
static int answer_fault(ticket *t)
{
    return mull__engine_after(t->port->engine, 0, on_fault, t) ? 0 : MULL_ENOMEM;
}

/* ask asks a port's transport to publish `outgoing`, or for the depth of `queue`, with a copy of
 * this ticket. */
static int ask(const ticket *given, const mull_outgoing *outgoing, const char *queue)
{
    mull_port *port = given->port;
    const mull_allocator *allocator = &port->engine->allocator;
    ticket *t = mull__alloc(allocator, sizeof *t);
    if (!t)
        return MULL_ENOMEM;
    *t = *given;
    int status = mull__fault_hit(port, queue ? MULL__DEPTH : MULL__PUBLISH, &t->code)
                     ? answer_fault(t)
                 : queue ? port->ops->depth(port->self, queue, t)
                         : port->ops->publish(port->self, outgoing, t);
    if (status != 0)
        mull__free(allocator, t);
    return mull__refusal(status);
}

/* reachable finds a transport that can be asked something. */
static int reachable(mull_port **out, mull_engine *engine, const char *name)
{
    if (engine->closing)
        return MULL_ESTATE;
    *out = mull__port_named(engine, name);
    if (!*out)
        return MULL_EINVAL;
    return (*out)->health == MULL_BROKEN ? MULL_EIO : 0;
}

int mull_publish(mull_engine *engine, const char *transport, const mull_message *message,
                 int64_t delay_ms, mull_published_fn published, void *data)
{
    if (!engine || !transport || delay_ms < 0)
        return MULL_EINVAL;
    mull_port *port = NULL;
    mull_outgoing outgoing = {.due_ms = mull__engine_due(engine, delay_ms)};
    int status = mull__message_take(&outgoing.message, message);
    if (status == 0)
        status = reachable(&port, engine, transport);
    if (status == 0)
        status = mull__delay_check(&port->abilities, delay_ms);
    if (status != 0)
        return status;
    char id[33];
    if (!outgoing.message.id) {
        mull__engine_id(engine, id);
        outgoing.message.id = id;
    }
    return ask(&(ticket){.port = port, .published = published, .data = data}, &outgoing, NULL);
}

void mull_port_published(mull_port *port, void *data, int status)
{
    if (!port || !data)
        return;
    ticket t = *(ticket *)data;
    mull__free(&port->engine->allocator, data);
    mull__engine_touch(port->engine);
    if (t.published)
        t.published(status, t.data);
}

int mull_queue_depth(mull_engine *engine, const char *transport, const char *queue,
                     mull_depth_fn answer, void *data)
{
    if (!engine || !transport || !queue || !queue[0] || !answer)
        return MULL_EINVAL;
    mull_port *port;
    int status = reachable(&port, engine, transport);
    if (status != 0)
        return status;
    return ask(&(ticket){.port = port, .answer = answer, .data = data}, NULL, queue);
}

void mull_port_depth(mull_port *port, void *data, int status, const mull_depth *depth)
{
    if (!port || !data)
        return;
    ticket t = *(ticket *)data;
    mull__free(&port->engine->allocator, data);
    mull__engine_touch(port->engine);
    static const mull_depth unknown = {.next_due_ms = INT64_MAX};
    if (status == 0 && !depth)
        status = MULL_EINVAL;
    t.answer(status, status == 0 ? depth : &unknown, t.data);
}
