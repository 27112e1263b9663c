/* schema.h: what is in the file of a sqlite: transport, and every statement that touches it.
 * docs/transports/sqlite.md explains the columns to those who look in with sqlite3.
 *
 *   messages   a row for each message, from its publish to its end     small, often rewritten
 *   bodies     what it says; written once, deleted once                as large as it likes
 *   owners     processes that claim messages, alive or just killed
 *   counter    one row: the next number
 *
 *   fresh (deliveries = 0) ──claim──> claimed ──settle──> gone, or fresh again
 *                                        │                 (redelivered, dead letter, given back)
 *                                        └── its owner died ──> suspect (deliveries > 0)
 *                                                               ──claim──> claimed ...
 */
#ifndef MULL__SQLITE_SCHEMA_H
#define MULL__SQLITE_SCHEMA_H

/* "mull", in PRAGMA application_id; PRAGMA user_version is the version of the schema. */
#define MULL__SCHEMA_APPLICATION 1836412012
#define MULL__SCHEMA_VERSION     1

/* Set on each connection. FULL: a commit is on the disk before it is answered. */
#define MULL__SCHEMA_CONNECTION                                                                    \
    "PRAGMA synchronous = FULL;"                                                                   \
    "PRAGMA cache_size = -16000;"                                                                  \
    "PRAGMA journal_size_limit = 67108864;"

/* A message's `number` never changes and is never used again; `seq` is its place in the line,
 * renewed when it goes to the end of one. The three indexes cover what is fresh, what is suspect
 * and what is claimed, so that none of them grows with what the others hold. */
#define MULL__SCHEMA_TABLES                                                                        \
    "CREATE TABLE messages (\n"                                                                    \
    "    number INTEGER PRIMARY KEY,\n"                                                            \
    "    seq INTEGER NOT NULL,\n"                                                                  \
    "    queue TEXT NOT NULL,\n"                                                                   \
    "    due_ms INTEGER NOT NULL, -- 0: at once\n"                                                 \
    "    owner INTEGER, -- who has claimed it\n"                                                   \
    "    token INTEGER,\n"                                                                         \
    "    deliveries INTEGER NOT NULL DEFAULT 0,\n"                                                 \
    "    id TEXT,\n"                                                                               \
    "    type TEXT,\n"                                                                             \
    "    key TEXT,\n"                                                                              \
    "    headers TEXT NOT NULL DEFAULT '{}',\n"                                                    \
    "    published_ms INTEGER NOT NULL,\n"                                                         \
    "    dead_ms INTEGER, -- this and the rest: of a dead letter\n"                                \
    "    dead_from TEXT,\n"                                                                        \
    "    error_type TEXT,\n"                                                                       \
    "    reason TEXT,\n"                                                                           \
    "    rule TEXT\n"                                                                              \
    ") STRICT;\n"                                                                                  \
    "CREATE INDEX messages_fresh ON messages (queue, due_ms, seq)\n"                               \
    "    WHERE owner IS NULL AND deliveries = 0;\n"                                                \
    "CREATE INDEX messages_suspect ON messages (queue, deliveries, seq)\n"                         \
    "    WHERE owner IS NULL AND deliveries > 0;\n"                                                \
    "CREATE INDEX messages_claimed ON messages (owner, queue)\n"                                   \
    "    WHERE owner IS NOT NULL;\n"                                                               \
    "CREATE TABLE bodies (\n"                                                                      \
    "    number INTEGER PRIMARY KEY,\n"                                                            \
    "    body BLOB NOT NULL\n"                                                                     \
    ") STRICT;\n"                                                                                  \
    "CREATE TABLE owners (\n"                                                                      \
    "    owner INTEGER PRIMARY KEY AUTOINCREMENT,\n"                                               \
    "    pid INTEGER NOT NULL,\n"                                                                  \
    "    since_ms INTEGER NOT NULL\n"                                                              \
    ") STRICT;\n"                                                                                  \
    "CREATE TABLE counter (next INTEGER NOT NULL) STRICT;\n"                                       \
    "INSERT INTO counter (next) VALUES (1);\n"

/* What a claim reads, in this order. */
#define MULL__CLAIM_COLUMNS                                                                        \
    "SELECT number, deliveries, id, type, key, headers, body FROM messages"                        \
    " LEFT JOIN bodies USING (number) WHERE queue = ?1 AND owner IS NULL AND "

