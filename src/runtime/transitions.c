/* transitions.c: what a message, and the call of its handler, may become: one table each.
 *
 * A handler that times out works on though its message goes on without it: so the call has states
 * of its own. The message is released when it is over for the broker and has no call. A step that
 * can't be ends a build for tests. */
#include "transitions.h"

/*-
 *              ┌─ for want of memory ─┐
 *              v                      │
 *   ──────> WAITING ─────────────> WORKING ──> PAUSING ───┬─ with a slot ─> WORKING
 *     │                                           ^       └─ without one ─> WAITING
 *     └─ a dead owner's call, judged ─────────────┘
 *
 *   WAITING, WORKING, PAUSING ──> SETTLING ──┬──> SETTLED, LOST
 *                       │             │      └──> ABANDONED ──> LOST
 *                       └──> LOST     └─ noted ──> PAUSING
 */
void mull__message_becomes(mull__delivery *d, mull__message_state next)
{
    /* clang-format off */
    static const char may[][MULL__MESSAGE_STATES] = {
        /*                   waiting working pausing settling settled lost abandoned */
        [MULL__WAITING]   = {0,      1,      1,      1,       0,      1,   0},
        [MULL__WORKING]   = {1,      0,      1,      1,       0,      1,   0},
        [MULL__PAUSING]   = {1,      1,      0,      1,       0,      1,   0},
        [MULL__SETTLING]  = {0,      0,      1,      0,       1,      1,   1},
        [MULL__SETTLED]   = {0,      0,      0,      0,       0,      0,   0},
        [MULL__LOST]      = {0,      0,      0,      0,       0,      0,   0},
        [MULL__ABANDONED] = {0,      0,      0,      0,       0,      1,   0},
    };
    /* clang-format on */
    MULL__ASSERT(may[d->state][next]);
    d->state = next;
}

/*-
 *   NONE ──handler is called──> OPEN ──mull_done──> ENDED ──the loop saw it──> NONE
 *                                └──> DETACHED ──────^
 */
void mull__call_becomes(mull__call_slot *slot, mull__call_state next)
{
    /* clang-format off */
    static const char may[][MULL__CALL_STATES] = {
        /*                      none open detached ended */
        [MULL__CALL_NONE]     = {0,   1,   0,       0},
        [MULL__CALL_OPEN]     = {0,   0,   1,       1},
        [MULL__CALL_DETACHED] = {0,   0,   0,       1},
        [MULL__CALL_ENDED]    = {1,   0,   0,       0},
    };
    /* clang-format on */
    MULL__ASSERT(may[slot->state][next]);
    slot->state = next;
}

void mull__slot_take_back(mull__delivery *d)
{
    if (d->slot)
        d->consumer->slots--;
    if (d->held)
        d->consumer->held--;
    d->slot = d->held = 0;
}

void mull__slot_yield(mull__delivery *d)
{
    mull__slot_free(d);
    d->consumer->held++;
    d->held = 1;
}

void mull__gate_set(mull__delivery *d, int waits)
{
    if (!d->held) { /* a retry that waits is counted already */
        d->consumer->gated += (uint32_t)waits;
        d->consumer->gated -= (uint32_t)d->gated;
    }
    d->gated = waits;
}
