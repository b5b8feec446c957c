-- The truth. A stream is a task, a session or the project; `pos` is the cursor over all of them.
CREATE TABLE events (
    pos INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL CHECK (seq >= 1),
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    v INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (stream, seq)
);
-- Counts a stream's turns up to a cursor without reading bodies.
CREATE INDEX events_replies ON events (stream, seq) WHERE kind = 'llm_response';

-- Projections, updated in the transaction that appends the event. --------------------------------

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT,
    work_mode TEXT NOT NULL CHECK (work_mode IN ('chat', 'plan', 'build', 'review', 'repair', 'research')),
    run_control TEXT NOT NULL CHECK (run_control IN ('manual', 'assisted', 'autonomous')),
    permission_profile TEXT NOT NULL CHECK (permission_profile IN ('restricted', 'normal', 'trusted', 'unrestricted')),
    model_mode TEXT NOT NULL CHECK (model_mode IN ('fast', 'smart', 'deep')),
    surface TEXT NOT NULL CHECK (surface IN ('tui', 'web', 'headless', 'rpc')),
    active_task_id TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);

-- `epoch` is ownership, not a projection: a rebuild carries it over.
-- `status_reason` has no CHECK: reasons are an open set that grows without a migration.
CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    work_mode TEXT NOT NULL CHECK (work_mode IN ('chat', 'plan', 'build', 'review', 'repair', 'research')),
    run_control TEXT NOT NULL CHECK (run_control IN ('manual', 'assisted', 'autonomous')),
    permission_profile TEXT NOT NULL CHECK (permission_profile IN ('restricted', 'normal', 'trusted', 'unrestricted')),
    model_mode TEXT NOT NULL CHECK (model_mode IN ('fast', 'smart', 'deep')),
    status TEXT NOT NULL CHECK (status IN ('todo', 'running', 'verifying', 'reviewing', 'blocked', 'paused', 'retrying', 'done', 'failed', 'cancelled')),
    dependency_blockers TEXT,
    retry_count INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL DEFAULT 3,
    checkpoint_ref TEXT,
    cost_budget REAL,
    cost_spent REAL NOT NULL DEFAULT 0,
    created_at TEXT,
    started_at TEXT,
    completed_at TEXT,
    next_action_at TEXT,
    intent_claim TEXT,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    command_id TEXT NOT NULL UNIQUE,
    parent_id TEXT,
    root_id TEXT NOT NULL,
    depth INTEGER NOT NULL DEFAULT 0,
    driver TEXT NOT NULL CHECK (driver IN ('foreground', 'service')),
    surface TEXT NOT NULL CHECK (surface IN ('tui', 'web', 'headless', 'rpc')),
    goal TEXT NOT NULL,
    workspace TEXT NOT NULL,
    status_reason TEXT NOT NULL,
    status_detail TEXT,
    error TEXT,
    result TEXT,
    usage TEXT NOT NULL,
    plan TEXT,
    model TEXT,
    container_id TEXT,
    paused_at TEXT,
    deadline TEXT,
    deadline_action TEXT NOT NULL DEFAULT 'fail' CHECK (deadline_action IN ('fail', 'complete_partial', 'pause_and_notify')),
    turns INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    updated_at TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX tasks_by_session ON tasks (session_id);
CREATE INDEX tasks_by_root ON tasks (root_id);
CREATE INDEX tasks_live ON tasks (workspace) WHERE status NOT IN ('done', 'failed', 'cancelled');

CREATE TABLE task_transitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    reason TEXT,
    scope TEXT,
    timestamp TEXT NOT NULL
);
CREATE INDEX task_transitions_by_task ON task_transitions (task_id);

-- Filled by changes of the axes while a task runs, which are planned.
CREATE TABLE mode_transitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    task_id TEXT,
    from_axes TEXT NOT NULL,
    to_axes TEXT NOT NULL,
    reason TEXT,
    scope TEXT,
    source TEXT,
    timestamp TEXT NOT NULL
);
CREATE INDEX mode_transitions_by_task ON mode_transitions (task_id);

CREATE TABLE questions (
    id TEXT PRIMARY KEY,
    task_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('ask_user', 'permission', 'budget', 'plan', 'runner')),
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
CREATE INDEX questions_by_task ON questions (task_id);
CREATE INDEX questions_open ON questions (asked_at) WHERE state = 'open';

CREATE TABLE deliverables (
    task_id TEXT NOT NULL,
    filepath TEXT NOT NULL,
    description TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('report', 'code', 'data', 'screenshot', 'other')),
    content TEXT,
    size_bytes INTEGER,
    published_at TEXT NOT NULL,
    PRIMARY KEY (task_id, filepath)
) WITHOUT ROWID;

-- Not projections: a rebuild leaves these alone. ----------------------------------------------------

