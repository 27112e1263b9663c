/* worker.c: the thread: when it works, and what is in one transaction. See worker.h; what the loop
 * calls is in worker_loop.c. */
#include "worker.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000) /* of uv_hrtime */

/* LOOK_EVERY: whether others wrote; a message that they send may wait 50 ms.
 * LOCK_CHECK_EVERY: after the lock and the files, of an owner that needs nothing.
 * RETRY_AFTER: a claim that failed.
 * PATIENCE: with others that keep the file, before people are told.
 * CHECKPOINT_TIMEOUT: the same where the log is to be emptied, while others can't write.
 * CHECKPOINT_RETRY_AFTER: to try that again where it failed. */
#define LOOK_EVERY             (20 * MS)
#define LOCK_CHECK_EVERY       (250 * MS)
#define RETRY_AFTER            (100 * MS)
#define PATIENCE               (5000 * MS)
#define CHECKPOINT_TIMEOUT     (50 * MS)
#define CHECKPOINT_RETRY_AFTER (1000 * MS)

/* Where so much fits into a transaction again, it may be any amount. */
enum { MANY = 1000 };

/* next gives the reader behind `after`, the first one behind NULL. */
static mull__reader *next(mull__worker *worker, mull__reader *after)
{
    mull__link *link = after ? mull__list_after(&worker->readers, &after->link)
                             : mull__list_first(&worker->readers);
    return link ? MULL__ENTRY(link, mull__reader, link) : NULL;
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* ring unlocks first: the loop takes the mutex as soon as it is awake. */
static void ring(mull__worker *worker)
{
    worker->unread = 1;
    uv_mutex_unlock(&worker->mutex);
    uv_async_send(worker->async);
}

static void post_why(mull__worker *worker, const char *why)
{
    uv_mutex_lock(&worker->mutex);
    snprintf(worker->answers.why, sizeof worker->answers.why, "%s: %s", worker->path, why);
    uv_mutex_unlock(&worker->mutex);
}

static void post_state(mull__worker *worker, mull_health health)
{
    worker->health = health;
    uv_mutex_lock(&worker->mutex);
    worker->answers.state_news = 1;
    worker->answers.health = health;
    ring(worker);
}

static void post(mull__worker *worker)
{
    int64_t due_ms = INT64_MAX;
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader))
        if (reader->next_due_ms < due_ms)
            due_ms = reader->next_due_ms;
    uv_mutex_lock(&worker->mutex);
    mull__answers *answers = &worker->answers;
    if (!worker->batch.count && !worker->claims.count && answers->wakes == worker->seen &&
        answers->due_ms == due_ms) {
        uv_mutex_unlock(&worker->mutex);
        return;
    }
    mull__list_append(&answers->jobs, &worker->batch);
    mull__list_append(&answers->claims, &worker->claims);
    answers->wakes = worker->seen;
    answers->due_ms = due_ms;
    ring(worker);
}

/* ---- Another process writes ------------------------------------------------------------------ */

/* mull__worker_busy waits a little, again and again: 0.05 ms at first, since the gap between two
 * commits of a process that has much to do is short, and SQLite gives no turns. */
int mull__worker_busy(void *data, int count)
{
    mull__worker *worker = data;
    uint64_t now = uv_hrtime();
    if (count == 0)
        worker->busy_since = now;
    if (worker->store.owner && now - worker->looked_at > LOCK_CHECK_EVERY) {
        worker->looked_at = now;
        mull__lock_refresh(&worker->store); /* where it fails, so will the next try to claim */
    }
    uint64_t waited = now - worker->busy_since;
    uv_mutex_lock(&worker->mutex);
    int gives_up = worker->closing ? now >= worker->close_by : waited > PATIENCE;
    uv_mutex_unlock(&worker->mutex);
    if (gives_up || (worker->emptying && waited > CHECKPOINT_TIMEOUT))
        return 0;
    struct timespec pause = {.tv_nsec = 5000000};
    if (waited < 500 * MS)
        pause.tv_nsec = waited < 5 * MS ? 50000 : 200000;
    nanosleep(&pause, NULL);
    return 1;
}

