/* sqlite_lock_file.c: the lock file of a database is deleted or replaced while engines run on it.
 * Who lives keeps its claims, who is dead loses them, and no message has two handlers. All engines
 * of a test are on one loop; each has its own thread at the database, and its own lock. */
#include "sqlite_loop.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- The lock file --------------------------------------------------------------------------- */

static char lock_path[96];

static void delete_lock(void)
{
    assert_int_equal(unlink(lock_path), 0);
}

/* replace_lock puts a copy in its place, as who puts back a backup does. */
static void replace_lock(void)
{
    char text[512], copy[100];
    snprintf(copy, sizeof copy, "%s-new", lock_path);
    FILE *in = fopen(lock_path, "rb"), *out = fopen(copy, "wb");
    size_t length = fread(text, 1, sizeof text, in);
    assert_true(length > 0);
    assert_int_equal(fwrite(text, 1, length, out), length);
    fclose(in);
    fclose(out);
    assert_int_equal(rename(copy, lock_path), 0);
}

/* is_marked: somebody has waited until all who live are in the lock file; see lock.c. */
static int is_marked(void)
{
    char text[32] = "";
    struct stat status;
    FILE *in = fopen(lock_path, "rb");
    if (!in)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, in);
    int marked = length > 0 && fstat(fileno(in), &status) == 0 &&
                 strtoull(text, NULL, 10) == (unsigned long long)status.st_ino;
    fclose(in);
    return marked;
}

/* ---- Engines --------------------------------------------------------------------------------- */

enum { MOST = 200 };

/* board is what all engines of a test share: what happened to which message. */
static struct {
    int handled[MOST];
    int total;
    int disturb_every; /* messages; 0: never */
    void (*disturb)(void);
} board;

/* party is an engine of a test. */
typedef struct party {
    live l; /* first */
    int holds;
    mull_call held;
} party;

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    party *p = data;
    p->l.seen++;
    board.total++;
    board.handled[atoi(message->id)]++;
    if (board.disturb_every && board.total % board.disturb_every == 0)
        board.disturb();
    if (p->holds)
        p->held = call;
    else
        mull_done(engine, call, NULL);
}

static void join(party *p, int holds, uint32_t concurrency)
{
    *p = (party){.holds = holds};
    start_on_loop(&p->l, handle, concurrency);
}

static void leave(party *p)
{
    close_on_loop(&p->l);
}

static sqlite3 *begin(void)
{
    memset(&board, 0, sizeof board);
    snprintf(lock_path, sizeof lock_path, "%s-lock", path);
    return make_file();
}

static void assert_each_once(int messages)
{
    for (int id = 0; id < messages; id++)
        assert_int_equal(board.handled[id], 1);
    assert_int_equal(board.total, messages);
}

/* ---- Who lives ------------------------------------------------------------------------------- */

/* One engine has all the messages it may have, and so needs nothing of the database, when the lock
 * file vanishes; another one comes at once, and looks who is alive. */
static void keeps_its_claims_when(void (*disturb)(void))
{
    sqlite3 *db = begin();
    party busy, newcomer;
    insert(db, 0, 5);
    join(&busy, 1, 1);
    await(busy.held && count(db, "owner IS NOT NULL") == 3);
    assert_true(is_marked());
    disturb();
    join(&newcomer, 0, 1);
    await(newcomer.l.seen == 2 && is_marked());
    insert(db, 5, 6); /* it has looked once more when it has seen this one */
    await(newcomer.l.seen == 3);
    assert_int_equal(count(db, "id IN ('0', '1', '2') AND owner = (SELECT min(owner) FROM owners)"),
                     3);
    busy.holds = 0;
    mull_done(busy.l.engine, busy.held, NULL);
    await(count(db, "1") == 0);
    assert_each_once(6);
    assert_int_equal(busy.l.down, 0);
    leave(&busy);
    leave(&newcomer);
    assert_logged(&busy.l, "the lock file");
    assert_null(strstr(busy.l.log, "the claim on"));
    sqlite3_close(db);
}

static void who_lives_keeps_its_claims_when_it_is_deleted(void **state)
{
    (void)state;
    keeps_its_claims_when(delete_lock);
}

static void who_lives_keeps_its_claims_when_it_is_replaced(void **state)
{
    (void)state;
    keeps_its_claims_when(replace_lock);
}

static void delete_if_there(void)
{
    unlink(lock_path);
}

