/* attempts.c: how a link comes up: addresses that refuse, don't answer or are names, several of
 * them, and the waits between. */
#include "watcher.h"

/* ---- Timers are wrapped: the test sees how long a link waits, and need not ------------------- */

enum { WAITS_MOST = 64 };

static int64_t waits[WAITS_MOST]; /* between rounds: of what is 100 ms or more, and no limit */
static int wait_count, wait_shortened;

int __real_uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t ms, uint64_t again);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t ms, uint64_t again);

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t ms, uint64_t again)
{
    if (!wait_shortened || ms < 50 || ms >= PLENTY_MS / 4)
        return __real_uv_timer_start(timer, call, ms, again);
    assert_true(wait_count < WAITS_MOST);
    waits[wait_count++] = (int64_t)ms;
    return __real_uv_timer_start(timer, call, 0, again);
}

static void shorten_waits(mull__link_options *options)
{
    wait_count = 0;
    wait_shortened = 1;
    options->first_wait_ms = 100;
    options->longest_wait_ms = 1000;
}

/* assert_wait: at most `whole_ms`, and at least a half of that. */
static void assert_wait(int number, int64_t whole_ms)
{
    assert_in_range(waits[number], whole_ms / 2, whole_ms);
}

/* ---- And so is the other end's address ------------------------------------------------------- */

static int seems_itself;

int __real_getpeername(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size);

int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
    return seems_itself ? getsockname(fd, address, size) : __real_getpeername(fd, address, size);
}

static int set_up_waits(void **state)
{
    wait_shortened = seems_itself = 0;
    return set_up(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_waits, tear_down)

/* ---- Attempts -------------------------------------------------------------------------------- */

static void test_refused_until_it_listens(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    bind_server(&s, "127.0.0.1");
    mull__link_options options = link_to(&s.address, 1);
    watch(&w, &options);
    assert_int_equal(w.downs, 0);
    await(w.downs == 3);
    assert_why(&w, &s, "connection refused");
    assert_int_equal(w.ups, 0);
    listen(s.fd, 1);
    int fd = accept_client(&s);
    await(w.ups == 1);
    end_link(&w, 0);
    close(fd);
    close_server(&s);
}

/* It happens once in many thousand attempts; here, to the first ones. */
static void test_connected_to_itself(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    open_server(&s, "127.0.0.1");
    mull__link_options options = link_to(&s.address, 1);
    seems_itself = 1;
    watch(&w, &options);
    for (int times = 1; times <= 2; times++) {
        int fd = accept_client(&s);
        await(w.downs == times);
        assert_why(&w, &s, "connection refused");
        assert_true(at_end(fd));
        close(fd);
        seems_itself = times < 2;
    }
    int fd = accept_client(&s);
    await(w.ups == 1);
    end_link(&w, 0);
    close(fd);
    close_server(&s);
}

/* fill_backlog: at this server connections neither come about nor are refused. */
static void fill_backlog(server *s, int fds[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)},
                             .sin_port = htons((uint16_t)s->port)};
    assert_int_equal(listen(s->fd, 0), 0);
    for (int i = 0; i < 2; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(fds[i], (struct sockaddr *)&at, sizeof at);
    }
}

static void test_no_answer(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    int fds[2];
    bind_server(&s, "127.0.0.1");
    fill_backlog(&s, fds);
    mull__link_options options = link_to(&s.address, 1);
    options.connect_ms = 30;
    watch(&w, &options);
    await(w.downs == 1);
    assert_why(&w, &s, "no connection within 30 ms");
    await(w.downs == 2);
    end_link(&w, 0);
    close(fds[0]);
    close(fds[1]);
    close_server(&s);
}

static void test_cut_and_closed_while_connecting(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    int fds[2];
    bind_server(&s, "127.0.0.1");
    fill_backlog(&s, fds);
    mull__link_options options = link_to(&s.address, 1);
    watch(&w, &options);
    for (int turn = 0; turn < 5; turn++)
        uv_run(&loop, UV_RUN_ONCE);
    mull__link_cut(w.link, "enough");
    assert_int_equal(w.downs, 0);
    await(w.downs == 1);
    assert_why(&w, &s, "enough");
    for (int turn = 0; turn < 20; turn++)
        uv_run(&loop, UV_RUN_ONCE);
    end_link(&w, PLENTY_MS);
    assert_int_equal(w.downs, 1);
    close(fds[0]);
    close(fds[1]);
    close_server(&s);
}

