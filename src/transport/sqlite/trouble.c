/* trouble.c: what is wrong with a database, in words, and whether trying again may help. */
#include "store.h"

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

int mull__trouble(mull__store *store, int code, char *why, size_t size)
{
    char words[256];
    in_sqlite(store, code, words, sizeof words);
    if (mull__place_check(store) == SQLITE_READONLY_DBMOVED)
        code = SQLITE_READONLY_DBMOVED; /* the cause of the rest */
    if (code == SQLITE_READONLY_DBMOVED || store->place.unsure) {
        mull__place_leave(store);
        mull__place_words(store, why, size);
        return 1;
    }
    if (code == SQLITE_IOERR_FSTAT && store->place.error)
        snprintf(words, sizeof words, "nobody can say whether it is still where it was: %s",
                 strerror(store->place.error));
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        snprintf(why, size,
                 "is damaged (%s); put back a copy, or save what can be read with .recover of "
                 "sqlite3, and start again",
                 words);
        mull__place_leave(store);
        return 1;
    case SQLITE_FULL:
        snprintf(why, size, "has no room for more (%s); make some, and it goes on", words);
        break;
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
