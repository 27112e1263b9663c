/* serve.c: what a verdict costs by `mulligan serve`: instructions a decision, of decide_many of 256
 * failures; and how fast that and a single decide go beside an echo, a process that sends each
 * request's bytes back over a socket of the same kind (src/net/listener.h). Both are asked in
 * turns, so that they share what else the machine does.
 *
 *   serve PROGRAM [ROUNDS]
 *
 * bench/README.md has the command, and when it fails. */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "base/alloc.h"
#include "kit/count.h"
#include "net/listener.h"

enum { RULES = 100, MANY = 256, ROUNDS = 21, MOST_ROUNDS = 999, COUNTED = 20, ASKED = 20 };
enum { SINGLE = 500, ROOM = 1 << 20, GATE_INSTRUCTIONS = 6000 };
static const double gate_trip = 3;

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static char folder[] = "/tmp/mulligan-bench-XXXXXX";
static char policy[64], serving[64], echoing[64], listen_word[80];

static void write_policy(void)
{
    static const char *const matchers[] = {"", ", { status = 503 }",
                                           ", { code = \"40P01\", transient = true }",
                                           ", { status = 429, host = \"a\" }"};
    if (!mkdtemp(folder))
        die(folder);
    snprintf(policy, sizeof policy, "%s/policy.lua", folder);
    snprintf(serving, sizeof serving, "%s/serve", folder);
    snprintf(echoing, sizeof echoing, "%s/echo", folder);
    snprintf(listen_word, sizeof listen_word, "unix:%s", serving);
    FILE *file = fopen(policy, "w");
    if (!file)
        die(policy);
    fprintf(file, "local bus = require('mulligan.policy').bus()\n");
    for (int i = 1; i < RULES; i++)
        fprintf(file, "bus:on('Type%d'%s):retry(3):then_redeliver()\n", i, matchers[i % 4]);
    fprintf(file, "bus:default():retry():then_redeliver():then_dead_letter()\n");
    fclose(file);
}

static void remove_files(void)
{
    unlink(policy);
    unlink(serving);
    unlink(echoing);
    rmdir(folder);
}

/* ---- Messages -------------------------------------------------------------------------------- */

typedef struct message {
    size_t size;
    char bytes[ROOM];
} message;

static message hello, one, many, whole, answer;

static void put(message *to, const char *bytes, size_t size)
{
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

#define PUT(to, bytes) put(to, bytes, sizeof(bytes) - 1)

static void text(message *to, const char *words)
{
    char head = (char)(0xa0 | strlen(words));
    put(to, &head, 1);
    put(to, words, strlen(words));
}

/* usual adds what a program with a queue of its own says of a failure. */
static void usual(message *to, int number, int entries)
{
    char words[16], head = (char)(0x80 | entries);
    put(to, &head, 1);
    text(to, "error");
    PUT(to, "\x84");
    text(to, "type");
    text(to, "PgError");
    text(to, "lineage");
    PUT(to, "\x91");
    snprintf(words, sizeof words, "Type%d", number % RULES);
    text(to, words);
    text(to, "message");
    text(to, "deadlock detected");
    text(to, "code");
    text(to, "40P01");
    text(to, "consumer");
    text(to, "PaymentHandler");
    text(to, "attempt");
    PUT(to, "\x01");
    text(to, "redeliveries");
    PUT(to, "\x00");
}

static void put_usual(message *to, int number)
{
    char words[16];
    usual(to, number, 5);
    text(to, "message");
    PUT(to, "\x81");
    text(to, "id");
    snprintf(words, sizeof words, "m-%d", number);
    text(to, words);
}

/* put_whole adds one that says all that there is to say. */
static void put_whole(message *to, int number)
{
    char words[16];
    usual(to, number, 10);
    text(to, "transport");
    text(to, "orders");
    text(to, "calls");
    PUT(to, "\x01");
    text(to, "deliveries");
    PUT(to, "\x01");
    text(to, "age_ms");
    PUT(to, "\x00");
    text(to, "can");
    PUT(to, "\x82");
    text(to, "retry");
    PUT(to, "\xc3");
    text(to, "delay");
    PUT(to, "\xc3");
    text(to, "message");
    PUT(to, "\x85");
    text(to, "id");
    snprintf(words, sizeof words, "m-%d", number);
    text(to, words);
    text(to, "type");
    text(to, "OrderPlaced");
    text(to, "key");
    text(to, "42");
    text(to, "size");
    PUT(to, "\xcd\x01\x2c");
    text(to, "headers");
    PUT(to, "\x81");
    text(to, "tenant");
    text(to, "acme");
}

static void put_many(message *to, void (*put_one)(message *to, int number))
{
    PUT(to, "\x94\x00\x01\xab"
            "decide_many\x91\x81\xa8"
            "failures\xdc\x01\x00");
    for (int i = 0; i < MANY; i++)
        put_one(to, i);
}

static void write_messages(void)
{
    PUT(&hello, "\x94\x00\x00\xa5hello\x91\x82\xa7version\x01\xa4role\xa7"
                "decider");
    PUT(&one, "\x94\x00\x01\xa6"
              "decide\x91");
    put_usual(&one, 17);
    put_many(&many, put_usual);
    put_many(&whole, put_whole);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    const struct timespec nap = {.tv_nsec = 10 * 1000 * 1000};
    for (int tries = 0; tries < 3000; tries++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0)
            die("socket");
        if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        close(fd);
        nanosleep(&nap, NULL); /* it is still to begin */
    }
    errno = ETIMEDOUT;
    die(path);
    return -1;
}

