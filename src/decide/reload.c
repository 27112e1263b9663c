/* reload.c: how another generation takes the place of the one in force, who may refuse that, and
 * how the files stand to what runs. policy.h says what the locks are for. */
#include "policy.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

/* ---- What is known of the files -------------------------------------------------------------- */

/* note_files takes in what a load from the files has found out, whatever came of it; but not where
 * it looked when it stopped halfway. What it replaces is in the load then, to be freed. */
static void note_files(mull_policy *policy, mull__load *load, int status)
{
    char why[sizeof policy->why] = "";
    if (status < 0)
        mull__report_say(load->report, status, why, sizeof why);
    pthread_mutex_lock(&policy->lock);
    if (status != MULL_ENOMEM && load->files) {
        char *old = policy->files;
        policy->files = load->files;
        load->files = old;
    }
    if (status >= 0)
        memcpy(policy->files_name, load->name, sizeof policy->files_name);
    memcpy(policy->why, why, sizeof why);
    pthread_mutex_unlock(&policy->lock);
}

char *mull__policy_files(mull_policy *policy, const mull_allocator *allocator)
{
    char *copy = NULL;
    pthread_mutex_lock(&policy->lock);
    if (policy->files) {
        const char *end = policy->files;
        while (*end)
            end += strlen(end) + 1;
        size_t size = (size_t)(end - policy->files) + 1;
        copy = mull__alloc(allocator, size);
        if (copy)
            memcpy(copy, policy->files, size);
    }
    pthread_mutex_unlock(&policy->lock);
    return copy;
}

int mull__policy_has_files(const mull_policy *policy)
{
    return policy->has_files;
}

void mull__policy_files_status(mull_policy *policy, mull__files_status *standing)
{
    pthread_mutex_lock(&policy->lock);
    memcpy(standing->generation, mull__generation_name(policy->current),
           sizeof standing->generation);
    memcpy(standing->why, policy->why, sizeof standing->why);
    standing->files_run = !policy->why[0] && strcmp(policy->files_name, standing->generation) == 0;
    pthread_mutex_unlock(&policy->lock);
}

/* ---- Vetoes ---------------------------------------------------------------------------------- */

int mull__policy_add_validator(mull_policy *policy, mull__reload_validator *validator,
                               mull_problem_fn problem, void *problem_data)
{
    if (pthread_mutex_lock(&policy->validating))
        return MULL_ESTATE;
    mull__generation *current = mull__policy_current(policy);
    int status =
        validator->check(validator->data, mull__generation_table(current), problem, problem_data);
    if (status == MULL_OK)
        mull__list_push(&policy->validators, &validator->link);
    mull__generation_unref(current);
    pthread_mutex_unlock(&policy->validating);
    return status;
}

void mull__policy_remove_validator(mull_policy *policy, mull__reload_validator *validator)
{
    /* Out of a check on this very thread, whose `problem` closes another engine, it is locked. */
    int locked = pthread_mutex_lock(&policy->validating) == 0;
    mull__list_remove(&policy->validators, &validator->link);
    if (locked)
        pthread_mutex_unlock(&policy->validating);
}

int mull__policy_validated(mull_policy *policy, int (*step)(void *data, const mull__table *table),
                           void *data)
{
    if (pthread_mutex_lock(&policy->validating))
        return MULL_ESTATE;
    mull__generation *current = mull__policy_current(policy);
    int status = step(data, mull__generation_table(current));
    mull__generation_unref(current);
    pthread_mutex_unlock(&policy->validating);
    return status;
}

/* ask_vetoes asks all of them, so that every problem is told. */
static int ask_vetoes(mull_policy *policy, const mull__table *table, mull__report *report)
{
    int status = MULL_OK;
    for (mull__link *at = mull__list_first(&policy->validators); at;
         at = mull__list_after(&policy->validators, at)) {
        mull__reload_validator *validator = MULL__ENTRY(at, mull__reload_validator, link);
        int answer = validator->check(validator->data, table, mull__report_add, report);
        if (answer)
            status = answer;
    }
    return status;
}

/* ---- Reloading ------------------------------------------------------------------------------- */

/* staged is what a reload has built: a generation, and decider states for it, as many as there are
 * deciders. Once published, `decider_states` holds what came out of their slots. */
typedef struct staged {
    mull__generation *generation;
    uintptr_t *decider_states;
    size_t count;
} staged;

static void unstage(mull_policy *policy, staged *s)
{
    for (size_t i = 0; i < s->count; i++)
        mull__decider_state_unref(
            (mull__decider_state *)(s->decider_states[i] & ~MULL__NEW_STATE_MARK));
    mull__free(&policy->allocator, s->decider_states);
    mull__generation_unref(s->generation);
}

/* add_seats stages a decider state for each decider; some of these may leave meanwhile, none can
 * join. */
