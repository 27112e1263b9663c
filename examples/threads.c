/* threads.c: eight threads decide, each by a decider of its own, while the main thread reloads the
 * policy under them. Nobody waits for anybody, and each verdict is wholly of one generation. Names
 * are interned once, before that: what they stand for outlives every reload.
 *
 *   cc -pthread threads.c $(pkg-config --cflags --libs mulligan) -o threads && ./threads
 */
#include <mulligan.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, GENERATIONS = 2, DECISIONS = 20000 /* by each generation, on each thread */ };

/* The two policies between which it goes, and what each says of a timeout. */
static const struct {
    const char *text;
    mull_action action;
} policies[GENERATIONS] = {
    {"require('mulligan.policy').bus():on('TimeoutError'):retry(5, '100ms')", MULL_RETRY},
    {"require('mulligan.policy').bus():on('TimeoutError'):dead_letter('slow')", MULL_DEAD_LETTER},
};

typedef struct shared {
    mull_policy *policy;
    mull_type timeout;  /* "TimeoutError" */
    mull_site payments; /* "PaymentHandler" on "bank" */
    char names[GENERATIONS][33];
    atomic_int at_work;
    atomic_int failed; /* why a reload failed, which ends all threads; 0 */
} shared;

typedef struct worker {
    pthread_t thread;
    shared *all;
    long decided[GENERATIONS];
    long wrong; /* verdicts that are of neither, or say one thing and are named by the other */
    int status;
} worker;

static void count(worker *me, const mull_verdict *verdict)
{
    for (int g = 0; g < GENERATIONS; g++)
        if (strcmp(verdict->generation, me->all->names[g]) == 0 &&
            verdict->action == policies[g].action) {
            me->decided[g]++;
            return;
        }
    me->wrong++;
}

/* is_done: both generations have made as many decisions as they should, or can't any more. */
static int is_done(const worker *me)
{
    return atomic_load(&me->all->failed) ||
           (me->decided[0] >= DECISIONS && me->decided[1] >= DECISIONS);
}

/* decide decides until that is done. */
static int decide(worker *me, mull_decider *decider)
{
    mull_failure failure = MULL_INIT(mull_failure);
    failure.type = me->all->timeout; /* in place of an error that has nothing but its type */
    failure.site = me->all->payments;
    failure.flags = MULL_HAS_CHANCE;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    for (uint64_t n = 0; !is_done(me); n++) {
        failure.chance = n;
        int status = mull_decide(decider, &failure, &verdict);
        if (status)
            return status;
        count(me, &verdict); /* its strings live until the next call */
    }
    return 0;
}

static void *work(void *data)
{
    worker *me = data;
    mull_decider *decider;
    me->status = mull_decider_new(&decider, me->all->policy);
    if (!me->status)
        me->status = decide(me, decider);
    mull_decider_free(decider);
    atomic_fetch_sub(&me->all->at_work, 1);
    return NULL;
}

/* intern asks for the ids of the names that failures will have. */
static int intern(shared *all)
{
    int status = mull_type_intern(&all->timeout, all->policy, "TimeoutError");
    if (!status)
        status = mull_site_intern(&all->payments, all->policy, "PaymentHandler", "bank");
    return status;
}

/* load leaves the first policy in force, and the names of both in `names`. */
static int load(shared *all)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = policies[1].text;
    int status = mull_policy_load(&all->policy, &options);
    if (status)
        return status;
    mull_policy_generation(all->policy, all->names[1]);
    status = mull_policy_reload(all->policy, policies[0].text, 0);
    mull_policy_generation(all->policy, all->names[0]);
    return status;
}

/* reload goes from one policy to the other for as long as somebody decides. */
static long reload(shared *all)
{
    long reloads = 0;
    while (atomic_load(&all->at_work) > 0) {
        int status = mull_policy_reload(all->policy, policies[(reloads + 1) % GENERATIONS].text, 0);
        if (status < 0)
            atomic_store(&all->failed, status);
        else
            reloads++;
    }
    return reloads;
}

/* begin starts the threads, and gives how many there are. */
static int begin(worker *workers, shared *all)
{
    for (int i = 0; i < THREADS; i++) {
        workers[i].all = all;
        atomic_fetch_add(&all->at_work, 1);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
            atomic_fetch_sub(&all->at_work, 1);
            return i;
        }
    }
    return THREADS;
}

/* run reloads while the threads decide, and adds up what they did. */
static int run(shared *all)
{
    worker workers[THREADS] = {0}, sum = {0};
    int begun = begin(workers, all);
    long reloads = reload(all);
    for (int i = 0; i < begun; i++) {
        pthread_join(workers[i].thread, NULL);
        sum.status = sum.status ? sum.status : workers[i].status;
        sum.wrong += workers[i].wrong;
        for (int g = 0; g < GENERATIONS; g++)
            sum.decided[g] += workers[i].decided[g];
    }
    for (int g = 0; g < GENERATIONS; g++)
        printf("%s %ld times, by %s\n", mull_action_name(policies[g].action), sum.decided[g],
               all->names[g]);
    printf("%d threads, %ld reloads meanwhile, %ld wrong\n", begun, reloads, sum.wrong);
    return sum.status ? sum.status : atomic_load(&all->failed);
}

int main(void)
{
    shared all = {0};
    int status = load(&all);
    if (!status)
        status = intern(&all);
    if (!status)
        status = run(&all);
    if (status)
        fprintf(stderr, "threads: %s\n", mull_strerror(status));
    mull_policy_free(all.policy);
    return status ? 1 : 0;
}
