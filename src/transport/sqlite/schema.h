/* schema.h: what is in the file of a sqlite: transport, and every statement that touches it.
 * docs/transports/sqlite.md explains the views to those who look in with sqlite3;
 * docs/decisions/0021-schema-2.md has the invariants.
 *
 *   ready      published and never put off, in the order of claims    inserted once, deleted once
 *   ranges     what an owner claimed of it: numbers first to last     one for many messages
 *   waiting    all other messages, owner and token in each row        small in number, rewritten
 *   bodies     those too large for a message's row                    written once, deleted once
 *   queues     names, how far each was claimed, and kept counts
 *   owners     processes that claim messages, alive or just killed
 *   counter    one row: the next number
 *
 *   ready, above head ──claim──> ready, in a range ──settle──> gone, or into waiting
 *                                        │            (put off, given back, dead letter)
 *                                        └── its owner died ──> waiting, as a poison candidate
 *                                                               ──claim──> claimed there ...
 */
#ifndef MULL__SQLITE_SCHEMA_H
#define MULL__SQLITE_SCHEMA_H

/* "mull", in PRAGMA application_id; PRAGMA user_version is the version of the schema. */
#define MULL__SCHEMA_APPLICATION 1836412012
#define MULL__SCHEMA_VERSION     2

/* Set on each connection. FULL: a commit is on the disk before it is answered. The cache fills up
 * in a long queue, whatever it is for: what is claimed is read once. Some builds of SQLite
 * overwrite what is deleted, which costs a third of the rate. */
#define MULL__SCHEMA_CONNECTION                                                                    \
    "PRAGMA synchronous = FULL; PRAGMA cache_size = -6000; PRAGMA secure_delete = OFF;"

/* A body of up to so many bytes is in its message's row. */
#define MULL__BODY_IN_ROW      4096
#define MULL__BODY_IN_ROW_TEXT "4096"

/* More deliveries than any policy lets pass. */
#define MULL__DELIVERIES_MAX      1000000
#define MULL__DELIVERIES_MAX_TEXT "1000000"

/* Numbers stay below this, so that there is always a next one. */
#define MULL__NUMBERS_END "4611686018427387904"

/* What both tables of messages have. A body that `large` names and `bodies` doesn't have is lost.
 */
#define MULL__MESSAGE                                                                              \
    "    id TEXT,\n"                                                                               \
    "    type TEXT,\n"                                                                             \
    "    key TEXT,\n"                                                                              \
    "    headers TEXT NOT NULL DEFAULT '{}',\n"                                                    \
    "    published_ms INTEGER NOT NULL,\n"
#define MULL__LARGE  "    large INTEGER CHECK ((large IS NULL) = (body IS NOT NULL)), -- in bodies\n"
#define MULL__COPIED "id, type, key, headers, published_ms, body, large"
#define MULL__NUMBER "CHECK (number > 0 AND number < " MULL__NUMBERS_END ")"

/* No CHECK of `waiting` calls a function, or SQLite would keep a journal of each statement that
 * fires its triggers. Its partial indexes cover what is fresh, what is poison candidate, what is
 * claimed and what is a dead letter, so that none of them grows with what the others hold. */
#define MULL__SCHEMA_TABLES                                                                        \
    "CREATE TABLE queues (\n"                                                                      \
    "    queue INTEGER PRIMARY KEY,\n"                                                             \
    "    name TEXT NOT NULL UNIQUE,\n"                                                             \
    "    head INTEGER NOT NULL DEFAULT 0, -- up to this number, ready was claimed\n"               \
    "    ready INTEGER NOT NULL DEFAULT 0 CHECK (ready >= 0), -- above it\n"                       \
    "    due INTEGER NOT NULL DEFAULT 0 CHECK (due >= 0), -- in waiting, at mark_ms\n"             \
    "    delayed INTEGER NOT NULL DEFAULT 0 CHECK (delayed >= 0), -- and after it\n"               \
    "    mark_ms INTEGER NOT NULL DEFAULT 0\n"                                                     \
    ") STRICT;\n"                                                                                  \
    "CREATE TABLE ready (\n"                                                                       \
    "    queue INTEGER NOT NULL,\n"                                                                \
    "    number INTEGER NOT NULL " MULL__NUMBER ",\n" MULL__MESSAGE                                \
    "    body BLOB CHECK (length(body) <= " MULL__BODY_IN_ROW_TEXT "),\n" MULL__LARGE              \
    "    PRIMARY KEY (queue, number)\n"                                                            \
    ") STRICT, WITHOUT ROWID;\n"                                                                   \
    "CREATE TABLE ranges (\n"                                                                      \
    "    queue INTEGER NOT NULL,\n"                                                                \
    "    first INTEGER NOT NULL,\n"                                                                \
    "    last INTEGER NOT NULL CHECK (last >= first),\n"                                           \
    "    owner INTEGER NOT NULL,\n"                                                                \
    "    PRIMARY KEY (queue, first)\n"                                                             \
    ") STRICT, WITHOUT ROWID;\n"
