/* proxy.c: see proxy.h. */
#include "proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HELD_MOST = 1 << 16, READ_SIZE = 1 << 16, BACKLOG = 128, SLICES_APART_MS = 1 };

/* piece is what one read gave. */
typedef struct piece {
    mull__link link;
    uint64_t due;
    size_t size, written;
    char bytes[];
} piece;

struct connection;

typedef struct way {
    struct connection *connection;
    rule *rule;
    uv_tcp_t *from, *to;
    mull__list pieces;
    size_t held;
    uv_timer_t timer; /* until the first piece is due */
    uv_write_t write;
    uint64_t next;  /* not before this, for slices */
    size_t writing; /* bytes on their way to the kernel; 0: none */
    uv_shutdown_t shutdown;
    int ended; /* `from` says that nothing more comes */
    int shut;  /* so we have told `to` */
    int reading;
} way;

typedef struct connection {
    mull__link link;
    proxy *proxy;
    uv_tcp_t client, server;
    uv_connect_t connect;
    way ways[2];
    int connected, closing, handles;
} connection;

static void must(int status, const char *what)
{
    if (status >= 0)
        return;
    fprintf(stderr, "proxy: %s: %s\n", what, uv_strerror(status));
    exit(1);
}

static void *must_have(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* ---- The end of a connection ----------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    connection *c = handle->data;
    if (--c->handles > 0)
        return;
    for (int i = UP; i <= DOWN; i++)
        for (mull__link *link; (link = mull__list_pop(&c->ways[i].pieces));)
            free(MULL__ENTRY(link, piece, link));
    proxy *p = c->proxy;
    mull__list_remove(&p->connections, &c->link);
    free(c);
    proxy_changed(p);
}

/* close_side closes in order: the kernel sends a reset where bytes are left that nobody read. */
static void close_side(uv_tcp_t *side, int by_reset)
{
    uv_os_fd_t fd;
    char bytes[4096];
    if (by_reset && uv_tcp_close_reset(side, on_closed) == 0)
        return;
    if (uv_fileno((uv_handle_t *)side, &fd) == 0)
        while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
            continue;
    uv_close((uv_handle_t *)side, on_closed);
}

static void end(connection *c, int by_reset)
{
    if (c->closing)
        return;
    c->closing = 1;
    close_side(&c->client, by_reset);
    close_side(&c->server, by_reset);
    uv_close((uv_handle_t *)&c->ways[UP].timer, on_closed);
    uv_close((uv_handle_t *)&c->ways[DOWN].timer, on_closed);
}

/* ---- One way --------------------------------------------------------------------------------- */

static void pass(way *w);

static void on_due(uv_timer_t *timer)
{
    pass(MULL__ENTRY(timer, way, timer));
}

static void on_shut(uv_shutdown_t *shutdown, int status)
{
    (void)shutdown;
    (void)status;
}

/* shut tells `to` that nothing more comes. */
static void shut(way *w)
{
    if (!w->shut)
        uv_shutdown(&w->shutdown, (uv_stream_t *)w->to, on_shut);
    w->shut = 1;
}

static int is_through(const way *w)
{
    return w->ended && w->shut;
}

static void on_allocate(uv_handle_t *from, size_t suggested, uv_buf_t *buffer)
{
    static char bytes[READ_SIZE];
    (void)from;
    (void)suggested;
    *buffer = uv_buf_init(bytes, sizeof bytes);
}

static void on_read(uv_stream_t *from, ssize_t size, const uv_buf_t *buffer);

/* read_on reads unless much is held: then the sender has to wait, as with any slow network. */
static void read_on(way *w)
{
    int wanted = !w->ended && w->held < HELD_MOST;
    if (wanted && !w->reading)
        uv_read_start((uv_stream_t *)w->from, on_allocate, on_read);
    else if (!wanted && w->reading)
        uv_read_stop((uv_stream_t *)w->from);
    w->reading = wanted;
}

