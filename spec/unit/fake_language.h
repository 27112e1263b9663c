/* fake_language.h: a language of decide/ without Lua. The first letter of a policy's text says what
 * it is; the text is also what its content name is made from.
 *
 *   'a', 'b'  a table in which every verdict is of that letter in all that it says
 *   'j'       as 'a', its retries with jitter 1
 *   'f'       has functions: number 0 passes, number 1 raises; its states are counted
 *   'i'       has functions, and isn't pure: no second state can be made of it
 *   '!'       doesn't compile: a mistake for each '!', the first in line 3
 *   '?'       doesn't compile; calls `on_compile` first, as a language calls the embedder's problem
 *
 * Marks anywhere behind it: '+' has functions, and they pass; '^' has an override; '~' has a
 * notify.
 */
#ifndef SPEC_FAKE_GUEST_H
#define SPEC_FAKE_GUEST_H

#include <stdio.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "decide/decide.h"
#include "fixtures.h"

typedef struct fake {
    mull_allocator allocator;
    atomic_int states, sources, closed;
    atomic_long matched;
    void (*on_compile)(void *data);
    void *on_compile_data;
    mull__answer answer; /* of the override */
    int override_raises, notify_raises;
    void (*on_notify)(const mull_event *event, const char *text, void *data); /* NULL */
    void *on_notify_data;
} fake;

/* fake_state is a state, made from `text`. What an override answers stands in `queue`, until the
 * next call of a function. */
typedef struct fake_state {
    fake *f;
    char text[16], queue[64];
} fake_state;

enum { FAKE_OVERRIDE = 2, FAKE_NOTIFY = 3, FAKE_FUNCTIONS = 4 };

enum { FAKE_LINE_A = 11, FAKE_LINE_B = 22 };

/* fake_table: 'a' and 'b' differ in file, line, scope, tier, delay, attempts, end, queue and note.
 */
static inline int fake_table(fake *f, const char *text, mull__table **table)
{
    int b = *text == 'b', pass = strchr(text, '+') != NULL;
    int functions = pass || *text == 'f' || *text == 'i';
    int override = strchr(text, '^') != NULL, notify = strchr(text, '~') != NULL;
    mull__plain_rule rules[3] = {
        {.type = "Fails",
         .file = b ? "b.lua" : "a.lua",
         .line = b ? FAKE_LINE_B : FAKE_LINE_A,
         .retry = RETRY(4),
         .end = MULL_DEAD_LETTER},
        {.type = "Ends",
         .file = b ? "b.lua" : "a.lua",
         .line = b ? FAKE_LINE_B : FAKE_LINE_A,
         .end = b ? MULL_DISCARD : MULL_DEAD_LETTER,
         .queue = b ? NULL : "queue-a",
         .note = b ? "note-b" : NULL},
        DEAD_LETTER_RULE("Error", 3),
    };
    if (*text == 'j')
        rules[0].retry.jitter = 1;
    if (b) {
        rules[0].retry = (mull__tier_config){0};
        rules[0].redeliver = (mull__tier_config)REDELIVER(7);
    }
    if (functions) {
        rules[0].matcher = (mull__matcher){MULL__MATCH_FUNCTION, .function = 0};
        rules[1].matcher = (mull__matcher){MULL__MATCH_FUNCTION, .function = !pass};
    }
    mull__plain_scope scope = {.kind = b ? MULL__HOST : MULL__BUS, .rules = rules, .rule_count = 3};
    if (override)
        scope.settings.override = FAKE_OVERRIDE + 1;
    if (notify)
        scope.settings.notify = FAKE_NOTIFY + 1;
    mull__plain plain = {NULL, 0, &scope, 1, functions || override || notify ? FAKE_FUNCTIONS : 0};
    return mull__table_new(table, &f->allocator, &plain);
}

