/* limits.c: what limits cost a message that succeeds, in instructions: an engine on `memory:` with
 * a C handler, by a policy that limits nothing, and by one with every limit, none of which holds.
 *
 *   limits [OTHER]         OTHER, the libmulligan.so of an earlier build, runs the policy without
 *                          limits as well
 *   limits off|on COUNT    works off so many messages, for callgrind
 *
 * A cost is the difference of two runs, of FEW and of MANY messages, so a start costs nothing.
 * bench/README.md has the command, and what came out. */
#include "kit/count.h"
#include "mulligan.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 2000, MANY = 12000, CONCURRENCY = 16, KEYS = 100 };
enum { MORE_THAN_OTHER = 25, MORE_THAN_OFF = 300 }; /* instructions a message may take */

static const char without[] = "require('mulligan.policy').bus():default():retry(3, 0)";

/* The numbers of `limit` are so large that every call begins at once. */
static const char with[] = "local policy = require 'mulligan.policy'\n"
                           "local bus = policy.bus()\n"
                           "bus:default():retry(3, 0)\n"
                           "bus:rate_limit { after = 10 }\n"
                           "bus:rate_limit { after = 10, per = 'key' }\n"
                           "bus:limit { rate = '1000000/s', burst = 1000000 }\n"
                           "bus:limit { rate = '1000000/s', burst = 1000000, per = 'key' }\n"
                           "bus:deadline('24h')\n"
                           "bus:max_attempts(30)\n";

static void die(const char *what)
{
    fprintf(stderr, "bench/limits: %s\n", what);
    exit(2);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { CLASSES = 64, CLASS_OF_16 = 4, PAGE = 4096 };

/* block is what stands before the memory that is handed out, of 2^`class` bytes. */
typedef union block {
    struct {
        union block *next; /* that is free */
        size_t class;
    } of;
    max_align_t aligned;
} block;

/* block_new puts large blocks at a page's begin: strcmp takes more where a text ends a page. */
static block *block_new(size_t class)
{
    size_t size = sizeof(block) + ((size_t)1 << class);
    return size < PAGE / 8 ? malloc(size) : aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
}

/* resize keeps freed blocks in a list for each size. malloc's instructions depend on what was freed
 * before, by hundreds a message: more than what is measured here. */
static void *resize(void *pointer, size_t bytes, void *data)
{
    block **freed = data, *old = pointer ? (block *)pointer - 1 : NULL, *made = NULL;
    if (bytes > 0) {
        size_t class = bytes > 16 ? 64 - (size_t)__builtin_clzll(bytes - 1) : CLASS_OF_16;
        if (old && old->of.class == class)
            return pointer;
        made = freed[class];
        if (made)
            freed[class] = made->of.next;
        else if (!(made = block_new(class)))
            return NULL;
        made->of.class = class;
        if (old)
            memcpy(made + 1, pointer, (size_t)1 << (old->of.class < class ? old->of.class : class));
    }
    if (old) {
        old->of.next = freed[old->of.class];
        freed[old->of.class] = old;
    }
    return made ? made + 1 : NULL;
}

/* ---- One run --------------------------------------------------------------------------------- */

static void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)data;
    fprintf(stderr, "%s:%d: %s\n", file ? file : "", line, text);
}

/* The first call fails: a limit that has counted something costs no more later. */
static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    int *calls = data;
    mull_error error = MULL_INIT(mull_error);
    error.type = "Error";
    (void)message;
    mull_done(engine, call, ++*calls == 1 ? &error : NULL);
}

static mull_policy *load(const char *text)
{
    mull_policy *policy;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.problem = on_problem;
    if (mull_policy_load(&policy, &options) != 0)
        die("the policy doesn't load");
    return policy;
}

static void publish(mull_engine *engine, int count)
{
    char id[24], key[24];
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = id;
    message.key = key;
    message.body = "body";
    message.body_size = 4;
    for (int i = 0; i < count; i++) {
        snprintf(id, sizeof id, "message-%d", i);
        snprintf(key, sizeof key, "key-%d", i % KEYS);
        if (mull_publish(engine, "t", &message, 0, NULL, NULL) != 0)
            die("a message can't be published");
    }
}

static int work_off(const char *text, int count)
{
    static block *freed[CLASSES];
    int calls = 0;
    mull_engine *engine;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = load(text);
    options.problem = on_problem;
    options.seed = 1;
    options.allocator = (mull_allocator){resize, freed};
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "C";
    consumer.transport = "t";
    consumer.queue = "q";
    consumer.handler = handle;
    consumer.data = &calls;
    consumer.concurrency = CONCURRENCY;
    if (mull_engine_new(&engine, &options) != 0 ||
        mull_engine_transport(engine, "t", "memory:") != 0 ||
        mull_consumer_add(engine, &consumer) != 0)
        die("the engine can't be set up");
    publish(engine, count);
    if (mull_stop_when_empty(engine) != 0 || mull_engine_run(engine) != 0)
        die("the engine doesn't run");
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(options.policy);
    return calls == count + 1 ? 0 : 2;
}

/* ---- What it costs --------------------------------------------------------------------------- */

static double total(const char *program, const char *limits, int count)
{
    char text[16];
    snprintf(text, sizeof text, "%d", count);
    const char *const argv[] = {program, limits, text, NULL};
    return bench_count(NULL, argv);
}

/* cost gives the instructions of a message with a build's library. */
static double cost(const char *program, const char *library, const char *limits)
{
    if (library)
        setenv("LD_PRELOAD", library, 1);
    double few = total(program, limits, FEW), many = total(program, limits, MANY);
    unsetenv("LD_PRELOAD");
    if (few < 0 || many < 0)
        die("a run under callgrind failed; is valgrind installed?");
    return (many - few) / (MANY - FEW);
}

/* told says whether a cost is low enough. */
static int told(const char *what, double instructions, double more, int most)
{
    int good = more <= most;
    printf("%-32s %10.0f %+10.0f %10d%s\n", what, instructions, more, most,
           good ? "" : "  too many");
    return good;
}

int main(int argc, char **argv)
{
    if (argc == 3 && (strcmp(argv[1], "off") == 0 || strcmp(argv[1], "on") == 0))
        return work_off(strcmp(argv[1], "on") == 0 ? with : without, atoi(argv[2]));
    if (argc > 2) {
        fprintf(stderr, "usage: limits [OTHER]\n");
        return 2;
    }
    int good = 1;
    double off = cost(argv[0], NULL, "off"), on = cost(argv[0], NULL, "on");
    printf("%-32s %10s %10s %10s\n", "a message that succeeds", "instr.", "more", "at most");
    if (argc == 2) {
        double other = cost(argv[0], argv[1], "off");
        printf("%-32s %10.0f\n", "no limit, the other build", other);
        good &= told("no limit", off, off - other, MORE_THAN_OTHER);
    } else {
        printf("%-32s %10.0f\n", "no limit", off);
    }
    good &= told("every limit", on, on - off, MORE_THAN_OFF);
    return !good;
}
