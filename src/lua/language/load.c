/* load.c: mull_policy_load: what decide/ needs to know of the language of policies. */
#include <string.h>

#include "base/alloc.h"
#include "base/struct_compat.h"
#include "compile.h"
#include "decide/decide.h"
#include "decider_functions.h"
#include "sandbox_pair.h"

static void language_free(void *data)
{
    mull__policy_texts *texts = data;
    const mull_allocator a = texts->arena.allocator;
    pthread_mutex_destroy(&texts->log.one);
    mull__arena_free(&texts->arena);
    mull__free(&a, texts);
}

/* ---- Compiling ------------------------------------------------------------------------------- */

enum { TURNS = 3 }; /* tries to find the files at rest */

/* source_of_load makes a source that has nothing yet but texts that were given. */
static int source_of_load(mull__source **out, const mull__policy_texts *texts,
                          const mull__load *load)
{
    const char *text = load->text ? load->text : texts->text;
    size_t text_size = load->text ? load->text_size : texts->text_size;
    int status = mull__source_new(out, &texts->arena.allocator, texts->folder);
    if (status == MULL_OK && text)
        status = mull__source_add(*out, texts->main, text, text_size);
    if (status == MULL_OK && texts->host)
        status =
            mull__source_add_host(*out, texts->host_path, texts->host_text, texts->host_text_size);
    return status;
}

/* run_stable runs the files as they were at one moment: where they change while they are read,
 * what came of that mix is dropped, and they are read anew. Source and sandboxes are the caller's,
 * whatever it returns. */
static int run_stable(mull__sandbox_pair *pair, mull__source **source, mull__policy_texts *texts,
                      const mull__load *load)
{
    for (int turn = 1; turn <= TURNS; turn++) {
        mull__sandbox_pair_free(pair);
        mull__source_free(*source);
        int status = source_of_load(source, texts, load);
        if (status == MULL_OK)
            status = mull__sandbox_pair_run(pair, texts, *source, 0, load->quietly);
        int moved = status == MULL_ENOMEM ? status : mull__source_changed(*source);
        if (moved == MULL_ENOMEM)
            return moved;
        if (moved)
            continue;
        mull__sandbox_pair_tell(pair, status, load->report);
        return status;
    }
    mull__report_add(texts->main, 0, "the policy's files change while they are loaded",
                     load->report);
    return MULL_EPOLICY;
}

/* has_disk: some file of it is read from disk. */
static int has_disk(const mull__policy_texts *texts)
{
    return texts->folder || (texts->host && !texts->host_text);
}

static int compile(void *data, mull__load *load)
{
    mull__policy_texts *texts = data;
    mull__sandbox_pair pair = {0};
    mull__source *source = NULL;
    int status = run_stable(&pair, &source, texts, load);
    if (status == MULL_OK)
        status = mull__compile(&load->table, pair.host, pair.own, load->report);
    mull__sandbox_pair_free(&pair);
    load->files = source ? mull__source_files(source) : NULL;
    if (status == MULL_OK && has_disk(texts) && !load->files)
        status = MULL_ENOMEM;
    if (status == MULL_OK) {
        mull__source_close(source, load->name);
        load->source = source;
    } else {
        mull__table_free(load->table);
        mull__source_free(source);
    }
    return status;
}

static void source_free(void *data, void *source)
{
    (void)data;
    mull__source_free(source);
}

/* ---- The way in ------------------------------------------------------------------------------ */

/* name_in gives what follows the folder in a path. */
static const char *name_in(const char *path, const char *otherwise)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return *name ? name : otherwise;
}

static const char *keep(mull__policy_texts *texts, const char *text, size_t size)
{
    return mull__arena_strndup(&texts->arena, text, size);
}

/* size_of gives the size of a text that was given. */
static size_t size_of(const char *text, size_t size)
{
    return size ? size : strlen(text);
}

/* copy_host keeps what was given of the host policy. Its name is that of its file; where the
 * policy's own has that name as well, its path tells them apart. */
static int copy_host(mull__policy_texts *texts, const mull_policy_options *options)
{
    const char *path = options->host_path ? options->host_path : "host.lua";
    const char *name = name_in(path, "host.lua");
    texts->host_path = keep(texts, path, strlen(path));
    texts->host =
        strcmp(name, texts->main) == 0 ? texts->host_path : keep(texts, name, strlen(name));
    if (options->host_text) {
        texts->host_text_size = size_of(options->host_text, options->host_text_size);
        texts->host_text = keep(texts, options->host_text, texts->host_text_size);
    }
    return texts->host_path && texts->host && !options->host_text == !texts->host_text
               ? MULL_OK
               : MULL_ENOMEM;
}

/* copy keeps what the embedder gave: texts, or the folder of the first file. */
static int copy(mull__policy_texts *texts, const mull_policy_options *options)
{
    const char *path = options->path ? options->path : "policy.lua";
    const char *slash = strrchr(path, '/'), *name = name_in(path, "policy.lua");
    texts->main = keep(texts, name, strlen(name));
    if (options->text) {
        texts->text_size = size_of(options->text, options->text_size);
        texts->text = keep(texts, options->text, texts->text_size);
    } else {
        texts->folder = keep(texts, path, slash ? (size_t)(slash + 1 - path) : 0);
    }
    if (!texts->main || !(texts->text || texts->folder))
        return MULL_ENOMEM;
    return options->host_path || options->host_text ? copy_host(texts, options) : MULL_OK;
}

int mull_policy_load(mull_policy **out, const mull_policy_options *given)
{
    static const mull__language_ops of_lua = {
        .compile = compile,
        .source_free = source_free,
        .state_new = mull__decider_functions_new,
        .state_free = mull__decider_functions_free,
        .match = mull__decider_functions_match,
        .override = mull__decider_functions_override,
        .notify = mull__decider_functions_notify,
        .data_free = language_free,
    };
    if (!out)
        return MULL_EINVAL;
    *out = NULL;
    mull_policy_options options;
    if (!mull__struct_copy_in(&options, sizeof options, MULL__POLICY_OPTIONS_LEAST, given))
        return MULL_EINVAL;
    if (!options.path && !options.text) {
        if (options.problem)
            options.problem(NULL, 0, "a policy's `path` or its `text` is required", options.data);
        return MULL_EINVAL;
    }
    const mull_allocator a = mull__allocator_or_default(options.allocator);
    mull__policy_texts *texts = mull__zalloc(&a, 1, sizeof *texts);
    if (!texts)
        return MULL_ENOMEM;
    texts->arena.allocator = a;
    texts->log.log = options.log;
    texts->log.data = options.data;
    int status = pthread_mutex_init(&texts->log.one, NULL) ? MULL_ENOMEM : copy(texts, &options);
    if (status == MULL_OK)
        return mull__policy_new(out, &options, &of_lua, texts);
    language_free(texts);
    return status;
}
