/* link.c: see link.h. */
#include "link.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "backoff.h"
#include "base/alloc.h"
#include "stream.h"

enum { ADDRESSES_MOST = 64 };

struct mull__net_link {
    mull_allocator allocator;
    uv_loop_t *loop;
    mull__link_address *addresses; /* with their strings behind them */
    size_t address_count, at;      /* the one that is tried, or connected to */
    size_t left; /* of this round, with that one; 0: the next attempt begins one */
    const mull__tls *tls;
    int64_t connect_ms;
    mull__backoff backoff;
    mull__link_calls calls;
    void *data;

    uv_timer_t wait;
    mull__stream *stream; /* NULL: waits, or has no memory */
    int up, settled;
    size_t parts; /* streams that aren't gone, and the timer */
    char why[512];
    int closing;
    void (*closed)(void *data);
};

/* one_less: a part is gone, and with the last one a link that is closed. */
static void one_less(mull__net_link *link)
{
    if (--link->parts > 0)
        return;
    mull_allocator allocator = link->allocator;
    void (*closed)(void *data) = link->closed;
    void *data = link->data;
    mull__free(&allocator, link->addresses);
    mull__free(&allocator, link);
    closed(data);
}

/* ---- Attempts -------------------------------------------------------------------------------- */

static void attempt(mull__net_link *link);

static void on_wait(uv_timer_t *wait)
{
    attempt(wait->data);
}

/* add_reason puts why an address didn't do behind those of others in this round. */
static void add_reason(mull__net_link *link, const char *why)
{
    size_t length = strlen(link->why), size = sizeof link->why;
    if (length > 0)
        length += (size_t)snprintf(link->why + length, size - length, "; ");
    if (length >= size)
        return;
    const mull__link_address *at = &link->addresses[link->at];
    const char *format = strchr(at->host, ':') ? "[%s]:%s: %s" : "%s:%s: %s";
    snprintf(link->why + length, size - length, format, at->host, at->port, why);
}

static void tell_down(mull__net_link *link)
{
    char why[sizeof link->why];
    memcpy(why, link->why, sizeof why);
    link->why[0] = '\0';
    link->calls.down(link->data, why);
}

/* failed ends an attempt, or a connection: the next address has its turn, or the next round. */
static void failed(mull__net_link *link, const char *why)
{
    int was_up = link->up;
    link->up = 0;
    add_reason(link, why);
    link->left = link->settled ? 0 : link->left - 1;
    link->at = (link->at + 1) % link->address_count;
    if (was_up || link->left == 0)
        tell_down(link);
    if (link->closing)
        return;
    uint64_t wait_ms = link->left > 0 ? 0 : (uint64_t)mull__backoff_next(&link->backoff);
    uv_update_time(link->loop);
    uv_timer_start(&link->wait, on_wait, wait_ms, 0);
}

/* ---- Calls of the stream: of a link that is closed, the last two only ------------------------ */

static void on_open(void *data)
{
    mull__net_link *link = data;
    link->up = 1;
    link->why[0] = '\0';
    link->calls.up(link->data);
}

static void on_read(void *data, const char *bytes, size_t size)
{
    mull__net_link *link = data;
    link->calls.read(link->data, bytes, size);
}

static void on_writable(void *data)
{
    mull__net_link *link = data;
    link->calls.writable(link->data);
}

static void on_ended(void *data, const char *why)
{
    mull__net_link *link = data;
    link->stream = NULL;
    if (!link->closing)
        failed(link, why);
}

static void on_gone(void *data)
{
    one_less(data);
}

static void attempt(mull__net_link *link)
{
    static const mull__stream_calls calls = {on_open, on_read, on_writable, on_ended, on_gone};
    if (link->left == 0)
        link->left = link->address_count;
    link->settled = 0;
    mull__stream_options options = {
        .loop = link->loop,
        .allocator = &link->allocator,
        .address = link->addresses[link->at],
        .tls = link->tls,
        .connect_ms = link->connect_ms,
    };
    if (mull__stream_open(&link->stream, &options, &calls, link) == 0)
        link->parts++;
    else
        failed(link, "out of memory");
}

