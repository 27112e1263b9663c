/* net.c: what the module takes for the network: src/net/link.h with no socket behind it, and the
 * timers of libuv that it uses, on the simulator's clock. The wires themselves are below. */
#include "sim.h"

#include "net/backoff.h"

#include <stdlib.h>
#include <string.h>

/* ---- libuv ----------------------------------------------------------------------------------- */

static sim *sim_of(const uv_loop_t *loop)
{
    return loop->data;
}

uint64_t uv_now(const uv_loop_t *loop)
{
    return (uint64_t)sim_of(loop)->k.now_ms;
}

/* pending is where a timer keeps its event. */
static event **pending(uv_timer_t *timer)
{
    return (event **)(void *)&timer->heap_node[0];
}

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    memset(timer, 0, sizeof *timer);
    timer->loop = loop;
    return 0;
}

static void on_timer(sim *s, void *data)
{
    uv_timer_t *timer = data;
    *pending(timer) =
        timer->repeat > 0 ? at_time(s, (int64_t)timer->repeat, on_timer, timer) : NULL;
    timer->timer_cb(timer);
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb callback, uint64_t timeout, uint64_t repeat)
{
    call_off(pending(timer));
    timer->timer_cb = callback;
    timer->repeat = repeat;
    *pending(timer) = at_time(sim_of(timer->loop), (int64_t)timeout, on_timer, timer);
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    call_off(pending(timer));
    return 0;
}

static void on_close(sim *s, void *data)
{
    uv_handle_t *handle = data;
    (void)s;
    handle->close_cb(handle);
}

void uv_close(uv_handle_t *handle, uv_close_cb callback)
{
    call_off(pending((uv_timer_t *)(void *)handle));
    handle->close_cb = callback;
    at_time(sim_of(handle->loop), 0, on_close, handle);
}

/* ---- TLS: none ------------------------------------------------------------------------------- */

int mull__tls_new(mull__tls **out, const mull_allocator *allocator,
                  const mull__tls_options *options, char *why, size_t why_size)
{
    (void)allocator;
    (void)options;
    *out = NULL;
    snprintf(why, why_size, "the simulator has none");
    return MULL_EINVAL;
}

void mull__tls_free(mull__tls *tls)
{
    (void)tls;
}

/* ---- Wires ----------------------------------------------------------------------------------- */

static void arrive(sim *s, void *data);

enum { PROMPT_MS = 15 };

static int64_t latency(sim *s)
{
    if (happens(s, s->faults.slow))
        return between(s, 0, 400);
    return one_in(s, 3) ? between(s, 0, PROMPT_MS) : 0;
}

/* await sees to it that what is on its way arrives. */
static void await(half *p)
{
    sim *s = p->of->sim;
    if (p->arrival || p->is_held || !p->first)
        return;
    int64_t wait_ms = p->first->due_ms - s->k.now_ms;
    p->arrival = at_time(s, wait_ms > 0 ? wait_ms : 0, arrive, p);
}

static void mark(half *p, int64_t due_ms)
{
    arrival_mark *made = keep(p->of->sim, sizeof *made);
    *made = (arrival_mark){NULL, p->size, due_ms};
    *p->last = made;
    p->last = &made->next;
    await(p);
}

/* send_mark: bytes never overtake others. */
static void send_mark(half *p)
{
    sim *s = p->of->sim;
    int64_t due_ms = s->k.now_ms + latency(s);
    for (const arrival_mark *m = p->first; m; m = m->next)
        due_ms = m->due_ms > due_ms ? m->due_ms : due_ms;
    if (due_ms > s->k.now_ms + PROMPT_MS && p->of->server)
        p->of->server->was_slow = 1;
    mark(p, due_ms);
}

void wire_write(wire *w, half *p, const void *bytes, size_t size)
{
    if (w->is_cut || w->is_mute || p->has_end || size == 0)
        return;
    if (p->at > 0 && !p->first)
        p->at = p->size = 0;
    if (p->size + size > p->room) {
        p->room = 2 * (p->size + size);
        p->bytes = realloc(p->bytes, p->room);
        if (!p->bytes)
            violation(w->sim, "out of memory");
    }
    memcpy(p->bytes + p->size, bytes, size);
    p->size += size;
    send_mark(p);
}

