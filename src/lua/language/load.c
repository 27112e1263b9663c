/* load.c: mull_policy_load: what decide/ needs to know of the language of policies. */
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/struct_compat.h"
#include "compile.h"
#include "decide/decide.h"
#include "functions.h"

/* guest is what outlives a load: copies of what the embedder gave, of which the next reload is made
 * again. */
typedef struct guest {
    mull__arena arena;
    const char
        *folder;      /* of the policy's files: "" or ending in '/'; NULL: it was given as a text */
    const char *main; /* the first file's name */
    const char *text; /* NULL: it is read from its file */
    size_t text_size;
    mull__log log;
} guest;

static void language_free(void *data)
{
    guest *g = data;
    const mull_allocator a = g->arena.allocator;
    pthread_mutex_destroy(&g->log.one);
    mull__arena_free(&g->arena);
    mull__free(&a, g);
}

/* ---- Compiling ------------------------------------------------------------------------------- */

enum { TURNS = 3 }; /* tries to find the files at rest */

/* run runs a source's files, `again` where they ran before; `silent`: prints nothing. The sandbox
 * is there after MULL_EPOLICY as well, to say why. */
static int run(mull__sandbox **out, guest *g, mull__source *source, int again, int silent)
{
    int status =
        mull__sandbox_new(out, &g->arena.allocator, source, g->main, &g->log, again, silent);
    return status ? status : mull__sandbox_load(*out);
}

/* tell says what a sandbox failed with, where that is a mistake of the policy's. */
static void tell(const guest *g, const mull__sandbox *sandbox, int status, mull__report *report)
{
    if (status == MULL_EPOLICY)
        mull__report_add(g->main, 0, sandbox->vm.message, report);
}

/* source_of_load makes a source that has nothing yet but a text that was given. */
static int source_of_load(mull__source **out, const guest *g, const mull__load *load)
{
    const char *text = load->text ? load->text : g->text;
    size_t text_size = load->text ? load->text_size : g->text_size;
    int status = mull__source_new(out, &g->arena.allocator, g->folder);
    return status == MULL_OK && text ? mull__source_add(*out, g->main, text, text_size) : status;
}

/* run_stable runs the files as they were at one moment: where they change while they are read,
 * what came of that mix is dropped, and they are read anew. Source and sandbox are the caller's,
 * NULL or not, whatever it returns. */
static int run_stable(mull__sandbox **sandbox, mull__source **source, guest *g,
                      const mull__load *load)
{
    for (int turn = 1; turn <= TURNS; turn++) {
        mull__sandbox_free(*sandbox);
        mull__source_free(*source);
        *sandbox = NULL;
        int status = source_of_load(source, g, load);
        if (status == MULL_OK)
            status = run(sandbox, g, *source, 0, load->quietly);
        int moved = status == MULL_ENOMEM ? status : mull__source_changed(*source);
        if (moved == MULL_ENOMEM)
            return moved;
        if (moved)
            continue;
        tell(g, *sandbox, status, load->report);
        return status;
    }
    mull__report_add(g->main, 0, "the policy's files change while they are loaded", load->report);
    return MULL_EPOLICY;
}

static int compile(void *data, mull__load *load)
{
    guest *g = data;
    mull__sandbox *sandbox = NULL;
    mull__source *source = NULL;
    int status = run_stable(&sandbox, &source, g, load);
    if (status == MULL_OK)
        status = mull__compile(&load->table, sandbox, load->report);
    mull__sandbox_free(sandbox);
    load->files = source ? mull__source_files(source) : NULL;
    if (status == MULL_OK && g->folder && !load->files)
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

/* ---- States of deciders ---------------------------------------------------------------------- */

/* check_same compiles once more and compares: only a policy that always gives the same table may
 * have its functions called beside another's. */
static int check_same(const guest *g, mull__sandbox *sandbox, const char *digest,
                      mull__report *report)
{
    mull__table *table;
    char again[33];
    int status = mull__compile(&table, sandbox, report);
    if (status)
        return status;
    mull__table_digest(table, again);
    mull__table_free(table);
    if (strcmp(again, digest) == 0)
        return MULL_OK;
    mull__report_add(
        g->main, 0,
        "the policy gave other rules when it ran once more; it must always give the same", report);
    return MULL_EPOLICY;
}

static int state_new(void *data, void *source, const char *digest, mull__report *report,
                     void **state)
{
    guest *g = data;
    *state = NULL;
    mull__sandbox *sandbox = NULL;
    int status = run(&sandbox, g, source, 1, 1);
    tell(g, sandbox, status, report);
    if (status == MULL_OK)
        status = check_same(g, sandbox, digest, report);
    if (status == MULL_OK) {
        status = mull__functions_open(sandbox);
        tell(g, sandbox, status, report);
    }
    if (status == MULL_OK)
        *state = sandbox;
    else
        mull__sandbox_free(sandbox);
    return status;
}

static void state_free(void *data, void *state)
{
    (void)data;
    mull__sandbox_free(state);
}

/* ---- The way in ------------------------------------------------------------------------------ */

/* copy keeps what the embedder gave: a text, or the folder of the first file. */
static int copy(guest *g, const mull_policy_options *options)
{
    const char *path = options->path ? options->path : "policy.lua";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    name = *name ? name : "policy.lua";
    g->main = mull__arena_strndup(&g->arena, name, strlen(name));
    if (options->text) {
        g->text_size = options->text_size ? options->text_size : strlen(options->text);
        g->text = mull__arena_strndup(&g->arena, options->text, g->text_size);
    } else {
        g->folder = mull__arena_strndup(&g->arena, path, slash ? (size_t)(slash + 1 - path) : 0);
    }
    if (!g->main || !(g->text || g->folder))
        return MULL_ENOMEM;
    return MULL_OK;
}

int mull_policy_load(mull_policy **out, const mull_policy_options *given)
{
    static const mull__language_ops of_lua = {
        .compile = compile,
        .source_free = source_free,
        .state_new = state_new,
        .state_free = state_free,
        .match = mull__functions_match,
        .override = mull__functions_override,
        .notify = mull__functions_notify,
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
    guest *g = mull__zalloc(&a, 1, sizeof *g);
    if (!g)
        return MULL_ENOMEM;
    g->arena.allocator = a;
    g->log.log = options.log;
    g->log.data = options.data;
    int status = pthread_mutex_init(&g->log.one, NULL) ? MULL_ENOMEM : copy(g, &options);
    if (status == MULL_OK)
        return mull__policy_new(out, &options, &of_lua, g);
    language_free(g);
    return status;
}
