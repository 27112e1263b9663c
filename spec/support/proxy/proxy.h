/* proxy.h: a TCP proxy on loopback that does what networks do. main.c reads what it is told.
 *
 *   client <── DOWN ── connection ── UP ──> server
 *
 * A connection is two ways. Each reads pieces from one side, holds them for as long as it is told,
 * and writes them to the other. */
#ifndef SPEC_PROXY_H
#define SPEC_PROXY_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"

typedef enum direction { UP, DOWN } direction; /* to the server, to the client */

/* rule is what holds for one direction of all connections. */
typedef struct rule {
    uint64_t delay_ms;
    size_t slice; /* most bytes of a write; 0: as they come */
    int stopped;
    uint64_t passed;         /* bytes, of all connections */
    int ends;                /* the connection that passes ... */
    uint64_t left_until_end; /* ... this many bytes more is ended ... */
    int ends_by_reset;       /* ... like this, once */
} rule;

typedef struct proxy {
    uv_loop_t loop;
    uv_tcp_t *listener; /* NULL: new connections are refused */
    int port, target;
    int holder; /* a socket that keeps the port ours while nobody listens */
    rule rules[2];
    mull__list connections;
    uint64_t accepted;
} proxy;

/* proxy_open finds a free port and listens. Ends the program where it can't. */
void proxy_open(proxy *p, int target);

/* proxy_listen and proxy_refuse: refused are new connections; the port stays ours. */
void proxy_listen(proxy *p);
void proxy_refuse(proxy *p);

/* proxy_end ends all connections: in order, or by a reset. What they hold is lost. */
void proxy_end(proxy *p, int by_reset);

/* proxy_half_close tells one side of each connection that nothing more comes. */
void proxy_half_close(proxy *p, direction to);

/* proxy_held is how many bytes wait in it. */
uint64_t proxy_held(proxy *p);

/* proxy_go_on looks at all connections again, once rules have changed. */
void proxy_go_on(proxy *p);

/* proxy_changed is main.c's: something happened that somebody may wait for. */
void proxy_changed(proxy *p);

#endif
