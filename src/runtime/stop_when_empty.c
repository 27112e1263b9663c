/* stop_when_empty.c: mull_stop_when_empty: while no message is here, transports are asked how many
 * are in their queues, round after round, until none is. Then the engine stops. */
#include "stop_when_empty.h"

#include "engine_control.h"
#include "policy/delay.h"
#include "settlement.h"
#include "stop.h"
#include "timers.h"

enum {
    LOOK_MS = 50,
    LOOK_MAX_MS = 60000,
    WAIT_MAX_MS = 5000, /* between two tries, while depths can't be had */
    GIVE_UP_MS = 60000  /* so long after the first try */
};

/* A day more than any policy puts off, since clocks differ. */
#define FAR_MS (MULL__DELAY_MAX_MS + 24 * 3600 * 1000)

static int64_t within(int64_t least, int64_t value, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static void on_look(void *engine)
{
    mull__engine_mark_posted(engine);
}

static void look_in(mull_engine *engine, int64_t wait_ms)
{
    mull__timer_set(engine, &engine->depths.timer, wait_ms, on_look, engine);
}

int mull__engine_emptied(const mull_engine *engine)
{
    return engine->emptied;
}

int mull__engine_quiet(const mull_engine *engine)
{
    return engine->emptied && engine->depths.rough;
}

/* depth_failed keeps the first failure of a round, as that is the one to be told. */
static void depth_failed(mull__consumer *c, int status)
{
    mull__depth_poll *depths = &c->engine->depths;
    depths->failed_of = depths->failed ? depths->failed_of : c;
    depths->failed = depths->failed ? depths->failed : status;
}

/* ask_failed is for a round in which a depth could not be had. It is asked again ever more rarely,
 * which is told once, and given up in the end, unless memory is missing. A transport that is down
 * is waited for: that it is has been told. */
static void ask_failed(mull_engine *engine)
{
    mull__depth_poll *depths = &engine->depths;
    const mull__consumer *c = depths->failed_of;
    int64_t now_ms = mull__engine_now(engine);
    int is_down = c->port->health == MULL_DOWN;
    if (!depths->is_told && !is_down)
        mull__engine_log(engine, MULL_WARNING,
                         "transport %s can't say how many messages are in the queue %s: %s; it is "
                         "asked again",
                         c->port->name, c->queue, mull_strerror(depths->failed));
    depths->is_told |= !is_down;
    if (depths->wait_ms == 0 || is_down || depths->failed == MULL_ENOMEM)
        depths->give_up_ms = now_ms + GIVE_UP_MS;
    int64_t left_ms = depths->give_up_ms - now_ms;
    if (left_ms > 0) {
        depths->wait_ms = within(LOOK_MS, depths->wait_ms * 2, WAIT_MAX_MS);
        look_in(engine, within(0, depths->wait_ms, left_ms));
        return;
    }
    engine->status = mull__engine_problem(
        engine, MULL_EIO,
        "transport '%s': for %d s it could not say how many messages are in the queue '%s': %s",
        c->port->name, GIVE_UP_MS / 1000, c->queue, mull_strerror(depths->failed));
    mull__stop_begin(engine);
}

/* stop_short stops the engine though messages may be left. */
#define STOP_SHORT(engine, ...)                                                                    \
    do {                                                                                           \
        (engine)->status = mull__engine_problem(engine, MULL_EREFUSED, __VA_ARGS__);               \
        mull__stop_begin(engine);                                                                  \
    } while (0)

/* parked counts what is parked here, or, where queues can be counted, in them. */
static uint64_t parked(mull_engine *engine)
{
    uint64_t count = 0;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        count += c->parked;
    return count > engine->depths.parked ? count : engine->depths.parked;
}

/* unread gives a consumer whose queue isn't read, NULL: there is none. */
static mull__consumer *unread(mull_engine *engine)
{
    mull__consumer *c = NULL;
    while ((c = mull__next_consumer(engine, c)) && c->source == MULL_SOURCE_READY)
        continue;
    return c;
}

/* nothing_left stops the engine: what can be handled now is. A queue that is only waited for may
 * be read soon, and so may a refused one that is being subscribed anew. */
static void nothing_left(mull_engine *engine)
{
    mull__consumer *c = unread(engine);
    if (c && (c->source == MULL_SOURCE_WAITING || c->state == MULL__CONSUMER_RENEWS)) {
        depth_failed(c, MULL_EDOWN);
        ask_failed(engine);
        return;
    }
    if (c) {
        STOP_SHORT(engine,
                   "consumer '%s' can't read the queue '%s', so nobody knows whether it is empty: "
                   "%s",
                   c->label, c->queue, c->why);
        return;
    }
    if (parked(engine) > 0) {
        STOP_SHORT(engine,
                   "%llu message(s) are parked, since their transport never settles them; the log "
                   "says why",
                   (unsigned long long)parked(engine));
        return;
    }
    if (engine->depths.resting > 0) {
        STOP_SHORT(
            engine,
            "%llu message(s) are left to consumers that are paused, which nothing here resumes",
            (unsigned long long)engine->depths.resting);
        return;
    }
    engine->emptied = 1;
    mull__stop_begin(engine);
}

/* found_some looks again: soon at what others have claimed, else when the next delayed message is
 * due. It stops where all that is left waits for a time to which no policy can have put it off. */
static void found_some(mull_engine *engine)
{
    const mull__depth_poll *depths = &engine->depths;
    int64_t wait_ms = depths->next_due - mull__engine_wall(engine);
    if (depths->left > 0)
        engine->active_ms = mull__engine_now(engine);
    if (depths->claimed || depths->left == 0 || wait_ms <= FAR_MS) {
        int soon = depths->claimed || depths->next_due == INT64_MAX || wait_ms < 1;
        look_in(engine, soon ? LOOK_MS : within(1, wait_ms, LOOK_MAX_MS));
        return;
    }
    STOP_SHORT(engine,
               "%llu message(s) in the queues that are read are due in more than 365 days, later "
               "than any policy can say; it isn't waited for them",
               (unsigned long long)depths->left);
}

/* quiet_left is how long nothing has to happen yet, where it isn't known what is in a queue. */
static int64_t quiet_left(mull_engine *engine)
{
    int64_t quiet_ms = engine->options.quiet_ms;
    int64_t since_ms = mull__later(engine->active_ms, quiet_ms) - mull__engine_now(engine);
    int64_t due_ms = mull__later(engine->put_off_ms, quiet_ms) - mull__engine_wall(engine);
    return !engine->depths.rough ? 0 : since_ms > due_ms ? since_ms : due_ms;
}

static void ask_depths(mull_engine *engine);

/* round_over: what is counted at several moments, one after the other, may miss a message which
 * another engine moves on meanwhile. It can't miss it in more rounds than there are moments. What
 * arrived since the first count may have sent more to a queue that was counted before. */
static void round_over(mull_engine *engine)
{
    mull__depth_poll *depths = &engine->depths;
    int moved = engine->arrivals != depths->arrivals || !mull__all_settled(engine);
    depths->claimed |= moved;
    int empty = depths->left == depths->resting + depths->parked && depths->failed == 0 && !moved;
    depths->rounds = empty ? depths->rounds + 1 : 0;
    if (!depths->failed)
        depths->wait_ms = depths->is_told = 0;
    if (depths->failed) {
        ask_failed(engine);
    } else if (!empty) {
        found_some(engine);
    } else if (depths->rounds < depths->moments) {
        ask_depths(engine);
    } else if (quiet_left(engine) > 0) {
        look_in(engine, quiet_left(engine));
    } else {
        nothing_left(engine);
    }
}

/* is_paused says whether all who read a consumer's queue are paused. */
static int is_paused(const mull__consumer *c)
{
    for (mull__consumer *other = NULL; (other = mull__next_consumer(c->engine, other));)
        if (!other->paused && !other->is_reader && mull__same_queue(other, c))
            return 0;
    return 1;
}

/* parked_of counts what is parked of a consumer's queue, also what was let go of: by consumers that
 * are gone, or for a new subscription. */
static uint64_t parked_of(const mull__consumer *c)
{
    mull__list *gone = &c->engine->gone;
    uint64_t count = 0;
    for (mull__consumer *other = NULL; (other = mull__next_consumer(c->engine, other));)
        count += mull__same_queue(other, c) ? other->parked + other->let_go : 0;
    for (mull__link *link = mull__list_first(gone); link; link = mull__list_after(gone, link)) {
        const mull__consumer *other = MULL__ENTRY(link, mull__consumer, link);
        count += mull__same_queue(other, c) ? other->let_go : 0;
    }
    return count;
}

/* add_depth: of a rough one only what is ready counts. What was let go of may be claimed no more.
 */
static void add_depth(mull__depth_poll *depths, mull_depth_kind kind, const mull_depth *depth,
                      int paused, uint64_t parked)
{
    if (depth->delayed == MULL_UNKNOWN || depth->claimed == MULL_UNKNOWN)
        kind = MULL_DEPTH_ROUGH;
    depths->rough |= kind != MULL_DEPTH_EXACT;
    if (depth->ready != MULL_UNKNOWN)
        depths->left += depth->ready;
    if (paused && depth->ready != MULL_UNKNOWN)
        depths->resting += depth->ready;
    if (paused && kind == MULL_DEPTH_EXACT)
        depths->resting += depth->delayed;
    depths->claimed |= depth->ready > 0 && depth->ready != MULL_UNKNOWN;
    if (kind != MULL_DEPTH_EXACT)
        return;
    parked = parked < depth->claimed ? parked : depth->claimed;
    depths->parked += parked;
    depths->left += depth->delayed + depth->claimed;
    depths->claimed |= depth->claimed > parked;
    if (depth->next_due_ms < depths->next_due)
        depths->next_due = depth->next_due_ms;
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    mull__consumer *c = data;
    mull__depth_poll *depths = &c->engine->depths;
    depths->asked--;
    if (status != 0)
        depth_failed(c, status);
    else
        add_depth(depths, c->can.depth, depth, is_paused(c), parked_of(c));
    if (depths->asked == 0 && c->engine->state == MULL__RUNNING)
        round_over(c->engine);
}

/* nobody_reads says that a consumer's queue is refused, to all who are to read it: what is in there
 * isn't waited for. */
static int nobody_reads(const mull__consumer *c)
{
    for (mull__consumer *o = NULL; (o = mull__next_consumer(c->engine, o));)
        if (o->source != MULL_SOURCE_REFUSED && mull__same_queue(o, c))
            return 0;
    return 1;
}

static void ask_depths(mull_engine *engine)
{
    mull__depth_poll *depths = &engine->depths;
    if (engine->arrivals != depths->arrivals)
        depths->wait_ms = depths->is_told = 0; /* it has worked since */
    depths->left = depths->resting = depths->parked = 0;
    depths->arrivals = engine->arrivals;
    depths->claimed = depths->failed = depths->rough = 0;
    depths->next_due = INT64_MAX;
    depths->moments = 0;
    depths->polls++;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        if (c->source == MULL_SOURCE_REFUSED && nobody_reads(c))
            continue;
        depths->rough |= c->can.depth != MULL_DEPTH_EXACT;
        if (!c->shares && !(c->floor.counts_at_once && c->port->counted == depths->polls))
            depths->moments++;
        c->port->counted = depths->polls;
        if (c->shares || c->can.depth == MULL_DEPTH_NONE)
            continue;
        int status = mull_queue_depth(engine, c->port->name, c->queue, on_depth, c);
        depths->asked += status == 0;
        if (status != 0)
            depth_failed(c, status);
    }
    if (depths->asked == 0)
        round_over(engine); /* all failed, or there is no consumer */
}

/* stop_unanswered stops once all that is left here is in settlements that no transport answers. */
static void stop_unanswered(mull_engine *engine)
{
    unsigned count = 0;
    for (mull__delivery *d = NULL; (d = mull__next_delivery(engine, d));
         count += d->state < MULL__SETTLED)
        if (d->state < MULL__SETTLED && !d->overlong)
            return;
    if (count > 0)
        STOP_SHORT(engine,
                   "their transports have not said whether %u message(s) are settled; it isn't "
                   "waited for any longer",
                   count);
}

/* Asks how much there is once nothing of it is here. */
void mull__until_empty_check(mull_engine *engine)
{
    if (engine->until_empty && engine->state == MULL__RUNNING && !mull__all_settled(engine))
        stop_unanswered(engine);
    if (engine->until_empty && engine->state == MULL__RUNNING && engine->depths.asked == 0 &&
        !engine->depths.timer.set && mull__all_settled(engine))
        ask_depths(engine);
}

int mull_stop_when_empty(mull_engine *engine)
{
    if (!engine)
        return MULL_EINVAL;
    engine->until_empty = 1;
    mull__engine_mark_posted(engine);
    return 0;
}