static void send_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = write(fd, bytes, size);
        if (sent <= 0)
            die("write");
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void receive(int fd, size_t size)
{
    for (size_t have = 0; have < size;) {
        ssize_t got = read(fd, answer.bytes + have, size - have);
        if (got <= 0)
            die("read");
        have += (size_t)got;
    }
}

/* size_of_answer asks once and gives how many bytes the answer has: what comes within a while. */
static size_t size_of_answer(int fd, const message *request)
{
    const struct timespec while_ = {.tv_nsec = 500 * 1000 * 1000};
    size_t have = 0;
    send_all(fd, request->bytes, request->size);
    nanosleep(&while_, NULL);
    for (ssize_t got; (got = recv(fd, answer.bytes + have, ROOM - have, MSG_DONTWAIT)) > 0;)
        have += (size_t)got;
    if (have < 4 || memcmp(answer.bytes, "\x94\x01", 2) != 0 || answer.bytes[3] != (char)0xc0)
        die("no verdict was answered");
    return have;
}

static double ask(int fd, const message *request, size_t size, int times)
{
    double begun = now_s();
    for (int i = 0; i < times; i++) {
        send_all(fd, request->bytes, request->size);
        receive(fd, size);
    }
    return now_s() - begun;
}

static int greet(void)
{
    int fd = connect_to(serving);
    send_all(fd, hello.bytes, hello.size);
    if (read(fd, answer.bytes, ROOM) <= 0)
        die("hello");
    return fd;
}

static void stop_server(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        die("SO_PEERCRED");
    kill(who.pid, SIGTERM);
}

/* ---- Instructions ---------------------------------------------------------------------------- */

/* count_instructions gives those of a decision; below 0: there is no valgrind. */
static double count_instructions(const char *program, const message *request)
{
    const char *argv[] = {program, "serve", policy, "--listen", listen_word, NULL};
    pid_t client = fork();
    if (client == 0) {
        int fd = greet();
        ask(fd, request, size_of_answer(fd, request), COUNTED);
        stop_server(fd);
        _exit(0);
    }
    double all = bench_count("mull__session_feed", argv);
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
    return all < 0 ? -1 : all / ((COUNTED + 1.0) * MANY);
}

/* ---- Beside an echo -------------------------------------------------------------------------- */

/* The echo stands on the same sockets and the same loop as the server: it waits until a message is
 * whole, by its size, which is told by the size of the first bytes that a client sends. */
typedef struct echoed {
    mull__peer *peer;
    size_t size; /* of a message: the first eight bytes say it */
} echoed;

static void *on_accepted(void *data, mull__peer *peer)
{
    echoed *e = calloc(1, sizeof *e);
    (void)data;
    if (e)
        e->peer = peer;
    return e;
}

