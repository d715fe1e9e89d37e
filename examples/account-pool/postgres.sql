-- The table that is the source of truth, and the number of its changes.
CREATE TABLE accounts (
    id      text PRIMARY KEY,
    token   text NOT NULL,
    tags    text NOT NULL DEFAULT '',
    enabled boolean NOT NULL DEFAULT true
);

-- A row, not a sequence: the second of two writers waits for the first to commit, so that a higher
-- version always has all that a lower one has. A sequence gives its numbers before the commit.
CREATE TABLE accounts_version (version bigint NOT NULL);
INSERT INTO accounts_version VALUES (0);

CREATE FUNCTION count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE accounts_version SET version = version + 1;
    RETURN NULL;
END $$;

CREATE TRIGGER accounts_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON accounts
    FOR EACH STATEMENT EXECUTE FUNCTION count_version();
