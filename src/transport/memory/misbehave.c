/* misbehave.c: see misbehave.h. */
#include "misbehave.h"

#include "base/alloc.h"

#include <string.h>

/* ---- Settling -------------------------------------------------------------------------------- */

static int misbehave_copies(const mull_settlement *settlement, int64_t due_ms)
{
    return settlement->kind == MULL_SETTLE_REDELIVER ||
           settlement->kind == MULL_SETTLE_DEAD_LETTER || settlement->send_count > 0 ||
           (settlement->kind == MULL_SETTLE_GIVE_BACK && due_ms != MULL__AT_ONCE);
}

/* misbehave_twin makes an item that can take another's place in a claim. NULL: out of memory. */
static mull__item *misbehave_twin(mull__memory_transport *self, const mull__item *item)
{
    mull__item *twin = mull__alloc(&self->allocator, sizeof *twin);
    if (!twin)
        return NULL;
    *twin = *item;
    twin->content->references++;
    return twin;
}

/* misbehave_halfway settles for a first time and keeps the claim, then ends it. What loses its
 * claim in between, and comes again, is settled whole: else it would make copies for ever. */
static int misbehave_halfway(mull__memory_transport *self, mull__memory_claim *claim,
                             const mull_settlement *settlement)
{
    int64_t due_ms;
    if (claim->misbehaved && claim->item) {
        mull__item_free(&self->store, mull__memory_claim_take(claim));
        return 0;
    }
    if (!claim->item || claim->item->halved ||
        mull__memory_delay(self, settlement->due_ms, &due_ms) != 0 ||
        !misbehave_copies(settlement, due_ms))
        return mull__memory_claim_settle(self, claim, settlement);
    mull__item *twin = misbehave_twin(self, claim->item);
    int status = twin ? mull__memory_claim_settle(self, claim, settlement) : MULL_ENOMEM;
    if (status != 0) {
        if (twin)
            mull__item_free(&self->store, twin);
        return status;
    }
    twin->halved = 1;
    mull__memory_claim_put(claim, twin);
    claim->misbehaved = 1;
    return mull__memory_claim_fail(claim, MULL_EIO, "settle=halfway: only its copy is there");
}

/* misbehave_elsewhere says whether a settlement puts anything in another queue. */
static int misbehave_elsewhere(const mull__memory_claim *claim, const mull_settlement *settlement)
{
    const char *own = claim->message.queue;
    if (settlement->kind == MULL_SETTLE_DEAD_LETTER)
        return strcmp(settlement->queue, own) != 0;
    for (size_t i = 0; i < settlement->send_count; i++)
        if (strcmp(settlement->sends[i].message->queue, own) != 0)
            return 1;
    return 0;
}

int mull__misbehave_settle(mull__memory_transport *self, mull__memory_claim *claim,
                           const mull_settlement *settlement)
{
    if (settlement->kind == MULL_SETTLE_NOTE && !self->options.note)
        return mull__memory_claim_fail(claim, MULL_EREFUSED, "note=no: headers can't be noted");
    if (self->options.settle == MULL__SETTLE_HALFWAY)
        return misbehave_halfway(self, claim, settlement);
    if (self->options.settle == MULL__SETTLE_REFUSED && claim->item && !claim->misbehaved &&
        misbehave_elsewhere(claim, settlement)) {
        claim->misbehaved = 1;
        return mull__memory_claim_fail(claim, MULL_EREFUSED, "settle=refused: no copy elsewhere");
    }
    return mull__memory_claim_settle(self, claim, settlement);
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* misbehave_again: where there is no memory, this one misbehaves no further. */
static void misbehave_again(mull__memory_transport *self, const mull__memory_answer *given)
{
    mull__memory_answer *again = mull__alloc(&self->allocator, sizeof *again);
    if (!again)
        return;
    *again = *given;
    mull__memory_tell_later(self, again);
}

int mull__misbehave_answers(mull__memory_transport *self, const mull__memory_answer *answer)
{
    switch (self->options.answers) {
    case MULL__ANSWERS_NONE:
        return 0;
    case MULL__ANSWERS_TWICE:
        return 2;
    case MULL__ANSWERS_LATE:
        if (answer->kind != MULL__MEMORY_SETTLED && !self->closing)
            misbehave_again(self, answer);
        return 1;
    default:
        return 1;
    }
}

void mull__misbehave_released(mull__memory_transport *self, const mull__memory_claim *claim)
{
    if (self->options.answers == MULL__ANSWERS_LATE && claim->answer.ticket && !self->closing)
        misbehave_again(self, &claim->answer);
}

/* ---- Depths ---------------------------------------------------------------------------------- */

void mull__misbehave_depth(const mull__memory_transport *self, mull_depth *depth)
{
    if (self->options.depth == MULL_DEPTH_EXACT)
        return;
    if (self->options.depth == MULL_DEPTH_NONE)
        depth->ready = MULL_UNKNOWN;
    depth->delayed = depth->claimed = MULL_UNKNOWN;
    depth->next_due_ms = INT64_MAX;
}
