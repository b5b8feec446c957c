-- What workers will edit. Not a projection: a claim holds only while its task gives signs of life.
CREATE TABLE intent_claims (
    repository TEXT NOT NULL,
    task_id TEXT NOT NULL,
    path TEXT NOT NULL,
    first_line INTEGER,
    last_line INTEGER,
    symbol TEXT,
    claimed_at TEXT NOT NULL
);
CREATE INDEX intent_claims_of_file ON intent_claims (repository, path);
CREATE INDEX intent_claims_of_task ON intent_claims (task_id);