/* A settle finds its message by this, or not at all. */
#define MULL__CLAIMED " WHERE number = ?1 AND owner = ?2 AND token = ?3"
#define MULL__UNCLAIM " SET owner = NULL, token = NULL, id = coalesce(id, ?4), headers = ?5, "

/* MULL__STATEMENTS lists every statement: its name and its text. ?1, ?2, ... as the text says;
 * times are milliseconds since 1970. */
#define MULL__STATEMENTS(X)                                                                        \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(VERSION, "PRAGMA data_version")                                                              \
    X(COUNTER_READ, "SELECT next FROM counter")                                                    \
    X(COUNTER_WRITE, "UPDATE counter SET next = ?1")                                               \
    X(INSERT, "INSERT INTO messages"                                                               \
              " (number, seq, queue, due_ms, id, type, key, headers, published_ms)"                \
              " VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                      \
    X(INSERT_BODY, "INSERT INTO bodies (number, body) VALUES (?1, ?2)")                            \
    X(SUSPECT, MULL__CLAIM_COLUMNS "deliveries > 0 ORDER BY deliveries, seq LIMIT 1")              \
    X(DUE, MULL__CLAIM_COLUMNS "deliveries = 0 AND due_ms > 0 AND due_ms <= ?3"                    \
                               " ORDER BY due_ms, seq LIMIT ?2")                                   \
    X(FRESH, MULL__CLAIM_COLUMNS "deliveries = 0 AND due_ms = 0 ORDER BY seq LIMIT ?2")            \
    X(HEADERS, "SELECT key, atom FROM json_each(?1)")                                              \
    X(CLAIM, "UPDATE messages SET owner = ?2, token = ?3, deliveries = deliveries + 1"             \
             " WHERE number = ?1")                                                                 \
    X(NEXT_DUE, "SELECT min(due_ms) FROM messages"                                                 \
                " WHERE queue = ?1 AND owner IS NULL AND deliveries = 0 AND due_ms > ?2")          \
    X(DELETE, "DELETE FROM messages" MULL__CLAIMED)                                                \
    X(DELETE_BODY, "DELETE FROM bodies WHERE number = ?1")                                         \
    X(REDELIVER,                                                                                   \
      "UPDATE messages" MULL__UNCLAIM "deliveries = 0, due_ms = ?6, seq = ?7" MULL__CLAIMED)       \
    X(GIVE_BACK, "UPDATE messages" MULL__UNCLAIM "deliveries = deliveries - 1" MULL__CLAIMED)      \
    X(DEAD_LETTER, "UPDATE messages" MULL__UNCLAIM "deliveries = 0, due_ms = ?6, seq = ?7,"        \
                   " dead_from = queue, queue = ?8, dead_ms = ?9, error_type = ?10, reason = ?11," \
                   " rule = ?12" MULL__CLAIMED)                                                    \
    X(RETURN,                                                                                      \
      "UPDATE messages SET owner = NULL, token = NULL, deliveries = deliveries - 1" MULL__CLAIMED) \
    X(COUNT_FRESH, "SELECT count(*) FILTER (WHERE due_ms <= ?2),"                                  \
                   " count(*) FILTER (WHERE due_ms > ?2), min(due_ms) FILTER (WHERE due_ms > ?2)"  \
                   " FROM messages WHERE queue = ?1 AND owner IS NULL AND deliveries = 0")         \
    X(COUNT_SUSPECT, "SELECT count(*) FROM messages"                                               \
                     " WHERE queue = ?1 AND owner IS NULL AND deliveries > 0")                     \
    X(COUNT_CLAIMED, "SELECT count(*) FROM messages WHERE owner IS NOT NULL AND queue = ?1")       \
    X(OWNER_NEW, "INSERT INTO owners (owner, pid, since_ms) VALUES (?1, ?2, ?3)")                  \
    X(OWNER_THERE, "SELECT 1 FROM owners WHERE owner = ?1")                                        \
    X(OWNERS, "SELECT owner FROM owners WHERE owner IS NOT ?1")                                    \
    X(OWNER_FREE, "UPDATE messages SET owner = NULL, token = NULL WHERE owner = ?1")               \
    X(OWNER_RETURN, "UPDATE messages SET owner = NULL, token = NULL, deliveries = deliveries - 1"  \
                    " WHERE owner = ?1")                                                           \
    X(OWNER_DELETE, "DELETE FROM owners WHERE owner = ?1")

#endif
