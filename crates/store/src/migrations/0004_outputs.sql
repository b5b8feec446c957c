-- Outputs in one tree by command, where there were three: each command writes a page instead of four. Nothing
-- asks for them by number or by task.
CREATE TABLE spawn_logs_by_command (
    command_id TEXT NOT NULL,
    stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr')),
    task_id TEXT,
    content TEXT NOT NULL,
    meta TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (command_id, stream)
) WITHOUT ROWID;
INSERT INTO spawn_logs_by_command (command_id, stream, task_id, content, meta, at)
    SELECT command_id, stream, task_id, content, meta, at FROM spawn_logs;
DROP TABLE spawn_logs;
ALTER TABLE spawn_logs_by_command RENAME TO spawn_logs;