/* ---- What link.h has ------------------------------------------------------------------------- */

static int are_addresses(const mull__link_address *addresses, size_t count)
{
    for (size_t i = 0; i < count && count <= ADDRESSES_MOST; i++)
        if (!addresses[i].host || !addresses[i].host[0] || !addresses[i].port ||
            !addresses[i].port[0])
            return 0;
    return count > 0 && count <= ADDRESSES_MOST;
}

/* copy_addresses takes one block: the addresses, and their strings behind them. */
static int copy_addresses(mull__net_link *link, const mull__link_options *options)
{
    size_t count = options->address_count, size = count * sizeof(mull__link_address);
    for (size_t i = 0; i < count; i++)
        size += strlen(options->addresses[i].host) + strlen(options->addresses[i].port) + 2;
    link->addresses = mull__alloc(&link->allocator, size);
    if (!link->addresses)
        return MULL_ENOMEM;
    char *text = (char *)(link->addresses + count);
    for (size_t i = 0; i < count; i++) {
        link->addresses[i].host = text;
        text = stpcpy(text, options->addresses[i].host) + 1;
        link->addresses[i].port = text;
        text = stpcpy(text, options->addresses[i].port) + 1;
    }
    link->address_count = count;
    return 0;
}

int mull__link_open(mull__net_link **out, const mull__link_options *options,
                    const mull__link_calls *calls, void *data)
{
    if (!are_addresses(options->addresses, options->address_count))
        return MULL_EINVAL;
    mull__net_link *link = mull__zalloc(options->allocator, 1, sizeof *link);
    if (!link)
        return MULL_ENOMEM;
    link->allocator = *options->allocator;
    if (copy_addresses(link, options) != 0) {
        mull__free(options->allocator, link);
        return MULL_ENOMEM;
    }
    link->loop = options->loop;
    link->tls = options->tls;
    link->connect_ms = options->connect_ms;
    link->calls = *calls;
    link->data = data;
    mull__backoff_init(&link->backoff, options->first_wait_ms, options->longest_wait_ms,
                       options->seed);
    link->at = (size_t)(mull__rand_next(&link->backoff.rand) % link->address_count);
    uv_timer_init(link->loop, &link->wait);
    link->wait.data = link;
    link->parts = 1;
    uv_timer_start(&link->wait, on_wait, 0, 0);
    *out = link;
    return 0;
}

int mull__link_write(mull__net_link *link, const void *bytes, size_t size)
{
    return link->stream ? mull__stream_write(link->stream, bytes, size) : MULL_EDOWN;
}

void mull__link_flush(mull__net_link *link)
{
    if (link->stream)
        mull__stream_flush(link->stream);
}

size_t mull__link_unsent(const mull__net_link *link)
{
    return link->stream ? mull__stream_unsent(link->stream) : 0;
}

void mull__link_settled(mull__net_link *link)
{
    if (!link->up)
        return;
    link->settled = 1;
    mull__backoff_reset(&link->backoff);
}

void mull__link_cut(mull__net_link *link, const char *why)
{
    if (!link->stream)
        return;
    link->left = 1; /* then a wait, whoever is left of this round */
    mull__stream_end(link->stream, why);
}

void mull__link_reads(mull__net_link *link, int on)
{
    if (link->stream)
        mull__stream_reads(link->stream, on);
}

static void on_wait_closed(uv_handle_t *wait)
{
    one_less(wait->data);
}

void mull__link_close(mull__net_link *link, int64_t flush_ms, void (*closed)(void *data))
{
    link->closing = 1;
    link->closed = closed;
    if (link->stream)
        mull__stream_finish(link->stream, flush_ms);
    uv_close((uv_handle_t *)&link->wait, on_wait_closed);
}
