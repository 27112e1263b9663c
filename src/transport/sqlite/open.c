/* open.c: a file becomes a store, or a line that says what is wrong and what would be right. */
#include "base/alloc.h"
#include "store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long opening waits for another process that is busy with the file. */
enum { OPEN_TIMEOUT_MS = 5000 };

/* IN_USE, beside MULL_E codes: an upgrade needs the file alone, and another process has it open. */
enum { IN_USE = 1 };

/* complaint is where to say why it failed. */
typedef struct complaint {
    const char *path;
    char *why;
    size_t size;
} complaint;

__attribute__((format(printf, 2, 3))) static int complain(const complaint *to, const char *format,
                                                          ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(to->why, to->size, "%s: ", to->path);
    if (length >= 0 && (size_t)length < to->size)
        vsnprintf(to->why + length, to->size - (size_t)length, format, arguments);
    va_end(arguments);
    return MULL_EIO;
}

static int complain_of_code(const complaint *to, sqlite3 *db, int code)
{
    if (mull__is_full(db, code))
        return complain(to, "its disk is full, and there is no room for it; make some elsewhere on "
                            "that, and try again");
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        complain(to, "out of memory");
        return MULL_ENOMEM;
    case SQLITE_NOTADB:
        return complain(to, "is no SQLite database; name another file, or one that isn't there");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return complain(to, "another process has had it locked for %d s; end it, or try again",
                        OPEN_TIMEOUT_MS / 1000);
    case SQLITE_CORRUPT:
        return complain(
            to,
            "is damaged (%s); put back a copy, or save what can be read with .recover of "
            "sqlite3",
            sqlite3_errmsg(db));
    case SQLITE_READONLY:
        if (code == SQLITE_READONLY_DBMOVED)
            return complain(to, "was moved or deleted while it was opened; try again");
        return complain(to, "can only be read; the file and its folder must be writable");
    default: /* what was done since, to end a transaction, has a message of its own */
        return complain(to, "%s",
                        sqlite3_extended_errcode(db) == code ? sqlite3_errmsg(db)
                                                             : sqlite3_errstr(code));
    }
}

/* complain_of looks at the log first, which makes its index where there is none. */
static int complain_of(const complaint *to, mull__store *store, int code)
{
    if (!mull__wal_is_intact(store))
        return complain(to,
                        "its -wal was cut short while others use it, and with that what was not "
                        "yet in the file is lost; end them, and try again");
    return complain_of_code(to, store->db, code);
}

/* ---- Is it a place for a database? ----------------------------------------------------------- */

static int check_folder(const complaint *to)
{
    char folder[4096] = ".";
    struct stat status;
    const char *slash = strrchr(to->path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - to->path) + (slash == to->path),
                 to->path);
    if (stat(folder, &status) != 0)
        return complain(to, "its folder %s: %s; make it first", folder, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return complain(to, "%s is no folder", folder);
    if (access(folder, W_OK | X_OK) != 0)
        return complain(to, "its folder %s can't be written to: %s", folder, strerror(errno));
    return 0;
}

/* has_pages says whether a journal has what a database was before an upgrade. That of a new file
 * says that there was nothing; a power cut may leave it without the file. */
static int has_pages(const char *journal)
{
    static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    enum { PAGES_BEFORE = 16, HEADER = 20 };
    unsigned char header[HEADER] = {0};
    FILE *in = fopen(journal, "rb");
    if (!in)
        return 1;
    size_t length = fread(header, 1, HEADER, in);
    fclose(in);
    return length == HEADER && memcmp(header, magic, sizeof magic) == 0 &&
           memcmp(header + PAGES_BEFORE, "\0\0\0", 4) != 0;
}

/* check_log: where a database was moved away without its log, or emptied, opening it would cost
 * what is in the log; where it was moved away without the journal of an upgrade, what it was. */
static int check_log(const complaint *to, const char *end)
{
    struct stat status;
    char log[4096];
    int is_journal = strcmp(end, "-journal") == 0;
    int length = snprintf(log, sizeof log, "%s%s", to->path, end);
    if (length < 0 || (size_t)length >= sizeof log || stat(log, &status) != 0 ||
        status.st_size == 0)
        return 0;
    int there = stat(to->path, &status) == 0;
    if (there && (status.st_size > 0 || is_journal))
        return 0; /* another process made both just now: the log last, a journal before any page */
    if (is_journal && !has_pages(log))
        return 0;
    return complain(to,
                    "%s, but its %s %s %s, with messages in it: put the file back, or remove "
                    "that as well",
                    there ? "is empty" : "isn't there", is_journal ? "journal" : "log", log,
                    there ? "isn't" : "is");
}

