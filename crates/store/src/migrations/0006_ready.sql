-- The ready index: which service tasks could run now, or from a time on, kept in the transaction that makes it so.
-- A worker reads the head of it, however long the queue is.
ALTER TABLE task_scheduler ADD COLUMN session_id TEXT;
-- When the task was handed in, while nothing but a process (or a time) is missing; the oldest come first.
ALTER TABLE task_scheduler ADD COLUMN ready_since TEXT;
-- The time that is missing, where one is.
ALTER TABLE task_scheduler ADD COLUMN resume_at TEXT;
CREATE INDEX task_scheduler_ready ON task_scheduler (ready_since, task_id)
    WHERE ready_since IS NOT NULL AND resume_at IS NULL;
CREATE INDEX task_scheduler_timed ON task_scheduler (resume_at) WHERE resume_at IS NOT NULL;
CREATE INDEX task_scheduler_of_session ON task_scheduler (session_id) WHERE ready_since IS NOT NULL;

-- Which tasks wait for which; a projection.
CREATE TABLE task_blockers (
    blocker TEXT NOT NULL,
    task_id TEXT NOT NULL,
    PRIMARY KEY (blocker, task_id)
) WITHOUT ROWID;
INSERT INTO task_blockers (blocker, task_id)
    SELECT DISTINCT blocker.value, tasks.id
    FROM tasks, json_each(tasks.dependency_blockers) AS blocker;

-- A session's live tasks in the order of their turn.
CREATE INDEX tasks_of_session ON tasks (session_id, status, created_at, id)
    WHERE driver = 'service' AND parent_id IS NULL AND status NOT IN ('done', 'failed', 'cancelled');

-- Limits that the index is kept by, so that all processes keep it alike.
CREATE TABLE scheduler_limits (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO scheduler_limits (name, value) VALUES ('tasks_per_session', 3);
