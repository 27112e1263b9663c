/* sqlite_gone.c: a database whose files are deleted, moved, replaced or spoiled while an engine
 * runs on it. The engine ends with one line that says why; nothing that was answered as safe is
 * lost once the file is back; and what could not be saved was never called safe. */
#include "sqlite_loop.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { MESSAGES = 5 };

/* ---- What is done to the files --------------------------------------------------------------- */

static const char *with(const char *end)
{
    static char names[4][96];
    static int at;
    char *name = names[at++ % 4];
    snprintf(name, sizeof names[0], "%s%s", path, end);
    return name;
}

/* copy leaves it to another process: who closes a file loses all locks that its process has on it,
 * SQLite's too. */
static void copy(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

static void delete_database(void)
{
    assert_int_equal(unlink(path), 0);
}

static void move_database(void)
{
    assert_int_equal(rename(path, with("-kept")), 0);
}

static void replace_database(void)
{
    assert_int_equal(link(path, with("-kept")), 0);
    copy(path, with("-new"));
    assert_int_equal(rename(with("-new"), path), 0);
}

static void delete_log(void)
{
    assert_int_equal(unlink(with("-wal")), 0);
}

static void replace_log(void)
{
    copy(with("-wal"), with("-new"));
    assert_int_equal(rename(with("-new"), with("-wal")), 0);
}

static off_t log_left; /* so many bytes are left of a log that is cut; below 0: but so many */

static void cut_log(void)
{
    struct stat status;
    assert_int_equal(stat(with("-wal"), &status), 0);
    off_t left = log_left < 0 ? status.st_size + log_left : log_left;
    assert_int_equal(truncate(with("-wal"), left), 0);
}

/* save_log brings all of the log into the file, and leaves it as long as it is. */
static void save_log(void)
{
    sqlite3 *db = look_in();
    while (strcmp(ask(db, "PRAGMA wal_checkpoint(FULL)"), "0") != 0)
        sqlite3_sleep(1);
    sqlite3_close(db);
}

static void save_and_cut_log(void)
{
    save_log();
    cut_log();
}

/* make_log_anew: all of the log is in the file, so whoever opens that next gets on well with a new
 * log, and what it writes there is safe. */
static void make_log_anew(void)
{
    save_log();
    delete_log();
    sqlite3 *db = look_in();
    insert(db, MESSAGES, MESSAGES + 1);
    sqlite3_close(db);
}

static void delete_index(void)
{
    assert_int_equal(unlink(with("-shm")), 0);
}

static void (*at_commit)(void); /* what the next commit finds done; NULL: nothing */

static int act_at_commit(void *data)
{
    (void)data;
    void (*act)(void) = at_commit;
    at_commit = NULL;
    if (act)
        act();
    return 0;
}

static int watch_commits(sqlite3 *db, const char **why, const struct sqlite3_api_routines *api)
{
    (void)why, (void)api;
    sqlite3_commit_hook(db, act_at_commit, NULL);
    return SQLITE_OK;
}

/* ---- An engine to which it happens ----------------------------------------------------------- */

/* fate is a `live` (first), and which messages were handled in which run. */
typedef struct fate {
    live l;
    void (*act)(void);
    int run;
    int handled[2][MESSAGES];
    int strangers; /* handled, though they were never answered as safe */
} fate;

/* on_answer ends the second message's call once what was published meanwhile is answered. */
static void on_answer(int status, void *data)
{
    fate *f = data;
    f->l.published += status == 0;
    f->l.refused += status == MULL_EIO;
    if (f->l.held)
        mull_done(f->l.engine, f->l.held, NULL);
    f->l.held = 0;
}

static void put(fate *f, const char *id)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = id;
    assert_int_equal(mull_publish(f->l.engine, "t", &message, 0, on_answer, f), 0);
}