static void hold(way *w, const char *bytes, size_t size)
{
    piece *added = must_have(malloc(sizeof *added + size));
    *added = (piece){.due = uv_now(&w->connection->proxy->loop) + w->rule->delay_ms, .size = size};
    memcpy(added->bytes, bytes, size);
    if (w->pieces.count > 0) {
        const piece *last = MULL__ENTRY(w->pieces.head.previous, piece, link);
        if (added->due < last->due)
            added->due = last->due; /* none overtakes another */
    }
    mull__list_push(&w->pieces, &added->link);
    w->held += size;
}

static void on_read(uv_stream_t *from, ssize_t size, const uv_buf_t *buffer)
{
    connection *c = from->data;
    way *w = &c->ways[from == (uv_stream_t *)&c->client ? UP : DOWN];
    if (c->closing)
        return;
    if (size > 0 && !w->shut)
        hold(w, buffer->base, (size_t)size);
    else if (size == UV_EOF)
        w->ended = 1;
    else if (size < 0) {
        end(c, 1);
        return;
    }
    read_on(w);
    pass(w);
    if (is_through(&c->ways[UP]) && is_through(&c->ways[DOWN]))
        end(c, 0);
    proxy_changed(c->proxy);
}

/* has_passed counts bytes, and says whether the connection ends by them. */
static int has_passed(way *w, size_t size)
{
    rule *r = w->rule;
    r->passed += size;
    if (!r->ends)
        return 0;
    r->left_until_end -= size < r->left_until_end ? size : r->left_until_end;
    return r->left_until_end == 0;
}

static void on_written(uv_write_t *write, int status)
{
    way *w = MULL__ENTRY(write, way, write);
    connection *c = w->connection;
    piece *first = MULL__ENTRY(mull__list_first(&w->pieces), piece, link);
    size_t size = w->writing;
    w->writing = 0;
    w->next = w->rule->slice ? uv_now(&c->proxy->loop) + SLICES_APART_MS : 0;
    if (c->closing)
        return;
    if (status < 0) {
        end(c, 1);
        return;
    }
    first->written += size;
    w->held -= size;
    if (first->written == first->size) {
        mull__list_remove(&w->pieces, &first->link);
        free(first);
    }
    if (has_passed(w, size)) {
        w->rule->ends = 0;
        end(c, w->rule->ends_by_reset);
    } else {
        read_on(w);
        pass(w);
        if (is_through(&c->ways[UP]) && is_through(&c->ways[DOWN]))
            end(c, 0);
    }
    proxy_changed(c->proxy);
}

/* size_of_next is how much of a piece may go out in one write. */
static size_t size_of_next(const way *w, const piece *first)
{
    size_t size = first->size - first->written;
    if (w->rule->slice && size > w->rule->slice)
        size = w->rule->slice;
    if (w->rule->ends && size > w->rule->left_until_end)
        size = (size_t)w->rule->left_until_end;
    return size;
}

static void pass(way *w)
{
    connection *c = w->connection;
    if (c->closing || !c->connected || w->rule->stopped || w->writing > 0 || w->shut)
        return;
    mull__link *link = mull__list_first(&w->pieces);
    if (!link) {
        if (w->ended)
            shut(w);
        return;
    }
    piece *first = MULL__ENTRY(link, piece, link);
    uint64_t now = uv_now(&c->proxy->loop), due = first->due > w->next ? first->due : w->next;
    if (due > now) {
        uv_timer_start(&w->timer, on_due, due - now, 0);
        return;
    }
    w->writing = size_of_next(w, first);
    uv_buf_t buffer = uv_buf_init(first->bytes + first->written, (unsigned)w->writing);
    if (uv_write(&w->write, (uv_stream_t *)w->to, &buffer, 1, on_written) != 0)
        end(c, 1);
}

/* ---- New connections ------------------------------------------------------------------------- */

static void on_connected(uv_connect_t *connect, int status)
{
    connection *c = connect->data;
    if (c->closing)
        return;
    if (status < 0) {
        end(c, 1);
        return;
    }
    uv_tcp_nodelay(&c->client, 1);
    uv_tcp_nodelay(&c->server, 1);
    c->connected = 1;
    for (int i = UP; i <= DOWN; i++) {
        read_on(&c->ways[i]);
        pass(&c->ways[i]);
    }
}

