/* sqlite_model.c: three stores on one file do what chance says: publish, claim, settle, undo,
 * leave, die, while an operator takes claims away and deletes. After each transaction the file is
 * held against a model of what must be in it, and against the invariants of
 * docs/decisions/0021-schema-2.md.
 *
 * MULL_SEEDS=n for more of them, MULL_SEED=n for the first one. */
#include "sqlite_engine.h"

#include "runtime/engine_state.h"
#include "transport/sqlite/store.h"

enum { STORES = 3, QUEUES = 2, MESSAGES = 400, STEPS = 120, LARGE = MULL__BODY_IN_ROW + 1 };
static const char *const names[QUEUES + 1] = {"one", "two", "dead"};

/* told is a message as it must be. */
typedef struct told {
    int there, queue, waits, dead; /* waits: in `waiting` */
    int store;                     /* who has claimed it; -1: nobody */
    int64_t due_ms, deliveries;
    int size;
    int place; /* among what is ready */
} told;

typedef struct claimed {
    mull__claim *claim;
    int id, lost, ended;
} claimed;

/* world is all that a rollback brings back. */
typedef struct world {
    told messages[MESSAGES];
    int count, places;
    claimed claims[STORES][MESSAGES];
    int claim_count[STORES];
    const mull__claim *suspect[STORES]; /* the poison candidate that is out; NULL: none */
} world;

static world is, was;
static mull_engine engine; /* as much of one as a port needs */
static mull_port port;
static mull__store stores[STORES];
static sqlite3 *other;
static int64_t now_ms;
static uint64_t seed;
static int interfered; /* with this seed */
static char bytes[LARGE + 100];

static int64_t now_of(void *data)
{
    (void)data;
    return now_ms;
}

static int64_t wall_of(void *data)
{
    (void)data;
    return 1000000 + now_ms;
}