static int check_place(const complaint *to)
{
    struct stat status;
    if (stat(to->path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return complain(to, "is a folder; name a file in it");
        if (!S_ISREG(status.st_mode))
            return complain(to, "is no regular file");
        if (access(to->path, R_OK | W_OK) != 0)
            return complain(to, "can't be read and written: %s", strerror(errno));
        if (status.st_size > 0)
            return check_folder(to);
    } else if (errno != ENOENT) {
        return complain(to, "%s", strerror(errno));
    }
    if (check_log(to, "-wal") != 0 || check_log(to, "-journal") != 0)
        return MULL_EIO;
    return check_folder(to);
}

/* ---- Is it our database? --------------------------------------------------------------------- */

typedef struct identity {
    int64_t application, version, things;
} identity;

/* identify reads all of it in one statement: another process may be filling the file. */
static int identify(sqlite3 *db, identity *of)
{
    sqlite3_stmt *read;
    *of = (identity){0};
    int code = sqlite3_prepare_v2(db,
                                  "SELECT application_id, user_version,"
                                  " (SELECT count(*) FROM sqlite_schema)"
                                  " FROM pragma_application_id, pragma_user_version",
                                  -1, &read, NULL);
    if (code != SQLITE_OK)
        return code;
    if (sqlite3_step(read) == SQLITE_ROW)
        *of = (identity){sqlite3_column_int64(read, 0), sqlite3_column_int64(read, 1),
                         sqlite3_column_int64(read, 2)};
    return sqlite3_finalize(read);
}

static int is_empty(const identity *of)
{
    return of->application == 0 && of->version == 0 && of->things == 0;
}

static int check_identity(const complaint *to, const identity *of)
{
    if (is_empty(of))
        return 0;
    if (of->application != MULL__SCHEMA_APPLICATION)
        return complain(to, "is another program's database; name a file of its own");
    if (of->version > MULL__SCHEMA_VERSION)
        return complain(to,
                        "was written by a newer mulligan (its schema is %lld, this one knows %d); "
                        "use that one",
                        (long long)of->version, MULL__SCHEMA_VERSION);
    if (of->version < 1)
        return complain(to, "its schema has no version that was ever written; it is damaged");
    return 0;
}

/* ---- Making it ready ------------------------------------------------------------------------- */

static int is_wal(void *on, int columns, char **mode, char **names)
{
    (void)columns, (void)names;
    *(int *)on = strcmp(mode[0], "wal") == 0;
    return 0;
}

/* use_wal switches to the write-ahead log; `*on` is whether that is possible here. Where another
 * process does the same at this moment, SQLite doesn't wait, so we do. */
static int use_wal(sqlite3 *db, int *on)
{
    int code = SQLITE_BUSY;
    for (int waited = 0; waited < OPEN_TIMEOUT_MS && (code & 0xff) == SQLITE_BUSY; waited += 10) {
        sqlite3_sleep(waited > 0 ? 10 : 0);
        code = sqlite3_exec(db, "PRAGMA journal_mode = WAL", is_wal, on, NULL);
    }
    return code;
}

/* create makes all that a file has. `next` is the first number it gives. */
static int create(sqlite3 *db, int64_t next)
{
    static const char *const schema[] = {MULL__SCHEMA};
    char rest[160];
    int code = SQLITE_OK;
    for (size_t i = 0; i < sizeof schema / sizeof *schema && code == SQLITE_OK; i++)
        code = sqlite3_exec(db, schema[i], NULL, NULL, NULL);
    snprintf(rest, sizeof rest,
             "INSERT INTO counter (next) VALUES (%lld); PRAGMA application_id = %d;"
             " PRAGMA user_version = %d",
             (long long)next, MULL__SCHEMA_APPLICATION, MULL__SCHEMA_VERSION);
    return code == SQLITE_OK ? sqlite3_exec(db, rest, NULL, NULL, NULL) : code;
}

/* create_once: of several processes that find the file empty, one fills it. */
static int create_once(sqlite3 *db, identity *of)
{
    int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    code = identify(db, of);
    if (code == SQLITE_OK && is_empty(of))
        code = create(db, 1);
    if (code == SQLITE_OK)
        return sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

/* check_objects refuses what an operator added to schema 1: it may name what schema 2 hasn't got,
 * or be called as something that it has. */
static int check_objects(const complaint *to, mull__store *store)
{
    sqlite3_stmt *read;
    int status = 0;
    int code = sqlite3_prepare_v2(store->db,
                                  "SELECT type, name FROM sqlite_schema WHERE name NOT IN"
                                  " ('messages', 'bodies', 'owners', 'counter', 'messages_fresh',"
                                  " 'messages_suspect', 'messages_claimed')"
                                  " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' LIMIT 1",
                                  -1, &read, NULL);
    if (code == SQLITE_OK && sqlite3_step(read) == SQLITE_ROW)
        status = complain(
            to,
            "was written by an earlier mulligan, and can't be brought up to date with "
            "the %s '%s' in it; drop that, and try again",
            (const char *)sqlite3_column_text(read, 0), (const char *)sqlite3_column_text(read, 1));
    code = code == SQLITE_OK ? sqlite3_finalize(read) : code;
    return code == SQLITE_OK ? status : complain_of_code(to, store->db, code);
}

static int upgrade(const complaint *to, mull__store *store, identity *of)
{
    int status = check_objects(to, store);
    if (status != 0)
        return status;
    int code = mull__store_upgrade(store);
    if ((code & 0xff) == SQLITE_BUSY) {
        complain(to,
                 "was written by an earlier mulligan, and is to be brought up to date, but "
                 "another process has had it open for %d s; end it, and try again",
                 OPEN_TIMEOUT_MS / 1000);
        return IN_USE;
    }
    if (code == SQLITE_OK)
        code = identify(store->db, of);
    return code == SQLITE_OK ? 0 : complain_of_code(to, store->db, code);
}

/* make_ready looks before it writes: what isn't ours isn't touched. */
static int make_ready(const complaint *to, mull__store *store)
{
    sqlite3 *db = store->db;
    identity of;
    int code = identify(db, &of);
    if (code != SQLITE_OK)
        return complain_of(to, store, code);
    int status = check_identity(to, &of);
    if (status != 0)
        return status;
    if (of.version == 1)
        status = upgrade(to, store, &of);
    if (status != 0)
        return status;
    int wal = 0;
    code = use_wal(db, &wal);
    if (code == SQLITE_OK && !wal)
        return complain(to, "can't have a write-ahead log there; put it on a local disk");
    if (code == SQLITE_OK && is_empty(&of))
        code = create_once(db, &of);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, MULL__SCHEMA_CONNECTION, NULL, NULL, NULL);
    return code != SQLITE_OK ? complain_of(to, store, code) : check_identity(to, &of);
}

static int open_all(const complaint *to, mull__store *store)
{
    int status = check_place(to);
    if (status != 0)
        return status;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(to->path, &store->db, flags, NULL);
    if (code != SQLITE_OK)
        return complain_of(to, store, code);
    if (sqlite3_db_readonly(store->db, "main") == 1)
        return complain_of(to, store, SQLITE_READONLY);
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_busy_timeout(store->db, OPEN_TIMEOUT_MS);
    status = make_ready(to, store);
    if (status != 0)
        return status;
    code = mull__store_prepare(store);
    if (code == SQLITE_OK)
        code = mull__db_files_record(store);
    if (code == SQLITE_OK)
        mull__wal_configure(store);
    if (code != SQLITE_OK)
        return complain_of(to, store, code);
    const char *why = mull__lock_open(store);
    return why ? complain(to, "its lock file %s: %s", store->lock.path, why) : 0;
}

static int try_to_open(mull__store *store, mull_port *port, const complaint *to)
{
    *store = (mull__store){.port = port, .allocator = *mull_port_allocator(port), .version = -1};
    atomic_init(&store->ahead_ms, INT64_MIN);
    int status = open_all(to, store);
    if (status != 0)
        mull__store_close(store);
    return status;
}

/* Several processes that would upgrade the file keep each other from it as long as they have it
 * open, so each closes it, and comes back after a time of its own. */
int mull__store_open(mull__store *store, mull_port *port, const char *path, char *why,
                     size_t why_size)
{
    const complaint to = {path, why, why_size};
    int pause_ms = 20 + getpid() % 50;
    int status = try_to_open(store, port, &to);
    for (int waited = 0; waited < OPEN_TIMEOUT_MS && status == IN_USE; waited += pause_ms) {
        sqlite3_sleep(pause_ms);
        status = try_to_open(store, port, &to);
    }
    return status == IN_USE ? MULL_EIO : status;
}

void mull__store_close(mull__store *store)
{
    mull__store_finalize(store);
    sqlite3_close(store->db);
    store->db = NULL;
    mull__lock_close(store);
    mull__free(&store->allocator, store->others);
    mull__free(&store->allocator, store->headers);
    mull__free(&store->allocator, store->queues);
    mull__free(&store->allocator, store->buckets);
    store->buckets = NULL;
    store->queue_count = store->queue_room = 0;
    store->queues = NULL;
    store->others = NULL;
    store->headers = NULL;
}