-- The mailbox. `body` is emptied on delivery: the journal has it then; the id stays, against repeats.
CREATE TABLE injections (
    pos INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL REFERENCES tasks (id),
    type TEXT NOT NULL CHECK (type IN ('user_message', 'hitl_response', 'external_event', 'system_control')),
    question_id TEXT,
    body TEXT,
    at TEXT NOT NULL,
    delivered_at TEXT
);
CREATE INDEX injections_waiting ON injections (task_id, pos) WHERE delivered_at IS NULL;
CREATE INDEX injections_answers ON injections (question_id) WHERE question_id IS NOT NULL AND delivered_at IS NULL;

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    command_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at TEXT NOT NULL,
    published_at TEXT,
    UNIQUE (command_id, topic)
);
CREATE INDEX outbox_waiting ON outbox (id) WHERE published_at IS NULL;

CREATE TABLE task_runtime (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id),
    process_pid INTEGER,
    worktree_path TEXT,
    current_model TEXT,
    context_usage_percent REAL,
    last_heartbeat_at TEXT
);

CREATE TABLE task_scheduler (
    task_id TEXT PRIMARY KEY REFERENCES tasks (id),
    status TEXT NOT NULL CHECK (status IN ('queued', 'due', 'claimed', 'dispatched', 'consumed', 'expired')),
    due_at TEXT,
    claimed_by TEXT,
    dispatched_at TEXT,
    consumed_at TEXT,
    expires_at TEXT
);

CREATE TABLE spawn_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    command_id TEXT NOT NULL,
    stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr')),
    task_id TEXT,
    content TEXT NOT NULL,
    meta TEXT NOT NULL,
    at TEXT NOT NULL,
    UNIQUE (command_id, stream)
);
CREATE INDEX spawn_logs_by_task ON spawn_logs (task_id);

CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT,
    session_id TEXT,
    text TEXT NOT NULL,
    tags TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL
);
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    text, tags, content = 'memories', content_rowid = 'id', tokenize = 'porter unicode61'
);
CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO memories_fts (rowid, text, tags) VALUES (new.id, new.text, new.tags);
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, text, tags) VALUES ('delete', old.id, old.text, old.tags);
END;

-- Tables of planned features; no rows until these exist. -----------------------------------------------

-- Filled by commitments: work that an agent promises, claims and hands in with evidence.
CREATE TABLE commitments (
    id TEXT PRIMARY KEY,
    session_id TEXT,
    task_id TEXT,
    title TEXT NOT NULL,
    body TEXT,
    state TEXT NOT NULL CHECK (state IN ('open', 'claimed', 'submitted', 'approved', 'rejected', 'closed')),
    claimed_by TEXT,
    verdict TEXT,
    verdict_reason TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
-- Filled by commitments: what shows that the work was done.
CREATE TABLE evidence (
    id TEXT PRIMARY KEY,
    commitment_id TEXT REFERENCES commitments (id),
    task_id TEXT,
    type TEXT NOT NULL CHECK (type IN ('screenshot', 'file', 'log', 'url')),
    uri TEXT NOT NULL,
    description TEXT,
    created_at TEXT NOT NULL
);
-- Filled by plan mode: open issues of a plan.
CREATE TABLE planning_issues (
    id TEXT PRIMARY KEY,
    planId TEXT,
    taskId TEXT,
    severity TEXT NOT NULL,
    ownerTeam TEXT,
    description TEXT NOT NULL,
    createdAt TEXT NOT NULL,
    resolvedAt TEXT,
    resolution TEXT
);
-- Filled by plan mode: decisions that a plan records.
CREATE TABLE planning_decisions (
    id TEXT PRIMARY KEY,
    planId TEXT,
    taskId TEXT,
    title TEXT NOT NULL,
    reasoning TEXT NOT NULL,
    alternatives TEXT NOT NULL,
    createdAt TEXT NOT NULL
);
CREATE TABLE schedules (
    id TEXT PRIMARY KEY,
    action TEXT NOT NULL CHECK (action IN ('check', 'message', 'start')),
    task_id TEXT,
    session_id TEXT,
    goal TEXT,
    interval_seconds INTEGER,
    cron TEXT,
    check_prompt TEXT,
    next_at TEXT,
    timeout_at TEXT,
    timeout_action TEXT CHECK (timeout_action IN ('fail', 'complete_partial', 'pause_and_notify')),
    enabled INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL
);
-- Filled by workflows: one row for each run.
CREATE TABLE workflow_runs (
    id TEXT PRIMARY KEY,
    workflow TEXT NOT NULL,
    task_id TEXT,
    status TEXT NOT NULL CHECK (status IN ('todo', 'running', 'verifying', 'reviewing', 'blocked', 'paused', 'retrying', 'done', 'failed', 'cancelled')),
    step TEXT,
    state TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
);
