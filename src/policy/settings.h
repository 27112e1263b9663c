/* settings.h: the settings of a scope, a row each. To add one, add its row, and the code that obeys
 * it. All else follows from the rows: what a policy may say and how that is checked
 * (lua/mulligan/policy/settings.lua), how it is read (src/lua/language/compile.c), which scope's
 * value is in force, the digest, what `table` shows, and the types for editors
 * (tools/docgen/looks.lua). */
#ifndef MULL__SETTINGS_H
#define MULL__SETTINGS_H

#include "limits.h"

/* The kinds: what a policy says, and the type in C.
 *
 *   queue        the name of a queue; `false` is the default
 *   span         a span of time, whole milliseconds from 0; its field ends in _ms, its word doesn't
 *   count        a whole number from 1
 *   function     the number of a function, and 1
 *   rate_limits  { after = 10, wait = "5s" }: the statements, one for each `per`; count 0: off
 *   call_limits  { rate = "100/s", burst = 20 }: likewise */
typedef const char *mull__setting_queue;
typedef int64_t mull__setting_span, mull__setting_count, mull__setting_function;

typedef struct mull__setting_rate_limits {
    const mull__rate_limit *items;
    size_t count;
} mull__setting_rate_limits;

typedef struct mull__setting_call_limits {
    const mull__call_limit *items;
    size_t count;
} mull__setting_call_limits;

/* X(NUMBER, field, kind, default, example): the example is of a function. In the order in which
 * they are shown. */
#define MULL__EACH_SETTING(X)                                                                      \
    X(DEAD_LETTER_QUEUE, dead_letter_queue, queue, "error", "")                                    \
    X(MAX_AGE, max_age_ms, span, MULL__OFF, "")                                                    \
    X(DEADLINE, deadline_ms, span, MULL__OFF, "")                                                  \
    X(MAX_ATTEMPTS, max_attempts, count, MULL__OFF, "")                                            \
    X(MAX_DELIVERIES, max_deliveries, count, 20, "")                                               \
    X(RATE_LIMIT, rate_limit, rate_limits, {0}, "")                                                \
    X(LIMIT, limit, call_limits, {0}, "")                                                          \
    X(OVERRIDE, override, function, MULL__OFF, "function(failure, verdict, config) ... end")       \
    X(NOTIFY, notify, function, MULL__OFF, "function(event) ... end")

typedef enum mull__setting {
#define MULL__SETTING_NUMBER(NUMBER, ...) MULL__##NUMBER,
    MULL__EACH_SETTING(MULL__SETTING_NUMBER)
#undef MULL__SETTING_NUMBER
        MULL__SETTINGS
} mull__setting;

#define MULL__SETTING_FIELD(NUMBER, field, kind, ...) mull__setting_##kind field;

/* mull__settings are those of one scope, or those in force somewhere. Zeroed: none is set. */
typedef struct mull__settings {
    unsigned set; /* bit MULL__DEAD_LETTER_QUEUE, ...: which are, to `false` too */
    MULL__EACH_SETTING(MULL__SETTING_FIELD)
} mull__settings;

/* The defaults, all set. */
extern const mull__settings mull__default_settings;

static inline int mull__is_set(const mull__settings *settings, mull__setting setting)
{
    return (settings->set >> setting & 1) != 0;
}

#endif