/* handle: while the second message is at work, it happens, and something is published. */
static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    fate *f = data;
    unsigned which = (unsigned)message->id[0] - 'a';
    if (which < MESSAGES)
        f->handled[f->run][which]++;
    else
        f->strangers++;
    if (++f->l.seen != 2 || !f->act) {
        mull_done(engine, call, NULL);
        return;
    }
    f->act();
    f->l.held = call;
    put(f, "z");
}

static void open_fate(fate *f)
{
    f->l = (live){0};
    new_engine(&f->l);
    if (mull_engine_transport(f->l.engine, "t", url) != 0)
        fail_msg("%s", f->l.log);
    mull_consumer_options consumer = test_engine_consumer(handle, f);
    assert_int_equal(mull_consumer_add(f->l.engine, &consumer), 0);
}

/* suffer runs five messages, which are in the log only, into what happens. */
static void suffer(fate *f, void (*act)(void), const char *why)
{
    static const char *const ids[MESSAGES] = {"a", "b", "c", "d", "e"};
    *f = (fate){.act = act};
    open_fate(f);
    for (int i = 0; i < MESSAGES; i++)
        put(f, ids[i]);
    mull_stop_when_empty(f->l.engine);
    assert_int_equal(mull_engine_run(f->l.engine), MULL_EIO);
    assert_int_equal(mull_engine_status(f->l.engine), MULL_EIO);
    assert_int_equal(f->l.broken, 1);
    assert_int_equal(f->l.down + f->l.up, 0);
    assert_logged(&f->l, why);
    assert_int_equal(f->l.published, MESSAGES);
    assert_int_equal(f->l.refused, 1);
    assert_int_equal(f->l.seen, 2); /* nothing new after that */
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(f->l.engine, &counts), 0);
    assert_true(counts.done <= 1);
    mull_message late = MULL_INIT(mull_message);
    late.queue = "q";
    assert_int_equal(mull_publish(f->l.engine, "t", &late, 0, NULL, NULL), MULL_EIO);
    mull_engine_close(f->l.engine, NULL, NULL);
    mull_policy_free(f->l.policy);
}

/* recover runs a new engine, which must find all that was not handled to its end. */
static void recover(fate *f)
{
    f->act = NULL;
    f->run = 1;
    open_fate(f);
    mull_stop_when_empty(f->l.engine);
    assert_int_equal(mull_engine_run(f->l.engine), 0);
    for (int i = 0; i < MESSAGES; i++) {
        assert_true(f->handled[0][i] + f->handled[1][i] >= 1);
        assert_true(f->handled[1][i] <= 1);
        if (i >= 2)
            assert_int_equal(f->handled[1][i], 1);
    }
    assert_int_equal(f->strangers, 0);
    f->l.db = look_in();
    assert_int_equal(count(f->l.db, "1"), 0);
    close_live(&f->l);
}

static void moved_and_put_back(void **state)
{
    (void)state;
    fate f;
    suffer(&f, move_database, "was deleted or moved while it was in use; put it back");
    assert_int_equal(access(with("-wal"), F_OK), 0); /* it has messages that the file has not */
    assert_int_equal(rename(with("-kept"), path), 0);
    recover(&f);
}

static void refused(const char *why)
{
    live l = {0};
    new_engine(&l);
    assert_int_equal(mull_engine_transport(l.engine, "t", url), MULL_EIO);
    assert_logged(&l, why);
    mull_engine_close(l.engine, NULL, NULL);
    mull_policy_free(l.policy);
}

/* A new file would make SQLite delete the old one's log, and so would an empty one. */
static void moved_without_its_log(void **state)
{
    (void)state;
    fate f;
    suffer(&f, move_database, "is broken");
    refused("isn't there, but its log");
    fclose(fopen(path, "w"));
    refused("is empty, but its log");
    assert_int_equal(rename(with("-kept"), path), 0);
    recover(&f);
}

