/* listener.c: see listener.h; socket_path.c makes the socket. */
#include "listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/list.h"
#include "bytes.h"
#include "socket_path.h"

enum {
    READ_SIZE = 1 << 16,
    READS_A_TURN = 8, /* then others of the loop have theirs */
    ACCEPTS_A_TURN = 16
};

struct mull__listener {
    mull_allocator allocator;
    const mull__listener_calls *calls;
    void *data;
    uv_loop_t *loop;
    uv_poll_t poll;
    int fd; /* -1: it listens on none */
    int is_open;
    int is_full; /* there is no descriptor for another peer until one goes */
    mull__socket_path path;
    mull__list peers;
    int handles;
};

struct mull__peer {
    mull__link link;
    mull__listener *listener;
    void *data;
    uv_poll_t poll;
    int fd, events;
    int reads, finishes, ended;
    mull__bytes in, out;
};

static void let_in_again(mull__listener *l);

/* ---- Ending ---------------------------------------------------------------------------------- */

static void drop_handle(mull__listener *l)
{
    if (--l->handles > 0)
        return;
    const mull__listener_calls *calls = l->calls;
    void *data = l->data;
    mull_allocator allocator = l->allocator;
    mull__free(&allocator, l);
    calls->closed(data);
}

static void on_peer_closed(uv_handle_t *handle)
{
    mull__peer *peer = handle->data;
    mull__listener *l = peer->listener;
    mull__list_remove(&l->peers, &peer->link);
    l->calls->gone(peer->data);
    close(peer->fd);
    mull__bytes_free(&peer->in, &l->allocator);
    mull__bytes_free(&peer->out, &l->allocator);
    mull__free(&l->allocator, peer);
    let_in_again(l);
    drop_handle(l);
}

void mull__peer_end(mull__peer *peer)
{
    if (peer->ended)
        return;
    peer->ended = 1;
    uv_close((uv_handle_t *)&peer->poll, on_peer_closed);
}

/* ---- Reading and writing --------------------------------------------------------------------- */

static void on_event(uv_poll_t *handle, int status, int events);

static void watch(mull__peer *peer)
{
    int wanted = mull__bytes_size(&peer->out) > 0 ? UV_WRITABLE : 0;
    if (!peer->finishes) /* else a failed write says that it is gone */
        wanted |= UV_DISCONNECT | (peer->reads ? UV_READABLE : 0);
    if (peer->ended || wanted == peer->events)
        return;
    peer->events = wanted;
    if (uv_poll_start(&peer->poll, wanted, on_event) != 0)
        mull__peer_end(peer);
}

/* send_some gives how many bytes the kernel took; below 0: the connection is broken. */
static ssize_t send_some(const mull__peer *peer, const char *bytes, size_t size)
{
    size_t taken = 0;
    while (taken < size) {
        ssize_t sent = send(peer->fd, bytes + taken, size - taken, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0 && errno != EINTR)
            return -1;
        taken += sent > 0 ? (size_t)sent : 0;
    }
    return (ssize_t)taken;
}

void mull__peer_write(mull__peer *peer, const void *bytes, size_t size)
{
    if (peer->ended)
        return;
    ssize_t taken = mull__bytes_size(&peer->out) > 0 ? 0 : send_some(peer, bytes, size);
    if (taken < 0 || mull__bytes_add(&peer->out, &peer->listener->allocator,
                                     (const char *)bytes + taken, size - (size_t)taken) != 0)
        mull__peer_end(peer);
    else
        watch(peer);
}

size_t mull__peer_unsent(const mull__peer *peer)
{
    return mull__bytes_size(&peer->out);
}

void mull__peer_reads(mull__peer *peer, int on)
{
    peer->reads = on;
    watch(peer);
}

void mull__peer_finish(mull__peer *peer)
{
    peer->finishes = 1;
    if (mull__bytes_size(&peer->out) == 0)
        mull__peer_end(peer);
    else
        watch(peer);
}

void mull__peer_feed(mull__peer *peer)
{
    size_t size = mull__bytes_size(&peer->in);
    if (size == 0 || peer->ended || peer->finishes)
        return;
    size_t done = peer->listener->calls->read(peer->data, peer->in.start + peer->in.first, size);
    mull__bytes_drop(&peer->in, &peer->listener->allocator, done);
}

