-- A question of the health gate is a kind of its own. SQLite changes a CHECK only with its table.
ALTER TABLE questions RENAME TO questions_before;
CREATE TABLE questions (
    id TEXT PRIMARY KEY,
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('ask_user', 'permission', 'budget', 'plan', 'runner', 'repair')),
    call_id TEXT,
    question TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'closed')),
    asked_at TEXT NOT NULL,
    answer TEXT,
    answered_by TEXT,
    answered_at TEXT,
    closed_reason TEXT,
    closed_at TEXT
);
INSERT INTO questions SELECT * FROM questions_before;
DROP TABLE questions_before;
CREATE INDEX questions_by_task ON questions (task_id);
CREATE INDEX questions_open ON questions (asked_at) WHERE state = 'open';
