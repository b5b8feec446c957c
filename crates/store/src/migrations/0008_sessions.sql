-- A session has a stream of its own in `events`; these are projections of it.
ALTER TABLE sessions ADD COLUMN last_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN last_hash BLOB;
-- Whether a person stays in it.
ALTER TABLE sessions ADD COLUMN interactive INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN workspace TEXT;
-- The model that a person has named.
ALTER TABLE sessions ADD COLUMN model TEXT;
-- The task that the next message continues.
ALTER TABLE sessions ADD COLUMN conversation TEXT;
CREATE INDEX mode_transitions_by_session ON mode_transitions (session_id);

-- What people think of what was done; a projection.
CREATE TABLE ratings (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    stars INTEGER NOT NULL,
    note TEXT NOT NULL,
    model TEXT,
    axes TEXT NOT NULL,
    rated_by TEXT NOT NULL,
    timestamp TEXT NOT NULL
);
CREATE INDEX ratings_by_session ON ratings (session_id);
