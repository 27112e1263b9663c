/* sandbox_pair.h: a policy and, where it has one, its host policy: what the embedder gave of the
 * two, and a sandbox for each, with budgets of its own. The host policy runs first: the policy's
 * checks know what it says of types and of its scope. */
#ifndef MULL__SANDBOX_PAIR_H
#define MULL__SANDBOX_PAIR_H

#include "base/arena.h"
#include "sandbox.h"

/* mull__policy_texts is what outlives a load: copies of what the embedder gave, of which the next
 * reload is made again. */
typedef struct mull__policy_texts {
    mull__arena arena;
    const char
        *folder;      /* of the policy's files: "" or ending in '/'; NULL: it was given as a text */
    const char *main; /* the first file's name */
    const char *text; /* NULL: it is read from its file */
    size_t text_size;
    const char *host;      /* the name of the host policy; NULL: there is none */
    const char *host_path; /* where it is read from, as the embedder calls it */
    const char *host_text; /* NULL: it is read from its file */
    size_t host_text_size;
    mull__log log;
} mull__policy_texts;

typedef struct mull__sandbox_pair {
    mull__sandbox *host, *own; /* the first is NULL where the host has no policy of its own */
} mull__sandbox_pair;

/* mull__sandbox_pair_run runs a source's files, `again` where they ran before; `silent`: prints
 * nothing. The pair, empty so far, is the caller's whatever it returns. MULL_ENOMEM; MULL_EPOLICY:
 * not even the mistakes could be found, and mull__sandbox_pair_tell says why. */
int mull__sandbox_pair_run(mull__sandbox_pair *pair, mull__policy_texts *texts,
                           mull__source *source, int again, int silent);
void mull__sandbox_pair_free(mull__sandbox_pair *pair);

/* mull__sandbox_pair_tell says what a run failed with, where that is a mistake of the policy's. */
void mull__sandbox_pair_tell(const mull__sandbox_pair *pair, int status, mull__report *report);

#endif
