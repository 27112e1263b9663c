/* list.h: a doubly linked list whose links live in the elements.
 *
 *   struct task { mull__link link; ... };
 *   mull__list_push(&ready, &task->link);
 *   struct task *t = MULL__ENTRY(mull__list_pop(&ready), struct task, link);
 *
 * A link that is zero or was removed is in no list, and removing it again does nothing. */
#ifndef MULL__LIST_H
#define MULL__LIST_H

#include <stddef.h>

typedef struct mull__link {
    struct mull__link *next, *previous;
} mull__link;

typedef struct mull__list {
    mull__link head;
    size_t count;
} mull__list;

#define MULL__ENTRY(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline void mull__list_init(mull__list *list)
{
    list->head.next = list->head.previous = &list->head;
    list->count = 0;
}

/* mull__list_put puts a link before one of the list. */
static inline void mull__list_put(mull__list *list, mull__link *link, mull__link *before)
{
    link->next = before;
    link->previous = before->previous;
    link->previous->next = link;
    before->previous = link;
    list->count++;
}

static inline void mull__list_push(mull__list *list, mull__link *link)
{
    mull__list_put(list, link, &list->head);
}

static inline void mull__list_push_front(mull__list *list, mull__link *link)
{
    mull__list_put(list, link, list->head.next);
}

static inline void mull__list_remove(mull__list *list, mull__link *link)
{
    if (!link->next)
        return;
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->next = link->previous = NULL;
    list->count--;
}

/* mull__list_first is the first link, NULL where the list is empty. */
static inline mull__link *mull__list_first(mull__list *list)
{
    return list->count ? list->head.next : NULL;
}

/* mull__list_after is the link behind this one, NULL at the end. */
static inline mull__link *mull__list_after(mull__list *list, mull__link *link)
{
    return link->next == &list->head ? NULL : link->next;
}

static inline mull__link *mull__list_pop(mull__list *list)
{
    mull__link *first = mull__list_first(list);
    if (first)
        mull__list_remove(list, first);
    return first;
}

/* mull__list_append moves all of `from` behind the last one of `to`. */
static inline void mull__list_append(mull__list *to, mull__list *from)
{
    mull__link *link;
    while ((link = mull__list_pop(from)))
        mull__list_push(to, link);
}

#endif