void wire_end(wire *w, half *p)
{
    if (w->is_cut || w->is_mute || p->has_end)
        return;
    p->has_end = 1;
    send_mark(p);
}

void wire_hold(half *p, int on)
{
    p->is_held = on;
    if (on)
        call_off(&p->arrival);
    else
        await(p);
}

static void link_read(mull__net_link *link, const char *bytes, size_t size);
static void link_gone(sim *s, mull__net_link *link, const char *why);

static void server_notices(sim *s, void *data)
{
    wire *w = data;
    (void)s;
    if (w->server)
        conn_gone(w->server);
}

static void client_notices(sim *s, void *data)
{
    wire *w = data;
    if (w->client)
        link_gone(s, w->client, "connection reset by peer");
}

/* break_off: of what is on its way, some still arrives. */
static void break_off(sim *s, half *p)
{
    size_t left = p->size - p->at;
    size_t more = one_in(s, 2) ? 0 : draw(s, left + 1);
    for (arrival_mark *m = p->first; m; m = m->next)
        m->to = m->to < p->at + more ? m->to : p->at + more;
    p->size = p->at + more;
}

void wire_cut(wire *w)
{
    sim *s = w->sim;
    if (w->is_cut || w->is_mute)
        return;
    note(s, "the connection is cut: %lld bytes arrived at the broker, %lld at the module",
         (int64_t)w->up.total, (int64_t)w->down.total, 0, 0);
    s->totals->cuts++;
    w->is_cut = 1;
    break_off(s, &w->up);
    break_off(s, &w->down);
    at_time(s, one_in(s, 2) ? 0 : between(s, 0, 300), client_notices, w);
    at_time(s, one_in(s, 2) ? 0 : between(s, 0, 1500), server_notices, w);
}

void wire_mute(wire *w)
{
    sim *s = w->sim;
    if (w->is_cut || w->is_mute)
        return;
    note(s, "the connection is mute", 0, 0, 0, 0);
    s->totals->mutes++;
    w->is_mute = 1;
    w->up.size = w->up.at;
    w->down.size = w->down.at;
    w->up.first = w->down.first = NULL;
    w->up.last = &w->up.first;
    w->down.last = &w->down.first;
    call_off(&w->up.arrival);
    call_off(&w->down.arrival);
    int64_t silent_ms = w->server && w->server->heartbeat_s ? w->server->heartbeat_s * 2000 : 10000;
    at_time(s, silent_ms, server_notices, w);
}

/* hand_over gives bytes to who reads them. */
static void hand_over(half *p, size_t size)
{
    wire *w = p->of;
    const char *bytes = p->bytes + p->at;
    p->at += size;
    p->total += size;
    if (p->is_up && w->is_closed)
        violation(w->sim, "the module speaks on after connection.close");
    if (p->is_up && w->server)
        conn_read(w->server, bytes, size);
    else if (!p->is_up && w->client)
        link_read(w->client, bytes, size);
}

static void tell_end(half *p)
{
    wire *w = p->of;
    p->is_ended = 1;
    if (p->is_up && w->server)
        conn_gone(w->server);
    else if (!p->is_up && w->client)
        link_gone(w->sim, w->client, "the server closed the connection");
}

/* arrive: all that is there, or a piece of it. */
static void arrive(sim *s, void *data)
{
    half *p = data;
    size_t to = p->at;
    p->arrival = NULL;
    while (p->first && p->first->due_ms <= s->k.now_ms) {
        to = p->first->to > to ? p->first->to : to;
        p->first = p->first->next;
    }
    if (!p->first)
        p->last = &p->first;
    size_t size = to - p->at;
    if (size > 1 && s->faults.slices && draw(s, 1000) < s->faults.slices)
        size = one_in(s, 4) ? 1 : (size_t)between(s, 1, (int64_t)size);
    if (p->total + size >= p->cut_at && !p->of->is_cut) {
        size = (size_t)(p->cut_at - p->total);
        s->totals->cut_at_a_byte++;
        hand_over(p, size);
        wire_cut(p->of);
        return;
    }
    if (p->at + size < to) { /* the rest follows */
        arrival_mark *rest = keep(s, sizeof *rest);
        *rest = (arrival_mark){p->first, to, s->k.now_ms + (int64_t)draw(s, 2)};
        p->first = rest;
        p->last = rest->next ? p->last : &rest->next;
    }
    await(p);
    int is_last = p->has_end && !p->first;
    if (size > 0)
        hand_over(p, size);
    if (is_last && p->at == p->size && !p->of->is_mute)
        tell_end(p);
}