#define MULL__SCHEMA_WAITING                                                                       \
    "CREATE TABLE waiting (\n"                                                                     \
    "    number INTEGER PRIMARY KEY " MULL__NUMBER ",\n"                                           \
    "    queue INTEGER NOT NULL,\n"                                                                \
    "    due_ms INTEGER NOT NULL CHECK (due_ms >= 0), -- 0: at once\n"                             \
    "    owner INTEGER, -- who has claimed it\n"                                                   \
    "    token INTEGER CHECK ((token IS NULL) = (owner IS NULL)),\n"                               \
    "    deliveries INTEGER NOT NULL DEFAULT 0\n"                                                  \
    "        CHECK (deliveries >= (owner IS NOT NULL)\n"                                           \
    "            AND deliveries <= " MULL__DELIVERIES_MAX_TEXT "),\n" MULL__MESSAGE                \
    "    body BLOB, -- as in ready\n" MULL__LARGE                                                  \
    "    dead_ms INTEGER, -- this and the rest: of a dead letter\n"                                \
    "    dead_from TEXT CHECK ((dead_from IS NULL) = (dead_ms IS NULL)),\n"                        \
    "    consumer TEXT CHECK (consumer IS NULL OR dead_ms IS NOT NULL),\n"                         \
    "    error_type TEXT CHECK (error_type IS NULL OR dead_ms IS NOT NULL),\n"                     \
    "    reason TEXT CHECK (reason IS NULL OR dead_ms IS NOT NULL),\n"                             \
    "    rule TEXT CHECK (rule IS NULL OR dead_ms IS NOT NULL)\n"                                  \
    ") STRICT;\n"                                                                                  \
    "CREATE INDEX waiting_fresh ON waiting (queue, due_ms, number, deliveries, owner)\n"           \
    "    WHERE owner IS NULL AND deliveries = 0;\n"                                                \
    "CREATE INDEX waiting_suspect ON waiting (queue, deliveries, number, due_ms, owner)\n"         \
    "    WHERE owner IS NULL AND deliveries > 0;\n"                                                \
    "CREATE INDEX waiting_claimed ON waiting (owner, queue)\n"                                     \
    "    WHERE owner IS NOT NULL;\n"                                                               \
    "CREATE INDEX waiting_dead ON waiting\n"                                                       \
    "    (consumer, error_type, reason, rule, dead_from, queue, dead_ms)\n"                        \
    "    WHERE dead_ms IS NOT NULL;\n"
#define MULL__SCHEMA_REST                                                                          \
    "CREATE TABLE IF NOT EXISTS bodies ( -- schema 1 had it, with other names\n"                   \
    "    body INTEGER PRIMARY KEY,\n"                                                              \
    "    bytes BLOB NOT NULL\n"                                                                    \
    ") STRICT;\n"                                                                                  \
    "CREATE TABLE owners (\n"                                                                      \
    "    owner INTEGER PRIMARY KEY CHECK (owner > 0 AND owner < " MULL__NUMBERS_END "),\n"         \
    "    pid INTEGER NOT NULL,\n"                                                                  \
    "    since_ms INTEGER NOT NULL\n"                                                              \
    ") STRICT;\n"                                                                                  \
    "CREATE TABLE counter (\n"                                                                     \
    "    one INTEGER PRIMARY KEY CHECK (one = 1),\n"                                               \
    "    next INTEGER NOT NULL CHECK (next > 0 AND next < " MULL__NUMBERS_END ")\n"                \
    ") STRICT;\n"                                                                                  \
    "CREATE TABLE pauses (\n"                                                                      \
    "    consumer TEXT PRIMARY KEY,\n"                                                             \
    "    since_ms INTEGER NOT NULL,\n"                                                             \
    "    by TEXT\n"                                                                                \
    ") STRICT, WITHOUT ROWID;\n"

