-- A commitment has a stream of its own in `events`; both tables are projections of those. Nothing wrote them before.
DROP TABLE evidence;
DROP TABLE commitments;
CREATE TABLE commitments (
    id TEXT PRIMARY KEY,
    session_id TEXT,
    task_id TEXT,
    user_id TEXT,
    project TEXT,
    title TEXT NOT NULL,
    body TEXT,
    state TEXT NOT NULL CHECK (state IN ('open', 'claimed', 'submitted', 'approved')),
    opened_by TEXT NOT NULL,
    claimed_by TEXT,
    submitted_by TEXT,
    verdict TEXT CHECK (verdict IN ('approved', 'rejected')),
    verdict_by TEXT,
    verdict_reason TEXT,
    evidence_count INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    last_seq INTEGER NOT NULL DEFAULT 0,
    last_hash BLOB
);
CREATE INDEX commitments_by_state ON commitments (state, claimed_by);
CREATE INDEX commitments_by_session ON commitments (session_id);
CREATE TABLE evidence (
    id TEXT PRIMARY KEY,
    commitment_id TEXT,
    task_id TEXT,
    type TEXT NOT NULL CHECK (type IN ('test_output', 'diff', 'file', 'url', 'screenshot', 'note')),
    uri TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    description TEXT,
    captured_by TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX evidence_by_commitment ON evidence (commitment_id);
-- The role that a session's agents, or a task's agent, work in.
ALTER TABLE sessions ADD COLUMN role TEXT;
ALTER TABLE tasks ADD COLUMN role TEXT;

-- A completion contract asks a person to judge finished work.
CREATE TABLE questions_wider (
    id TEXT PRIMARY KEY,
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('ask_user', 'permission', 'budget', 'plan', 'review', 'runner', 'repair')),
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
INSERT INTO questions_wider SELECT * FROM questions;
DROP TABLE questions;
ALTER TABLE questions_wider RENAME TO questions;
CREATE INDEX questions_by_task ON questions (task_id);
CREATE INDEX questions_open ON questions (asked_at) WHERE state = 'open';
