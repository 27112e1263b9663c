/* sandbox_pair.c: see sandbox_pair.h. */
#include "sandbox_pair.h"

static int run(mull__sandbox **sandbox, const mull_allocator *allocator,
               const mull__sandbox_options *options)
{
    int status = mull__sandbox_new(sandbox, allocator, options);
    return status ? status : mull__sandbox_load(*sandbox);
}

int mull__sandbox_pair_run(mull__sandbox_pair *pair, mull__policy_texts *texts,
                           mull__source *source, int again, int silent)
{
    const mull_allocator *a = &texts->arena.allocator;
    mull__sandbox_options options = {.source = source,
                                     .main = texts->host,
                                     .log = &texts->log,
                                     .again = again,
                                     .silent = silent,
                                     .is_host = 1};
    int status = texts->host ? run(&pair->host, a, &options) : MULL_OK;
    if (status)
        return status;
    options.main = texts->main;
    options.is_host = 0;
    options.host = pair->host;
    return run(&pair->own, a, &options);
}

void mull__sandbox_pair_free(mull__sandbox_pair *pair)
{
    mull__sandbox_free(pair->own);
    mull__sandbox_free(pair->host);
    *pair = (mull__sandbox_pair){0};
}

void mull__sandbox_pair_tell(const mull__sandbox_pair *pair, int status, mull__report *report)
{
    const mull__sandbox *failed = pair->own ? pair->own : pair->host;
    if (status == MULL_EPOLICY)
        mull__report_add(failed->options.main, 0, failed->vm.message, report);
}
