/* decide.h: who may use which table when. docs/design.md, "A decision", draws it.
 *
 *   policy ──> generation (counted): table, name            published by one exchange
 *   decider ── decider state: generation + Lua state        of one thread
 *          └── slot: a fresh state that a reload left
 */
#ifndef MULL__DECIDE_H
#define MULL__DECIDE_H

#include <pthread.h>

#include "base/list.h"
#include "policy/table.h"

typedef struct mull__generation mull__generation;
typedef struct mull__decider_state mull__decider_state;

/* ---- What a policy says to people ------------------------------------------------------------ */

/* mull__report passes each mistake on to `problem`, and keeps the first, with its place, for those
 * who have room for one line only. It allocates nothing. */
typedef struct mull__report {
    mull_problem_fn problem; /* NULL: nobody */
    void *data;
    size_t count;
    char first[1024]; /* "policy.lua:3: text" */
} mull__report;

/* mull__report_add is a mull_problem_fn whose data is a mull__report. */
void mull__report_add(const char *file, int line, const char *text, void *report);

/* mull__report_say writes the first mistake and how many more there are; where there is none, what
 * the code `status` says. What doesn't fit into `size` is cut off; it is UTF-8 all the same. */
void mull__report_say(const mull__report *report, int status, char *text, size_t size);

/* mull__log takes what a policy prints, a line at a time, from whichever decider's thread. */
typedef struct mull__log {
    pthread_mutex_t one; /* held while the embedder's function runs, which must not print in turn */
    mull_log_fn log;     /* NULL: lines go nowhere */
    void *data;
} mull__log;

void mull__log_write(mull__log *log, mull_level level, const char *text);

/* ---- Policies and deciders ------------------------------------------------------------------- */

/* mull__load is one load of a policy: what it is made from, and what came of it. */
typedef struct mull__load {
    const char *text; /* in place of the file's; NULL: as the policy was made */
    size_t text_size;
    int quietly;          /* what the policy prints goes nowhere */
    mull__report *report; /* is told of each mistake */
    mull__table *table;
    char name[33]; /* content hash of all files */
    void *source;  /* the kept text */
    char *files;   /* on failure too: every file that was read or looked for, see
                      mull__policy_files; NULL: there are none */
} mull__load;

/* mull__language_ops is how decide/ reaches the language that a policy is written in; src/lua fills
 * one in, and decide/ never sees Lua. What loads may fail with MULL_ENOMEM or MULL_EPOLICY; the
 * functions of a policy that it calls, in one state on one thread at a time, fail with any code and
 * say why, and subtract from `steps` what they took: see MULL__DECISION_STEPS. */
typedef struct mull__language_ops {
    /* compile carries out a load. `files` is from the allocator that the policy was made with. */
    int (*compile)(void *data, mull__load *load);
    /* source_free gives back what compile kept. */
    void (*source_free)(void *data, void *source);
    /* state_new runs the kept text once more, for one decider. The table that it gives must have
     * the digest `digest`, or the policy isn't pure: MULL_EPOLICY. */
    int (*state_new)(void *data, void *source, const char *digest, mull__report *report,
                     void **state);
    void (*state_free)(void *data, void *state);
    int (*match)(void *state, uint32_t function, const mull_failure *failure, int64_t *steps,
                 char *why, size_t why_size);
    int (*override)(void *state, uint32_t function, const mull_failure *failure,
                    const mull_verdict *verdict, const mull__config *config, mull__answer *answer,
                    char *why, size_t why_size);
    int (*notify)(void *state, uint32_t function, const mull_event *event, int64_t *steps,
                  char *why, size_t why_size);
    /* data_free gives back `data`, last of all. */
    void (*data_free)(void *data);
} mull__language_ops;

/* mull__policy_new makes a policy and loads its first generation. It owns `data` from the first
 * moment, on failure too. */
int mull__policy_new(mull_policy **out, const mull_policy_options *options,
                     const mull__language_ops *language, void *data);

/* mull__decider_generation is the generation that the decider's last decision came from, which the
 * caller may keep with mull__generation_ref: counted, so that a verdict's strings stay. */
mull__generation *mull__decider_generation(mull_decider *decider);

/* mull__decider_refresh moves the decider on to the generation in force, and gives that: for those
 * who look something up in its table before they decide. mull__decide_current is mull_decide by the
 * generation that the decider has come to, whatever is in force by now. */
mull__generation *mull__decider_refresh(mull_decider *decider);
int mull__decide_current(mull_decider *decider, const mull_failure *failure, mull_verdict *verdict);