static void begin_way(connection *c, direction to)
{
    way *w = &c->ways[to];
    w->connection = c;
    w->rule = &c->proxy->rules[to];
    w->from = to == UP ? &c->client : &c->server;
    w->to = to == UP ? &c->server : &c->client;
    mull__list_init(&w->pieces);
    uv_timer_init(&c->proxy->loop, &w->timer);
    w->timer.data = c;
}

static struct sockaddr_in at_loopback(int port)
{
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", port, &address);
    return address;
}

static void on_connection(uv_stream_t *listener, int status)
{
    proxy *p = listener->data;
    if (status < 0)
        return;
    connection *c = must_have(calloc(1, sizeof *c));
    c->proxy = p;
    c->client.data = c->server.data = c->connect.data = c;
    uv_tcp_init(&p->loop, &c->client);
    uv_tcp_init(&p->loop, &c->server);
    begin_way(c, UP);
    begin_way(c, DOWN);
    c->handles = 4;
    mull__list_push(&p->connections, &c->link);
    struct sockaddr_in target = at_loopback(p->target);
    must(uv_accept(listener, (uv_stream_t *)&c->client), "accept");
    p->accepted++;
    if (uv_tcp_connect(&c->connect, &c->server, (struct sockaddr *)&target, on_connected) != 0)
        end(c, 1);
    proxy_changed(p);
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* hold_port takes a free port for good, so that nobody else gets it while new connections are
 * refused. It is no listener; two sockets may have a port where both say so. */
static void hold_port(proxy *p)
{
    struct sockaddr_in address = at_loopback(0);
    socklen_t size = sizeof address;
    int on = 1;
    p->holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->holder < 0 || setsockopt(p->holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(p->holder, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(p->holder, (struct sockaddr *)&address, &size) != 0) {
        perror("proxy: no port");
        exit(1);
    }
    p->port = ntohs(address.sin_port);
}

void proxy_listen(proxy *p)
{
    if (p->listener)
        return;
    struct sockaddr_in address = at_loopback(p->port);
    p->listener = must_have(calloc(1, sizeof *p->listener));
    p->listener->data = p;
    must(uv_tcp_init(&p->loop, p->listener), "a socket");
    must(uv_tcp_bind(p->listener, (struct sockaddr *)&address, 0), "bind");
    must(uv_listen((uv_stream_t *)p->listener, BACKLOG, on_connection), "listen");
}

static void on_refused(uv_handle_t *listener)
{
    free(listener);
}

void proxy_refuse(proxy *p)
{
    if (p->listener)
        uv_close((uv_handle_t *)p->listener, on_refused);
    p->listener = NULL;
}

void proxy_open(proxy *p, int target)
{
    *p = (proxy){.target = target};
    must(uv_loop_init(&p->loop), "a loop");
    mull__list_init(&p->connections);
    hold_port(p);
    proxy_listen(p);
}

/* next_of walks along the connections; NULL begins, and ends. */
static connection *next_of(proxy *p, connection *c)
{
    mull__link *link =
        c ? mull__list_after(&p->connections, &c->link) : mull__list_first(&p->connections);
    return link ? MULL__ENTRY(link, connection, link) : NULL;
}

void proxy_end(proxy *p, int by_reset)
{
    for (connection *c = NULL; (c = next_of(p, c));)
        end(c, by_reset);
}

void proxy_half_close(proxy *p, direction to)
{
    for (connection *c = NULL; (c = next_of(p, c));)
        if (c->connected && !c->closing)
            shut(&c->ways[to]);
}

uint64_t proxy_held(proxy *p)
{
    uint64_t held = 0;
    for (connection *c = NULL; (c = next_of(p, c));)
        held += c->ways[UP].held + c->ways[DOWN].held;
    return held;
}

void proxy_go_on(proxy *p)
{
    for (connection *c = NULL; (c = next_of(p, c));) {
        pass(&c->ways[UP]);
        pass(&c->ways[DOWN]);
    }
}
