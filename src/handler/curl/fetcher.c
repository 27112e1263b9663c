/* fetcher.c: libcurl's sockets and timer on a loop; see state.h. */
#include "state.h"

#include "base/alloc.h"

/* ---- What has ended -------------------------------------------------------------------------- */

static mull__fetch *fetch_of(CURL *easy)
{
    char *data = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &data);
    return (mull__fetch *)(void *)data;
}

/* hand_out tells of each request that has ended. Who is told may begin others, or stop some. */
static void hand_out(mull__fetcher *f)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(f->multi, &left));) {
        if (message->msg != CURLMSG_DONE)
            continue;
        mull__fetch *fetch = fetch_of(message->easy_handle);
        mull__curl_note(fetch, message->data.result);
        mull__curl_end(fetch);
        fetch->ended(fetch->data);
    }
}

static void act(mull__fetcher *f, curl_socket_t socket, int events)
{
    int running;
    curl_multi_socket_action(f->multi, socket, events, &running);
    hand_out(f);
}

/* ---- Sockets --------------------------------------------------------------------------------- */

typedef struct watch {
    uv_poll_t poll;
    mull__fetcher *fetcher;
    mull_allocator allocator;
    curl_socket_t socket;
} watch;

static void on_watch_closed(uv_handle_t *handle)
{
    watch *w = handle->data;
    mull_allocator allocator = w->allocator;
    mull__free(&allocator, w);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    const watch *w = poll->data;
    int what = (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
               (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0) | (status < 0 ? CURL_CSELECT_ERR : 0);
    act(w->fetcher, w->socket, what);
}

/* watch_new begins to watch a socket; NULL: out of memory, or it can't be watched. */
static watch *watch_new(mull__fetcher *f, curl_socket_t socket)
{
    watch *w = mull__zalloc(&f->allocator, 1, sizeof *w);
    if (!w)
        return NULL;
    *w = (watch){.fetcher = f, .allocator = f->allocator, .socket = socket};
    if (uv_poll_init_socket(f->loop, &w->poll, socket) != 0) {
        mull__free(&f->allocator, w);
        return NULL;
    }
    w->poll.data = w;
    curl_multi_assign(f->multi, socket, w);
    return w;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *data, void *watched)
{
    (void)easy;
    mull__fetcher *f = data;
    watch *w = watched;
    if (what == CURL_POLL_REMOVE) {
        curl_multi_assign(f->multi, socket, NULL);
        if (w)
            uv_close((uv_handle_t *)&w->poll, on_watch_closed);
        return 0;
    }
    if (!w && !(w = watch_new(f, socket)))
        return -1;
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    return uv_poll_start(&w->poll, events, on_ready) == 0 ? 0 : -1;
}

/* ---- Timers ---------------------------------------------------------------------------------- */

struct mull__curl_timer {
    uv_timer_t timer;
    mull_allocator allocator;
};

static struct mull__curl_timer *open_timer(mull__fetcher *f, void *data)
{
    struct mull__curl_timer *made = mull__zalloc(&f->allocator, 1, sizeof *made);
    if (!made)
        return NULL;
    made->allocator = f->allocator;
    uv_timer_init(f->loop, &made->timer);
    made->timer.data = data;
    return made;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct mull__curl_timer *timer = handle->data;
    mull_allocator allocator = timer->allocator;
    mull__free(&allocator, timer);
}

static void close_timer(struct mull__curl_timer **timer)
{
    if (!*timer)
        return;
    (*timer)->timer.data = *timer;
    uv_close((uv_handle_t *)&(*timer)->timer, on_timer_closed);
    *timer = NULL;
}

static void set_timer(struct mull__curl_timer *timer, uv_timer_cb fire, int64_t ms)
{
    uv_update_time(timer->timer.loop);
    uv_timer_start(&timer->timer, fire, (uint64_t)ms, 0);
}

static void on_timer(uv_timer_t *timer);

static int on_timeout(CURLM *multi, long ms, void *data)
{
    (void)multi;
    mull__fetcher *f = data;
    if (f->timer && ms < 0) /* without one nothing is at work */
        uv_timer_stop(&f->timer->timer);
    else if (f->timer)
        set_timer(f->timer, on_timer, ms);
    return 0;
}

/* on_timer: a loop's clock may be a millisecond or two behind, and so the timer early. libcurl then
 * has nothing to do, and doesn't ask for the same moment again by itself. */
static void on_timer(uv_timer_t *timer)
{
    mull__fetcher *f = timer->data;
    long ms = -1;
    act(f, CURL_SOCKET_TIMEOUT, 0);
    if (f->timer && !uv_is_active((uv_handle_t *)&f->timer->timer)) {
        curl_multi_timeout(f->multi, &ms);
        on_timeout(f->multi, ms == 0 ? 1 : ms, f);
    }
}

/* on_time_over: libcurl's own limit (7.88) is forgotten where it looks a moment too early. */
static void on_time_over(uv_timer_t *timer)
{
    mull__fetch *fetch = timer->data;
    fetch->failed = MULL__FETCH_TIMEOUT;
    mull__curl_end(fetch);
    fetch->ended(fetch->data);
}

/* ---- At work --------------------------------------------------------------------------------- */

int mull__curl_begin(mull__fetch *fetch, int64_t timeout_ms)
{
    mull__fetcher *f = fetch->fetcher;
    f->at_work++;
    f->timer = f->timer ? f->timer : open_timer(f, f);
    fetch->timer = open_timer(f, fetch);
    if (f->timer && fetch->timer && curl_multi_add_handle(f->multi, fetch->easy) == CURLM_OK) {
        if (timeout_ms != MULL_NEVER)
            set_timer(fetch->timer, on_time_over, timeout_ms);
        return 0;
    }
    mull__curl_end(fetch);
    return UV_ENOMEM;
}

void mull__curl_end(mull__fetch *fetch)
{
    mull__fetcher *f = fetch->fetcher;
    curl_multi_remove_handle(f->multi, fetch->easy);
    curl_easy_cleanup(fetch->easy);
    fetch->easy = NULL;
    close_timer(&fetch->timer);
    if (--f->at_work == 0)
        close_timer(&f->timer);
}

/* ---- The module ------------------------------------------------------------------------------ */

static void close_fetcher(mull__fetcher *f)
{
    if (!f)
        return;
    mull_allocator allocator = f->allocator;
    if (f->multi) {
        curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, NULL);
        curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, NULL);
        curl_multi_cleanup(f->multi);
    }
    curl_global_cleanup();
    mull__free(&allocator, f);
}

static int open_fetcher(mull__fetcher **out, uv_loop_t *loop, const mull_allocator *allocator)
{
    mull__fetcher *f = mull__zalloc(allocator, 1, sizeof *f);
    if (!f)
        return UV_ENOMEM;
    *f = (mull__fetcher){.allocator = *allocator, .loop = loop};
    f->multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
    if (!f->multi) {
        close_fetcher(f);
        return UV_ENOMEM;
    }
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(f->multi, CURLMOPT_SOCKETDATA, f);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(f->multi, CURLMOPT_TIMERDATA, f);
    *out = f;
    return 0;
}

extern __attribute__((visibility("default"))) const mull__fetch_module mull__http;
const mull__fetch_module mull__http = {.version = MULL__FETCH_VERSION,
                                       .open = open_fetcher,
                                       .close = close_fetcher,
                                       .start = mull__curl_start,
                                       .stop = mull__curl_stop,
                                       .result = mull__curl_result,
                                       .free = mull__curl_free};
