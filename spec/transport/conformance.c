/* conformance.c: the rules of mulligan/transport.h as cases, see mulligan/conformance.h. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "conformance_stage.h"

enum { DELAY_MS = 2500, BIG = 1 << 20 };

/* ---- Messages -------------------------------------------------------------------------------- */

static int a_message_keeps_what_it_says(stage *s)
{
    const mull_message full = full_message(QUEUE), bare = message_of(QUEUE, "bare");
    TRY(begin(s, OUT_MAX));
    TRY(put_message(s, &full, 0));
    TRY(put_message(s, &bare, 0));
    TRY(out_are(s, 2));
    TRY(is_full(s, at(s, 0)));
    TRY(has_headers(s, at(s, 0), full.headers, full.header_count));
    EXPECT(at(s, 0)->header_count == full.header_count, "it has other headers than it was given");
    EXPECT(same(at(s, 0)->queue, QUEUE), "its queue isn't the one that it came from");
    TRY(delivered_as(s, at(s, 0), 1, 1));
    EXPECT(at(s, 1)->body_size == 0 && at(s, 1)->header_count == 0 && !at(s, 1)->type &&
               !at(s, 1)->key,
           "what was left out is there");
    return 1;
}

static int a_body_of_a_megabyte_is_kept(stage *s)
{
    mull_message message = message_of(QUEUE, "big");
    unsigned char *body = malloc(BIG);
    EXPECT(body, "out of memory");
    for (uint32_t i = 0, x = 1; i < BIG; i++, x = x * 1664525 + 1013904223)
        body[i] = (unsigned char)(x >> 24);
    message.body = body;
    message.body_size = BIG;
    int good = begin(s, OUT_MAX) && put_message(s, &message, 0) && came(s, 1);
    if (good && (at(s, 0)->body_size != BIG || memcmp(at(s, 0)->body, body, BIG) != 0))
        good = fail(s, "the body isn't as it was");
    free(body);
    return good;
}

static int ready_messages_come_in_order(stage *s)
{
    TRY(begin(s, 0));
    TRY(put(s, QUEUE, "abcdefghij"));
    limit_to(s, OUT_MAX);
    return ids_are(s, "abcdefghij");
}

static int what_is_put_off_comes_when_it_is_due(stage *s)
{
    const mull_message late = message_of(QUEUE, "late");
    TRY(begin(s, OUT_MAX));
    int64_t due_ms = wall_ms(s) + DELAY_MS;
    TRY(put_message(s, &late, DELAY_MS));
    TRY(put(s, QUEUE, "n"));
    TRY(ids_are(s, "nl"));
    return was_on_time(s, &s->out[1], due_ms);
}

static int the_longest_delay_is_taken(stage *s)
{
    const mull_message message = message_of(QUEUE, "m");
    int64_t longest_ms = s->can.longest_delay_ms;
    TRY(begin(s, OUT_MAX));
    int64_t due_ms = wall_ms(s) + longest_ms;
    TRY(put_message(s, &message, longest_ms));
    if (longest_ms > PATIENCE_MS)
        pass(s, longest_ms - PATIENCE_MS / 2);
    TRY(came(s, 1));
    return was_on_time(s, &s->out[0], due_ms);
}

/* ---- Settling -------------------------------------------------------------------------------- */

static int acknowledged_it_is_gone(stage *s)
{
    TRY(begin(s, OUT_MAX));
    TRY(put(s, QUEUE, "ab"));
    TRY(came(s, 2));
    TRY(settle(s, 0, MULL_SETTLE_ACK));
    TRY(settle(s, 0, MULL_SETTLE_ACK));
    TRY(out_are(s, 0));
    TRY(counted(s, QUEUE, 0, 0, 0));
    if (s->options->forgets)
        return 1;
    TRY(begin_again(s, OUT_MAX));
    return out_are(s, 0);
}

static int discarded_it_is_gone(stage *s)
{
    TRY(begin(s, OUT_MAX));
    TRY(put(s, QUEUE, "a"));
    TRY(came(s, 1));
    TRY(settle(s, 0, MULL_SETTLE_DISCARD));
    TRY(out_are(s, 0));
    return counted(s, QUEUE, 0, 0, 0);
}

