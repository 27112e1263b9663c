/* queue_store.c: see queue_store.h. */
#include "queue_store.h"

#include "base/alloc.h"

#include <string.h>

/* ---- Items ----------------------------------------------------------------------------------- */

mull__content *mull__content_new(const mull_allocator *allocator, const mull_message *message,
                                 const mull_settlement *settlement)
{
    mull__content *content =
        mull__alloc(allocator, sizeof *content + mull_message_size(message, settlement));
    if (!content)
        return NULL;
    content->references = 1;
    mull_message_copy(&content->message, message, settlement, (mull_header *)(content + 1));
    return content;
}

void mull__content_drop(const mull_allocator *allocator, mull__content *content)
{
    if (content && --content->references == 0)
        mull__free(allocator, content);
}

void mull__item_free(mull__queue_store *store, mull__item *item)
{
    mull__content_drop(&store->allocator, item->content);
    mull__free(&store->allocator, item);
}

mull__item *mull__item_new(mull__queue_store *store, const mull_message *message, int64_t due_ms)
{
    mull__queue *queue = mull__queue_store_queue(store, message->queue);
    mull__item *item = queue ? mull__zalloc(&store->allocator, 1, sizeof *item) : NULL;
    if (!item)
        return NULL;
    item->queue = queue;
    item->due_ms = due_ms;
    item->content = mull__content_new(&store->allocator, message, NULL);
    if (item->content)
        return item;
    mull__item_free(store, item);
    return NULL;
}

/* ---- The heap of those put off: a pairing heap ----------------------------------------------- */

static int is_before(const mull__item *a, const mull__item *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->seq < b->seq;
}

static mull__item *meld(mull__item *a, mull__item *b)
{
    if (!a || !b)
        return a ? a : b;
    mull__item *first = is_before(a, b) ? a : b, *second = first == a ? b : a;
    second->sibling = first->child;
    first->child = second;
    return first;
}

/* meld_children makes one heap of a list of them: in pairs from the left, then those together. */
static mull__item *meld_children(mull__item *child)
{
    mull__item *pairs = NULL, *all = NULL;
    while (child) {
        mull__item *a = child, *b = child->sibling;
        child = b ? b->sibling : NULL;
        a->sibling = NULL;
        if (b)
            b->sibling = NULL;
        mull__item *pair = meld(a, b);
        pair->sibling = pairs;
        pairs = pair;
    }
    while (pairs) {
        mull__item *pair = pairs;
        pairs = pair->sibling;
        pair->sibling = NULL;
        all = meld(all, pair);
    }
    return all;
}

static mull__item *pop_later(mull__queue *queue)
{
    mull__item *first = queue->later;
    queue->later = meld_children(first->child);
    queue->later_count--;
    first->child = NULL;
    return first;
}

/* ---- Queues ---------------------------------------------------------------------------------- */

void mull__queue_store_init(mull__queue_store *store, const mull_allocator *allocator)
{
    *store = (mull__queue_store){.allocator = *allocator};
    mull__list_init(&store->queues);
}

void mull__queue_store_free(mull__queue_store *store)
{
    mull__link *link;
    while ((link = mull__list_pop(&store->queues))) {
        mull__queue *queue = MULL__ENTRY(link, mull__queue, link);
        mull__item *item;
        while ((item = mull__queue_take(queue, INT64_MAX)))
            mull__item_free(store, item);
        mull__free(&store->allocator, queue);
    }
}

mull__queue *mull__queue_store_queue(mull__queue_store *store, const char *name)
{
    mull__link *link = mull__list_first(&store->queues);
    for (; link; link = mull__list_after(&store->queues, link)) {
        mull__queue *queue = MULL__ENTRY(link, mull__queue, link);
        if (strcmp(queue->name, name) == 0)
            return queue;
    }
    size_t size = strlen(name) + 1;
    mull__queue *queue = mull__zalloc(&store->allocator, 1, sizeof *queue + size);
    if (!queue)
        return NULL;
    memcpy(queue->name, name, size);
    mull__list_init(&queue->due);
    mull__list_init(&queue->line);
    mull__list_push(&store->queues, &queue->link);
    return queue;
}

void mull__queue_store_push(mull__queue_store *store, mull__item *item)
{
    mull__queue *queue = item->queue;
    item->seq = ++store->last_seq;
    if (item->due_ms == MULL__AT_ONCE) {
        mull__list_push(&queue->line, &item->link);
        return;
    }
    queue->later = meld(queue->later, item);
    queue->later_count++;
}

/* put_before links an item into a list before `link`; NULL: at its end. */
static void put_before(mull__list *list, mull__link *link, mull__link *item)
{
    if (!link) {
        mull__list_push(list, item);
        return;
    }
    item->next = link;
    item->previous = link->previous;
    item->previous->next = item;
    link->previous = item;
    list->count++;
}

void mull__queue_store_requeue(mull__item *item)
{
    mull__queue *queue = item->queue;
    mull__list *list = item->due_ms == MULL__AT_ONCE ? &queue->line : &queue->due;
    mull__link *link = mull__list_first(list);
    while (link && is_before(MULL__ENTRY(link, mull__item, link), item))
        link = mull__list_after(list, link);
    put_before(list, link, &item->link);
}

/* wake moves what has come to be due. Whatever is put off later is due later than now. */
static void wake(mull__queue *queue, int64_t now_ms)
{
    while (queue->later && queue->later->due_ms <= now_ms)
        mull__list_push(&queue->due, &pop_later(queue)->link);
}

mull__item *mull__queue_take(mull__queue *queue, int64_t now_ms)
{
    wake(queue, now_ms);
    mull__link *link = mull__list_pop(queue->due.count ? &queue->due : &queue->line);
    return link ? MULL__ENTRY(link, mull__item, link) : NULL;
}

mull_depth mull__queue_count(mull__queue *queue, int64_t now_ms)
{
    wake(queue, now_ms);
    return (mull_depth){.ready = queue->due.count + queue->line.count,
                        .delayed = queue->later_count,
                        .claimed = queue->claimed,
                        .next_due_ms = queue->later ? queue->later->due_ms : INT64_MAX};
}
