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
 *                                        └── its owner died ──> poison candidate (deliveries > 0)
 *                                                               ──claim──> claimed ...
 */
#ifndef MULL__SQLITE_SCHEMA_H
#define MULL__SQLITE_SCHEMA_H

/* "mull", in PRAGMA application_id; PRAGMA user_version is the version of the schema. */
#define MULL__SCHEMA_APPLICATION 1836412012
#define MULL__SCHEMA_VERSION     1

/* Set on each connection. FULL: a commit is on the disk before it is answered. */
#define MULL__SCHEMA_CONNECTION "PRAGMA synchronous = FULL; PRAGMA cache_size = -16000;"

/* A message's `number` never changes and is never used again; `seq` is its place in the line,
 * renewed when it goes to the end of one. The three indexes cover what is fresh, what is poison
 * candidate and what is claimed, so that none of them grows with what the others hold. */
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

/* Somebody else may have written anything into a row that the table admits. A count of deliveries
 * goes neither below 0 nor so high that a sum with it could overflow. */
#define MULL__DELIVERIES_MAX INT64_C(1000000000000)
#define MULL__COUNT                                                                                \
    "deliveries = CASE WHEN deliveries < 1000000000000 THEN deliveries + 1 ELSE 1000000000000 END"
#define MULL__UNCOUNT "deliveries = max(deliveries, 1) - 1"

/* What a claim reads, in this order. */
#define MULL__CLAIM_COLUMNS                                                                        \
    "SELECT number, deliveries, id, type, key, headers, body FROM messages"                        \
    " LEFT JOIN bodies USING (number) WHERE queue = ?1 AND owner IS NULL AND "

/* A settle finds its message by this, or not at all. */
#define MULL__CLAIMED " WHERE number = ?1 AND owner = ?2 AND token = ?3"
#define MULL__STAMP   "id = coalesce(id, ?4), headers = ?5"
#define MULL__UNCLAIM " SET owner = NULL, token = NULL, " MULL__STAMP ", "

/* What isn't claimed, by index. */
#define MULL__FRESH   " FROM messages WHERE queue = ?1 AND owner IS NULL AND deliveries = 0"
#define MULL__SUSPECT " FROM messages WHERE queue = ?1 AND owner IS NULL AND deliveries > 0"
#define MULL__COUNTS                                                                               \
    "SELECT count(*) FILTER (WHERE due_ms <= ?2) AS ready,"                                        \
    " count(*) FILTER (WHERE due_ms > ?2) AS delayed,"                                             \
    " min(due_ms) FILTER (WHERE due_ms > ?2) AS next"

/* Who has claimed anything, be there a row of it or not: a look at the index for each of them. */
#define MULL__CLAIMING_OWNERS                                                                      \
    "WITH RECURSIVE claimant (owner) AS ("                                                         \
    "SELECT min(owner) FROM messages WHERE owner IS NOT NULL UNION ALL"                            \
    " SELECT (SELECT min(m.owner) FROM messages AS m WHERE m.owner > claimant.owner)"              \
    " FROM claimant WHERE owner IS NOT NULL) "

/* The queues of an index, in the same way; `which` is the index's own condition. */
#define MULL__QUEUES(name, which)                                                                  \
    name " (queue) AS ("                                                                           \
         "SELECT min(queue) FROM messages WHERE owner IS NULL AND " which " UNION ALL"             \
         " SELECT (SELECT min(m.queue) FROM messages AS m"                                         \
         " WHERE m.owner IS NULL AND m." which " AND m.queue > " name ".queue)"                    \
         " FROM " name " WHERE queue IS NOT NULL)"

#define MULL__FRESH_QUEUES   MULL__QUEUES("fresh", "deliveries = 0")
#define MULL__SUSPECT_QUEUES MULL__QUEUES("suspect", "deliveries > 0")

/* Queues where something waits, and when the first of it is due; poison candidates only if ?1. */
#define MULL__WAITING                                                                              \
    "WITH RECURSIVE " MULL__FRESH_QUEUES ", " MULL__SUSPECT_QUEUES                                 \
    " SELECT queue, 0 FROM suspect WHERE queue IS NOT NULL AND ?1 UNION ALL"                       \
    " SELECT queue, (SELECT min(due_ms) FROM messages AS m"                                        \
    " WHERE m.queue = fresh.queue AND m.owner IS NULL AND m.deliveries = 0)"                       \
    " FROM fresh WHERE queue IS NOT NULL"

/* Numbers of ours stay below this, so that there is always a next one, whatever number somebody
 * else gave to a message or an owner. */
#define MULL__NUMBERS_END "4611686018427387904"

/* MULL__STATEMENTS lists every statement: its name and its text. ?1, ?2, ... as the text says;
 * times are milliseconds since 1970. */