/* What isn't claimed of `waiting`, by index: of queue q, or of the one with the name ?1. */
#define MULL__IS_FRESH   " AND owner IS NULL AND deliveries = 0"
#define MULL__IS_SUSPECT " AND owner IS NULL AND deliveries > 0"
#define MULL__NAMED      " FROM waiting WHERE queue = (SELECT queue FROM queues WHERE name = ?1)"
#define MULL__FRESH      " FROM waiting WHERE queue = q.queue" MULL__IS_FRESH
#define MULL__SUSPECT    " FROM waiting WHERE queue = q.queue" MULL__IS_SUSPECT

/* Those of queue `of` that are due at `at`, and those that aren't yet, counted one by one. */
#define MULL__COUNTED(of, when)                                                                    \
    "((SELECT count(*) FROM waiting WHERE queue = " of MULL__IS_FRESH " AND due_ms " when ")"      \
    " + (SELECT count(*) FROM waiting WHERE queue = " of MULL__IS_SUSPECT " AND due_ms " when "))"
#define MULL__OLD_DUE     MULL__COUNTED("OLD.queue", "<= mark_ms")
#define MULL__OLD_DELAYED MULL__COUNTED("OLD.queue", "> mark_ms")
#define MULL__NOW_DUE     MULL__COUNTED("q.queue", "<= ?2")
#define MULL__NOW_DELAYED MULL__COUNTED("q.queue", "> ?2")

/* Triggers: the counts of `waiting`, whoever writes to it; and what no program may do. */
#define MULL__COUNT_NEW                                                                            \
    " UPDATE queues SET due = due + (NEW.due_ms <= mark_ms),"                                      \
    " delayed = delayed + (NEW.due_ms > mark_ms) WHERE queue = NEW.queue AND NEW.owner IS NULL;"
/* A count that would be below 0 was changed by somebody, and is counted anew: so after COUNT_NEW.
 */
#define MULL__COUNT_OLD                                                                            \
    " UPDATE queues SET"                                                                           \
    " due = iif(due < (OLD.due_ms <= mark_ms), " MULL__OLD_DUE ","                                 \
    " due - (OLD.due_ms <= mark_ms)),"                                                             \
    " delayed = iif(delayed < (OLD.due_ms > mark_ms), " MULL__OLD_DELAYED ","                      \
    " delayed - (OLD.due_ms > mark_ms)) WHERE queue = OLD.queue AND OLD.owner IS NULL;"
/* What our own statements could run into on any day ends the transaction, as these do by OR
 * ROLLBACK: to undo one of them alone, SQLite would copy each page before it changes it. */
#define MULL__REFUSE_IT  " BEGIN SELECT RAISE(ABORT, '"
#define MULL__REFUSE_ALL " BEGIN SELECT RAISE(ROLLBACK, '"
#define MULL__REFUSED    "'); END;\n"
#define MULL__NO_OWNER   "NEW.owner NOT NULL AND NEW.owner NOT IN (SELECT owner FROM owners)"
#define MULL__LOST                                                                                 \
    " SELECT RAISE(ROLLBACK, 'no such owner or queue') WHERE " MULL__NO_OWNER                      \
    " OR NEW.queue NOT IN (SELECT queue FROM queues);"
/* OR REPLACE deletes without a trigger. */
#define MULL__ONCE                                                                                 \
    "CREATE TRIGGER counter_once BEFORE INSERT ON counter WHEN EXISTS (SELECT 1 FROM "             \
    "counter)" MULL__REFUSE_IT "it stays" MULL__REFUSED                                            \
    "CREATE TRIGGER bodies_once BEFORE INSERT ON bodies WHEN EXISTS (SELECT 1 FROM bodies"         \
    " WHERE body = NEW.body)" MULL__REFUSE_IT "a body stays as it is" MULL__REFUSED                \
    "CREATE TRIGGER waiting_stay BEFORE UPDATE OF body, large ON waiting" MULL__REFUSE_IT          \
    "a body stays as it is" MULL__REFUSED                                                          \
    "CREATE TRIGGER bodies_stay BEFORE UPDATE ON bodies" MULL__REFUSE_IT                           \
    "a body stays as it is" MULL__REFUSED "CREATE TRIGGER queues_once BEFORE INSERT ON queues"     \
    " WHEN EXISTS (SELECT 1 FROM queues WHERE name = NEW.name OR queue = NEW.queue)"               \
    " BEGIN SELECT RAISE(IGNORE); END;\n"
