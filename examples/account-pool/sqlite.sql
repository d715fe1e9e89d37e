-- The table that is the source of truth, and the number of its changes.
PRAGMA journal_mode = WAL;

CREATE TABLE accounts (
    id      TEXT PRIMARY KEY,
    token   TEXT NOT NULL,
    tags    TEXT NOT NULL DEFAULT '',
    enabled INTEGER NOT NULL DEFAULT 1
);

CREATE TABLE accounts_version (version INTEGER NOT NULL);
INSERT INTO accounts_version VALUES (0);

CREATE TRIGGER accounts_inserted AFTER INSERT ON accounts
    BEGIN UPDATE accounts_version SET version = version + 1; END;
CREATE TRIGGER accounts_updated AFTER UPDATE ON accounts
    BEGIN UPDATE accounts_version SET version = version + 1; END;
CREATE TRIGGER accounts_deleted AFTER DELETE ON accounts
    BEGIN UPDATE accounts_version SET version = version + 1; END;
