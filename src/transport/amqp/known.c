/* known.c: what is known of queues, as long as the connection stands; see state.h. There are few:
 * those where delays end, and those of dead letters. */
#include "base/alloc.h"
#include "state.h"

#include <string.h>

typedef struct mull__amqp_queue {
    struct mull__amqp_queue *next;
    int facts;
    char name[];
} queue;

static queue **find(const mull__amqp *t, const char *name)
{
    queue **at = (queue **)(uintptr_t)&t->known;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

int mull__amqp_knows(const mull__amqp *t, const char *name, mull__amqp_fact fact)
{
    const queue *found = *find(t, name);
    return found && (found->facts & (int)fact);
}

/* What can't be noted, for want of memory, is asked again. */
void mull__amqp_note(mull__amqp *t, const char *name, mull__amqp_fact fact)
{
    queue **at = find(t, name);
    if (!*at && (*at = mull__zalloc(&t->allocator, 1, sizeof **at + strlen(name) + 1)))
        strcpy((*at)->name, name);
    if (*at)
        (*at)->facts |= (int)fact;
}

void mull__amqp_forget(mull__amqp *t, const char *name)
{
    queue **at = find(t, name), *found = *at;
    if (!found)
        return;
    *at = found->next;
    mull__free(&t->allocator, found);
}

void mull__amqp_unbound(mull__amqp *t)
{
    for (queue *q = t->known; q; q = q->next)
        q->facts &= ~MULL__AMQP_BOUND;
}

void mull__amqp_forget_all(mull__amqp *t)
{
    while (t->known)
        mull__amqp_forget(t, t->known->name);
}