/* mull__decider_inspect lets `look` ask, as a decision does, of the generation in force: with the
 * failure completed, and a runner that tells nobody of what it meets. MULL_EINVAL and MULL_ESTATE
 * as mull_decide; else what `look` returns. */
typedef int (*mull__inspect_fn)(void *data, const mull__table *table, const mull_failure *failure,
                                const mull__runner *runner, uint64_t *seen);
int mull__decider_inspect(mull_decider *decider, const mull_failure *failure, mull__inspect_fn look,
                          void *data);

/* mull__decider_on_event: `hear` is told what a decision meets on its way, after the policy's own
 * event function is, and before there is a verdict: matcher_failed, override_failed. What it is
 * told of is the table's, but for the text, which goes with the call. */
void mull__decider_on_event(mull_decider *decider, mull_event_fn hear, void *data);

/* mull__decider_state_ref keeps and gives what the decider's last decision came from: the
 * generation, and the language's state for its functions. A decider state that is kept outlives
 * reloads; it is used on the decider's thread alone, and dropped on any. */
mull__decider_state *mull__decider_state_ref(mull_decider *decider);
void mull__decider_state_unref(mull__decider_state *decider_state);

/* mull__decider_state_notify calls a `notify` of the decider state's generation, as
 * mull__language_ops does. Not while its decider decides. */
int mull__decider_state_notify(mull__decider_state *decider_state, uint32_t function,
                               const mull_event *event, int64_t *steps, char *why, size_t why_size);

mull__generation *mull__generation_ref(mull__generation *generation);
void mull__generation_unref(mull__generation *generation);
const mull__table *mull__generation_table(const mull__generation *generation);
const char *mull__generation_name(const mull__generation *generation);

/* mull__policy_loaded_text writes what policy_loaded says of a generation. */
void mull__policy_loaded_text(const mull_policy *policy, const mull__generation *generation,
                              char *text, size_t size);

/* mull__policy_current keeps and gives the generation in force. */
mull__generation *mull__policy_current(mull_policy *policy);

/* ---- Engines and reloads --------------------------------------------------------------------- */

/* mull__reload_validator lets an engine refuse tables that it couldn't work by. */
typedef struct mull__reload_validator {
    mull__link link; /* in the policy's list */
    /* check says MULL_EREFUSED, and to `problem` why, or 0. Called on any thread that reloads, one
     * at a time; it may not call the policy back. */
    int (*check)(void *data, const mull__table *table, mull_problem_fn problem, void *problem_data);
    /* told is told what became of a reload; from the same threads and as bound. NULL. */
    void (*told)(void *data, const mull_event *event);
    void *data;
} mull__reload_validator;

/* mull__policy_add_validator checks the generation in force, and from then on each that a reload
 * would put in its place: no moment is between. MULL_EREFUSED, and nothing is registered. */
int mull__policy_add_validator(mull_policy *policy, mull__reload_validator *validator,
                               mull_problem_fn problem, void *problem_data);

/* mull__policy_remove_validator: from its return the validator isn't called any more. It waits for
 * a check, never for a load. One that isn't registered is left alone. One that is being asked may
 * not be left; out of its check another may. */
void mull__policy_remove_validator(mull_policy *policy, mull__reload_validator *validator);

/* mull__policy_validated calls `step` with the table in force, while no validator is asked and no
 * other table comes in force; gives its answer. MULL_ESTATE: out of a check. */
int mull__policy_validated(mull_policy *policy, int (*step)(void *data, const mull__table *table),
                           void *data);

/* mull__policy_reload_files reloads from the files, as mull_policy_reload does, but never waits:
 * MULL_ESTATE where a load is under way. `quietly`: for a try that nobody asked for: what the
 * policy prints goes nowhere, and a refusal for the reason that is known already isn't told. */
int mull__policy_reload_files(mull_policy *policy, int quietly);

/* mull__policy_files copies the list of the files that the last load from files read or looked for:
 * paths one behind the other, each with its NUL, and an empty one at the end. NULL: out of memory,
 * or the policy was given as a text. */
char *mull__policy_files(mull_policy *policy, const mull_allocator *allocator);

/* mull__files_status is how the files and what is in force stand to each other, as far as loads
 * have seen the files. */
typedef struct mull__files_status {
    char generation[33]; /* in force */
    int files_run;       /* it is what the files gave when they were last loaded */
    char why[1100];      /* why they were refused then; "": they weren't */
} mull__files_status;

void mull__policy_files_status(mull_policy *policy, mull__files_status *standing);

/* mull__policy_has_files: it was loaded from a file. */
int mull__policy_has_files(const mull_policy *policy);

#endif
