/* claim.c: see claim.h. What takes a message's place is there before the message is gone, and what
 * can fail comes first: where it does, nothing has changed. */
#include "claim.h"

#include "base/alloc.h"

/* ---- Claims ---------------------------------------------------------------------------------- */

void mull__memory_claim_put(mull__memory_claim *claim, mull__item *item)
{
    claim->item = item;
    claim->reader->out++;
    item->queue->claimed++;
}

mull__item *mull__memory_claim_take(mull__memory_claim *claim)
{
    mull__item *item = claim->item;
    claim->item = NULL;
    if (claim->reader)
        claim->reader->out--;
    item->queue->claimed--;
    return item;
}

mull__memory_claim *mull__memory_claim_new(mull__memory_transport *self,
                                           mull__memory_reader *reader, mull__item *item)
{
    mull__memory_claim *claim = mull__zalloc(&self->allocator, 1, sizeof *claim);
    if (!claim)
        return NULL;
    claim->reader = reader;
    claim->content = item->content;
    item->content->references++;
    item->deliveries++;
    mull__memory_claim_put(claim, item);
    claim->deadline_ms = mull_port_now(self->port) + self->options.claim_timeout_ms;
    mull__list_push(&self->claims, &claim->link);
    claim->message = item->content->message;
    claim->message.queue = item->queue->name;
    claim->message.deliveries =
        self->options.deliveries == MULL_COUNTS_NOTHING ? 1 : item->deliveries;
    claim->delivery.size = sizeof claim->delivery;
    claim->delivery.message = &claim->message;
    return claim;
}

void mull__memory_claim_free(mull__memory_transport *self, mull__memory_claim *claim)
{
    mull__list_remove(&self->claims, &claim->link);
    mull__content_drop(&self->allocator, claim->content);
    mull__free(&self->allocator, claim);
}

/* ---- Settling -------------------------------------------------------------------------------- */

#define CLAIM_NO_DELAY "it can't be put off for that long here"

int mull__memory_claim_fail(mull__memory_claim *claim, int status, const char *why)
{
    claim->answer.why = why;
    return status;
}

int mull__memory_delay(const mull__memory_transport *self, int64_t due_ms, int64_t *out)
{
    const mull__memory_options *options = &self->options;
    int64_t left = due_ms > 0 ? due_ms - mull_port_wall(self->port) : 0;
    *out = MULL__AT_ONCE;
    if (left <= 0)
        return 0;
    if (!options->delay || (options->longest_delay_ms > 0 && left > options->longest_delay_ms))
        return MULL_EREFUSED;
    int64_t step = options->delay_step_ms > 0 ? options->delay_step_ms : 1;
    int64_t now = mull_port_now(self->port);
    *out = left > INT64_MAX - now - step ? INT64_MAX : now + (left + step - 1) / step * step;
    return 0;
}

/* claim_prepare makes items of what a handler sent, linked into a list. */
static int claim_prepare(mull__memory_transport *self, mull__memory_claim *claim, mull__list *items,
                         const mull_settlement *settlement)
{
    for (size_t i = 0; i < settlement->send_count; i++) {
        const mull_outgoing *outgoing = &settlement->sends[i];
        int64_t due_ms;
        if (mull__memory_delay(self, outgoing->due_ms, &due_ms) != 0)
            return mull__memory_claim_fail(claim, MULL_EREFUSED, CLAIM_NO_DELAY);
        mull__item *item = mull__item_new(&self->store, outgoing->message, due_ms);
        if (!item)
            return MULL_ENOMEM;
        mull__list_push(items, &item->link);
    }
    return 0;
}

static int claim_end(mull__memory_transport *self, mull__memory_claim *claim,
                     const mull_settlement *settlement)
{
    mull__list items;
    mull__list_init(&items);
    int status = claim_prepare(self, claim, &items, settlement);
    mull__link *link;
    while ((link = mull__list_pop(&items))) {
        mull__item *item = MULL__ENTRY(link, mull__item, link);
        if (status == 0)
            mull__queue_store_push(&self->store, item);
        else
            mull__item_free(&self->store, item);
    }
    if (status == 0)
        mull__item_free(&self->store, mull__memory_claim_take(claim));
    return status;
}

/* claim_rewrite gives an item its copy's headers, and the id where it came without one; once
 * nothing else can fail any more. The claim has the old content still. */
static int claim_rewrite(mull__memory_transport *self, mull__item *item,
                         const mull_settlement *settlement)
{
    mull__content *content =
        mull__content_new(&self->allocator, &item->content->message, settlement);
    if (!content)
        return MULL_ENOMEM;
    mull__content_drop(&self->allocator, item->content);
    item->content = content;
    return 0;
}

/* claim_move: back to its own queue, or to another, as a copy that nobody was handed yet. */
static int claim_move(mull__memory_transport *self, mull__memory_claim *claim,
                      const mull_settlement *settlement)
{
    int64_t due_ms;
    if (mull__memory_delay(self, settlement->due_ms, &due_ms) != 0)
        return mull__memory_claim_fail(claim, MULL_EREFUSED, CLAIM_NO_DELAY);
    mull__queue *queue = claim->item->queue;
    if (settlement->kind == MULL_SETTLE_DEAD_LETTER)
        queue = mull__queue_store_queue(&self->store, settlement->queue);
    int status = queue ? claim_rewrite(self, claim->item, settlement) : MULL_ENOMEM;
    if (status != 0)
        return status;
    mull__item *item = mull__memory_claim_take(claim);
    item->queue = queue;
    item->deliveries = 0;
    item->due_ms = due_ms;
    mull__queue_store_push(&self->store, item);
    return 0;
}

/* claim_give_back: to its old place where it is due at once, or among those that are put off. */
static int claim_give_back(mull__memory_transport *self, mull__memory_claim *claim,
                           const mull_settlement *settlement)
{
    int64_t due_ms;
    if (mull__memory_delay(self, settlement->due_ms, &due_ms) != 0)
        return mull__memory_claim_fail(claim, MULL_EREFUSED, CLAIM_NO_DELAY);
    int status = claim_rewrite(self, claim->item, settlement);
    if (status != 0)
        return status;
    mull__item *item = mull__memory_claim_take(claim);
    if (self->options.deliveries != MULL_COUNTS_HANDOUTS)
        item->deliveries--;
    if (due_ms == MULL__AT_ONCE && !self->options.tail) {
        mull__queue_store_requeue(item);
        return 0;
    }
    item->due_ms = due_ms;
    mull__queue_store_push(&self->store, item);
    return 0;
}

int mull__memory_claim_settle(mull__memory_transport *self, mull__memory_claim *claim,
                              const mull_settlement *settlement)
{
    if (!claim->item)
        return mull__memory_claim_fail(claim, MULL_ELOST, "it was claimed for too long");
    switch (settlement->kind) {
    case MULL_SETTLE_REDELIVER:
    case MULL_SETTLE_DEAD_LETTER:
        return claim_move(self, claim, settlement);
    case MULL_SETTLE_GIVE_BACK:
        return claim_give_back(self, claim, settlement);
    case MULL_SETTLE_NOTE:
        return claim_rewrite(self, claim->item, settlement);
    default:
        return claim_end(self, claim, settlement);
    }
}
