/* state.h: the module `http`: requests by libcurl's multi interface on a loop.
 *
 *   request.c   one request: its options, what comes of it
 *   fetcher.c   the loop: libcurl's sockets and timer on it, and which requests have ended */
#ifndef MULL__CURL_STATE_H
#define MULL__CURL_STATE_H

#include "handler/fetch.h"

#include <curl/curl.h>

/* mull__fetcher: libcurl keeps connections that are idle, and watches none of them: without a
 * request there is no handle on the loop. */
struct mull__fetcher {
    mull_allocator allocator;
    uv_loop_t *loop;
    CURLM *multi;
    struct mull__curl_timer *timer; /* NULL: no request is at work */
    size_t at_work;
};

/* bytes grow up to `most`, and end in a NUL that isn't counted. */
typedef struct bytes {
    char *memory;
    size_t size, room, most;
} bytes;

struct mull__fetch {
    mull_allocator allocator; /* it may be freed after its fetcher */
    mull__fetcher *fetcher;
    CURL *easy; /* NULL: it has ended */
    struct curl_slist *headers;
    bytes head, body;
    struct mull__curl_timer *timer; /* for its time; NULL: it has ended */
    mull__fetch_failure failed;
    int status;
    int64_t retry_after_s;
    char why[CURL_ERROR_SIZE];
    void (*ended)(void *data);
    void *data;
};

/* ---- fetcher.c ------------------------------------------------------------------------------- */

/* mull__curl_begin puts a request to work on the loop; mull__curl_end takes it away, which it has
 * also done where the other fails. UV_ENOMEM. */
int mull__curl_begin(mull__fetch *fetch, int64_t timeout_ms);
void mull__curl_end(mull__fetch *fetch);

/* ---- request.c ------------------------------------------------------------------------------- */

int mull__curl_start(mull__fetch **out, mull__fetcher *fetcher, const mull__fetch_options *options);

/* mull__curl_note takes down how a request ended. */
void mull__curl_note(mull__fetch *fetch, CURLcode code);

void mull__curl_stop(mull__fetch *fetch);
void mull__curl_result(const mull__fetch *fetch, mull__fetch_result *result);
void mull__curl_free(mull__fetch *fetch);

#endif
