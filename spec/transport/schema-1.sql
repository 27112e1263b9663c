-- A database as schema version 1 was written: what it has of each kind of message. It stays as it
-- is: every later version must open it, or refuse it in one clear line.
PRAGMA journal_mode = WAL;
PRAGMA application_id = 1836412012;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE messages (
    number INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    queue TEXT NOT NULL,
    due_ms INTEGER NOT NULL, -- 0: at once
    owner INTEGER, -- who has claimed it
    token INTEGER,
    deliveries INTEGER NOT NULL DEFAULT 0,
    id TEXT,
    type TEXT,
    key TEXT,
    headers TEXT NOT NULL DEFAULT '{}',
    published_ms INTEGER NOT NULL,
    dead_ms INTEGER, -- this and the rest: of a dead letter
    dead_from TEXT,
    error_type TEXT,
    reason TEXT,
    rule TEXT
) STRICT;
INSERT INTO messages VALUES(1,5,'error',0,NULL,NULL,0,'dead','Order','k','{"tenant":"acme","mulligan-redeliveries":"0","mulligan-calls":"1","mulligan-first-failure":"2023-11-14T22:13:21.004Z","mulligan-last-failure":"2023-11-14T22:13:21.004Z","mulligan-queue":"q","mulligan-consumer":"C","mulligan-error-type":"ValidationError","mulligan-error-message":"no address","mulligan-error-stack":"stack traceback:\n\tmulligan.lua:5: in function <mulligan.lua:4>","mulligan-rule":"policy.lua:3","mulligan-reason":"rule","mulligan-generation":"26f658ed6d5dd25217e1fdb5ae3e429c"}',1700000000834,1700000001004,'q','ValidationError','rule','policy.lua:3');
INSERT INTO messages VALUES(2,6,'q',1700000001062,NULL,NULL,0,'later','Order','k','{"tenant":"acme","mulligan-redeliveries":"1","mulligan-calls":"1","mulligan-first-failure":"2023-11-14T22:13:21.004Z","mulligan-last-failure":"2023-11-14T22:13:21.004Z"}',1700000000865,NULL,NULL,NULL,NULL,NULL);
INSERT INTO messages VALUES(3,3,'q',0,1,3,1,'kills','Order','k','{"tenant":"acme"}',1700000000910,NULL,NULL,NULL,NULL,NULL);
INSERT INTO messages VALUES(4,4,'q',0,1,4,1,'fresh',NULL,NULL,'{}',1700000000947,NULL,NULL,NULL,NULL,NULL);
INSERT INTO messages VALUES(7,7,'q',1700003601030,NULL,NULL,0,'delayed',NULL,NULL,'{}',1700000001030,NULL,NULL,NULL,NULL,NULL);
INSERT INTO messages VALUES(8,8,'q',0,NULL,NULL,0,NULL,NULL,NULL,'{}',1700000001066,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE bodies (
    number INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
INSERT INTO bodies VALUES(1,X'626f6479206f662064656164');
INSERT INTO bodies VALUES(2,X'626f6479206f66206c61746572');
INSERT INTO bodies VALUES(3,X'626f6479206f66206b696c6c73');
INSERT INTO bodies VALUES(4,X'6672657368');
INSERT INTO bodies VALUES(7,X'64656c61796564');
INSERT INTO bodies VALUES(8,X'6e6f206964');
CREATE TABLE owners (
    owner INTEGER PRIMARY KEY AUTOINCREMENT,
    pid INTEGER NOT NULL,
    since_ms INTEGER NOT NULL
) STRICT;
INSERT INTO owners VALUES(1,9035,1700000000985);
CREATE TABLE counter (next INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES(9);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('owners',1);
CREATE INDEX messages_fresh ON messages (queue, due_ms, seq)
    WHERE owner IS NULL AND deliveries = 0;
CREATE INDEX messages_suspect ON messages (queue, deliveries, seq)
    WHERE owner IS NULL AND deliveries > 0;
CREATE INDEX messages_claimed ON messages (owner, queue)
    WHERE owner IS NOT NULL;
COMMIT;