/* The first connections of seeds are cut at each byte in its turn, up and down. */
static uint64_t turn_of(const sim *s)
{
    return s->k.seed / QUIET * (QUIET - 1) + s->k.seed % QUIET - 1;
}

static int is_cut_in_turn(const sim *s, const half *p)
{
    return s->k.seed % QUIET != 0 && s->wires.count == 0 && p->is_up == (int)(turn_of(s) & 1);
}

static void half_begin(wire *w, half *p, int is_up)
{
    sim *s = w->sim;
    p->of = w;
    p->is_up = is_up;
    p->last = &p->first;
    p->cut_at = UINT64_MAX;
    if (is_cut_in_turn(s, p))
        p->cut_at = turn_of(s) / 2;
    else if (happens(s, s->faults.cut_at))
        p->cut_at = (uint64_t)between(s, 0, one_in(s, 2) ? 900 : 9000);
}

static wire *wire_new(sim *s, mull__net_link *link)
{
    wire *w = keep(s, sizeof *w);
    w->sim = s;
    w->client = link;
    half_begin(w, &w->up, 1);
    half_begin(w, &w->down, 0);
    mull__list_push(&s->wires, &w->link);
    w->server = conn_new(&s->broker, w);
    s->totals->connections++;
    return w;
}

void wires_free(sim *s)
{
    mull__link *link;
    while ((link = mull__list_pop(&s->wires))) {
        wire *w = MULL__ENTRY(link, wire, link);
        free(w->up.bytes);
        free(w->down.bytes);
    }
}

/* ---- The link -------------------------------------------------------------------------------- */

struct mull__net_link {
    sim *sim;
    mull__link_calls calls;
    void *data;
    mull__backoff backoff;
    int64_t connect_ms;
    wire *wire;     /* NULL: none */
    int is_cutting; /* by the module */
    event *next;    /* an attempt, the end of one, or of this */
    event *turn;    /* what was written goes out */
    char *out;
    size_t out_size, out_room;
    const char *why;
    void (*closed)(void *data);
};

static void attempt(sim *s, void *data);

static void link_wait(mull__net_link *link)
{
    call_off(&link->next);
    link->next = at_time(link->sim, mull__backoff_next(&link->backoff), attempt, link);
}

static void let_go(mull__net_link *link)
{
    if (link->wire)
        link->wire->client = NULL;
    link->wire = NULL;
    link->out_size = 0;
    call_off(&link->turn);
}

static void link_ends(sim *s, mull__net_link *link)
{
    void (*closed)(void *data) = link->closed;
    void *data = link->data;
    let_go(link);
    call_off(&link->next);
    free(link->out);
    s->link = NULL;
    memset(link, 0xDD, sizeof *link);
    closed(data);
}

static void on_end(sim *s, void *data)
{
    link_ends(s, data);
}

/* link_gone: the other end, or the module, has ended the connection. */
static void link_gone(sim *s, mull__net_link *link, const char *why)
{
    char text[256];
    if (link->closed) {
        link_ends(s, link);
        return;
    }
    snprintf(text, sizeof text, "broker:5672: %s", why);
    let_go(link);
    link->is_cutting = 0;
    link_wait(link);
    note(s, "the module hears that the connection is gone", 0, 0, 0, 0);
    engine_excuse(s);
    link->calls.down(link->data, text);
    engine_cut(s);
}

static void connect_fails(sim *s, void *data)
{
    mull__net_link *link = data;
    (void)s;
    link_wait(link);
    link->calls.down(link->data, link->why);
}