static void test_ipv6(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    int six = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    int there = six >= 0 && bind(six, (struct sockaddr *)&any, sizeof any) == 0;
    close(six);
    if (!there)
        skip();
    open_server(&s, "::1");
    mull__link_options options = link_to(&s.address, 1);
    watch(&w, &options);
    int fd = accept_client(&s);
    await(w.ups == 1);
    close(fd);
    await(w.downs == 1);
    assert_why(&w, &s, "the server closed the connection");
    end_link(&w, 0);
    close_server(&s);
}

/* localhost is ::1 as well on most machines, where nobody listens. */
static void test_a_name(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    open_server(&s, "127.0.0.1");
    s.address.host = "localhost";
    mull__link_options options = link_to(&s.address, 1);
    watch(&w, &options);
    int fd = accept_client(&s);
    await(w.ups == 1);
    assert_int_equal(w.downs, 0);
    close_server(&s);
    close(fd);
    await(w.downs >= 2);
    assert_why(&w, &s, "connection refused");
    end_link(&w, 0);
}

static void test_a_name_that_is_none(void **state)
{
    (void)state;
    static const mull__link_address nowhere = {"a name.with a space", "1"};
    watcher w = {.ups = 0};
    mull__link_options options = link_to(&nowhere, 1);
    watch(&w, &options);
    await(w.downs == 1);
    assert_non_null(strstr(w.why, "a name.with a space:1: its name can't be looked up: "));
    end_link(&w, 0);
}

static void test_closed_while_a_name_is_looked_up(void **state)
{
    (void)state;
    static const mull__link_address nowhere = {"localhost", "1"};
    for (int turns = 0; turns < 4; turns++) {
        watcher w = {.ups = 0};
        mull__link_options options = link_to(&nowhere, 1);
        watch(&w, &options);
        for (int turn = 0; turn < turns; turn++)
            uv_run(&loop, UV_RUN_NOWAIT);
        end_link(&w, PLENTY_MS);
    }
}

static void test_addresses_that_are_none(void **state)
{
    (void)state;
    static const mull__link_address bad[] = {{"", "1"}, {"h", ""}, {NULL, "1"}, {"h", NULL}};
    mull__link_address many[65];
    mull__net_link *link;
    for (size_t i = 0; i < 65; i++)
        many[i] = (mull__link_address){"127.0.0.1", "1"};
    mull__link_options options = link_to(many, 65);
    assert_int_equal(mull__link_open(&link, &options, &watcher_calls, NULL), MULL_EINVAL);
    options = link_to(NULL, 0);
    assert_int_equal(mull__link_open(&link, &options, &watcher_calls, NULL), MULL_EINVAL);
    for (size_t i = 0; i < 4; i++) {
        options = link_to(&bad[i], 1);
        assert_int_equal(mull__link_open(&link, &options, &watcher_calls, NULL), MULL_EINVAL);
    }
}

/* ---- Several addresses ----------------------------------------------------------------------- */

static void test_several_addresses(void **state)
{
    (void)state;
    server a, b;
    watcher w = {.ups = 0};
    bind_server(&a, "127.0.0.1");
    open_server(&b, "127.0.0.1");
    for (uint64_t seed = 1; seed < 20; seed++) { /* whichever is first */
        mull__link_address both[] = {a.address, b.address};
        mull__link_options options = link_to(both, 2);
        options.seed = seed;
        w = (watcher){.ups = 0};
        watch(&w, &options);
        int fd = accept_client(&b);
        await(w.ups == 1);
        assert_int_equal(w.downs, 0);
        end_link(&w, 0);
        close(fd);
    }
    close_server(&a);
    close_server(&b);
}