/* keep_copy makes a copy of the database as an operator does, then deletes it. */
static void keep_copy(void)
{
    sqlite3 *db = look_in();
    char text[160];
    snprintf(text, sizeof text, "VACUUM INTO '%s'", with("-kept"));
    sql(db, text);
    sqlite3_close(db);
    delete_database();
}

static void deleted_and_a_copy_put_back(void **state)
{
    (void)state;
    fate f;
    suffer(&f, keep_copy, "was deleted or moved while it was in use");
    unlink(with("-wal")); /* as the line says: an older copy without it */
    unlink(with("-shm"));
    assert_int_equal(rename(with("-kept"), path), 0);
    recover(&f);
}

static void replaced_by_another_file(void **state)
{
    (void)state;
    fate f;
    suffer(&f, replace_database, "was replaced by another file while it was in use");
    assert_int_equal(rename(with("-kept"), path), 0);
    recover(&f);
}

static void its_log_deleted(void **state)
{
    (void)state;
    fate f;
    suffer(&f, delete_log,
           "its -wal was deleted or moved while it was in use, and what was in it is "
           "saved");
    recover(&f);
}

static void its_log_replaced(void **state)
{
    (void)state;
    fate f;
    suffer(&f, replace_log, "its -wal was replaced by another file while it was in use");
    recover(&f);
}

static void its_log_made_anew_by_another(void **state)
{
    (void)state;
    fate f;
    suffer(&f, make_log_anew, "its -wal was replaced by another file while it was in use");
    sqlite3 *db = look_in();
    assert_string_equal(ask(db, "PRAGMA integrity_check"), "ok");
    assert_int_equal(count(db, "id = '5'"), 1); /* our log is not written over it */
    sql(db, "DELETE FROM messages WHERE id = '5'");
    sqlite3_close(db);
    recover(&f);
}

static const char CUT[] =
    "its -wal was cut short while it was in use, and with that what was not yet "
    "in the file is lost; end all who use it, and start again";

/* What was in the file already is as it was. */
static void its_log_cut_short(void **state)
{
    (void)state;
    fate f;
    suffer(&f, save_and_cut_log, CUT);
    sqlite3 *db = look_in();
    assert_string_equal(ask(db, "PRAGMA integrity_check"), "ok");
    sqlite3_close(db);
    recover(&f);
}

/* Nothing of that was in the file: it begins anew, instead of with what was left over. */
static void its_log_cut_short_with_all_that_there_is(void **state)
{
    (void)state;
    fate f;
    suffer(&f, cut_log, CUT);
    sqlite3 *db = make_file();
    assert_string_equal(ask(db, "PRAGMA integrity_check"), "ok");
    assert_int_equal(count(db, "1"), 0);
    sqlite3_close(db);
}

/* cut_log_at_commit: SQLite writes on behind what is missing, so the log is as long as before; so
 * long that it is to be brought into the file at once. */
static void cut_log_at_commit(void)
{
    save_log();
    sqlite3 *db = look_in();
    sql(db, "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF");
    for (int i = 0; i < 1000; i++)
        sql(db, "UPDATE counter SET next = next + 1");
    sqlite3_close(db);
    at_commit = cut_log;
}

static void its_log_cut_short_just_before_a_commit(void **state)
{
    (void)state;
    fate f;
    sqlite3_auto_extension((void (*)(void))watch_commits);
    suffer(&f, cut_log_at_commit, CUT);
    sqlite3_cancel_auto_extension((void (*)(void))watch_commits);
    recover(&f);
}

/* Its beginning is still there, and it goes on behind what is missing. */
static void a_part_of_its_log_cut_off_just_before_a_commit(void **state)
{
    (void)state;
    static const int lengths[] = {30, 32, 100, 100000, -4120, -2000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        log_left = lengths[i];
        its_log_cut_short_just_before_a_commit(NULL);
        tear_down(NULL);
        set_up(NULL);
    }
    log_left = 0;
}

