/* posts.c: messages on their way to the broker, see state.h.
 *
 *   begin ──> waiting ──> question ──> unconfirmed ──> end
 *     └───────── go ──────────┴─────────────┘│
 *                             └── returned ──┘ no such queue: it is asked for, and sent again
 *
 * Where a dead letter goes is looked at first: what is confirmed there must be safe there.
 *
 * A returned message doesn't say which one it is, since several may be alike: all that are
 * unconfirmed on its queue are sent again, rather one too many than one too few. */
#include "base/alloc.h"
#include "state.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 4, NACK_TRIES = 10, NACK_WAIT_MS = 500, SHORT_RECORD = 512, WHY = 180 };

static const char *queue_of(const mull__amqp_post *post)
{
    return post->outgoing ? post->outgoing->message->queue : post->of->settlement->queue;
}

static int is_dead_letter(const mull__amqp_post *post)
{
    return post->of && !post->outgoing && post->of->settlement->kind == MULL_SETTLE_DEAD_LETTER;
}

static mull__amqp_delay delay_of(const mull__amqp *t, const mull__amqp_post *post)
{
    int64_t due_ms = post->outgoing ? post->outgoing->due_ms : post->of->settlement->due_ms;
    return mull__amqp_delay_of(due_ms > 0 ? due_ms - mull_port_wall(t->port) : 0);
}

static void put(mull__list *list, mull__amqp_post *post)
{
    post->in = list;
    mull__list_push(list, &post->link);
}

/* take takes a list's first post off it. */
static mull__amqp_post *take(mull__list *list)
{
    mull__link *link = mull__list_pop(list);
    mull__amqp_post *post = link ? MULL__ENTRY(link, mull__amqp_post, link) : NULL;
    if (post)
        post->in = NULL;
    return post;
}

void mull__amqp_post_drop(mull__amqp *t, mull__amqp_post *post)
{
    if (post->in)
        mull__list_remove(post->in, &post->link);
    if (post->is_asking) {
        mull__amqp_unask(t, &post->question);
        t->asking_posts--;
    }
    post->in = NULL;
    post->is_asking = 0;
}