static void test_none_of_several(void **state)
{
    (void)state;
    server a, b;
    watcher w = {.ups = 0};
    char one[256], other[256];
    bind_server(&a, "127.0.0.1");
    bind_server(&b, "127.0.0.1");
    mull__link_address both[] = {a.address, b.address};
    mull__link_options options = link_to(both, 2);
    watch(&w, &options);
    await(w.downs == 1);
    snprintf(one, sizeof one, "127.0.0.1:%d: connection refused", a.port);
    snprintf(other, sizeof other, "127.0.0.1:%d: connection refused", b.port);
    assert_non_null(strstr(w.why, one));
    assert_non_null(strstr(w.why, other));
    assert_int_equal(strlen(w.why), strlen(one) + strlen("; ") + strlen(other));
    await(w.downs == 2);
    assert_int_equal(strlen(w.why), strlen(one) + strlen("; ") + strlen(other));
    end_link(&w, 0);
    close_server(&a);
    close_server(&b);
}

static void test_more_reasons_than_there_is_room(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    mull__link_address many[64];
    bind_server(&s, "127.0.0.1");
    for (size_t i = 0; i < 64; i++)
        many[i] = s.address;
    mull__link_options options = link_to(many, 64);
    watch(&w, &options);
    await(w.downs == 2);
    assert_int_equal(strncmp(w.why, "127.0.0.1:", 10), 0);
    end_link(&w, 0);
    close_server(&s);
}

static void test_the_first_address_is_by_chance(void **state)
{
    (void)state;
    server both[2];
    int first[2] = {0, 0};
    open_server(&both[0], "127.0.0.1");
    open_server(&both[1], "127.0.0.1");
    for (uint64_t seed = 1; seed <= 64; seed++) {
        mull__link_address addresses[] = {both[0].address, both[1].address};
        mull__link_options options = link_to(addresses, 2);
        options.seed = seed;
        watcher w = {.ups = 0};
        watch(&w, &options);
        await(w.ups == 1);
        for (int i = 0; i < 2; i++) {
            int fd = accept4(both[i].fd, NULL, NULL, SOCK_CLOEXEC);
            first[i] += fd >= 0;
            if (fd >= 0)
                close(fd);
        }
        end_link(&w, 0);
    }
    assert_int_equal(first[0] + first[1], 64);
    assert_in_range(first[0], 16, 48);
    close_server(&both[0]);
    close_server(&both[1]);
}

/* A server is lost: the next one has its turn. */
static void test_the_next_address_after_a_loss(void **state)
{
    (void)state;
    server both[2];
    watcher w = {.ups = 0};
    int fds[2] = {-1, -1};
    open_server(&both[0], "127.0.0.1");
    open_server(&both[1], "127.0.0.1");
    mull__link_address addresses[] = {both[0].address, both[1].address};
    mull__link_options options = link_to(addresses, 2);
    watch(&w, &options);
    await(w.ups == 1);
    int first = (fds[0] = accept4(both[0].fd, NULL, NULL, SOCK_CLOEXEC)) >= 0 ? 0 : 1;
    for (int times = 1; times < 5; times++, first = !first) {
        if (fds[first] < 0)
            fds[first] = accept_client(&both[first]);
        if (times > 2)
            mull__link_settled(w.link);
        close(fds[first]);
        fds[first] = -1;
        await(w.ups == times + 1);
        assert_int_equal(w.downs, times);
        fds[!first] = accept_client(&both[!first]);
    }
    end_link(&w, 0);
    close(fds[first]);
    close_server(&both[0]);
    close_server(&both[1]);
}

/* ---- Waits ----------------------------------------------------------------------------------- */

static void test_waits_double(void **state)
{
    (void)state;
    static const int64_t whole[] = {100, 200, 400, 800, 1000, 1000};
    server s;
    watcher w = {.ups = 0};
    bind_server(&s, "127.0.0.1");
    mull__link_options options = link_to(&s.address, 1);
    shorten_waits(&options);
    watch(&w, &options);
    await(w.downs == 6);
    end_link(&w, 0);
    assert_int_equal(wait_count, 6);
    for (int i = 0; i < 6; i++)
        assert_wait(i, whole[i]);
    close_server(&s);
}