/* What may be done to the log by others, as often as they like, isn't taken for that. */
static void a_log_that_others_empty_is_in_order(void **state)
{
    (void)state;
    enum { MANY = 400 };
    fate f = {0};
    sqlite3 *db = make_file();
    insert(db, 0, MANY);
    make_on_loop(&f.l, 1);
    mull_consumer_options consumer = test_engine_consumer(succeed, &f);
    consumer.concurrency = 2;
    assert_int_equal(mull_consumer_add(f.l.engine, &consumer), 0);
    f.l.db = db;
    assert_int_equal(mull_engine_start(f.l.engine), 0);
    int emptied = 0;
    for (int i = 0; f.l.seen < MANY; i++) {
        sqlite3_busy_timeout(db, 0);
        emptied += strcmp(ask(db, "PRAGMA wal_checkpoint(TRUNCATE)"), "0") == 0;
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    assert_true(emptied > 10);
    assert_int_equal(f.l.broken + f.l.down, 0);
    close_on_loop(&f.l);
    sqlite3_close(db);
}

static void its_index_deleted(void **state)
{
    (void)state;
    fate f;
    suffer(&f, delete_index, "its -shm was deleted or moved while it was in use");
    recover(&f);
}

/* ---- A page is spoiled ----------------------------------------------------------------------- */

enum { PAGE = 4096 };

static struct {
    int file; /* open until nobody uses the database, see copy */
    off_t at;
    char bytes[PAGE];
} spoiled = {.file = -1};

static void spoil(off_t at)
{
    char nonsense[PAGE];
    memset(nonsense, 0xa5, sizeof nonsense);
    spoiled.at = at;
    spoiled.file = open(path, O_RDWR);
    assert_int_equal(pread(spoiled.file, spoiled.bytes, PAGE, at), PAGE);
    assert_int_equal(pwrite(spoiled.file, nonsense, PAGE, at), PAGE);
}

static void mend(void)
{
    assert_int_equal(pwrite(spoiled.file, spoiled.bytes, PAGE, spoiled.at), PAGE);
    close(spoiled.file);
}

/* spoil_ready spoils a page in the middle, once all is in the file and has to be read again. */
static void spoil_ready(void)
{
    sqlite3 *db = look_in();
    assert_int_equal(atoi(ask(db, "PRAGMA page_size")), PAGE);
    long number = atol(ask(db, "SELECT rootpage FROM sqlite_schema WHERE name = 'ready'"));
    sql(db, "UPDATE counter SET next = next + 1");
    while (strcmp(ask(db, "PRAGMA wal_checkpoint(TRUNCATE)"), "0") != 0)
        sqlite3_sleep(1);
    spoil((number - 1) * PAGE);
    sqlite3_close(db);
}

static void a_page_spoiled_while_running(void **state)
{
    (void)state;
    fate f;
    suffer(&f, spoil_ready, "is damaged (database disk image is malformed); put back a copy");
    mend();
    recover(&f);
}

static void the_first_page_spoiled_at_open(void **state)
{
    (void)state;
    put_five();
    spoil(0);
    refused("is no SQLite database");
    mend();
    spoil(100); /* behind the header */
    refused("is damaged (database disk image is malformed)");
    mend();
    fate f = {0};
    recover(&f);
}

/* What opens in order may be spoiled further in, which is found when it is read. */
static void a_page_spoiled_before_it_is_read(void **state)
{
    (void)state;
    fate f = {0};
    put_five();
    spoil_ready();
    open_fate(&f);
    assert_int_equal(mull_engine_run(f.l.engine), MULL_EIO);
    assert_int_equal(f.l.broken, 1);
    assert_int_equal(f.l.seen, 0);
    mull_engine_close(f.l.engine, NULL, NULL);
    mull_policy_free(f.l.policy);
    mend();
    recover(&f);
}

/* ---- Between the look and the commit --------------------------------------------------------- */

static void arm(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message, (void)data;
    at_commit = move_database;
    mull_done(engine, call, NULL);
}

static void a_commit_into_a_file_that_is_gone_is_not_safe(void **state)
{
    (void)state;
    sqlite3_auto_extension((void (*)(void))watch_commits);
    live l = {0};
    new_engine(&l);
    assert_int_equal(mull_engine_transport(l.engine, "t", url), 0);
    at_commit = move_database;
    publish(&l, "a", "body");
    assert_int_equal(mull_engine_run(l.engine), MULL_EIO);
    assert_int_equal(l.published, 0);
    assert_int_equal(l.refused, 1);
    mull_engine_close(l.engine, NULL, NULL);
    mull_policy_free(l.policy);
    assert_int_equal(rename(with("-kept"), path), 0);

    l = (live){0};
    new_engine(&l);
    assert_int_equal(mull_engine_transport(l.engine, "t", url), 0);
    mull_consumer_options consumer = test_engine_consumer(arm, &l);
    assert_int_equal(mull_consumer_add(l.engine, &consumer), 0);
    publish(&l, "b", "body");
    assert_int_equal(mull_engine_run(l.engine), MULL_EIO);
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(l.engine, &counts), 0);
    assert_int_equal(counts.done, 0);
    assert_int_equal(l.broken, 1);
    mull_engine_close(l.engine, NULL, NULL);
    mull_policy_free(l.policy);
    sqlite3_cancel_auto_extension((void (*)(void))watch_commits);
    assert_int_equal(rename(with("-kept"), path), 0);
}