static int add_seats(mull_policy *policy, staged *s, mull__report *report)
{
    pthread_mutex_lock(&policy->lock);
    size_t wanted = policy->deciders.count;
    pthread_mutex_unlock(&policy->lock);
    s->decider_states = mull__zalloc(&policy->allocator, wanted, sizeof *s->decider_states);
    if (!s->decider_states)
        return MULL_ENOMEM;
    for (; s->count < wanted; s->count++) {
        mull__decider_state *decider_state;
        int status = mull__decider_state_new(&decider_state, policy, s->generation, report);
        if (status)
            return status;
        s->decider_states[s->count] = (uintptr_t)decider_state | MULL__NEW_STATE_MARK;
    }
    return MULL_OK;
}

/* publish puts the staged generation in force; what it replaced is staged then, to be freed. */
static void publish(mull_policy *policy, staged *s)
{
    size_t next = 0;
    pthread_mutex_lock(&policy->lock);
    mull__generation *old = policy->current;
    policy->current = s->generation;
    s->generation = old;
    for (mull__link *at = mull__list_first(&policy->deciders); at;
         at = mull__list_after(&policy->deciders, at)) {
        mull_decider *decider = MULL__ENTRY(at, mull_decider, link);
        uintptr_t fresh = s->decider_states[next];
        s->decider_states[next++] =
            atomic_exchange_explicit(&decider->slot, fresh, memory_order_acq_rel);
    }
    pthread_mutex_unlock(&policy->lock);
}

/* publish_unless_refused: no engine comes to work between what the others say and the exchange. */
static int publish_unless_refused(mull_policy *policy, staged *s, mull__report *report)
{
    if (pthread_mutex_lock(&policy->validating))
        return MULL_ESTATE;
    int status = ask_vetoes(policy, mull__generation_table(s->generation), report);
    if (status == MULL_OK)
        publish(policy, s);
    pthread_mutex_unlock(&policy->validating);
    return status;
}

/* said is what the host's scope of a table says, or all others do. */
typedef struct said {
    size_t rules;
    int anything;
} said;

static said said_by(const mull__table *table, int of_host)
{
    said all = {0};
    for (size_t i = 0; i < table->scope_count; i++) {
        const mull__scope *scope = &table->scopes[i];
        if ((scope->kind == MULL__HOST) != of_host)
            continue;
        all.rules += mull__scope_rules(scope);
        all.anything |= all.rules > 0 || scope->settings.set != 0 || scope->unrecoverable.count > 0;
    }
    return all;
}

static int refuse(const char *path, const char *text, mull__report *report)
{
    const char *slash = strrchr(path, '/');
    mull__report_add(slash ? slash + 1 : path, 0, text, report);
    return MULL_EREFUSED;
}

/* refuse_silent refuses a policy, or a host policy, that says nothing where it had rules: the
 * other's rules would take their place. */
static int refuse_silent(const mull_policy *policy, const mull__table *fresh, int of_host,
                         mull__report *report)
{
    const said before = said_by(mull__generation_table(policy->current), of_host);
    char text[256];
    if (before.rules == 0 || said_by(fresh, of_host).anything)
        return MULL_OK;
    snprintf(text, sizeof text,
             "there is nothing left in it, where the one in force has %zu rule%s; if no rule is "
             "meant, say a setting: policy.%s():dead_letter_queue(false)",
             before.rules, before.rules == 1 ? "" : "s", of_host ? "host" : "bus");
    return refuse(of_host ? policy->host_path : policy->path, text, report);
}

/* refuse_emptied refuses files without rule and override where those in force have rules: a file
 * that is being written, or for which the disk had no room, is empty, which is a policy, too; by
 * that one every failure would be a dead letter. A text that a call brings is meant. */
static int refuse_emptied(const mull_policy *policy, const mull__generation *fresh,
                          mull__report *report)
{
    const mull__table *table = mull__generation_table(fresh);
    size_t before = mull__generation_table(policy->current)->rule_count;
    if (before > 0 && !mull__table_decides(table)) {
        char text[256];
        snprintf(
            text, sizeof text,
            "there is no rule left, where the policy in force has %zu; if every failure is to be a "
            "dead letter, say so: policy.bus():default():dead_letter()",
            before);
        return refuse(policy->path, text, report);
    }
    int status = policy->host_path ? refuse_silent(policy, table, 0, report) : MULL_OK;
    return status == MULL_OK && policy->host_path ? refuse_silent(policy, table, 1, report)
                                                  : status;
}

/* build_and_publish is a reload under `building`. 1: the same bytes as those in force. */
static int build_and_publish(mull_policy *policy, mull__load *load)
{
    staged s = {0};
    int status = mull__generation_new(&s.generation, policy, load);
    if (status)
        return status;
    if (strcmp(mull__generation_name(s.generation), mull__generation_name(policy->current)) == 0)
        status = 1;
    else if (policy->has_files && !load->text)
        status = refuse_emptied(policy, s.generation, load->report);
    if (status == MULL_OK)
        status = add_seats(policy, &s, load->report);
    if (status == MULL_OK)
        status = publish_unless_refused(policy, &s, load->report);
    unstage(policy, &s);
    return status;
}

