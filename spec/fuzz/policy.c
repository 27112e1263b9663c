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

static mull_policy *load(const char *text, size_t size)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.text_size = size;
    options.problem = count_problem;
    mull_policy *policy = NULL;
    problems = 0;
    int status = mull_policy_load(&policy, &options);
    expect(status == MULL_OK || status == MULL_EPOLICY, "neither loaded nor refused");
    expect((status == MULL_OK) == (policy != NULL), "a policy beside an error, or none");
    expect(status == MULL_OK || problems > 0, "refused without a reason");
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
    char *text = malloc(size + 1);
    expect(text != NULL, "no memory");
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    mull_policy *policy = load(text, size);
    if (policy) {
        char name[33], again[33];
        mull_policy_generation(policy, name);
        mull_decider *decider;
        expect(mull_decider_new(&decider, policy) == MULL_OK, "the second run differs");
        decide(decider, "DeadlockError");
        decide(decider, "HttpError");
        decide(decider, "Error");
        expect(mull_policy_reload(policy, text, size) >= 0, "it doesn't load again");
        mull_policy_generation(policy, again);
        expect(strcmp(name, again) == 0, "another generation of the same text");
        mull_decider_free(decider);
        mull_policy_free(policy);
    }
    free(text);
    return 0;
}
