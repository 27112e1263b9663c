/* decisions.h: what a decider's client asks: decide, decide_many, explain, policy. */
#ifndef MULL__DECISIONS_H
#define MULL__DECISIONS_H

#include "base/arena.h"
#include "session.h"
#include "wire/json_write.h"

/* mull__decisions decides on the loop's thread. What is plain is read and decided here; all else
 * goes to `ask`, which knows Lua, and all its words for what is wrong.
 *
 * ask(data, what, json, answer, why): `what` is "decide", "explain" or "policy", `json` an object.
 * 0: `answer` has JSON; MULL_EINVAL: `why`, of MULL__SESSION_WHY bytes, says what is wrong with the
 * object; else an error that mull_strerror knows. */
typedef struct mull__decisions {
    mull_policy *policy;
    mull_decider *decider;
    mull_allocator allocator;
    mull__arena arena; /* of one failure after the other */
    int (*ask)(void *data, const char *what, const char *json, mull__json_text *answer, char *why);
    void *data;
} mull__decisions;

enum { MULL__DECISIONS_MANY = 1000 };

extern const mull__session_ops mull__decisions_session; /* its data is a mull__decisions */

#endif
