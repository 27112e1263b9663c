/* request.c: one request; see state.h. */
#include "state.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

/* ---- What comes ------------------------------------------------------------------------------ */

enum { FIRST_ROOM = 4096, HEAD_MOST = 300 * 1024 };

/* add adds to bytes; 0: it doesn't fit. */
static int add(mull__fetch *fetch, bytes *to, const char *from, size_t size)
{
    if (size > to->most - to->size) {
        fetch->failed = MULL__FETCH_TOO_BIG;
        return 0;
    }
    size_t room = to->room ? to->room : FIRST_ROOM;
    while (room < to->size + size)
        room *= 2;
    if (room > to->room) {
        char *memory = mull__grow(&fetch->allocator, to->memory, room, 1);
        if (!memory) {
            fetch->failed = MULL__FETCH_MEMORY;
            return 0;
        }
        to->memory = memory;
        to->room = room;
    }
    memcpy(to->memory + to->size, from, size);
    to->size += size;
    return 1;
}

static size_t on_body(char *from, size_t one, size_t size, void *data)
{
    (void)one;
    mull__fetch *fetch = data;
    return add(fetch, &fetch->body, from, size) ? size : 0;
}

/* on_header: what a redirect and a "100 Continue" said is forgotten. */
static size_t on_header(char *from, size_t one, size_t size, void *data)
{
    (void)one;
    mull__fetch *fetch = data;
    if (size > 5 && strncmp(from, "HTTP/", 5) == 0)
        fetch->head.size = 0;
    return add(fetch, &fetch->head, from, size) ? size : 0;
}

void mull__curl_note(mull__fetch *fetch, CURLcode code)
{
    long status = 0;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(fetch->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    fetch->status = (int)status;
    fetch->retry_after_s = retry_after_s;
    if (code == CURLE_OK || fetch->failed != MULL__FETCH_WELL)
        return;
    fetch->failed = code == CURLE_OUT_OF_MEMORY ? MULL__FETCH_MEMORY : MULL__FETCH_CONNECTION;
    if (!fetch->why[0])
        snprintf(fetch->why, sizeof fetch->why, "%s", curl_easy_strerror(code));
    long number = 0;
    curl_easy_getinfo(fetch->easy, CURLINFO_OS_ERRNO, &number);
    size_t length = strlen(fetch->why);
    if (number > 0)
        snprintf(fetch->why + length, sizeof fetch->why - length, ": %s",
                 uv_strerror(-(int)number));
}

void mull__curl_result(const mull__fetch *fetch, mull__fetch_result *result)
{
    *result = (mull__fetch_result){.failed = fetch->failed,
                                   .why = fetch->why,
                                   .status = fetch->status,
                                   .retry_after_s = fetch->retry_after_s,
                                   .headers = fetch->head.size ? fetch->head.memory : "",
                                   .headers_size = fetch->head.size,
                                   .body = fetch->body.size ? fetch->body.memory : "",
                                   .body_size = fetch->body.size};
}

/* ---- What is asked --------------------------------------------------------------------------- */

/* set_headers: without "Expect" none waits a second for a server that doesn't know "100 Continue".
 */
static int set_headers(mull__fetch *fetch, const char *const *headers)
{
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    for (; list && *headers; headers++) {
        fetch->headers = list;
        list = curl_slist_append(list, *headers);
    }
    if (!list)
        return UV_ENOMEM;
    fetch->headers = list;
    return curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, list) == CURLE_OK ? 0 : UV_ENOMEM;
}

/* set_method: libcurl has to know of GET, HEAD and POST itself, for what it does at a redirect. */
static void set_method(mull__fetch *fetch, const mull__fetch_options *options)
{
    CURL *easy = fetch->easy;
    if (options->body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)options->body_size);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, options->body);
    }
    if (strcmp(options->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else if (strcmp(options->method, options->body ? "POST" : "GET") != 0)
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, options->method);
}

/* set_options: what can fail for want of memory comes last. TLS is verified, as libcurl does by
 * itself. */
static int set_options(mull__fetch *fetch, const mull__fetch_options *options)
{
    CURL *easy = fetch->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, fetch);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, fetch->why);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT,
                     1L); /* a look-up that was stopped isn't waited for */
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, options->redirects > 0 ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)options->redirects);
    set_method(fetch, options);
    int failed = curl_easy_setopt(easy, CURLOPT_URL, options->url) != CURLE_OK ||
                 curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK ||
                 curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") != CURLE_OK ||
                 curl_easy_setopt(easy, CURLOPT_USERAGENT, "mulligan/" MULL_VERSION) != CURLE_OK;
    return failed ? UV_ENOMEM : set_headers(fetch, options->headers);
}

/* ---- Its life -------------------------------------------------------------------------------- */

void mull__curl_stop(mull__fetch *fetch)
{
    if (fetch->easy)
        mull__curl_end(fetch);
}

static void free_memory(mull__fetch *fetch)
{
    mull_allocator allocator = fetch->allocator;
    curl_slist_free_all(fetch->headers);
    mull__free(&allocator, fetch->head.memory);
    mull__free(&allocator, fetch->body.memory);
    mull__free(&allocator, fetch);
}

void mull__curl_free(mull__fetch *fetch)
{
    if (!fetch)
        return;
    mull__curl_stop(fetch);
    free_memory(fetch);
}

int mull__curl_start(mull__fetch **out, mull__fetcher *fetcher, const mull__fetch_options *options)
{
    mull__fetch *fetch = mull__zalloc(&fetcher->allocator, 1, sizeof *fetch);
    if (!fetch)
        return UV_ENOMEM;
    fetch->allocator = fetcher->allocator;
    fetch->fetcher = fetcher;
    fetch->ended = options->ended;
    fetch->data = options->data;
    fetch->head.most = HEAD_MOST;
    fetch->body.most = options->most;
    fetch->easy = curl_easy_init();
    int status = fetch->easy ? set_options(fetch, options) : UV_ENOMEM;
    if (status == 0)
        status = mull__curl_begin(fetch, options->timeout_ms);
    else if (fetch->easy)
        curl_easy_cleanup(fetch->easy);
    if (status == 0)
        *out = fetch;
    else
        free_memory(fetch);
    return status;
}