#define MULL__SCHEMA_TRIGGERS                                                                      \
    "CREATE TRIGGER waiting_in AFTER INSERT ON waiting BEGIN" MULL__LOST MULL__COUNT_NEW " END;\n" \
    "CREATE TRIGGER waiting_out AFTER DELETE ON waiting BEGIN" MULL__COUNT_OLD " END;\n"           \
    "CREATE TRIGGER waiting_moved AFTER UPDATE OF queue, due_ms, owner ON waiting "                \
    "BEGIN" MULL__LOST MULL__COUNT_NEW MULL__COUNT_OLD " END;\n"
#define MULL__SCHEMA_GUARDS                                                                        \
    "CREATE TRIGGER ranges_new BEFORE INSERT ON ranges WHEN " MULL__NO_OWNER                       \
    " OR EXISTS (SELECT 1 FROM ranges WHERE queue = NEW.queue AND first <= NEW.last"               \
    " AND last >= NEW.first)" MULL__REFUSE_ALL "no such owner, or claimed already" MULL__REFUSED   \
    "CREATE TRIGGER ranges_grow BEFORE UPDATE ON ranges WHEN NEW.queue <> OLD.queue"               \
    " OR NEW.first <> OLD.first OR NEW.owner <> OLD.owner OR NEW.last < OLD.last" MULL__REFUSE_ALL \
    "a range only grows" MULL__REFUSED                                                             \
    "CREATE TRIGGER ranges_end BEFORE DELETE ON ranges WHEN EXISTS (SELECT 1 FROM ready"           \
    " WHERE queue = OLD.queue AND number BETWEEN OLD.first AND OLD.last)" MULL__REFUSE_ALL         \
    "messages are claimed by it" MULL__REFUSED "CREATE TRIGGER owners_end BEFORE DELETE ON owners" \
    " WHEN EXISTS (SELECT 1 FROM waiting WHERE owner = OLD.owner)"                                 \
    " OR EXISTS (SELECT 1 FROM ranges WHERE owner = OLD.owner)" MULL__REFUSE_IT                    \
    "it has claims" MULL__REFUSED                                                                  \
    "CREATE TRIGGER owners_stay BEFORE UPDATE OF owner ON owners" MULL__REFUSE_IT                  \
    "an owner is what it is" MULL__REFUSED "CREATE TRIGGER counter_grows BEFORE UPDATE ON counter" \
    " WHEN NEW.next < OLD.next OR NEW.next > OLD.next + 4294967296" MULL__REFUSE_ALL               \
    "it only grows" MULL__REFUSED                                                                  \
    "CREATE TRIGGER counter_stays BEFORE DELETE ON counter" MULL__REFUSE_IT                        \
    "it stays" MULL__REFUSED "CREATE TRIGGER queues_grow BEFORE UPDATE OF queue, head ON queues"   \
    " WHEN NEW.queue <> OLD.queue OR NEW.head < OLD.head" MULL__REFUSE_ALL                         \
    "head only grows" MULL__REFUSED "CREATE TRIGGER queues_end BEFORE DELETE ON queues"            \
    " WHEN EXISTS (SELECT 1 FROM ready WHERE queue = OLD.queue)"                                   \
    " OR EXISTS (SELECT 1 FROM waiting WHERE queue = OLD.queue)"                                   \
    " OR EXISTS (SELECT 1 FROM ranges WHERE queue = OLD.queue)" MULL__REFUSE_IT                    \
    "it has messages, or claims" MULL__REFUSED MULL__ONCE

/* How many of queue q's that wait came to be due since its mark; below 0 where that is ahead. */
#define MULL__CAME                                                                                 \
    "((SELECT count(*)" MULL__FRESH " AND due_ms > mark_ms AND due_ms <= now_ms)"                  \
    " - (SELECT count(*)" MULL__FRESH " AND due_ms > now_ms AND due_ms <= mark_ms)"                \
    " + (SELECT coalesce(sum((due_ms <= now_ms) - (due_ms <= mark_ms)), 0)" MULL__SUSPECT "))"