#define MULL__STATEMENTS(X)                                                                        \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(BEGIN_READING, "BEGIN")                                                                      \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(VERSION, "PRAGMA data_version")                                                              \
    X(SIZE, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")              \
    X(COUNTER_READ,                                                                                \
      "SELECT max(1,"                                                                              \
      " coalesce((SELECT max(next) FROM counter WHERE next < " MULL__NUMBERS_END "), 1),"          \
      " coalesce((SELECT max(number) FROM messages WHERE number < " MULL__NUMBERS_END              \
      "), 0) + 1)")                                                                                \
    X(COUNTER_WRITE, "UPDATE counter SET next = ?1")                                               \
    X(COUNTER_NEW, "INSERT INTO counter (next) VALUES (?1)")                                       \
    X(INSERT, "INSERT INTO messages"                                                               \
              " (number, seq, queue, due_ms, id, type, key, headers, published_ms)"                \
              " VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                      \
    X(INSERT_BODY, "INSERT OR REPLACE INTO bodies (number, body) VALUES (?1, ?2)")                 \
    X(SUSPECT, MULL__CLAIM_COLUMNS "deliveries > 0 AND due_ms <= ?2"                               \
                                   " ORDER BY deliveries, seq LIMIT 1")                            \
    X(DUE, MULL__CLAIM_COLUMNS "deliveries = 0 AND due_ms > 0 AND due_ms <= ?3"                    \
                               " ORDER BY due_ms, seq LIMIT ?2")                                   \
    X(FRESH, MULL__CLAIM_COLUMNS "deliveries = 0 AND due_ms <= 0 ORDER BY due_ms, seq LIMIT ?2")   \
    X(HEADERS, "SELECT key, atom FROM json_each(?1)")                                              \
    X(CLAIM, "UPDATE messages SET owner = ?2, token = ?3, " MULL__COUNT " WHERE number = ?1")      \
    X(NEXT_DUE, "SELECT min(min(due_ms), 9223372036854775806) FROM"                                \
                " (SELECT min(due_ms) AS due_ms" MULL__FRESH " AND due_ms > ?2 UNION ALL"          \
                " SELECT min(due_ms)" MULL__SUSPECT " AND due_ms > ?2 AND ?3)")                    \
    X(DELETE, "DELETE FROM messages" MULL__CLAIMED)                                                \
    X(DELETE_BODY, "DELETE FROM bodies WHERE number = ?1")                                         \
    X(REDELIVER,                                                                                   \
      "UPDATE messages" MULL__UNCLAIM "deliveries = 0, due_ms = ?6, seq = ?7" MULL__CLAIMED)       \
    X(GIVE_BACK, "UPDATE messages" MULL__UNCLAIM MULL__UNCOUNT                                     \
                 ", due_ms = coalesce(nullif(?6, 0), due_ms)" MULL__CLAIMED)                       \
    X(NOTE, "UPDATE messages SET " MULL__STAMP MULL__CLAIMED)                                      \
    X(DEAD_LETTER, "UPDATE messages" MULL__UNCLAIM "deliveries = 0, due_ms = ?6, seq = ?7,"        \
                   " dead_from = queue, queue = ?8, dead_ms = ?9, error_type = ?10, reason = ?11," \
                   " rule = ?12" MULL__CLAIMED)                                                    \
    X(RETURN, "UPDATE messages SET owner = NULL, token = NULL, " MULL__UNCOUNT MULL__CLAIMED)      \
    X(DEPTH, MULL__CLAIMING_OWNERS                                                                 \
      "SELECT sum(ready), (SELECT count(*) FROM messages"                                          \
      " WHERE owner IN (SELECT owner FROM claimant WHERE owner IS NOT NULL) AND queue = ?1),"      \
      " sum(delayed), min(next) FROM"                                                              \
      " (" MULL__COUNTS MULL__FRESH " UNION ALL " MULL__COUNTS MULL__SUSPECT ")")                  \
    X(COUNT_HIDDEN, "SELECT queue, count(*) FROM messages"                                         \
                    " WHERE owner IS NULL AND deliveries < 0 GROUP BY queue")                      \
    X(FIND_HIDDEN, "SELECT max(number), max(owner IS NULL AND deliveries < 0) FROM"                \
                   " (SELECT * FROM messages WHERE number >= ?1 ORDER BY number LIMIT 1000)")      \
    X(SHOW_HIDDEN, "UPDATE messages SET deliveries = 0 WHERE owner IS NULL AND deliveries < 0")    \
    X(FAR, "SELECT group_concat(number, ', '), max(all_of_them) FROM"                              \
           " (SELECT number, count(*) OVER () AS all_of_them FROM"                                 \
           " (SELECT number, due_ms, seq" MULL__FRESH " AND due_ms > ?2 UNION ALL"                 \
           " SELECT number, due_ms, seq" MULL__SUSPECT " AND due_ms > ?2)"                         \
           " ORDER BY due_ms, seq LIMIT 20)")                                                      \
    X(QUEUES, MULL__WAITING)                                                                       \
    X(OWNER_NEW, "INSERT INTO owners (owner, pid, since_ms) VALUES (nullif(?1, 0), ?2, ?3)")       \
    X(OWNER_THERE, "SELECT 1 FROM owners WHERE owner = ?1")                                        \
    X(OWNERS, MULL__CLAIMING_OWNERS                                                                \
      "SELECT owner, max(listed), max(claims) FROM"                                                \
      " (SELECT owner, 0 AS listed, 1 AS claims FROM claimant WHERE owner IS NOT NULL"             \
      " UNION ALL SELECT owner, 1, 0 FROM owners) GROUP BY owner ORDER BY owner")                  \
    X(OWNERS_TOO_HIGH, "DELETE FROM owners WHERE owner >= " MULL__NUMBERS_END)                     \
    X(OWNERS_ANEW, "UPDATE sqlite_sequence SET seq ="                                              \
                   " (SELECT max(0, coalesce(max(owner), 0)) FROM owners)"                         \
                   " WHERE name = 'owners' AND seq >= " MULL__NUMBERS_END)                         \
    X(OWNER_FREE, "UPDATE messages SET owner = NULL, token = NULL,"                                \
                  " deliveries = max(deliveries, 0) WHERE owner = ?1")                             \
    X(OWNER_RETURN,                                                                                \
      "UPDATE messages SET owner = NULL, token = NULL, " MULL__UNCOUNT " WHERE owner = ?1")        \
    X(OWNER_DELETE, "DELETE FROM owners WHERE owner = ?1")

#endif