/* attempt carries out a load, and notes what it says of the files. */
static int attempt(mull_policy *policy, mull__load *load)
{
    int status = build_and_publish(policy, load);
    if (policy->has_files && !load->text)
        note_files(policy, load, status);
    mull__free(&policy->allocator, load->files);
    return status;
}

/* tell_engines: where this very thread asks validators, whose `problem` reloads, it is locked. */
static void tell_engines(mull_policy *policy, const mull_event *event)
{
    int locked = pthread_mutex_lock(&policy->validating) == 0;
    for (mull__link *at = mull__list_first(&policy->validators); at;
         at = mull__list_after(&policy->validators, at)) {
        mull__reload_validator *validator = MULL__ENTRY(at, mull__reload_validator, link);
        if (validator->told)
            validator->told(validator->data, event);
    }
    if (locked)
        pthread_mutex_unlock(&policy->validating);
}

void mull__policy_loaded_text(const mull_policy *policy, const mull__generation *generation,
                              char *text, size_t size)
{
    const mull__table *table = mull__generation_table(generation);
    size_t rules = table->rule_count;
    snprintf(text, size, "%.450s%s%.450s: %zu rule%s, %sgeneration %s", policy->path,
             policy->host_path ? " and " : "", policy->host_path ? policy->host_path : "", rules,
             rules == 1 ? "" : "s",
             mull__table_decides(table) ? "" : "so every failure is a dead letter, ",
             mull__generation_name(generation));
    mull__utf8_repair(text, strlen(text));
}

/* tell says what came of a reload. No lock is held while the embedder hears of it, who may ask, or
 * even load again. */
static void tell(mull_policy *policy, int status, const mull__report *report,
                 const mull__generation *effective)
{
    char text[sizeof policy->why];
    if (status) {
        mull__report_say(report, status, text, sizeof text);
        mull__utf8_repair(text, strlen(text));
    } else {
        mull__policy_loaded_text(policy, effective, text, sizeof text);
    }
    const mull_event event = {
        .kind = status ? MULL_EVENT_POLICY_REFUSED : MULL_EVENT_POLICY_LOADED,
        .text = text,
        .generation = mull__generation_name(effective),
    };
    mull__policy_emit(policy, &event);
    tell_engines(policy, &event);
}

/* finish ends what began with `building` locked, and tells of it. */
static int finish(mull_policy *policy, int status, const mull__report *report)
{
    mull__generation *current = mull__policy_current(policy);
    pthread_mutex_unlock(&policy->building);
    if (status <= 0)
        tell(policy, status, report, current);
    mull__generation_unref(current);
    return status;
}

/* reload_aloud: `building` is locked; it is unlocked at the end. */
static int reload_aloud(mull_policy *policy, const char *text, size_t text_size)
{
    mull__report report = {.problem = policy->problem, .data = policy->data};
    mull__load load = {.text = text, .text_size = text_size, .report = &report};
    return finish(policy, attempt(policy, &load), &report);
}

int mull_policy_reload(mull_policy *policy, const char *text, size_t text_size)
{
    if (!policy)
        return MULL_EINVAL;
    if (pthread_mutex_lock(&policy->building))
        return MULL_ESTATE;
    return reload_aloud(policy, text, text_size);
}

/* reload_quietly: the same, but what is refused as it was before isn't told again. What is refused
 * for another reason is: aloud, from its first mistake on. */
static int reload_quietly(mull_policy *policy)
{
    char known[sizeof policy->why]; /* written under `building` alone */
    memcpy(known, policy->why, sizeof known);
    mull__report report = {0};
    mull__load load = {.quietly = 1, .report = &report};
    int status = attempt(policy, &load);
    if (status == MULL_OK)
        return finish(policy, status, &report);
    if (status < 0 && strcmp(known, policy->why) != 0)
        return reload_aloud(policy, NULL, 0);
    pthread_mutex_unlock(&policy->building);
    return status;
}

int mull__policy_reload_files(mull_policy *policy, int quietly)
{
    if (pthread_mutex_trylock(&policy->building))
        return MULL_ESTATE;
    return quietly ? reload_quietly(policy) : reload_aloud(policy, NULL, 0);
}

int mull__policy_load_first(mull_policy *policy, const mull_policy_options *options)
{
    mull__report report = {.problem = policy->problem, .data = policy->data};
    mull__load load = {.text = options->text, .text_size = options->text_size, .report = &report};
    int status = mull__generation_new(&policy->current, policy, &load);
    if (status == MULL_OK && policy->has_files)
        note_files(policy, &load, status);
    mull__free(&policy->allocator, load.files);
    return status;
}