static int what_is_sent_goes_out_with_the_acknowledgement(stage *s)
{
    const mull_message sent[] = {full_message(NEXT), message_of(NEXT, "later")};
    mull_outgoing sends[] = {MULL_INIT(mull_outgoing), MULL_INIT(mull_outgoing)};
    mull_settlement settlement = settlement_of(MULL_SETTLE_ACK, QUEUE);
    TRY(begin(s, OUT_MAX));
    TRY(read_queue(s, "D", NEXT));
    TRY(is_read(s, "D"));
    TRY(put(s, QUEUE, "a"));
    TRY(came(s, 1));
    sends[0].message = &sent[0];
    sends[1].message = &sent[1];
    sends[1].due_ms = s->can.can_delay ? wall_ms(s) + DELAY_MS : 0;
    settlement.sends = sends;
    settlement.send_count = 2;
    TRY(settle_as(s, 0, &settlement));
    TRY(ids_are(s, "ml"));
    TRY(is_full(s, at(s, 0)));
    TRY(has_headers(s, at(s, 0), sent[0].headers, sent[0].header_count));
    if (s->can.can_delay)
        TRY(was_on_time(s, &s->out[1], sends[1].due_ms));
    return out_are(s, 2);
}

static int redelivered_it_comes_with_our_headers(stage *s)
{
    mull_settlement settlement = settlement_of(MULL_SETTLE_REDELIVER, QUEUE);
    add_ours(&settlement);
    TRY(begin(s, OUT_MAX));
    TRY(full_came(s));
    settlement.due_ms = s->can.can_delay ? wall_ms(s) + DELAY_MS : 0;
    TRY(settle_as(s, 0, &settlement));
    if (s->can.can_delay)
        TRY(counted(s, QUEUE, 0, 1, 0));
    TRY(out_are(s, 1));
    TRY(is_copy(s, at(s, 0)));
    TRY(s->can.can_delay ? was_on_time(s, &s->out[0], settlement.due_ms) : 1);
    return counted(s, QUEUE, 0, 0, 1);
}

/* dead_letter makes two dead letters, the first as it came, and the second without an id. */
static int dead_letter(stage *s)
{
    mull_settlement settlement = settlement_of(MULL_SETTLE_DEAD_LETTER, DEAD);
    settlement.error_type = "Type";
    settlement.reason = "no_rule";
    settlement.rule = "policy.lua:1";
    settlement.as_it_came = 1;
    TRY(full_came(s));
    TRY(settle_as(s, 0, &settlement));
    settlement.as_it_came = 0;
    add_ours(&settlement);
    TRY(full_came(s));
    return settle_as(s, 0, &settlement);
}

static int a_dead_letter_is_a_copy_in_a_queue_made_for_it(stage *s)
{
    const mull_message full = full_message(QUEUE);
    TRY(begin(s, OUT_MAX));
    TRY(dead_letter(s));
    TRY(out_are(s, 0));
    TRY(counted(s, QUEUE, 0, 0, 0));
    TRY(counted(s, DEAD, 2, 0, 0));
    TRY(read_queue(s, "D", DEAD));
    TRY(is_read(s, "D"));
    TRY(out_are(s, 2));
    TRY(has_headers(s, at(s, 0), full.headers, full.header_count));
    EXPECT(at(s, 0)->header_count == full.header_count, "as it came, it has other headers");
    EXPECT(same(at(s, 1)->queue, DEAD), "its queue isn't that of dead letters");
    return is_copy(s, at(s, 1));
}

static int given_back_it_has_its_old_place(stage *s)
{
    TRY(begin(s, 0));
    TRY(put(s, QUEUE, "abcd"));
    limit_to(s, 2);
    TRY(ids_are(s, "ab"));
    limit_to(s, 0);
    pass(s, SECOND_MS);
    TRY(settle(s, 0, MULL_SETTLE_GIVE_BACK));
    TRY(out_are(s, 1));
    limit_to(s, OUT_MAX);
    TRY(ids_are(s, s->options->tail ? "bcda" : "bacd"));
    size_t place = s->options->tail ? 3 : 1;
    return delivered_as(s, at(s, place), 1, 2);
}