/* ---- Readers --------------------------------------------------------------------------------- */

static int has_credit(const mull__reader *reader)
{
    return reader->credit > 0;
}

static int has_room(const mull__reader *reader)
{
    return reader->credit > reader->out;
}

static int any(mull__worker *worker, int (*is)(const mull__reader *))
{
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader))
        if (is(reader))
            return 1;
    return 0;
}

/* room_for gives how many bytes of bodies may still be claimed for a reader. One that has nothing
 * gets one message, however large: it waits neither for others nor for ever. */
static size_t room_for(const mull__worker *worker, const mull__reader *reader)
{
    size_t bytes = worker->bytes + worker->leaving;
    if (bytes < worker->most_bytes)
        return worker->most_bytes - bytes;
    return reader->out == 0;
}

static int is_ready_to_claim(const mull__worker *worker, const mull__reader *reader)
{
    return !reader->dry && has_room(reader) && room_for(worker, reader) > 0;
}

static int wants_to_claim(mull__worker *worker)
{
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader))
        if (is_ready_to_claim(worker, reader))
            return 1;
    return 0;
}

static void wake(mull__reader *reader)
{
    reader->dry = 0;
    reader->next_due_ms = INT64_MAX; /* the next claim will tell */
}

/* wake_queue: there may be something to claim from a queue; NULL: from any. */
static void wake_queue(mull__worker *worker, const char *queue)
{
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader))
        if (!queue || strcmp(reader->queue, queue) == 0)
            wake(reader);
}

static void wake_settled_queues(mull__worker *worker, const mull_settlement *settlement)
{
    for (size_t i = 0; i < settlement->send_count; i++)
        wake_queue(worker, settlement->sends[i].message->queue);
    mull_settle_kind kind = settlement->kind;
    if (kind != MULL_SETTLE_ACK && kind != MULL_SETTLE_DISCARD && kind != MULL_SETTLE_NOTE)
        wake_queue(worker, settlement->queue);
}

/* ---- What is asked for ----------------------------------------------------------------------- */

static int has_returns(const mull__worker *worker)
{
    return worker->returns.count &&
           (worker->closing || worker->health == MULL_BROKEN || uv_hrtime() >= worker->retry_at);
}

/* read_inbox: with the mutex. */
static void read_inbox(mull__worker *worker)
{
    if (has_returns(worker))
        mull__list_append(&worker->batch, &worker->returns);
    mull__list_append(&worker->batch, &worker->again);
    mull__list_append(&worker->batch, &worker->inbox);
    mull__list_append(&worker->readers, &worker->arrivals);
    worker->seen = worker->wakes;
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader))
        reader->credit = reader->given;
}

/* sort_jobs leaves in the batch what is to be written. */
static void sort_jobs(mull__worker *worker)
{
    for (size_t left = worker->batch.count; left > 0; left--) {
        mull__job *job = MULL__ENTRY(mull__list_pop(&worker->batch), mull__job, link);
        mull__list *to = &worker->batch;
        if (job->kind == MULL__JOB_DEPTH)
            to = &worker->counts;
        if (job->kind == MULL__JOB_END) {
            mull__list_remove(&worker->readers, &MULL__ENTRY(job, mull__reader, job)->link);
            to = &worker->done;
        }
        mull__list_push(to, &job->link);
    }
}

/* wake_due: the loop's timer says when, but for a wall clock that is set ahead. */
static void wake_due(mull__worker *worker)
{
    int64_t now_ms = mull__store_now(&worker->store);
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader))
        if (reader->next_due_ms <= now_ms)
            wake(reader);
}

/* take takes what is asked for by now. */
static void take(mull__worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    read_inbox(worker);
    uv_mutex_unlock(&worker->mutex);
    sort_jobs(worker);
    wake_due(worker);
}

/* ---- One transaction ------------------------------------------------------------------------- */

static void end_claim(mull__worker *worker, const mull__claim *claim)
{
    claim->reader->out--;
    worker->bytes -= claim->bytes;
    worker->leaving += claim->bytes;
}

