/* decide.cpp: mulligan from C++17. Errors are exceptions, what is opened closes itself, and an
 * exception's own base classes are its lineage.
 *
 *   c++ -std=c++17 decide.cpp $(pkg-config --cflags --libs mulligan) -o decide_cpp && ./decide_cpp
 */
#include <mulligan.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

/* ---- The wrapping ---------------------------------------------------------------------------- */

struct closer {
    void operator()(mull_policy *policy) const
    {
        mull_policy_free(policy);
    }

    void operator()(mull_decider *decider) const
    {
        mull_decider_free(decider);
    }
};
using policy_ptr = std::unique_ptr<mull_policy, closer>;
using decider_ptr = std::unique_ptr<mull_decider, closer>;

void check(int status, const std::string &why = "")
{
    if (status != 0)
        throw std::runtime_error(mull_strerror(status) + (why.empty() ? "" : "\n" + why));
}

// note_problem is called from C: nothing may be thrown out of it.
void note_problem(const char *file, int line, const char *text, void *data) noexcept
try {
    auto &problems = *static_cast<std::string *>(data);
    problems += (file ? std::string(file) + ":" + std::to_string(line) + ": " : "") + text + "\n";
} catch (const std::bad_alloc &) {
}

policy_ptr load(const std::string &text)
{
    std::string problems;
    auto options = MULL_INIT(mull_policy_options);
    options.text = text.c_str();
    options.problem = note_problem;
    options.data = &problems;
    mull_policy *made = nullptr;
    int status = mull_policy_load(&made, &options);
    policy_ptr policy(made);
    check(status, problems);
    return policy;
}

decider_ptr new_decider(const policy_ptr &policy)
{
    mull_decider *made = nullptr;
    check(mull_decider_new(&made, policy.get()));
    return decider_ptr(made);
}

/* ---- The program ----------------------------------------------------------------------------- */

struct database_error : std::runtime_error {
    using runtime_error::runtime_error;
};
struct deadlock : database_error {
    using database_error::database_error;
};

// decide tells what becomes of a message whose handler threw: its type, and the classes above.
mull_verdict decide(const decider_ptr &decider, const std::exception &thrown, std::int64_t attempt)
{
    std::vector<const char *> lineage;
    auto error = MULL_INIT(mull_error);
    error.type = "std::exception";
    error.message = thrown.what();
    if (dynamic_cast<const deadlock *>(&thrown)) {
        error.type = "deadlock";
        lineage = {"database_error"};
    } else if (dynamic_cast<const database_error *>(&thrown)) {
        error.type = "database_error";
    }
    error.lineage = lineage.data();
    error.lineage_count = lineage.size();
    auto failure = MULL_INIT(mull_failure);
    failure.error = &error;
    failure.attempt = attempt;
    failure.flags = MULL_NO_JITTER;
    auto verdict = MULL_INIT(mull_verdict);
    check(mull_decide(decider.get(), &failure, &verdict));
    return verdict;
}

// handle is a handler that never succeeds.
void handle(int message)
{
    if (message == 1)
        throw deadlock("the tables are locked by each other");
    throw std::out_of_range("no such order");
}

void work_off(const decider_ptr &decider, int message)
{
    for (std::int64_t attempt = 1;; attempt++) {
        try {
            handle(message);
            return;
        } catch (const std::exception &thrown) {
            mull_verdict verdict = decide(decider, thrown, attempt);
            std::cout << "message " << message << ", attempt " << attempt << ": "
                      << mull_action_name(verdict.action);
            if (verdict.action != MULL_RETRY) {
                std::cout << " (" << (verdict.queue ? verdict.queue : "") << ")\n";
                return;
            }
            std::cout << " in " << verdict.delay_ms << " ms\n";
        }
    }
}

} // namespace

int main()
try {
    const auto policy = load("local bus = require('mulligan.policy').bus()\n"
                             "bus:on('database_error'):retry(2, '10ms')\n"
                             "bus:default():dead_letter('unknown')\n");
    const auto decider = new_decider(policy); // one a thread; gone before its policy
    work_off(decider, 1);
    work_off(decider, 2);
} catch (const std::exception &thrown) {
    std::cerr << "decide_cpp: " << thrown.what() << "\n";
    return 1;
}
