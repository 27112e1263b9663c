/* policy_load.c: mull_policy_load: what decide/ needs to know of the language of policies. */
#include <string.h>

#include "base/alloc.h"
#include "compile.h"
#include "decide/decide.h"

/* guest is what outlives a load: copies of what the embedder gave, of which the next reload is made
 * again. */
typedef struct guest {
    mull_allocator allocator;
    char *folder; /* of the policy's files: "" or ending in '/'; NULL: it was given as a text */
    char *main;   /* the first file's name */
    char *text;   /* NULL: it is read from its file */
    size_t text_size;
    mull__log *log;
    mull__parsed *parsed;
} guest;

static void guest_free(void *data)
{
    guest *g = data;
    const mull_allocator a = g->allocator;
    mull__log_free(g->log);
    mull__parsed_free(g->parsed);
    mull__free(&a, g->folder);
    mull__free(&a, g->main);
    mull__free(&a, g->text);
    mull__free(&a, g);
}

/* ---- Compiling ------------------------------------------------------------------------------- */

enum { AGAIN = 1, QUIETLY = 2 };

/* load_sandbox runs a source's files: for the first time or AGAIN, which prints nothing; QUIETLY
 * prints nothing the first time. */
static int load_sandbox(mull__sandbox **out, const guest *g, mull__source *source, int how,
                        mull__report *report)
{
    int status =
        mull__sandbox_new(out, &g->allocator, source, g->main, g->log, g->parsed, how == AGAIN);
    if (status)
        return status;
    if (how == QUIETLY)
        (*out)->silent = 1;
    status = mull__sandbox_load(*out);
    if (status == MULL_OK)
        return MULL_OK;
    if (status == MULL_EPOLICY)
        mull__report_add(g->main, 0, (*out)->vm.message, report);
    mull__sandbox_free(*out);
    *out = NULL;
    return status;
}

/* fill makes a source's table and content hash, and lists its files. */
static int fill(const guest *g, mull__source *source, mull__load *load)
{
    mull__sandbox *sandbox;
    int status = load_sandbox(&sandbox, g, source, load->quietly ? QUIETLY : 0, load->report);
    if (status == MULL_OK) {
        status = mull__compile(&load->table, sandbox, mull__report_add, load->report);
        mull__sandbox_free(sandbox);
    }
    load->files = mull__source_files(source);
    if (status == MULL_OK && g->folder && !load->files)
        status = MULL_ENOMEM;
    if (status == MULL_OK) {
        mull__source_close(source, load->name);
    } else {
        mull__table_free(load->table);
        load->table = NULL;
    }
    return status;
}

static int compile(void *data, mull__load *load)
{
    const guest *g = data;
    const char *text = load->text ? load->text : g->text;
    size_t text_size = load->text ? load->text_size : g->text_size;
    load->table = NULL;
    load->source = NULL;
    mull__source *s;
    int status = mull__source_new(&s, &g->allocator, g->folder);
    if (status == MULL_OK && text)
        status = mull__source_add(s, g->main, text, text_size);
    if (status == MULL_OK)
        status = fill(g, s, load);
    if (status == MULL_OK)
        load->source = s;
    else
        mull__source_free(s);
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
    const guest *g = data;
    *state = NULL;
    mull__sandbox *sandbox;
    int status = load_sandbox(&sandbox, g, source, AGAIN, report);
    if (status)
        return status;
    status = check_same(g, sandbox, digest, report);
    if (status == MULL_OK) {
        status = mull__compile_functions(sandbox);
        if (status == MULL_EPOLICY)
            mull__report_add(g->main, 0, sandbox->vm.message, report);
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

static int match(void *state, uint32_t function, const mull_failure *failure, char *why,
                 size_t why_size)
{
    return mull__call_function(state, function, failure, why, why_size);
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
    int status = copy_paths(g, options);
    if (status == MULL_OK)
        status = copy_text(g, options);
    if (status == MULL_OK)
        status = mull__log_new(&g->log, &a, options->log, options->data);
    if (status == MULL_OK)
        status = mull__parsed_new(&g->parsed, &a);
    if (status)
        guest_free(g);
    else
        *out = g;
    return status;
}

int mull_policy_load(mull_policy **out, const mull_policy_options *options)
{
    static const mull__guest of_lua = {
        .compile = compile,
        .source_free = source_free,
        .state_new = state_new,
        .state_free = state_free,
        .match = match,
        .data_free = guest_free,
    };
    if (!out)
        return MULL_EINVAL;
    *out = NULL;
    if (!options || options->size != sizeof *options || (!options->path && !options->text))
        return MULL_EINVAL;
    guest *g;
    int status = guest_new(&g, options);
    return status ? status : mull__policy_new(out, options, &of_lua, g);
}
