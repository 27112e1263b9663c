/* fetch.c: requests beside a loop, by the module `http`: whenever they are stopped, and wherever
 * memory fails, no descriptor, handle or byte is left. The server is on the same loop. */
#include "handler/fetch.h"

#include <dirent.h>
#include <stdio.h>

#include "fixtures.h"

extern const mull__fetch_module mull__http;

static counting_allocator memory;
static mull_allocator allocator;
static uv_loop_t loop;
static mull__fetcher *fetcher;

/* ---- A server: "/hello" is answered, "/never" isn't ------------------------------------------ */

static uv_tcp_t listener;
static char url[64];

typedef struct client {
    uv_tcp_t stream;
    uv_write_t write;
    char room[4096];
} client;

static void on_client_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    (void)wanted;
    client *c = handle->data;
    *room = uv_buf_init(c->room, sizeof c->room);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *room)
{
    static char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello";
    client *c = stream->data;
    if (size < 0) {
        uv_close((uv_handle_t *)stream, on_client_closed);
    } else if (size > 10 && memcmp(room->base, "GET /hello", 10) == 0) {
        uv_buf_t out = uv_buf_init(answer, sizeof answer - 1);
        uv_write(&c->write, stream, &out, 1, NULL);
    }
}

static void on_connection(uv_stream_t *server, int status)
{
    assert_int_equal(status, 0);
    client *c = calloc(1, sizeof *c);
    assert_non_null(c);
    uv_tcp_init(&loop, &c->stream);
    c->stream.data = c;
    assert_int_equal(uv_accept(server, (uv_stream_t *)&c->stream), 0);
    uv_read_start((uv_stream_t *)&c->stream, on_room, on_read);
}

static void listen_on_free_port(void)
{
    struct sockaddr_in address;
    struct sockaddr_storage bound;
    int size = sizeof bound;
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(&loop, &listener);
    assert_int_equal(uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&listener, 128, on_connection), 0);
    uv_tcp_getsockname(&listener, (struct sockaddr *)&bound, &size);
    snprintf(url, sizeof url, "http://127.0.0.1:%d",
             ntohs(((const struct sockaddr_in *)(const void *)&bound)->sin_port));
}

/* ---- Around each test ------------------------------------------------------------------------ */

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int before;

static int set_up(void **state)
{
    (void)state;
    memory = (counting_allocator){0};
    allocator = counting_allocator_ops(&memory);
    before = descriptors();
    assert_int_equal(uv_loop_init(&loop), 0);
    listen_on_free_port();
    assert_int_equal(mull__http.open(&fetcher, &loop, &allocator), 0);
    return 0;
}

/* tear_down: a loop with a handle that is still open can't be closed. */
static int tear_down(void **state)
{
    (void)state;
    mull__http.close(fetcher);
    uv_close((uv_handle_t *)&listener, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(memory.out, 0);
    assert_true(descriptors() <= before + 2); /* libuv keeps a pipe of its own for signals */
    return 0;
}

/* ---- Requests -------------------------------------------------------------------------------- */

enum { MANY = 1000, AT_ONCE = 32 };

typedef struct one {
    mull__fetch *fetch; /* NULL: none is at work */
    struct crowd *crowd;
} one;

typedef struct crowd {
    one ones[AT_ONCE];
    int started, over;
    int ends[MULL__FETCH_MEMORY + 1], stopped;
    uint64_t random;
    uv_timer_t timer;
} crowd;

static unsigned chance(crowd *c, unsigned below)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(c->random >> 33) % below;
}

static void start_one(crowd *c, one *o);

static void finish(one *o)
{
    mull__http.free(o->fetch);
    o->fetch = NULL;
    o->crowd->over++;
    start_one(o->crowd, o);
}

static void on_ended(void *data)
{
    one *o = data;
    mull__fetch_result result;
    mull__http.result(o->fetch, &result);
    o->crowd->ends[result.failed]++;
    if (result.failed == MULL__FETCH_WELL) {
        assert_int_equal(result.status, 200);
        assert_int_equal(result.body_size, 5);
        assert_memory_equal(result.body, "hello", 5);
    }
    finish(o);
}

static mull__fetch_options options_of(one *o, const char *path, char full[128])
{
    static const char *const none[] = {NULL};
    snprintf(full, 128, "%s%s", url, path);
    return (mull__fetch_options){.method = "GET",
                                 .url = full,
                                 .headers = none,
                                 .most = 1024,
                                 .timeout_ms = MULL_NEVER,
                                 .ended = on_ended,
                                 .data = o};
}

static void start_one(crowd *c, one *o)
{
    char full[128];
    if (c->started == MANY)
        return;
    c->started++;
    o->crowd = c;
    mull__fetch_options options = options_of(o, chance(c, 2) ? "/hello" : "/never", full);
    options.timeout_ms = 1 + (int64_t)chance(c, 20);
    assert_int_equal(mull__http.start(&o->fetch, fetcher, &options), 0);
}

/* on_tick stops one of them, whatever it does just now. */
static void on_tick(uv_timer_t *timer)
{
    crowd *c = timer->data;
    one *o = &c->ones[chance(c, AT_ONCE)];
    if (o->fetch) {
        mull__http.stop(o->fetch);
        c->stopped++;
        finish(o);
    }
    if (c->over == MANY) {
        uv_close((uv_handle_t *)timer, NULL);
        uv_stop(&loop);
    }
}

static void leaves_nothing_behind(void **state)
{
    (void)state;
    crowd c = {.random = 17};
    uv_timer_init(&loop, &c.timer);
    c.timer.data = &c;
    uv_timer_start(&c.timer, on_tick, 1, 1);
    for (int i = 0; i < AT_ONCE; i++)
        start_one(&c, &c.ones[i]);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(c.over, MANY);
    assert_true(c.stopped > 0 && c.ends[MULL__FETCH_WELL] > 0 && c.ends[MULL__FETCH_TIMEOUT] > 0);
    assert_int_equal(c.stopped + c.ends[MULL__FETCH_WELL] + c.ends[MULL__FETCH_TIMEOUT], MANY);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void on_last_ended(void *data)
{
    one *o = data;
    mull__fetch_result result;
    mull__http.result(o->fetch, &result);
    o->crowd->ends[result.failed]++;
    uv_stop(&loop);
}

static void survives_a_lack_of_memory(void **state)
{
    (void)state;
    int failed = 0;
    long nth = 0;
    do {
        char full[128];
        crowd c = {0};
        one o = {.crowd = &c};
        mull__fetch_options options = options_of(&o, "/hello", full);
        options.ended = on_last_ended;
        memory.asked = 0;
        memory.fail_at = ++nth;
        memory.fail_for = FOR_GOOD;
        if (mull__http.start(&o.fetch, fetcher, &options) == 0)
            uv_run(&loop, UV_RUN_DEFAULT);
        memory.fail_at = 0;
        mull__http.free(o.fetch);
        failed += c.ends[MULL__FETCH_WELL] == 0;
        uv_run(&loop, UV_RUN_NOWAIT);
    } while (memory.asked >= nth);
    assert_int_equal(failed, nth - 1);
    assert_true(failed >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(leaves_nothing_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(survives_a_lack_of_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
