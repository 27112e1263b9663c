/* decide.c: what does policy.lua say to a deadlock, the second time it comes?
 *
 *   cc decide.c $(pkg-config --cflags --libs mulligan) -o decide && ./decide
 */
#include <mulligan.h>
#include <stdio.h>

int main(void)
{
    mull_policy_options options = {.size = sizeof options, .path = "policy.lua"};
    mull_error error = {.size = sizeof error, .type = "DeadlockError"};
    mull_failure failure = {.size = sizeof failure, .error = &error, .attempt = 2};
    mull_verdict verdict = {.size = sizeof verdict};
    mull_policy *policy = NULL;
    mull_decider *decider = NULL; /* one a thread */
    int status = mull_policy_load(&policy, &options);
    status = status ? status : mull_decider_new(&decider, policy);
    status = status ? status : mull_decide(decider, &failure, &verdict);
    if (status)
        fprintf(stderr, "policy.lua: %s\n", mull_strerror(status));
    else
        printf("%s in %lld ms\n", mull_action_name(verdict.action), (long long)verdict.delay_ms);
    mull_decider_free(decider);
    mull_policy_free(policy);
    return status ? 1 : 0;
}
