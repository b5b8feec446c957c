-- What a person allows beforehand. An empty directory means every project.
CREATE TABLE IF NOT EXISTS standing_rules (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pattern TEXT NOT NULL,
    directory TEXT NOT NULL,
    given_by TEXT NOT NULL,
    given_at TEXT NOT NULL,
    UNIQUE (pattern, directory)
);