static int settle(mull__worker *worker, mull__claim *claim)
{
    int64_t poison_candidate = worker->store.state.poison_candidate;
    mull__job *job = &claim->job;
    int code = mull__store_settle(&worker->store, claim, claim->settlement, &job->status);
    if (code != SQLITE_OK)
        return code;
    if (mull__store_claim_ends(claim->settlement, job->status))
        end_claim(worker, claim);
    if (job->status == 0)
        wake_settled_queues(worker, claim->settlement);
    if (worker->store.state.poison_candidate != poison_candidate)
        wake_queue(worker, NULL);
    return code;
}

static int do_job(mull__worker *worker, mull__job *job)
{
    switch (job->kind) {
    case MULL__JOB_PUBLISH: {
        mull__publish_job *publishing = MULL__ENTRY(job, mull__publish_job, job);
        wake_queue(worker, publishing->message.queue);
        return mull__store_publish(&worker->store, &publishing->outgoing);
    }
    case MULL__JOB_SETTLE:
        return settle(worker, MULL__ENTRY(job, mull__claim, job));
    case MULL__JOB_RETURN: {
        mull__claim *claim = MULL__ENTRY(job, mull__claim, job);
        end_claim(worker, claim);
        wake_queue(worker, NULL);
        return mull__store_unclaim(&worker->store, claim);
    }
    case MULL__JOB_DEPTH:
    case MULL__JOB_END:
        break; /* sort_jobs has put them elsewhere */
    }
    return SQLITE_MISUSE;
}

/* room_left is how many messages this transaction may still claim. */
static size_t room_left(const mull__worker *worker)
{
    size_t used = worker->batch.count + worker->claims.count;
    return used < worker->most ? worker->most - used : 0;
}

static int claim_for(mull__worker *worker, mull__reader *reader)
{
    mull__store *store = &worker->store;
    size_t wanted = reader->credit - reader->out, left = room_left(worker);
    size_t room = room_for(worker, reader);
    if (wanted > left)
        wanted = left;
    int64_t now_ms = mull__store_now(store);
    mull__list claims;
    mull__list_init(&claims);
    int code = mull__store_claim(store, &claims, reader->queue, wanted, &room, now_ms);
    mull__link *link = mull__list_first(&claims);
    for (; link; link = mull__list_after(&claims, link)) {
        mull__claim *claim = MULL__ENTRY(link, mull__claim, link);
        claim->reader = reader;
        claim->message.queue = reader->queue;
        worker->bytes += claim->bytes;
    }
    reader->out += (uint32_t)claims.count;
    reader->next_due_ms = INT64_MAX;
    reader->dry = claims.count < wanted && room > 0;
    mull__list_append(&worker->claims, &claims);
    return code == SQLITE_OK && reader->dry
               ? mull__store_next_due(store, reader->queue, now_ms, &reader->next_due_ms,
                                      &reader->far_due_logged)
               : code;
}

/* claim_all: who got the poison candidate, or the last of the room, goes last the next time, so
 * that no queue waits for all of another's messages. */
static int claim_all(mull__worker *worker)
{
    mull__reader *took = NULL;
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader)) {
        if (!is_ready_to_claim(worker, reader) || room_left(worker) == 0)
            continue;
        int64_t poison_candidate = worker->store.state.poison_candidate;
        int code = claim_for(worker, reader);
        if (code != SQLITE_OK)
            return code;
        if (worker->store.state.poison_candidate != poison_candidate ||
            worker->bytes >= worker->most_bytes)
            took = reader;
    }
    if (took) {
        mull__list_remove(&worker->readers, &took->link);
        mull__list_push(&worker->readers, &took->link);
    }
    return SQLITE_OK;
}

