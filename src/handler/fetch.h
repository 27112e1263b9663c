/* fetch.h: HTTP requests beside the loop. What makes them is the module `http`, since that needs
 * libcurl; this is all that it and its caller know of each other. */
#ifndef MULL__FETCH_H
#define MULL__FETCH_H

#include "mulligan.h"

#include <uv.h>

/* mull__fetcher has the connections of a loop, which requests share; mull__fetch is a request. */
typedef struct mull__fetcher mull__fetcher;
typedef struct mull__fetch mull__fetch;

/* mull__fetch_options says what to ask for. All of it is borrowed for the call, but `body`, which
 * is until the request has ended, or was stopped. */
typedef struct mull__fetch_options {
    const char *method, *url;
    const char *const *headers; /* "Name: value", or "Name;" for an empty one; NULL at the end */
    const char *body;           /* NULL: none */
    size_t body_size;
    size_t most;        /* bytes of the answer's body */
    int64_t timeout_ms; /* MULL_NEVER */
    int redirects;      /* are followed, so many; 0: none */
    void (*ended)(void *data);
    void *data;
} mull__fetch_options;

typedef enum mull__fetch_failure {
    MULL__FETCH_WELL,
    MULL__FETCH_CONNECTION, /* there is no answer, or half of one */
    MULL__FETCH_TIMEOUT,
    MULL__FETCH_TOO_BIG,
    MULL__FETCH_MEMORY
} mull__fetch_failure;

/* mull__fetch_result is the answer. Its texts live as long as the request's memory. */
typedef struct mull__fetch_result {
    mull__fetch_failure failed;
    const char *why; /* in words, where it failed */
    int status;
    int64_t retry_after_s; /* 0: the answer doesn't say */
    const char *headers;   /* the lines of the answer, as they came */
    size_t headers_size;
    const char *body;
    size_t body_size;
} mull__fetch_result;

enum { MULL__FETCH_VERSION = 1 };

/* mull__fetch_module is what the module exports as `mull__http`. Codes are libuv's. On the loop's
 * thread. A request that has neither ended nor was stopped is at work on the loop; its fetcher is
 * closed once there is none. */
typedef struct mull__fetch_module {
    int version; /* MULL__FETCH_VERSION */
    int (*open)(mull__fetcher **out, uv_loop_t *loop, const mull_allocator *allocator);
    void (*close)(mull__fetcher *fetcher);
    int (*start)(mull__fetch **out, mull__fetcher *fetcher, const mull__fetch_options *options);
    void (*stop)(mull__fetch *fetch); /* `ended` isn't called any more */
    void (*result)(const mull__fetch *fetch, mull__fetch_result *result);
    void (*free)(mull__fetch *fetch); /* stops it, where it is at work. NULL is fine */
} mull__fetch_module;

#endif
