/* sqlite_power_cut.c: what a power cut at any moment leaves of sqlite:FILE, and what a copy of its
 * files is worth that was taken at any moment, holds all that was told before. The moments are
 * those between two changes of a file, or in the middle of one. MULL_CUTS=n for more of them,
 * MULL_SEED=n for those of another run. */
#include "ledger.h"

#include "fault_vfs.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { A_ROUND = 10, SPAN = 640, SYNCS = 10, COPIES = 5, WATCHDOG = 60 };

/* Room for what a life has at once, and for a log that has to be emptied more than once. */
enum { LITTLE_ROOM = 700 << 10 };

/* moment is what was told, and the folder with what was on the disk. */
typedef struct moment {
    char folder[64];
    ledger told;
} moment;

static uint64_t seed;
static ledger *told; /* of the life that is led; shared with children */
static moment moments[A_ROUND];
static int taken, wanted;
static long until; /* so many changes to the next one */

static long number_from(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static int read_seed(void **state)
{
    (void)state;
    seed = (uint64_t)number_from("MULL_SEED", (long)time(NULL));
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    print_message("MULL_SEED=%llu\n", (unsigned long long)seed);
    return told == MAP_FAILED ? -1 : 0;
}

static void begin_moments(int count)
{
    memset(told, 0, sizeof *told);
    taken = 0;
    wanted = count;
    until = 1 + (long)(chance(&seed) % SPAN);
}

/* is_time counts changes, and says whether this is one of the moments: it may be any, and often is
 * one when the most is at stake. */
static int is_time(int syncs)
{
    if (taken == wanted || (--until > 0 && !(syncs && chance(&seed) % SYNCS == 0)))
        return 0;
    until = 1 + (long)(chance(&seed) % SPAN);
    return 1;
}

/* begin_moment remembers what was told, before anything else happens. */
static moment *begin_moment(void)
{
    moment *m = &moments[taken++];
    ledger_copy(&m->told, told);
    strcpy(m->folder, "/tmp/mulligan-XXXXXX");
    if (!mkdtemp(m->folder))
        abort();
    return m;
}

/* check_moment: everything goes on from what is in its folder. */
static void check_moment(moment *m, mull_policy *policy)
{
    char kept[sizeof folder];
    strcpy(kept, folder);
    in_folder(m->folder);
    alarm(WATCHDOG);
    ledger_close(&m->told, policy);
    tear_down(NULL);
    in_folder(kept);
    alarm(WATCHDOG);
}

static void check_moments(mull_policy *policy)
{
    for (int i = 0; i < taken; i++)
        check_moment(&moments[i], policy);
}

/* ---- The life -------------------------------------------------------------------------------- */

static sqlite3 *looker;

/* look_around: somebody looks into the file, and with that brings the log into the database. */
static void look_around(life *l)
{
    if (l->new_calls % 8 == 0)
        sqlite3_wal_checkpoint_v2(looker, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/* lead is a whole life on the file at `path`. */
static void lead(mull_policy *policy)
{
    life l;
    life_open(&l, policy, told);
    assert_int_equal(mull_engine_transport(l.engine, "t", url), 0);
    looker = look_in();
    l.turn = look_around;
    l.count = LEDGER_MAX;
    l.holds = 1;
    life_start(&l);
    life_run(&l, NULL);
    sqlite3_close(looker);
    life_close(&l);
    assert_int_equal(l.safe, LEDGER_MAX);
    assert_int_equal(l.down, 0);
}

/* ---- Power cuts ------------------------------------------------------------------------------ */

static void cut(int syncs)
{
    if (is_time(syncs))
        disk_cut(&faults.disk, begin_moment()->folder, &seed);
}

static void cut_lives(void (*begin)(void))
{
    mull_policy *policy = ledger_policy();
    for (long left = number_from("MULL_CUTS", 3 * A_ROUND); left > 0; left -= taken) {
        begin_moments(left < A_ROUND ? (int)left : A_ROUND);
        vfs_install(1);
        faults.moment = cut;
        begin();
        lead(policy);
        assert_true(taken > 0);
        vfs_remove();
        check_moments(policy);
        tear_down(NULL);
        set_up(NULL);
    }
    mull_policy_free(policy);
}

static void any_room(void) {}

static void little_room(void)
{
    vfs_shrink(LITTLE_ROOM, LITTLE_ROOM);
}

static void a_power_cut_loses_nothing_that_was_told(void **state)
{
    (void)state;
    cut_lives(any_room);
}

/* The log fills the disk, and is emptied, again and again. */
static void nor_does_one_on_a_full_disk(void **state)
{
    (void)state;
    cut_lives(little_room);
    assert_true(faults.by_kind[VFS_TRUNCATE] > 5);
}

/* ---- Copies ---------------------------------------------------------------------------------- */

static void stand_still(int syncs)
{
    if (!is_time(syncs))
        return;
    taken++;
    kill(getpid(), SIGSTOP);
}

static pid_t lead_in_child(mull_policy *policy)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    alarm(WATCHDOG);
    vfs_install(0);
    faults.moment = stand_still;
    lead(policy);
    _exit(0);
}

static void copy_file(const char *to, const char *end)
{
    char name[128];
    disk_content content;
    snprintf(name, sizeof name, "%s%s", path, end);
    if (!disk_load(&content, name))
        return;
    snprintf(name, sizeof name, "%s/a.db%s", to, end);
    disk_store(&content, name);
    free(content.bytes);
}

static void copy_all(const moment *to)
{
    copy_file(to->folder, "");
    copy_file(to->folder, "-wal");
    copy_file(to->folder, "-journal");
    if (chance(&seed) % 2)
        copy_file(to->folder, "-shm");
}

static void a_copy_of_its_files_at_one_moment_is_whole(void **state)
{
    (void)state;
    mull_policy *policy = ledger_policy();
    begin_moments(COPIES);
    pid_t child = lead_in_child(policy);
    int status;
    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
        copy_all(begin_moment());
        kill(child, SIGCONT);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(taken > 0);
    check_moments(policy);
    mull_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_power_cut_loses_nothing_that_was_told),
        TEST(nor_does_one_on_a_full_disk),
        TEST(a_copy_of_its_files_at_one_moment_is_whole),
    };
    return cmocka_run_group_tests(tests, read_seed, NULL);
}