/* do_run does the jobs from `first` to `last`, at once if it can. */
static int do_run(mull__worker *worker, mull__link *first, mull__link *last)
{
    int ended = 0, code = SQLITE_OK;
    worker->doing = NULL;
    if (first != last)
        code = mull__store_end_run(&worker->store, first, last, &ended);
    for (mull__link *link = first; code == SQLITE_OK;
         link = mull__list_after(&worker->batch, link)) {
        mull__job *job = MULL__ENTRY(link, mull__job, link);
        worker->doing = job;
        job->status = 0;
        if (ended)
            end_claim(worker, MULL__ENTRY(job, mull__claim, job));
        else
            code = do_job(worker, job);
        if (link == last)
            break;
    }
    return code;
}

static int do_batch(mull__worker *worker)
{
    int code = SQLITE_OK;
    mull__link *last, *first = mull__list_first(&worker->batch);
    for (; first && code == SQLITE_OK; first = mull__list_after(&worker->batch, last)) {
        last = mull__store_run_of(&worker->batch, first);
        code = do_run(worker, first, last);
    }
    if (code == SQLITE_OK)
        worker->doing = NULL;
    return code;
}

static int try_all(mull__worker *worker)
{
    mull__store *store = &worker->store;
    int64_t number;
    int code = mull__store_begin(store);
    if (code == SQLITE_OK && worker->claiming && worker->most == SIZE_MAX)
        take(worker); /* others may have kept the file for long */
    if (code == SQLITE_OK && worker->unwritable && worker->batch.count == 0)
        code = mull__store_number(store, &number); /* to see whether it can be written to again */
    if (code == SQLITE_OK)
        code = do_batch(worker);
    if (code == SQLITE_OK)
        code = mull__store_reap_dead_owners(store);
    if (code == SQLITE_OK && worker->claiming)
        code = mull__store_ensure_owner_row(store);
    if (code == SQLITE_OK && worker->claiming)
        code = claim_all(worker);
    return code == SQLITE_OK ? mull__store_commit(store) : code;
}

/* waits_for_lock: a settle is the engine's to try again, who knows when to give up. What nobody
 * else would try again waits until the lock is gone. */
static int waits_for_lock(const mull__job *job)
{
    return job->kind == MULL__JOB_PUBLISH || job->kind == MULL__JOB_DEPTH;
}

/* answer_all: nothing of these jobs has happened, and they say so, or wait for the next time. What
 * nobody was told of is nobody's to give back but ours. */
static void answer_all(mull__worker *worker, mull__list *jobs, int code)
{
    int goes_on = !worker->ending && worker->health != MULL_BROKEN;
    int locked = (code & 0xff) == SQLITE_BUSY;
    int no_memory = (code & 0xff) == SQLITE_NOMEM || code == SQLITE_IOERR_NOMEM;
    for (size_t left = jobs->count; left > 0; left--) {
        mull__job *job = MULL__ENTRY(mull__list_pop(jobs), mull__job, link);
        job->status = no_memory ? MULL_ENOMEM : MULL_EIO;
        mull__list *to = jobs;
        if (goes_on && job->kind == MULL__JOB_RETURN)
            to = &worker->returns;
        else if (goes_on && locked && waits_for_lock(job))
            to = &worker->again;
        mull__list_push(to, &job->link);
    }
}

static void undo(mull__worker *worker)
{
    mull__store_rollback(&worker->store);
    mull__link *link;
    while ((link = mull__list_pop(&worker->claims)))
        mull__claim_free(&worker->store.allocator, MULL__ENTRY(link, mull__claim, link));
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader))
        reader->out = reader->out_before;
    worker->bytes = worker->bytes_before;
    wake_queue(worker, NULL);
}

/* report_recovered: that what couldn't be written to works again is shown by writing only, as
 * try_all does. */
static void report_recovered(mull__worker *worker, int wrote)
{
    if (worker->unwritable && !wrote) {
        worker->retry_at = uv_hrtime() + RETRY_AFTER;
        wake_queue(worker, NULL);
        return;
    }
    worker->retry_at = 0;
    worker->unwritable = 0;
    if (worker->health == MULL_DOWN && !worker->store.lock.why[0])
        post_state(worker, MULL_UP);
}