static void read_in(mull__peer *peer)
{
    for (int reads = 0; reads < READS_A_TURN && peer->reads && !peer->finishes; reads++) {
        char *room = mull__bytes_room(&peer->in, &peer->listener->allocator, READ_SIZE);
        ssize_t size = room ? recv(peer->fd, room, READ_SIZE, 0) : 0;
        if (size < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (size <= 0) { /* it has said all: what was asked is answered */
            mull__peer_finish(peer);
            return;
        }
        peer->in.end += (size_t)size;
        mull__peer_feed(peer);
        if (peer->ended || size < READ_SIZE)
            return;
    }
}

static void write_out(mull__peer *peer)
{
    ssize_t taken = send_some(peer, peer->out.start + peer->out.first, mull__peer_unsent(peer));
    if (taken < 0) {
        mull__peer_end(peer);
        return;
    }
    mull__bytes_drop(&peer->out, &peer->listener->allocator, (size_t)taken);
    if (mull__peer_unsent(peer) == 0 && peer->finishes)
        mull__peer_end(peer);
    else if (mull__peer_unsent(peer) == 0)
        peer->listener->calls->sent(peer->data);
    watch(peer);
}

/* A peer that has closed its side still has what it wrote before read. */
static void on_event(uv_poll_t *handle, int status, int events)
{
    mull__peer *peer = handle->data;
    if (status != 0) {
        mull__peer_end(peer);
        return;
    }
    if (events & UV_WRITABLE && mull__peer_unsent(peer) > 0)
        write_out(peer);
    if (!peer->ended && events & UV_READABLE)
        read_in(peer);
    else if (!peer->ended && events & UV_DISCONNECT)
        mull__peer_end(peer);
}

/* ---- Letting in ------------------------------------------------------------------------------ */

static int is_one_of_us(int fd, char *why, size_t size)
{
    struct ucred who;
    socklen_t length = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0)
        snprintf(why, size, "who connected can't be told: %s", strerror(errno));
    else if (who.uid != geteuid() && who.uid != 0)
        snprintf(why, size, "process %ld of user %lu may not connect", (long)who.pid,
                 (unsigned long)who.uid);
    else
        return 1;
    return 0;
}

/* begin_peer: the peer is in the list once the loop has its handle. */
static int begin_peer(mull__listener *l, int fd)
{
    mull__peer *peer = mull__zalloc(&l->allocator, 1, sizeof *peer);
    if (!peer)
        return MULL_ENOMEM;
    peer->listener = l;
    peer->fd = fd;
    peer->reads = 1;
    peer->data = l->calls->accepted(l->data, peer);
    if (!peer->data || uv_poll_init(l->loop, &peer->poll, fd) != 0) {
        if (peer->data)
            l->calls->gone(peer->data);
        mull__free(&l->allocator, peer);
        return MULL_ENOMEM;
    }
    peer->poll.data = peer;
    l->handles++;
    mull__list_push(&l->peers, &peer->link);
    watch(peer);
    return 0;
}

int mull__listener_adopt(mull__listener *l, int fd)
{
    int status = begin_peer(l, fd);
    if (status != 0)
        close(fd);
    return status;
}

static void let_in(mull__listener *l, int fd)
{
    char why[MULL__LISTENER_WHY] = "out of memory for another connection";
    if (is_one_of_us(fd, why, sizeof why) && begin_peer(l, fd) == 0)
        return;
    l->calls->refused(l->data, why);
    close(fd);
}

static void on_connection(uv_poll_t *handle, int status, int events)
{
    mull__listener *l = handle->data;
    (void)events;
    for (int i = 0; status == 0 && i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            let_in(l, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            l->calls->refused(l->data, "no more connections until one ends: there are no more "
                                       "file descriptors (ulimit -n)");
            l->is_full = 1;
            uv_poll_stop(&l->poll);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* let_in_again: with a peer its descriptor has gone. */
static void let_in_again(mull__listener *l)
{
    if (l->is_full && l->is_open && uv_poll_start(&l->poll, UV_READABLE, on_connection) == 0)
        l->is_full = 0;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

int mull__listener_open(mull__listener **out, struct uv_loop_s *loop,
                        const mull_allocator *allocator, const char *path,
                        const mull__listener_calls *calls, void *data, char why[MULL__LISTENER_WHY])
{
    mull__listener *l = mull__zalloc(allocator, 1, sizeof *l);
    snprintf(why, MULL__LISTENER_WHY, "out of memory");
    if (!l)
        return MULL_ENOMEM;
    l->allocator = *allocator;
    l->calls = calls;
    l->data = data;
    mull__list_init(&l->peers);
    l->loop = loop;
    l->fd = -1;
    l->is_open = l->handles = 1;
    *out = l;
    if (!path)
        return 0;
    int status = mull__socket_path_listen(&l->path, path, &l->fd, why, MULL__LISTENER_WHY);
    if (status != 0) {
        *out = NULL;
        mull__free(allocator, l);
        return status;
    }
    if (uv_poll_init(loop, &l->poll, l->fd) != 0 ||
        uv_poll_start(&l->poll, UV_READABLE, on_connection) != 0) {
        snprintf(why, MULL__LISTENER_WHY, "the loop can't watch the socket");
        mull__socket_path_remove(&l->path);
        close(l->fd);
        *out = NULL;
        mull__free(allocator, l);
        return MULL_EIO;
    }
    l->poll.data = l;
    return 0;
}

static void on_listener_closed(uv_handle_t *handle)
{
    mull__listener *l = handle->data;
    close(l->fd);
    drop_handle(l);
}

void mull__listener_close(mull__listener *l)
{
    if (!l->is_open)
        return;
    l->is_open = 0;
    for (mull__link *link = mull__list_first(&l->peers); link;
         link = mull__list_after(&l->peers, link))
        mull__peer_end(MULL__ENTRY(link, mull__peer, link));
    if (l->fd < 0) {
        drop_handle(l);
        return;
    }
    mull__socket_path_remove(&l->path);
    uv_close((uv_handle_t *)&l->poll, on_listener_closed);
}
