/* policy.c: a policy's text, whatever it is, loads or is refused with reasons; one that loads gives
 * the same generation again, opens a decider, and decides. */
#include <string.h>

#include "fuzz.h"
#include "mulligan.h"

static int problems;

static void count_problem(const char *file, int line, const char *text, void *data)
{
    (void)data;
    problems++;
    expect(file && file[0] && line >= 0 && text && text[0], "a mistake without a text");
}

/* load gives a policy that is there once: a reload spares it the reading of its own words. */
static mull_policy *load(void)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = "-- empty";
    options.problem = count_problem;
    mull_policy *policy = NULL;
    expect(mull_policy_load(&policy, &options) == MULL_OK, "the empty policy doesn't load");
    return policy;
}

static void decide(mull_decider *decider, const char *type)
{
    mull_error cause = MULL_INIT(mull_error), error = MULL_INIT(mull_error);
    cause.type = "TimeoutError";
    error.type = type;
    error.message = "deadlock detected";
    error.cause = &cause;
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    failure.consumer = "PaymentHandler";
    failure.transport = "orders";
    mull_verdict verdict = MULL_INIT(mull_verdict);
    expect(mull_decide(decider, &failure, &verdict) == MULL_OK, "no verdict");
    expect(mull_action_name(verdict.action) != NULL, "no action");
    expect(verdict.delay_ms >= 0, "a delay below 0");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static mull_policy *policy;
    if (!policy)
        policy = load();
    if (size == 0)
        return 0; /* which would be a policy that is read from its file again */
    const char *text = (const char *)data;
    problems = 0;
    int status = mull_policy_reload(policy, text, size);
    expect(status >= 0 || status == MULL_EPOLICY || status == MULL_EREFUSED,
           "neither loaded nor refused");
    expect(status >= 0 || problems > 0, "refused without a reason");
    if (status < 0)
        return 0;
    mull_decider *decider;
    expect(mull_decider_new(&decider, policy) == MULL_OK, "the second run differs");
    decide(decider, "DeadlockError");
    decide(decider, "HttpError");
    decide(decider, "Error");
    expect(mull_policy_reload(policy, text, size) == 1, "the same text is another");
    mull_decider_free(decider);
    return 0;
}