/* end is a post's: no list has it, and no question. */
static void end(mull__amqp *t, mull__amqp_post *post, int status, const char *why)
{
    mull_ticket ticket = post->ticket;
    if (post->of) {
        mull__amqp_settle_part(t, post->of, status, why);
        return;
    }
    if (why && why != post->why)
        snprintf(post->why, sizeof post->why, "%s", why);
    mull_port_answer(t->port, ticket, status, status ? post->why : NULL);
    mull__free(&t->allocator, post);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static amqp_bytes_t body_of(const mull__amqp_post *post)
{
    const mull_message *message = post->outgoing ? post->outgoing->message : &post->of->message;
    return (amqp_bytes_t){message->body_size, (void *)(uintptr_t)message->body};
}

/* properties_of gives what is sent of them: `raw` of a message that can't be read. */
static int properties_of(mull__amqp *t, const mull__amqp_post *post, mull__amqp_delay delay,
                         size_t shorter_than, amqp_basic_properties_t *properties,
                         amqp_bytes_t *raw, const char **why)
{
    void *decoded = NULL;
    if (post->outgoing)
        return mull__amqp_properties_new(properties, &t->pool, post->outgoing->message, delay, why);
    *raw = post->of->properties;
    *why = "it can't be read, so it can't be put off";
    if (post->of->unreadable)
        return delay.steps > 0 ? MULL_EREFUSED : 0;
    *why = "out of memory";
    if (amqp_decode_properties(AMQP_BASIC_CLASS, &t->pool, *raw, &decoded) != AMQP_STATUS_OK)
        return MULL_ENOMEM;
    *properties = *(amqp_basic_properties_t *)decoded;
    *raw = amqp_empty_bytes;
    return mull__amqp_properties_copied(properties, &t->pool, post->of->settlement, t->login.user,
                                        delay, shorter_than, why);
}

/* write_with writes a post: a copy with those of our headers that are shorter than so many bytes.
 */
static int write_with(mull__amqp *t, mull__amqp_post *post, mull__amqp_delay delay,
                      size_t shorter_than, const char **why)
{
    char exchange[64] = "";
    amqp_basic_properties_t properties;
    amqp_bytes_t raw = amqp_empty_bytes, body = body_of(post);
    *why = "it is larger than the broker takes";
    if (body.len > t->max_message)
        return MULL_EREFUSED;
    int status = properties_of(t, post, delay, shorter_than, &properties, &raw, why);
    if (status != 0)
        return status;
    if (delay.steps > 0)
        mull__amqp_delay_exchange(t, delay.level, exchange);
    amqp_basic_publish_t publish = {.exchange = mull__amqp_text(exchange),
                                    .routing_key = mull__amqp_text(queue_of(post)),
                                    .mandatory = 1};
    *why = "its headers are larger than a frame of AMQP, or its queue's name longer than 255 bytes";
    return mull__amqp_publish(&t->session, MULL__AMQP_POSTS, &publish,
                              raw.bytes ? NULL : &properties, raw, body);
}

/* write_post writes a post. Where a dead letter's own headers leave ours no room, those that are
 * long are left out, then all: else the message would have no end at all. */
static int write_post(mull__amqp *t, mull__amqp_post *post, mull__amqp_delay delay,
                      const char **why)
{
    static const size_t shorter[] = {SHORT_RECORD, 0};
    int status = write_with(t, post, delay, SIZE_MAX, why);
    for (size_t i = 0; is_dead_letter(post) && status == MULL_EREFUSED && i < 2; i++) {
        recycle_amqp_pool(&t->pool);
        status = write_with(t, post, delay, shorter[i], why);
        if (status == 0)
            mull__amqp_log(t, MULL_WARNING,
                           "the headers of message %s leave no room for all of mulligan's: its "
                           "dead letter has %s of them",
                           post->of->settlement->id, shorter[i] > 0 ? "the short ones" : "none");
    }
    return status;
}

static void send_post(mull__amqp *t, mull__amqp_post *post)
{
    const char *why;
    int status = write_post(t, post, delay_of(t, post), &why);
    recycle_amqp_pool(&t->pool);
    if (status == MULL_EIO) { /* the connection ends, and this with it */
        put(&t->waiting, post);
    } else if (status != 0) {
        end(t, post, status, why);
    } else {
        post->tag = ++t->next_tag;
        post->tries++;
        post->returned = 0;
        put(&t->unconfirmed, post);
    }
}

/* needs_queue: its queue is to be declared, or looked at. */
static int needs_queue(const mull__amqp *t, const mull__amqp_post *post)
{
    return !post->declared &&
           (post->returned || (is_dead_letter(post) && t->options.declare &&
                               !mull__amqp_knows(t, queue_of(post), MULL__AMQP_LOOKED)));
}

/* needs_binding: its delay is to end in its queue. */
static int needs_binding(const mull__amqp *t, const mull__amqp_post *post)
{
    return delay_of(t, post).steps > 0 && !mull__amqp_knows(t, queue_of(post), MULL__AMQP_BOUND);
}

/* go sends a post, or asks first for what it needs. */
static void go(mull__amqp *t, mull__amqp_post *post)
{
    mull__amqp_delay delay = delay_of(t, post);
    if (delay.steps > 0 && !t->options.declare) {
        end(t, post, MULL_EREFUSED, "there are no delays with declare=no");
    } else if (needs_queue(t, post) || needs_binding(t, post) ||
               (delay.steps > 0 && !mull__amqp_delay_declared(t, delay.level))) {
        t->asking_posts++;
        post->is_asking = 1;
        post->asks = MULL__AMQP_POST_NOTHING;
        mull__amqp_ask(t, &post->question);
    } else {
        send_post(t, post);
    }
}

void mull__amqp_posts_go(mull__amqp *t)
{
    while (t->waiting.count > 0 && t->posts_open && mull__amqp_is_up(t) &&
           t->session.state == MULL__AMQP_OPEN && (t->suspects == 0 || t->unconfirmed.count == 0))
        go(t, take(&t->waiting));
    if (t->waiting.count == 0 && t->unconfirmed.count == 0 && t->asking_posts == 0)
        t->suspects = 0;
}

/* cleared: one that was sent alone has been answered. */
static void cleared(mull__amqp *t)
{
    t->suspects -= t->suspects > 0;
}

/* forget_delays has all that delays need declared anew. */
static void forget_delays(mull__amqp *t)
{
    t->delay_statements = 0;
    mull__amqp_unbound(t);
}

/* ---- What a post needs ----------------------------------------------------------------------- */

static void asked(mull__amqp *t, mull__amqp_post *post)
{
    t->asking_posts--;
    post->is_asking = 0;
}

/* asked_out: its question is through. */
static int asked_out(mull__amqp *t, mull__amqp_post *post)
{
    asked(t, post);
    put(&t->waiting, post);
    mull__amqp_posts_go(t);
    return 1;
}

static int asked_end(mull__amqp *t, mull__amqp_post *post, int status, const char *why)
{
    asked(t, post);
    end(t, post, status, why);
    return 1;
}

static int post_ask(mull__amqp *t, mull__amqp_question *question)
{
    mull__amqp_post *post = MULL__ENTRY(question, mull__amqp_post, question);
    mull__amqp_delay delay = delay_of(t, post);
    int status = 1;
    if (needs_queue(t, post)) {
        if (post->asks != MULL__AMQP_POST_QUEUE)
            mull__amqp_declare_begin(t, &t->look, 0);
        post->asks = MULL__AMQP_POST_QUEUE;
        status = mull__amqp_declare_send(t, &t->look, queue_of(post));
    }
    if (status == 1 && delay.steps > 0) {
        post->asks = MULL__AMQP_POST_LEVEL;
        post->statement = t->delay_statements;
        status = mull__amqp_delay_send(t, delay.level);
    }
    if (status == 1 && needs_binding(t, post)) {
        post->asks = MULL__AMQP_POST_BINDING;
        status = mull__amqp_bind_send(t, queue_of(post));
    }
    if (status == MULL_EREFUSED)
        return asked_end(t, post, status, "a queue's name has 255 bytes at most");
    return status == 0 ? 0 : asked_out(t, post);
}

/* is_refused: a queue can't be declared, or no dead letter is safe there. */
static int is_refused(const mull__amqp_post *post, const mull__amqp_reply *reply)
{
    return post->returned || reply->code == AMQP_PRECONDITION_FAILED ||
           reply->code == AMQP_RESOURCE_LOCKED;
}

/* queue_answered: one that is only looked at is used, too, where the user may not look, and, for
 * this time, where it can't be told. What isn't a dead letter may go to any queue that is there. */
static int queue_answered(mull__amqp *t, mull__amqp_post *post, const mull__amqp_reply *reply)
{
    char why[WHY];
    int status = 1;
    if (is_dead_letter(post) || reply->code != AMQP_PRECONDITION_FAILED)
        status = mull__amqp_declare_answered(t, &t->look, queue_of(post), reply, why, sizeof why);
    if (status == 0)
        return 0;
    if (status < 0 && is_refused(post, reply)) {
        snprintf(post->why, sizeof post->why, "the queue '%.60s': %s", queue_of(post), why);
        return asked_end(t, post, status, post->why);
    }
    post->declared = 1;
    if (is_dead_letter(post) && (status == 1 || reply->code == AMQP_ACCESS_REFUSED))
        mull__amqp_note(t, queue_of(post), MULL__AMQP_LOOKED);
    return 0;
}

/* post_refused: the broker doesn't do it. */
static int post_refused(mull__amqp *t, mull__amqp_post *post, const mull__amqp_reply *reply)
{
    static const char *const what[] = {
        [MULL__AMQP_POST_LEVEL] = "the queues of delays can't be declared",
        [MULL__AMQP_POST_BINDING] = "its queue can't be bound to those of delays"};
    if (reply->code == AMQP_NOT_FOUND &&
        post->tries++ < TRIES) { /* the queue isn't there, or exchanges of ours were deleted */
        if (post->asks == MULL__AMQP_POST_BINDING && !post->declared)
            post->returned = 1;
        else
            forget_delays(t);
        return 0;
    }
    snprintf(post->why, sizeof post->why, "%s (%d): %s", what[post->asks], reply->code,
             reply->text);
    return asked_end(t, post, MULL_EREFUSED, post->why);
}

static int post_answered(mull__amqp *t, mull__amqp_question *question,
                         const mull__amqp_reply *reply)
{
    mull__amqp_post *post = MULL__ENTRY(question, mull__amqp_post, question);
    if (reply->code < 0) { /* mull__amqp_posts_lost follows */
        asked(t, post);
        put(&t->waiting, post);
        return 1;
    }
    if (post->asks == MULL__AMQP_POST_QUEUE)
        return queue_answered(t, post, reply);
    if (reply->code > 0)
        return post_refused(t, post, reply);
    if (post->asks == MULL__AMQP_POST_LEVEL)
        t->delay_statements += post->statement == t->delay_statements; /* else it begins anew */
    else
        mull__amqp_note(t, queue_of(post), MULL__AMQP_BOUND);
    return 0;
}

/* ---- Confirmed, returned, refused ------------------------------------------------------------ */

/* again sends a post once more, as often as makes sense. */
static void again(mull__amqp *t, mull__amqp_post *post, int status, const char *why)
{
    if (post->tries >= TRIES) {
        end(t, post, status, why);
        return;
    }
    put(&t->waiting, post);
}

/* confirmed: it is safe, unless it came back before. */
static void confirmed(mull__amqp *t, mull__amqp_post *post, int is_taken)
{
    mull__amqp_delay delay = delay_of(t, post);
    if (!is_taken && post->tries < NACK_TRIES) {
        put(&t->nacked, post); /* a queue that was made just now has no leader yet, say */
    } else if (!is_taken) {
        end(t, post, MULL_EIO, "the broker didn't take it (basic.nack); its queue may be full");
    } else if (!post->returned) {
        end(t, post, 0, NULL);
    } else if (!t->options.declare) {
        snprintf(post->why, sizeof post->why,
                 "there is no queue '%.150s'; make it, or leave out declare=no", queue_of(post));
        end(t, post, MULL_EREFUSED, post->why);
    } else {
        post->declared = 0;
        if (delay.steps > 0) { /* those of delays are gone */
            post->returned = 0;
            t->delay_statements = 0;
            mull__amqp_forget(t, queue_of(post));
        }
        again(t, post, MULL_EREFUSED, "its queue is deleted again and again");
    }
}

void mull__amqp_posts_beat(mull__amqp *t)
{
    mull__amqp_post *post;
    uint64_t now_ms = mull__amqp_now(t);
    if (now_ms < t->nacked_ms + NACK_WAIT_MS)
        return;
    t->nacked_ms = now_ms;
    while ((post = take(&t->nacked)))
        put(&t->waiting, post);
    mull__amqp_posts_go(t);
}

static void on_confirm(mull__amqp *t, uint64_t tag, int multiple, int is_taken)
{
    mull__link *after;
    for (mull__link *link = mull__list_first(&t->unconfirmed); link; link = after) {
        mull__amqp_post *post = MULL__ENTRY(link, mull__amqp_post, link);
        if (post->tag > tag)
            break;
        after = mull__list_after(&t->unconfirmed, link);
        if (!multiple && post->tag != tag)
            continue;
        mull__list_remove(&t->unconfirmed, link);
        post->in = NULL;
        cleared(t);
        confirmed(t, post, is_taken);
        if (multiple) /* others may have ended meanwhile */
            after = mull__list_first(&t->unconfirmed);
        else
            break;
    }
    mull__amqp_posts_go(t);
}

void mull__amqp_posts_returned(mull__amqp *t, const mull__amqp_content *content)
{
    for (mull__link *link = mull__list_first(&t->unconfirmed); link;
         link = mull__list_after(&t->unconfirmed, link)) {
        mull__amqp_post *post = MULL__ENTRY(link, mull__amqp_post, link);
        if (strcmp(queue_of(post), content->routing_key) == 0)
            post->returned = 1;
    }
}

/* limit_of reads what the broker says of messages that are too large, and remembers it. */
static void limit_of(mull__amqp *t, const char *text)
{
    static const char words[] = "configured max size";
    const char *last = strstr(text, words);
    uint64_t most = last ? strtoull(last + sizeof words - 1, NULL, 10) : 0;
    if (most > 0)
        t->max_message = most;
}

/* on_closed: the broker closed the channel, for one message, and doesn't say for which. Of several,
 * each is sent again alone, so that the one is found, and takes no other with it. A missing
 * exchange is made anew; a right that the user lacks is a person's to give. */
static void on_closed(mull__amqp *t, const amqp_channel_close_t *close)
{
    char text[256], why[300];
    mull__amqp_quote(text, sizeof text, close->reply_text);
    snprintf(why, sizeof why, "the broker refused it (%u): %s", close->reply_code, text);
    limit_of(t, text);
    t->posts_open = 0;
    t->next_tag = 0;
    forget_delays(t);
    mull__amqp_channel_open(&t->session, MULL__AMQP_POSTS);
    int for_good = close->reply_code != AMQP_NOT_FOUND && close->reply_code != AMQP_ACCESS_REFUSED;
    int is_alone = t->unconfirmed.count == 1;
    mull__amqp_post *post;
    if (is_alone)
        cleared(t);
    else
        t->suspects = t->unconfirmed.count;
    while ((post = take(&t->unconfirmed))) {
        if ((is_alone && for_good) || body_of(post).len > t->max_message)
            end(t, post, MULL_EREFUSED, why);
        else
            again(t, post, MULL_EIO, why);
    }
}

void mull__amqp_posts_method(mull__amqp *t, amqp_method_number_t id, const void *decoded)
{
    if (id == AMQP_BASIC_ACK_METHOD) {
        const amqp_basic_ack_t *ack = decoded;
        on_confirm(t, ack->delivery_tag, ack->multiple, 1);
    } else if (id == AMQP_BASIC_NACK_METHOD) {
        const amqp_basic_nack_t *nack = decoded;
        on_confirm(t, nack->delivery_tag, nack->multiple, 0);
    } else if (id == AMQP_CHANNEL_CLOSE_METHOD) {
        on_closed(t, decoded);
    } else if (id == AMQP_CHANNEL_OPEN_OK_METHOD) {
        amqp_confirm_select_t select = {0};
        mull__amqp_send(&t->session, MULL__AMQP_POSTS, AMQP_CONFIRM_SELECT_METHOD, &select);
    } else if (id == AMQP_CONFIRM_SELECT_OK_METHOD) {
        t->posts_open = 1;
        mull__amqp_posts_go(t);
    }
}

/* ---- Their beginning and end ----------------------------------------------------------------- */

void mull__amqp_post_begin(mull__amqp *t, mull__amqp_post *post)
{
    post->question.ask = post_ask;
    post->question.answered = post_answered;
    put(&t->waiting, post);
    mull__amqp_posts_go(t);
}

int mull__amqp_publish_new(mull__amqp *t, const mull_outgoing *outgoing, mull_ticket ticket)
{
    mull__amqp_post *post =
        mull__zalloc(&t->allocator, 1, sizeof *post + mull_message_size(outgoing->message, NULL));
    if (!post)
        return MULL_ENOMEM;
    mull_message_copy(&post->message, outgoing->message, NULL, (mull_header *)(post + 1));
    post->own = (mull_outgoing){sizeof post->own, &post->message, outgoing->due_ms};
    post->outgoing = &post->own;
    post->ticket = ticket;
    mull__amqp_post_begin(t, post);
    return 0;
}

void mull__amqp_posts_lost(mull__amqp *t, const char *why)
{
    t->posts_open = 0;
    t->next_tag = 0;
    t->suspects = 0;
    mull__amqp_post *post;
    while ((post = take(&t->unconfirmed)) || (post = take(&t->nacked)) ||
           (post = take(&t->waiting)))
        if (!post->of) /* those of settlements end with these */
            end(t, post, MULL_EIO, why);
}

size_t mull__amqp_posts_left(const mull__amqp *t)
{
    return t->waiting.count + t->unconfirmed.count + t->nacked.count + t->asking_posts;
}
