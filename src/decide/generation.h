/* generation.h: a policy as it was loaded at one moment, and the seats that decide by it.
 *
 *   holder (counted) <── generation (counted): table, kept text, name
 *                              ^
 *                              └── seat: a state of the guest for its functions, scratch
 */
#ifndef MULL__GENERATION_H
#define MULL__GENERATION_H

#include <stdatomic.h>

#include "decide.h"
#include "ids.h"

/* mull__holder_keep and _drop count those who need the holder's guest: its users, until the last of
 * them has left, and each generation. */
void mull__holder_keep(mull_policy *policy);
void mull__holder_drop(mull_policy *policy);
const mull_allocator *mull__holder_allocator(const mull_policy *policy);
const mull__guest *mull__holder_guest(const mull_policy *policy, void **data);
mull__ids *mull__holder_ids(mull_policy *policy);

/* mull__generation_new makes of a load a generation that the caller keeps once; `load->files` is
 * the caller's. Errors as mull__guest.compile. */
int mull__generation_new(mull__generation **out, mull_policy *policy, mull__load *load);

/* MULL__LINE is how far what one thread writes stays from what others have: the bytes of a cache
 * line, which moves from core to core as a whole. Two seats or deciders may lie side by side. */
enum { MULL__LINE = 64 };

/* mull__seat is what one decider needs to decide by one generation, which it keeps. It is counted:
 * whoever has still to call its `notify` keeps it, too. */
struct mull__seat {
    atomic_size_t keepers;
    mull__generation *generation;
    const mull__table *table; /* the generation's, as these are */
    const mull__resolved_ids *resolved;
    const char *name;
    void *state; /* the guest's; NULL where the table has no functions */
    char apart[MULL__LINE];
    uint64_t seen[]; /* mull__table_seen words, and MULL__LINE bytes that nobody uses */
};

/* mull__seat_new makes one that the caller keeps once: errors as mull__guest.state_new. */
int mull__seat_new(mull__seat **out, mull_policy *policy, mull__generation *generation,
                   mull__report *report);

#endif