static size_t on_read(void *data, char *bytes, size_t size)
{
    echoed *e = data;
    if (e->size == 0 && size >= sizeof e->size) {
        memcpy(&e->size, bytes, sizeof e->size);
        return sizeof e->size;
    }
    if (e->size == 0 || size < e->size)
        return 0;
    mull__peer_write(e->peer, bytes, e->size);
    return e->size;
}

static void on_sent(void *data)
{
    (void)data;
}

static void on_refused(void *data, const char *why)
{
    (void)data;
    fprintf(stderr, "%s\n", why);
}

static pid_t start_echo(void)
{
    static const mull__listener_calls calls = {on_accepted, on_read,    on_sent,
                                               free,        on_refused, on_sent};
    pid_t child = fork();
    if (child != 0)
        return child;
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    mull__listener *listener;
    char why[MULL__LISTENER_WHY];
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0 ||
        mull__listener_open(&listener, &loop, &allocator, echoing, &calls, NULL, why) != 0)
        _exit(2);
    uv_run(&loop, UV_RUN_DEFAULT);
    _exit(0);
}

/* connect_echo gives a connection to the echo for messages of one size. */
static int connect_echo(size_t size)
{
    int fd = connect_to(echoing);
    send_all(fd, (const char *)&size, sizeof size);
    return fd;
}

static pid_t start_server(const char *program)
{
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        execl(program, program, "serve", policy, "--listen", listen_word, (char *)NULL);
        _exit(2);
    }
    return child;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, by_size);
    return numbers[count / 2];
}

typedef struct result {
    double ours_s, echo_s, ratio; /* of a request; ratio: the median of ours / the echo's */
} result;

static result compare(int server, const message *request, int times, int rounds)
{
    static double ours[MOST_ROUNDS], theirs[MOST_ROUNDS], ratios[MOST_ROUNDS];
    size_t size = size_of_answer(server, request);
    int other = connect_echo(request->size);
    for (int i = 0; i < rounds; i++) {
        ours[i] = ask(server, request, size, times) / times;
        theirs[i] = ask(other, request, request->size, times) / times;
        ratios[i] = ours[i] / theirs[i];
    }
    close(other);
    return (result){median(ours, rounds), median(theirs, rounds), median(ratios, rounds)};
}

static void print_rate(const char *name, const result *batch)
{
    printf("%s failures: %.0f decisions a second, %.2f of an echo's rate\n", name,
           MANY / batch->ours_s, 1 / batch->ratio);
}

static int measure(const char *program, int rounds)
{
    pid_t server = start_server(program), other = start_echo();
    int ours = greet();
    result batch = compare(ours, &many, ASKED, rounds);
    result wholes = compare(ours, &whole, ASKED, rounds);
    result trip = compare(ours, &one, SINGLE, rounds);
    kill(server, SIGTERM);
    kill(other, SIGKILL);
    waitpid(server, NULL, 0);
    waitpid(other, NULL, 0);
    print_rate("usual", &batch);
    print_rate("whole", &wholes);
    printf("decide: a round trip of %.1f us, an echo's %.1f us: %.2f times (at most %.0f)\n",
           trip.ours_s * 1e6, trip.echo_s * 1e6, trip.ratio, gate_trip);
    return trip.ratio <= gate_trip;
}

static double print_instructions(const char *program, const char *name, const message *request)
{
    double each = count_instructions(program, request);
    if (each < 0)
        printf("%s: instructions aren't counted, for want of valgrind\n", name);
    else
        printf("%s failures, %.0f bytes each: %.0f instructions a decision\n", name,
               (double)request->size / MANY, each);
    return each;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
    if (argc < 2 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: serve PROGRAM [ROUNDS], at most %d\n", MOST_ROUNDS);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    write_policy();
    atexit(remove_files);
    write_messages();
    printf("decide_many of %d\n", MANY);
    double instructions = print_instructions(argv[1], "usual", &many);
    print_instructions(argv[1], "whole", &whole);
    int well = measure(argv[1], rounds);
    return well && instructions <= GATE_INSTRUCTIONS ? 0 : 1;
}