static void report(mull__worker *worker, int code)
{
    worker->retry_at = uv_hrtime() + RETRY_AFTER;
    int kind = code & 0xff;
    worker->unwritable |= kind == SQLITE_FULL || kind == SQLITE_READONLY || kind == SQLITE_IOERR;
    char why[512];
    int broken = mull__error_describe(&worker->store, code, why, sizeof why);
    post_why(worker, why);
    if (broken || worker->health == MULL_UP)
        post_state(worker, broken ? MULL_BROKEN : MULL_DOWN);
}

static int do_all(mull__worker *worker)
{
    for (mull__reader *reader = next(worker, NULL); reader; reader = next(worker, reader))
        reader->out_before = reader->out;
    worker->bytes_before = worker->bytes;
    worker->leaving = 0;
    worker->doing = NULL;
    while (worker->batch.count > worker->most) {
        mull__link *last = worker->batch.head.previous;
        mull__list_remove(&worker->batch, last);
        mull__list_push_front(&worker->again, last);
    }
    return try_all(worker);
}

static void empty_log(mull__worker *worker)
{
    if (uv_hrtime() < worker->empty_at)
        return;
    worker->emptying = 1;
    int code = mull__wal_truncate(&worker->store);
    worker->emptying = 0;
    worker->empty_at = code == SQLITE_OK ? 0 : uv_hrtime() + CHECKPOINT_RETRY_AFTER;
}

/* do_what_fits: where there is no room, the log is emptied, and one thing at a time is done, then
 * two, four, ... */
static int do_what_fits(mull__worker *worker)
{
    int code = do_all(worker);
    for (int first = 1; mull__is_full(worker->store.db, code); first = 0) {
        undo(worker);
        empty_log(worker);
        if (!first)
            return SQLITE_FULL;
        worker->most = 1;
        code = do_all(worker);
    }
    if (code == SQLITE_OK && worker->most != SIZE_MAX)
        worker->most = worker->most > MANY ? SIZE_MAX : 2 * worker->most;
    return code;
}

/* report_refusal: what can't be published stops nothing else, or what is there could never make
 * room. */
static void report_refusal(mull__worker *worker)
{
    static const char why[] = "has no room for what is sent to it; make some elsewhere on its "
                              "disk. What is in it is handled meanwhile";
    post_why(worker, why);
    if (!worker->refuses)
        mull__store_log(&worker->store, MULL_ERROR_LEVEL, "%s: %s", worker->path, why);
    worker->refuses = 1;
}

/* stop_counting: a message whose settle is refused may stay here for good, and then holds up
 * nobody.
 */
static void stop_counting(mull__worker *worker, mull__claim *claim)
{
    worker->bytes -= claim->bytes;
    claim->bytes = 0;
}

/* do_what_is_small: what is too large for SQLite never fits, and is refused alone. */
static int do_what_is_small(mull__worker *worker)
{
    int code;
    while ((code = do_what_fits(worker)) == SQLITE_TOOBIG && worker->doing) {
        undo(worker);
        worker->doing->status = MULL_EREFUSED;
        if (worker->doing->kind == MULL__JOB_SETTLE)
            stop_counting(worker, MULL__ENTRY(worker->doing, mull__claim, job));
        mull__list_remove(&worker->batch, &worker->doing->link);
        mull__list_push(&worker->done, &worker->doing->link);
    }
    return code;
}

static void transact(mull__worker *worker)
{
    const mull__store *store = &worker->store;
    int changes = sqlite3_total_changes(store->db);
    int code = do_what_is_small(worker);
    if (code == SQLITE_OK) {
        report_recovered(worker, sqlite3_total_changes(store->db) != changes);
        worker->commits++;
        worker->refuses &= !store->publishes;
        return;
    }
    if (store->refused)
        report_refusal(worker);
    else
        report(worker, code);
    undo(worker);
    answer_all(worker, &worker->batch, code);
}

/* claim_separately: what is refused takes the only place of its transaction again and again, and
 * what is there would never be handled. */
static void claim_separately(mull__worker *worker)
{
    mull__list answered;
    mull__list_init(&answered);
    mull__list_append(&answered, &worker->batch);
    transact(worker);
    mull__list_append(&worker->batch, &answered);
}