/* loop_folder makes the database's path one that leads nowhere, and that nobody can ask about: not
 * even whether there is something. */
static void loop_folder(void)
{
    char kept[80];
    snprintf(kept, sizeof kept, "%s-kept", folder);
    assert_int_equal(rename(folder, kept), 0);
    assert_int_equal(symlink(folder, folder), 0);
}

static void straighten_folder(void)
{
    char kept[80];
    snprintf(kept, sizeof kept, "%s-kept", folder);
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(rename(kept, folder), 0);
}

static void loop_folder_at_commit(void)
{
    at_commit = loop_folder;
}

/* What was committed is answered neither as safe, nor as undone and tried again: the claims of that
 * transaction would be nobody's for as long as their owner lives. */
static void where_nobody_can_say_whether_it_is_gone_it_ends(void **state)
{
    (void)state;
    fate f;
    sqlite3_auto_extension((void (*)(void))watch_commits);
    suffer(&f, loop_folder_at_commit, "nobody can say whether it is still where it was");
    sqlite3_cancel_auto_extension((void (*)(void))watch_commits);
    straighten_folder();
    sqlite3 *db = look_in();
    sql(db, "DELETE FROM messages WHERE id = 'z'"); /* it may be there */
    sqlite3_close(db);
    recover(&f);
}

/* ---- Beside another transport ---------------------------------------------------------------- */

/* pair is an engine with a transport that breaks, "t", and one that works, "u". */
typedef struct pair {
    live l;         /* first */
    mull_call held; /* of the transport that works */
} pair;

static void hold(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    pair *p = data;
    (void)engine, (void)message;
    p->held = call;
}

static void lose(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    pair *p = data;
    (void)message;
    if (p->l.seen++ == 0)
        delete_database();
    mull_done(engine, call, NULL);
}

