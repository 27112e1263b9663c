/* settle.c: what becomes of deliveries, see state.h. What takes a message's place is confirmed
 * before the message is acknowledged; acknowledgements of a turn are written together. */
#include "base/alloc.h"
#include "state.h"

#include <stdio.h>
#include <string.h>

enum { SECOND_MS = 1000, AT_A_TIME = 32, QUIET_MS = 100, BUSY_MS = 1000 };

/* ---- To the broker --------------------------------------------------------------------------- */

static void tell(mull__amqp *t, mull__amqp_delivery *d, int what)
{
    d->told = what;
    d->source->has_told = t->has_told = 1;
}

static void write_told(mull__amqp *t, const mull__amqp_source *source, int what, uint64_t tag,
                       int multiple)
{
    amqp_basic_ack_t ack = {.delivery_tag = tag, .multiple = multiple};
    amqp_basic_nack_t nack = {.delivery_tag = tag, .multiple = multiple, .requeue = 1};
    int is_ack = what == MULL__AMQP_ACK;
    mull__amqp_send(&t->session, source->channel,
                    is_ack ? AMQP_BASIC_ACK_METHOD : AMQP_BASIC_NACK_METHOD,
                    is_ack ? (void *)&ack : &nack);
    t->told_ms = mull__amqp_now(t);
    if (t->told_ms >= t->told_since_ms + SECOND_MS) {
        t->told_before = t->told_ms < t->told_since_ms + 2 * SECOND_MS ? t->told_count : 0;
        t->told_count = 0;
        t->told_since_ms = t->told_ms;
    }
    t->told_count++;
    t->acknowledgements++;
}

uint64_t mull__amqp_read_ms(const mull__amqp *t)
{
    return t->told_count + t->told_before > AT_A_TIME ? BUSY_MS : QUIET_MS;
}

void mull__amqp_delivery_over(mull__amqp *t, mull__amqp_delivery *d)
{
    if (d->is_over)
        return;
    mull__list_remove(&d->source->deliveries, &d->link);
    if (d->is_released) {
        mull__amqp_delivery_free(t, d);
        return;
    }
    d->is_over = 1;
    mull__list_push(&t->over, &d->link);
}

/* tell_first tells of as many as stand first and have the same end, by one method: that is about
 * all up to its tag, so each delivery that the broker still counts as ours is in the list. 0: none
 * has.
 */
static int tell_first(mull__amqp *t, mull__amqp_source *source)
{
    mull__link *link;
    int what = 0, count = 0;
    uint64_t tag = 0;
    while ((link = mull__list_first(&source->deliveries))) {
        mull__amqp_delivery *d = MULL__ENTRY(link, mull__amqp_delivery, link);
        if (!d->told || (what && d->told != what))
            break;
        what = d->told;
        tag = d->tag;
        count++;
        mull__amqp_delivery_over(t, d);
    }
    if (count > 0)
        write_told(t, source, what, tag, count > 1);
    return count > 0;
}

void mull__amqp_tell(mull__amqp *t, mull__amqp_source *source)
{
    mull__link *after;
    source->has_told = 0;
    while (tell_first(t, source))
        ;
    for (mull__link *link = mull__list_first(&source->deliveries); link; link = after) {
        mull__amqp_delivery *d = MULL__ENTRY(link, mull__amqp_delivery, link);
        after = mull__list_after(&source->deliveries, link);
        if (!d->told)
            continue;
        write_told(t, source, d->told, d->tag, 0);
        mull__amqp_delivery_over(t, d);
    }
}

/* ---- To the engine --------------------------------------------------------------------------- */

static void answer(mull__amqp *t, mull__amqp_delivery *d, int status, const char *why)
{
    char text[sizeof d->why];
    snprintf(text, sizeof text, "%s", why ? why : "");
    mull__free(&t->allocator, d->posts);
    d->posts = NULL;
    d->settlement = NULL;
    d->left = d->post_count = 0;
    if (status == 0) {
        d->is_out = 0;
        d->source->out--;
        if (d->source->in_stock > 0)
            mull__amqp_wake(t);
    }
    mull_port_answer(t->port, d->ticket, status, status ? text : NULL);
}

void mull__amqp_settle_part(mull__amqp *t, mull__amqp_delivery *d, int status, const char *why)
{
    if (status != 0 && d->status != MULL_EREFUSED) {
        d->status = status;
        snprintf(d->why, sizeof d->why, "%s", why ? why : "");
    }
    if (--d->left > 0)
        return;
    if (d->status == 0)
        tell(t, d, MULL__AMQP_ACK);
    answer(t, d, d->status, d->why);
}

void mull__amqp_settle_lost(mull__amqp *t, mull__amqp_delivery *d, const char *why)
{
    d->is_lost = 1;
    for (size_t i = 0; i < d->post_count; i++)
        mull__amqp_post_drop(t, &d->posts[i]);
    answer(t, d, MULL_ELOST, why);
}

/* begin_posts makes what takes a message's place, and puts it on its way. */
static int begin_posts(mull__amqp *t, mull__amqp_delivery *d)
{
    const mull_settlement *settlement = d->settlement;
    size_t copies = settlement->kind != MULL_SETTLE_ACK;
    size_t count = copies + settlement->send_count;
    mull__amqp_post *posts = mull__zalloc(&t->allocator, count, sizeof *posts);
    if (!posts)
        return MULL_ENOMEM;
    d->posts = posts;
    d->left = d->post_count = count;
    for (size_t i = 0; i < count; i++) {
        posts[i].of = d;
        posts[i].outgoing = i < copies ? NULL : &settlement->sends[i - copies];
    }
    /* The last one may end all of it. */
    for (size_t i = 0; i < count; i++)
        mull__amqp_post_begin(t, &posts[i]);
    return 0;
}

void mull__amqp_settle(mull__amqp *t, mull__amqp_delivery *d, const mull_settlement *settlement,
                       mull_ticket ticket)
{
    d->settlement = settlement;
    d->ticket = ticket;
    d->status = 0;
    d->why[0] = 0;
    if (d->is_lost || !t->is_open) {
        d->is_lost = 1;
        mull__amqp_delivery_over(t, d);
        answer(t, d, MULL_ELOST, "the connection is lost");
    } else if (settlement->kind == MULL_SETTLE_NOTE) {
        answer(t, d, MULL_EREFUSED, "this transport takes no notes");
    } else if (settlement->kind == MULL_SETTLE_DISCARD ||
               (settlement->kind == MULL_SETTLE_ACK && settlement->send_count == 0)) {
        tell(t, d, MULL__AMQP_ACK);
        answer(t, d, 0, NULL);
    } else if (settlement->kind == MULL_SETTLE_GIVE_BACK && settlement->as_it_came &&
               settlement->due_ms <= 0) {
        tell(t, d, MULL__AMQP_NACK);
        answer(t, d, 0, NULL);
    } else if (begin_posts(t, d) != 0) {
        answer(t, d, MULL_ENOMEM, "out of memory");
    }
}

void mull__amqp_delivery_free(mull__amqp *t, mull__amqp_delivery *d)
{
    mull__free(&t->allocator, d->body);
    mull__free(&t->allocator, d);
}