/* count_all answers what was asked of depths, after all else that was asked for at the time. */
static void count_all(mull__worker *worker)
{
    int code = SQLITE_READONLY;
    if (worker->health != MULL_BROKEN) {
        code = mull__store_depths(&worker->store, &worker->counts);
        if (code != SQLITE_OK)
            report(worker, code);
        else if (worker->miscounted)
            report_recovered(worker, 0);
        worker->miscounted = code != SQLITE_OK;
    }
    if (code != SQLITE_OK)
        answer_all(worker, &worker->counts, code);
    mull__list_append(&worker->batch, &worker->counts);
}

/* ---- When to work ---------------------------------------------------------------------------- */

/* look_for wakes a reader where its queue has something that it doesn't know of. */
static int look_for(mull__worker *worker, mull__reader *reader, int64_t now_ms)
{
    int64_t due_ms = -1, no_candidate_is_out = !worker->store.state.poison_candidate;
    int code = mull__store_ask(&due_ms, mull__store_bind(&worker->store, MULL__SQL_LOOK, "ti",
                                                         reader->queue, no_candidate_is_out));
    int known = due_ms > now_ms && due_ms == reader->next_due_ms;
    if (due_ms >= 0 && !known)
        wake(reader);
    return code;
}

/* look_for_all asks for the queues that are read here, not for all that the file has, and for those
 * alone that had nothing when they were last claimed from. */
static int look_for_all(mull__worker *worker)
{
    mull__store *store = &worker->store;
    int64_t now_ms = mull__store_now(store);
    int code = mull__store_run(store, MULL__SQL_BEGIN_READING, "");
    if (code != SQLITE_OK)
        return code;
    mull__reader *reader = next(worker, NULL);
    for (; reader && code == SQLITE_OK; reader = next(worker, reader))
        if (reader->dry)
            code = look_for(worker, reader, now_ms);
    int ended = mull__store_run(store, MULL__SQL_ROLLBACK, ""); /* nothing was written */
    return code != SQLITE_OK ? code : ended;
}

/* look asks whether others wrote or died. Where it can't, the transaction that follows will say
 * why. */
static void look(mull__worker *worker)
{
    int news = 0;
    int code = mull__store_poll(&worker->store, &news);
    if (code == SQLITE_OK && news & MULL__NEWS_WRITTEN)
        code = look_for_all(worker);
    if (code != SQLITE_OK || news & MULL__NEWS_OWNER_DIED)
        wake_queue(worker, NULL);
}

static int own(mull__worker *worker)
{
    mull__store *store = &worker->store;
    int code = mull__store_register_owner(store);
    if (!mull__is_full(store->db, code))
        return code;
    empty_log(worker);
    return mull__store_register_owner(store);
}

/* may_claim: as an owner, and not at once after a failure. Whether there is room is seen later: a
 * settle of the same transaction may make some. */
static int may_claim(mull__worker *worker)
{
    int locked_out = worker->store.lock.why[0] != 0;
    if (worker->ending || !(any(worker, has_credit) || locked_out) ||
        uv_hrtime() < worker->retry_at)
        return 0;
    int code = worker->store.owner ? mull__lock_refresh(&worker->store) : own(worker);
    if (code != SQLITE_OK)
        report(worker, code);
    else if (locked_out)
        wake_queue(worker, NULL); /* whatever comes of that says that it is up again */
    return code == SQLITE_OK;
}

/* watch looks after what doesn't need a transaction. Owners do it even if they want nothing, for
 * others ask for them. */
static void watch(mull__worker *worker, int claiming)
{
    uint64_t now = uv_hrtime();
    if (now - worker->looked_at < LOOK_EVERY)
        return;
    worker->looked_at = now;
    int code = mull__db_files_check(&worker->store);
    if (code == SQLITE_READONLY_DBMOVED)
        report(worker, code);
    else if (claiming)
        look(worker);
    else if (worker->store.owner)
        mull__lock_refresh(&worker->store);
}

