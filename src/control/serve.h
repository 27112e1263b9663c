/* serve.h: verdicts for other programs, on a Unix socket; docs/serve.md has the protocol.
 *
 *   listener (src/net) ──> session ──> decisions ──> mull_decide, or Lua
 *
 * All of it is on the thread of its loop. */
#ifndef MULL__SERVE_H
#define MULL__SERVE_H

#include "decisions.h"

struct uv_loop_s;

typedef struct mull__server mull__server;

/* The policy outlives the server. */
typedef struct mull__server_options {
    struct uv_loop_s *loop;
    const char *path;
    mull_policy *policy;
    int (*ask)(void *data, const char *what, const char *json, mull__json_text *answer, char *why);
    mull_log_fn log;
    void *data; /* for the two */
    mull_allocator allocator;
} mull__server_options;

enum { MULL__SERVER_WHY = 320 };

/* mull__server_open begins to listen. Errors as mull__listener_open and mull_decider_new; `why`
 * says it in words. */
int mull__server_open(mull__server **out, const mull__server_options *options,
                      char why[MULL__SERVER_WHY]);

/* mull__server_changed tells all clients that another generation is in force. */
void mull__server_changed(mull__server *server);

/* mull__server_close ends it, and runs the loop until that has nothing of it any more. */
void mull__server_close(mull__server *server);

#endif
