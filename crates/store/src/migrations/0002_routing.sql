-- Sessions, routing and schedules. None of these are projections: a rebuild leaves them alone.

-- Who serves a session right now. A row past its end belongs to nobody.
CREATE TABLE session_leases (
    session_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    expires_at TEXT NOT NULL
) WITHOUT ROWID;

-- Triggers that were taken, by the sender's own id: what was decided stands when one comes again.
CREATE TABLE triggers (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    decision TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX triggers_by_age ON triggers (at);

-- No program has ever written rows into the first shape of this table.
DROP TABLE schedules;
CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    action TEXT NOT NULL CHECK (action IN ('check', 'message', 'start')),
    task_id TEXT,
    session_id TEXT,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'ended')),
    next_at TEXT,
    next_due TEXT,
    timeout_at TEXT,
    last_at TEXT,
    runs INTEGER NOT NULL DEFAULT 0,
    missed INTEGER NOT NULL DEFAULT 0,
    ended_reason TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_due) WHERE state = 'active';
CREATE INDEX schedules_by_task ON schedules (task_id) WHERE task_id IS NOT NULL;

CREATE INDEX tasks_deadlines ON tasks (deadline)
    WHERE deadline IS NOT NULL AND status NOT IN ('done', 'failed', 'cancelled');
CREATE INDEX task_scheduler_open ON task_scheduler (status) WHERE status IN ('queued', 'due', 'claimed', 'dispatched');