/* is_to_be_tried: while it is down, nobody asks for what would show that it works again. */
static int is_to_be_tried(const mull__worker *worker)
{
    return worker->health == MULL_DOWN && !worker->ending && uv_hrtime() >= worker->retry_at;
}

/* try_again: where the log can't be emptied, that so little fits says nothing of the rest. */
static void try_again(mull__worker *worker)
{
    if (worker->empty_at)
        empty_log(worker);
    if (worker->empty_at)
        worker->retry_at = uv_hrtime() + RETRY_AFTER;
    else
        transact(worker);
}

/* work does what there is to do now. What was asked for is always tried. */
static void work(mull__worker *worker)
{
    sort_jobs(worker);
    wake_due(worker);
    worker->claiming = worker->health != MULL_BROKEN && may_claim(worker);
    if (worker->health != MULL_BROKEN)
        watch(worker, worker->claiming);
    if (worker->health == MULL_BROKEN)
        answer_all(worker, &worker->batch, SQLITE_READONLY);
    else if (worker->batch.count || (worker->claiming && wants_to_claim(worker)))
        transact(worker);
    else if (is_to_be_tried(worker))
        try_again(worker);
    if (worker->store.refused && worker->claiming && wants_to_claim(worker))
        claim_separately(worker);
    if (worker->counts.count)
        count_all(worker);
    mull__list_append(&worker->batch, &worker->done);
    worker->leaving = 0;
    post(worker);
}

static int has_work(mull__worker *worker)
{
    return worker->again.count || worker->inbox.count || worker->arrivals.count ||
           worker->wakes != worker->seen || has_returns(worker);
}

enum { UNTIL_WOKEN = 0, NOT_AT_ALL = 1 };

/* pause_for is how long the worker may sleep, or one of these. */
static uint64_t pause_for(mull__worker *worker)
{
    if (worker->ending || worker->health == MULL_BROKEN)
        return UNTIL_WOKEN;
    if (!any(worker, has_room) && !worker->returns.count && worker->health == MULL_UP)
        return worker->store.owner ? LOCK_CHECK_EVERY : UNTIL_WOKEN;
    uint64_t now = uv_hrtime();
    if (worker->retry_at > now)
        return worker->retry_at - now;
    return is_to_be_tried(worker) || wants_to_claim(worker) ? NOT_AT_ALL : LOOK_EVERY;
}

/* await waits for work and takes it; 0: it is time to end. */
static int await(mull__worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    while (!has_work(worker)) {
        worker->ending = worker->closing;
        if (worker->closing && !worker->unread && !worker->reading) {
            uv_mutex_unlock(&worker->mutex);
            return 0;
        }
        uint64_t pause = pause_for(worker);
        if (pause == UNTIL_WOKEN)
            uv_cond_wait(&worker->cond, &worker->mutex);
        else if (pause == NOT_AT_ALL ||
                 uv_cond_timedwait(&worker->cond, &worker->mutex, pause) != 0)
            break;
    }
    worker->ending = worker->closing;
    read_inbox(worker);
    uv_mutex_unlock(&worker->mutex);
    return 1;
}

/* finish: the last thing, after all that was asked for was done. */
static void finish(mull__worker *worker)
{
    mull__store_log(&worker->store, MULL_DEBUG, "%llu transactions",
                    (unsigned long long)worker->commits);
    if (worker->health != MULL_BROKEN) {
        if (worker->unwritable)
            empty_log(worker);
        mull__store_unregister_owner(&worker->store);
    }
    /* Closing writes too, and removes the log: that of others, where ours is gone. */
    int code = worker->health != MULL_BROKEN ? mull__db_files_confirm(&worker->store) : SQLITE_OK;
    if (code != SQLITE_OK)
        report(worker, code);
    mull__store_close(&worker->store);
    uv_mutex_lock(&worker->mutex);
    worker->answers.finished = 1;
    ring(worker);
}

void mull__worker_run(void *data)
{
    mull__worker *worker = data;
    while (await(worker))
        work(worker);
    finish(worker);
}