/* lose accepts the connection that comes, and ends it, settled or not. */
static void lose(server *s, watcher *w, int settled)
{
    int ups = w->ups, downs = w->downs;
    int fd = accept_client(s);
    await(w->ups == ups + 1);
    if (settled)
        mull__link_settled(w->link);
    close(fd);
    await(w->downs == downs + 1);
}

static void test_a_connection_that_settled_begins_with_the_first_wait(void **state)
{
    (void)state;
    server s;
    watcher w = {.ups = 0};
    open_server(&s, "127.0.0.1");
    mull__link_options options = link_to(&s.address, 1);
    shorten_waits(&options);
    watch(&w, &options);
    mull__link_settled(w.link); /* it isn't up: nothing */
    lose(&s, &w, 0);
    lose(&s, &w, 0);
    lose(&s, &w, 0);
    lose(&s, &w, 1);
    lose(&s, &w, 1);
    lose(&s, &w, 0); /* what settled before doesn't count */
    end_link(&w, 0);
    assert_int_equal(wait_count, 6);
    static const int64_t whole[] = {100, 200, 400, 100, 100, 200};
    for (int i = 0; i < 6; i++)
        assert_wait(i, whole[i]);
    close_server(&s);
}

/* With two servers a link goes on to the other at once, unless the connection had settled. */
static void test_waits_and_rounds_of_two(void **state)
{
    (void)state;
    static const int settles[] = {1, 0, 0, 1, 0}, waits_then[] = {1, 1, 2, 3, 3};
    server both[2];
    watcher w = {.ups = 0};
    open_server(&both[0], "127.0.0.1");
    open_server(&both[1], "127.0.0.1");
    mull__link_address addresses[] = {both[0].address, both[1].address};
    mull__link_options options = link_to(addresses, 2);
    shorten_waits(&options);
    watch(&w, &options);
    for (int times = 0; times < 5; times++) {
        int fd = -1;
        await((fd = accept4(both[0].fd, NULL, NULL, SOCK_CLOEXEC)) >= 0 ||
              (fd = accept4(both[1].fd, NULL, NULL, SOCK_CLOEXEC)) >= 0);
        await(w.ups == times + 1);
        if (settles[times])
            mull__link_settled(w.link);
        close(fd);
        await(w.downs == times + 1);
        assert_int_equal(wait_count, waits_then[times]);
    }
    end_link(&w, 0);
    assert_wait(0, 100);
    assert_wait(1, 200); /* the round that both had ended without success */
    assert_wait(2, 100);
    close_server(&both[0]);
    close_server(&both[1]);
}

static void test_one_wait_a_round(void **state)
{
    (void)state;
    server a, b;
    watcher w = {.ups = 0};
    bind_server(&a, "127.0.0.1");
    open_server(&b, "127.0.0.1");
    mull__link_address both[] = {a.address, b.address};
    mull__link_options options = link_to(both, 2);
    shorten_waits(&options);
    watch(&w, &options);
    int fd = accept_client(&b);
    await(w.ups == 1);
    assert_int_equal(wait_count, 0);
    mull__link_cut(w.link, "login refused"); /* a wait, whoever is left of the round */
    await(w.downs == 1);
    assert_int_equal(wait_count, 1);
    assert_wait(0, 100);
    close(fd);
    end_link(&w, 0);
    close_server(&a);
    close_server(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_refused_until_it_listens),
        TEST(test_connected_to_itself),
        TEST(test_no_answer),
        TEST(test_cut_and_closed_while_connecting),
        TEST(test_ipv6),
        TEST(test_a_name),
        TEST(test_a_name_that_is_none),
        TEST(test_closed_while_a_name_is_looked_up),
        TEST(test_addresses_that_are_none),
        TEST(test_several_addresses),
        TEST(test_none_of_several),
        TEST(test_more_reasons_than_there_is_room),
        TEST(test_the_first_address_is_by_chance),
        TEST(test_the_next_address_after_a_loss),
        TEST(test_waits_double),
        TEST(test_a_connection_that_settled_begins_with_the_first_wait),
        TEST(test_waits_and_rounds_of_two),
        TEST(test_one_wait_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
