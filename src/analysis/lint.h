/* lint.h: what is suspicious in a policy, as data; the words for people are in
 * lua/mulligan/check/. Each finding is certain, so that none is a false alarm; docs/findings/ has a
 * page for each kind. */
#ifndef MULL__LINT_H
#define MULL__LINT_H

#include "scope_usage.h"

/* mull__finding_kind: the numbers are part of what people script against: MUL001, ... */
typedef enum mull__finding_kind {
    MULL__HIDDEN = 1,           /* `other` decides before this rule: it has no matcher */
    MULL__HIDDEN_BY_EQUAL,      /* ... it has a matcher that passes wherever this one's does */
    MULL__UNRECOVERABLE_BEFORE, /* `other` is an unrecoverable declaration, `word` says that it
                                   has a matcher; file NULL: built in */
    MULL__REPLACED,             /* by `other` */
    MULL__NO_DEFAULT,           /* `scope` has none, and keeps the rules of `other.scope` away;
                                   `word`: an override is in force there; `number` 1: it could
                                   include them */
    MULL__MISSPELT,             /* `type` looks like `other.type` */
    MULL__TOO_LATE,       /* redelivery `number` comes after `limit` ms, which is what `word` says:
                             max_age or deadline */
    MULL__TOO_MANY_CALLS, /* `number`, of which max_attempts lets `limit` through */
    MULL__NEVER_PASSES,
    MULL__NO_EFFECT,           /* of the option, or step, `word`; of a delay of `number` ms where
                                  the cap is `limit` ms */
    MULL__NOTHING_REDELIVERED, /* so that max_age has no effect */
    MULL__NOTHING_INCLUDED,    /* `other.scope` has no rules */
    MULL__NO_RULES,            /* `word`: but an override */
    /* Where consumers are known: */
    MULL__DEAD_LETTERS_READ = 15, /* consumer `word` reads the queue `other.type` where those of
                                consumer `other.scope` go */
    MULL__LONG_DELAY,     /* `number` ms; those of transport `word` are at most `limit` ms */
    MULL__NOT_IN_SERVICE, /* the consumer or transport of `scope` */
    /* In any case: */
    MULL__STOPPED,          /* to look for what `word` says would take too long from here on */
    MULL__ENDLESS_OVERRIDE, /* no max_attempts, max_age or deadline is in force with it */
    MULL__COMPARES_TEXT,    /* of the field `word`, with `other.type`, which looks like a comparison
                               with a number */
    MULL__FINDING_KINDS     /* one more than the last; 14 stays free: it once was another's */
} mull__finding_kind;

/* mull__finding: what doesn't apply is NULL or 0. All of it is the table's. */
typedef struct mull__finding {
    mull__finding_kind kind;
    const char *file;
    int line;
    const char *scope, *type; /* of the rule or declaration it is about */
    mull_rule other;
    const char *word;
    int64_t number, limit;
} mull__finding;

/* mull__lint_run tells them, by kind, and within one kind in the order of the table. `fates` are of
 * all scopes. MULL_ENOMEM. */
int mull__lint_run(const mull__fates *fates, const mull__scope_users *users,
                   const mull_allocator *allocator,
                   void (*tell)(void *data, const mull__finding *finding), void *data);

/* mull__lint_not_there tells MULL__NOT_IN_SERVICE alone; of users it looks at names. */
void mull__lint_not_there(const mull__table *table, const mull__scope_users *users,
                          void (*tell)(void *data, const mull__finding *finding), void *data);

#endif