/* What follows is the table of queues, and `now_ms`. */
#define MULL__DEPTHS                                                                               \
    "SELECT name AS queue, max(0, ready + due + came) AS ready, max(0, delayed - came) AS "        \
    "delayed,"                                                                                     \
    " (SELECT count(*) FROM ready AS r WHERE r.queue = q.queue AND number <= head)"                \
    " + (SELECT count(*) FROM waiting AS w WHERE w.queue = q.queue AND owner IS NOT NULL)"         \
    " AS claimed,"                                                                                 \
    " (SELECT min(due_ms) FROM (SELECT min(due_ms) AS due_ms" MULL__FRESH " AND due_ms > now_ms"   \
    " UNION ALL SELECT min(due_ms)" MULL__SUSPECT " AND due_ms > now_ms)) AS next_due_ms"          \
    " FROM (SELECT *, iif(due + delayed = 0, 0, " MULL__CAME ") AS came FROM "

/* Views: what an operator sees, and may change. Who changes a message of `ready` moves it into
 * `waiting`. */
#define MULL__NEW_QUEUE "(SELECT queue FROM queues WHERE name = NEW.queue)"
#define MULL__OLD_READY                                                                            \
    "queue = (SELECT queue FROM queues WHERE name = OLD.queue) AND number = OLD.number"
#define MULL__TAKE_OUT                                                                             \
    " UPDATE queues SET ready = ready - 1 WHERE name = OLD.queue AND head < OLD.number"            \
    " AND EXISTS (SELECT 1 FROM ready WHERE " MULL__OLD_READY ");\n"                               \
    " DELETE FROM ready WHERE " MULL__OLD_READY ";\n"
#define MULL__SCHEMA_VIEWS                                                                         \
    "CREATE VIEW messages AS SELECT number, name AS queue, 0 AS due_ms, iif(number <= head,"       \
    " (SELECT iif(last >= r.number, owner, NULL) FROM ranges AS g WHERE g.queue = r.queue"         \
    " AND first <= r.number ORDER BY first DESC LIMIT 1), NULL) AS owner,"                         \
    " number <= head AS deliveries, id, type, key, headers, published_ms, NULL AS dead_ms,"        \
    " NULL AS dead_from, NULL AS consumer, NULL AS error_type, NULL AS reason, NULL AS rule,"      \
    " coalesce(body, (SELECT bytes FROM bodies AS b WHERE b.body = large)) AS body"                \
    " FROM queues AS q CROSS JOIN ready AS r USING (queue)"                                        \
    " UNION ALL SELECT number, name, due_ms, owner, deliveries, id, type, key, headers,"           \
    " published_ms, dead_ms, dead_from, consumer, error_type, reason, rule,"                       \
    " coalesce(body, (SELECT bytes FROM bodies AS b WHERE b.body = large))"                        \
    " FROM waiting JOIN queues USING (queue);\n"
#define MULL__SCHEMA_CHANGES                                                                       \
    "CREATE TRIGGER messages_update INSTEAD OF UPDATE OF queue, due_ms, owner, deliveries, id,"    \
    " type, key, headers, dead_ms, dead_from, consumer, error_type, reason, rule ON messages\n"    \
    "BEGIN\n"                                                                                      \
    " SELECT RAISE(ABORT, 'it is claimed: set owner = NULL, which takes the claim away')"          \
    " WHERE NEW.owner IS NOT NULL;\n"                                                              \
    " INSERT INTO queues (name) SELECT NEW.queue"                                                  \
    " WHERE NEW.queue NOT IN (SELECT name FROM queues);\n"                                         \
    " INSERT INTO waiting (number, queue, due_ms, " MULL__COPIED ")"                               \
    " SELECT number, queue, 0, " MULL__COPIED " FROM ready WHERE " MULL__OLD_READY                 \
    ";\n" MULL__TAKE_OUT " UPDATE waiting SET queue = " MULL__NEW_QUEUE ", due_ms = NEW.due_ms,"   \
    " owner = NULL, token = NULL, deliveries = NEW.deliveries, id = NEW.id, type = NEW.type,"      \
    " key = NEW.key, headers = NEW.headers, dead_ms = NEW.dead_ms, dead_from = NEW.dead_from,"     \
    " consumer = NEW.consumer, error_type = NEW.error_type, reason = NEW.reason,"                  \
    " rule = NEW.rule WHERE number = OLD.number;\nEND;\n"                                          \
    "CREATE TRIGGER messages_delete INSTEAD OF DELETE ON messages BEGIN\n"                         \
    " DELETE FROM bodies WHERE body = (SELECT large FROM ready WHERE " MULL__OLD_READY             \
    " UNION ALL SELECT large FROM waiting WHERE number = OLD.number);\n" MULL__TAKE_OUT            \
    " DELETE FROM waiting WHERE number = OLD.number;\nEND;\n"
