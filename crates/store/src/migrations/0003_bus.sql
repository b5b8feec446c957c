-- The bus. (0002 belongs to sessions and schedules.)

-- What is to be told outside, written with the event that causes it and gone when it was published. The
-- table of 0001 was never written to.
DROP TABLE outbox;
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    command_id TEXT,
    stream TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TEXT NOT NULL
);

-- Streams of the embedded bus. One group reads each: `consumer` has taken an entry, which goes when it is
-- acknowledged. A sender's `key` makes a repetition harmless.
CREATE TABLE bus_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    key TEXT,
    body TEXT NOT NULL,
    at TEXT NOT NULL,
    consumer TEXT,
    taken_at TEXT,
    UNIQUE (stream, key)
);
CREATE INDEX bus_entries_by_stream ON bus_entries (stream, id);

-- Control flags of the embedded bus.
CREATE TABLE task_flags (
    task_id TEXT PRIMARY KEY,
    flag TEXT NOT NULL
) WITHOUT ROWID;

-- What a worker looks through for something to do.
CREATE INDEX tasks_of_service ON tasks (status, created_at)
    WHERE driver = 'service' AND parent_id IS NULL AND status NOT IN ('done', 'failed', 'cancelled');
-- Tasks that ended a short while ago may still be spoken to.
CREATE INDEX tasks_ended ON tasks (completed_at)
    WHERE driver = 'service' AND parent_id IS NULL AND completed_at IS NOT NULL;
