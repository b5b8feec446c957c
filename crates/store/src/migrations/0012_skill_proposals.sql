-- What tasks of a project did that others did too, one row for each thing and task; and the skills that were proposed for
-- it. Neither is a projection: evidence is gathered once, when a task has ended.
CREATE TABLE IF NOT EXISTS skill_evidence (
    project TEXT NOT NULL,
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    detail TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    PRIMARY KEY (project, kind, key, task_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS skill_evidence_by_task ON skill_evidence (task_id);
CREATE TABLE IF NOT EXISTS skill_proposals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    evidence TEXT NOT NULL,
    status TEXT NOT NULL,
    note TEXT NOT NULL,
    made_at TEXT NOT NULL,
    decided_at TEXT
);
CREATE INDEX IF NOT EXISTS skill_proposals_by_project ON skill_proposals (project, made_at);