#define MULL__SCHEMA_OVERVIEWS                                                                     \
    "CREATE VIEW dead_letters AS SELECT number, name AS queue, dead_from, consumer, error_type,"   \
    " reason, rule, dead_ms FROM waiting LEFT JOIN queues USING (queue) WHERE dead_ms NOT NULL;\n" \
    "CREATE VIEW depths AS " MULL__DEPTHS                                                          \
    "(SELECT *, unixepoch() * 1000 AS now_ms FROM queues) AS q) AS q;\n"

/* All of it, a text each, since a compiler need not take a longer one. */
#define MULL__SCHEMA                                                                               \
    MULL__SCHEMA_TABLES, MULL__SCHEMA_WAITING, MULL__SCHEMA_REST, MULL__SCHEMA_TRIGGERS,           \
        MULL__SCHEMA_GUARDS, MULL__SCHEMA_VIEWS, MULL__SCHEMA_CHANGES, MULL__SCHEMA_OVERVIEWS

/* What is inserted: the columns before, and those of MULL__COPIED. */
#define MULL__VALUES "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?20, ?21"
enum { MULL__AT_BODY = 20, MULL__AT_LARGE };

/* What a claim reads, in this order. */
#define MULL__CLAIM_COLUMNS                                                                        \
    "SELECT number, deliveries, id, type, key, headers, published_ms, m.body, large, bytes"        \
    " FROM waiting AS m LEFT JOIN bodies AS b ON b.body = large"                                   \
    " WHERE queue = ?1 AND owner IS NULL AND "
#define MULL__CLAIM_READY                                                                          \
    "SELECT number, 0, id, type, key, headers, published_ms, m.body, large, bytes"                 \
    " FROM ready AS m LEFT JOIN bodies AS b ON b.body = large WHERE queue = ?1 AND number > ?3"

/* A settle finds its message by this, or not at all. */
#define MULL__CLAIMED " WHERE number = ?1 AND owner = ?2 AND token = ?3"
#define MULL__STAMP   "id = coalesce(id, ?4), headers = ?5"
#define MULL__UNCLAIM " SET owner = NULL, token = NULL, " MULL__STAMP ", "

#define MULL__FROM_TO " FROM ready WHERE queue = ?1 AND number BETWEEN ?2 AND ?3"

/* The rows of `ready` that owner ?1 has claimed. */
#define MULL__RANGED                                                                               \
    " FROM ranges AS g CROSS JOIN ready AS r ON r.queue = g.queue AND number BETWEEN first"        \
    " AND last WHERE g.owner = ?1"

/* The rows of `ready` that were claimed, and that no range names: the one that did was lost. */
#define MULL__NAMELESS                                                                             \
    " FROM queues AS q CROSS JOIN ready AS r ON r.queue = q.queue AND number <= head"              \
    " WHERE number > coalesce((SELECT last FROM ranges AS g WHERE g.queue = r.queue"               \
    " AND first <= number ORDER BY first DESC LIMIT 1), 0)"

/* MULL__STATEMENTS lists every statement: its name and its text. ?1, ?2, ... as the text says;
 * times are milliseconds since 1970. */
