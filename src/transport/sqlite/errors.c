/* errors.c: what is wrong with a database, in words, and whether trying again may help. */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* in_sqlite gives SQLite's own words for a code, and the system's where they say more. */
static void in_sqlite(const mull__store *store, int code, char *words, size_t size)
{
    int last = sqlite3_extended_errcode(store->db) == code;
    int error = last ? sqlite3_system_errno(store->db) : 0;
    snprintf(words, size, "%s%s%s", last ? sqlite3_errmsg(store->db) : sqlite3_errstr(code),
             error ? ": " : "", error ? strerror(error) : "");
}

int mull__is_full(sqlite3 *db, int code)
{
    int kind = code & 0xff;
    if (kind != SQLITE_IOERR && kind != SQLITE_CANTOPEN)
        return kind == SQLITE_FULL;
    if (code == SQLITE_IOERR_FSTAT || code == SQLITE_IOERR_LOCK)
        return 0; /* may be of ours, and the error of an earlier one of SQLite's */
    int error = sqlite3_system_errno(db);
    return error == ENOSPC || error == EDQUOT;
}

int mull__is_taken(int code)
{
    return code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_ROWID ||
           code == SQLITE_CONSTRAINT_TRIGGER; /* of bodies */
}

static void say_full(const mull__store *store, const char *words, char *why, size_t size)
{
    const char *right = "make some, and it goes on";
    if (store->log_is_held)
        right =
            "another process keeps its log from being emptied: end that, or make some elsewhere "
            "on its disk, and it goes on";
    else if (store->disk_was_full)
        right = "make some elsewhere on its disk, and it goes on";
    snprintf(why, size, "has no room for more (%s); %s", words, right);
}

int mull__error_describe(mull__store *store, int code, char *why, size_t size)
{
    char words[256];
    in_sqlite(store, code, words, sizeof words);
    if (mull__db_files_check(store) == SQLITE_READONLY_DBMOVED)
        code = SQLITE_READONLY_DBMOVED; /* the cause of the rest */
    if (code == SQLITE_READONLY_DBMOVED || store->place.unsure) {
        mull__db_files_abandon(store);
        mull__db_files_describe(store, why, size);
        return 1;
    }
    if (code == SQLITE_IOERR_FSTAT && store->place.error)
        snprintf(words, sizeof words, "nobody can say whether it is still where it was: %s",
                 strerror(store->place.error));
    if (mull__is_full(store->db, code)) {
        say_full(store, words, why, size);
        return 0;
    }
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        snprintf(why, size,
                 "is damaged (%s); put back a copy, or save what can be read with .recover of "
                 "sqlite3, and start again",
                 words);
        mull__db_files_abandon(store);
        return 1;
    case SQLITE_READONLY:
        snprintf(why, size,
                 "can only be read (%s); make it and its folder writable, and it goes on", words);
        break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        snprintf(why, size,
                 "another process has had it locked for 5 s; once that ends, it goes on");
        break;
    case SQLITE_NOMEM:
        snprintf(why, size, "out of memory; it is tried again");
        break;
    default:
        snprintf(why, size, "%s; it is tried again",
                 code == SQLITE_IOERR_LOCK && store->lock.why[0] ? store->lock.why : words);
    }
    return 0;
}

const char *mull__error_of_job(int status)
{
    switch (status) {
    case MULL_ELOST:
        return "its row has no claim of ours any more";
    case MULL_EREFUSED:
        return "it is larger than SQLite can store";
    case MULL_ENOMEM:
        return "out of memory";
    case MULL_ESTATE:
        return "the file was closed before it could be done";
    default:
        return NULL;
    }
}