static void deleting_it_again_and_again_harms_nobody(void **state)
{
    (void)state;
    sqlite3 *db = begin();
    party one, other;
    board.disturb = delete_if_there;
    board.disturb_every = 10;
    join(&one, 0, 4);
    join(&other, 0, 4);
    for (int from = 0; from < MOST; from += 20) {
        insert(db, from, from + 20);
        await(count(db, "1") == 0);
    }
    assert_each_once(MOST);
    assert_true(one.l.seen > 0 && other.l.seen > 0);
    leave(&one);
    leave(&other);
    assert_string_equal(ask(db, "SELECT count(*) FROM owners"), "0");
    sqlite3_close(db);
}

/* It is moved away and comes back: our lock is on it already, by another open file. */
static void it_may_be_put_back(void **state)
{
    (void)state;
    sqlite3 *db = begin();
    char kept[100];
    snprintf(kept, sizeof kept, "%s-kept", path);
    party busy;
    insert(db, 0, 5);
    join(&busy, 1, 1);
    await(busy.held && count(db, "owner IS NOT NULL") == 3);
    assert_int_equal(rename(lock_path, kept), 0);
    await(busy.l.warnings == 1);
    assert_int_equal(access(lock_path, F_OK), 0);
    assert_int_equal(rename(kept, lock_path), 0);
    await(busy.l.warnings == 2);
    busy.holds = 0;
    mull_done(busy.l.engine, busy.held, NULL);
    await(count(db, "1") == 0);
    assert_each_once(5);
    assert_int_equal(busy.l.down, 0);
    leave(&busy);
    sqlite3_close(db);
}

/* ---- Who is dead, or seems so ---------------------------------------------------------------- */

/* stand_still stops the process with its first message; with another one, later, it dies. */
static void stand_still(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    (void)data;
    if (atoi(message->id) >= 10)
        raise(SIGKILL);
    if (atoi(message->id) == 0)
        raise(SIGSTOP);
    mull_done(engine, call, NULL);
}

/* run_child runs an engine in a process of its own until it dies or stands still. */
static pid_t run_child(mull_handler handler)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        live l;
        open_live(&l, handler, 1);
        run_live(&l);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_false(WIFEXITED(status));
    return child;
}

static void who_stands_still_meanwhile_loses_claims_but_no_message(void **state)
{
    (void)state;
    int status;
    sqlite3 *db = begin();
    insert(db, 0, 3);
    sqlite3_close(db);
    pid_t child = run_child(stand_still);
    delete_lock();
    party p;
    join(&p, 0, 1);
    await(p.l.seen == 3);
    leave(&p);
    db = look_in();
    assert_int_equal(count(db, "1"), 0);

    /* It goes on, finds its claims gone, and takes what comes: as an owner that can be told dead.
     */
    insert(db, 10, 11);
    sqlite3_close(db);
    kill(child, SIGCONT);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    join(&p, 0, 1);
    await(p.l.seen == 1);
    assert_int_equal(board.handled[10], 1);
    leave(&p);
}

/* ---- No lock can be had ---------------------------------------------------------------------- */

static void block_lock(void)
{
    board.disturb_every = 0;
    delete_lock();
    assert_int_equal(mkdir(lock_path, 0700), 0);
}

static void without_it_nothing_new_is_taken(void **state)
{
    (void)state;
    sqlite3 *db = begin();
    party p;
    insert(db, 0, 1);
    board.disturb = block_lock;
    board.disturb_every = 1;
    join(&p, 0, 1);
    await(p.l.down == 1);
    assert_logged(&p.l, "its lock file");
    await(count(db, "1") == 0); /* what it had is settled all the same */
    insert(db, 1, 4);
    assert_int_equal(mull_engine_transport(p.l.engine, "u", url), MULL_EIO);
    assert_logged(&p.l, "transport 'u'");
    assert_int_equal(p.l.seen, 1);
    assert_int_equal(p.l.up, 0);
    assert_int_equal(rmdir(lock_path), 0);
    await(count(db, "1") == 0);
    assert_each_once(4);
    assert_int_equal(p.l.down, 1);
    assert_int_equal(p.l.up, 1);
    leave(&p);
    sqlite3_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOOP_TEST(who_lives_keeps_its_claims_when_it_is_deleted),
        LOOP_TEST(who_lives_keeps_its_claims_when_it_is_replaced),
        LOOP_TEST(deleting_it_again_and_again_harms_nobody),
        LOOP_TEST(it_may_be_put_back),
        LOOP_TEST(who_stands_still_meanwhile_loses_claims_but_no_message),
        LOOP_TEST(without_it_nothing_new_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