static void connects(sim *s, void *data)
{
    mull__net_link *link = data;
    link->next = NULL;
    if (s->broker.is_off) {
        link->why = "broker:5672: connection refused";
        connect_fails(s, link);
        return;
    }
    link->wire = wire_new(s, link);
    note(s, "the module is connected", 0, 0, 0, 0);
    link->calls.up(link->data);
}

static void attempt(sim *s, void *data)
{
    mull__net_link *link = data;
    if (happens(s, s->faults.refuses)) {
        link->why = "broker:5672: no connection in time";
        link->next = at_time(s, link->connect_ms, connect_fails, link);
    } else {
        link->next = at_time(s, latency(s), connects, link);
    }
}

int mull__link_open(mull__net_link **out, const mull__link_options *options,
                    const mull__link_calls *calls, void *data)
{
    sim *s = sim_of(options->loop);
    mull__net_link *link = keep(s, sizeof *link);
    link->sim = s;
    link->calls = *calls;
    link->data = data;
    link->connect_ms = options->connect_ms;
    mull__backoff_init(&link->backoff, options->first_wait_ms, options->longest_wait_ms,
                       draw(s, UINT32_MAX) | 1);
    link->next = at_time(s, 0, attempt, link);
    s->link = link;
    *out = link;
    return 0;
}

static void on_turn(sim *s, void *data)
{
    mull__net_link *link = data;
    (void)s;
    link->turn = NULL;
    mull__link_flush(link);
    if (link->wire)
        link->calls.writable(link->data);
}

int mull__link_write(mull__net_link *link, const void *bytes, size_t size)
{
    sim *s = link->sim;
    if (!link->wire || link->is_cutting || link->closed)
        return MULL_EDOWN;
    if (size == 0)
        return 0;
    if (happens(s, s->faults.no_memory)) {
        note(s, "there is no memory to write %lld bytes", (int64_t)size, 0, 0, 0);
        s->totals->no_memory++;
        return MULL_ENOMEM;
    }
    if (link->out_size + size > link->out_room) {
        link->out_room = 2 * (link->out_size + size);
        link->out = realloc(link->out, link->out_room);
        if (!link->out)
            violation(s, "out of memory");
    }
    memcpy(link->out + link->out_size, bytes, size);
    link->out_size += size;
    if (!link->turn)
        link->turn = at_time(s, 0, on_turn, link);
    return 0;
}

void mull__link_flush(mull__net_link *link)
{
    if (link->wire && link->out_size > 0)
        wire_write(link->wire, &link->wire->up, link->out, link->out_size);
    link->out_size = 0;
}

size_t mull__link_unsent(const mull__net_link *link)
{
    return link->out_size;
}

void mull__link_settled(mull__net_link *link)
{
    if (link->wire)
        mull__backoff_reset(&link->backoff);
}

static void on_cut(sim *s, void *data)
{
    mull__net_link *link = data;
    link_gone(s, link, link->why);
}

void mull__link_cut(mull__net_link *link, const char *why)
{
    if (!link->wire || link->is_cutting || link->closed)
        return;
    note(link->sim, "the module ends the connection", 0, 0, 0, 0);
    mull__link_flush(link);
    wire_end(link->wire, &link->wire->up);
    link->is_cutting = 1;
    link->why = strcpy(keep(link->sim, strlen(why) + 1), why);
    call_off(&link->next);
    link->next = at_time(link->sim, 0, on_cut, link);
}

void mull__link_reads(mull__net_link *link, int on)
{
    if (link->wire)
        wire_hold(&link->wire->down, !on);
}

static void link_read(mull__net_link *link, const char *bytes, size_t size)
{
    if (!link->is_cutting && !link->closed)
        link->calls.read(link->data, bytes, size);
}

void mull__link_close(mull__net_link *link, int64_t flush_ms, void (*closed)(void *data))
{
    int was_open = link->wire && !link->is_cutting;
    note(link->sim, "the module closes the link", 0, 0, 0, 0);
    if (was_open) {
        mull__link_flush(link);
        wire_end(link->wire, &link->wire->up);
    }
    link->closed = closed;
    call_off(&link->turn);
    call_off(&link->next);
    link->next = at_time(link->sim, was_open ? flush_ms : 0, on_end, link);
}
