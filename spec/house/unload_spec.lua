-- A plugin of somebody's program: the library is loaded, works, is unloaded, and comes again, all in one process.
local examples = require "support.examples"

local PROGRAM = [[
/* plugin.c: loads the library named, has it decide and run an engine, and unloads it, five times.
 *
 *   cc $(pkg-config --cflags mulligan) plugin.c -o plugin && ./plugin LIBRARY
 */
#include <dlfcn.h>
#include <mulligan.h>
#include <stdio.h>

#define TAKE(name) __typeof__(name) *name##_ = (__typeof__(name) *)dlsym(library, #name)
#define MUST(what) if (!(what)) return fprintf(stderr, "round %d: not %s\n", round, #what), 1

int main(int argc, char **argv)
{
    for (int round = 1; argc == 2 && round <= 5; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        MUST(library);
        TAKE(mull_policy_load); TAKE(mull_decider_new); TAKE(mull_decide); TAKE(mull_decider_free);
        TAKE(mull_policy_free); TAKE(mull_engine_new); TAKE(mull_engine_transport); TAKE(mull_stop_when_empty);
        TAKE(mull_engine_run); TAKE(mull_engine_close);
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.text = "require('mulligan.policy').bus():on('T', function() return true end):retry()";
        mull_error error = MULL_INIT(mull_error);
        error.type = "T";
        mull_failure failure = MULL_INIT(mull_failure);
        failure.error = &error;
        mull_verdict verdict = MULL_INIT(mull_verdict);
        mull_policy *policy;
        mull_decider *decider;
        mull_engine *engine;
        mull_engine_options engine_options = MULL_INIT(mull_engine_options);
        MUST(mull_policy_load_(&policy, &options) == 0);
        MUST(mull_decider_new_(&decider, policy) == 0);
        MUST(mull_decide_(decider, &failure, &verdict) == 0 && verdict.action == MULL_RETRY);
        engine_options.policy = policy;
        MUST(mull_engine_new_(&engine, &engine_options) == 0);
        MUST(mull_engine_transport_(engine, "m", "memory:") == 0);
        MUST(mull_engine_transport_(engine, "s", "sqlite:plugin.db") == 0);
        MUST(mull_stop_when_empty_(engine) == 0 && mull_engine_run_(engine) == 0);
        mull_engine_close_(engine, NULL, NULL);
        mull_decider_free_(decider);
        mull_policy_free_(policy);
        MUST(dlclose(library) == 0);
        MUST(!dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD));
    }
    puts("unloaded");
    return 0;
}
]]

describe("the shared library", function()
    it("can be unloaded, and loaded again", function()
        local program = PROGRAM:gsub("LIBRARY", examples.build .. "/libmulligan.so")
        local ran = examples.run("plugin.c", { ["plugin.c"] = program })
        assert.equal(0, ran.code, ran.err)
        assert.equal("unloaded\n", ran.out)
        assert.equal("", ran.err)
    end)
end)