static void open_pair(pair *p)
{
    *p = (pair){0};
    make_on_loop(&p->l, 60000);
    assert_int_equal(mull_engine_transport(p->l.engine, "u", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(lose, p);
    assert_int_equal(mull_consumer_add(p->l.engine, &consumer), 0);
    consumer = test_engine_consumer(hold, p);
    consumer.name = "D";
    consumer.transport = "u";
    assert_int_equal(mull_consumer_add(p->l.engine, &consumer), 0);
    assert_int_equal(mull_engine_start(p->l.engine), 0);
}

/* A handler of another transport that is at work when the engine begins to stop may end, and how it
 * ends counts. */
static void the_others_end_in_peace(void **state)
{
    (void)state;
    pair p;
    open_pair(&p);
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mull_publish(p.l.engine, "u", &message, 0, NULL, NULL), 0);
        assert_int_equal(mull_publish(p.l.engine, "t", &message, 0, NULL, NULL), 0);
    }
    await(p.held && mull_engine_status(p.l.engine) != 0);
    assert_int_equal(mull_engine_status(p.l.engine), MULL_EIO);
    assert_int_equal(p.l.stopped, 0);
    assert_int_equal(mull_done(p.l.engine, p.held, NULL), 0);
    await(p.l.stopped);
    assert_int_equal(p.l.broken, 1);
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(p.l.engine, &counts), 0);
    assert_int_equal(counts.done, 1);
    assert_logged(&p.l, "could not be settled; they will be handed out again");
    close_on_loop(&p.l);
}

/* ---- At the end ------------------------------------------------------------------------------ */

/* One that only sends looks after its files when it sends, and when it closes. */
static void by_closing_no_log_of_others_is_removed(void **state)
{
    (void)state;
    live l = {0};
    make_on_loop(&l, 1);
    publish(&l, "a", "body");
    await(l.published);
    make_log_anew();
    close_on_loop(&l);
    sqlite3 *db = look_in();
    assert_string_equal(ask(db, "PRAGMA integrity_check"), "ok");
    assert_int_equal(count(db, "id = 'a'"), 1);
    assert_int_equal(count(db, "id = '5'"), 1);
    sqlite3_close(db);
    assert_logged(&l, "its -wal was replaced");
}

/* ---- While nothing is asked of it ------------------------------------------------------------ */

static void keep_call(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    live *l = data;
    (void)engine, (void)message;
    l->held = call;
}

static void it_is_noticed_while_idle(void **state)
{
    (void)state;
    live l = {0};
    start_on_loop(&l, keep_call, 1);
    delete_database();
    await(l.stopped);
    assert_int_equal(l.broken, 1);
    close_on_loop(&l);
}

/* It has all the messages that it may have, and needs nothing until one of them is handled. */
static void it_is_noticed_while_all_are_at_work(void **state)
{
    (void)state;
    live l = {0};
    sqlite3 *db = make_file();
    insert(db, 0, MESSAGES);
    start_on_loop(&l, keep_call, 1);
    await(l.held && count(db, "owner IS NOT NULL") == 3);
    sqlite3_close(db);
    delete_database();
    await(l.stopped);
    assert_int_equal(l.broken, 1);
    mull_done(l.engine, l.held, NULL);
    close_on_loop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(moved_and_put_back),
        TEST(moved_without_its_log),
        TEST(deleted_and_a_copy_put_back),
        TEST(replaced_by_another_file),
        TEST(its_log_deleted),
        TEST(its_log_replaced),
        TEST(its_log_made_anew_by_another),
        TEST(its_log_cut_short),
        TEST(its_log_cut_short_with_all_that_there_is),
        TEST(its_log_cut_short_just_before_a_commit),
        TEST(a_part_of_its_log_cut_off_just_before_a_commit),
        LOOP_TEST(a_log_that_others_empty_is_in_order),
        TEST(its_index_deleted),
        TEST(a_page_spoiled_while_running),
        TEST(the_first_page_spoiled_at_open),
        TEST(a_page_spoiled_before_it_is_read),
        TEST(a_commit_into_a_file_that_is_gone_is_not_safe),
        TEST(where_nobody_can_say_whether_it_is_gone_it_ends),
        LOOP_TEST(by_closing_no_log_of_others_is_removed),
        LOOP_TEST(it_is_noticed_while_idle),
        LOOP_TEST(it_is_noticed_while_all_are_at_work),
        LOOP_TEST(the_others_end_in_peace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
