/* decisions.c: see decisions.h. */
#include "decisions.h"

#include "base/alloc.h"
#include "wire/failure_value.h"
#include "wire/msgpack_json.h"
#include "wire/verdict_msgpack.h"

#include <stdio.h>
#include <string.h>

/* What is larger is left to Lua, as wire/json_value.c does it: these are below the bounds of an
 * error. */
enum { BYTES = 64 * 1024, VALUES = 2000, LEVELS = 12 };

/* ---- Asking Lua ------------------------------------------------------------------------------ */

static int say(int status, char *why)
{
    if (status != 0 && !*why)
        snprintf(why, MULL__SESSION_WHY, "%s", mull_strerror(status));
    return status;
}

/* ask puts what is answered behind `out`. */
static int ask(mull__decisions *d, const char *what, const mull_value *value, mull__msgpack *out,
               char *why)
{
    mull__json_text json = {.allocator = &d->allocator}, answer = json;
    int status = mull__value_to_json(&json, value);
    if (status == 0)
        status = d->ask(d->data, what, json.memory, &answer, why);
    if (status == 0)
        status = mull__json_to_msgpack(out, answer.memory, answer.size);
    mull__free(&d->allocator, json.memory);
    mull__free(&d->allocator, answer.memory);
    return say(status, why);
}

/* ---- One failure ----------------------------------------------------------------------------- */

/* decide reads the failure at `at`, and puts the verdict behind `out`; what it put there is to be
 * taken back where that fails, and `why` says why. */
static int decide(mull__decisions *d, char **at, mull__msgpack *out, char *why)
{
    mull__msgpack_extent extent;
    mull_value value;
    mull_failure failure;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    const char *from = *at;
    int status = mull__msgpack_value(&value, &d->arena, at, &extent, why);
    if (status == 0) {
        int is_plain = *at - from <= BYTES && extent.values <= VALUES && extent.levels <= LEVELS &&
                       mull__failure_of_value(&failure, &d->arena, &value) == 0;
        status = is_plain ? mull_decide(d->decider, &failure, &verdict)
                          : ask(d, "decide", &value, out, why);
        if (is_plain && status == 0)
            mull__verdict_to_msgpack(out, &verdict);
    }
    mull__arena_reset(&d->arena);
    return say(status, why);
}

/* EMPTY is the map of a request that has none. */
#define EMPTY "\x80"

static void answer_decide(mull__decisions *d, mull__session *s, const mull__rpc_message *request)
{
    char why[MULL__SESSION_WHY], empty[] = EMPTY, *at = request->params ? request->params : empty;
    size_t before = s->out.size;
    why[0] = 0;
    mull__rpc_answer(&s->out, request->id);
    if (decide(d, &at, &s->out, why) == 0)
        return;
    s->out.size = before;
    mull__session_fail(s, request->id, why);
}

/* ---- Many failures --------------------------------------------------------------------------- */

static void add_text(mull__msgpack *out, const char *text)
{
    mull__msgpack_string(out, text, strlen(text));
}

/* decide_each gives {error} in the place of a verdict for what is no failure. */
static void decide_each(mull__decisions *d, char **at, size_t count, mull__msgpack *out)
{
    size_t begun = mull__msgpack_begin(out, 0);
    for (size_t i = 0; i < count; i++) {
        char why[MULL__SESSION_WHY];
        size_t before = out->size;
        why[0] = 0;
        if (decide(d, at, out, why) == 0)
            continue;
        out->size = before;
        mull__msgpack_entries(out, 1);
        add_text(out, "error");
        add_text(out, why);
    }
    mull__msgpack_end(out, begun, (uint32_t)count);
}

/* find_failures goes to the list of a request's failures; -1: it has none. */
static int find_failures(char *at, char **list)
{
    static const char wanted[] = "failures";
    size_t entries, size, count;
    mull__msgpack_map(&at, &entries);
    while (entries-- > 0) {
        const char *name;
        int is_it = mull__msgpack_text(&at, &name, &size) == 0;
        if (!is_it)
            mull__msgpack_skip(&at);
        *list = at;
        if (is_it && size == sizeof wanted - 1 && memcmp(name, wanted, size) == 0)
            return mull__msgpack_list(&at, &count);
        mull__msgpack_skip(&at);
    }
    return -1;
}

static void answer_decide_many(mull__decisions *d, mull__session *s,
                               const mull__rpc_message *request)
{
    char empty[] = EMPTY, *at = NULL;
    size_t count = 0;
    int is_list = find_failures(request->params ? request->params : empty, &at) == 0;
    if (is_list)
        mull__msgpack_list(&at, &count);
    if (!is_list || count > MULL__DECISIONS_MANY) {
        mull__session_fail(s, request->id, "failures must be a list of at most 1000");
        return;
    }
    mull__rpc_answer(&s->out, request->id);
    decide_each(d, &at, count, &s->out);
}

/* ---- What else is asked ---------------------------------------------------------------------- */

static void answer_by_asking(mull__decisions *d, mull__session *s, const mull__rpc_message *request,
                             const char *what)
{
    mull__msgpack_extent extent;
    mull_value value;
    char why[MULL__SESSION_WHY], empty[] = EMPTY, *at = request->params ? request->params : empty;
    size_t before = s->out.size;
    why[0] = 0;
    mull__rpc_answer(&s->out, request->id);
    int status = mull__msgpack_value(&value, &d->arena, &at, &extent, why);
    if (status == 0)
        status = ask(d, what, &value, &s->out, why);
    mull__arena_reset(&d->arena);
    if (say(status, why) == 0)
        return;
    s->out.size = before;
    mull__session_fail(s, request->id, why);
}

static int call(void *data, mull__session *s, const mull__rpc_message *request)
{
    mull__decisions *d = data;
    if (mull__rpc_is(request, "decide"))
        answer_decide(d, s, request);
    else if (mull__rpc_is(request, "decide_many"))
        answer_decide_many(d, s, request);
    else if (mull__rpc_is(request, "explain"))
        answer_by_asking(d, s, request, "explain");
    else if (mull__rpc_is(request, "policy"))
        answer_by_asking(d, s, request, "policy");
    else
        return 0;
    return 1;
}

static unsigned welcome(void *data, mull__msgpack *out)
{
    const mull__decisions *d = data;
    char generation[33];
    mull_policy_generation(d->policy, generation);
    add_text(out, "consumers");
    mull__msgpack_items(out, 0);
    add_text(out, "generation");
    add_text(out, generation);
    return 2;
}

const mull__session_ops mull__decisions_session = {
    .call = call,
    .role = "decider",
    .welcome = welcome,
    .methods = "decide, decide_many, explain, policy and ping"};
