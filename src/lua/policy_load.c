/* policy_load.c: mull_policy_load: what decide/ needs to know of the language of policies. */
#include <string.h>

#include "base/alloc.h"
#include "base/given.h"
#include "compile.h"
#include "decide/decide.h"
#include "functions.h"

/* guest is what outlives a load: copies of what the embedder gave, of which the next reload is made
 * again. */
typedef struct guest {
    mull_allocator allocator;
    char *folder; /* of the policy's files: "" or ending in '/'; NULL: it was given as a text */
    char *main;   /* the first file's name */
    char *text;   /* NULL: it is read from its file */
    size_t text_size;
    mull__log log;
} guest;

static void guest_free(void *data)
{
    guest *g = data;
    const mull_allocator a = g->allocator;
    pthread_mutex_destroy(&g->log.one);
    mull__free(&a, g->folder);
    mull__free(&a, g->main);
    mull__free(&a, g->text);
    mull__free(&a, g);
}

/* ---- Compiling ------------------------------------------------------------------------------- */

enum { AGAIN = 1, QUIETLY = 2 };
enum { TURNS = 3 }; /* tries to find the files at rest */

/* run runs a source's files: for the first time or AGAIN, which prints nothing; QUIETLY prints
 * nothing the first time. The sandbox is there after MULL_EPOLICY as well, to say why. */
static int run(mull__sandbox **out, guest *g, mull__source *source, int how)
{
    int status = mull__sandbox_new(out, &g->allocator, source, g->main, &g->log, how == AGAIN);
    if (status)
        return status;
    if (how == QUIETLY)
        (*out)->silent = 1;
    return mull__sandbox_load(*out);
}

/* tell says what a sandbox failed with, where that is a mistake of the policy's. */
static void tell(const guest *g, const mull__sandbox *sandbox, int status, mull__report *report)
{
    if (status == MULL_EPOLICY)
        mull__report_add(g->main, 0, sandbox->vm.message, report);
}

/* open_source makes a source that has nothing yet but a text that was given. */
static int open_source(mull__source **out, const guest *g, const mull__load *load)
{
    const char *text = load->text ? load->text : g->text;
    size_t text_size = load->text ? load->text_size : g->text_size;
    int status = mull__source_new(out, &g->allocator, g->folder);
    return status == MULL_OK && text ? mull__source_add(*out, g->main, text, text_size) : status;
}

/* run_at_rest runs the files as they were at one moment: where they change while they are read,
 * what came of that mix is dropped, and they are read anew. Source and sandbox are the caller's,
 * NULL or not, whatever it returns. */
static int run_at_rest(mull__sandbox **sandbox, mull__source **source, guest *g,
                       const mull__load *load)
{
    for (int turn = 1; turn <= TURNS; turn++) {
        mull__sandbox_free(*sandbox);
        mull__source_free(*source);
        *sandbox = NULL;
        int status = open_source(source, g, load);
        if (status == MULL_OK)
            status = run(sandbox, g, *source, load->quietly ? QUIETLY : 0);
        int moved = status == MULL_ENOMEM ? status : mull__source_moved(*source);
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
    load->table = NULL;
    load->source = NULL;
    int status = run_at_rest(&sandbox, &source, g, load);
    if (status == MULL_OK)
        status = mull__compile(&load->table, sandbox, mull__report_add, load->report);
    mull__sandbox_free(sandbox);
    load->files = source ? mull__source_files(source) : NULL;
    if (status == MULL_OK && g->folder && !load->files)
        status = MULL_ENOMEM;
    if (status == MULL_OK) {
        mull__source_close(source, load->name);
        load->source = source;
    } else {
        mull__table_free(load->table);
        load->table = NULL;
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
    int status = mull__compile(&table, sandbox, mull__report_add, report);
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
    int status = run(&sandbox, g, source, AGAIN);
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

static int match(void *state, uint32_t function, const mull_failure *failure, int64_t *steps,
                 char *why, size_t why_size)
{
    return mull__functions_match(state, function, failure, steps, why, why_size);
}

static int override(void *state, uint32_t function, const mull_failure *failure,
                    const mull_verdict *verdict, const mull__config *config, mull__answer *answer,
                    char *why, size_t why_size)
{
    const mull__overridden shown = {failure, verdict, config};
    return mull__functions_override(state, function, &shown, answer, why, why_size);
}

static int notify(void *state, uint32_t function, const mull_event *event, int64_t *steps,
                  char *why, size_t why_size)
{
    return mull__functions_notify(state, function, event, steps, why, why_size);
}

/* ---- The way in ------------------------------------------------------------------------------ */

/* copy_paths keeps where the policy is: its folder and its name in it. */
static int copy_paths(guest *g, const mull_policy_options *options)
{
    const char *path = options->path ? options->path : "policy.lua";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    g->main = mull__strdup(&g->allocator, *name ? name : "policy.lua");
    if (!g->main)
        return MULL_ENOMEM;
    if (options->text)
        return MULL_OK;
    g->folder = mull__strndup(&g->allocator, path, (size_t)(name - path));
    return g->folder ? MULL_OK : MULL_ENOMEM;
}

static int copy_text(guest *g, const mull_policy_options *options)
{
    if (!options->text)
        return MULL_OK;
    g->text_size = options->text_size ? options->text_size : strlen(options->text);
    g->text = mull__strndup(&g->allocator, options->text, g->text_size);
    return g->text ? MULL_OK : MULL_ENOMEM;
}

static int guest_new(guest **out, const mull_policy_options *options)
{
    mull_allocator a = mull__allocator_or_default(options->allocator);
    guest *g = mull__zalloc(&a, 1, sizeof *g);
    if (!g)
        return MULL_ENOMEM;
    g->allocator = a;
    g->log.log = options->log;
    g->log.data = options->data;
    int status = pthread_mutex_init(&g->log.one, NULL) ? MULL_ENOMEM : copy_paths(g, options);
    if (status == MULL_OK)
        status = copy_text(g, options);
    if (status)
        guest_free(g);
    else
        *out = g;
    return status;
}

int mull_policy_load(mull_policy **out, const mull_policy_options *given)
{
    static const mull__guest of_lua = {
        .compile = compile,
        .source_free = source_free,
        .state_new = state_new,
        .state_free = state_free,
        .match = match,
        .override = override,
        .notify = notify,
        .data_free = guest_free,
    };
    if (!out)
        return MULL_EINVAL;
    *out = NULL;
    mull_policy_options options;
    if (!mull__struct_take(&options, sizeof options, MULL__POLICY_OPTIONS_LEAST, given))
        return MULL_EINVAL;
    if (!options.path && !options.text) {
        if (options.problem)
            options.problem(NULL, 0, "a policy's `path` or its `text` is required", options.data);
        return MULL_EINVAL;
    }
    guest *g;
    int status = guest_new(&g, &options);
    return status ? status : mull__policy_new(out, &options, &of_lua, g);
}