static inline int fake_compile(void *data, mull__load *load)
{
    fake *f = data;
    if (*load->text == '?')
        f->on_compile(f->on_compile_data);
    for (const char *mark = load->text; *mark == '!'; mark++)
        mull__report_add("fake.lua", (int)(mark - load->text) + 3, "a mistake", load->report);
    if (*load->text == '!' || *load->text == '?')
        return MULL_EPOLICY;
    load->source = mull__strndup(&f->allocator, load->text, load->text_size);
    if (!load->source)
        return MULL_ENOMEM;
    int status = fake_table(f, load->text, &load->table);
    if (status) {
        mull__free(&f->allocator, load->source);
        return status;
    }
    snprintf(load->name, sizeof load->name, "%016llx%016llx",
             (unsigned long long)mull__hash(load->text, load->text_size),
             (unsigned long long)load->text_size);
    f->sources++;
    return 0;
}

static inline void fake_source_free(void *data, void *source)
{
    fake *f = data;
    mull__free(&f->allocator, source);
    f->sources--;
}

static inline int fake_state_new(void *data, void *source, const char *digest, mull__report *report,
                                 void **state)
{
    fake *f = data;
    mull__table *table;
    char again[33];
    (void)report;
    if (*(const char *)source == 'i' && f->states > 0)
        return MULL_EPOLICY;
    int status = fake_table(f, source, &table);
    if (status)
        return status;
    mull__table_digest(table, again);
    mull__table_free(table);
    assert_string_equal(again, digest);
    fake_state *made = mull__zalloc(&f->allocator, 1, sizeof *made);
    if (!made)
        return MULL_ENOMEM;
    made->f = f;
    snprintf(made->text, sizeof made->text, "%s", (const char *)source);
    *state = made;
    f->states++;
    return 0;
}

static inline void fake_state_free(void *data, void *state)
{
    fake *f = data;
    mull__free(&f->allocator, state);
    f->states--;
}

static inline int fake_match(void *state, uint32_t function, const mull_failure *failure,
                             int64_t *steps, char *why, size_t why_size)
{
    fake *f = ((fake_state *)state)->f;
    memset(((fake_state *)state)->queue, 0, sizeof((fake_state *)state)->queue);
    assert_true(failure->calls >= 1 && (failure->flags & MULL_HAS_CHANCE));
    f->matched++;
    (void)steps;
    if (function == 0)
        return 1;
    snprintf(why, why_size, "attempt to index a nil value");
    return MULL_EPOLICY;
}

/* fake_override puts the type of the error behind the queue of its answer. */
static inline int fake_override(void *data, uint32_t function, const mull_failure *failure,
                                const mull_verdict *verdict, const mull__config *config,
                                mull__answer *answer, char *why, size_t why_size)
{
    fake_state *state = data;
    assert_int_equal(function, FAKE_OVERRIDE);
    assert_non_null(verdict->generation);
    assert_non_null(config->dead_letter_queue);
    if (state->f->override_raises) {
        snprintf(why, why_size, "an override raises");
        return MULL_EPOLICY;
    }
    *answer = state->f->answer;
    if (answer->queue) {
        snprintf(state->queue, sizeof state->queue, "%s-%s", answer->queue, failure->error->type);
        answer->queue = state->queue;
    }
    return 0;
}

static inline int fake_notify(void *data, uint32_t function, const mull_event *event,
                              int64_t *steps, char *why, size_t why_size)
{
    fake_state *state = data;
    (void)steps;
    assert_int_equal(function, FAKE_NOTIFY);
    memset(state->queue, 0, sizeof state->queue);
    if (state->f->on_notify)
        state->f->on_notify(event, state->text, state->f->on_notify_data);
    if (!state->f->notify_raises)
        return 0;
    snprintf(why, why_size, "a notify raises");
    return MULL_EPOLICY;
}

static inline void fake_data_free(void *data)
{
    ((fake *)data)->closed++;
}

static const mull__language_ops fake_language = {
    .compile = fake_compile,
    .source_free = fake_source_free,
    .state_new = fake_state_new,
    .state_free = fake_state_free,
    .match = fake_match,
    .override = fake_override,
    .notify = fake_notify,
    .data_free = fake_data_free,
};

/* fake_load loads `text`; its memory and the language's come from `p`. */
static inline int fake_load(mull_policy **policy, fake *f, counting_allocator *p, const char *text,
                            mull_event_fn event, void *data)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    memset(f, 0, sizeof *f);
    f->allocator = counting_allocator_ops(p);
    options.allocator = f->allocator;
    options.text = text;
    options.event = event;
    options.data = data;
    return mull__policy_new(policy, &options, &fake_language, f);
}

#endif
