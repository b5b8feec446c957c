-- A checksum of each event over its row and the checksum before it in its stream. Rows of earlier versions have none.
ALTER TABLE events ADD COLUMN hash BLOB;
-- Names the part of the body that is kept once for all events that share it.
ALTER TABLE events ADD COLUMN content BLOB;
CREATE INDEX events_contents ON events (content) WHERE content IS NOT NULL;
-- The checksum of a task's last event; a projection.
ALTER TABLE tasks ADD COLUMN last_hash BLOB;

-- Long parts of events, once for each content, by its hash. Not a projection.
CREATE TABLE contents (
    hash BLOB PRIMARY KEY,
    body TEXT NOT NULL
);

-- What removed tasks have published. Not a projection.
CREATE TABLE kept_deliverables (
    task_id TEXT NOT NULL,
    goal TEXT NOT NULL,
    workspace TEXT NOT NULL,
    filepath TEXT NOT NULL,
    description TEXT NOT NULL,
    type TEXT NOT NULL,
    content TEXT,
    size_bytes INTEGER,
    published_at TEXT NOT NULL,
    PRIMARY KEY (task_id, filepath)
) WITHOUT ROWID;

-- Sums over the journal up to an event, so that the same events are not added up twice, and are still counted when
-- they are gone. Not projections.
CREATE TABLE sums (
    name TEXT PRIMARY KEY,
    pos INTEGER NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;
