-- Plans: which is active in a project, and what its activation found. Written by commands, not a fold of the journal.
CREATE TABLE plans (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    project TEXT NOT NULL,
    path TEXT NOT NULL,
    title TEXT NOT NULL,
    digest TEXT NOT NULL,
    -- The manifest as it was activated.
    manifest TEXT NOT NULL,
    -- What each of its tasks may use, as it was found then.
    tasks TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'inactive')),
    -- The session of its run.
    session_id TEXT,
    activated_at TEXT NOT NULL,
    activated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX plans_active ON plans (project) WHERE state = 'active';

-- A projection: which task of which plan a task is.
CREATE TABLE plan_tasks (
    task_id TEXT PRIMARY KEY,
    plan_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    phase TEXT NOT NULL,
    key TEXT NOT NULL,
    agent TEXT
);
CREATE INDEX plan_tasks_by_session ON plan_tasks (session_id, phase);

-- The tables of issues and decisions had no rows yet. They gain what may stand in them, and the project.
ALTER TABLE planning_issues RENAME TO planning_issues_before;
CREATE TABLE planning_issues (
    id TEXT PRIMARY KEY,
    planId TEXT,
    taskId TEXT,
    severity TEXT NOT NULL CHECK (severity IN ('low', 'medium', 'high', 'critical')),
    ownerTeam TEXT,
    description TEXT NOT NULL CHECK (description <> ''),
    createdAt TEXT NOT NULL,
    resolvedAt TEXT,
    resolution TEXT CHECK (resolution IN ('fixed', 'not_an_issue', 'duplicate', 'wont_fix')),
    project TEXT NOT NULL DEFAULT '',
    CHECK ((resolvedAt IS NULL) = (resolution IS NULL))
);
INSERT INTO planning_issues (id, planId, taskId, severity, ownerTeam, description, createdAt, resolvedAt, resolution)
    SELECT id, planId, taskId, severity, ownerTeam, description, createdAt, resolvedAt, resolution
    FROM planning_issues_before;
DROP TABLE planning_issues_before;
CREATE INDEX planning_issues_by_project ON planning_issues (project, createdAt);

ALTER TABLE planning_decisions RENAME TO planning_decisions_before;
CREATE TABLE planning_decisions (
    id TEXT PRIMARY KEY,
    planId TEXT,
    taskId TEXT,
    title TEXT NOT NULL CHECK (title <> ''),
    reasoning TEXT NOT NULL CHECK (reasoning <> ''),
    -- A JSON array of at least one text.
    alternatives TEXT NOT NULL CHECK (json_array_length(alternatives) > 0),
    createdAt TEXT NOT NULL,
    project TEXT NOT NULL DEFAULT ''
);
INSERT INTO planning_decisions (id, planId, taskId, title, reasoning, alternatives, createdAt)
    SELECT id, planId, taskId, title, reasoning, alternatives, createdAt FROM planning_decisions_before;
DROP TABLE planning_decisions_before;
CREATE INDEX planning_decisions_by_project ON planning_decisions (project, createdAt);

-- Where the snapshot of each task is. The file is what counts.
CREATE TABLE snapshots (
    project TEXT NOT NULL,
    plan TEXT NOT NULL,
    task TEXT NOT NULL,
    path TEXT NOT NULL,
    saved_at TEXT NOT NULL,
    PRIMARY KEY (project, plan, task)
);