#define MULL__STATEMENTS(X)                                                                        \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(BEGIN_READING, "BEGIN")                                                                      \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(VERSION, "PRAGMA data_version")                                                              \
    X(SIZE, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")              \
    X(COUNTER_READ, "SELECT next FROM counter")                                                    \
    X(COUNTER_WRITE, "UPDATE OR ROLLBACK counter SET next = ?1")                                   \
    X(QUEUE, "SELECT queue, head, ready FROM queues WHERE name = ?1")                              \
    X(QUEUE_NEW, "INSERT INTO queues (name) VALUES (?1)")                                          \
    X(QUEUE_WRITE, "UPDATE OR ROLLBACK queues SET head = ?2, ready = ?3 WHERE queue = ?1")         \
    X(QUEUE_COUNT, "SELECT count(*) FROM ready WHERE queue = ?1 AND number > ?2")                  \
    X(MARK, "UPDATE queues AS q SET mark_ms = ?2, (due, delayed) ="                                \
            " (SELECT iif(came > delayed, " MULL__NOW_DUE ", due + came),"                         \
            " iif(came > delayed, " MULL__NOW_DELAYED ", delayed - came)"                          \
            " FROM (SELECT " MULL__CAME " AS came FROM (SELECT ?2 AS now_ms)))"                    \
            " WHERE queue = ?1 AND delayed > 0 AND mark_ms < ?2"                                   \
            " AND (SELECT min(due_ms)" MULL__FRESH " AND due_ms > q.mark_ms) <= ?2")               \
    X(MARK_BACK, "UPDATE queues AS q SET mark_ms = ?2, due = " MULL__NOW_DUE                       \
                 ", delayed = " MULL__NOW_DELAYED " WHERE mark_ms > ?2 + ?1")                      \
    X(READY, "INSERT INTO ready (queue, number, " MULL__COPIED ") VALUES (" MULL__VALUES ")")      \
    X(DELAYED, "INSERT OR ROLLBACK INTO waiting (queue, number, " MULL__COPIED ", due_ms)"         \
               " VALUES (" MULL__VALUES ", ?8)")                                                   \
    X(BURIED, "INSERT OR ROLLBACK INTO waiting (queue, number, " MULL__COPIED                      \
              ", due_ms, dead_ms, dead_from,"                                                      \
              " error_type, reason, rule, consumer)"                                               \
              " VALUES (" MULL__VALUES ", ?8, ?9, ?10, ?11, ?12, ?13, ?14)")                       \
    X(BODY, "INSERT INTO bodies (body, bytes) VALUES (?1, ?2)")                                    \
    X(CLAIM_SUSPECT, MULL__CLAIM_COLUMNS "deliveries > 0 AND due_ms <= ?3"                         \
                                         " ORDER BY deliveries, number LIMIT ?2")                  \
    X(CLAIM_DUE, MULL__CLAIM_COLUMNS "deliveries = 0 AND due_ms <= ?3"                             \
                                     " ORDER BY due_ms, number LIMIT ?2")                          \
    X(CLAIM_READY, MULL__CLAIM_READY " ORDER BY number LIMIT ?2")                                  \
    X(CLAIM,                                                                                       \
      "UPDATE OR ROLLBACK waiting SET owner = ?2, token = ?3,"                                     \
      " deliveries = deliveries + (deliveries < " MULL__DELIVERIES_MAX_TEXT ") WHERE number = ?1") \
    X(EXTEND,                                                                                      \
      "UPDATE OR ROLLBACK ranges SET last = ?4 WHERE queue = ?1 AND owner = ?2 AND last = ?3 - 1") \
    X(RANGE, "INSERT OR ROLLBACK INTO ranges (queue, owner, first, last) VALUES (?1, ?2, ?3, ?4)") \
    X(RANGES_END, "DELETE FROM ranges WHERE owner = ?1 AND NOT EXISTS (SELECT 1 FROM ready AS r"   \
                  " WHERE r.queue = ranges.queue AND number BETWEEN first AND last)")              \
    X(HEADERS, "SELECT key, atom FROM json_each(?1)")                                              \
    X(NEXT_DUE, "SELECT min(min(due_ms), 9223372036854775806) FROM (SELECT min(due_ms) AS "        \
                "due_ms" MULL__NAMED MULL__IS_FRESH                                                \
                " AND due_ms > ?2 UNION ALL SELECT min(due_ms)" MULL__NAMED MULL__IS_SUSPECT       \
                " AND due_ms > ?2 AND ?3)")                                                        \
    X(END_READY, "DELETE FROM ready WHERE queue = ?1 AND number = ?2")                             \
    X(COUNT_READY, "SELECT count(*)" MULL__FROM_TO)                                                \
    X(END_RUN, "DELETE" MULL__FROM_TO)                                                             \
    X(END, "DELETE FROM waiting" MULL__CLAIMED)                                                    \
    X(END_BODY, "DELETE FROM bodies WHERE body = ?1")                                              \
    X(NOTE_READY, "UPDATE ready SET id = coalesce(id, ?3), headers = ?4"                           \
                  " WHERE queue = ?1 AND number = ?2")                                             \
    X(NOTE, "UPDATE waiting SET " MULL__STAMP MULL__CLAIMED)                                       \
    X(LEAVE_READY,                                                                                 \
      "INSERT INTO waiting (number, queue, due_ms, owner, token, deliveries, " MULL__COPIED        \
      ") SELECT number, queue, 0, ?3, ?4, 1, " MULL__COPIED                                        \
      " FROM ready WHERE queue = ?1 AND number = ?2")                                              \
    X(RETURN,                                                                                      \
      "UPDATE waiting SET owner = NULL, token = NULL, deliveries = deliveries - 1" MULL__CLAIMED)  \
    X(GIVE_BACK, "UPDATE OR ROLLBACK waiting" MULL__UNCLAIM "deliveries = deliveries - 1,"         \
                 " due_ms = iif(?6 > 0, ?6, due_ms)" MULL__CLAIMED)                                \
    X(REDELIVER, "UPDATE OR ROLLBACK waiting" MULL__UNCLAIM                                        \
                 "deliveries = 0, due_ms = ?6, number = ?7" MULL__CLAIMED)                         \
    X(DEAD_LETTER,                                                                                 \
      "UPDATE OR ROLLBACK waiting" MULL__UNCLAIM "deliveries = 0, due_ms = ?6, number = ?7,"       \
      " dead_from = "                                                                              \
      "(SELECT name FROM queues AS q WHERE q.queue = waiting.queue),"                              \
      " queue = ?8, dead_ms = ?9, error_type = ?10, reason = ?11,"                                 \
      " rule = ?12, consumer = ?13" MULL__CLAIMED)                                                 \
    X(REQUEUE, "INSERT INTO ready (queue, number, " MULL__COPIED ")"                               \
               " SELECT queue, ?7, coalesce(id, ?4), type, key, ?5, published_ms, body, large"     \
               " FROM waiting" MULL__CLAIMED " AND dead_ms IS NULL")                               \
    X(DEPTH, MULL__DEPTHS "(SELECT *, ?2 AS now_ms FROM queues WHERE name = ?1) AS q) AS q")       \
    X(FAR, "SELECT group_concat(number, ', '), max(all_of_them) FROM"                              \
           " (SELECT number, count(*) OVER () AS all_of_them FROM"                                 \
           " (SELECT number, due_ms" MULL__NAMED MULL__IS_FRESH " AND due_ms > ?2"                 \
           " UNION ALL"                                                                            \
           " SELECT number, due_ms" MULL__NAMED MULL__IS_SUSPECT " AND due_ms > ?2)"               \
           " ORDER BY due_ms, number LIMIT 20)")                                                   \
    X(LOOK, "SELECT CASE WHEN EXISTS"                                                              \
            " (SELECT 1 FROM ready AS r WHERE r.queue = q.queue AND number > head)"                \
            " OR (?2 AND EXISTS (SELECT 1" MULL__SUSPECT "))"                                      \
            " THEN 0 ELSE (SELECT min(due_ms)" MULL__FRESH ") END FROM queues AS q"                \
            " WHERE name = ?1")                                                                    \
    X(OWNER_NEW, "INSERT INTO owners (owner, pid, since_ms) VALUES (?1, ?2, ?3)")                  \
    X(OWNER_THERE, "SELECT 1 FROM owners WHERE owner = ?1")                                        \
    X(OWNERS, "SELECT owner FROM owners ORDER BY owner")                                           \
    X(OWNER_MOVE, "INSERT INTO waiting (number, queue, due_ms, deliveries, " MULL__COPIED ")"      \
                  " SELECT number, r.queue, 0, ?2, " MULL__COPIED MULL__RANGED)                    \
    X(OWNER_MOVED,                                                                                 \
      "DELETE FROM ready WHERE (queue, number) IN (SELECT r.queue, number" MULL__RANGED ")")       \
    X(OWNER_RANGES, "DELETE FROM ranges WHERE owner = ?1")                                         \
    X(OWNER_FREE, "UPDATE waiting SET owner = NULL, token = NULL,"                                 \
                  " deliveries = deliveries - 1 + ?2 WHERE owner = ?1")                            \
    X(OWNER_DELETE, "DELETE FROM owners WHERE owner = ?1")                                         \
    X(NAMELESS_MOVE, "INSERT INTO waiting (number, queue, due_ms, deliveries, " MULL__COPIED ")"   \
                     " SELECT number, r.queue, 0, 1, " MULL__COPIED MULL__NAMELESS)                \
    X(NAMELESS_MOVED,                                                                              \
      "DELETE FROM ready WHERE (queue, number) IN (SELECT r.queue, number" MULL__NAMELESS ")")

#endif