static int given_back_for_later_it_comes_when_it_is_due(stage *s)
{
    mull_settlement settlement = settlement_of(MULL_SETTLE_GIVE_BACK, QUEUE);
    TRY(begin(s, OUT_MAX));
    TRY(put(s, QUEUE, "a"));
    TRY(came(s, 1));
    settlement.due_ms = wall_ms(s) + DELAY_MS;
    TRY(settle_as(s, 0, &settlement));
    TRY(counted(s, QUEUE, 0, 1, 0));
    TRY(out_are(s, 1));
    TRY(was_on_time(s, &s->out[0], settlement.due_ms));
    return delivered_as(s, at(s, 0), 1, 2);
}

static int settled_it_can_be_read_until_it_is_released(stage *s)
{
    const mull_message full = full_message(QUEUE);
    const mull_settlement settlement = settlement_of(MULL_SETTLE_ACK, QUEUE);
    TRY(begin(s, OUT_MAX));
    TRY(full_came(s));
    int status = ask_settle(s, &s->out[0], &settlement);
    EXPECT(status == 0, "a settlement isn't carried out: %s", mull_strerror(status));
    pass(s, SECOND_MS);
    TRY(is_full(s, at(s, 0)));
    TRY(has_headers(s, at(s, 0), full.headers, full.header_count));
    mull_port_answer(s->port, s->out[0].ticket, 0, NULL);
    s->out_count = 0;
    return out_are(s, 0);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

/* held_ms is how long a claim surely lasts. */
static int64_t held_ms(const stage *s)
{
    int64_t timeout_ms = s->can.claim_timeout_ms;
    return timeout_ms > 0 && timeout_ms < CONNECT_MS ? timeout_ms / 2 : CONNECT_MS / 2;
}

static int claimed_it_stays_out(stage *s)
{
    s->ignore_hold = 1;
    TRY(begin(s, OUT_MAX));
    TRY(put(s, QUEUE, "a"));
    TRY(came(s, 1));
    pass(s, s->options->real_time ? SECOND_MS : held_ms(s));
    EXPECT(s->out_count == 1, "a message was handed out while it was claimed");
    TRY(counted(s, QUEUE, 0, 0, 1));
    return settle(s, 0, MULL_SETTLE_ACK);
}

/* is_lost lets the claim on the one message that is out time out: the message comes again. */
static int is_lost(stage *s)
{
    s->ignore_hold = 1;
    pass(s, s->can.claim_timeout_ms);
    TRY(came(s, 2));
    return delivered_as(s, at(s, 1), 2, 2);
}

static int what_is_lost_is_settled_by_its_new_owner_alone(stage *s)
{
    const mull_settlement settlement = settlement_of(MULL_SETTLE_ACK, QUEUE);
    TRY(begin(s, OUT_MAX));
    TRY(put(s, QUEUE, "a"));
    TRY(came(s, 1));
    TRY(is_lost(s));
    int status = try_settle(s, 0, &settlement);
    EXPECT(status == MULL_ELOST, "settled after its claim was lost, it answers '%s'",
           mull_strerror(status));
    TRY(counted(s, QUEUE, 0, 0, 1));
    TRY(settle(s, 0, MULL_SETTLE_ACK));
    return counted(s, QUEUE, 0, 0, 0);
}

static int a_claim_that_is_held_stays(stage *s)
{
    TRY(begin(s, OUT_MAX));
    TRY(put(s, QUEUE, "a"));
    TRY(came(s, 1));
    pass(s, 2 * s->can.claim_timeout_ms);
    EXPECT(s->out_count == 1, "a message was handed out while its claim was held");
    return settle(s, 0, MULL_SETTLE_ACK);
}

static int a_note_is_safe_and_the_claim_stays(stage *s)
{
    const mull_message full = full_message(QUEUE);
    mull_settlement note = settlement_of(MULL_SETTLE_NOTE, QUEUE);
    add_ours(&note);
    TRY(begin(s, OUT_MAX));
    TRY(full_came(s));
    TRY(settle_as(s, 0, &note));
    TRY(out_are(s, 1));
    TRY(counted(s, QUEUE, 0, 0, 1));
    TRY(has_headers(s, at(s, 0), full.headers, full.header_count)); /* it reads on as it did */
    if (s->can.claim_timeout_ms > 0)
        TRY(is_lost(s));
    else if (!s->options->forgets)
        TRY(begin_again(s, OUT_MAX) && came(s, 1));
    else
        return settle(s, 0, MULL_SETTLE_ACK);
    const mull_message *again = at(s, s->out_count - 1);
    TRY(is_full(s, again));
    TRY(has_headers(s, again, foreign, sizeof foreign / sizeof *foreign - 2));
    TRY(has_headers(s, again, ours, sizeof ours / sizeof *ours));
    EXPECT(!header(again, "mulligan-old"), "a header of ours is there that the note replaced");
    return settle(s, s->out_count - 1, MULL_SETTLE_ACK);
}

static int what_is_out_at_a_close_comes_back(stage *s)
{
    TRY(begin(s, 2));
    TRY(put(s, QUEUE, "abc"));
    TRY(ids_are(s, "ab"));
    TRY(begin_again(s, OUT_MAX));
    for (int i = 0; i < 3; i++) { /* what its owner's death may be due to may come alone */
        TRY(came(s, 1));
        int times = at(s, 0)->id[0] == 'c' ? 1 : 2;
        TRY(delivered_as(s, at(s, 0), s->options->uncounts ? 1 : times, times));
        TRY(settle(s, 0, MULL_SETTLE_ACK));
    }
    TRY(out_are(s, 0));
    return counted(s, QUEUE, 0, 0, 0);
}

/* The first one is released unsettled, and later ones are acknowledged in the same turn: who does
 * that up to the last one has the first one gone, too. */
static int what_ends_at_a_close_takes_no_other_with_it(stage *s)
{
    TRY(begin(s, 3));
    TRY(put(s, QUEUE, "abc"));
    TRY(ids_are(s, "abc"));
    s->ack = settlement_of(MULL_SETTLE_ACK, QUEUE);
    s->ending[s->ending_count++] = s->out[1];
    s->ending[s->ending_count++] = s->out[2];
    s->out_count = 1;
    s->expects_trouble = 1; /* the engine hasn't heard of these ends when it closes */
    TRY(begin_again(s, OUT_MAX));
    s->expects_trouble = 0;
    for (int i = 0; i < 3; i++) {
        TRY(came(s, 1));
        int is_it = at(s, 0)->id[0] == 'a';
        TRY(settle(s, 0, MULL_SETTLE_ACK));
        if (is_it)
            return 1;
    }
    return fail(s, "what was released unsettled doesn't come back");
}

static int what_waits_at_a_close_is_kept(stage *s)
{
    const mull_message late = message_of(QUEUE, "late");
    told asked = {0};
    TRY(begin(s, 0));
    TRY(put(s, QUEUE, "a"));
    int64_t due_ms = wall_ms(s) + DELAY_MS;
    if (s->can.can_delay)
        TRY(put_message(s, &late, DELAY_MS));
    const mull_message last = message_of(QUEUE, "z");
    int status = mull_publish(s->engine, "t", &last, 0, on_told, &asked);
    EXPECT(status == 0, "a message can't be published: %s", mull_strerror(status));
    TRY(begin_again(s, OUT_MAX));
    EXPECT(asked.count == 1, "what was asked before a close was answered %d times", asked.count);
    EXPECT(asked.status == 0, "what was asked before a close isn't carried out: %s",
           mull_strerror(asked.status));
    TRY(ids_are(s, s->can.can_delay ? "azl" : "az"));
    return s->can.can_delay ? was_on_time(s, &s->out[2], due_ms) : 1;
}

/* ---- Credit and subscriptions ---------------------------------------------------------------- */

static int credit_bounds_what_is_out(stage *s)
{
    TRY(begin(s, 2));
    TRY(put(s, QUEUE, "abcde"));
    TRY(out_are(s, 2));
    TRY(settle(s, 0, MULL_SETTLE_ACK));
    TRY(out_are(s, 2));
    limit_to(s, 0);
    pass(s, SECOND_MS);
    TRY(settle(s, 0, MULL_SETTLE_ACK));
    TRY(out_are(s, 1));
    TRY(counted(s, QUEUE, 2, 0, 1));
    limit_to(s, OUT_MAX);
    return ids_are(s, "cde");
}

static int as_many_as_most_are_handed_out(stage *s)
{
    TRY(begin(s, 0));
    for (uint32_t i = 0; i < s->most + 2; i++)
        TRY(put(s, QUEUE, "a"));
    limit_to(s, s->most);
    return out_are(s, s->most);
}

static int unsubscribed_it_is_read_no_more(stage *s)
{
    told removed = {0};
    TRY(begin(s, OUT_MAX));
    int status = mull_consumer_remove(s->engine, "C", on_told, &removed);
    EXPECT(status == 0 && wait_for(s, &removed) == 0, "a subscription doesn't end");
    TRY(put(s, QUEUE, "a"));
    TRY(out_are(s, 0));
    TRY(read_queue(s, "C", QUEUE));
    TRY(is_read(s, "C"));
    return ids_are(s, "a");
}

static int two_readers_of_a_queue_share_it(stage *s)
{
    char seen[128] = {0};
    TRY(begin(s, 2));
    TRY(read_queue(s, "D", QUEUE));
    TRY(is_read(s, "D"));
    TRY(put(s, QUEUE, "abcdef"));
    TRY(out_are(s, 4));
    for (size_t i = 0; i < 4; i++) {
        char letter = at(s, i)->id[0];
        EXPECT(!seen[letter & 127]++, "message %c was handed to both", letter);
    }
    TRY(counted(s, QUEUE, 2, 0, 4));
    for (size_t i = 0; i < 4; i++)
        TRY(settle(s, 0, MULL_SETTLE_ACK));
    TRY(out_are(s, 2));
    return counted(s, QUEUE, 0, 0, 2);
}

/* ---- Depths, answers, look ------------------------------------------------------------------- */

static int a_depth_tells_ready_delayed_and_claimed(stage *s)
{
    const mull_message late = message_of(QUEUE, "late");
    mull_depth depth;
    TRY(begin(s, 1));
    TRY(counted(s, NEXT, 0, 0, 0));
    TRY(put(s, QUEUE, "abc"));
    TRY(came(s, 1));
    int64_t due_ms = wall_ms(s) + DELAY_MS;
    if (s->can.can_delay)
        TRY(put_message(s, &late, DELAY_MS));
    TRY(counted(s, QUEUE, 2, s->can.can_delay != 0, 1));
    TRY(ask_depth(s, QUEUE, &depth));
    if (!s->can.can_delay)
        due_ms = INT64_MAX;
    EXPECT(depth.next_due_ms >= due_ms, "the next is said to be due before it is");
    EXPECT(depth.next_due_ms == INT64_MAX ||
               depth.next_due_ms - due_ms <= s->can.delay_step_ms + SECOND_MS,
           "the next is said to be due after it is");
    return 1;
}

/* may_be says whether a number of a rough depth can be: it is late, so that only what never was
 * there is wrong. */
static int may_be(uint64_t number, uint64_t most)
{
    return number == MULL_UNKNOWN || number <= most;
}

static int a_depth_that_is_rough_says_no_more_than_was_there(stage *s)
{
    mull_depth depth;
    TRY(begin(s, 1));
    TRY(put(s, QUEUE, "abc"));
    TRY(came(s, 1));
    TRY(ask_depth(s, QUEUE, &depth));
    EXPECT(may_be(depth.ready, 3) && may_be(depth.delayed, 0) && may_be(depth.claimed, 1),
           "it counts messages that never were");
    return 1;
}

static int each_ticket_is_answered_once(stage *s)
{
    told one = {0}, other = {0}, counts = {0};
    const mull_message message = message_of(QUEUE, "m");
    TRY(begin(s, OUT_MAX));
    EXPECT(mull_publish(s->engine, "t", &message, 0, on_told, &one) == 0 &&
               mull_publish(s->engine, "t", &message, 0, on_told, &other) == 0,
           "two messages can't be published at once");
    EXPECT(wait_for(s, &one) == 0 && wait_for(s, &other) == 0, "what is published isn't safe");
    EXPECT(mull_queue_depth(s->engine, "t", QUEUE, on_depth, &counts) != 0 ||
               wait_for(s, &counts) != MULL_EIO,
           "a depth isn't told");
    TRY(came(s, 2));
    TRY(settle(s, 0, MULL_SETTLE_ACK));
    TRY(settle(s, 0, MULL_SETTLE_DISCARD));
    return out_are(s, 0); /* the log has what is answered twice */
}

static int look_says_the_same_whenever_it_is_asked(stage *s)
{
    mull_abilities again = MULL_INIT(mull_abilities), of_queue = MULL_INIT(mull_abilities);
    char why[256] = "";
    TRY(begin(s, OUT_MAX)); /* what is found must not be less, or the queue isn't read */
    EXPECT(s->ops->look(s->url, NULL, &again, why, sizeof why) == 0 &&
               s->ops->look(s->url, QUEUE, &of_queue, why, sizeof why) == 0,
           "look refuses its URL: %s", why);
    again.size = of_queue.size = s->can.size;
    EXPECT(memcmp(&again, &s->can, sizeof again) == 0, "look says something else now");
    EXPECT(of_queue.longest_delay_ms >= 0 && of_queue.delay_step_ms >= 0 &&
               of_queue.claim_timeout_ms >= 0,
           "a time is negative");
    EXPECT(!s->can.can_hold || s->ops->hold, "it can hold claims, and has no slot `hold`");
    return 1;
}

/* ---- Trouble --------------------------------------------------------------------------------- */

static int cut_off_it_is_down_and_comes_back(stage *s)
{
    const mull_message message = message_of(QUEUE, "b");
    const mull_settlement settlement = settlement_of(MULL_SETTLE_ACK, QUEUE);
    told t = {0};
    s->expects_trouble = 1;
    TRY(begin(s, OUT_MAX));
    TRY(put(s, QUEUE, "a"));
    TRY(came(s, 1));
    s->options->cut(s->options->data);
    TRY(is(s, MULL_DOWN));
    int status = mull_publish(s->engine, "t", &message, 0, on_told, &t);
    EXPECT(status == MULL_EDOWN, "while it is down, publish says '%s'", mull_strerror(status));
    s->options->come_back(s->options->data);
    TRY(is_up(s));
    TRY(is_read(s, "C"));
    TRY(put(s, QUEUE, "b"));
    status = try_settle(s, 0, &settlement);
    EXPECT(status == 0 || status == MULL_ELOST, "a claim of before is neither there nor lost: %s",
           mull_strerror(status));
    TRY(came(s, status == MULL_ELOST ? 2 : 1));
    while (s->out_count > 0)
        TRY(settle(s, 0, MULL_SETTLE_ACK));
    TRY(out_are(s, 0));
    return counted(s, QUEUE, 0, 0, 0);
}

static int broken_it_says_so_and_closes(stage *s)
{
    const mull_message message = message_of(QUEUE, "b");
    told t = {0};
    s->expects_trouble = 1;
    TRY(begin(s, OUT_MAX));
    TRY(put(s, QUEUE, "a"));
    TRY(came(s, 1));
    s->options->break_down(s->options->data);
    if (mull_publish(s->engine, "t", &message, 0, on_told, &t) == 0)
        wait_for(s, &t);
    TRY(is(s, MULL_BROKEN));
    leave(s);       /* which ends */
    s->text[0] = 0; /* the engine's own words, why it stopped */
    return 1;
}

/* ---- The list -------------------------------------------------------------------------------- */

static const char *without_delay(const stage *s)
{
    return s->can.can_delay ? NULL : "it can't delay";
}

static const char *without_longest(const stage *s)
{
    return !s->can.can_delay || s->can.longest_delay_ms == 0 ? "no delay is its longest"
           : s->options->real_time && s->can.longest_delay_ms > CONNECT_MS
               ? "that takes too long by its own clock"
               : NULL;
}

static const char *without_timeout(const stage *s)
{
    return s->can.claim_timeout_ms == 0 ? "its claims have no timeout"
           : s->options->real_time && s->can.claim_timeout_ms > CONNECT_MS
               ? "that takes too long by its own clock"
               : NULL;
}

static const char *without_hold(const stage *s)
{
    return s->can.can_hold ? without_timeout(s) : "it can't hold claims";
}

static const char *without_note(const stage *s)
{
    return s->can.can_note ? NULL : "it can't note";
}

static const char *without_memory(const stage *s)
{
    return s->options->forgets ? "it forgets" : NULL;
}

static const char *not_exact(const stage *s)
{
    return s->can.depth == MULL_DEPTH_EXACT ? NULL : "its depths aren't exact";
}

static const char *not_rough(const stage *s)
{
    return s->can.depth == MULL_DEPTH_ROUGH ? NULL : "its depths aren't rough";
}

static const char *without_cut(const stage *s)
{
    return s->options->cut && s->options->come_back ? NULL : "there are no hooks for it";
}

static const char *without_break(const stage *s)
{
    return s->options->break_down ? NULL : "there is no hook for it";
}

/* run_case_fn: 1 where the rule holds, else 0, with the reason in `text`. */
typedef int run_case_fn(stage *s);

static const struct {
    const char *name;
    run_case_fn *run;
    const char *(*lacks)(const stage *s); /* why it is skipped; NULL: it isn't */
} cases[] = {
    {"look: says the same whenever it is asked", look_says_the_same_whenever_it_is_asked, NULL},
    {"publish: a message keeps what it says", a_message_keeps_what_it_says, NULL},
    {"publish: a body of a megabyte is kept", a_body_of_a_megabyte_is_kept, NULL},
    {"order: ready messages come as they were published", ready_messages_come_in_order, NULL},
    {"delay: what is put off comes when it is due, never early",
     what_is_put_off_comes_when_it_is_due, without_delay},
    {"delay: the longest is taken", the_longest_delay_is_taken, without_longest},
    {"settle: acknowledged, it is gone", acknowledged_it_is_gone, NULL},
    {"settle: discarded, it is gone", discarded_it_is_gone, NULL},
    {"settle: what is sent goes out with the acknowledgement",
     what_is_sent_goes_out_with_the_acknowledgement, NULL},
    {"settle: redelivered, it comes when it is due, with our headers",
     redelivered_it_comes_with_our_headers, NULL},
    {"settle: a dead letter is a copy in a queue made for it",
     a_dead_letter_is_a_copy_in_a_queue_made_for_it, NULL},
    {"settle: given back, it has its old place", given_back_it_has_its_old_place, NULL},
    {"settle: given back for later, it comes when it is due",
     given_back_for_later_it_comes_when_it_is_due, without_delay},
    {"settle: a note is safe, and the claim stays", a_note_is_safe_and_the_claim_stays,
     without_note},
    {"release: settled, it can be read until then", settled_it_can_be_read_until_it_is_released,
     NULL},
    {"claim: claimed, it stays out", claimed_it_stays_out, NULL},
    {"claim: what is lost is its new owner's alone", what_is_lost_is_settled_by_its_new_owner_alone,
     without_timeout},
    {"claim: one that is held stays", a_claim_that_is_held_stays, without_hold},
    {"credit: bounds what is out", credit_bounds_what_is_out, NULL},
    {"credit: as many as `most` are handed out", as_many_as_most_are_handed_out, NULL},
    {"unsubscribe: it is read no more, until it is again", unsubscribed_it_is_read_no_more, NULL},
    {"subscribe: two readers of a queue share it", two_readers_of_a_queue_share_it, NULL},
    {"depth: tells ready, delayed and claimed", a_depth_tells_ready_delayed_and_claimed, not_exact},
    {"depth: a rough one says no more than was there",
     a_depth_that_is_rough_says_no_more_than_was_there, not_rough},
    {"answer: each ticket has one", each_ticket_is_answered_once, NULL},
    {"close: what is out comes back", what_is_out_at_a_close_comes_back, without_memory},
    {"close: what ends in it takes no other message with it",
     what_ends_at_a_close_takes_no_other_with_it, without_memory},
    {"close: what waits is kept", what_waits_at_a_close_is_kept, without_memory},
    {"trouble: cut off, it is down, and comes back", cut_off_it_is_down_and_comes_back,
     without_cut},
    {"trouble: broken, it says so, and closes", broken_it_says_so_and_closes, without_break},
};

enum { CASES = sizeof cases / sizeof *cases };

static int find_place(stage *s)
{
    char why[256] = "";
    const mull_conformance_options *options = s->options;
    mull_policy_options policy = MULL_INIT(mull_policy_options);
    policy.text = "require('mulligan.policy').bus():default():dead_letter()\n";
    policy.problem = on_problem;
    policy.data = s;
    EXPECT(options->fresh(options->data, s->url, sizeof s->url) == 0, "no place for it");
    s->ops = options->ops ? options->ops : mull_transport_ops_of(s->url);
    EXPECT(s->ops, "there is no transport for %s", s->url);
    s->can = MULL_INIT(mull_abilities);
    EXPECT(s->ops->look(s->url, NULL, &s->can, why, sizeof why) == 0, "look: %s", why);
    s->can.size = sizeof s->can;
    snprintf(s->prefixed, sizeof s->prefixed, "%s:%s", scheme, s->url);
    EXPECT(mull_policy_load(&s->policy, &policy) == 0, "the policy isn't loaded");
    return 1;
}

static mull_conformance_end run_case(stage *s, size_t number)
{
    int good = find_place(s);
    const char *lacks = good && cases[number].lacks ? cases[number].lacks(s) : NULL;
    if (lacks)
        snprintf(s->text, sizeof s->text, "%s", lacks);
    else if (good)
        good = cases[number].run(s);
    if (s->engine)
        leave(s);
    mull_policy_free(s->policy);
    if (good && !lacks && s->complaint[0])
        good = fail(s, "the engine had to complain: %s", s->complaint);
    return lacks                 ? MULL_CONFORMANCE_SKIPPED
           : good && !s->text[0] ? MULL_CONFORMANCE_PASSED
                                 : MULL_CONFORMANCE_FAILED;
}

int mull_conformance(const mull_conformance_options *options)
{
    int failed = 0;
    if (!options || options->size != sizeof *options || !options->fresh || !options->report)
        return MULL_EINVAL;
    for (size_t i = 0; i < CASES; i++) {
        stage *s = on_stage = calloc(1, sizeof *s);
        if (!s)
            return MULL_ENOMEM;
        s->options = options;
        s->clock = (mull_clock){monotonic_ms, wall_ms, s};
        mull_conformance_end end = run_case(s, i);
        failed += end == MULL_CONFORMANCE_FAILED;
        options->report(options->data, cases[i].name, end, s->text);
        free(s);
    }
    on_stage = NULL;
    return failed;
}

/* ---- The program ----------------------------------------------------------------------------- */

#ifdef MULL_CONFORMANCE_MAIN

#ifdef MULL_CONFORMANCE_OPS
extern const mull_transport_ops MULL_CONFORMANCE_OPS;
#endif

typedef struct program {
    const char *url; /* {} in it is the number of the case */
    int places, reported;
} program;

static int fresh_place(void *data, char *url, size_t size)
{
    program *p = data;
    const char *braces = strstr(p->url, "{}");
    int length = braces ? snprintf(url, size, "%.*s%d%s", (int)(braces - p->url), p->url,
                                   ++p->places, braces + 2)
                        : snprintf(url, size, "%s", p->url);
    return length >= 0 && (size_t)length < size ? 0 : MULL_ETOOBIG;
}

static void report_tap(void *data, const char *name, mull_conformance_end end, const char *text)
{
    program *p = data;
    printf("%s %d - %s%s%s\n", end == MULL_CONFORMANCE_FAILED ? "not ok" : "ok", ++p->reported,
           name, end == MULL_CONFORMANCE_SKIPPED ? " # SKIP " : "",
           end == MULL_CONFORMANCE_SKIPPED ? text : "");
    if (end == MULL_CONFORMANCE_FAILED)
        printf("# %s\n", text);
    fflush(stdout);
}

static int list_cases(void)
{
    for (size_t i = 0; i < CASES; i++)
        printf("%s\n", cases[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    program p = {0};
    mull_conformance_options options = MULL_INIT(mull_conformance_options);
    options.fresh = fresh_place;
    options.report = report_tap;
    options.data = &p;
#ifdef MULL_CONFORMANCE_OPS
    options.ops = &MULL_CONFORMANCE_OPS;
#endif
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--uncounts") == 0)
            options.uncounts = 1;
        else if (strcmp(argv[i], "--forgets") == 0)
            options.forgets = 1;
        else if (strcmp(argv[i], "--tail") == 0)
            options.tail = 1;
        else if (strcmp(argv[i], "--real-time") == 0)
            options.real_time = 1;
        else if (strcmp(argv[i], "--list") == 0)
            return list_cases();
        else
            p.url = argv[i][0] == '-' ? NULL : argv[i];
    }
    if (!p.url) {
        fprintf(stderr, "usage: %s --list | [--forgets] [--uncounts] [--tail] [--real-time] URL\n",
                argv[0]);
        return 2;
    }
    printf("1..%d\n", CASES);
    return mull_conformance(&options) == 0 ? 0 : 1;
}

#endif