static uint64_t roll(uint64_t below)
{
    seed += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

/* ---- What a transaction does ------------------------------------------------------------------
 */

static told *message_of(const mull_message *message)
{
    return &is.messages[atoi(message->id)];
}

static void put_publish(mull__store *store)
{
    if (is.count == MESSAGES)
        return;
    static const int sizes[] = {0, 10, MULL__BODY_IN_ROW, LARGE};
    char id[16];
    told *m = &is.messages[is.count];
    *m = (told){.there = 1, .queue = (int)roll(QUEUES), .store = -1, .size = sizes[roll(4)]};
    snprintf(id, sizeof id, "%d", is.count++);
    mull_message message = MULL_INIT(mull_message);
    message.queue = names[m->queue];
    message.id = id;
    message.body = bytes;
    message.body_size = (size_t)m->size;
    mull_outgoing outgoing = {.size = sizeof outgoing, .message = &message};
    if (roll(3) == 0)
        outgoing.due_ms = m->due_ms = wall_of(NULL) + 1 + (int64_t)roll(40);
    m->waits = m->due_ms > 0;
    m->place = is.places++;
    assert_int_equal(mull__store_publish(store, &outgoing), SQLITE_OK);
}

/* check_claim: it may be claimed, and it is its turn. */
static void check_claim(int s, const mull__claim *claim, int queue)
{
    told *m = message_of(&claim->message);
    assert_true(m->there && m->store == -1 && m->queue == queue);
    assert_true(m->due_ms <= wall_of(NULL));
    assert_int_equal(claim->message.deliveries, m->deliveries + 1);
    assert_int_equal(claim->message.body_size, m->size);
    assert_memory_equal(claim->message.body, bytes, (size_t)m->size);
    assert_int_equal(claim->queue != 0, !m->waits);
    if (m->deliveries > 0) {
        assert_null(is.suspect[s]);
        is.suspect[s] = claim;
    }
    for (int i = 0; !m->waits && i < is.count; i++) {
        const told *o = &is.messages[i];
        assert_false(o->there && o->store == -1 && o->queue == queue && !o->waits &&
                     o->place < m->place);
    }
    m->store = s;
    m->deliveries++;
}

/* check_rest: whoever claimed fewer than it wanted left nothing. */
static void check_rest(int s, int queue)
{
    for (int i = 0; i < is.count; i++) {
        const told *m = &is.messages[i];
        if (m->there && m->store == -1 && m->queue == queue && m->due_ms <= wall_of(NULL) &&
            (m->deliveries == 0 || !is.suspect[s]))
            fail_msg("message %d wasn't claimed: queue %d, due %lld, deliveries %d, now %lld", i,
                     m->queue, (long long)m->due_ms, (int)m->deliveries, (long long)wall_of(NULL));
    }
}

static void claim_some(mull__store *store, int s)
{
    int queue = (int)roll(QUEUES + 1);
    mull__list claims;
    size_t wanted = 1 + roll(12), room = roll(3) ? SIZE_MAX : 1 + roll(9000);
    mull__list_init(&claims);
    assert_int_equal(
        mull__store_claim(store, &claims, names[queue], wanted, &room, mull__store_now(store)),
        SQLITE_OK);
    int few = claims.count < wanted && room > 0;
    assert_true(claims.count <= wanted);
    for (mull__link *link; (link = mull__list_pop(&claims));) {
        mull__claim *claim = MULL__ENTRY(link, mull__claim, link);
        claim->message.queue = names[queue];
        check_claim(s, claim, queue);
        is.claims[s][is.claim_count[s]++] = (claimed){claim, atoi(claim->message.id), 0, 0};
    }
    if (few)
        check_rest(s, queue);
}

static claimed *any_claim(int s)
{
    if (is.claim_count[s] == 0)
        return NULL;
    claimed *c = &is.claims[s][roll((uint64_t)is.claim_count[s])];
    return c->ended ? NULL : c;
}

/* put_back: nobody has it any more. */
static void put_back(told *m, int64_t deliveries, int64_t due_ms)
{
    m->store = -1;
    m->waits = 1;
    m->deliveries = deliveries;
    m->due_ms = due_ms;
}

static void expect_settled(told *m, mull_settle_kind kind, int64_t due_ms)
{
    if (kind == MULL_SETTLE_ACK || kind == MULL_SETTLE_DISCARD)
        m->there = 0;
    else if (kind == MULL_SETTLE_GIVE_BACK)
        put_back(m, m->deliveries - 1, due_ms ? due_ms : m->due_ms);
    else
        put_back(m, 0, due_ms);
    if (kind == MULL_SETTLE_DEAD_LETTER) {
        m->dead = 1;
        m->queue = QUEUES;
    } else if (kind == MULL_SETTLE_REDELIVER && due_ms == 0 && !m->dead) {
        m->waits = 0;
        m->place = is.places++;
    }
}

static void settle_one(mull__store *store, int s)
{
    static const mull_settle_kind kinds[] = {
        MULL_SETTLE_ACK,       MULL_SETTLE_ACK,         MULL_SETTLE_ACK,       MULL_SETTLE_DISCARD,
        MULL_SETTLE_REDELIVER, MULL_SETTLE_DEAD_LETTER, MULL_SETTLE_GIVE_BACK, MULL_SETTLE_NOTE};
    claimed *c = any_claim(s);
    if (!c)
        return;
    told *m = &is.messages[c->id];
    mull_settlement settlement = {.size = sizeof settlement,
                                  .kind = kinds[roll(sizeof kinds / sizeof *kinds)],
                                  .id = c->claim->message.id};
    if (settlement.kind == MULL_SETTLE_DEAD_LETTER)
        settlement.queue = names[QUEUES];
    if ((settlement.kind == MULL_SETTLE_REDELIVER || settlement.kind == MULL_SETTLE_GIVE_BACK) &&
        roll(2))
        settlement.due_ms = wall_of(NULL) + 1 + (int64_t)roll(30);
    int status;
    assert_int_equal(mull__store_settle(store, c->claim, &settlement, &status), SQLITE_OK);
    assert_int_equal(status, c->lost ? MULL_ELOST : 0);
    if (settlement.kind == MULL_SETTLE_NOTE && !c->lost)
        return;
    c->ended = 1;
    if (is.suspect[s] == c->claim)
        is.suspect[s] = NULL;
    if (!c->lost)
        expect_settled(m, settlement.kind, settlement.due_ms);
}

static void unclaim_one(mull__store *store, int s)
{
    claimed *c = any_claim(s);
    if (!c)
        return;
    assert_int_equal(mull__store_unclaim(store, c->claim), SQLITE_OK);
    c->ended = 1;
    if (is.suspect[s] == c->claim)
        is.suspect[s] = NULL;
    if (!c->lost)
        put_back(&is.messages[c->id], is.messages[c->id].deliveries - 1, is.messages[c->id].due_ms);
}

/* ---- Commits, undone transactions, and ends ---------------------------------------------------
 */

/* forget frees claims that ended, or, of those that `kept` doesn't have, that began. */
static void forget_ended(int s)
{
    int left = 0;
    for (int i = 0; i < is.claim_count[s]; i++)
        if (is.claims[s][i].ended)
            mull__claim_free(&stores[s].allocator, is.claims[s][i].claim);
        else
            is.claims[s][left++] = is.claims[s][i];
    is.claim_count[s] = left;
}

static void forget_new(int s)
{
    for (int i = was.claim_count[s]; i < is.claim_count[s]; i++)
        mull__claim_free(&stores[s].allocator, is.claims[s][i].claim);
    is = was;
}

static void transact(int s)
{
    mull__store *store = &stores[s];
    was = is;
    assert_int_equal(mull__store_begin(store), SQLITE_OK);
    for (uint64_t left = roll(8); left > 0; left--) {
        uint64_t kind = roll(10);
        if (kind < 3)
            put_publish(store);
        else if (kind < 9)
            settle_one(store, s);
        else
            unclaim_one(store, s);
    }
    if (roll(2))
        claim_some(store, s);
    if (roll(6) == 0) {
        mull__store_rollback(store);
        forget_new(s);
    } else {
        assert_int_equal(mull__store_commit(store), SQLITE_OK);
        forget_ended(s);
    }
}

static void open_store(int s)
{
    char why[256];
    assert_int_equal(mull__store_open(&stores[s], &port, path, why, sizeof why), 0);
    assert_int_equal(mull__store_register_owner(&stores[s]), SQLITE_OK);
    is.suspect[s] = NULL;
}

static void free_claims(int s, int64_t counted)
{
    for (int i = 0; i < is.claim_count[s]; i++) {
        claimed *c = &is.claims[s][i];
        told *m = &is.messages[c->id];
        if (!c->lost)
            put_back(m, m->deliveries - 1 + counted, m->due_ms);
        c->ended = 1;
    }
    forget_ended(s);
}

static void leave(int s)
{
    mull__store_unregister_owner(&stores[s]);
    free_claims(s, 0);
    mull__store_close(&stores[s]);
    open_store(s);
}

/* die: whoever comes next finds that nobody holds the byte. */
static void die(int s)
{
    int news;
    mull__store *heir = &stores[(s + 1) % STORES];
    free_claims(s, 1);
    mull__store_close(&stores[s]);
    assert_int_equal(mull__store_poll(heir, &news), SQLITE_OK);
    assert_true(news & MULL__NEWS_OWNER_DIED);
    assert_int_equal(mull__store_begin(heir), SQLITE_OK);
    assert_int_equal(mull__store_reap_dead_owners(heir), SQLITE_OK);
    assert_int_equal(mull__store_commit(heir), SQLITE_OK);
    open_store(s);
}

/* interfere: an operator takes a claim away, or deletes a message. */
static void interfere(void)
{
    char text[128];
    if (is.count == 0)
        return;
    interfered = 1;
    int id = (int)roll((uint64_t)is.count), deletes = roll(3) == 0;
    told *m = &is.messages[id];
    if (!m->there || (!deletes && m->store == -1))
        return;
    snprintf(text, sizeof text,
             deletes ? "DELETE FROM messages WHERE id = '%d'"
                     : "UPDATE messages SET owner = NULL WHERE id = '%d'",
             id);
    sql(other, text);
    for (int i = 0; m->store >= 0 && i < is.claim_count[m->store]; i++)
        is.claims[m->store][i].lost |= is.claims[m->store][i].id == id;
    put_back(m, m->deliveries, m->due_ms);
    m->there = !deletes;
}

/* ---- The file against the model ---------------------------------------------------------------
 */

static void check_row(sqlite3_stmt *row)
{
    int id = sqlite3_column_int(row, 0);
    const told *m = &is.messages[id];
    if (!m->there)
        fail_msg("message %d is there", id);
    assert_string_equal((const char *)sqlite3_column_text(row, 1), names[m->queue]);
    assert_int_equal(sqlite3_column_int64(row, 2), m->due_ms);
    if (sqlite3_column_int64(row, 3) != (m->store < 0 ? 0 : stores[m->store].owner))
        fail_msg("message %d has owner %d", id, sqlite3_column_int(row, 3));
    assert_int_equal(sqlite3_column_int64(row, 4), m->deliveries);
    assert_int_equal(sqlite3_column_int(row, 5), m->size);
    assert_int_equal(sqlite3_column_int(row, 6), m->dead);
}

static void check_rows(void)
{
    sqlite3_stmt *row;
    int found = 0, wanted = 0;
    assert_int_equal(sqlite3_prepare_v2(other,
                                        "SELECT id, queue, due_ms, owner, deliveries, length(body),"
                                        " dead_ms IS NOT NULL FROM messages",
                                        -1, &row, NULL),
                     SQLITE_OK);
    for (; sqlite3_step(row) == SQLITE_ROW; found++)
        check_row(row);
    assert_int_equal(sqlite3_finalize(row), SQLITE_OK);
    for (int i = 0; i < is.count; i++)
        wanted += is.messages[i].there;
    assert_int_equal(found, wanted);
}

static void check_depth(int queue)
{
    mull_depth depth = {0};
    int64_t next = INT64_MAX;
    for (int i = 0; i < is.count; i++) {
        const told *m = &is.messages[i];
        if (!m->there || m->queue != queue)
            continue;
        int later = m->due_ms > wall_of(NULL);
        depth.claimed += m->store >= 0;
        depth.delayed += m->store < 0 && later;
        depth.ready += m->store < 0 && !later;
        if (m->store < 0 && later && m->due_ms < next)
            next = m->due_ms;
    }
    char name[8];
    snprintf(name, sizeof name, "%s", names[queue]);
    mull__list jobs;
    mull__depth_job asked = {.queue = name};
    mull__list_init(&jobs);
    mull__list_push(&jobs, &asked.job.link);
    assert_int_equal(mull__store_depths(&stores[0], &jobs), SQLITE_OK);
    assert_int_equal(asked.depth.ready, depth.ready);
    assert_int_equal(asked.depth.delayed, depth.delayed);
    assert_int_equal(asked.depth.claimed, depth.claimed);
    assert_int_equal(asked.depth.next_due_ms, next);
}

static void check_all(void)
{
    check_shape(other);
    if (!interfered)
        check_ranges(other);
    check_rows();
    for (int queue = 0; queue <= QUEUES; queue++)
        check_depth(queue);
}

/* ---- A seed -----------------------------------------------------------------------------------
 */

static void run_seed(uint64_t number)
{
    void *state = NULL;
    assert_int_equal(set_up(&state), 0);
    seed = number;
    is = (world){0};
    now_ms = 1;
    interfered = 0;
    for (int s = 0; s < STORES; s++)
        open_store(s);
    other = look_in();
    sql(other, "PRAGMA synchronous = OFF");
    for (int s = 0; s < STORES; s++)
        sqlite3_exec(stores[s].db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    for (int step = 0; step < STEPS; step++) {
        uint64_t kind = roll(40);
        int s = (int)roll(STORES);
        now_ms += roll(4) ? 0 : (int64_t)roll(20);
        if (kind == 0)
            die(s);
        else if (kind == 1)
            leave(s);
        else if (kind < 12 && number % 2)
            interfere();
        else
            transact(s);
        check_all();
    }
    for (int s = 0; s < STORES; s++) {
        mull__store_unregister_owner(&stores[s]);
        free_claims(s, 0);
        mull__store_close(&stores[s]);
    }
    sqlite3_close(other);
    assert_int_equal(tear_down(&state), 0);
}

static void what_chance_says_is_in_the_file_as_in_the_model(void **state)
{
    (void)state;
    const char *first = getenv("MULL_SEED"), *count = getenv("MULL_SEEDS");
    uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    engine = (mull_engine){.clock = {now_of, wall_of, NULL}};
    engine.allocator = mull__allocator_or_default(engine.allocator);
    port = (mull_port){.engine = &engine};
    memset(bytes, 'x', sizeof bytes);
    for (uint64_t i = 0; i < (count ? strtoull(count, NULL, 10) : 20); i++) {
        print_message("seed %llu\n", (unsigned long long)(from + i));
        run_seed(from + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_chance_says_is_in_the_file_as_in_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
